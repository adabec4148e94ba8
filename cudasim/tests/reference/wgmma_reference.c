#include "wgmma_reference.h"

#include <stddef.h>

__extension__ typedef __int128 int128;

/* ---- numbers ---- */

struct format {
    uint32_t exponent, mantissa, bias;
    bool infinities;
};
static const struct format formats[] = {
    [E_F16] = { 5, 10, 15, true }, [E_BF16] = { 8, 7, 127, true }, [E_TF32] = { 8, 10, 127, true },
    [E_E4M3] = { 4, 3, 7, false }, [E_E5M2] = { 5, 2, 15, true },
};

uint32_t element_bits(enum element e)
{
    static const uint32_t bits[] = { 16, 16, 32, 8, 8, 8, 8, 32 };
    return bits[e];
}

/* significand * 2^(exponent - mantissa bits); not a number, infinite: kind. */
struct real {
    int64_t significand;
    int32_t exponent;
    uint32_t mantissa;
    bool nan, infinite, negative;
};

static struct real unpack(uint32_t code, uint32_t exponent_bits, uint32_t mantissa_bits, uint32_t bias, bool infinities)
{
    const uint32_t m = code & ((1u << mantissa_bits) - 1), e = code >> mantissa_bits & ((1u << exponent_bits) - 1);
    const uint32_t top = (1u << exponent_bits) - 1;
    struct real r = { .mantissa = mantissa_bits, .negative = code >> (mantissa_bits + exponent_bits) & 1 };
    if (e == top && (infinities || m == (1u << mantissa_bits) - 1)) {
        r.infinite = infinities && m == 0;
        r.nan = !r.infinite;
        return r;
    }
    r.significand = e == 0 ? m : m | 1u << mantissa_bits;
    r.exponent = e != 0 ? (int32_t)e - (int32_t)bias : m != 0 ? 1 - (int32_t)bias : -126;
    if (r.negative) r.significand = -r.significand;
    return r;
}

static struct real element_of(enum element type, uint32_t code, bool negate)
{
    const struct format *f = &formats[type];
    if (type == E_TF32) code >>= 13;
    struct real r = unpack(code, f->exponent, f->mantissa, f->bias, f->infinities);
    if (negate) r.significand = -r.significand, r.negative = !r.negative;
    return r;
}

static struct real accumulator_of(enum result d, uint32_t code)
{
    return d == R_F16 ? unpack(code, 5, 10, 15, true) : unpack(code, 8, 23, 127, true);
}

/* value * 2^(scale), toward zero to `mantissa` bits (f16: to nearest even). */
static uint32_t pack(enum result d, int128 value, int32_t scale, uint32_t mantissa)
{
    const bool negative = value < 0;
    const int32_t least = d == R_F16 ? -14 : -126, most = d == R_F16 ? 15 : 127;
    const uint32_t sign = d == R_F16 ? 0x8000u : 0x80000000u, infinity = d == R_F16 ? 0x7c00u : 0x7f800000u;
    if (negative) value = -value;
    if (value == 0) return 0;
    int32_t high = 126;
    while ((value >> high & 1) == 0) high--;
    int32_t exponent = high + scale;
    if (exponent < least) exponent = least;
    int32_t drop = exponent - (int32_t)mantissa - scale;
    int128 kept = drop > 120 ? 0 : drop > 0 ? value >> drop : value << -drop;
    if (d == R_F16 && drop > 0 && drop <= 120) {
        const int128 rest = value - (kept << drop), half = (int128)1 << (drop - 1);
        if (rest > half || (rest == half && (kept & 1) != 0)) kept++;
    }
    if (kept == 0) return 0;
    if (kept >> (mantissa + 1) != 0) kept >>= 1, exponent++;
    if (exponent > most) return infinity | (negative ? sign : 0);
    const uint32_t width = d == R_F16 ? 10 : 23;
    const bool normal = (kept >> mantissa & 1) != 0;
    const uint32_t fraction = (uint32_t)(kept & (((int128)1 << mantissa) - 1)) << (width - mantissa);
    return (negative ? sign : 0) | (normal ? (uint32_t)(exponent - least + 1) : 0) << width | fraction;
}

/* All products of the instruction and the old accumulator, aligned to the largest exponent and cut; 13 fraction bits
 * for 8-bit types, else 25 (MMA-Sim, arXiv 2511.10909). */
static uint32_t real_dot(const struct shape *s, const uint32_t *a, const uint32_t *column, const uint32_t *b,
                         uint32_t c_code)
{
    const bool small = element_bits(s->a) == 8;
    const int32_t fraction = small ? 13 : 25;
    const struct real c = accumulator_of(s->d, c_code);
    bool nan = c.nan, plus = c.infinite && !c.negative, minus = c.infinite && c.negative;
    int32_t largest = c.exponent > -126 ? c.exponent : -126;
    for (uint32_t i = 0; i < s->a_k; i++) {
        const struct real x = element_of(s->a, a[i], s->negate_a), y = element_of(s->b, b[column[i]], s->negate_b);
        const bool x_zero = x.significand == 0 && !x.infinite && !x.nan,
                   y_zero = y.significand == 0 && !y.infinite && !y.nan;
        nan |= x.nan || y.nan || (x.infinite && y_zero) || (y.infinite && x_zero);
        if (x.infinite || y.infinite) plus |= x.negative == y.negative, minus |= x.negative != y.negative;
        if (x.exponent + y.exponent > largest) largest = x.exponent + y.exponent;
    }
    if (nan || (plus && minus)) return s->d == R_F16 ? 0x7fff : 0x7fffffff;
    if (plus || minus)
        return (s->d == R_F16 ? 0x7c00u : 0x7f800000u) | (minus ? (s->d == R_F16 ? 0x8000u : 0x80000000u) : 0);
    int128 sum = 0;
    for (uint32_t i = 0; i <= s->a_k; i++) {
        struct real x = c, y = { .significand = 1 };
        if (i < s->a_k) x = element_of(s->a, a[i], s->negate_a), y = element_of(s->b, b[column[i]], s->negate_b);
        int128 term = (int128)x.significand * y.significand;
        const bool negative = term < 0;
        if (negative) term = -term;
        const int32_t shift = fraction + x.exponent + y.exponent - largest - (int32_t)(x.mantissa + y.mantissa);
        term = shift >= 0 ? term << shift : shift > -100 ? term >> -shift : 0;
        sum += negative ? -term : term;
    }
    return pack(s->d, sum, largest - fraction, s->d == R_F16 ? 10 : small ? 13 : 23);
}

