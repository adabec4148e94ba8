/* Unscaled destinations: one division by the tensor scale, one rounding. */
#include "convert.h"

#include "stats.h"

/* x / t or x * d, so that value = element * t or element / d.  The quotient is rounded to a double first, which does no
 * harm: it has 24 bits over 24, a midpoint of an element of at most 24 bits has 25, so unless it is that midpoint it
 * differs from it by 2^-49 relatively.  The product has 48 bits and is exact. */
static double quotient_of(const struct bsmi_converter *converter, float x)
{
    return converter->tensor_scale_divides ? (double)x * converter->tensor_scale : (double)x / converter->tensor_scale;
}

static void store_code(const struct bsmi_matrix *m, unsigned char *row, int64_t k, uint32_t code)
{
    switch (m->bits) {
    case 8: row[k] = (unsigned char)code; break;
    case 16: ((uint16_t *)(void *)row)[k] = (uint16_t)code; break;
    default: ((uint32_t *)(void *)row)[k] = code; break;
    }
}

void bsmi_convert_row(const struct bsmi_converter *converter, const struct bsmi_matrix *m, int64_t batch, int64_t row, int64_t k,
                      const float *x, int64_t count, uint64_t index, struct bsmi_block_stats *stats)
{
    const bsm_element_info *info = bsm_element_get((int)converter->element);
    const bool stochastic = converter->rounding == BSM_ROUND_STOCHASTIC;
    unsigned char *bytes = bsmi_row(m, batch, row);
    for (int64_t i = 0; i < count; i++) {
        const double quotient = quotient_of(converter, x[i]);
        const uint32_t random = stochastic ? bsm_random_bits(converter->seed, index + (uint64_t)i) : 0;
        const uint32_t code = bsm_element_encode(converter->element, quotient, converter->rounding, converter->saturate, random);
        store_code(m, bytes, k + i, code);
        if (stats == NULL) continue;
        const double element = (double)bsm_element_decode(converter->element, code);
        const bool cut = fabs(quotient) > info->max_value && fabs(element) == info->max_value;
        bsmi_count_element(stats, (double)x[i],
                           bsmi_scaled_value(element, 1, converter->tensor_scale, converter->tensor_scale_divides), cut);
        if (isfinite(x[i])) stats->amax = stats->amax > fabs((double)x[i]) ? stats->amax : fabs((double)x[i]);
    }
    if (stats != NULL) stats->elements += count;
}
