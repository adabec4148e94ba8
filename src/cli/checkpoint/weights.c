/* Weights of checkpoints, see weights.h. */
#include "weights.h"
#include "cli/matrices/matrices.h"
#include "cli/matrices/operand.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The index of shards, if the checkpoint was opened by one. */
static void note_index(const struct cli *cli, const char *path)
{
    static const char name[] = "model.safetensors.index.json";
    const size_t room = strlen(path) + sizeof name + 1;
    char *inside = cli_memory(cli, (int64_t)room, 1);
    snprintf(inside, room, "%s/%s", path, name);
    cli_input(path);
    cli_input(inside);
    free(inside);
}

int weights_open(struct cli *cli, const char *path, bsm_checkpoint **checkpoint)
{
    const bsm_status status = bsm_checkpoint_open(cli->context, path, checkpoint);
    if (status != BSM_OK) return cli_library_failed(cli, NULL, status);
    note_index(cli, path);
    for (int i = 0; i < bsm_checkpoint_file_count(*checkpoint); i++)
        cli_input(bsm_checkpoint_file_path(*checkpoint, i));
    return CLI_DONE;
}

bool weights_is_checkpoint(const char *path)
{
    return strncmp(path, "random:", 7) != 0 && !cli_ends_with(path, ".npy");
}

bsm_tensor weights_tensor(const bsm_checkpoint *checkpoint, int64_t index)
{
    bsm_tensor tensor = { .struct_size = sizeof tensor };
    bsm_checkpoint_tensor(checkpoint, index, &tensor);
    return tensor;
}

int weights_get(struct cli *cli, const bsm_checkpoint *checkpoint, int64_t index, bsm_weight *weight)
{
    *weight = (bsm_weight){ .struct_size = sizeof *weight };
    const bsm_status status = bsm_checkpoint_weight(checkpoint, index, weight);
    return status == BSM_OK ? CLI_DONE : cli_library_failed(cli, NULL, status);
}

bool weights_is_module(const bsm_checkpoint *checkpoint, int64_t index)
{
    const bsm_tensor tensor = weights_tensor(checkpoint, index);
    return tensor.rank == 2 && cli_ends_with(tensor.name, ".weight");
}

bool weights_is_transposed(const bsm_checkpoint *checkpoint, const bsm_weight *weight)
{
    const bsm_tensor codes = weights_tensor(checkpoint, weight->codes);
    return weight->convention == BSM_CONVENTION_GPT_OSS && codes.rank == 4 && cli_ends_with(codes.name, "_blocks");
}

bool weights_match(const char *patterns, const char *name, int64_t length)
{
    char text[4096], pattern[256];
    if (patterns == NULL || length >= (int64_t)sizeof text) return false;
    snprintf(text, sizeof text, "%.*s", (int)length, name);
    for (const char *at = patterns; *at != '\0';) {
        const size_t end = strcspn(at, ",");
        snprintf(pattern, sizeof pattern, "%.*s", (int)end, at);
        if (fnmatch(pattern, text, 0) == 0) return true;
        at += end + (at[end] == ',');
    }
    return false;
}

int64_t weights_numbers(const bsm_weight *weight)
{
    const bsm_matrix *m = &weight->matrix;
    return m->rows * m->columns * (m->batch > 1 ? m->batch : 1);
}

bool weights_changed(double signal, double noise) { return noise > 0x1p-48 * signal; }

double weights_bits(const bsm_weight *weight)
{
    int64_t data = 0, scales = 0;
    bsm_matrix_data_bytes(&weight->matrix, &data);
    bsm_matrix_scale_bytes(&weight->matrix, &scales);
    const int64_t numbers = weights_numbers(weight);
    return numbers > 0 ? 8 * (double)(data + scales) / (double)numbers : 0;
}

int weights_values(struct cli *cli, const bsm_weight *weight, int64_t batch, float *values)
{
    const bsm_matrix *whole = &weight->matrix;
    const int64_t tile_rows = weight->tile_rows > 0 ? weight->tile_rows : whole->rows;
    const int64_t tile_columns = weight->tile_rows > 0 ? weight->tile_columns : whole->columns;
    for (int64_t r = 0; r < whole->rows; r += tile_rows)
        for (int64_t c = 0; c < whole->columns; c += tile_columns) {
            bsm_matrix tile;
            bsm_status status = bsm_weight_tile(weight, batch, r / tile_rows, c / tile_columns, &tile);
            const bsm_real_matrix to =
                real_rows(BSM_REAL_FP32, tile.rows, tile.columns, values + r * whole->columns + c, whole->columns);
            if (status == BSM_OK) status = bsm_dequantize(cli->context, &tile, &to);
            if (status != BSM_OK) return cli_library_failed(cli, NULL, status);
        }
    return CLI_DONE;
}

/* Linear scales lie one behind the other; those of GGUF in their blocks; others have padding between them, and one
 * matrix. */
void weights_count_scales(const bsm_weight *weight, int64_t *histogram)
{
    const bsm_matrix *m = &weight->matrix;
    const unsigned char *scales = m->scales, *codes = m->data;
    int64_t bytes = 0;
    if (m->packing != BSM_PACKING_GGUF && m->scale_layout.kind != BSM_LAYOUT_LINEAR) {
        for (int64_t i = 0; i < m->rows * bsm_matrix_scale_columns(m); i++) {
            uint8_t scale = 0;
            bsm_matrix_get_scale(m, 0, i / bsm_matrix_scale_columns(m), i % bsm_matrix_scale_columns(m), &scale);
            histogram[scale]++;
        }
        return;
    }
    if (m->packing != BSM_PACKING_GGUF) {
        bsm_matrix_scale_bytes(m, &bytes);
        for (int64_t i = 0; i < bytes; i++) histogram[scales[i]]++;
        return;
    }
    const int64_t block = m->format == BSM_NVFP4 ? 36 : 17, in_block = m->format == BSM_NVFP4 ? 4 : 1;
    bsm_matrix_data_bytes(m, &bytes);
    for (int64_t i = 0; i < bytes; i += block)
        for (int64_t j = 0; j < in_block; j++) histogram[codes[i + j]]++;
}

struct weights_text weights_format(const bsm_weight *weight)
{
    struct weights_text name;
    const char *format = bsm_format_get((int)weight->matrix.format)->name;
    if (weight->tile_rows > 0)
        snprintf(name.text, sizeof name.text, "%s/%" PRId64 "x%" PRId64, format, weight->tile_rows,
                 weight->tile_columns);
    else snprintf(name.text, sizeof name.text, "%s", format);
    return name;
}
