/* blockscale dequantize of a checkpoint: quantized weights become numbers again, everything else is passed on as it
 * is. */
#include "dequantize_checkpoint.h"
#include "cli/checkpoint/gguf_blocks.h"
#include "cli/matrices/operand.h"
#include "cli/io/progress.h"
#include "cli/checkpoint/rewrite.h"
#include "cli/checkpoint/weights.h"
#include "cli/checkpoint/written.h"

#include <inttypes.h>
#include <stdlib.h>

static bool takes_all(const bsm_weight *weight) { return weight->convention != BSM_CONVENTION_NONE; }

static bsm_tensor_type tensor_type(bsm_real type)
{
    static const bsm_tensor_type types[BSM_REAL_COUNT] = { [BSM_REAL_FP32] = BSM_TENSOR_F32,
                                                           [BSM_REAL_FP16] = BSM_TENSOR_F16,
                                                           [BSM_REAL_BF16] = BSM_TENSOR_BF16,
                                                           [BSM_REAL_FP64] = BSM_TENSOR_F64 };
    return types[type];
}

static int64_t matrix_bytes(const bsm_matrix *m, bsm_real type)
{
    return m->rows * m->columns * (int64_t)bsm_real_bytes((int)type);
}

/* X.weight, with the batch in front where there is one; experts of gpt-oss as transformers and openai call them, X. */
static int announce(struct rewrite *rewrite, struct rewrite_item *item, bsm_real type)
{
    char name[4096 + 8];
    const bsm_matrix *m = &item->weight.matrix;
    const bool transposed = weights_is_transposed(rewrite->checkpoint, &item->weight);
    const bool experts = item->weight.convention == BSM_CONVENTION_GPT_OSS
                         && weights_tensor(rewrite->checkpoint, item->tensor).rank == 4;
    const bool batched = experts || m->batch > 1;
    bsm_tensor t = { .struct_size = sizeof t,
                     .name = name,
                     .type = tensor_type(type),
                     .gguf_type = -1,
                     .rank = batched ? 3 : 2,
                     .bytes = (batched ? m->batch : 1) * matrix_bytes(m, type) };
    snprintf(name, sizeof name, "%s%s", rewrite_name_of(&item->weight).text, experts ? "" : ".weight");
    if (batched) t.shape[0] = m->batch;
    t.shape[t.rank - 2] = transposed ? m->columns : m->rows;
    t.shape[t.rank - 1] = transposed ? m->rows : m->columns;
    return writer_add_tensor(&rewrite->writer, &t, &item->number);
}

/* Every tile straight to its place: each number is rounded once, from the exact value to `type`. */
static int dequantize_matrix(struct cli *cli, const bsm_weight *w, int64_t batch, bsm_real type, bool transposed,
                             void *numbers)
{
    const bsm_matrix *m = &w->matrix;
    const int64_t rows = w->tile_rows > 0 ? w->tile_rows : m->rows,
                  columns = w->tile_rows > 0 ? w->tile_columns : m->columns;
    for (int64_t r = 0; r < m->rows; r += rows)
        for (int64_t c = 0; c < m->columns; c += columns) {
            bsm_matrix tile;
            bsm_status status = bsm_weight_tile(w, batch, r / rows, c / columns, &tile);
            unsigned char *at = (unsigned char *)numbers + (r * m->columns + c) * (int64_t)bsm_real_bytes((int)type);
            bsm_real_matrix to = real_rows(type, tile.rows, tile.columns, at, m->columns);
            if (transposed) to.row_stride = 1, to.column_stride = m->rows; /* of a weight without tiles */
            if (status == BSM_OK) status = bsm_dequantize(cli->context, &tile, &to);
            if (status != BSM_OK) return cli_library_failed(cli, rewrite_name_of(w).text, status);
        }
    return CLI_DONE;
}

static int dequantize_weight(struct cli *cli, struct rewrite *rewrite, const struct rewrite_item *item, bsm_real type)
{
    const bsm_matrix *m = &item->weight.matrix;
    const int64_t bytes = matrix_bytes(m, type);
    const bool transposed = weights_is_transposed(rewrite->checkpoint, &item->weight);
    void *numbers = cli_memory(cli, bytes, 1);
    int result = CLI_DONE;
    for (int64_t b = 0; result == CLI_DONE && b < (m->batch > 1 ? m->batch : 1); b++) {
        result = dequantize_matrix(cli, &item->weight, b, type, transposed, numbers);
        if (result == CLI_DONE)
            result =
                writer_check(&rewrite->writer, bsm_writer_put(rewrite->writer.writer, item->number, numbers, bytes));
    }
    free(numbers);
    return result;
}

/* A tensor of GGUF's other types that are read, as numbers: under its own name and shape. */
static bsm_tensor numbers_of(const bsm_tensor *blocks, bsm_real type)
{
    bsm_tensor t = *blocks;
    t.type = tensor_type(type);
    t.gguf_type = -1;
    t.bytes = (int64_t)bsm_real_bytes((int)type);
    for (int i = 0; i < t.rank; i++) t.bytes *= t.shape[i];
    return t;
}

