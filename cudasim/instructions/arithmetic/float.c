/* f32 and f64 arithmetic (PTX ISA 9.7.3): add, sub, mul, fma, mad, div, rcp, sqrt, abs, neg, min, max, testp, copysign;
 * f32x2.
 *
 * .rn uses the host's arithmetic where it is the same (the machine's threads run in the default mode), all else is
 * exact and rounded once.  f32 results that are NaN are 0x7fffffff; f64 keeps the payload of a NaN operand: of the
 * second before the third before the first, as hardware does, but of the first of div. */
#include "instructions/table/families.h"
#include "real.h"

#include <math.h>

enum operation { ADD, SUB, MUL, FMA, DIV, ROOT };

static struct real exact(enum operation operation, const struct real *a, const struct real *b, const struct real *c,
                         enum rounding rounding)
{
    struct real minus, product;
    switch (operation) {
    case ADD: return real_add(a, b, rounding);
    case SUB:
        minus = *b;
        minus.negative = !minus.negative;
        return real_add(a, &minus, rounding);
    case MUL: return real_multiply(a, b);
    case FMA:
        product = real_multiply(a, b);
        return real_add(&product, c, rounding);
    case DIV: return real_divide(a, b);
    default: return real_square_root(a);
    }
}

static uint64_t rounded(const struct real_format *f, enum operation operation, uint64_t a, uint64_t b, uint64_t c,
                        enum rounding rounding, bool ftz)
{
    const struct real x = real_unpack(f, a, ftz), y = real_unpack(f, b, ftz), z = real_unpack(f, c, ftz);
    const struct real r = exact(operation, &x, &y, &z, rounding);
    return real_pack(f, &r, rounding, ftz);
}

static uint64_t finish32(float value, bool ftz)
{
    const uint64_t bits = f32_bits(value);
    if (is_nan32(bits)) return real_f32.nan;
    return ftz ? flush32(bits) : bits;
}

/* Hardware flushes what is subnormal before it is rounded: the smallest normal number may have been. */
static bool perhaps_rounded_up(uint64_t bits) { return (bits & 0x7fffffff) == 0x00800000; }

/* .sat: to [0, 1]; NaN and -0 become +0. */
static uint64_t saturate32(uint64_t bits)
{
    const float x = bits_f32(bits);
    return x > 1.0f ? 0x3f800000 : x > 0.0f ? bits : 0;
}

static uint64_t nearest32(enum operation operation, uint64_t a, uint64_t b, uint64_t c, bool ftz)
{
    const float x = bits_f32(ftz ? flush32(a) : a), y = bits_f32(ftz ? flush32(b) : b),
                z = bits_f32(ftz ? flush32(c) : c);
    switch (operation) {
    case ADD: return finish32(x + y, ftz);
    case SUB: return finish32(x - y, ftz);
    case MUL: return finish32(x * y, ftz);
    case FMA: return finish32(fmaf(x, y, z), ftz);
    case DIV: return finish32(x / y, ftz);
    default: return finish32(sqrtf(x), ftz);
    }
}

static uint64_t compute32(const struct insn *in, enum operation operation, uint64_t a, uint64_t b, uint64_t c)
{
    const bool ftz = (in->flags & FLAG_FTZ) != 0;
    uint64_t d;
    if (in->rounding > ROUND_RN) d = rounded(&real_f32, operation, a, b, c, (enum rounding)in->rounding, ftz);
    else d = nearest32(operation, a, b, c, ftz);
    if (ftz && in->rounding <= ROUND_RN && perhaps_rounded_up(d))
        d = rounded(&real_f32, operation, a, b, c, ROUND_RN, true);
    return (in->flags & FLAG_SAT) != 0 ? saturate32(d) : d;
}

static uint64_t nearest64(enum operation operation, uint64_t a, uint64_t b, uint64_t c)
{
    const double x = bits_f64(a), y = bits_f64(b), z = bits_f64(c);
    switch (operation) {
    case ADD: return f64_bits(x + y);
    case SUB: return f64_bits(x - y);
    case MUL: return f64_bits(x * y);
    case FMA: return f64_bits(fma(x, y, z));
    case DIV: return f64_bits(x / y);
    default: return f64_bits(sqrt(x));
    }
}

