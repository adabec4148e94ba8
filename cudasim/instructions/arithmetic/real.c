/* Exact arithmetic, rounded once. */
#include "real.h"

const struct real_format real_f16 = { 5, 10, true, 0x7fff };
const struct real_format real_bf16 = { 8, 7, true, 0x7fff };
const struct real_format real_f32 = { 8, 23, true, 0x7fffffff };
const struct real_format real_f64 = { 11, 52, true, UINT64_C(0xfff8000000000000) };
const struct real_format real_tf32 = { 8, 10, true, 0x3ffff };

const struct real_format *real_format_of(enum ptx_type type)
{
    switch (type) {
    case T_F16: case T_F16X2: return &real_f16;
    case T_BF16: case T_BF16X2: return &real_bf16;
    case T_F32: return &real_f32;
    case T_F64: return &real_f64;
    case T_TF32: return &real_tf32;
    default: return NULL;
    }
}

static int32_t bias_of(const struct real_format *f) { return (1 << (f->exponent_bits - 1)) - 1; }

static int width(uint128 x)
{
    const uint64_t high = (uint64_t)(x >> 64), low = (uint64_t)x;
    return high != 0 ? 128 - __builtin_clzll(high) : low != 0 ? 64 - __builtin_clzll(low) : 0;
}

struct real real_unpack(const struct real_format *f, uint64_t bits, bool ftz)
{
    const uint64_t mantissa = bits & bits_mask(f->mantissa_bits);
    const uint32_t largest = (1u << f->exponent_bits) - 1, exponent = (uint32_t)(bits >> f->mantissa_bits) & largest;
    struct real x = { .negative = (bits >> (f->mantissa_bits + f->exponent_bits) & 1) != 0 };
    if (f->has_infinity && exponent == largest) {
        x.kind = mantissa == 0 ? REAL_INFINITE : REAL_NAN;
        return x;
    }
    x.kind = (exponent == 0 && (mantissa == 0 || ftz)) ? REAL_ZERO : REAL_FINITE;
    if (x.kind == REAL_ZERO) return x;
    x.magnitude = exponent == 0 ? mantissa : mantissa | UINT64_C(1) << f->mantissa_bits;
    x.exponent = (int32_t)(exponent == 0 ? 1 : exponent) - bias_of(f) - f->mantissa_bits;
    return x;
}

/* magnitude >> shift, what is lost goes to *sticky. */
static uint128 shift_sticky(uint128 magnitude, int shift, bool *sticky)
{
    if (shift <= 0) return magnitude << -shift;
    if (shift > 127) {
        *sticky = *sticky || magnitude != 0;
        return 0;
    }
    *sticky = *sticky || (magnitude & (((uint128)1 << shift) - 1)) != 0;
    return magnitude >> shift;
}

/* Rounds magnitude * 2^-shift to an integer. */
static uint128 round_shift(uint128 magnitude, int shift, bool sticky, bool negative, enum rounding rounding)
{
    if (shift <= 0 && !sticky) return magnitude << -shift;
    bool below = sticky;                  /* something under the half bit */
    uint128 doubled = shift_sticky(magnitude, shift - 1, &below);
    const bool half = (doubled & 1) != 0;
    uint128 result = doubled >> 1;
    bool up = false;
    switch (rounding) {
    case ROUND_RZ: case ROUND_RZI: break;
    case ROUND_RM: case ROUND_RMI: up = negative && (half || below); break;
    case ROUND_RP: case ROUND_RPI: up = !negative && (half || below); break;
    case ROUND_RNA: up = half; break;
    default: up = half && (below || (result & 1) != 0); break;
    }
    return result + up;
}

static uint64_t overflow(const struct real_format *f, bool negative, enum rounding rounding)
{
    const uint64_t infinity = bits_mask(f->exponent_bits) << f->mantissa_bits;
    const bool to_largest =
        rounding == ROUND_RZ || (rounding == ROUND_RM && !negative) || (rounding == ROUND_RP && negative);
    return to_largest ? infinity - 1 : infinity;
}

/* Whether a number with leading bit `top`, rounded as if exponents had no lower end, becomes 2^lowest.  If not, it is
 * subnormal, and hardware flushes it although it may round to the smallest normal number on the grid of the subnormal
 * ones. */
