/* f16 and bf16 arithmetic, alone and in pairs (PTX ISA 9.7.4): add, sub, mul, fma, abs, neg, min, max. */
#include "instructions/table/families.h"
#include "real.h"

enum operation { ADD, SUB, MUL, FMA, ABS, NEG, MIN, MAX };

static uint64_t nan_or_pick(const struct insn *in, uint64_t a, uint64_t b, uint64_t infinity, bool largest)
{
    const uint64_t flip = (in->flags & FLAG_XORSIGN) != 0 ? (a ^ b) & 0x8000 : 0;
    if ((in->flags & FLAG_ABS) != 0) a &= 0x7fff, b &= 0x7fff;
    const bool nan_a = (a & 0x7fff) > infinity, nan_b = (b & 0x7fff) > infinity;
    if ((nan_a && nan_b) || ((nan_a || nan_b) && (in->flags & FLAG_NAN) != 0)) return 0x7fff;
    if (nan_a) return b | flip;
    if (nan_b) return a | flip;
    const int32_t x = (a & 0x8000) != 0 ? -1 - (int32_t)(a & 0x7fff) : (int32_t)a,
                  y = (b & 0x8000) != 0 ? -1 - (int32_t)(b & 0x7fff) : (int32_t)b;
    return ((x < y) != largest ? a : b) | flip;
}

static uint64_t flush16(uint64_t a) { return (a & 0x7c00) == 0 ? a & 0x8000 : a; }

/* .sat: to [0, 1], NaN to 0; .relu: negative to 0, NaN stays. */
static uint64_t limit(const struct insn *in, uint64_t d, uint64_t one, uint64_t infinity)
{
    const bool nan = (d & 0x7fff) > infinity, negative = (d & 0x8000) != 0;
    if ((in->flags & FLAG_SAT) != 0) return nan || negative ? 0 : d > one ? one : d;
    if ((in->flags & FLAG_RELU) != 0) return nan ? 0x7fff : negative ? 0 : d;
    return d;
}

static uint64_t one_half(const struct insn *in, enum operation operation, const struct real_format *f, uint64_t a,
                         uint64_t b, uint64_t c)
{
    const bool ftz = (in->flags & FLAG_FTZ) != 0;
    const uint64_t infinity = bits_mask(f->exponent_bits) << f->mantissa_bits, one = f == &real_f16 ? 0x3c00 : 0x3f80;
    if (operation <= NEG && operation >= ABS && (a & 0x7fff) > infinity) return f->nan;
    if (operation == ABS) return (ftz ? flush16(a) : a) & 0x7fff;
    if (operation == NEG) return (ftz ? flush16(a) : a) ^ 0x8000;
    if (operation >= MIN)
        return nan_or_pick(in, ftz ? flush16(a) : a, ftz ? flush16(b) : b, infinity, operation == MAX);
    const struct real x = real_unpack(f, a, ftz);
    struct real y = real_unpack(f, b, ftz), r;
    if (operation == SUB) y.negative = !y.negative;
    r = operation >= MUL ? real_multiply(&x, &y) : real_add(&x, &y, ROUND_RN);
    if (operation == FMA) {
        const struct real z = real_unpack(f, c, ftz), product = r;
        r = real_add(&product, &z, ROUND_RN);
    }
    return limit(in, real_pack(f, &r, ROUND_RN, ftz), one, infinity);
}

static uint64_t compute(const struct insn *in, enum operation operation, uint64_t a, uint64_t b, uint64_t c)
{
    const enum ptx_type type = (enum ptx_type)in->type[0];
    const struct real_format *f = real_format_of(type);
    const uint64_t low = one_half(in, operation, f, a & 0xffff, b & 0xffff, c & 0xffff);
    if (type_bits(type) == 16) return low;
    return low | one_half(in, operation, f, a >> 16, b >> 16, c >> 16) << 16;
}

static trap op_add(struct warp *w, const struct insn *in, uint32_t lanes) { BINARY(compute(in, ADD, a, b, 0)); }
static trap op_sub(struct warp *w, const struct insn *in, uint32_t lanes) { BINARY(compute(in, SUB, a, b, 0)); }
static trap op_mul(struct warp *w, const struct insn *in, uint32_t lanes) { BINARY(compute(in, MUL, a, b, 0)); }
static trap op_fma(struct warp *w, const struct insn *in, uint32_t lanes) { TERNARY(compute(in, FMA, a, b, c)); }
static trap op_abs(struct warp *w, const struct insn *in, uint32_t lanes) { UNARY(compute(in, ABS, a, 0, 0)); }
static trap op_neg(struct warp *w, const struct insn *in, uint32_t lanes) { UNARY(compute(in, NEG, a, 0, 0)); }
static trap op_min(struct warp *w, const struct insn *in, uint32_t lanes) { BINARY(compute(in, MIN, a, b, 0)); }
static trap op_max(struct warp *w, const struct insn *in, uint32_t lanes) { BINARY(compute(in, MAX, a, b, 0)); }

