/* Parts of a weight as matrices over the same bytes. */
#include "core/core.h"

#include "blockscale/weight.h"

#include <inttypes.h>

static bsm_status check(const bsm_weight *weight, const bsm_matrix *matrix)
{
    if (weight == NULL || matrix == NULL)
        return bsmi_fail(BSM_EINVAL, "%s is NULL", weight == NULL ? "weight" : "matrix");
    if (weight->struct_size < sizeof *weight || weight->convention == BSM_CONVENTION_NONE)
        return bsmi_fail(BSM_EINVAL, "weight is not filled: it comes from bsm_checkpoint_weight");
    return BSM_OK;
}

/* Bytes of one matrix of the batch: codes, and scales. */
static bsm_status sizes(const bsm_weight *weight, int64_t *data_bytes, int64_t *scale_bytes)
{
    bsm_matrix one = weight->matrix;
    one.batch = 1;
    const bsm_status status = bsm_matrix_data_bytes(&one, data_bytes);
    return status == BSM_OK ? bsm_matrix_scale_bytes(&one, scale_bytes) : status;
}

static void *moved(void *pointer, int64_t bytes) { return pointer == NULL ? NULL : (unsigned char *)pointer + bytes; }

bsm_status bsm_weight_part(const bsm_weight *weight, bsm_weight_half half, bsm_matrix *matrix)
{
    int64_t data_bytes, scale_bytes;
    bsm_status status = check(weight, matrix);
    if (status != BSM_OK) return status;
    if (half != BSM_WEIGHT_GATE && half != BSM_WEIGHT_UP)
        return bsmi_fail(BSM_EINVAL, "half=%d is neither GATE nor UP", (int)half);
    const bsm_matrix *whole = &weight->matrix;
    if (!weight->gate_up_interleaved || whole->rows % 2 != 0)
        return bsmi_fail(BSM_EUNSUPPORTED, "weight %.*s: its rows do not alternate between gates and ups",
                         (int)weight->name_length, weight->name);
    status = sizes(weight, &data_bytes, &scale_bytes);
    if (status != BSM_OK) return status;
    *matrix = *whole;
    matrix->rows = whole->rows / 2;
    if (matrix->rows == 0) return BSM_OK;
    matrix->pitch = 2 * whole->columns;
    matrix->batch_pitch = whole->rows * whole->columns;
    matrix->scale_layout.pitch = 2 * bsm_matrix_scale_columns(whole);
    matrix->scale_batch_pitch = scale_bytes;
    if (half == BSM_WEIGHT_UP) {
        matrix->data = moved(whole->data, data_bytes / whole->rows);
        matrix->scales = moved(whole->scales, scale_bytes / whole->rows);
    }
    return BSM_OK;
}

bsm_status bsm_weight_tile(const bsm_weight *weight, int64_t batch, int64_t tile_row, int64_t tile_column,
                           bsm_matrix *matrix)
{
    int64_t data_bytes, scale_bytes;
    bsm_status status = check(weight, matrix);
    if (status == BSM_OK) status = sizes(weight, &data_bytes, &scale_bytes);
    if (status != BSM_OK) return status;
    const bsm_matrix *whole = &weight->matrix;
    const bool tiled = weight->tile_rows > 0;
    const int64_t rows = tiled ? weight->tile_rows : whole->rows,
                  columns = tiled ? weight->tile_columns : whole->columns;
    const int64_t across = columns > 0 ? bsmi_ceil_div(whole->columns, columns) : 1,
                  down = rows > 0 ? bsmi_ceil_div(whole->rows, rows) : 1;
    if (batch < 0 || batch >= BSMI_MAX(whole->batch, 1) || tile_row < 0 || tile_row >= down || tile_column < 0 ||
        tile_column >= across)
        return bsmi_fail(BSM_EINVAL,
                         "tile (%" PRId64 ", %" PRId64 ") of matrix %" PRId64 ": weight %.*s has %" PRId64 " x %" PRId64
                         " tiles in %" PRId64 " matrices",
                         tile_row, tile_column, batch, (int)weight->name_length, weight->name, down, across,
                         BSMI_MAX(whole->batch, 1));
    *matrix = *whole;
    matrix->batch = 1;
    matrix->rows = BSMI_MIN(rows, whole->rows - tile_row * rows);
    matrix->columns = BSMI_MIN(columns, whole->columns - tile_column * columns);
    matrix->data = moved(whole->data, batch * data_bytes);
    matrix->scales = moved(whole->scales, batch * (whole->packing == BSM_PACKING_GGUF ? data_bytes : scale_bytes));
    if (!tiled) return BSM_OK;
    matrix->tensor_scale =
        (float *)(uintptr_t)&weight
            ->tile_scales[batch * weight->tile_batch_pitch + tile_row * weight->tile_row_pitch + tile_column];
    matrix->tensor_scale_use = BSM_TENSOR_SCALE_MULTIPLIES;
    /* Tiles within a matrix are of one-byte elements; others are whole matrices. */
    if (across * down > 1) {
        matrix->pitch = whole->columns;
        matrix->data = moved(matrix->data, tile_row * rows * whole->columns + tile_column * columns);
    }
    return BSM_OK;
}
