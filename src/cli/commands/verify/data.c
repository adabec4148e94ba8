/* Codes and scales for verify: integers, any finite codes, codes that are not finite, all codes. */
#include "verify.h"
#include "cli/matrices/sample_data.h"

#include <math.h>

/* Numbers one after the other; far: where e8m0 scales of VERIFY_FAR_SCALES lie, as an exponent. */
struct stream { uint64_t seed, stream, next; int far; };

static uint64_t draw(struct stream *s) { return sample_bits(s->seed, s->stream, s->next++); }
static int64_t draw_below(struct stream *s, int64_t bound) { return (int64_t)(draw(s) % (uint64_t)bound); }

static uint32_t code_mask(bsm_element element)
{
    const int bits = bsm_element_get((int)element)->bits;
    return bits == 32 ? UINT32_MAX : ((uint32_t)1 << bits) - 1;
}

/* Every integer up to this is a code (times 2^-6 for int8).  Kept at 16, so that sums stay below 2^24 quarters. */
static int64_t largest_integer(bsm_element element)
{
    const bsm_element_info *info = bsm_element_get((int)element);
    const int64_t by_mantissa = (int64_t)2 << (info->mantissa_bits < 3 ? info->mantissa_bits : 3);
    if (element == BSM_INT8) return 16;
    return (double)by_mantissa < info->max_value ? by_mantissa : (int64_t)info->max_value;
}

static uint32_t integer_code(bsm_element element, struct stream *s)
{
    const int64_t largest = largest_integer(element), value = draw_below(s, 2 * largest + 1) - largest;
    const double unit = element == BSM_INT8 ? 0x1p-6 : 1;
    return bsm_element_encode(element, (double)value * unit, BSM_ROUND_NEAREST_EVEN, true, 0);
}

/* Scales for integers: few bits, and different ones, so that a scale of the wrong block shows. */
static uint8_t integer_scale(bsm_scale scale, struct stream *s)
{
    static const uint8_t ue4m3[] = { 0x30, 0x38, 0x3c, 0x40, 0x44 };        /* 0.5, 1, 1.5, 2, 3 */
    return scale == BSM_UE4M3 ? ue4m3[draw_below(s, 5)] : (uint8_t)(127 + draw_below(s, 3));
}

/* Every finite code. */
static uint32_t any_code(bsm_element element, struct stream *s)
{
    uint32_t code;
    do code = (uint32_t)draw(s) & code_mask(element);
    while (!isfinite(bsm_element_decode(element, code)));
    return code;
}

/* fp32 and bf16 keep to 2^-10 .. 2^10, with some zeros, so that products stay within fp32; narrower ones use every
 * code. */
static uint32_t finite_code(bsm_element element, struct stream *s)
{
    if (element == BSM_FP32 || element == BSM_BF16) {
        const uint64_t random = draw(s);
        const uint32_t sign = (uint32_t)(random >> 63) << 31, exponent = 117 + (uint32_t)draw_below(s, 21);
        const uint32_t code = random % 16 == 0 ? sign : sign | exponent << 23 | ((uint32_t)(random >> 32) & 0x7fffff);
        return element == BSM_FP32 ? code : code >> 16;
    }
    return any_code(element, s);
}

/* e8m0 around 2^exponent; ue4m3: every finite code, also with the sign bit, which means nothing. */
static uint8_t scale_near(bsm_scale scale, int exponent, struct stream *s)
{
    if (scale == BSM_E8M0) return (uint8_t)(117 + exponent + draw_below(s, 21));
    return (uint8_t)(draw_below(s, 0x7f) | (draw_below(s, 2) << 7));
}

static uint8_t any_scale(bsm_scale scale, struct stream *s)
{
    return scale == BSM_E8M0 ? (uint8_t)draw_below(s, 255) : scale_near(scale, 0, s);
}