static uint32_t integer_dot(const struct shape *s, const uint32_t *a, const uint32_t *column, const uint32_t *b,
                            uint32_t c)
{
    int64_t sum = (int32_t)c;
    for (uint32_t i = 0; i < s->a_k; i++) {
        if (s->a == E_B1) sum += __builtin_popcount(a[i] & b[i]);
        else
            sum += (s->a == E_S8 ? (int8_t)a[i] : (int32_t)a[i])
                   * (s->b == E_S8 ? (int8_t)b[column[i]] : (int32_t)b[column[i]]);
    }
    if (s->saturate && sum > INT32_MAX) sum = INT32_MAX;
    if (s->saturate && sum < INT32_MIN) sum = INT32_MIN;
    return (uint32_t)(uint64_t)sum;
}

void reference_product(const struct shape *s, const uint32_t *a, const uint32_t *column, const uint32_t *b,
                       bool accumulate, uint32_t *d)
{
    for (uint32_t i = 0; i < 64; i++)
        for (uint32_t j = 0; j < s->n; j++) {
            uint32_t *to = &d[i * s->n + j];
            const uint32_t c = accumulate ? *to : 0, *row = a + i * s->a_k, *where = column + i * s->a_k,
                           *other = b + j * s->k;
            *to = s->d == R_S32 ? integer_dot(s, row, where, other, c) : real_dot(s, row, where, other, c);
        }
}

/* ---- layouts: PTX ISA 9.7.15.5.1.2, "Canonical Layouts", in elements; T elements are 16 bytes ---- */

uint32_t place(const struct placement *p, uint32_t bits, uint32_t row, uint32_t k)
{
    const uint32_t T = 128 / bits, W = p->swizzle == 0 ? 1 : p->swizzle / 16, size = bits / 8;
    uint32_t bytes;
    if (!p->mn_major) {
        /* ((8,m),(T,2k)) : ((T,SBO),(1,LBO)) without a swizzle, ((W*T,SBO),(1,T)) with one */
        bytes =
            row % 8 * W * T * size + row / 8 * p->stride + k % T * size + k / T * (p->swizzle == 0 ? p->leading : 16);
    } else if (p->swizzle == 0) {
        /* ((T,1,m),(8,k)) : ((1,T,SBO),(1T,LBO)) */
        bytes = row % T * size + row / T * p->stride + k % 8 * T * size + k / 8 * p->leading;
    } else {
        /* ((T,W,m),(8,k)) : ((1,T,LBO),(W*T,SBO)) */
        bytes = row % T * size + row / T % W * T * size + row / (T * W) * p->leading + k % 8 * W * T * size
                + k / 8 * p->stride;
    }
    const uint32_t address = p->start + bytes, from_pattern = address - p->pattern;
    /* Swizzle<B,4,3>: bits 4.. of the address are exchanged by bits 7.. */
    const uint32_t mask = p->swizzle == 0 ? 0 : p->swizzle / 16 - 1;
    return address ^ (from_pattern >> 7 & mask) << 4;
}

uint64_t descriptor(const struct placement *p)
{
    const uint64_t mode = p->swizzle == 0 ? 0 : p->swizzle == 128 ? 1 : p->swizzle == 64 ? 2 : 3;
    return (p->start & 0x3ffff) >> 4 | (uint64_t)(p->leading >> 4) << 16 | (uint64_t)(p->stride >> 4) << 32 |
           (uint64_t)(p->pattern >> 7 & 7) << 49 | mode << 62;
}

/* ---- fragments: PTX ISA 9.7.15.5.1.1 ---- */

struct holder holder_of_a(uint32_t bits, uint32_t row, uint32_t k)
{
    const uint32_t per_register = 32 / bits, group = row % 8, in_group = k / per_register % 4;
    return (struct holder){ .thread = row / 16 * 32 + group * 4 + in_group,
                            .index = row / 8 % 2 + 2 * (k / per_register / 4),
                            .shift = k % per_register * bits };
}

struct holder holder_of_d(enum result d, uint32_t row, uint32_t n)
{
    const uint32_t thread = row / 16 * 32 + row % 8 * 4 + n % 8 / 2;
    const uint32_t index = n / 8 * 4 + row / 8 % 2 * 2 + n % 2;
    return (struct holder){ .thread = thread, .index = d == R_F16 ? index / 2 : index,
                            .shift = d == R_F16 ? index % 2 * 16 : 0 };
}
