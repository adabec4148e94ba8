/* Codes and scales into integers, exponents and classes. */
#include "operand.h"
#include "core/core.h"
#include "matrix/rows.h"

bool bsmi_exact_is_integer(bsm_element element) { return element != BSM_BF16 && element != BSM_FP32; }

/* The largest magnitude is max_value, except int8's, which is that of -128. */
int bsmi_exact_integer_bits(bsm_element element)
{
    if (element == BSM_INT8) return 8;
    const uint64_t largest = (uint64_t)ldexp(bsm_element_get((int)element)->max_value, bsmi_element_grid(element));
    return 64 - __builtin_clzll(largest);
}

static uint8_t class_of(uint32_t float_bits)
{
    const uint32_t magnitude = float_bits & 0x7fffffff;
    if (magnitude > 0x7f800000) return BSMI_NAN;
    const int sign = float_bits >> 31 != 0 ? BSMI_NEGATIVE : 0;
    return (uint8_t)(sign | (magnitude == 0x7f800000 ? BSMI_INFINITE : 0) | (magnitude == 0 ? BSMI_ZERO : 0));
}

static bool is_finite(uint32_t float_bits) { return (float_bits & 0x7f800000) != 0x7f800000; }

/* Finite value * 2^grid: an integer below 2^40, so that the product is exact. */
static int64_t to_integer(float value, int grid) { return (int64_t)((double)value * bsmi_double_power_of_two(grid)); }

static struct bsmi_scaled_integer to_floating(const struct bsmi_exact_operand *operand, uint32_t float_bits)
{
    const int biased = (float_bits >> 23) & 255;
    const int32_t fraction = (int32_t)(float_bits & 0x7fffff);
    const int32_t significand = (biased != 0 ? fraction | 1 << 23 : fraction) >> operand->unused_bits;
    if (significand == 0) return (struct bsmi_scaled_integer){ 0, 0 };
    const int exponent = (biased != 0 ? biased : 1) - 150 + operand->unused_bits;
    return (struct bsmi_scaled_integer){ float_bits >> 31 != 0 ? -significand : significand,
                                         exponent - operand->float_lowest };
}

/* Numbers of the element types as floats have 24-bit significands with some low bits unused: 8 bits carry any element
 * of at most 8 bits and bf16, 11 bits carry fp16.  bf16 and fp32 reach into fp32's subnormals, whose last bit is
 * 2^-grid; the others are normal there: the least, 2^-grid, has its leading bit, 23 places higher than the last, at
 * -grid. */
static void make_float_range(struct bsmi_exact_operand *operand)
{
    const bsm_element element = operand->matrix->element;
    const bool subnormals = element == BSM_FP32 || element == BSM_BF16;
    const int grid = bsmi_element_grid(element);
    /* -128 is -2 */
    const int top_exponent = element == BSM_INT8 ? 1 : ilogb(bsm_element_get((int)element)->max_value);
    operand->unused_bits = element == BSM_FP32 ? 0 : element == BSM_FP16 ? 13 : 16;
    operand->bits = 24 - operand->unused_bits;
    operand->float_lowest = subnormals ? -grid : -grid - 23 + operand->unused_bits;
    operand->lowest = operand->float_lowest;
    operand->highest_position = top_exponent - 23 + operand->unused_bits - operand->float_lowest;
}

/* A scale is significand * 2^(lowest + position): 2^(code - 127), or ue4m3's fraction of 3 or 4 bits from 2^-9 up. */
static void make_scales(struct bsmi_exact_operand *operand)
{
    const bsm_scale scale = operand->matrix->scale;
    for (int code = 0; code < 256; code++) {
        struct bsmi_scaled_integer *s = &operand->scales[code];
        *s = (struct bsmi_scaled_integer){ 1, scale == BSM_E8M0 ? code : 0 };
        if (scale == BSM_UE4M3) {
            const int exponent = (code >> 3) & 15, fraction = code & 7;
            *s = (struct bsmi_scaled_integer){ exponent != 0 ? 8 + fraction : fraction,
                                               exponent != 0 ? exponent - 1 : 0 };
        }
        operand->scale_classes[code] = (uint8_t)(s->significand == 0 ? BSMI_ZERO : 0);
        if (bsmi_scale_is_nan(scale, (uint8_t)code)) {
            *s = (struct bsmi_scaled_integer){ 0, 0 };
            operand->scale_classes[code] = BSMI_NAN;
        }
    }
    operand->scale_bits = scale == BSM_UE4M3 ? 4 : 0;
    operand->lowest += scale == BSM_UE4M3 ? -9 : scale == BSM_E8M0 ? -127 : 0;
    operand->highest_position += scale == BSM_UE4M3 ? 14 : scale == BSM_E8M0 ? 254 : 0;
}

/* Decoded values of at most 8 bits are normal floats or zero: nothing here depends on the caller's floating-point
 * mode. */
