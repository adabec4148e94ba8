#include "tensor_reference.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

/* An integer of 1024 bits, two's complement, that counts units of 2^-512. */
enum { WORDS = 32, POINT = 512 };
struct wide { uint32_t word[WORDS]; };

static void wide_add(struct wide *x, const struct wide *y)
{
    uint64_t carry = 0;
    for (int i = 0; i < WORDS; i++) {
        carry += (uint64_t)x->word[i] + y->word[i];
        x->word[i] = (uint32_t)carry;
        carry >>= 32;
    }
}
static void wide_negate(struct wide *x)
{
    uint64_t carry = 1;
    for (int i = 0; i < WORDS; i++) {
        carry += (uint32_t)~x->word[i];
        x->word[i] = (uint32_t)carry;
        carry >>= 32;
    }
}
static bool wide_bit(const struct wide *x, int bit) { return bit >= 0 && (x->word[bit / 32] >> bit % 32 & 1) != 0; }
static bool wide_below(const struct wide *x, int bit)       /* whether any bit below `bit` is set */
{
    for (int i = 0; i < bit && i < 32 * WORDS; i++)
        if (wide_bit(x, i)) return true;
    return false;
}
static void wide_cut(struct wide *x, int bit)               /* clears the bits below */
{
    for (int i = 0; i < bit && i < 32 * WORDS; i++) x->word[i / 32] &= ~(1u << i % 32);
}
static int wide_top(const struct wide *x)
{
    for (int i = 32 * WORDS - 1; i >= 0; i--)
        if (wide_bit(x, i)) return i;
    return -1;
}
/* |a * b| where both are doubles of at most 26 significant bits. */
static struct wide wide_product(double a, double b)
{
    int ea, eb;
    const uint64_t ma = (uint64_t)ldexp(frexp(fabs(a), &ea), 26), mb = (uint64_t)ldexp(frexp(fabs(b), &eb), 26);
    const uint64_t m = ma * mb;
    const int shift = ea + eb - 52 + POINT;
    struct wide x = { { 0 } };
    for (int i = 0; i < 64; i++)
        if ((m >> i & 1) != 0) x.word[(shift + i) / 32] |= 1u << (shift + i) % 32;
    return x;
}

static const struct { int exponent, fraction, bias, low; char kind;
} layout[] = {
    [TENSOR_F16] = { 5, 10, 15, 0, 'i' },    [TENSOR_BF16] = { 8, 7, 127, 0, 'i' },
    [TENSOR_TF32] = { 8, 10, 127, 13, 'i' }, [TENSOR_E5M2] = { 5, 2, 15, 0, 'i' },
    [TENSOR_E4M3] = { 4, 3, 7, 0, 'n' },     [TENSOR_E3M2] = { 3, 2, 3, 0, 'f' },
    [TENSOR_E2M3] = { 2, 3, 1, 0, 'f' },     [TENSOR_E2M1] = { 2, 1, 1, 0, 'f' },
};

static void split(enum tensor_format format, uint32_t code, int *sign, int *exponent, int *fraction)
{
    code >>= layout[format].low;
    *fraction = (int)(code % (1u << layout[format].fraction));
    code >>= layout[format].fraction;
    *exponent = (int)(code % (1u << layout[format].exponent));
    *sign = (int)(code >> layout[format].exponent) & 1;
}

double reference_value(enum tensor_format format, uint32_t code)
{
    int sign, exponent, fraction;
    split(format, code, &sign, &exponent, &fraction);
    const int all = (1 << layout[format].exponent) - 1, ones = (1 << layout[format].fraction) - 1;
    double value = ldexp(fraction, -layout[format].fraction) + (exponent != 0);
    value = ldexp(value, (exponent != 0 ? exponent : 1) - layout[format].bias);
    if (layout[format].kind == 'i' && exponent == all) value = fraction == 0 ? HUGE_VAL : NAN;
    if (layout[format].kind == 'n' && exponent == all && fraction == ones) value = NAN;
    return sign ? -value : value;
}

int reference_exponent(enum tensor_format format, uint32_t code)
{
    int sign, exponent, fraction;
    split(format, code, &sign, &exponent, &fraction);
    if (exponent == 0 && fraction == 0) return REFERENCE_ZERO;
    return (exponent != 0 ? exponent : 1) - layout[format].bias;
}

