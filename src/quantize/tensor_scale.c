/* The largest finite magnitude of a matrix, and the tensor scale that follows from it. */
#include "tensor_scale.h"

#include "core/core.h"
#include "quantize/block/presets.h"
#include "quantize/kernels/table.h"
#include "quantize/walk/walk.h"

#include <float.h>

struct amax_job {
    const struct bsmi_reals *source;
    double largest;                       /* that the format holds */
    bool divides;
    struct bsmi_clamp clamp;
    const struct bsmi_preset_rule *preset;               /* NULL: none */
    struct bsmi_walk walk;
    int64_t stretch;                      /* columns that amax_of takes at a time */
    /* The largest finite magnitude of a row's columns [k, k + count), as the bits of a double. */
    uint64_t (*amax_of)(const struct bsmi_reals *source, int64_t batch, int64_t row, int64_t k, int64_t count);
    uint32_t (*largest_finite)(bsm_real type, const void *numbers, int64_t count);       /* a kernel's, or NULL */
    uint64_t amax_bits[BSMI_WALK_TASKS];  /* of doubles */
    float tensor_scale;
};

static uint64_t amax_of_fp32(const struct bsmi_reals *source, int64_t batch, int64_t row, int64_t k, int64_t count)
{
    float x[BSMI_PIECE];
    uint32_t largest = 0;
    bsmi_reals_row(source, batch, row, k, count, x);
    for (int64_t i = 0; i < count; i++) {
        const uint32_t magnitude = bsmi_float_bits(x[i]) & 0x7fffffff;
        largest = BSMI_MAX(largest, magnitude < 0x7f800000 ? magnitude : 0);
    }
    return bsmi_double_bits((double)bsmi_float_from_bits(largest));
}

static uint64_t amax_of_fp64(const struct bsmi_reals *source, int64_t batch, int64_t row, int64_t k, int64_t count)
{
    double x[BSMI_PIECE];
    uint64_t largest = 0;
    bsmi_reals_row_wide(source, batch, row, k, count, x);
    for (int64_t i = 0; i < count; i++) {
        const uint64_t magnitude = bsmi_double_bits(x[i]) & ~((uint64_t)1 << 63);
        largest = BSMI_MAX(largest, magnitude < (uint64_t)0x7ff << 52 ? magnitude : 0);
    }
    return largest;
}

/* fp16 and bf16, whose bits grow as their magnitudes do, where they follow one another. */
static uint64_t amax_of_16_bits(const struct bsmi_reals *source, int64_t batch, int64_t row, int64_t k, int64_t count)
{
    const uint16_t *x = (const uint16_t *)(const void *)source->data + bsmi_real_index(source, batch, row, k);
    const bool bf16 = source->type == BSM_REAL_BF16;
    const int16_t infinity = bf16 ? 0x7f80 : 0x7c00;
    int16_t largest = 0;
    for (int64_t i = 0; i < count; i++) {
        const int16_t magnitude = (int16_t)(x[i] & 0x7fff), finite = magnitude < infinity ? magnitude : 0;
        largest = BSMI_MAX(largest, finite);
    }
    return bsmi_double_bits(
        bsmi_widen(bf16 ? bsmi_bf16_to_float((uint16_t)largest) : bsmi_fp16_to_float((uint16_t)largest)));
}

/* By a kernel, where they follow one another. */
static uint64_t amax_by_kernel(const struct amax_job *job, int64_t batch, int64_t row, int64_t k, int64_t count)
{
    const struct bsmi_reals *x = job->source;
    const int64_t first = bsmi_real_index(x, batch, row, k) * (int64_t)bsm_real_bytes((int)x->type);
    const uint32_t bits = job->largest_finite(x->type, x->data + first, count);
    const uint16_t half = (uint16_t)bits;
    return bsmi_double_bits(bsmi_widen(x->type == BSM_REAL_FP32   ? bsmi_float_from_bits(bits)
                                       : x->type == BSM_REAL_BF16 ? bsmi_bf16_to_float(half)
                                                                  : bsmi_fp16_to_float(half)));
}

/* Rows that are converted advance together, stretch by stretch, for the sake of transposed sources; numbers of 16 bits
 * that follow one another are read where they lie, a row's whole span at a time. */
static void choose_amax(uint32_t features, struct amax_job *job)
{
    const struct bsmi_reals *source = job->source;
    const bool narrow = source->column_stride == 1 && (source->type == BSM_REAL_BF16 || source->type == BSM_REAL_FP16);
    const bool in_order = source->column_stride == 1 && source->type != BSM_REAL_FP64;
    if (in_order) job->largest_finite = bsmi_quantize_kernel_of(features)->largest_finite;
    job->stretch = narrow || job->largest_finite != NULL ? BSMI_WALK_SPAN : BSMI_PIECE;
    job->amax_of = narrow ? amax_of_16_bits : source->type == BSM_REAL_FP64 ? amax_of_fp64 : amax_of_fp32;
}

