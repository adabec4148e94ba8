#include "block_scaled_reference.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "tensor_reference.h"

double block_scale_value(enum tensor_scale_format format, uint32_t code)
{
    if (format == TENSOR_UE8M0) return code == 255 ? (double)NAN : ldexp(1, (int)code - 127);
    return reference_value(TENSOR_E4M3, code & 0x7f);
}

/* ---- a whole product ---- */

uint32_t block_code(const struct block_matrix *m, size_t row, size_t k)
{
    const uint8_t *codes = m->codes + row * m->pitch;
    return m->format == TENSOR_E2M1 ? (uint32_t)codes[k / 2] >> k % 2 * 4 & 15 : codes[k];
}

static double scale_of(const struct block_matrix *m, size_t row, size_t k)
{
    return block_scale_value(m->scale, m->scales[row * m->scale_pitch + k / m->block]);
}

double block_value(const struct block_matrix *m, size_t row, size_t k)
{
    return reference_value(m->format, block_code(m, row, k)) * scale_of(m, row, k);
}

/* 2^e of a scale's exponent: no less than 2^-6 for a ue4m3 that is not zero. */
static double scale_power(enum tensor_scale_format format, double x)
{
    int e;
    if (x == 0 || !isfinite(x)) return 0;
    (void)frexp(x, &e);
    return ldexp(1, format == TENSOR_UE4M3 && e - 1 < -6 ? -6 : e - 1);
}

struct block_sum block_dot(const struct block_matrix *a, size_t i, const struct block_matrix *b, size_t j,
                           size_t length)
{
    struct block_sum s = { 0, 0, 0 };
    for (size_t k = 0; k < length; k++) {
        const long double product = (long double)block_value(a, i, k) * (long double)block_value(b, j, k);
        const double scales = scale_power(a->scale, scale_of(a, i, k)) * scale_power(b->scale, scale_of(b, j, k));
        const int ea = reference_exponent(a->format, block_code(a, i, k)),
                  eb = reference_exponent(b->format, block_code(b, j, k));
        const double aligned = a->format == TENSOR_E2M1 && b->format == TENSOR_E2M1 ? scales : 0;
        const double alone = ea == REFERENCE_ZERO || eb == REFERENCE_ZERO ? 0 : ldexp(scales, ea + eb);
        s.sum += product;
        s.magnitude += fabsl(product);
        s.alignment = fmax(s.alignment, fmax(aligned, alone));
    }
    return s;
}

double block_bound(const struct block_sum *s, size_t instructions, size_t each, int fraction_bits)
{
    const double largest = fmax(s->alignment, (double)s->magnitude);
    return (double)instructions
           * ((double)(each + 1) * ldexp(largest, -fraction_bits) + ldexp((double)s->magnitude, -23));
}

/* ---- one instruction ---- */

struct term { double significand; int exponent; };

/* Of a value whose type has no smaller exponent than `least`. */
static struct term term_of(double value, int least)
{
    int e;
    const double half = frexp(value, &e);
    if (value == 0) return (struct term){ 0, least };
    if (e - 1 < least) return (struct term){ ldexp(half, e - least), least };
    return (struct term){ 2 * half, e - 1 };
}

static double f32_value(uint32_t code)
{
    float value;
    memcpy(&value, &code, 4);
    return (double)value;
}
static uint32_t f32_code(float value)
{
    uint32_t code;
    memcpy(&code, &value, 4);
    return code;
}

/* Toward zero. */
static uint32_t f32_cut(double x)
{
    int e;
    if (x == 0) return 0;
    (void)frexp(x, &e);
    const int last = (e - 1 < -126 ? -126 : e - 1) - 23;
    const double kept = ldexp(trunc(ldexp(x, -last)), last);
    if (fabs(kept) >= 0x1p128) return f32_code(x < 0 ? -(float)INFINITY : (float)INFINITY);
    return kept == 0 ? 0 : f32_code((float)kept);
}

