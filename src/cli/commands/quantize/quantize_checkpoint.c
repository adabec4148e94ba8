/* blockscale quantize of a checkpoint: weights become codes and scales, everything else is passed on as it is.
 *
 * One weight after the other is quantized from the mapped file and written to its place: memory is that of the largest
 * one. */
#include "quantize_checkpoint.h"
#include "cli/checkpoint/fused.h"
#include "cli/matrices/operand.h"
#include "cli/io/progress.h"
#include "cli/matrices/silent.h"
#include "cli/checkpoint/shared_scale.h"
#include "cli/checkpoint/weights.h"
#include "cli/checkpoint/written.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char usual_include[] = "*", usual_experts[] = "*experts*";
/* Embeddings, heads and routers, as ModelOpt leaves them. */
static const char usual_exclude[] = "*embed*,*lm_head*,*router*,*.gate,*output_layer*";

/* A tensor of the input, and what becomes of it. */
struct item {
    int64_t tensor; /* of the input; -1: the one matrix */
    char *name;     /* of the weight; NULL: passed on */
    bsm_real_matrix real;
    bsm_weight weight; /* tile_rows above 0: real has no data, the numbers are this one's */
    bsm_matrix matrix;  /* how its codes are to lie; no pointers */
    int64_t number;     /* at the writer */
    float shared_scale; /* the tensor scale of its group; 0: its own */
    double snr_db;
    int64_t flushed_blocks, saturated_elements, nan_blocks;
};

struct job {
    const struct checkpoint_request *request;
    bsm_checkpoint *checkpoint; /* NULL: the one matrix */
    bsm_convention convention;
    struct writer writer;
    struct fused shared;
    struct written written;
    struct item *items;
    bool *used; /* tensors of the input that are scales of chosen weights */
    int64_t count, weights, left, bytes_before;
    int64_t changed; /* weights whose numbers are others than before: the sums are theirs */
    double signal, noise;
    struct silent_weights silent;
};

/* Choosing --------------------------------------------------------------------------------------------------------- */

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

static void take_weight(struct cli *cli, struct job *job, struct item *item, const bsm_weight *weight, bool expert)
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
    struct item *item = &job->items[job->count++];
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

/* NVFP4 and unscaled e4m3 need a tensor scale; e8m0 formats have none, nor has ggml. */
static bool has_tensor_scale(const struct checkpoint_request *request)
{
    return bsm_format_get((int)request->format)->scale != BSM_E8M0 && request->how.preset != BSM_PRESET_GGML;
}

static int64_t batch_of(const struct item *item) { return item->real.batch > 1 ? item->real.batch : 1; }

static int announce(struct job *job, struct item *item)
{
    struct writer *w = &job->writer;
    if (item->name == NULL) {
        const bsm_tensor tensor = weights_tensor(job->checkpoint, item->tensor);
        return writer_add_tensor(w, &tensor, &item->number);
    }
    const bsm_writer_weight weight = {
        .struct_size = sizeof weight, .name = item->name, .convention = job->convention, .format = job->request->format,
        .batch = batch_of(item), .rows = item->real.rows, .columns = item->real.columns,
        .tensor_scale = has_tensor_scale(job->request)
    };
    job->weights++;
    return writer_check(w, bsm_writer_add_weight(w->writer, &weight, &item->number, &item->matrix));
}

/* Doing ------------------------------------------------------------------------------------------------------------ */

static void keep_statistics(struct job *job, struct item *item, const bsm_quantize_options *how,
                            const bsm_quantize_stats *stats)
{
    const struct silent found = silent_quantized(&item->real, how, stats);
    silent_add(&job->silent, item->name, &found);
    item->snr_db = stats->snr_db;
    item->flushed_blocks = stats->flushed_blocks;
    item->saturated_elements = stats->saturated_elements;
    item->nan_blocks = stats->nan_blocks;
    if (!weights_changed(stats->signal, stats->noise)) return;
    job->changed++;
    job->signal += stats->signal;
    job->noise += stats->noise;
}

