/* Unscaled destinations: one division by the tensor scale, one rounding. */
#include "convert.h"

#include "core/core.h"
#include "matrix/rows.h"
#include "quantize/block/scale_code.h"
#include "quantize/walk/walk.h"

/* x / t or x * d, so that value = element * t or element / d.  The quotient is rounded to a double first, which does no
 * harm: it has 24 bits over 24, a midpoint of an element of at most 24 bits has 25, so unless it is that midpoint it
 * differs from it by 2^-49 relatively.  The product has 48 bits and is exact.  Numbers of an fp64 source: as in
 * block.c. */
static void divide(const struct bsmi_converter *converter, const double *x, int count, double *quotients)
{
    const double t = converter->tensor_scale;
    if (converter->wide && converter->tensor_scale_divides)
        for (int i = 0; i < count; i++) quotients[i] = bsmi_odd_product(x[i], t);
    else
        for (int i = 0; i < count; i++) quotients[i] = converter->tensor_scale_divides ? x[i] * t : x[i] / t;
}

static void store_codes(const struct bsmi_matrix *m, int64_t batch, int64_t row, int64_t k, int count,
                        const uint32_t *codes)
{
    unsigned char *bytes = bsmi_row(m, batch, row);
    uint8_t small[BSMI_PIECE];
    for (int i = 0; i < count; i++) {
        if (m->bits == 16) ((uint16_t *)(void *)bytes)[k + i] = (uint16_t)codes[i];
        else if (m->bits == 32) ((uint32_t *)(void *)bytes)[k + i] = codes[i];
        else small[i] = (uint8_t)codes[i];
    }
    if (m->bits <= 8) bsmi_row_store_codes(m, batch, row, k, count, small);
}

static void encode(const struct bsmi_converter *converter, const double *quotients, int count, uint64_t index,
                   uint32_t *codes)
{
    if (converter->saturate && converter->rounding != BSM_ROUND_STOCHASTIC) {              /* at most 8 bits */
        uint8_t small[BSMI_PIECE];
        bsmi_element_encode_nearest(converter->element, quotients, count, small);
        for (int i = 0; i < count; i++) codes[i] = small[i];
        return;
    }
    const bool stochastic = converter->rounding == BSM_ROUND_STOCHASTIC;
    for (int i = 0; i < count; i++)
        codes[i] = bsm_element_encode(converter->element, quotients[i], converter->rounding, converter->saturate,
                                      stochastic ? bsm_random_bits(converter->seed, index + (uint64_t)i) : 0);
}

static void count_elements(const struct bsmi_converter *converter, const double *x, int count, const double *quotients,
                           const uint32_t *codes, struct bsmi_block_stats *stats)
{
    const double max = bsm_element_get((int)converter->element)->max_value;
    stats->elements += count;
    for (int i = 0; i < count; i++) {
        const double value = x[i], element = (double)bsm_element_decode(converter->element, codes[i]);
        const bool cut = fabs(quotients[i]) > max && fabs(element) == max;
        bsmi_count_element(
            stats, value, bsmi_scaled_value(element, 1, converter->tensor_scale, converter->tensor_scale_divides), cut);
        if (isfinite(value)) stats->amax = fmax(stats->amax, fabs(value));
    }
}

void bsmi_convert_row(const struct bsmi_converter *converter, const struct bsmi_matrix *m, int64_t batch, int64_t row,
                      int64_t k, const double *x, int count, uint64_t index, struct bsmi_block_stats *stats)
{
    double quotients[BSMI_PIECE] = { 0 };
    uint32_t codes[BSMI_PIECE];
    divide(converter, x, count, quotients);
    encode(converter, quotients, count, index, codes);
    store_codes(m, batch, row, k, count, codes);
    if (stats != NULL) count_elements(converter, x, count, quotients, codes, stats);
}
