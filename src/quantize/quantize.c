/* bsm_quantize: checks everything, then goes through the rows. */
#include "blockscale/quantize.h"

#include "core/core.h"
#include "matrix/rows.h"
#include "quantize/kernels/count.h"
#include "job.h"
#include "matrix/regions.h"
#include "request.h"
#include "quantize/kernels/rows.h"
#include "tensor_scale.h"

static bsm_status check_overlap(const struct bsmi_quantize_job *job, bsm_quantize_stats *stats, bool computed)
{
    struct bsmi_regions written = { .count = 0 }, read = { .count = 0 };
    bsmi_regions_add_matrix(&written, "destination->data", "destination->scales", &job->destination);
    bsmi_regions_add_bytes(computed ? &written : &read, "destination->tensor_scale", job->destination.tensor_scale,
                           (int64_t)sizeof(float));
    if (stats != NULL) bsmi_regions_add_bytes(&written, "stats", stats, (int64_t)sizeof *stats);
    bsmi_regions_add_reals(&read, "source->data", &job->source);
    return bsmi_regions_check(&written, &read);
}

/* Work ------------------------------------------------------------------------------------------------------------- */

void bsmi_quantize_piece(const struct bsmi_quantize_job *job, const struct bsmi_piece *piece, const double *x,
                         const struct bsmi_block_scan *scans, struct bsmi_block_stats *stats)
{
    const struct bsmi_matrix *m = &job->destination;
    const uint64_t index = (uint64_t)((piece->batch * m->rows + piece->row) * m->columns + piece->k);
    if (m->scale == BSM_UNSCALED) {
        bsmi_convert_row(&job->converter, m, piece->batch, piece->row, piece->k, x, (int)piece->count, index, stats);
        return;
    }
    uint8_t codes[BSMI_PIECE];
    for (int64_t i = 0; i < piece->count; i += m->block) {
        const int count = (int)BSMI_MIN(piece->count - i, m->block);
        struct bsmi_block_scan scan = { 0, false };
        if (scans != NULL) scan = scans[i / m->block];
        else bsmi_scan_block(x + i, count, &scan);
        *bsmi_scale_pointer(m, piece->batch, piece->row, (piece->k + i) / m->block) =
            bsmi_quantize_scanned_block(&job->quantizer, x + i, count, &scan, index + (uint64_t)i, codes + i, stats);
    }
    bsmi_row_store_codes(m, piece->batch, piece->row, piece->k, piece->count, codes);
}

static void read_and_quantize(const struct bsmi_quantize_job *job, const struct bsmi_piece *piece,
                              const struct bsmi_block_scan *scans, struct bsmi_block_stats *stats)
{
    double x[BSMI_PIECE];
    bsmi_reals_row_wide(&job->source, piece->batch, piece->row, piece->k, piece->count, x);
    bsmi_quantize_piece(job, piece, x, scans, stats);
}

static void quantize_task(void *argument, int64_t task, int worker)
{
    struct bsmi_quantize_job *job = argument;
    struct bsmi_walk_place place = bsmi_walk_start(&job->walk, task);
    struct bsmi_piece piece;
    struct bsmi_block_stats stats = { 0 };
    (void)worker;
    while (bsmi_walk_next(&job->walk, &place, &piece))
        read_and_quantize(job, &piece, NULL, job->stats != NULL ? &stats : NULL);
    if (job->stats != NULL) bsmi_stats_add(&job->sum, task, &stats);
}

/* Squares ---------------------------------------------------------------------------------------------------------- */

enum { SMALLEST_BLOCK = 16 };

/* The squares of some rows in the columns of a piece: every row is read to scan, and once more to quantize. */
static void quantize_squares(const struct bsmi_quantize_job *job, struct bsmi_piece piece, int64_t rows,
                             struct bsmi_block_stats *stats)
{
    const struct bsmi_matrix *m = &job->destination;
    struct bsmi_block_scan scans[BSMI_PIECE / SMALLEST_BLOCK] = { { 0, false } };
    const int64_t first = piece.row;
    double x[BSMI_PIECE];
    for (int64_t r = first; r < first + rows; r++) {
        bsmi_reals_row_wide(&job->source, piece.batch, r, piece.k, piece.count, x);
        for (int64_t i = 0; i < piece.count; i += m->block)
            bsmi_scan_block(x + i, (int)BSMI_MIN(piece.count - i, m->block), &scans[i / m->block]);
    }
    for (piece.row = first; piece.row < first + rows; piece.row++) read_and_quantize(job, &piece, scans, stats);
}