static void make_codes(struct bsmi_exact_operand *operand)
{
    const bsm_element element = operand->matrix->element;
    const uint32_t codes = (uint32_t)1 << operand->matrix->bits;
    for (uint32_t code = 0; code < codes; code++) {
        float value = bsm_element_decode(element, code);
        uint32_t bits = bsmi_float_bits(value);
        if (operand->magnitude) bits &= 0x7fffffff, value = bsmi_float_from_bits(bits);
        operand->classes[code] = class_of(bits);
        if (!is_finite(bits)) continue;
        if (operand->kind == BSMI_FLOATS) operand->floats[code] = to_floating(operand, bits);
        else operand->integers[code] = to_integer(value, bsmi_element_grid(element));
    }
}

void bsmi_exact_operand_make(const struct bsmi_matrix *matrix, enum bsmi_significand kind, bool magnitude,
                             struct bsmi_exact_operand *operand)
{
    memset(operand, 0, sizeof *operand);
    operand->matrix = matrix;
    operand->kind = kind;
    operand->magnitude = magnitude;
    if (kind == BSMI_FLOATS) {
        make_float_range(operand);
    } else {
        operand->bits = bsmi_exact_integer_bits(matrix->element);
        operand->lowest = -bsmi_element_grid(matrix->element);
    }
    make_scales(operand);
    if (matrix->bits <= 8) make_codes(operand);
}

/* Elements of a row ------------------------------------------------------------------------------------------------ */

static void decode_small(const struct bsmi_exact_operand *operand, int64_t row, int64_t k, int count,
                         struct bsmi_exact_rows *rows, int slot)
{
    uint8_t codes[BSMI_EXACT_CHUNK];
    bsmi_row_codes(operand->matrix, 0, row, k, count, codes);
    for (int i = 0; i < count; i++) rows->classes[slot][i] = operand->classes[codes[i]];
    switch (operand->kind) {
    case BSMI_INTEGERS_16:
        for (int i = 0; i < count; i++) rows->integers_16[slot][i] = (int16_t)operand->integers[codes[i]];
        break;
    case BSMI_INTEGERS_64:
        for (int i = 0; i < count; i++) rows->integers_64[slot][i] = operand->integers[codes[i]];
        break;
    case BSMI_FLOATS:
        for (int i = 0; i < count; i++) rows->floats[slot][i] = operand->floats[codes[i]];
        break;
    }
}

static void decode_large(const struct bsmi_exact_operand *operand, int64_t row, int64_t k, int count,
                         struct bsmi_exact_rows *rows, int slot)
{
    float values[BSMI_EXACT_CHUNK];
    const int grid = bsmi_element_grid(operand->matrix->element);
    bsmi_row_elements(operand->matrix, NULL, 0, row, k, count, values);
    for (int i = 0; i < count; i++) {
        const uint32_t bits = bsmi_float_bits(values[i]) & (operand->magnitude ? 0x7fffffff : 0xffffffff);
        const bool finite = is_finite(bits);
        rows->classes[slot][i] = class_of(bits);
        if (operand->kind == BSMI_FLOATS)
            rows->floats[slot][i] = finite ? to_floating(operand, bits) : (struct bsmi_scaled_integer){ 0, 0 };
        else
            rows->integers_64[slot][i] = finite ? to_integer(bsmi_float_from_bits(bits), grid) : 0;
    }
}

/* The scale of elements [first, end): its class joins theirs, and a float takes the scale itself. */
static void apply_scale(const struct bsmi_exact_operand *operand, uint8_t code, int first, int end,
                        struct bsmi_exact_rows *rows, int slot)
{
    const uint8_t class = operand->scale_classes[code];
    if (class != 0)
        for (int i = first; i < end; i++) rows->classes[slot][i] |= class;
    if (operand->kind != BSMI_FLOATS) return;
    const struct bsmi_scaled_integer scale = operand->scales[code];
    for (int i = first; i < end; i++) {
        rows->floats[slot][i].significand *= scale.significand;
        rows->floats[slot][i].position += scale.position;
    }
}

static void decode_scales(const struct bsmi_exact_operand *operand, int64_t row, int64_t k, int count, int exact_block,
                          struct bsmi_exact_rows *rows, int slot)
{
    const struct bsmi_matrix *m = operand->matrix;
    uint8_t codes[BSMI_EXACT_CHUNK / BSMI_EXACT_SHORTEST_BLOCK] = { 0 };
    const int block = m->block != 0 ? m->block : BSMI_EXACT_BLOCK, blocks = (count + block - 1) / block;
    if (m->scale != BSM_UNSCALED) {
        bsmi_row_scales(m, 0, row, k / block, blocks, codes);
        for (int b = 0; b < blocks; b++)
            apply_scale(operand, codes[b], b * block, BSMI_MIN((b + 1) * block, count), rows, slot);
    }
    for (int first = 0; first < count; first += exact_block)
        rows->scales[slot][first / exact_block] = operand->scales[codes[first / block]];
}

void bsmi_exact_decode(const struct bsmi_exact_operand *operand, int64_t row, int64_t k, int count, int exact_block,
                       struct bsmi_exact_rows *rows, int slot)
{
    if (operand->matrix->bits <= 8) decode_small(operand, row, k, count, rows, slot);
    else decode_large(operand, row, k, count, rows, slot);
    decode_scales(operand, row, k, count, exact_block, rows, slot);
    uint8_t any = 0;
    for (int i = 0; i < count; i++) any |= rows->classes[slot][i];
    rows->row_class[slot] = any & (BSMI_INFINITE | BSMI_NAN);
}
