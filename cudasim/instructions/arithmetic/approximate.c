/* Functions that the manual gives with an error bound (PTX ISA 9.7.3.8, 13-22; 9.7.4.9-10): div.approx, div.full,
 * rcp.approx, sqrt.approx, rsqrt.approx, sin, cos, lg2, ex2, tanh.  Here they are computed in double and rounded to
 * nearest, which is within every bound; hardware may differ in the last bits.  The table marks these rows. */
#include "instructions/table/families.h"
#include "real.h"

#include <math.h>

typedef double function(double x);

static double reciprocal(double x) { return 1.0 / x; }
static double reciprocal_root(double x) { return 1.0 / sqrt(x); }

static uint64_t apply32(const struct insn *in, function *f, uint64_t a)
{
    const bool ftz = (in->flags & FLAG_FTZ) != 0;
    const uint64_t bits = f32_bits((float)f((double)bits_f32(ftz ? flush32(a) : a)));
    return is_nan32(bits) ? real_f32.nan : ftz ? flush32(bits) : bits;
}

static uint64_t apply16(const struct real_format *f, function *operation, uint64_t a, bool ftz)
{
    const struct real x = real_unpack(f, a & 0xffff, ftz);
    const double value = operation(bits_f64(real_pack(&real_f64, &x, ROUND_RN, false)));
    const struct real y = real_unpack(&real_f64, f64_bits(value), false);
    return real_pack(f, &y, ROUND_RN, ftz);
}

static uint64_t apply(const struct insn *in, function *f, uint64_t a)
{
    const enum ptx_type type = (enum ptx_type)in->type[0];
    if (type == T_F32) return apply32(in, f, a);
    const struct real_format *format = real_format_of(type);
    const bool ftz = (in->flags & FLAG_FTZ) != 0;
    const uint64_t low = apply16(format, f, a, ftz);
    return type_bits(type) == 16 ? low : low | apply16(format, f, a >> 16, ftz) << 16;
}

static trap op_rcp(struct warp *w, const struct insn *in, uint32_t lanes) { UNARY(apply(in, reciprocal, a)); }
static trap op_sqrt(struct warp *w, const struct insn *in, uint32_t lanes) { UNARY(apply(in, sqrt, a)); }
static trap op_rsqrt(struct warp *w, const struct insn *in, uint32_t lanes) { UNARY(apply(in, reciprocal_root, a)); }
static trap op_sin(struct warp *w, const struct insn *in, uint32_t lanes) { UNARY(apply(in, sin, a)); }
static trap op_cos(struct warp *w, const struct insn *in, uint32_t lanes) { UNARY(apply(in, cos, a)); }
static trap op_lg2(struct warp *w, const struct insn *in, uint32_t lanes) { UNARY(apply(in, log2, a)); }
static trap op_ex2(struct warp *w, const struct insn *in, uint32_t lanes) { UNARY(apply(in, exp2, a)); }
static trap op_tanh(struct warp *w, const struct insn *in, uint32_t lanes) { UNARY(apply(in, tanh, a)); }

/* div.approx, div.full   for |b| > 2^126 the manual allows 0 (approx): here the quotient */
static uint64_t quotient(const struct insn *in, uint64_t a, uint64_t b)
{
    const bool ftz = (in->flags & FLAG_FTZ) != 0;
    const uint64_t bits = f32_bits(bits_f32(ftz ? flush32(a) : a) / bits_f32(ftz ? flush32(b) : b));
    return is_nan32(bits) ? real_f32.nan : ftz ? flush32(bits) : bits;
}
static trap op_div(struct warp *w, const struct insn *in, uint32_t lanes) { BINARY(quotient(in, a, b)); }

/* rcp.approx.ftz.f64, rsqrt.approx.ftz.f64: the upper 32 bits only; the lower are zero */
static uint64_t upper(function *f, uint64_t a)
{
    const uint64_t flush =
        (a & UINT64_C(0x7ff0000000000000)) == 0 ? a & UINT64_C(0x8000000000000000) : a & ~UINT64_C(0xffffffff);
    const uint64_t bits = f64_bits(f(bits_f64(flush)));
    if (is_nan64(bits)) return UINT64_C(0x7fffffff00000000);
    return (bits & UINT64_C(0x7ff0000000000000)) == 0 ? bits & UINT64_C(0x8000000000000000)
                                                      : bits & ~UINT64_C(0xffffffff);
}
static trap op_rcp64(struct warp *w, const struct insn *in, uint32_t lanes) { UNARY(upper(reciprocal, a)); }
static trap op_rsqrt64(struct warp *w, const struct insn *in, uint32_t lanes) { UNARY(upper(reciprocal_root, a)); }

static const struct row rows[] = {
    { "div.approx{.ftz}.$1", "f32", "d:1 s:1 s:1", 14, "", 0, op_div, NULL, "9.7.3.8 div" },
    { "div.full{.ftz}.$1", "f32", "d:1 s:1 s:1", 14, "", 0, op_div, NULL, "9.7.3.8 div" },
    { "rcp.approx{.ftz}.$1", "f32", "d:1 s:1", 14, "", 0, op_rcp, NULL, "9.7.3.13 rcp" },
    { "rcp.approx.ftz.$1", "f64", "d:1 s:1", 21, "", 0, op_rcp64, NULL, "9.7.3.14 rcp.approx.ftz.f64" },
    { "sqrt.approx{.ftz}.$1", "f32", "d:1 s:1", 14, "", 0, op_sqrt, NULL, "9.7.3.15 sqrt" },
    { "rsqrt.approx{.ftz}.$1", "f32", "d:1 s:1", 10, "", 0, op_rsqrt, NULL, "9.7.3.16 rsqrt" },
    { "rsqrt.approx.ftz.$1", "f64", "d:1 s:1", 40, "", 0, op_rsqrt64, NULL, "9.7.3.17 rsqrt.approx.ftz.f64" },
    { "sin.approx{.ftz}.$1", "f32", "d:1 s:1", 14, "", 0, op_sin, NULL, "9.7.3.18 sin" },
    { "cos.approx{.ftz}.$1", "f32", "d:1 s:1", 14, "", 0, op_cos, NULL, "9.7.3.19 cos" },
    { "lg2.approx{.ftz}.$1", "f32", "d:1 s:1", 14, "", 0, op_lg2, NULL, "9.7.3.20 lg2" },
    { "ex2.approx{.ftz}.$1", "f32", "d:1 s:1", 14, "", 0, op_ex2, NULL, "9.7.3.21 ex2" },
    { "tanh.approx.$1", "f32", "d:1 s:1", 70, "sm_75+", 0, op_tanh, NULL, "9.7.3.22 tanh" },
    { "tanh.approx.$1", "f16 f16x2", "d:1 s:1", 70, "sm_75+", 0, op_tanh, NULL, "9.7.4.9 tanh" },
    { "tanh.approx.$1", "bf16 bf16x2", "d:1 s:1", 78, "sm_90+", 0, op_tanh, NULL, "9.7.4.9 tanh" },
    { "ex2.approx.$1", "f16 f16x2", "d:1 s:1", 70, "sm_75+", 0, op_ex2, NULL, "9.7.4.10 ex2" },
    { "ex2.approx.ftz.$1", "bf16 bf16x2", "d:1 s:1", 78, "sm_90+", 0, op_ex2, NULL, "9.7.4.10 ex2" },
};

const struct family family_approximate = FAMILY("functions within an error bound", rows);