static void amax_task(void *argument, int64_t task, int worker)
{
    struct amax_job *job = argument;
    const struct bsmi_walk_place place = bsmi_walk_start(&job->walk, task);
    uint64_t amax = 0;
    (void)worker;
    for (int64_t unit = place.unit; unit < place.end_unit; unit++) {
        const struct bsmi_walk_area area = bsmi_walk_area(&job->walk, unit);
        for (int64_t k = 0; k < area.columns; k += job->stretch)
            for (int64_t row = area.row; row < area.row + area.rows; row++) {
                const int64_t count = BSMI_MIN(job->stretch, area.columns - k);
                const uint64_t here = job->largest_finite != NULL
                    ? amax_by_kernel(job, area.batch, row, area.k + k, count)
                    : job->amax_of(job->source, area.batch, row, area.k + k, count);
                amax = BSMI_MAX(amax, here);
            }
    }
    job->amax_bits[task] = amax;
}

/* A quotient of two 24-bit numbers, rounded to 53 bits, never lies on a midpoint of 24 bits unless the exact one does
 * (53 >= 2 * 24 + 2).  With 53 bits it may, and its remainder decides; beyond 2^+-200 the quotient is cut anyhow. */
static double quotient_of(double numerator, double denominator)
{
    const double quotient = numerator / denominator;
    if (!(quotient > 0x1p-200 && quotient < 0x1p200)) return quotient;
    return bsmi_round_to_odd(quotient, fma(-quotient, denominator, numerator));
}

/* amax / largest or largest / amax, rounded to fp32 once; results are kept out of the subnormals. */
static void scale_task(void *argument, int64_t index, int worker)
{
    struct amax_job *job = argument;
    (void)index, (void)worker;
    uint64_t bits = 0;
    for (int64_t i = 0; i < job->walk.tasks; i++) bits = BSMI_MAX(bits, job->amax_bits[i]);
    const double amax = bsmi_clamped_wide(job->clamp, bsmi_double_from_bits(bits));
    if (job->preset != NULL && job->preset->tensor_scale != NULL) {
        job->tensor_scale = job->preset->tensor_scale(job->source->type, (float)amax);
        return;
    }
    const double exact = amax == 0      ? 1
                         : job->divides ? quotient_of(job->largest, amax)
                                        : quotient_of(amax, job->largest);
    job->tensor_scale = (float)BSMI_MAX(0x1p-126, BSMI_MIN(FLT_MAX, exact));
}

double bsmi_tensor_scale_largest(const struct bsmi_matrix *m, bsm_recipe recipe)
{
    const double element = bsm_element_get((int)m->element)->max_value;
    if (m->scale == BSM_UE4M3)
        return element * (recipe == BSM_RECIPE_FOUR_OVER_SIX ? 256 : bsm_element_get(BSM_E4M3)->max_value);
    if (m->scale == BSM_UNSCALED && m->bits <= 8) return element;
    return 0;
}

bsm_status bsmi_tensor_scale_check(const struct bsmi_matrix *destination)
{
    const char *format = bsm_format_get((int)destination->format)->name;
    if (bsmi_tensor_scale_largest(destination, BSM_RECIPE_DEFAULT) == 0)
        return bsmi_fail(BSM_EINVAL, "options->tensor_scale=COMPUTED: %s has the range of fp32 or 16-bit numbers and "
                                     "takes a GIVEN tensor scale alone; nvfp4 and unscaled fp8, fp6 and fp4 compute "
                                     "one", format);
    if (destination->tensor_scale == NULL)
        return bsmi_fail(BSM_EINVAL,
                         "destination->tensor_scale is NULL: options->tensor_scale=COMPUTED writes the scale there");
    return BSM_OK;
}

float bsmi_tensor_scale_compute(const bsm_context *context, const struct bsmi_reals *source,
                                const struct bsmi_matrix *destination, const bsm_quantize_options *options)
{
    struct amax_job job = { .source = source, .clamp = { options->clamp_low, options->clamp_high },
                            .largest = bsmi_tensor_scale_largest(destination, options->recipe),
                            .divides = destination->tensor_scale_use == BSM_TENSOR_SCALE_DIVIDES };
    if (options->preset != BSM_PRESET_NONE)
        job.preset = bsmi_preset_choose(options->preset, destination->format, true, destination->tensor_scale_use);
    job.walk = bsmi_walk_make((struct bsmi_shape){ source->rows, source->columns, source->batch });
    choose_amax(context->cpu_features, &job);
    bsmi_parallel_for(context->threads, job.walk.tasks, amax_task, &job);
    bsmi_parallel_for(1, 1, scale_task, &job);
    return job.tensor_scale;
}