/* f32 as a format for c. */
static double c_value(enum tensor_output output, uint32_t code, int *exponent)
{
    if (output == TENSOR_TO_F16) {
        *exponent = reference_exponent(TENSOR_F16, code);
        return reference_value(TENSOR_F16, code);
    }
    float value;
    memcpy(&value, &code, 4);
    const int biased = (int)(code >> 23 & 255);
    *exponent = (code & 0x7fffffff) == 0 ? REFERENCE_ZERO : (biased != 0 ? biased : 1) - 127;
    return (double)value;
}

static uint32_t infinity(enum tensor_output output, bool negative)
{
    return output == TENSOR_TO_F16 ? (negative ? 0xfc00 : 0x7c00) : negative ? 0xff800000 : 0x7f800000;
}

/* A finite sum as a code of the output type. */
static uint32_t round_wide(enum tensor_output output, struct wide x)
{
    const bool half = output == TENSOR_TO_F16, negative = wide_bit(&x, 32 * WORDS - 1);
    const int stored = half ? 10 : 23, fraction = output == TENSOR_TO_F32_E8M13 ? 13 : stored,
              least = half ? -14 : -126;
    if (negative) wide_negate(&x);
    const int top = wide_top(&x);
    if (top < 0) return 0;
    int exponent = top - POINT;
    if (exponent < least) exponent = least;
    const int last = exponent - fraction + POINT;                                 /* the bit that is kept last */
    uint32_t code = 0;
    for (int bit = last + fraction; bit >= last; bit--) code = code << 1 | wide_bit(&x, bit);
    if (half && wide_bit(&x, last - 1) && (wide_below(&x, last - 1) || (code & 1) != 0)) code++;
    if (code == 0) return 0;
    /* the leading one counts as 1 in the exponent field; a carry out of the fraction does so by itself */
    code = (code << (stored - fraction)) + ((uint32_t)(exponent - least) << stored);
    if (code >> stored >= (half ? 31u : 255u)) return infinity(output, negative);
    return code | (uint32_t)negative << (half ? 15 : 31);
}

static uint32_t reference_step(const struct reference_model *model, enum tensor_format fa, const uint32_t *a,
                               enum tensor_format fb, const uint32_t *b, int length, uint32_t c)
{
    int largest, e;
    const double cv = c_value(model->output, c, &largest);
    double any = cv;                                        /* NaN or an infinity as IEEE arithmetic gives it */
    for (int k = 0; k < length; k++) {
        const double product = reference_value(fa, a[k]) * reference_value(fb, b[k]);
        any += isfinite(product) ? 0 : product;
        e = reference_exponent(fa, a[k]) + reference_exponent(fb, b[k]);
        if (e > largest) largest = e;
    }
    if (isnan(any)) return model->output == TENSOR_TO_F16 ? 0x7fff : 0x7fffffff;
    if (isinf(any)) return infinity(model->output, any < 0);
    if (largest < -133) largest = -133;
    struct wide sum = { { 0 } };
    for (int k = -1; k < length; k++) {
        const double x = k < 0 ? cv : reference_value(fa, a[k]), y = k < 0 ? 1 : reference_value(fb, b[k]);
        struct wide term = wide_product(x, y);
        wide_cut(&term, largest - model->fraction_bits + POINT);
        if ((x < 0) != (y < 0)) wide_negate(&term);
        wide_add(&sum, &term);
    }
    return round_wide(model->output, sum);
}

/* c + d to nearest, as an addition of the output type does it. */
static uint32_t late_sum(enum tensor_output output, uint32_t c, uint32_t d)
{
    int unused;
    const double x = c_value(output, c, &unused), y = c_value(output, d, &unused);
    if (isnan(x + y)) return output == TENSOR_TO_F16 ? 0x7fff : 0x7fffffff;
    if (output != TENSOR_TO_F16) {
        const volatile float sum = (float)x + (float)y;
        uint32_t code;
        memcpy(&code, (const void *)&sum, 4);
        return code;
    }
    if (isinf(x + y)) return infinity(output, x + y < 0);
    if (x + y == 0) return signbit(x) && signbit(y) ? 0x8000 : 0;
    struct wide sum = wide_product(x, 1), other = wide_product(y, 1);
    if (x < 0) wide_negate(&sum);
    if (y < 0) wide_negate(&other);
    wide_add(&sum, &other);
    return round_wide(output, sum);
}

uint32_t reference_dot(const struct reference_model *model, enum tensor_format fa, const uint32_t *a,
                       enum tensor_format fb, const uint32_t *b, int length, uint32_t c)
{
    uint32_t d = model->late_add ? 0 : c;
    for (int k = 0; k < length; k += model->group)
        d = reference_step(model, fa, a + k, fb, b + k, length - k < model->group ? length - k : model->group, d);
    return model->late_add ? late_sum(model->output, c, d) : d;
}
