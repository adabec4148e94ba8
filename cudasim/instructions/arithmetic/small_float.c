#include "small_float.h"

static const struct small_format e4m3 = { 4, 3, 0x7e, 0x7f }, e5m2 = { 5, 2, 0x7b, 0x7f }, e3m2 = { 3, 2, 0x1f, 0x1f },
                                 e2m3 = { 2, 3, 0x1f, 0x1f }, e2m1 = { 2, 1, 0x07, 0x07 };

const struct small_format *small_format_of(enum ptx_type type)
{
    switch (type) {
    case T_E4M3: case T_E4M3X2: case T_E4M3X4: return &e4m3;
    case T_E5M2: case T_E5M2X2: case T_E5M2X4: return &e5m2;
    case T_E3M2: case T_E3M2X2: case T_E3M2X4: return &e3m2;
    case T_E2M3: case T_E2M3X2: case T_E2M3X4: return &e2m3;
    case T_E2M1: case T_E2M1X2: case T_E2M1X4: return &e2m1;
    default: return NULL;
    }
}

static int32_t least_exponent(const struct small_format *f) { return 2 - (1 << (f->exponent_bits - 1)); }

struct real small_decode(const struct small_format *f, uint32_t code)
{
    const uint32_t magnitude = code & (bits_mask(small_bits(f) - 1) & UINT32_MAX),
                   exponent = magnitude >> f->mantissa_bits;
    struct real x = { .negative = (code >> (small_bits(f) - 1) & 1) != 0, .kind = REAL_FINITE };
    if (magnitude > f->largest) x.kind = f == &e5m2 && magnitude == 0x7c ? REAL_INFINITE : REAL_NAN;
    else if (magnitude == 0) x.kind = REAL_ZERO;
    if (x.kind != REAL_FINITE) return x;
    x.magnitude = magnitude & bits_mask(f->mantissa_bits);
    if (exponent != 0) x.magnitude |= (uint128)1 << f->mantissa_bits;
    x.exponent = least_exponent(f) - f->mantissa_bits + (exponent == 0 ? 0 : (int32_t)exponent - 1);
    return x;
}

static int32_t width_of(uint128 x)
{
    const uint64_t high = (uint64_t)(x >> 64), low = (uint64_t)x;
    return high != 0 ? 128 - __builtin_clzll(high) : 64 - __builtin_clzll(low);
}

/* magnitude >> shift, to nearest, ties to even. */
static uint32_t round_nearest(uint128 magnitude, int32_t shift)
{
    if (shift <= 0) return (uint32_t)(magnitude << -shift);
    if (shift > 127) return 0;
    const uint128 result = magnitude >> shift, rest = magnitude & (((uint128)1 << shift) - 1),
                  half = (uint128)1 << (shift - 1);
    return (uint32_t)result + (rest > half || (rest == half && (result & 1) != 0));
}

uint32_t small_encode(const struct small_format *f, const struct real *x)
{
    const uint32_t sign = x->negative ? 1u << (small_bits(f) - 1) : 0;
    if (x->kind == REAL_NAN) return f->nan;
    if (x->kind == REAL_ZERO) return sign;
    if (x->kind == REAL_INFINITE) return sign | f->largest;
    const int32_t least = least_exponent(f), own = x->exponent + width_of(x->magnitude) - 1,
                  exponent = own < least ? least : own;
    if (exponent - least > 1 << f->exponent_bits) return sign | f->largest;
    const uint32_t code = ((uint32_t)(exponent - least) << f->mantissa_bits) +
                          round_nearest(x->magnitude, exponent - f->mantissa_bits - x->exponent);
    return sign | (code > f->largest ? f->largest : code);
}