static bool rounds_up_to(const struct real_format *f, const struct real *x, int32_t top, int32_t lowest,
                         enum rounding rounding)
{
    if (top != lowest - 1) return false;
    return round_shift(x->magnitude, top - f->mantissa_bits - x->exponent, x->sticky, x->negative, rounding) >>
           (f->mantissa_bits + 1) != 0;
}

uint64_t real_pack(const struct real_format *f, const struct real *x, enum rounding rounding, bool ftz)
{
    const uint64_t sign = (uint64_t)x->negative << (f->mantissa_bits + f->exponent_bits);
    if (x->kind == REAL_NAN) return f->nan;
    if (x->kind == REAL_INFINITE) return sign | bits_mask(f->exponent_bits) << f->mantissa_bits;
    if (x->kind == REAL_ZERO) return sign;
    const int32_t lowest = 1 - bias_of(f);                                /* exponent of the smallest normal number */
    int32_t top = x->exponent + width(x->magnitude) - 1;                  /* exponent of the leading bit */
    if (ftz && top < lowest && !rounds_up_to(f, x, top, lowest, rounding)) return sign;
    if (top < lowest) top = lowest;
    const int32_t unit = top - f->mantissa_bits;                          /* exponent of the last bit that is kept */
    uint128 kept = round_shift(x->magnitude, unit - x->exponent, x->sticky, x->negative, rounding);
    if (kept >> (f->mantissa_bits + 1) != 0) kept >>= 1, top++;           /* rounding carried: the lost bit is 0 */
    if (kept >> f->mantissa_bits == 0) return sign | (uint64_t)kept;
    if (top > bias_of(f)) return sign | overflow(f, x->negative, rounding);
    return sign | (uint64_t)(top + bias_of(f)) << f->mantissa_bits | ((uint64_t)kept & bits_mask(f->mantissa_bits));
}

static struct real special(enum real_kind kind, bool negative)
{
    return (struct real){ .kind = kind, .negative = negative };
}

/* Both magnitudes on one exponent; the larger number keeps all its bits. */
static struct real add_finite(struct real a, struct real b, enum rounding rounding)
{
    const int top_a = a.exponent + width(a.magnitude), top_b = b.exponent + width(b.magnitude);
    if (top_b > top_a) {
        const struct real swap = a;
        a = b, b = swap;
    }
    /* a's leading bit goes to bit 125, so that the sum fits and b loses bits only far below a's last kept one */
    const int up = 125 - (width(a.magnitude) - 1);
    a.magnitude <<= up;
    a.exponent -= up;
    bool sticky = false;
    b.magnitude = shift_sticky(b.magnitude, a.exponent - b.exponent, &sticky);
    struct real r = { .kind = REAL_FINITE, .negative = a.negative, .exponent = a.exponent, .sticky = sticky };
    if (a.negative == b.negative) {
        r.magnitude = a.magnitude + b.magnitude;
        return r;
    }
    if (b.magnitude > a.magnitude) {
        r.negative = b.negative;
        r.magnitude = b.magnitude - a.magnitude;
        return r;
    }
    r.magnitude = a.magnitude - b.magnitude - sticky;
    if (r.magnitude == 0 && !sticky) return special(REAL_ZERO, rounding == ROUND_RM);
    return r;
}

struct real real_add(const struct real *a, const struct real *b, enum rounding rounding)
{
    if (a->kind == REAL_NAN || b->kind == REAL_NAN) return special(REAL_NAN, false);
    if (a->kind == REAL_INFINITE)
        return b->kind == REAL_INFINITE && a->negative != b->negative ? special(REAL_NAN, false) : *a;
    if (b->kind == REAL_INFINITE) return *b;
    if (a->kind == REAL_ZERO && b->kind == REAL_ZERO)
        return special(REAL_ZERO, a->negative == b->negative ? a->negative : rounding == ROUND_RM);
    if (a->kind == REAL_ZERO) return *b;
    if (b->kind == REAL_ZERO) return *a;
    return add_finite(*a, *b, rounding);
}

