/* See exact_help.h. */
#include "exact_help.h"

#include <math.h>
#include <stdlib.h>

double element_value(bsm_element element, uint32_t code)
{
    static const struct { int bits, exponent_bits, bias; bool ieee; } shapes[BSM_ELEMENT_COUNT] = {
        [BSM_E4M3] = { 8, 4, 7, false },  [BSM_E5M2] = { 8, 5, 15, true },    [BSM_E3M2] = { 6, 3, 3, false },
        [BSM_E2M3] = { 6, 2, 1, false },  [BSM_E2M1] = { 4, 2, 1, false },    [BSM_BF16] = { 16, 8, 127, true },
        [BSM_FP16] = { 16, 5, 15, true }, [BSM_FP32] = { 32, 8, 127, true },
    };
    if (element == BSM_INT8) return ldexp(code < 128 ? (double)code : (double)code - 256, -6);
    const int fraction_bits = shapes[element].bits - 1 - shapes[element].exponent_bits;
    const uint32_t exponents = 1u << shapes[element].exponent_bits, fractions = 1u << fraction_bits;
    const uint32_t exponent = code / fractions % exponents, fraction = code % fractions;
    const bool negative = code / fractions / exponents % 2 != 0;
    double value;
    if (shapes[element].ieee && exponent == exponents - 1) value = fraction != 0 ? NAN : INFINITY;
    else if (element == BSM_E4M3 && exponent == 15 && fraction == 7) value = NAN;
    else if (exponent == 0) value = ldexp(fraction, 1 - shapes[element].bias - fraction_bits);
    else value = ldexp(fractions + fraction, (int)exponent - shapes[element].bias - fraction_bits);
    return negative ? -value : value;
}

double scale_value(bsm_scale scale, uint8_t code)
{
    switch (scale) {
    case BSM_E8M0: return code == 255 ? NAN : ldexp(1, code - 127);
    case BSM_UE4M3: return element_value(BSM_E4M3, code & 0x7f);
    default: return 1;
    }
}

/* Operands --------------------------------------------------------------------------------------------------------- */

struct operand operand_make_packed(bsm_format format, int64_t rows, int64_t columns, bsm_packing packing,
                                   bsm_scale_layout layout, int64_t extra_pitch, int fill)
{
    struct operand o = { .matrix = { .struct_size = sizeof o.matrix, .format = format, .rows = rows, .columns = columns,
                                     .packing = packing, .scale_layout = layout } };
    const bsm_format_info *info = bsm_format_get((int)format);
    if (extra_pitch > 0) o.matrix.pitch = (columns + 63) / 64 * 64 + extra_pitch;
    int64_t bytes, scale_bytes;
    if (bsm_matrix_data_bytes(&o.matrix, &bytes) != BSM_OK
        || bsm_matrix_scale_bytes(&o.matrix, &scale_bytes) != BSM_OK) {
        fprintf(stderr, "operand_make: %s\n", bsm_last_error());
        exit(1);
    }
    const size_t alignment = bsm_element_get((int)info->element)->bits > 8 ? 4 : 1;
    o.matrix.data = guarded_at_end((size_t)bytes, alignment, fill);
    if (info->scale != BSM_UNSCALED)
        o.matrix.scales = packing == BSM_PACKING_GGUF ? o.matrix.data : guarded_at_end((size_t)scale_bytes, 1, fill);
    o.values = calloc((size_t)(rows * columns) + 1, sizeof *o.values);
    if (o.values == NULL) exit(1);
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t k = 0; k < columns; k++) operand_set(&o, r, k, 0);
        for (int64_t s = 0; s < bsm_matrix_scale_columns(&o.matrix); s++)
            operand_set_scale(&o, r, s, info->scale == BSM_E8M0 ? 127 : 0x38);
    }
    return o;
}

struct operand operand_make(bsm_format format, int64_t rows, int64_t columns)
{
    const bsm_scale_layout linear = { .kind = BSM_LAYOUT_LINEAR };
    return operand_make_packed(format, rows, columns, BSM_PACKING_DEFAULT, linear, 0, 0xff);
}