static int quantize_numbers(struct cli *cli, struct job *job, struct item *item)
{
    bsm_quantize_stats *stats = cli_memory(cli, 1, sizeof *stats);
    bsm_quantize_options how = job->request->how;
    bsm_matrix matrix = item->matrix;
    float tensor_scale = 1;
    int64_t data_bytes = 0, scale_bytes = 0;
    bsm_matrix_data_bytes(&matrix, &data_bytes);
    bsm_matrix_scale_bytes(&matrix, &scale_bytes);
    matrix.data = cli_memory(cli, data_bytes, 1);
    void *scales = scale_bytes > 0 ? cli_memory(cli, scale_bytes, 1) : NULL;
    matrix.scales = matrix.packing == BSM_PACKING_GGUF ? matrix.data : scales;
    how.struct_size = sizeof how;
    stats->struct_size = sizeof *stats;
    if (has_tensor_scale(job->request))
        matrix.tensor_scale = &tensor_scale, how.tensor_scale = BSM_TENSOR_SCALE_COMPUTED;
    if (item->shared_scale > 0) tensor_scale = item->shared_scale, how.tensor_scale = BSM_TENSOR_SCALE_GIVEN;
    const bsm_status status = bsm_quantize(cli->context, &item->real, &how, &matrix, stats);
    int result = status == BSM_OK ? CLI_DONE : cli_library_failed(cli, item->name, status);
    if (result == CLI_DONE)
        result = writer_check(&job->writer, bsm_writer_put_weight(job->writer.writer, item->number, &matrix, NULL));
    keep_statistics(job, item, &how, stats);
    free(scales);
    free(matrix.data);
    free(stats);
    return result;
}

/* Does something with a weight's numbers; of tiles they are made first, one weight's at a time. */
static int with_numbers(struct cli *cli, struct job *job, struct item *item,
                        int (*work)(struct cli *cli, struct job *job, struct item *item))
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

/* Shared tensor scales --------------------------------------------------------------------------------------------- */

static int find_own_scale(struct cli *cli, struct job *job, struct item *item)
{
    bsm_quantize_options how = job->request->how;
    how.struct_size = sizeof how;
    const bsm_status status = shared_scale_of(cli, &item->real, &how, &item->matrix, &item->shared_scale);
    return status == BSM_OK ? CLI_DONE : cli_library_failed(cli, item->name, status);
}

/* Readers of compressed-tensors round the scale of e4m3 to the type of the model: one that is a bf16 number stays what
 * it is. */
static bool wants_short_scale(const struct job *job, const struct item *item)
{
    return item->name != NULL && job->convention == BSM_CONVENTION_COMPRESSED_TENSORS
           && job->request->format == BSM_FORMAT_E4M3;
}

/* Every member of a group gets the scale of its largest number. */
static int share_scales(struct cli *cli, struct job *job, const struct fused_weight *weights)
{
    float *scales = cli_memory(cli, job->shared.count + 1, sizeof *scales);
    int result = CLI_DONE;
    for (int64_t i = 0; result == CLI_DONE && i < job->count; i++) {
        struct item *item = &job->items[i];
        const int64_t group = weights[i].group;
        if (group < 0 && !wants_short_scale(job, item)) continue;
        result = with_numbers(cli, job, item, find_own_scale);
        if (group >= 0)
            scales[group] = shared_scale_join(scales[group], item->shared_scale, item->matrix.tensor_scale_use);
    }
    for (int64_t i = 0; i < job->count; i++) {
        struct item *item = &job->items[i];
        if (weights[i].group >= 0) item->shared_scale = scales[weights[i].group];
        if (wants_short_scale(job, item)) item->shared_scale = shared_scale_shorten(item->shared_scale);
    }
    free(scales);
    return result;
}

/* Finds the weights that others fuse. */
static int find_shared_scales(struct cli *cli, struct job *job)
{
    if (!has_tensor_scale(job->request)) return CLI_DONE;
    struct fused_weight *weights = cli_memory(cli, job->count, sizeof *weights);
    for (int64_t i = 0; i < job->count; i++) {
        const struct item *item = &job->items[i];
        const char *name = item->name != NULL ? item->name : "";
        weights[i] = (struct fused_weight){ .name = name, .length = (int64_t)strlen(name),
                                            .columns = item->real.columns };
    }
    fused_find(cli, job->request->share, weights, job->count, &job->shared);
    const int result = share_scales(cli, job, weights);
    free(weights);
    return result;
}

/* Everything ------------------------------------------------------------------------------------------------------- */

static int do_item(struct cli *cli, struct job *job, struct item *item)
{
    if (item->name != NULL) return with_numbers(cli, job, item, quantize_numbers);
    const bsm_tensor tensor = weights_tensor(job->checkpoint, item->tensor);
    return writer_put_tensor(&job->writer, item->number, &tensor);
}

static const char *item_name(const struct job *job, const struct item *item)
{
    return item->name != NULL ? item->name : weights_tensor(job->checkpoint, item->tensor).name;
}