static uint64_t compute64(const struct insn *in, enum operation operation, uint64_t a, uint64_t b, uint64_t c)
{
    const uint64_t quiet = UINT64_C(1) << 51;
    if (operation == DIV && is_nan64(a)) return a | quiet;
    if (is_nan64(b)) return b | quiet;
    if (is_nan64(c)) return c | quiet;
    if (is_nan64(a)) return a | quiet;
    const uint64_t d = in->rounding <= ROUND_RN
                           ? nearest64(operation, a, b, c)
                           : rounded(&real_f64, operation, a, b, c, (enum rounding)in->rounding, false);
    return is_nan64(d) ? real_f64.nan : d;
}

static uint64_t compute(const struct insn *in, enum operation operation, uint64_t a, uint64_t b, uint64_t c)
{
    return in->type[0] == T_F64 ? compute64(in, operation, a, b, c) : compute32(in, operation, a, b, c);
}

/* add{.rnd}{.ftz}{.sat} d, a, b and so on */
static trap op_add(struct warp *w, const struct insn *in, uint32_t lanes) { BINARY(compute(in, ADD, a, b, 0)); }
static trap op_sub(struct warp *w, const struct insn *in, uint32_t lanes) { BINARY(compute(in, SUB, a, b, 0)); }
static trap op_mul(struct warp *w, const struct insn *in, uint32_t lanes) { BINARY(compute(in, MUL, a, b, 0)); }
static trap op_fma(struct warp *w, const struct insn *in, uint32_t lanes) { TERNARY(compute(in, FMA, a, b, c)); }
static trap op_div(struct warp *w, const struct insn *in, uint32_t lanes) { BINARY(compute(in, DIV, a, b, 0)); }
static trap op_sqrt(struct warp *w, const struct insn *in, uint32_t lanes) { UNARY(compute(in, ROOT, a, 0, 0)); }
static trap op_rcp(struct warp *w, const struct insn *in, uint32_t lanes)
{
    const uint64_t one = in->type[0] == T_F64 ? f64_bits(1.0) : f32_bits(1.0f);
    UNARY(compute(in, DIV, one, a, 0));
}

/* f32x2: both halves of 64 bits */
static uint64_t both(const struct insn *in, enum operation operation, uint64_t a, uint64_t b, uint64_t c)
{
    return compute32(in, operation, a & UINT32_MAX, b & UINT32_MAX, c & UINT32_MAX) |
           compute32(in, operation, a >> 32, b >> 32, c >> 32) << 32;
}
static trap op_add_x2(struct warp *w, const struct insn *in, uint32_t lanes) { BINARY(both(in, ADD, a, b, 0)); }
static trap op_sub_x2(struct warp *w, const struct insn *in, uint32_t lanes) { BINARY(both(in, SUB, a, b, 0)); }
static trap op_mul_x2(struct warp *w, const struct insn *in, uint32_t lanes) { BINARY(both(in, MUL, a, b, 0)); }
static trap op_fma_x2(struct warp *w, const struct insn *in, uint32_t lanes) { TERNARY(both(in, FMA, a, b, c)); }

/* abs, neg: of the sign bit; .ftz flushes.  On hardware they are additions: NaN is 0x7fffffff, or, of f64, quiet with
 * its sign. */
static uint64_t sign_of(const struct insn *in) { return in->type[0] == T_F64 ? UINT64_C(1) << 63 : UINT64_C(1) << 31; }
static uint64_t flushed(const struct insn *in, uint64_t a) { return (in->flags & FLAG_FTZ) != 0 ? flush32(a) : a; }
static uint64_t signed_as(const struct insn *in, uint64_t a, uint64_t value)
{
    if (in->type[0] == T_F64) return is_nan64(a) ? a | UINT64_C(1) << 51 : value;
    return is_nan32(a) ? real_f32.nan : value;
}
static trap op_abs(struct warp *w, const struct insn *in, uint32_t lanes)
{
    UNARY(signed_as(in, a, flushed(in, a) & ~sign_of(in)));
}
static trap op_neg(struct warp *w, const struct insn *in, uint32_t lanes)
{
    UNARY(signed_as(in, a, flushed(in, a) ^ sign_of(in)));
}

/* copysign d, a, b   b with the sign of a */
static trap op_copysign(struct warp *w, const struct insn *in, uint32_t lanes)
{
    BINARY((b & ~sign_of(in)) | (a & sign_of(in)));
}

/* min, max: the other operand where one is NaN, NaN where both are or with .NaN; -0 < +0; .xorsign.abs: of magnitudes,
 * sign the xor. */