void operand_free(struct operand *o)
{
    if (o->matrix.scales != o->matrix.data) guarded_free(o->matrix.scales);
    guarded_free(o->matrix.data);
    free(o->values);
}

static void stop_unless_ok(bsm_status status)
{
    if (status == BSM_OK) return;
    fprintf(stderr, "an operand of the test: %s\n", bsm_last_error());
    exit(1);
}

void operand_set(struct operand *o, int64_t row, int64_t column, uint32_t code)
{
    stop_unless_ok(bsm_matrix_set_code(&o->matrix, 0, row, column, code));
}

void operand_set_scale(struct operand *o, int64_t row, int64_t scale_column, uint8_t code)
{
    stop_unless_ok(bsm_matrix_set_scale(&o->matrix, 0, row, scale_column, code));
}

void operand_fill(struct test *t, struct operand *o, bool finite, int scale_low, int scale_high)
{
    const bsm_format_info *info = bsm_format_get((int)o->matrix.format);
    const int bits = bsm_element_get((int)info->element)->bits;
    for (int64_t r = 0; r < o->matrix.rows; r++) {
        for (int64_t k = 0; k < o->matrix.columns; k++) {
            uint32_t code;
            do code = (uint32_t)(rnd(t) & (((uint64_t)1 << bits) - 1));
            while (finite && !isfinite(element_value(info->element, code)));
            operand_set(o, r, k, code);
        }
        for (int64_t s = 0; s < bsm_matrix_scale_columns(&o->matrix); s++)
            operand_set_scale(o, r, s, (uint8_t)rnd_between(t, scale_low, scale_high));
    }
}

void operand_decode(struct operand *o)
{
    const bsm_format_info *info = bsm_format_get((int)o->matrix.format);
    for (int64_t r = 0; r < o->matrix.rows; r++)
        for (int64_t k = 0; k < o->matrix.columns; k++) {
            uint32_t code;
            uint8_t scale = 0;
            stop_unless_ok(bsm_matrix_get_code(&o->matrix, 0, r, k, &code));
            if (info->scale != BSM_UNSCALED)
                stop_unless_ok(bsm_matrix_get_scale(&o->matrix, 0, r, k / info->block, &scale));
            o->values[r * o->matrix.columns + k] = element_value(info->element, code) * scale_value(info->scale, scale);
        }
}

/* Operands of one column ------------------------------------------------------------------------------------------- */

enum { MOST_CODES = 512 };

/* 8 bits and less: all codes.  More: every exponent with a few fractions, both signs, and random codes. */
static int choose_codes(struct test *t, bsm_element element, uint32_t *codes)
{
    const int bits = bsm_element_get((int)element)->bits, fraction_bits = bsm_element_get((int)element)->mantissa_bits;
    int count = 0;
    if (bits <= 8) {
        for (uint32_t code = 0; code < 1u << bits; code++) codes[count++] = code;
        return count;
    }
    const int exponents = 1 << (bits - 1 - fraction_bits);
    const int step = exponents > 32 ? exponents / 32 : 1;
    for (int e = 0; e < exponents; e += step)
        for (uint32_t pick = 0; pick < 4; pick++) {
            const int exponent = pick == 3 && e + step >= exponents ? exponents - 1 : e;
            const uint32_t all = (1u << fraction_bits) - 1, picks[4] = { 0, 1, all, (uint32_t)rnd(t) & all };
            const uint32_t fraction = picks[pick];
            codes[count++] = (uint32_t)exponent << fraction_bits | fraction;
            codes[count++] = 1u << (bits - 1) | (uint32_t)exponent << fraction_bits | fraction;
        }
    /* the infinities */
    codes[count++] = (uint32_t)(exponents - 1) << fraction_bits;
    codes[count++] = 1u << (bits - 1) | (uint32_t)(exponents - 1) << fraction_bits;
    while (count < 300) codes[count++] = (uint32_t)(rnd(t) & (((uint64_t)1 << bits) - 1));
    return count;
}

