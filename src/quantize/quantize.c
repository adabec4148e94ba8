/* bsm_quantize: checks everything, then goes through the rows. */
#include "blockscale/quantize.h"

#include "block.h"
#include "convert.h"
#include "core/core.h"
#include "matrix/regions.h"
#include "presets.h"
#include "request.h"
#include "stats.h"
#include "tensor_scale.h"
#include "walk.h"

struct quantize_job {
    struct bsmi_reals source;
    struct bsmi_matrix destination;
    bsm_quantize_options options;
    struct bsmi_block_quantizer quantizer;                /* block formats */
    struct bsmi_converter converter;                      /* unscaled formats */
    struct bsmi_walk walk;
    bsm_quantize_stats *stats;
    struct bsmi_stats_sum sum;
};

/* Checks -------------------------------------------------------------------------------------------------------------- */

static bsm_status check_choice(const char *field, int value, int count)
{
    if (value < 0 || value >= count)
        return bsmi_fail(BSM_EINVAL, "options->%s=%d: choices are 0 to %d", field, value, count - 1);
    return BSM_OK;
}

/* A preset is a whole recipe: what would change its bits is refused. */
static bsm_status check_preset(const bsm_quantize_options *o, const struct bsmi_matrix *destination)
{
    const char *name = bsm_preset_name((int)o->preset);
    if (o->recipe != BSM_RECIPE_DEFAULT)
        return bsmi_fail(BSM_EINVAL, "options->preset=%s: has a recipe of its own; leave options->recipe at default, not %s", name,
                         bsm_recipe_name((int)o->recipe));
    if (o->rounding != BSM_ROUND_NEAREST_EVEN)
        return bsmi_fail(BSM_EINVAL, "options->preset=%s: rounds as its project does; leave options->rounding at nearest", name);
    if (o->nonfinite != BSM_NONFINITE_PROPAGATE)
        return bsmi_fail(BSM_EINVAL, "options->preset=%s: is for finite numbers; leave options->nonfinite at propagate", name);
    const bool scaled = destination->tensor_scale != NULL;
    return bsmi_preset_choose(o->preset, destination->format, scaled, destination->tensor_scale_use) != NULL ? BSM_OK : BSM_EINVAL;
}

static bsm_status read_options(const bsm_quantize_options *given, const struct bsmi_matrix *destination,
                               bsm_quantize_options *options)
{
    *options = (bsm_quantize_options){ .struct_size = sizeof *options };
    if (given == NULL) return BSM_OK;
    bsm_status status = bsmi_read_struct("options", given, options, sizeof *options);
    if (status == BSM_OK) status = check_choice("recipe", (int)options->recipe, BSM_RECIPE_COUNT);
    if (status == BSM_OK) status = check_choice("rounding", (int)options->rounding, BSM_ROUND_STOCHASTIC + 1);
    if (status == BSM_OK) status = check_choice("nonfinite", (int)options->nonfinite, BSM_NONFINITE_SATURATE + 1);
    if (status == BSM_OK) status = check_choice("tensor_scale", (int)options->tensor_scale, BSM_TENSOR_SCALE_COMPUTED + 1);
    if (status == BSM_OK) status = check_choice("preset", (int)options->preset, BSM_PRESET_COUNT);
    if (status == BSM_OK && options->preset != BSM_PRESET_NONE) status = check_preset(options, destination);
    if (status != BSM_OK) return status;
    const char *format = bsm_format_get((int)destination->format)->name;
    const bool unscaled = destination->scale == BSM_UNSCALED;
    if (unscaled && options->recipe != BSM_RECIPE_DEFAULT)
        return bsmi_fail(BSM_EINVAL, "options->recipe=%s: %s has no block scales; leave the recipe at default",
                         bsm_recipe_name((int)options->recipe), format);
    if (options->block_rows != 0 && options->block_rows != 1 && options->block_rows != destination->block)
        return bsmi_fail(BSM_EINVAL, "options->block_rows=%lld: %s takes 0 or 1 (a scale for one row)%s",
                         (long long)options->block_rows, format, destination->block == 16 ? ", or 16" : destination->block == 32 ? ", or 32" : "");
    if (options->block_rows > 1 && options->recipe == BSM_RECIPE_FOUR_OVER_SIX)
        return bsmi_fail(BSM_EINVAL, "options->block_rows=%lld: four_over_six chooses a scale by the error of one row",
                         (long long)options->block_rows);
    if (options->no_saturate && !(unscaled && destination->bits == 8))
        return bsmi_fail(BSM_EINVAL, "options->no_saturate is for e4m3 and e5m2 without scales, not for %s: block formats always "
                                     "saturate, and 16- and 32-bit floats never do", format);
    return BSM_OK;
}