static int64_t item_bytes(const struct job *job, const struct item *item)
{
    int64_t bytes = 0;
    if (item->name == NULL) return weights_tensor(job->checkpoint, item->tensor).bytes;
    bsm_matrix_data_bytes(&item->matrix, &bytes);
    return bytes;
}

static int do_all(struct cli *cli, struct job *job)
{
    struct progress progress = progress_start(bsm_writer_bytes(job->writer.writer));
    int result = CLI_DONE;
    for (int64_t i = 0; result == CLI_DONE && i < job->count; i++) {
        struct item *item = &job->items[i];
        progress_show(&progress, item_name(job, item));
        result = do_item(cli, job, item);
        progress_add(&progress, item_bytes(job, item));
    }
    progress_end(&progress);
    return result;
}

/* Reports ---------------------------------------------------------------------------------------------------------- */

/* Weights that became the same numbers are in no sum: what inspect --against counts too. */
static double overall(const struct job *job)
{
    return job->changed > 0 ? 10 * log10(job->signal / job->noise) : (double)INFINITY;
}

static void print_overall(const struct job *job)
{
    if (job->changed == 0) printf("every number is exact\n");
    else
        printf("signal to noise of the %" PRId64 " weight%s that changed %.2f dB\n", job->changed,
               job->changed == 1 ? "" : "s", overall(job));
}

static void print_text(const struct job *job)
{
    static const struct cli_column columns[] = { { "weight", CLI_LEFT },
                                                 { "shape", CLI_RIGHT },
                                                 { "snr dB", CLI_RIGHT },
                                                 { "saturated", CLI_RIGHT },
                                                 { "blocks to zero", CLI_RIGHT } };
    struct cli_table *table = cli_table_new(columns, 5);
    for (int64_t i = 0; i < job->count; i++) {
        const struct item *item = &job->items[i];
        if (item->name == NULL) continue;
        cli_table_cell(table, "%s", item->name);
        if (batch_of(item) == 1) cli_table_cell(table, "%" PRId64 "x%" PRId64, item->real.rows, item->real.columns);
        else
            cli_table_cell(table, "%" PRId64 "x%" PRId64 "x%" PRId64, batch_of(item), item->real.rows,
                           item->real.columns);
        cli_table_cell(table, "%.2f", item->snr_db);
        cli_table_cell(table, "%" PRId64, item->saturated_elements);
        cli_table_cell(table, "%" PRId64, item->flushed_blocks);
    }
    cli_table_print(table, stdout);
    cli_table_free(table);
    printf("\n%s: %" PRId64 " weights as %s of %s, %" PRId64 " tensors passed on", bsm_writer_path(job->writer.writer),
           job->weights, bsm_format_get((int)job->request->format)->name, bsm_convention_name((int)job->convention),
           job->count - job->weights);
    if (job->left > 0) printf(" (%" PRId64 " for their row length)", job->left);
    printf("\n%" PRId64 " bytes, before %" PRId64 "; ", bsm_writer_bytes(job->writer.writer), job->bytes_before);
    print_overall(job);
    if (job->shared.count > 0) {
        printf("tensor scales shared: ");
        fused_print(&job->shared, stdout);
        printf(" (--share-tensor-scales)\n");
    }
    written_print(&job->written);
}

static void print_json(const struct job *job)
{
    struct cli_json json = cli_json_to(stdout);
    cli_json_object(&json, NULL);
    cli_json_text(&json, "output", bsm_writer_path(job->writer.writer));
    cli_json_text(&json, "format", bsm_format_get((int)job->request->format)->name);
    cli_json_text(&json, "convention", bsm_convention_name((int)job->convention));
    cli_json_integer(&json, "bytes", bsm_writer_bytes(job->writer.writer));
    cli_json_integer(&json, "bytes_before", job->bytes_before);
    cli_json_integer(&json, "passed_on", job->count - job->weights);
    cli_json_number(&json, "snr_db", overall(job));
    cli_json_integer(&json, "changed", job->changed);
    cli_json_array(&json, "weights");
    for (int64_t i = 0; i < job->count; i++) {
        const struct item *item = &job->items[i];
        if (item->name == NULL) continue;
        cli_json_object(&json, NULL);
        cli_json_text(&json, "name", item->name);
        cli_json_integer(&json, "batch", batch_of(item));
        cli_json_integer(&json, "rows", item->real.rows);
        cli_json_integer(&json, "columns", item->real.columns);
        cli_json_number(&json, "snr_db", item->snr_db);
        cli_json_integer(&json, "saturated_elements", item->saturated_elements);
        cli_json_integer(&json, "flushed_blocks", item->flushed_blocks);
        cli_json_integer(&json, "nan_blocks", item->nan_blocks);
        cli_json_end(&json);
    }
    cli_json_end(&json);
    fused_print_json(&json, "shared_tensor_scales", &job->shared);
    written_print_json(&json, &job->written);
    cli_json_end(&json);
}

