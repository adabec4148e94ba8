/* Which tensors of a checkpoint are quantized, see checkpoint_job.h. */
#include "checkpoint_job.h"
#include "cli/checkpoint/weights.h"
#include "cli/matrices/operand.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char usual_include[] = "*", usual_experts[] = "*experts*";
/* Embeddings, heads and routers, as ModelOpt leaves them. */
static const char usual_exclude[] = "*embed*,*lm_head*,*router*,*.gate,*output_layer*";

static bool real_type(bsm_format format, bsm_real *type)
{
    switch (format) {
    case BSM_FORMAT_FP32: *type = BSM_REAL_FP32; return true;
    case BSM_FORMAT_FP16: *type = BSM_REAL_FP16; return true;
    case BSM_FORMAT_BF16: *type = BSM_REAL_BF16; return true;
    default: return false;
    }
}

/* Numbers of a row that a format needs whole: other readers know no short blocks. */
static int64_t row_unit(const struct job *job)
{
    const int block = bsm_format_get((int)job->request->format)->block;
    if (job->convention == BSM_CONVENTION_GGUF) return job->request->format == BSM_NVFP4 ? 64 : 32;
    return block > 0 ? block : 1;
}

/* Of gpt-oss the experts, which transformers keeps as tensors X of [experts, K, N]. */
static bool is_expert(const struct job *job, const bsm_weight *weight, const bsm_tensor *tensor)
{
    return job->convention == BSM_CONVENTION_GPT_OSS && weight->convention == BSM_CONVENTION_PLAIN && tensor->rank == 3
           && (int64_t)strlen(tensor->name) == weight->name_length;
}

/* Matrices called X.weight (in GGUF files too), of numbers, or of fp8 with fp32 scales of tiles or rows. */
static bool is_matrix(const struct job *job, const bsm_weight *weight, const bsm_tensor *tensor)
{
    return job->convention != BSM_CONVENTION_GPT_OSS && weight->matrix.batch <= 1 && tensor->rank == 2 &&
           (int64_t)strlen(tensor->name) == weight->name_length + 7;
}

/* Whether the patterns choose a weight; *fits is false if a row is not whole blocks. */
static bool is_chosen(const struct job *job, const bsm_weight *weight, const bsm_tensor *tensor, bool *fits)
{
    const struct checkpoint_request *r = job->request;
    bsm_real type;
    const bool expert = is_expert(job, weight, tensor);
    *fits = (expert ? weight->matrix.rows : weight->matrix.columns) % row_unit(job) == 0;
    const bool real = weight->convention == BSM_CONVENTION_PLAIN && real_type(weight->matrix.format, &type);
    return (real || weight->tile_rows > 0) && (expert || is_matrix(job, weight, tensor)) &&
           weights_match(r->include != NULL ? r->include : expert ? usual_experts : usual_include, weight->name,
                         weight->name_length) &&
           !weights_match(r->exclude != NULL ? r->exclude : usual_exclude, weight->name, weight->name_length);
}

/* Experts' matrices in the order that blocks have: a row for each output. */
static bsm_real_matrix experts_of(const bsm_matrix *m, bsm_real type)
{
    bsm_real_matrix real = real_rows(type, m->columns, m->rows, m->data, 1);
    real.column_stride = m->columns;
    real.batch = m->batch;
    real.batch_stride = m->rows * m->columns;
    return real;
}

static void take_weight(struct cli *cli, struct job *job, struct job_item *item, const bsm_weight *weight, bool expert)
{
    const bsm_matrix *m = &weight->matrix;
    const int64_t scales[] = { weight->scales, weight->tensor_scale, weight->input_scale };
    const bool tiles = weight->tile_rows > 0;
    bsm_real type = BSM_REAL_FP32;
    for (int i = 0; i < 3; i++)
        if (scales[i] >= 0) job->used[scales[i]] = true;
    item->weight = *weight;
    real_type(m->format, &type);
    item->name = cli_memory(cli, weight->name_length + 1, 1);
    memcpy(item->name, weight->name, (size_t)weight->name_length);
    if (expert) item->real = experts_of(m, type);
    else item->real = real_rows(type, m->rows, m->columns, tiles ? NULL : m->data, m->columns);
}