static uint64_t pick(const struct insn *in, uint64_t a, uint64_t b, bool largest)
{
    const bool wide = in->type[0] == T_F64;
    const uint64_t sign = sign_of(in), nan = wide ? real_f64.nan : real_f32.nan,
                   infinity = wide ? UINT64_C(0x7ff0000000000000) : 0x7f800000;
    a = flushed(in, a), b = flushed(in, b);
    const uint64_t flip = (in->flags & FLAG_XORSIGN) != 0 ? (a ^ b) & sign : 0;
    if ((in->flags & FLAG_ABS) != 0) a &= ~sign, b &= ~sign;
    const bool nan_a = (a & ~sign) > infinity, nan_b = (b & ~sign) > infinity;
    if (wide && nan_a && nan_b) return b | UINT64_C(1) << 51;
    if ((nan_a && nan_b) || ((nan_a || nan_b) && (in->flags & FLAG_NAN) != 0)) return nan;
    if (nan_a) return b | flip;
    if (nan_b) return a | flip;
    /* as integers of sign and magnitude, so that -0 < +0 */
    const int64_t x = (a & sign) != 0 ? -1 - (int64_t)(a & ~sign) : (int64_t)a,
                  y = (b & sign) != 0 ? -1 - (int64_t)(b & ~sign) : (int64_t)b;
    return ((x < y) != largest ? a : b) | flip;
}
static trap op_min(struct warp *w, const struct insn *in, uint32_t lanes) { BINARY(pick(in, a, b, false)); }
static trap op_max(struct warp *w, const struct insn *in, uint32_t lanes) { BINARY(pick(in, a, b, true)); }
static trap op_min3(struct warp *w, const struct insn *in, uint32_t lanes)
{
    TERNARY(pick(in, pick(in, a, b, false), c, false));
}
static trap op_max3(struct warp *w, const struct insn *in, uint32_t lanes)
{
    TERNARY(pick(in, pick(in, a, b, true), c, true));
}

/* testp.what p, a   Zero counts as normal. */
enum { TEST_FINITE = 1, TEST_INFINITE, TEST_NUMBER, TEST_NAN, TEST_NORMAL, TEST_SUBNORMAL };
static trap op_testp(struct warp *w, const struct insn *in, uint32_t lanes)
{
    const struct real_format *f = real_format_of((enum ptx_type)in->type[0]);
    uint64_t *d = destination(w, in, 0);
    const uint64_t *a = source(w, in, 1);
    const int what = in->choice[0];
    FOR_LANES(l, lanes) {
        const struct real x = real_unpack(f, a[l], false);
        const bool normal = x.kind == REAL_FINITE && x.magnitude >> f->mantissa_bits != 0, zero = x.kind == REAL_ZERO;
        const bool answers[] = { [TEST_FINITE] = x.kind <= REAL_FINITE,
                                 [TEST_INFINITE] = x.kind == REAL_INFINITE,
                                 [TEST_NUMBER] = x.kind != REAL_NAN,
                                 [TEST_NAN] = x.kind == REAL_NAN,
                                 [TEST_NORMAL] = normal || zero,
                                 [TEST_SUBNORMAL] = x.kind == REAL_FINITE && !normal };
        d[l] = answers[what];
    }
    return TRAP_NONE;
}