/* Units are pieces of as many rows as a block is long. */
static struct bsmi_walk square_walk(const struct bsmi_quantize_job *job)
{
    const struct bsmi_matrix *m = &job->destination;
    struct bsmi_walk walk = { .rows = m->rows, .columns = m->columns };
    walk.row_groups = bsmi_ceil_div(m->rows, m->block);
    walk.spans = bsmi_ceil_div(m->columns, BSMI_PIECE);
    walk.units = m->batch * walk.row_groups * walk.spans;         /* no more than there are elements, which were
                                                                     counted */
    walk.units_per_task = BSMI_MAX(bsmi_ceil_div(walk.units, BSMI_WALK_TASKS), 1);
    walk.tasks = bsmi_ceil_div(walk.units, walk.units_per_task);
    return walk;
}

static void squares_task(void *argument, int64_t task, int worker)
{
    struct bsmi_quantize_job *job = argument;
    const struct bsmi_walk *walk = &job->walk;
    const struct bsmi_walk_place place = bsmi_walk_start(walk, task);
    const int64_t block = job->destination.block;
    struct bsmi_block_stats stats = { 0 };
    (void)worker;
    for (int64_t unit = place.unit; unit < place.end_unit; unit++) {
        const int64_t group = unit / walk->spans % walk->row_groups, k = unit % walk->spans * BSMI_PIECE;
        const struct bsmi_piece piece = { unit / walk->spans / walk->row_groups, group * block, k,
                                          BSMI_MIN(walk->columns - k, BSMI_PIECE) };
        quantize_squares(job, piece, BSMI_MIN(walk->rows - piece.row, block), job->stats != NULL ? &stats : NULL);
    }
    if (job->stats != NULL) bsmi_stats_add(&job->sum, task, &stats);
}

/* Through a kernel ------------------------------------------------------------------------------------------------- */

struct rows_job { const struct bsmi_walk *walk; struct bsmi_block_rows rows; struct bsmi_stats_sum *sum; };

static void rows_task(void *argument, int64_t task, int worker)
{
    const struct rows_job *job = argument;
    const struct bsmi_walk_place place = bsmi_walk_start(job->walk, task);
    struct bsmi_block_stats stats = { 0 };
    (void)worker;
    for (int64_t unit = place.unit; unit < place.end_unit; unit++) {
        const struct bsmi_walk_area area = bsmi_walk_area(job->walk, unit);
        bsmi_quantize_area(&job->rows, &area);
        if (job->sum != NULL) bsmi_count_unit(&job->rows, job->walk, unit, &stats);    /* while it is in the cache */
    }
    if (job->sum != NULL) bsmi_stats_add(job->sum, task, &stats);
}

/* Whether a kernel took the call: kernels quantize blocks of a row of floats. */
static bool quantize_by_kernel(const bsm_context *context, struct bsmi_quantize_job *job)
{
    if (job->destination.scale == BSM_UNSCALED || job->options.block_rows > 1) return false;
    if (job->source.type == BSM_REAL_FP64) return false;
    struct rows_job work = {
        &job->walk,
        { &job->source, &job->destination, &job->quantizer, NULL, { .block = 0 }, { { 0 }, { 0 } } },
        job->stats != NULL ? &job->sum : NULL
    };
    if (job->stats != NULL) bsmi_count_prepare(&work.rows);
    work.rows.kernel =
        bsmi_quantize_kernel_choose(context->cpu_features, &job->quantizer, &job->destination, &work.rows.coding);
    if (work.rows.kernel->quantize == NULL) return false;
    bsmi_parallel_for(context->threads, job->walk.tasks, rows_task, &work);
    return true;
}

