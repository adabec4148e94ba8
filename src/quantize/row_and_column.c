/* bsm_quantize_both: a matrix and its transpose, from one pass over the numbers. */
#include "blockscale/quantize.h"

#include "core/core.h"
#include "job.h"
#include "matrix/regions.h"
#include "matrix/rows.h"
#include "request.h"

/* A unit is one tile.  Its rows are whole blocks of the transpose, GGUF's of 64 too, so no two units write one byte. */
enum { TILE_ROWS = 64, TILE_COLUMNS = 128 };

struct both {
    struct bsmi_quantize_job rows, columns;
    int64_t down, across, units, units_per_task;
};

static void quantize_tile(const struct both *both, int64_t unit)
{
    const struct bsmi_reals *source = &both->rows.source;
    const int64_t batch = unit / both->across / both->down;
    const int64_t row = unit / both->across % both->down * TILE_ROWS, column = unit % both->across * TILE_COLUMNS;
    const int64_t height = BSMI_MIN(source->rows - row, TILE_ROWS),
                  width = BSMI_MIN(source->columns - column, TILE_COLUMNS);
    double x[TILE_ROWS][TILE_COLUMNS], across[TILE_ROWS];
    for (int64_t r = 0; r < height; r++) {
        const struct bsmi_piece piece = { batch, row + r, column, width };
        bsmi_reals_row_wide(source, batch, row + r, column, width, x[r]);
        bsmi_quantize_piece(&both->rows, &piece, x[r], NULL, NULL);
    }
    for (int64_t c = 0; c < width; c++) {
        const struct bsmi_piece piece = { batch, column + c, row, height };
        for (int64_t r = 0; r < height; r++) across[r] = x[r][c];
        bsmi_quantize_piece(&both->columns, &piece, across, NULL, NULL);
    }
}

static void tiles_task(void *argument, int64_t task, int worker)
{
    const struct both *both = argument;
    (void)worker;
    for (int64_t unit = task * both->units_per_task; unit < BSMI_MIN((task + 1) * both->units_per_task, both->units);
         unit++)
        quantize_tile(both, unit);
}

static bsm_status check_both(const struct both *both)
{
    const bool computed = both->rows.options.tensor_scale == BSM_TENSOR_SCALE_COMPUTED;
    struct bsmi_regions written = { .count = 0 }, read = { .count = 0 };
    if (both->rows.options.block_rows > 1)
        return bsmi_fail(
            BSM_EUNSUPPORTED,
            "options->block_rows=%lld: squares give the transpose the same values; call bsm_quantize twice",
            (long long)both->rows.options.block_rows);
    bsmi_regions_add_matrix(&written, "rows->data", "rows->scales", &both->rows.destination);
    bsmi_regions_add_matrix(&written, "columns->data", "columns->scales", &both->columns.destination);
    bsmi_regions_add_bytes(computed ? &written : &read, "rows->tensor_scale", both->rows.destination.tensor_scale,
                           (int64_t)sizeof(float));
    bsmi_regions_add_bytes(computed ? &written : &read, "columns->tensor_scale", both->columns.destination.tensor_scale,
                           (int64_t)sizeof(float));
    bsmi_regions_add_reals(&read, "source->data", &both->rows.source);
    return bsmi_regions_check(&written, &read);
}

/* The transpose has the same numbers: a scale computed from them serves both destinations if they are of one format and
 * use it alike. */
static bool shares_tensor_scale(const struct both *both)
{
    const struct bsmi_matrix *rows = &both->rows.destination, *columns = &both->columns.destination;
    return both->rows.options.tensor_scale == BSM_TENSOR_SCALE_COMPUTED && rows->format == columns->format
        && rows->tensor_scale_use == columns->tensor_scale_use;
}

/* Tensor scales first: nothing is written before everything is known to be right. */
static bsm_status prepare_both(const bsm_context *context, struct both *both)
{
    float scales[2] = { 1, 1 };
    struct bsmi_quantize_job *const jobs[2] = { &both->rows, &both->columns };
    bsm_status status = bsmi_quantize_tensor_scale(context, jobs[0], &scales[0]);
    if (shares_tensor_scale(both)) scales[1] = scales[0];
    else if (status == BSM_OK) status = bsmi_quantize_tensor_scale(context, jobs[1], &scales[1]);
    for (int i = 0; i < 2 && status == BSM_OK; i++) status = bsmi_quantize_prepare(jobs[i], scales[i]);
    for (int i = 0; i < 2 && status == BSM_OK; i++)
        if (jobs[i]->options.tensor_scale == BSM_TENSOR_SCALE_COMPUTED) *jobs[i]->destination.tensor_scale = scales[i];
    return status;
}

static bsm_status both_on_device(bsm_context *context, struct both *both)
{
    struct bsmi_quantize_request rows, columns;
    bsm_status status = bsmi_quantize_request_make(&both->rows, &rows);
    if (status == BSM_OK) status = bsmi_quantize_request_make(&both->columns, &columns);
    return status == BSM_OK ? context->device->calls->quantize_both(context, &rows, &columns) : status;
}

bsm_status bsm_quantize_both(bsm_context *context, const bsm_real_matrix *source, const bsm_quantize_options *options,
                             const bsm_matrix *rows, const bsm_matrix *columns)
{
    struct both both = { .units = 0 };
    bsm_real_matrix transposed = { .struct_size = sizeof transposed };
    bsm_status status = bsmi_quantize_check(context, source, options, rows, &both.rows);
    if (status == BSM_OK) status = bsmi_read_struct("source", source, &transposed, sizeof transposed);
    if (status != BSM_OK) return status;
    transposed.rows = source->columns, transposed.columns = source->rows;
    transposed.row_stride = source->column_stride, transposed.column_stride = source->row_stride;
    status = bsmi_quantize_check(context, &transposed, options, columns, &both.columns);
    if (status == BSM_OK) status = check_both(&both);
    if (status == BSM_OK && context->device != NULL) return both_on_device(context, &both);
    if (status == BSM_OK) status = prepare_both(context, &both);
    if (status != BSM_OK) return status;

    both.down = bsmi_ceil_div(both.rows.source.rows, TILE_ROWS);
    both.across = bsmi_ceil_div(both.rows.source.columns, TILE_COLUMNS);
    both.units = both.rows.source.batch * both.down * both.across;
    both.units_per_task = BSMI_MAX(bsmi_ceil_div(both.units, BSMI_WALK_TASKS), 1);
    bsmi_parallel_for(context->threads, bsmi_ceil_div(both.units, both.units_per_task), tiles_task, &both);
    bsmi_matrix_clear_scale_padding(&both.rows.destination);
    bsmi_matrix_clear_scale_padding(&both.columns.destination);
    return BSM_OK;
}