static int choose(struct cli *cli, struct job *job, int64_t index)
{
    struct job_item *item = &job->items[job->count++];
    const bsm_tensor tensor = weights_tensor(job->checkpoint, index);
    bsm_weight weight;
    bool fits;
    item->tensor = index;
    job->bytes_before += tensor.bytes;
    if (weights_get(cli, job->checkpoint, index, &weight) != CLI_DONE) return CLI_BAD_INPUT;
    if (!is_chosen(job, &weight, &tensor, &fits)) return CLI_DONE;
    if (!fits)
        cli_note(cli, "%.*s is left as it is: rows of %" PRId64 " numbers are not whole blocks of %" PRId64,
                 (int)weight.name_length, weight.name,
                 is_expert(job, &weight, &tensor) ? weight.matrix.rows : weight.matrix.columns, row_unit(job));
    if (!fits) job->left++;
    else take_weight(cli, job, item, &weight, is_expert(job, &weight, &tensor));
    return CLI_DONE;
}

bool job_has_tensor_scale(const struct checkpoint_request *request)
{
    return bsm_format_get((int)request->format)->scale != BSM_E8M0 && request->how.preset != BSM_PRESET_GGML;
}

static int announce(struct job *job, struct job_item *item)
{
    struct writer *w = &job->writer;
    if (item->name == NULL) {
        const bsm_tensor tensor = weights_tensor(job->checkpoint, item->tensor);
        return writer_add_tensor(w, &tensor, &item->number);
    }
    const bsm_writer_weight weight = {
        .struct_size = sizeof weight, .name = item->name, .convention = job->convention, .format = job->request->format,
        .batch = job_batch(item), .rows = item->real.rows, .columns = item->real.columns,
        .tensor_scale = job_has_tensor_scale(job->request)
    };
    job->weights++;
    return writer_check(w, bsm_writer_add_weight(w->writer, &weight, &item->number, &item->matrix));
}

/* Scales of chosen weights are not passed on. */
static void drop_used(struct job *job)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < job->count; i++)
        if (job->items[i].name != NULL || !job->used[job->items[i].tensor]) job->items[kept++] = job->items[i];
    job->count = kept;
}

static int say_nothing_is_chosen(struct cli *cli, const struct job *job)
{
    if (job->convention == BSM_CONVENTION_GPT_OSS)
        return cli_bad_input(cli, "%s: no weight is chosen: gpt-oss has blocks for experts alone, tensors X of three "
                                  "dimensions, [experts, K, N], with fp32, fp16 or bf16 numbers; "
                                  "--include and --exclude choose among them",
                             job->request->input);
    return cli_bad_input(
        cli,
        "%s: no weight is chosen: matrices called X.weight of fp32, fp16 or bf16 numbers are, and of fp8 with fp32 "
        "scales of tiles or rows; --include and --exclude choose among them. What is quantized already is converted, "
        "or dequantized first",
        job->request->input);
}

int job_choose(struct cli *cli, struct job *job)
{
    const struct cli_real *real = job->request->real;
    const int64_t tensors = real != NULL ? 1 : bsm_checkpoint_tensor_count(job->checkpoint);
    int result = CLI_DONE;
    job->items = cli_memory(cli, tensors, sizeof *job->items);
    job->used = cli_memory(cli, tensors, sizeof *job->used);
    for (int64_t i = 0; result == CLI_DONE && real == NULL && i < tensors; i++) result = choose(cli, job, i);
    drop_used(job);
    if (real != NULL) {
        job->items[job->count++] = (struct job_item){ .tensor = -1, .name = cli_memory(cli, 7, 1),
                                                  .real = cli_real_view(real) };
        memcpy(job->items[0].name, "matrix", 6);
        job->bytes_before = real->rows * real->columns * (int64_t)bsm_real_bytes((int)real->type);
    }
    for (int64_t i = 0; result == CLI_DONE && i < job->count; i++) result = announce(job, &job->items[i]);
    return result == CLI_DONE && job->weights == 0 ? say_nothing_is_chosen(cli, job) : result;
}

int job_with_numbers(struct cli *cli, struct job *job, struct job_item *item,
                     int (*work)(struct cli *cli, struct job *job, struct job_item *item))
{
    if (item->weight.tile_rows == 0) return work(cli, job, item);
    float *numbers = cli_memory(cli, item->real.rows * item->real.columns, sizeof *numbers);
    int result = weights_values(cli, &item->weight, 0, numbers);
    item->real.data = numbers;
    if (result == CLI_DONE) result = work(cli, job, item);
    item->real.data = NULL;
    free(numbers);
    return result;
}