#define F16 "f16 f16x2"
#define BF16 "bf16 bf16x2"
static const struct row rows[] = {
    { "add{.rn}{.ftz}{.sat}.$1", F16, "d:1 s:1 s:1", 42, "sm_53+", 0, op_add, NULL, "9.7.4.1 add" },
    { "add{.rn}.$1", BF16, "d:1 s:1 s:1", 78, "sm_90+", 0, op_add, NULL, "9.7.4.1 add" },
    { "sub{.rn}{.ftz}{.sat}.$1", F16, "d:1 s:1 s:1", 42, "sm_53+", 0, op_sub, NULL, "9.7.4.2 sub" },
    { "sub{.rn}.$1", BF16, "d:1 s:1 s:1", 78, "sm_90+", 0, op_sub, NULL, "9.7.4.2 sub" },
    { "mul{.rn}{.ftz}{.sat}.$1", F16, "d:1 s:1 s:1", 42, "sm_53+", 0, op_mul, NULL, "9.7.4.3 mul" },
    { "mul{.rn}.$1", BF16, "d:1 s:1 s:1", 78, "sm_90+", 0, op_mul, NULL, "9.7.4.3 mul" },
    { "fma.rn{.ftz}{.sat}.$1", F16, "d:1 s:1 s:1 s:1", 42, "sm_53+", 0, op_fma, NULL, "9.7.4.4 fma" },
    { "fma.rn{.ftz}.relu.$1", F16, "d:1 s:1 s:1 s:1", 70, "sm_80+", 0, op_fma, NULL, "9.7.4.4 fma" },
    { "fma.rn{.relu}.$1", BF16, "d:1 s:1 s:1 s:1", 70, "sm_80+", 0, op_fma, NULL, "9.7.4.4 fma" },
    { "neg{.ftz}.$1", F16, "d:1 s:1", 60, "sm_53+", 0, op_neg, NULL, "9.7.4.5 neg" },
    { "neg.$1", BF16, "d:1 s:1", 70, "sm_80+", 0, op_neg, NULL, "9.7.4.5 neg" },
    { "abs{.ftz}.$1", F16, "d:1 s:1", 65, "sm_53+", 0, op_abs, NULL, "9.7.4.6 abs" },
    { "abs.$1", BF16, "d:1 s:1", 70, "sm_80+", 0, op_abs, NULL, "9.7.4.6 abs" },
    { "min{.ftz}{.NaN}.$1", F16, "d:1 s:1 s:1", 70, "sm_80+", 0, op_min, NULL, "9.7.4.7 min" },
    { "min{.ftz}{.NaN}.xorsign.abs.$1", F16, "d:1 s:1 s:1", 72, "sm_86+", 0, op_min, NULL, "9.7.4.7 min" },
    { "min{.NaN}.$1", BF16, "d:1 s:1 s:1", 70, "sm_80+", 0, op_min, NULL, "9.7.4.7 min" },
    { "min{.NaN}.xorsign.abs.$1", BF16, "d:1 s:1 s:1", 72, "sm_86+", 0, op_min, NULL, "9.7.4.7 min" },
    { "max{.ftz}{.NaN}.$1", F16, "d:1 s:1 s:1", 70, "sm_80+", 0, op_max, NULL, "9.7.4.8 max" },
    { "max{.ftz}{.NaN}.xorsign.abs.$1", F16, "d:1 s:1 s:1", 72, "sm_86+", 0, op_max, NULL, "9.7.4.8 max" },
    { "max{.NaN}.$1", BF16, "d:1 s:1 s:1", 70, "sm_80+", 0, op_max, NULL, "9.7.4.8 max" },
    { "max{.NaN}.xorsign.abs.$1", BF16, "d:1 s:1 s:1", 72, "sm_86+", 0, op_max, NULL, "9.7.4.8 max" },
};

const struct family family_half = FAMILY("f16 and bf16 arithmetic", rows);