struct operand column_of_codes(struct test *t, bsm_format format)
{
    uint32_t codes[MOST_CODES];
    const int count = choose_codes(t, bsm_format_get((int)format)->element, codes);
    struct operand o = operand_make(format, count, 1);
    for (int i = 0; i < count; i++) operand_set(&o, i, 0, codes[i]);
    return o;
}

struct operand column_of_scales(bsm_format format, bool largest)
{
    const bsm_format_info *info = bsm_format_get((int)format);
    const uint32_t max_code = bsm_element_get((int)info->element)->max_code;
    struct operand o = operand_make(format, info->scale != BSM_UNSCALED ? 256 : 2, 1);
    for (int r = 0; r < 256 && info->scale != BSM_UNSCALED; r++) {
        operand_set(&o, r, 0, largest ? max_code : 1);
        operand_set_scale(&o, r, 0, (uint8_t)r);
    }
    if (info->scale == BSM_UNSCALED) operand_set(&o, 0, 0, 1), operand_set(&o, 1, 0, max_code);
    return o;
}

/* Counters --------------------------------------------------------------------------------------------------------- */

void counters_add(struct counters *sum, double value, int64_t times)
{
    int exponent;
    const double fraction = frexp(fabs(value), &exponent);
    uint64_t integer = (uint64_t)ldexp(fraction, 53);
    for (int bit = exponent - 53 + COUNTERS_ONE; integer != 0; bit++, integer >>= 1)
        if ((integer & 1) != 0) sum->count[bit] += value < 0 ? -times : times;
}

/* Carries run upwards until every counter but the last is 0 or 1; the last then has the sign. */
int counters_sign(const struct counters *sum)
{
    int64_t carry = 0;
    bool any = false;
    for (int bit = 0; bit < COUNTERS; bit++) {
        const int64_t here = sum->count[bit] + carry;
        const int64_t digit = ((here % 2) + 2) % 2;
        any |= digit != 0;
        carry = (here - digit) / 2;
    }
    return carry < 0 ? -1 : any;
}

static const struct { bsm_element element; int bits; uint64_t infinity; } types[BSM_REAL_COUNT] = {
    [BSM_REAL_FP32] = { BSM_FP32, 32, 0x7f800000 },
    [BSM_REAL_FP16] = { BSM_FP16, 16, 0x7c00 },
    [BSM_REAL_BF16] = { BSM_BF16, 16, 0x7f80 },
    [BSM_REAL_FP64] = { BSM_FP32, 64, (uint64_t)0x7ff << 52 },
};

uint64_t infinity_bits(bsm_real type, bool negative)
{
    return types[type].infinity | (uint64_t)negative << (types[type].bits - 1);
}

uint64_t nan_bits(bsm_real type)
{
    switch (type) {
    case BSM_REAL_FP16: return 0x7e00;
    case BSM_REAL_BF16: return 0x7fc0;
    case BSM_REAL_FP64: return (uint64_t)0x7ff8 << 48;
    default: return 0x7fc00000;
    }
}

uint64_t load_bits(bsm_real type, const void *data, int64_t index)
{
    switch (types[type].bits) {
    case 16: return ((const uint16_t *)data)[index];
    case 32: return ((const uint32_t *)data)[index];
    default: return ((const uint64_t *)data)[index];
    }
}

/* A magnitude code of a type as a number; infinity stands for the power of two behind the largest finite number. */
static double magnitude_value(bsm_real type, uint64_t code)
{
    double value;
    if (code == types[type].infinity) return type == BSM_REAL_FP16 ? 65536 : 0x1p128;
    if (type != BSM_REAL_FP64) return element_value(types[type].element, (uint32_t)code);
    memcpy(&value, &code, sizeof value);
    return value;
}

/* The sign of |sum| - (value of code + value of neighbour) / 2. */
static int against_midpoint(const struct counters *sum, int sign, bsm_real type, uint64_t code, uint64_t neighbour)
{
    struct counters difference;
    for (int i = 0; i < COUNTERS; i++) difference.count[i] = 2 * sign * sum->count[i];
    counters_add(&difference, magnitude_value(type, code), -1);
    counters_add(&difference, magnitude_value(type, neighbour), -1);
    return counters_sign(&difference);
}