/* One of the codes that are not finite; a finite one where there are none. */
static uint32_t not_finite_code(bsm_element element, struct stream *s)
{
    const bsm_element_info *info = bsm_element_get((int)element);
    if (info->nan_codes == 0) return finite_code(element, s);
    const uint32_t magnitudes = code_mask(element) >> 1, sign = (uint32_t)draw_below(s, 2) << (info->bits - 1);
    const int64_t codes = (int64_t)magnitudes - (int64_t)info->max_code;
    const bool infinity = info->has_infinity && draw_below(s, 2) == 0;
    return sign | (info->max_code + 1 + (infinity ? 0 : (uint32_t)draw_below(s, codes)));
}

static uint32_t element_code(bsm_element element, enum verify_kind kind, int64_t row, struct stream *s)
{
    switch (kind) {
    case VERIFY_INTEGERS: return integer_code(element, s);
    case VERIFY_CODES:
    case VERIFY_FAR_SCALES: return finite_code(element, s);
    case VERIFY_ANY_CODES: return any_code(element, s);
    case VERIFY_NOT_FINITE: return draw_below(s, 200) == 0 ? not_finite_code(element, s) : finite_code(element, s);
    case VERIFY_ELEMENT_CODES:
        if (bsm_element_get((int)element)->bits <= 8) return (uint32_t)row & code_mask(element);
        return row % 8 == 0 ? not_finite_code(element, s) : (uint32_t)draw(s) & code_mask(element);
    default: return (uint32_t)draw(s) & code_mask(element);
    }
}

static uint8_t scale_code(bsm_scale scale, enum verify_kind kind, int64_t row, struct stream *s)
{
    switch (kind) {
    case VERIFY_INTEGERS: return integer_scale(scale, s);
    case VERIFY_CODES: return scale_near(scale, 0, s);
    case VERIFY_FAR_SCALES: return scale_near(scale, s->far, s);
    case VERIFY_ANY_CODES: return any_scale(scale, s);
    case VERIFY_NOT_FINITE: return draw_below(s, 16) != 0 ? scale_near(scale, 0, s) : scale == BSM_E8M0 ? 0xff : 0x7f;
    case VERIFY_SCALE_CODES: return (uint8_t)row;
    default: return (uint8_t)draw(s);
    }
}

static int clamp(int64_t exponent) { return exponent < -117 ? -117 : exponent > 117 ? 117 : (int)exponent; }

/* One operand's scales lie near 2^105 .. 2^117, where scaled elements begin to leave fp32, or anywhere; the other's so
 * that both together are near 1, or where combined scales become subnormal, or large.  The same seed tells both
 * operands. */
static int far_exponent(uint64_t seed, uint64_t stream)
{
    struct stream s = { .seed = seed, .stream = UINT64_MAX };
    const int64_t first = draw_below(&s, 2) == 0 ? 95 + draw_below(&s, 23) : draw_below(&s, 235) - 117;
    const int64_t near = draw_below(&s, 21) - 10;
    const int64_t together = draw_below(&s, 2) == 0 ? 0 : draw_below(&s, 2) == 0 ? -140 + near : 110 + near;
    const bool swapped = draw_below(&s, 2) != 0;
    return clamp((stream == 0) != swapped ? first : together - first);
}

bsm_status verify_fill(const struct operand *operand, enum verify_kind kind, uint64_t seed, uint64_t stream)
{
    const bsm_matrix *matrix = &operand->matrix;
    const bsm_format_info *info = bsm_format_get((int)matrix->format);
    struct stream s = { .seed = seed, .stream = stream, .far = far_exponent(seed, stream) };
    bsm_status status = BSM_OK;
    for (int64_t r = 0; r < matrix->rows; r++) {
        for (int64_t c = 0; c < matrix->columns && status == BSM_OK; c++)
            status = bsm_matrix_set_code(matrix, 0, r, c, element_code(info->element, kind, r, &s));
        for (int64_t c = 0; c < bsm_matrix_scale_columns(matrix) && status == BSM_OK; c++)
            status = bsm_matrix_set_scale(matrix, 0, r, c, scale_code(info->scale, kind, r, &s));
    }
    return status;
}
