/* Jobs of kernel bsmi_decode_plain. */
#include "plain_dequantization.h"

#include "blockscale/matrix.h"
#include "core/core.h"

#include <math.h>

static struct bsmi_scale_bounds bounds_of(int element)
{
    const bsm_element_info *info = bsm_element_get(element);
    const int least = element == BSM_INT8 ? -6 : 1 - info->bias - info->mantissa_bits;
    const int most = element == BSM_INT8 ? 1 : ilogb(info->max_value);              /* -2 is a code of int8 */
    const uint32_t first = (uint32_t)(127 + BSMI_LEAST_EXPONENT - least);
    return (struct bsmi_scale_bounds){ first, (uint32_t)(127 + BSMI_MOST_EXPONENT - most) - first };
}

/* The kernel knows a block's length by the kind of its scale alone: 32 of e8m0, 16 of ue4m3. */
static bool has_blocks_of_the_kernel(const struct bsmi_device_matrix *m)
{
    return (m->scale == BSM_E8M0 && m->block == 32) || (m->scale == BSM_UE4M3 && m->block == 16);
}

static bool kernel_decodes(const struct bsmi_device_matrix *m)
{
    if (!has_blocks_of_the_kernel(m)) return false;
    switch (m->element) {
    case BSM_E2M1: return m->packing == BSM_PACKING_LOW_FIRST;
    case BSM_E4M3:
    case BSM_E5M2:
    case BSM_INT8: return m->scale == BSM_E8M0;
    case BSM_E2M3:
    case BSM_E3M2: return m->packing == BSM_PACKING_BIT_STREAM && m->scale == BSM_E8M0;
    default: return false;
    }
}

static bool scales_have_no_gaps(const struct bsmi_device_matrix *m)
{
    if (m->layout.kind == BSM_LAYOUT_128X4) return m->batch == 1 && m->rows < INT32_MAX;
    const int64_t columns = m->columns / m->block;
    return m->layout.kind == BSM_LAYOUT_LINEAR && m->layout.pitch == columns &&
           (m->batch == 1 || m->scale_batch_bytes == m->rows * columns);
}

static bool codes_have_no_gaps(const struct bsmi_device_matrix *m)
{
    const int64_t row_bytes = m->columns / 8 * m->bits;
    return (uintptr_t)m->data % (m->bits == 8 ? 8 : 4) == 0 && m->row_bytes == row_bytes &&
           (m->batch == 1 || m->batch_bytes == m->rows * row_bytes);
}

static bool lies_plainly(const struct bsmi_decode_operand *o)
{
    const struct bsmi_device_matrix *m = &o->source;
    const bool has_columns = m->columns % 64 == 0 && m->columns > 0 && m->columns <= (int64_t)1 << 24;
    return kernel_decodes(m) && has_columns && codes_have_no_gaps(m) && scales_have_no_gaps(m)
           && o->pitch == m->columns && o->batch_pitch == m->rows * m->columns;
}

/* A CTA has all octets that its threads have under way at one time, or a row; the few rows of a small launch are spread
 * over as many CTAs as will find a place; and no operand with e8m0 has more of them than there are flags. */
static int64_t rows_of_cta(const struct bsmi_device_matrix *m, int64_t spread)
{
    const int64_t of_threads = BSMI_DECODE_PLAIN_OCTETS * BSMI_DECODE_PLAIN_THREADS / (m->columns / 8);
    const int64_t of_flags = m->scale == BSM_E8M0 ? bsmi_ceil_div(m->rows * m->batch, BSMI_MOST_PLAIN_FLAGS) : 1;
    return BSMI_MAX(BSMI_MAX(BSMI_MIN(of_threads, spread), 1), of_flags);
}

/* Number of CTAs; 0: it does not lie plainly. */
static int64_t plain_rows(const struct bsmi_decode_operand *o, int64_t spread, struct bsmi_plain_rows *job)
{
    const struct bsmi_device_matrix *m = &o->source;
    if (!lies_plainly(o)) return 0;
    const int64_t rows = m->rows * m->batch, row_octets = m->columns / 8, of_cta = rows_of_cta(m, spread);
    const bool bands = m->layout.kind == BSM_LAYOUT_128X4;
    if (of_cta * row_octets > (bands ? ((int64_t)1 << 32) / row_octets : (int64_t)1 << 28)) return 0;
    *job = (struct bsmi_plain_rows){
        .codes = m->data, .scales = m->scales, .decoded = o->decoded,
        .exponents = m->scale == BSM_E8M0 ? o->exponents : NULL,
        .fallback = o->fallback, .rows = rows, .band_bytes = bands ? bsmi_ceil_div(m->layout.columns, 4) * 512 : 0,
        .row_octets = (uint32_t)row_octets,
        .reciprocal = (uint32_t)((((int64_t)1 << 32) + row_octets - 1) / row_octets),
        .rows_of_cta = (int32_t)of_cta, .element = m->element, .scale = m->scale, .bounds = bounds_of(m->element),
    };
    return bsmi_ceil_div(rows, of_cta);
}

static int64_t plain_scales(const struct bsmi_row_scales_parameters *p, struct bsmi_plain_scales *job)
{
    const struct bsmi_device_matrix *m = &p->source;
    const int64_t columns = bsmi_ceil_div(m->columns, m->block), pitch = m->layout.pitch;
    if (m->layout.kind != BSM_LAYOUT_LINEAR || m->batch != 1 || m->rows > INT32_MAX - 128 || columns > INT32_MAX - 512)
        return 0;
    *job = (struct bsmi_plain_scales){
        .from = m->scales, .to = p->scales, .exponents = m->scale == BSM_E8M0 ? p->exponents : NULL,
        .fallback = p->fallback,
        .pitch = pitch, .band_bytes = p->band_bytes, .rows = (int32_t)m->rows, .columns = (int32_t)columns,
        .words = (uintptr_t)m->scales % 4 == 0 && pitch % 4 == 0 && columns % 4 == 0, .bounds = bounds_of(m->element),
    };
    return BSMI_MIN(bsmi_ceil_div(bsmi_round_up(m->rows, 128), 4 * BSMI_DECODE_PLAIN_THREADS / 32),
                    BSMI_MOST_PLAIN_FLAGS);
}

bool bsmi_cuda_decode_plainly(const struct bsmi_decode_parameters *general, bool first, bool second,
                              int sm_count, struct bsmi_decode_plain_parameters *plain, int64_t ctas[2])
{
    const struct bsmi_device_matrix *a = &general->operands[0].source, *b = &general->operands[1].source;
    const int64_t rows =
        (first ? a->rows * a->batch : 0) + (second && !general->loads_scales ? b->rows * b->batch : 0);
    const int64_t spread = rows / (2 * (int64_t)sm_count);
    plain->general = *general;
    plain->loads_scales = general->loads_scales;
    ctas[0] = first ? plain_rows(&general->operands[0], spread, &plain->rows[0]) : 0;
    ctas[1] = !second                  ? 0
              : general->loads_scales ? plain_scales(&general->scales, &plain->scales)
                                       : plain_rows(&general->operands[1], spread, &plain->rows[1]);
    plain->first_ctas = (int32_t)ctas[0];
    return (!first || ctas[0] > 0) && (!second || ctas[1] > 0) && ctas[0] + ctas[1] > 0;
}