static int announce_blocks(struct rewrite *rewrite, bsm_real type, int64_t *count)
{
    int result = CLI_DONE;
    *count = 0;
    for (int64_t i = 0; result == CLI_DONE && i < rewrite->count; i++) {
        struct rewrite_item *item = &rewrite->items[i];
        const bsm_tensor blocks = weights_tensor(rewrite->checkpoint, item->tensor), t = numbers_of(&blocks, type);
        if (item->is_weight || !gguf_blocks_are_read(&blocks)) continue;
        item->is_done = true;
        result = writer_add_tensor(&rewrite->writer, &t, &item->number);
        ++*count;
    }
    return result;
}

static int dequantize_blocks(struct cli *cli, struct rewrite *rewrite, const struct rewrite_item *item, bsm_real type)
{
    const bsm_tensor blocks = weights_tensor(rewrite->checkpoint, item->tensor);
    bsm_tensor t = numbers_of(&blocks, type);
    void *numbers = cli_memory(cli, t.bytes, 1);
    const bsm_status status = gguf_blocks_values(cli, &blocks, type, numbers);
    t.data = numbers;
    const int result = status == BSM_OK ? writer_put_tensor(&rewrite->writer, item->number, &t)
                                        : cli_library_failed(cli, t.name, status);
    free(numbers);
    return result;
}

static int64_t written_bytes(const struct rewrite *rewrite, const struct rewrite_item *item, bsm_real type)
{
    const bsm_tensor blocks = weights_tensor(rewrite->checkpoint, item->tensor);
    return item->is_done ? numbers_of(&blocks, type).bytes
                         : weights_numbers(&item->weight) * (int64_t)bsm_real_bytes((int)type);
}

static int dequantize_all(struct cli *cli, struct rewrite *rewrite, bsm_real type)
{
    struct progress progress = progress_start(bsm_writer_bytes(rewrite->writer.writer));
    int result = CLI_DONE;
    for (int64_t i = 0; result == CLI_DONE && i < rewrite->count; i++) {
        const struct rewrite_item *item = &rewrite->items[i];
        if (!item->is_weight && !item->is_done) continue;
        progress_show(&progress, weights_tensor(rewrite->checkpoint, item->tensor).name);
        result =
            item->is_done ? dequantize_blocks(cli, rewrite, item, type) : dequantize_weight(cli, rewrite, item, type);
        progress_add(&progress, written_bytes(rewrite, item, type));
    }
    progress_end(&progress);
    return result;
}

static void report(const struct cli *cli, const struct rewrite *rewrite, const struct written *written, bsm_real type)
{
    const int64_t bytes = bsm_writer_bytes(rewrite->writer.writer);
    if (!cli->json) {
        printf("%s: %" PRId64 " weights as %s, %" PRId64 " tensors passed on, %" PRId64 " bytes\n",
               bsm_writer_path(rewrite->writer.writer), rewrite->weights, bsm_real_name((int)type),
               rewrite->count - rewrite->weights, bytes);
        written_print(written);
        return;
    }
    struct cli_json json = cli_json_to(stdout);
    cli_json_object(&json, NULL);
    cli_json_text(&json, "output", bsm_writer_path(rewrite->writer.writer));
    cli_json_text(&json, "type", bsm_real_name((int)type));
    cli_json_integer(&json, "weights", rewrite->weights);
    cli_json_integer(&json, "passed_on", rewrite->count - rewrite->weights);
    cli_json_integer(&json, "bytes", bytes);
    written_print_json(&json, written);
    cli_json_end(&json);
}

static int announce_all(struct cli *cli, const char *input, struct rewrite *rewrite, bsm_real type)
{
    int64_t blocks = 0;
    int result = CLI_DONE;
    for (int64_t i = 0; result == CLI_DONE && i < rewrite->count; i++)
        if (rewrite->items[i].is_weight) result = announce(rewrite, &rewrite->items[i], type);
    if (result == CLI_DONE) result = announce_blocks(rewrite, type, &blocks);
    if (result == CLI_DONE) result = rewrite_wants_work(cli, input, rewrite, blocks);
    rewrite->weights += blocks;
    return result == CLI_DONE ? rewrite_begin(rewrite) : result;
}

int dequantize_checkpoint(struct cli *cli, const char *input, const char *output, bsm_real type)
{
    struct rewrite rewrite;
    int result = rewrite_start(cli, input, output, takes_all, &rewrite);
    if (result == CLI_DONE) result = announce_all(cli, input, &rewrite, type);
    if (result == CLI_DONE) result = dequantize_all(cli, &rewrite, type);
    if (result == CLI_DONE) result = rewrite_finish(&rewrite);
    const struct written written = { .writer = &rewrite.writer, .input = input };
    if (result == CLI_DONE) report(cli, &rewrite, &written, type);
    rewrite_end(&rewrite);
    return result;
}