/* To nearest, ties to even. */
static uint32_t f16_nearest(double x)
{
    int e;
    if (x == 0) return 0;
    (void)frexp(x, &e);
    const int last = (e - 1 < -14 ? -14 : e - 1) - 10;
    const double kept = fabs(ldexp(nearbyint(ldexp(x, -last)), last));
    const uint32_t sign = x < 0 ? 0x8000 : 0;
    if (kept >= 65536) return sign | 0x7c00;
    if (kept == 0) return 0;
    if (kept < 0x1p-14) return sign | (uint32_t)ldexp(kept, 24);
    (void)frexp(kept, &e);
    return sign | ((uint32_t)(e + 14) << 10) | ((uint32_t)ldexp(kept, 11 - e) & 0x3ff);
}

static double fused(const struct term *term, int count, int fraction_bits, int least)
{
    int largest = least;
    for (int i = 0; i < count; i++) largest = term[i].exponent > largest ? term[i].exponent : largest;
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += trunc(ldexp(term[i].significand, fraction_bits + term[i].exponent - largest));
    return ldexp(sum, largest - fraction_bits);
}

/* A scale: ue8m0 is a power of two, ue4m3 has the exponents of e4m3. */
static struct term scale_term(enum tensor_scale_format format, uint32_t code)
{
    const double value = block_scale_value(format, code);
    return value == 0 ? (struct term){ 0, -126 } : term_of(value, format == TENSOR_UE8M0 ? -127 : -6);
}

uint32_t block_model_fp4(const uint32_t *a, const uint32_t *b, enum tensor_scale_format format, const uint32_t *sa,
                         const uint32_t *sb, int length, int block, uint32_t c)
{
    enum { GROUP = 16, MOST = 8 };
    struct term term[MOST + 1];
    const double cv = f32_value(c);
    bool nan = isnan(cv);
    for (int j = 0; j < length / block; j++)
        nan |= isnan(block_scale_value(format, sa[j])) || isnan(block_scale_value(format, sb[j]));
    if (nan) return 0x7fffffff;
    if (isinf(cv)) return c;
    for (int g = 0; g < length / GROUP; g++) {
        const struct term x = scale_term(format, sa[g * GROUP / block]), y = scale_term(format, sb[g * GROUP / block]);
        double sum = 0;
        for (int k = g * GROUP; k < (g + 1) * GROUP; k++)
            sum += reference_value(TENSOR_E2M1, a[k]) * reference_value(TENSOR_E2M1, b[k]);
        term[g] = (struct term){ sum * x.significand * y.significand, x.exponent + y.exponent };
    }
    term[length / GROUP] = term_of(cv, -126);
    return f32_cut(fused(term, length / GROUP + 1, 35, -126));
}

uint32_t block_model_bytes(enum tensor_format fa, const uint32_t *a, enum tensor_format fb, const uint32_t *b,
                           uint32_t sa, uint32_t sb, int length, bool half, uint32_t c)
{
    enum { MOST = 128, FAR = -10000 };
    struct term term[MOST + 1];
    const double x = block_scale_value(TENSOR_UE8M0, sa), y = block_scale_value(TENSOR_UE8M0, sb);
    const double cv = half ? reference_value(TENSOR_F16, c) : f32_value(c);
    double any = x * 0 + y * 0 + (isfinite(cv) ? 0 : cv); /* NaN or an infinity as IEEE arithmetic gives it */
    for (int k = 0; k < length; k++) {
        const double va = reference_value(fa, a[k]), vb = reference_value(fb, b[k]), product = va * vb;
        if (!isfinite(product)) any += product;
        const int ea = reference_exponent(fa, a[k]), eb = reference_exponent(fb, b[k]);
        if (product == 0 || !isfinite(product)) term[k] = (struct term){ 0, FAR };
        else term[k] = (struct term){ ldexp(product, -ea - eb), ea + eb + (int)sa + (int)sb - 254 };
    }
    if (isnan(any)) return half ? 0x7fff : 0x7fffffff;
    if (isinf(any)) return half ? (any < 0 ? 0xfc00 : 0x7c00) : any < 0 ? 0xff800000 : 0x7f800000;
    term[length] = cv == 0 ? (struct term){ 0, FAR } : term_of(cv, half ? -14 : -126);
    const double d = fused(term, length + 1, 25, -133);
    return half ? f16_nearest(d) : f32_cut(d);
}