/* Running ---------------------------------------------------------------------------------------------------------- */

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

static int choose_all(struct cli *cli, struct job *job)
{
    const struct cli_real *real = job->request->real;
    const int64_t tensors = real != NULL ? 1 : bsm_checkpoint_tensor_count(job->checkpoint);
    int result = CLI_DONE;
    job->items = cli_memory(cli, tensors, sizeof *job->items);
    job->used = cli_memory(cli, tensors, sizeof *job->used);
    for (int64_t i = 0; result == CLI_DONE && real == NULL && i < tensors; i++) result = choose(cli, job, i);
    drop_used(job);
    if (real != NULL) {
        job->items[job->count++] = (struct item){ .tensor = -1, .name = cli_memory(cli, 7, 1),
                                                  .real = cli_real_view(real) };
        memcpy(job->items[0].name, "matrix", 6);
        job->bytes_before = real->rows * real->columns * (int64_t)bsm_real_bytes((int)real->type);
    }
    for (int64_t i = 0; result == CLI_DONE && i < job->count; i++) result = announce(job, &job->items[i]);
    if (result == CLI_DONE && job->weights == 0)
        return say_nothing_is_chosen(cli, job);
    return result;
}

static int run(struct cli *cli, struct job *job)
{
    const struct checkpoint_request *r = job->request;
    int result = choose_all(cli, job);
    if (result == CLI_DONE) result = writer_check(&job->writer, bsm_writer_begin(job->writer.writer));
    if (result == CLI_DONE) result = find_shared_scales(cli, job);
    if (result == CLI_DONE) result = do_all(cli, job);
    if (result == CLI_DONE) silent_warn_weights(cli, &job->silent, r->format);
    if (result == CLI_DONE) result = writer_finish(&job->writer);
    job->written = (struct written){
        .writer = &job->writer, .input = r->real != NULL ? NULL : r->input, .convention = job->convention,
        .format = r->format
    };
    if (result == CLI_DONE && cli->json) print_json(job);
    else if (result == CLI_DONE) print_text(job);
    return result;
}

/* The convention that is asked for, or goes with the preset and the output; fails where it does not go with them. */
static int choose_convention(struct cli *cli, const struct checkpoint_request *request, bsm_convention *convention)
{
    const bool gguf = writer_is_gguf(request->output);
    *convention = request->convention;
    if (*convention == BSM_CONVENTION_NONE && request->how.preset == BSM_PRESET_COMPRESSED_TENSORS)
        *convention = BSM_CONVENTION_COMPRESSED_TENSORS;
    if (*convention == BSM_CONVENTION_NONE) *convention = gguf ? BSM_CONVENTION_GGUF : BSM_CONVENTION_MODELOPT;
    if ((*convention == BSM_CONVENTION_GGUF) != gguf)
        return cli_wrong_usage(cli, "--convention %s: goes with an output called X%s",
                               bsm_convention_name((int)*convention),
                               *convention == BSM_CONVENTION_GGUF ? ".gguf" : ".safetensors, or a folder");
    if (bsm_writer_check_format(*convention, request->format) == BSM_OK) return CLI_DONE;
    return cli_wrong_usage(cli, "--format %s: %s", bsm_format_get((int)request->format)->name, bsm_last_error());
}

int quantize_checkpoint(struct cli *cli, const struct checkpoint_request *request)
{
    struct job job = { .request = request };
    const char *model = request->real == NULL ? request->input : NULL;
    int result = choose_convention(cli, request, &job.convention);
    if (result != CLI_DONE) return result;
    result = writer_start(cli, &job.writer, request->output, model);
    if (result == CLI_DONE && model != NULL) result = weights_open(cli, model, &job.checkpoint);
    if (result == CLI_DONE) result = run(cli, &job);
    for (int64_t i = 0; i < job.count; i++) free(job.items[i].name);
    free(job.items);
    free(job.used);
    fused_free(&job.shared);
    writer_end(&job.writer);
    bsm_checkpoint_close(job.checkpoint);
    return result;
}