static void stats_task(void *argument, int64_t index, int worker)
{
    struct bsmi_quantize_job *job = argument;
    (void)index, (void)worker;
    bsmi_stats_write(&job->sum, job->walk.tasks, job->stats);
}

bsm_status bsmi_quantize_request_make(struct bsmi_quantize_job *job, struct bsmi_quantize_request *request)
{
    const bsm_quantize_options *o = &job->options;
    const bsm_status status = bsmi_quantize_prepare(job, 1);                    /* checks the recipe; the tensor scale
                                                                                   is the
                                                                                   device's to read */
    if (status != BSM_OK) return status;
    if (job->source.type == BSM_REAL_FP64)
        return bsmi_fail(BSM_EUNSUPPORTED,
                         "source->type=fp64: GPUs quantize fp32, fp16 and bf16; round to fp32 first, or "
                         "quantize on a CPU context");
    if (job->destination.scale == BSM_UNSCALED && job->destination.bits < 8)
        return bsmi_fail(BSM_EUNSUPPORTED,
                         "destination->format=%s: GPUs quantize to codes of 4 and 6 bits with block scales alone; "
                         "quantize on a CPU context", bsm_format_get((int)job->destination.format)->name);
    if (o->recipe == BSM_RECIPE_MSE)
        return bsmi_fail(BSM_EUNSUPPORTED,
                         "options->recipe=mse: GPUs have every other recipe; quantize on a CPU context");
    if (job->stats != NULL)
        return bsmi_fail(BSM_EUNSUPPORTED,
                         "stats is given, but a GPU does not count: pass NULL, or quantize on a CPU context");
    if (o->preset != BSM_PRESET_NONE)
        return bsmi_fail(BSM_EUNSUPPORTED, "options->preset=%s: GPUs have recipes alone; quantize on a CPU context",
                         bsm_preset_name((int)o->preset));
    *request = (struct bsmi_quantize_request){
        job->source, job->destination, o->recipe, o->rounding, o->seed, o->nonfinite, o->no_saturate,
        o->tensor_scale == BSM_TENSOR_SCALE_COMPUTED, bsmi_tensor_scale_largest(&job->destination, o->recipe),
        { o->clamp_low, o->clamp_high }, o->smallest_scale, o->block_rows > 1 ? (int)o->block_rows : 1,
    };
    return BSM_OK;
}

static bsm_status quantize_on_device(bsm_context *context, struct bsmi_quantize_job *job)
{
    struct bsmi_quantize_request request;
    const bsm_status status = bsmi_quantize_request_make(job, &request);
    return status == BSM_OK ? context->device->calls->quantize(context, &request) : status;
}

bsm_status bsm_quantize(bsm_context *context, const bsm_real_matrix *source, const bsm_quantize_options *options,
                        const bsm_matrix *destination, bsm_quantize_stats *stats)
{
    struct bsmi_quantize_job job = { .stats = stats };
    float tensor_scale = 1;
    bsm_status status = bsmi_quantize_check(context, source, options, destination, &job);
    const bool computed = job.options.tensor_scale == BSM_TENSOR_SCALE_COMPUTED;
    if (status == BSM_OK && stats != NULL) status = bsmi_stats_check(stats);
    if (status == BSM_OK) status = check_overlap(&job, stats, computed);
    if (status != BSM_OK) return status;
    if (context->device != NULL) return quantize_on_device(context, &job);
    status = bsmi_quantize_tensor_scale(context, &job, &tensor_scale);
    if (status == BSM_OK) status = bsmi_quantize_prepare(&job, tensor_scale);
    if (status != BSM_OK) return status;

    if (computed) *job.destination.tensor_scale = tensor_scale;
    const bool squares = job.options.block_rows > 1;
    if (squares) job.walk = square_walk(&job);
    else job.walk = bsmi_walk_make((struct bsmi_shape){ job.source.rows, job.source.columns, job.source.batch });
    if (!quantize_by_kernel(context, &job))
        bsmi_parallel_for(context->threads, job.walk.tasks, squares ? squares_task : quantize_task, &job);
    bsmi_matrix_clear_scale_padding(&job.destination);
    if (stats != NULL) bsmi_parallel_for(1, 1, stats_task, &job);
    return BSM_OK;
}