static bsm_status check_source(const struct bsmi_reals *source)
{
    if (source->type == BSM_REAL_FP64)
        return bsmi_fail(BSM_EUNSUPPORTED, "source->type=fp64: quantizing reads fp32, fp16 and bf16; round to fp32 first");
    return BSM_OK;
}

static bsm_status check_overlap(const struct quantize_job *job, bsm_quantize_stats *stats, bool computed)
{
    struct bsmi_regions written = { .count = 0 }, read = { .count = 0 };
    bsmi_regions_add_matrix(&written, "destination->data", "destination->scales", &job->destination);
    bsmi_regions_add_bytes(computed ? &written : &read, "destination->tensor_scale", job->destination.tensor_scale, (int64_t)sizeof(float));
    if (stats != NULL) bsmi_regions_add_bytes(&written, "stats", stats, (int64_t)sizeof *stats);
    bsmi_regions_add_reals(&read, "source->data", &job->source);
    return bsmi_regions_check(&written, &read);
}

static bsm_status check(const bsm_context *context, const bsm_real_matrix *source, const bsm_quantize_options *options,
                        const bsm_matrix *destination, bsm_quantize_stats *stats, struct quantize_job *job)
{
    if (context == NULL) return bsmi_fail(BSM_EINVAL, "context is NULL");
    bsm_status status = bsmi_reals_resolve("source", source, &job->source);
    if (status == BSM_OK) status = check_source(&job->source);
    if (status == BSM_OK) status = bsmi_matrix_resolve("destination", destination, &job->destination);
    if (status == BSM_OK) status = bsmi_matrix_check_written("destination", &job->destination);
    if (status == BSM_OK)
        status = bsmi_shapes_equal((struct bsmi_shape){ job->source.rows, job->source.columns, job->source.batch },
                                   (struct bsmi_shape){ job->destination.rows, job->destination.columns, job->destination.batch });
    if (status == BSM_OK) status = read_options(options, &job->destination, &job->options);
    if (status == BSM_OK && stats != NULL) status = bsmi_stats_check(stats);
    const bool computed = job->options.tensor_scale == BSM_TENSOR_SCALE_COMPUTED;
    if (status == BSM_OK && computed) status = bsmi_tensor_scale_check(&job->destination);
    return status == BSM_OK ? check_overlap(job, stats, computed) : status;
}

/* Work ---------------------------------------------------------------------------------------------------------------- */