struct real real_multiply(const struct real *a, const struct real *b)
{
    const bool negative = a->negative != b->negative;
    if (a->kind == REAL_NAN || b->kind == REAL_NAN) return special(REAL_NAN, false);
    if (a->kind == REAL_INFINITE || b->kind == REAL_INFINITE)
        return a->kind == REAL_ZERO || b->kind == REAL_ZERO ? special(REAL_NAN, false)
                                                            : special(REAL_INFINITE, negative);
    if (a->kind == REAL_ZERO || b->kind == REAL_ZERO) return special(REAL_ZERO, negative);
    return (struct real){
        .kind = REAL_FINITE, .negative = negative, .exponent = a->exponent + b->exponent,
        .magnitude = a->magnitude * b->magnitude
    };
}

struct real real_divide(const struct real *a, const struct real *b)
{
    const bool negative = a->negative != b->negative;
    if (a->kind == REAL_NAN || b->kind == REAL_NAN) return special(REAL_NAN, false);
    if (a->kind == REAL_INFINITE)
        return b->kind == REAL_INFINITE ? special(REAL_NAN, false) : special(REAL_INFINITE, negative);
    if (b->kind == REAL_INFINITE) return special(REAL_ZERO, negative);
    if (b->kind == REAL_ZERO) return a->kind == REAL_ZERO ? special(REAL_NAN, false) : special(REAL_INFINITE, negative);
    if (a->kind == REAL_ZERO) return special(REAL_ZERO, negative);
    const int up = 127 - (width(a->magnitude) - 1);
    const uint128 numerator = a->magnitude << up;
    return (struct real){ .kind = REAL_FINITE, .negative = negative, .exponent = a->exponent - up - b->exponent,
                          .magnitude = numerator / b->magnitude, .sticky = numerator % b->magnitude != 0 };
}

/* The largest r with r * r <= x. */
static uint128 integer_root(uint128 x)
{
    uint128 r = 0;
    for (uint128 bit = (uint128)1 << 62; bit != 0; bit >>= 1)
        if ((r | bit) * (r | bit) <= x) r |= bit;
    return r;
}

struct real real_square_root(const struct real *a)
{
    if (a->kind == REAL_NAN || (a->negative && a->kind != REAL_ZERO)) return special(REAL_NAN, false);
    if (a->kind != REAL_FINITE) return *a;
    int up = 124 - (width(a->magnitude) - 1);
    if (((a->exponent - up) & 1) != 0) up--;
    const uint128 x = a->magnitude << up, root = integer_root(x);
    return (struct real){ .kind = REAL_FINITE, .exponent = (a->exponent - up) / 2, .magnitude = root,
                          .sticky = root * root != x };
}

uint64_t real_to_integer(const struct real *x, enum rounding rounding, uint32_t bits, bool is_signed, uint64_t nan)
{
    if (x->kind == REAL_NAN) return nan;
    if (x->kind == REAL_ZERO) return 0;
    const uint64_t lowest = is_signed ? UINT64_C(1) << (bits - 1) : 0,
                   highest = is_signed ? lowest - 1 : bits_mask(bits);
    if (x->kind == REAL_INFINITE || x->exponent + width(x->magnitude) > 66) return x->negative ? lowest : highest;
    const uint128 magnitude = round_shift(x->magnitude, -x->exponent, x->sticky, x->negative, rounding);
    if (x->negative) {
        if (magnitude >= lowest) return lowest;
        return (0 - (uint64_t)magnitude) & bits_mask(bits);
    }
    return magnitude > highest ? highest : (uint64_t)magnitude;
}

struct real real_from_integer(uint64_t value, uint32_t bits, bool is_signed)
{
    const int64_t extended = is_signed ? sign_extend(value, bits) : 0;
    const bool negative = extended < 0;
    const uint64_t magnitude = negative ? 0 - (uint64_t)extended : value & bits_mask(bits);
    return (struct real){ .kind = magnitude == 0 ? REAL_ZERO : REAL_FINITE, .negative = negative,
                          .magnitude = magnitude };
}

struct real real_round_integral(const struct real *x, enum rounding rounding)
{
    if (x->kind != REAL_FINITE || x->exponent >= 0) return *x;
    struct real r = { .kind = REAL_FINITE, .negative = x->negative };
    r.magnitude = round_shift(x->magnitude, -x->exponent, x->sticky, x->negative, rounding);
    if (r.magnitude == 0) r.kind = REAL_ZERO;
    return r;
}