#define RND "{.rn|.rz|.rm|.rp}"
#define RND_MUST "(.rn|.rz|.rm|.rp)"
static const struct row rows[] = {
    { "testp(.finite|.infinite|.number|.notanumber|.normal|.subnormal).$1", "f32 f64", "P s:1", 20, "", 0, op_testp,
      NULL, "9.7.3.1 testp" },
    { "copysign.$1", "f32 f64", "d:1 s:1 s:1", 20, "", 0, op_copysign, NULL, "9.7.3.2 copysign" },
    { "add" RND "{.ftz}{.sat}.$1", "f32", "d:1 s:1 s:1", 10, "", 0, op_add, NULL, "9.7.3.3 add" },
    { "add" RND ".$1", "f64", "d:1 s:1 s:1", 10, "", 0, op_add, NULL, "9.7.3.3 add" },
    { "add" RND "{.ftz}.$1", "f32x2", "d:1 s:1 s:1", 86, "sm_100+", 0, op_add_x2, NULL, "9.7.3.3 add" },
    { "sub" RND "{.ftz}{.sat}.$1", "f32", "d:1 s:1 s:1", 10, "", 0, op_sub, NULL, "9.7.3.4 sub" },
    { "sub" RND ".$1", "f64", "d:1 s:1 s:1", 10, "", 0, op_sub, NULL, "9.7.3.4 sub" },
    { "sub" RND "{.ftz}.$1", "f32x2", "d:1 s:1 s:1", 86, "sm_100+", 0, op_sub_x2, NULL, "9.7.3.4 sub" },
    { "mul" RND "{.ftz}{.sat}.$1", "f32", "d:1 s:1 s:1", 10, "", 0, op_mul, NULL, "9.7.3.5 mul" },
    { "mul" RND ".$1", "f64", "d:1 s:1 s:1", 10, "", 0, op_mul, NULL, "9.7.3.5 mul" },
    { "mul" RND "{.ftz}.$1", "f32x2", "d:1 s:1 s:1", 86, "sm_100+", 0, op_mul_x2, NULL, "9.7.3.5 mul" },
    { "fma" RND_MUST "{.ftz}{.sat}.$1", "f32", "d:1 s:1 s:1 s:1", 20, "", 0, op_fma, NULL, "9.7.3.6 fma" },
    { "fma" RND_MUST ".$1", "f64", "d:1 s:1 s:1 s:1", 13, "", 0, op_fma, NULL, "9.7.3.6 fma" },
    { "fma" RND_MUST "{.ftz}.$1", "f32x2", "d:1 s:1 s:1 s:1", 86, "sm_100+", 0, op_fma_x2, NULL, "9.7.3.6 fma" },
    { "mad" RND_MUST "{.ftz}{.sat}.$1", "f32", "d:1 s:1 s:1 s:1", 10, "", 0, op_fma, NULL, "9.7.3.7 mad" },
    { "mad" RND_MUST ".$1", "f64", "d:1 s:1 s:1 s:1", 10, "", 0, op_fma, NULL, "9.7.3.7 mad" },
    { "div" RND_MUST "{.ftz}.$1", "f32", "d:1 s:1 s:1", 14, "", 0, op_div, NULL, "9.7.3.8 div" },
    { "div" RND_MUST ".$1", "f64", "d:1 s:1 s:1", 14, "", 0, op_div, NULL, "9.7.3.8 div" },
    { "abs{.ftz}.$1", "f32", "d:1 s:1", 10, "", 0, op_abs, NULL, "9.7.3.9 abs" },
    { "abs.$1", "f64", "d:1 s:1", 10, "", 0, op_abs, NULL, "9.7.3.9 abs" },
    { "neg{.ftz}.$1", "f32", "d:1 s:1", 10, "", 0, op_neg, NULL, "9.7.3.10 neg" },
    { "neg.$1", "f64", "d:1 s:1", 10, "", 0, op_neg, NULL, "9.7.3.10 neg" },
    { "min{.ftz}{.NaN}.$1", "f32", "d:1 s:1 s:1", 10, "", 0, op_min, NULL, "9.7.3.11 min" },
    { "min{.ftz}{.NaN}.xorsign.abs.$1", "f32", "d:1 s:1 s:1", 72, "sm_86+", 0, op_min, NULL, "9.7.3.11 min" },
    { "min{.ftz}{.NaN}{.abs}.$1", "f32", "d:1 s:1 s:1 s:1", 88, "sm_100+", 0, op_min3, NULL, "9.7.3.11 min" },
    { "min.$1", "f64", "d:1 s:1 s:1", 10, "", 0, op_min, NULL, "9.7.3.11 min" },
    { "max{.ftz}{.NaN}.$1", "f32", "d:1 s:1 s:1", 10, "", 0, op_max, NULL, "9.7.3.12 max" },
    { "max{.ftz}{.NaN}.xorsign.abs.$1", "f32", "d:1 s:1 s:1", 72, "sm_86+", 0, op_max, NULL, "9.7.3.12 max" },
    { "max{.ftz}{.NaN}{.abs}.$1", "f32", "d:1 s:1 s:1 s:1", 88, "sm_100+", 0, op_max3, NULL, "9.7.3.12 max" },
    { "max.$1", "f64", "d:1 s:1 s:1", 10, "", 0, op_max, NULL, "9.7.3.12 max" },
    { "rcp" RND_MUST "{.ftz}.$1", "f32", "d:1 s:1", 14, "", 0, op_rcp, NULL, "9.7.3.13 rcp" },
    { "rcp" RND_MUST ".$1", "f64", "d:1 s:1", 14, "", 0, op_rcp, NULL, "9.7.3.13 rcp" },
    { "sqrt" RND_MUST "{.ftz}.$1", "f32", "d:1 s:1", 14, "", 0, op_sqrt, NULL, "9.7.3.15 sqrt" },
    { "sqrt" RND_MUST ".$1", "f64", "d:1 s:1", 14, "", 0, op_sqrt, NULL, "9.7.3.15 sqrt" },
};

const struct family family_float = FAMILY("f32 and f64 arithmetic", rows);
