/* One block: scan, scale code, elements, counts. */
#include "block.h"

#include "core/core.h"
#include "presets.h"
#include "recipes.h"
#include "scale_code.h"

enum { MAX_BLOCK = 32 };

double bsmi_widen(float value)
{
    const uint32_t bits = bsmi_float_bits(value), exponent = bits >> 23 & 255, fraction = bits & 0x7fffff;
    if (exponent == 0) return (bits >> 31 != 0 ? -0x1p-149 : 0x1p-149) * (double)fraction;
    return (double)value;
}

bsm_status bsmi_block_quantizer_make(const char *name, bsm_format format, bsm_recipe recipe, bsm_rounding rounding,
                                     uint64_t seed, bsm_nonfinite nonfinite, float tensor_scale,
                                     bsm_tensor_scale_use use, struct bsmi_block_quantizer *quantizer)
{
    const struct bsmi_recipe *row = bsmi_recipe_choose(name, format, recipe);
    if (row == NULL) return BSM_EINVAL;
    const bsm_format_info *info = bsm_format_get((int)format);
    *quantizer = (struct bsmi_block_quantizer){
        .recipe = row, .element = info->element, .scale = info->scale, .rounding = rounding, .seed = seed,
        .nonfinite = nonfinite,
        .tensor_scale = bsmi_widen(tensor_scale), .tensor_scale_divides = use == BSM_TENSOR_SCALE_DIVIDES,
    };
    return BSM_OK;
}

void bsmi_scan_block(const double *x, int count, struct bsmi_block_scan *scan)
{
    const uint64_t infinity = (uint64_t)0x7ff << 52;
    uint64_t largest = 0, largest_finite = bsmi_double_bits(scan->amax);
    for (int i = 0; i < count; i++) {
        const uint64_t magnitude = bsmi_double_bits(x[i]) & ~((uint64_t)1 << 63);
        largest = BSMI_MAX(largest, magnitude);
        largest_finite = BSMI_MAX(largest_finite, magnitude < infinity ? magnitude : 0);
    }
    scan->nonfinite |= largest >= infinity;
    scan->amax = bsmi_double_from_bits(largest_finite);
}

/* Infinity and NaN are no quotients: the encoder has rules for them.
 * x may have 53 bits.  Its quotient is a midpoint only if x is the midpoint times the divisor, which is a double
 * (scale_code.h); the quotient of the next double lies more than half a step away.  A product of such an x and a tensor
 * scale is rounded to odd, and so never onto that double. */
static void divide(const struct bsmi_block_quantizer *quantizer, double scale, const double *x, int count,
                   bool nonfinite, double *quotients)
{
    const struct bsmi_division by = bsmi_division_of(scale, quantizer->tensor_scale, quantizer->tensor_scale_divides);
    if (quantizer->source == BSM_REAL_FP64 && quantizer->tensor_scale_divides)
        for (int i = 0; i < count; i++) quotients[i] = bsmi_odd_product(x[i], by.factor) / by.divisor;
    else
        for (int i = 0; i < count; i++) quotients[i] = x[i] * by.factor / by.divisor;
    for (int i = 0; nonfinite && i < count; i++)
        if (!isfinite(x[i])) quotients[i] = x[i];
}

static void encode(const struct bsmi_block_quantizer *quantizer, const double *quotients, int count, uint64_t index,
                   uint8_t *codes)
{
    if (quantizer->rounding != BSM_ROUND_STOCHASTIC) {
        bsmi_element_encode_nearest(quantizer->element, quotients, count, codes);
        return;
    }
    for (int i = 0; i < count; i++)
        codes[i] = (uint8_t)bsm_element_encode(quantizer->element, quotients[i], BSM_ROUND_STOCHASTIC, true,
                                               bsm_random_bits(quantizer->seed, index + (uint64_t)i));
}

static void count_elements(const struct bsmi_block_quantizer *quantizer, double scale, const double *x, int count,
                           const double *quotients, const uint8_t *codes, struct bsmi_block_stats *stats)
{
    const double max = bsm_element_get((int)quantizer->element)->max_value;
    bool nonzero = false, nonzero_back = false;
    for (int i = 0; i < count; i++) {
        const double element = (double)bsm_element_decode(quantizer->element, codes[i]);
        const double back = bsmi_scaled_value(element, scale, quantizer->tensor_scale, quantizer->tensor_scale_divides);
        nonzero |= x[i] != 0;
        nonzero_back |= back != 0;
        bsmi_count_element(stats, x[i], back, fabs(quotients[i]) > max);
    }
    stats->flushed_blocks += nonzero && !nonzero_back;
}

/* Presets compute with floats, and never see an fp64 source. */
static uint8_t preset_block(const struct bsmi_block_quantizer *quantizer, const struct bsmi_block_view *block,
                            double *quotients, uint8_t *codes)
{
    const struct bsmi_preset_setting setting = { quantizer->element, quantizer->source,
                                                 (float)quantizer->tensor_scale };
    float x[MAX_BLOCK];
    for (int i = 0; i < block->count; i++) x[i] = (float)block->x[i];
    return bsmi_preset_block(quantizer->preset, &setting, quantizer->scale, (float)block->amax, x, block->count,
                             quotients, codes);
}

uint8_t bsmi_quantize_block(const struct bsmi_block_quantizer *quantizer, const float *x, int count, uint64_t index,
                            uint8_t *codes, struct bsmi_block_stats *stats)
{
    struct bsmi_block_scan scan = { 0, false };
    double wide[MAX_BLOCK];
    for (int i = 0; i < count; i++) wide[i] = (double)x[i];
    bsmi_scan_block(wide, count, &scan);
    return bsmi_quantize_scanned_block(quantizer, wide, count, &scan, index, codes, stats);
}

uint8_t bsmi_quantize_scanned_block(const struct bsmi_block_quantizer *quantizer, const double *x, int count,
                                    const struct bsmi_block_scan *scan, uint64_t index, uint8_t *codes,
                                    struct bsmi_block_stats *stats)
{
    const struct bsmi_block_view block = { x, count, bsmi_clamped_wide(quantizer->clamp, scan->amax) };
    const bool nan_block = scan->nonfinite && quantizer->nonfinite == BSM_NONFINITE_PROPAGATE;
    uint8_t scale_code = 0;
    double quotients[MAX_BLOCK];
    if (nan_block) scale_code = quantizer->scale == BSM_E8M0 ? 0xff : 0x7f;
    else if (quantizer->preset != NULL)
        scale_code = preset_block(quantizer, &block, quotients, codes);
    else if (block.amax > 0) scale_code = quantizer->recipe->scale_code(quantizer, &block);
    scale_code = BSMI_MAX(scale_code, quantizer->smallest_scale);

    const double scale = (double)bsm_scale_decode(quantizer->scale, scale_code);
    if (nan_block) {
        memset(codes, 0, (size_t)count);
    } else if (quantizer->preset == NULL) {
        divide(quantizer, scale, x, count, scan->nonfinite, quotients);
        encode(quantizer, quotients, count, index, codes);
    }
    if (stats != NULL) {
        stats->elements += count;
        stats->blocks++;
        stats->scale_histogram[scale_code]++;
        stats->amax = BSMI_MAX(stats->amax, scan->amax);
        stats->nan_blocks += nan_block;
        if (!nan_block) count_elements(quantizer, scale, x, count, quotients, codes, stats);
    }
    return scale_code;
}