bool rounded_rightly(const struct counters *sum, bsm_real type, uint64_t bits)
{
    const uint64_t sign_bit = (uint64_t)1 << (types[type].bits - 1), code = bits & ~sign_bit,
                   infinity = types[type].infinity;
    const int sign = counters_sign(sum);
    if (sign == 0) return bits == 0;
    if ((sign < 0) != ((bits & sign_bit) != 0) || code > infinity) return false;
    if (type == BSM_REAL_FP64 && (code < (uint64_t)(1023 - 400) << 52 || code > (uint64_t)(1023 + 400) << 52))
        return false;
    const bool even = code % 2 == 0;      /* infinity, as the number behind the largest, is even too */
    if (code < infinity) {
        const int above = against_midpoint(sum, sign, type, code, code + 1);
        if (above > 0 || (above == 0 && !even)) return false;
    }
    if (code > 0) {
        const int below = against_midpoint(sum, sign, type, code, code - 1);
        if (below < 0 || (below == 0 && !even)) return false;
    }
    return true;
}

bool product_is_right(const struct operand *a, int64_t row, const struct operand *b, int64_t column, bool magnitude,
                      bsm_real type, uint64_t bits)
{
    struct counters sum = { { 0 } };
    const int64_t depth = a->matrix.columns;
    bool nan = false, plus = false, minus = false;
    double last = 0;
    int64_t times = 0;                    /* equal terms in a row are counted once */
    for (int64_t k = 0; k < depth; k++) {
        double term = a->values[row * depth + k] * b->values[column * depth + k];       /* inf * 0 is NaN here too */
        if (magnitude) term = fabs(term);
        if (isnan(term)) nan = true;
        else if (isinf(term)) *(term > 0 ? &plus : &minus) = true;
        else if (term == last) times++;
        else {
            counters_add(&sum, last, times);
            last = term, times = 1;
        }
    }
    counters_add(&sum, last, times);
    if (nan || (plus && minus)) return bits == nan_bits(type);
    if (plus || minus) return bits == infinity_bits(type, minus);
    return rounded_rightly(&sum, type, bits);
}

bsm_real_matrix result_of(bsm_real type, int64_t rows, int64_t columns, void *data)
{
    return (bsm_real_matrix){ .struct_size = sizeof(bsm_real_matrix), .type = type, .rows = rows, .columns = columns,
                              .data = data,
                              .row_stride = columns, .column_stride = 1 };
}

bsm_context *context_or_stop(int threads)
{
    const bsm_context_options options = { .struct_size = sizeof options, .threads = threads };
    bsm_context *context;
    if (bsm_context_create(&options, &context) == BSM_OK) return context;
    fprintf(stderr, "no context: %s\n", bsm_last_error());
    exit(1);
}

/* Every pair of formats -------------------------------------------------------------------------------------------- */

void for_every_pair_of_codes(struct test *t, pair_check *check)
{
    bsm_context *context = context_or_stop(0);
    for (int fa = 1; fa < BSM_FORMAT_COUNT; fa++)
        for (int fb = 1; fb < BSM_FORMAT_COUNT; fb++) {
            struct operand a = column_of_codes(t, (bsm_format)fa), b = column_of_codes(t, (bsm_format)fb);
            check(t, context, &a, &b);
            operand_free(&a), operand_free(&b);
        }
    bsm_context_destroy(context);
}

void for_every_pair_of_scales(struct test *t, pair_check *check)
{
    bsm_context *context = context_or_stop(0);
    for (int fa = 1; fa < BSM_FORMAT_COUNT; fa++)
        for (int fb = 1; fb < BSM_FORMAT_COUNT; fb++)
            for (int pick = 0; pick < 2; pick++) {            /* the smallest positive codes, and the largest */
                struct operand a = column_of_scales((bsm_format)fa, pick != 0),
                               b = column_of_scales((bsm_format)fb, pick != 0);
                check(t, context, &a, &b);
                operand_free(&a), operand_free(&b);
            }
    bsm_context_destroy(context);
}