/* scans: of the squares that the piece's blocks belong to; NULL: blocks stand alone. */
static void quantize_piece(const struct quantize_job *job, const struct bsmi_piece *piece, const struct bsmi_block_scan *scans,
                           struct bsmi_block_stats *stats)
{
    const struct bsmi_matrix *m = &job->destination;
    const uint64_t index = (uint64_t)((piece->batch * m->rows + piece->row) * m->columns + piece->k);
    float x[BSMI_PIECE];
    bsmi_reals_row(&job->source, piece->batch, piece->row, piece->k, piece->count, x);
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

static void quantize_task(void *argument, int64_t task, int worker)
{
    struct quantize_job *job = argument;
    struct bsmi_walk_place place = bsmi_walk_start(&job->walk, task);
    struct bsmi_piece piece;
    struct bsmi_block_stats stats = { 0 };
    (void)worker;
    while (bsmi_walk_next(&job->walk, &place, &piece)) quantize_piece(job, &piece, NULL, job->stats != NULL ? &stats : NULL);
    if (job->stats != NULL) bsmi_stats_add(&job->sum, task, &stats);
}

/* Squares ------------------------------------------------------------------------------------------------------------- */

enum { SMALLEST_BLOCK = 16 };

/* The squares of some rows in the columns of a piece: every row is read to scan, and once more to quantize. */
static void quantize_squares(const struct quantize_job *job, struct bsmi_piece piece, int64_t rows, struct bsmi_block_stats *stats)
{
    const struct bsmi_matrix *m = &job->destination;
    struct bsmi_block_scan scans[BSMI_PIECE / SMALLEST_BLOCK] = { { 0, false } };
    const int64_t first = piece.row;
    float x[BSMI_PIECE];
    for (int64_t r = first; r < first + rows; r++) {
        bsmi_reals_row(&job->source, piece.batch, r, piece.k, piece.count, x);
        for (int64_t i = 0; i < piece.count; i += m->block)
            bsmi_scan_block(x + i, (int)BSMI_MIN(piece.count - i, m->block), &scans[i / m->block]);
    }
    for (piece.row = first; piece.row < first + rows; piece.row++) quantize_piece(job, &piece, scans, stats);
}

/* Units are pieces of as many rows as a block is long. */
static struct bsmi_walk square_walk(const struct quantize_job *job)
{
    const struct bsmi_matrix *m = &job->destination;
    struct bsmi_walk walk = { .rows = m->rows, .columns = m->columns };
    walk.row_groups = bsmi_ceil_div(m->rows, m->block);
    walk.spans = bsmi_ceil_div(m->columns, BSMI_PIECE);
    walk.units = m->batch * walk.row_groups * walk.spans;         /* no more than there are elements, which were counted */
    walk.units_per_task = BSMI_MAX(bsmi_ceil_div(walk.units, BSMI_WALK_TASKS), 1);
    walk.tasks = bsmi_ceil_div(walk.units, walk.units_per_task);
    return walk;
}

static void squares_task(void *argument, int64_t task, int worker)
{
    struct quantize_job *job = argument;
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

static void stats_task(void *argument, int64_t index, int worker)
{
    struct quantize_job *job = argument;
    (void)index, (void)worker;
    bsmi_stats_write(&job->sum, job->walk.tasks, job->stats);
}

/* The quantizer of a block format or the converter of an unscaled one. */
static bsm_status prepare(struct quantize_job *job, float tensor_scale)
{
    const bsm_quantize_options *o = &job->options;
    const struct bsmi_matrix *m = &job->destination;
    if (m->scale != BSM_UNSCALED) {
        const bsm_status status = bsmi_block_quantizer_make("options->recipe", m->format, o->recipe, o->rounding, o->seed, o->nonfinite,
                                                            tensor_scale, m->tensor_scale_use, &job->quantizer);
        if (o->preset != BSM_PRESET_NONE)
            job->quantizer.preset = bsmi_preset_choose(o->preset, m->format, m->tensor_scale != NULL, m->tensor_scale_use);
        return status;
    }
    job->converter = (struct bsmi_converter){ m->element, o->rounding, o->seed, m->bits == 8 && !o->no_saturate,
                                              bsmi_widen(tensor_scale), m->tensor_scale_use == BSM_TENSOR_SCALE_DIVIDES };
    return BSM_OK;
}

static bsm_status quantize_on_device(bsm_context *context, struct quantize_job *job)
{
    const bsm_quantize_options *o = &job->options;
    const bsm_status status = prepare(job, 1);                    /* checks the recipe; the tensor scale is the device's to read */
    if (status != BSM_OK) return status;
    if (job->stats != NULL)
        return bsmi_fail(BSM_EUNSUPPORTED, "stats is given, but a GPU does not count: pass NULL, or quantize on a CPU context");
    if (o->block_rows > 1)
        return bsmi_fail(BSM_EUNSUPPORTED, "options->block_rows=%lld: GPUs have scales for one row; quantize on a CPU context",
                         (long long)o->block_rows);
    if (o->preset != BSM_PRESET_NONE)
        return bsmi_fail(BSM_EUNSUPPORTED, "options->preset=%s: GPUs have recipes alone; quantize on a CPU context",
                         bsm_preset_name((int)o->preset));
    if (o->recipe == BSM_RECIPE_FOUR_OVER_SIX)
        return bsmi_fail(BSM_EUNSUPPORTED, "options->recipe=four_over_six: GPUs have the other recipes; quantize on a CPU context");
    const struct bsmi_quantize_request request = {
        job->source, job->destination, o->recipe, o->rounding, o->seed, o->nonfinite, o->no_saturate,
        o->tensor_scale == BSM_TENSOR_SCALE_COMPUTED, bsmi_tensor_scale_largest(&job->destination, o->recipe),
    };
    return context->device->calls->quantize(context, &request);
}

bsm_status bsm_quantize(bsm_context *context, const bsm_real_matrix *source, const bsm_quantize_options *options,
                        const bsm_matrix *destination, bsm_quantize_stats *stats)
{
    struct quantize_job job = { .stats = stats };
    float tensor_scale = 1;
    bsm_status status = check(context, source, options, destination, stats, &job);
    if (status != BSM_OK) return status;
    if (context->device != NULL) return quantize_on_device(context, &job);
    const bool computed = job.options.tensor_scale == BSM_TENSOR_SCALE_COMPUTED;
    if (computed) tensor_scale = bsmi_tensor_scale_compute(context->threads, &job.source, &job.destination, job.options.recipe);
    else status = bsmi_matrix_tensor_scale("destination", &job.destination, &tensor_scale);
    if (status == BSM_OK) status = prepare(&job, tensor_scale);
    if (status != BSM_OK) return status;

    if (computed) *job.destination.tensor_scale = tensor_scale;
    const bool squares = job.options.block_rows > 1;
    if (squares) job.walk = square_walk(&job);
    else job.walk = bsmi_walk_make((struct bsmi_shape){ job.source.rows, job.source.columns, job.source.batch });
    bsmi_parallel_for(context->threads, job.walk.tasks, squares ? squares_task : quantize_task, &job);
    bsmi_matrix_clear_scale_padding(&job.destination);
    if (stats != NULL) bsmi_parallel_for(1, 1, stats_task, &job);
    return BSM_OK;
}
