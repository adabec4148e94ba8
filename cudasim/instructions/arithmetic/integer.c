/* Integer arithmetic (PTX ISA 9.7.1): add, sub, mul, mad, mul24, sad, div, rem, abs, neg, min, max, popc, clz, bfind,
 * fns, brev. */
#include "instructions/table/families.h"
#include "instructions/table/lanes.h"

#define S(x) sign_extend(x, bits)
#define BITS const uint32_t bits = insn_bits(in)

/* add.type d, a, b   d = a + b, modulo 2^width.  .sat (s32 only): clamped to the type. */
static trap op_add(struct warp *w, const struct insn *in, uint32_t lanes) { BINARY(a + b); }
static trap op_sub(struct warp *w, const struct insn *in, uint32_t lanes) { BINARY(a - b); }

static uint64_t saturate_s32(int64_t x)
{
    return (uint64_t)(x > INT32_MAX ? INT32_MAX : x < INT32_MIN ? INT32_MIN : x);
}
static trap op_add_sat(struct warp *w, const struct insn *in, uint32_t lanes)
{
    BINARY(saturate_s32(sign_extend(a, 32) + sign_extend(b, 32)));
}
static trap op_sub_sat(struct warp *w, const struct insn *in, uint32_t lanes)
{
    BINARY(saturate_s32(sign_extend(a, 32) - sign_extend(b, 32)));
}

/* mul.lo d, a, b   the low half of the product; mul.hi the high half; mul.wide both. */
static trap op_mul_lo(struct warp *w, const struct insn *in, uint32_t lanes) { BINARY(a * b); }

static uint64_t high_u(uint64_t a, uint64_t b, uint32_t bits) { return (uint64_t)((uint128)a * b >> bits); }
static uint64_t high_s(uint64_t a, uint64_t b, uint32_t bits) { return (uint64_t)((int128)S(a) * S(b) >> bits); }
static trap op_mul_hi_u(struct warp *w, const struct insn *in, uint32_t lanes) { BITS; BINARY(high_u(a, b, bits)); }
static trap op_mul_hi_s(struct warp *w, const struct insn *in, uint32_t lanes) { BITS; BINARY(high_s(a, b, bits)); }
static trap op_mad_lo(struct warp *w, const struct insn *in, uint32_t lanes) { TERNARY(a * b + c); }
static trap op_mad_hi_u(struct warp *w, const struct insn *in, uint32_t lanes)
{
    BITS;
    TERNARY(high_u(a, b, bits) + c);
}
static trap op_mad_hi_s(struct warp *w, const struct insn *in, uint32_t lanes)
{
    BITS;
    TERNARY(high_s(a, b, bits) + c);
}
static trap op_mad_hi_sat(struct warp *w, const struct insn *in, uint32_t lanes)
{
    BITS;
    TERNARY(saturate_s32(S(high_s(a, b, bits)) + S(c)));
}

/* The product of two halves, extended by the sign of the type: at most 64 bits. */
static inline uint64_t wide(uint64_t a, uint64_t b, uint32_t bits, bool is_signed)
{
    return is_signed ? (uint64_t)(S(a) * S(b)) : (a & bits_mask(bits)) * (b & bits_mask(bits));
}

/* mul.wide d, a, b   d, twice as wide as a and b, = a * b. */
static trap op_mul_wide(struct warp *w, const struct insn *in, uint32_t lanes)
{
    BITS;
    const bool is_signed = type_kind((enum ptx_type)in->type[0]) == 's';
    const uint64_t mask = bits_mask(2 * bits);
    uint64_t *d = destination(w, in, 0);
    const uint64_t *a = source(w, in, 1), *b = source(w, in, 2);
    FOR_LANES(l, lanes) d[l] = wide(a[l], b[l], bits, is_signed) & mask;
    return TRAP_NONE;
}

/* mad.wide d, a, b, c   d and c twice as wide: d = a * b + c. */
static trap op_mad_wide(struct warp *w, const struct insn *in, uint32_t lanes)
{
    BITS;
    const bool is_signed = type_kind((enum ptx_type)in->type[0]) == 's';
    const uint64_t mask = bits_mask(2 * bits);
    uint64_t *d = destination(w, in, 0);
    const uint64_t *a = source(w, in, 1), *b = source(w, in, 2), *c = source(w, in, 3);
    FOR_LANES(l, lanes) d[l] = (wide(a[l], b[l], bits, is_signed) + c[l]) & mask;
    return TRAP_NONE;
}

/* mul24.lo d, a, b   the low 32 bits of the product of 24-bit numbers; .hi: bits 47..16. */
static int64_t product24(uint64_t a, uint64_t b, bool is_signed)
{
    return is_signed ? sign_extend(a, 24) * sign_extend(b, 24) : (int64_t)((a & 0xffffff) * (b & 0xffffff));
}
static trap op_mul24_lo_u(struct warp *w, const struct insn *in, uint32_t lanes) { BINARY(product24(a, b, false)); }
static trap op_mul24_lo_s(struct warp *w, const struct insn *in, uint32_t lanes) { BINARY(product24(a, b, true)); }
static trap op_mul24_hi_u(struct warp *w, const struct insn *in, uint32_t lanes)
{
    BINARY(product24(a, b, false) >> 16);
}
static trap op_mul24_hi_s(struct warp *w, const struct insn *in, uint32_t lanes)
{
    BINARY(product24(a, b, true) >> 16);
}
static trap op_mad24_lo_u(struct warp *w, const struct insn *in, uint32_t lanes)
{
    TERNARY((uint64_t)product24(a, b, false) + c);
}
static trap op_mad24_lo_s(struct warp *w, const struct insn *in, uint32_t lanes)
{
    TERNARY((uint64_t)product24(a, b, true) + c);
}
static trap op_mad24_hi_u(struct warp *w, const struct insn *in, uint32_t lanes)
{
    TERNARY((uint64_t)(product24(a, b, false) >> 16) + c);
}
static trap op_mad24_hi_s(struct warp *w, const struct insn *in, uint32_t lanes)
{
    TERNARY((uint64_t)(product24(a, b, true) >> 16) + c);
}

/* sad d, a, b, c   d = c + |a - b|. */
static trap op_sad_u(struct warp *w, const struct insn *in, uint32_t lanes) { TERNARY(c + (a < b ? b - a : a - b)); }
static trap op_sad_s(struct warp *w, const struct insn *in, uint32_t lanes)
{
    BITS;
    TERNARY(c + (S(a) < S(b) ? b - a : a - b));
}

/* div, rem d, a, b   Division by zero gives what the hardware gives: all ones.  The manual leaves it open. */
static uint64_t divide_s(int64_t a, int64_t b)
{
    return b == 0 ? UINT64_MAX : b == -1 ? 0 - (uint64_t)a : (uint64_t)(a / b);
}
static uint64_t remainder_s(int64_t a, int64_t b) { return b == 0 ? UINT64_MAX : b == -1 ? 0 : (uint64_t)(a % b); }
static trap op_div_u(struct warp *w, const struct insn *in, uint32_t lanes) { BINARY(b == 0 ? UINT64_MAX : a / b); }
static trap op_div_s(struct warp *w, const struct insn *in, uint32_t lanes) { BITS; BINARY(divide_s(S(a), S(b))); }
static trap op_rem_u(struct warp *w, const struct insn *in, uint32_t lanes) { BINARY(b == 0 ? UINT64_MAX : a % b); }
static trap op_rem_s(struct warp *w, const struct insn *in, uint32_t lanes) { BITS; BINARY(remainder_s(S(a), S(b))); }

/* abs, neg: two's complement, so that the most negative number stays. */
static trap op_abs(struct warp *w, const struct insn *in, uint32_t lanes) { BITS; UNARY(S(a) < 0 ? 0 - a : a); }
static trap op_neg(struct warp *w, const struct insn *in, uint32_t lanes) { UNARY(0 - a); }

static trap op_min_u(struct warp *w, const struct insn *in, uint32_t lanes) { BINARY(a < b ? a : b); }
static trap op_max_u(struct warp *w, const struct insn *in, uint32_t lanes) { BINARY(a > b ? a : b); }
static trap op_min_s(struct warp *w, const struct insn *in, uint32_t lanes) { BITS; BINARY(S(a) < S(b) ? a : b); }
static trap op_max_s(struct warp *w, const struct insn *in, uint32_t lanes) { BITS; BINARY(S(a) > S(b) ? a : b); }
static trap op_min_s_relu(struct warp *w, const struct insn *in, uint32_t lanes)
{
    BITS;
    BINARY(S(a) < 0 || S(b) < 0 ? 0 : a < b ? a : b);
}
static trap op_max_s_relu(struct warp *w, const struct insn *in, uint32_t lanes)
{
    BITS;
    BINARY(S(a) < 0 && S(b) < 0 ? 0 : S(a) > S(b) ? a : b);
}

/* Both halves of a word, each with f. */
#define HALVES(expression) \
    ((expression(a & 0xffff, b & 0xffff) & 0xffff) | (expression(a >> 16, b >> 16) & 0xffff) << 16)
static uint64_t half_add(uint64_t a, uint64_t b) { return a + b; }
static uint64_t half_min_u(uint64_t a, uint64_t b) { return a < b ? a : b; }
static uint64_t half_max_u(uint64_t a, uint64_t b) { return a > b ? a : b; }
static uint64_t half_min_s(uint64_t a, uint64_t b) { return sign_extend(a, 16) < sign_extend(b, 16) ? a : b; }
static uint64_t half_max_s(uint64_t a, uint64_t b) { return sign_extend(a, 16) > sign_extend(b, 16) ? a : b; }
static uint64_t half_relu(uint64_t a) { return sign_extend(a, 16) < 0 ? 0 : a; }
static uint64_t half_min_relu(uint64_t a, uint64_t b) { return half_relu(half_min_s(a, b)); }
static uint64_t half_max_relu(uint64_t a, uint64_t b) { return half_relu(half_max_s(a, b)); }
static trap op_add_x2(struct warp *w, const struct insn *in, uint32_t lanes) { BINARY(HALVES(half_add)); }
static trap op_min_u16x2(struct warp *w, const struct insn *in, uint32_t lanes) { BINARY(HALVES(half_min_u)); }
static trap op_max_u16x2(struct warp *w, const struct insn *in, uint32_t lanes) { BINARY(HALVES(half_max_u)); }
static trap op_min_s16x2(struct warp *w, const struct insn *in, uint32_t lanes)
{
    if ((in->flags & FLAG_RELU) != 0) BINARY(HALVES(half_min_relu));
    BINARY(HALVES(half_min_s));
}
static trap op_max_s16x2(struct warp *w, const struct insn *in, uint32_t lanes)
{
    if ((in->flags & FLAG_RELU) != 0) BINARY(HALVES(half_max_relu));
    BINARY(HALVES(half_max_s));
}

/* popc.b32 d, a   number of ones; clz: zeros from the top (the width for 0).  d is u32. */
static trap op_popc(struct warp *w, const struct insn *in, uint32_t lanes) { UNARY((uint64_t)__builtin_popcountll(a)); }
static trap op_clz(struct warp *w, const struct insn *in, uint32_t lanes)
{
    BITS;
    UNARY(a == 0 ? bits : (uint64_t)__builtin_clzll(a) - (64 - bits));
}

static uint64_t reverse(uint64_t a, uint32_t bits)
{
    uint64_t r = 0;
    for (uint32_t i = 0; i < bits; i++) r |= (a >> i & 1) << (bits - 1 - i);
    return r;
}
static trap op_brev(struct warp *w, const struct insn *in, uint32_t lanes) { BITS; UNARY(reverse(a, bits)); }

/* bfind d, a   position of the highest one (of a signed negative number: the highest zero), 0xffffffff if there is
 * none; .shiftamt: how far it is from the top. */
static trap op_bfind(struct warp *w, const struct insn *in, uint32_t lanes)
{
    BITS;
    const bool is_signed = type_kind((enum ptx_type)in->type[0]) == 's', shift = insn_has(in, ".shiftamt");
    uint64_t *d = destination(w, in, 0);
    const uint64_t *a = source(w, in, 1);
    FOR_LANES(l, lanes) {
        const uint64_t x = (is_signed && S(a[l]) < 0 ? ~a[l] : a[l]) & in->mask;
        const uint32_t position = x == 0 ? UINT32_MAX : 63 - (uint32_t)__builtin_clzll(x);
        d[l] = x == 0 ? UINT32_MAX : shift ? bits - 1 - position : position;
    }
    return TRAP_NONE;
}

/* fns.b32 d, mask, base, offset   the position of the offset-th one counted from base (upwards, or downwards where
 * negative); offset 0: base itself if its bit is set.  0xffffffff where there is none; hardware gives 0 for the offset
 * that has no negative. */
static uint32_t find_nth(uint32_t mask, uint32_t base, int32_t offset)
{
    if (offset == 0) return base < 32 && (mask >> base & 1) != 0 ? base : UINT32_MAX;
    if (offset == INT32_MIN) return 0;
    const int32_t step = offset > 0 ? 1 : -1;
    uint32_t left = offset > 0 ? (uint32_t)offset : 0 - (uint32_t)offset;
    for (int32_t position = (int32_t)(base & 31); base < 32 && position >= 0 && position < 32; position += step)
        if ((mask >> position & 1) != 0 && --left == 0) return (uint32_t)position;
    return UINT32_MAX;
}
static trap op_fns(struct warp *w, const struct insn *in, uint32_t lanes)
{
    uint64_t *d = destination(w, in, 0);
    const uint64_t *a = source(w, in, 1), *b = source(w, in, 2), *c = source(w, in, 3);
    FOR_LANES(l, lanes) d[l] = find_nth((uint32_t)a[l], (uint32_t)b[l], (int32_t)c[l]);
    return TRAP_NONE;
}

static const struct row rows[] = {
    { "add.$1", "u16 u32 u64 s16 s32 s64", "d:1 s:1 s:1", 10, "", 0, op_add, NULL, "9.7.1.1 add" },
    { "add.sat.s32", NULL, "d:s32 s:s32 s:s32", 10, "", 0, op_add_sat, NULL, "9.7.1.1 add" },
    { "add.$1", "u16x2 s16x2", "d:1 s:1 s:1", 80, "sm_90+", 0, op_add_x2, NULL, "9.7.1.1 add" },
    { "sub.$1", "u16 u32 u64 s16 s32 s64", "d:1 s:1 s:1", 10, "", 0, op_sub, NULL, "9.7.1.2 sub" },
    { "sub.sat.s32", NULL, "d:s32 s:s32 s:s32", 10, "", 0, op_sub_sat, NULL, "9.7.1.2 sub" },
    { "mul.lo.$1", "u16 u32 u64 s16 s32 s64", "d:1 s:1 s:1", 10, "", 0, op_mul_lo, NULL, "9.7.1.3 mul" },
    { "mul.hi.$1", "u16 u32 u64", "d:1 s:1 s:1", 10, "", 0, op_mul_hi_u, NULL, "9.7.1.3 mul" },
    { "mul.hi.$1", "s16 s32 s64", "d:1 s:1 s:1", 10, "", 0, op_mul_hi_s, NULL, "9.7.1.3 mul" },
    { "mul.wide.$1", "u16 u32 s16 s32", "d:w1 s:1 s:1", 10, "", 0, op_mul_wide, NULL, "9.7.1.3 mul" },
    { "mad.lo.$1", "u16 u32 u64 s16 s32 s64", "d:1 s:1 s:1 s:1", 10, "", 0, op_mad_lo, NULL, "9.7.1.4 mad" },
    { "mad.hi.$1", "u16 u32 u64", "d:1 s:1 s:1 s:1", 10, "", 0, op_mad_hi_u, NULL, "9.7.1.4 mad" },
    { "mad.hi.$1", "s16 s32 s64", "d:1 s:1 s:1 s:1", 10, "", 0, op_mad_hi_s, NULL, "9.7.1.4 mad" },
    { "mad.hi.sat.$1", "s32", "d:1 s:1 s:1 s:1", 10, "", 0, op_mad_hi_sat, NULL, "9.7.1.4 mad" },
    { "mad.wide.$1", "u16 u32 s16 s32", "d:w1 s:1 s:1 s:w1", 10, "", 0, op_mad_wide, NULL, "9.7.1.4 mad" },
    { "mul24.lo.$1", "u32", "d:1 s:1 s:1", 10, "", 0, op_mul24_lo_u, NULL, "9.7.1.5 mul24" },
    { "mul24.lo.$1", "s32", "d:1 s:1 s:1", 10, "", 0, op_mul24_lo_s, NULL, "9.7.1.5 mul24" },
    { "mul24.hi.$1", "u32", "d:1 s:1 s:1", 10, "", 0, op_mul24_hi_u, NULL, "9.7.1.5 mul24" },
    { "mul24.hi.$1", "s32", "d:1 s:1 s:1", 10, "", 0, op_mul24_hi_s, NULL, "9.7.1.5 mul24" },
    { "mad24.lo.$1", "u32", "d:1 s:1 s:1 s:1", 10, "", 0, op_mad24_lo_u, NULL, "9.7.1.6 mad24" },
    { "mad24.lo.$1", "s32", "d:1 s:1 s:1 s:1", 10, "", 0, op_mad24_lo_s, NULL, "9.7.1.6 mad24" },
    { "mad24.hi.$1", "u32", "d:1 s:1 s:1 s:1", 10, "", 0, op_mad24_hi_u, NULL, "9.7.1.6 mad24" },
    { "mad24.hi.$1", "s32", "d:1 s:1 s:1 s:1", 10, "", 0, op_mad24_hi_s, NULL, "9.7.1.6 mad24" },
    { "sad.$1", "u16 u32 u64", "d:1 s:1 s:1 s:1", 10, "", 0, op_sad_u, NULL, "9.7.1.7 sad" },
    { "sad.$1", "s16 s32 s64", "d:1 s:1 s:1 s:1", 10, "", 0, op_sad_s, NULL, "9.7.1.7 sad" },
    { "div.$1", "u16 u32 u64", "d:1 s:1 s:1", 10, "", 0, op_div_u, NULL, "9.7.1.8 div" },
    { "div.$1", "s16 s32 s64", "d:1 s:1 s:1", 10, "", 0, op_div_s, NULL, "9.7.1.8 div" },
    { "rem.$1", "u16 u32 u64", "d:1 s:1 s:1", 10, "", 0, op_rem_u, NULL, "9.7.1.9 rem" },
    { "rem.$1", "s16 s32 s64", "d:1 s:1 s:1", 10, "", 0, op_rem_s, NULL, "9.7.1.9 rem" },
    { "abs.$1", "s16 s32 s64", "d:1 s:1", 10, "", 0, op_abs, NULL, "9.7.1.10 abs" },
    { "neg.$1", "s16 s32 s64", "d:1 s:1", 10, "", 0, op_neg, NULL, "9.7.1.11 neg" },
    { "min.$1", "u16 u32 u64", "d:1 s:1 s:1", 10, "", 0, op_min_u, NULL, "9.7.1.12 min" },
    { "min.$1", "s16 s32 s64", "d:1 s:1 s:1", 10, "", 0, op_min_s, NULL, "9.7.1.12 min" },
    { "min.relu.$1", "s32", "d:1 s:1 s:1", 80, "sm_90+", 0, op_min_s_relu, NULL, "9.7.1.12 min" },
    { "min.$1", "u16x2", "d:1 s:1 s:1", 80, "sm_90+", 0, op_min_u16x2, NULL, "9.7.1.12 min" },
    { "min{.relu}.$1", "s16x2", "d:1 s:1 s:1", 80, "sm_90+", 0, op_min_s16x2, NULL, "9.7.1.12 min" },
    { "max.$1", "u16 u32 u64", "d:1 s:1 s:1", 10, "", 0, op_max_u, NULL, "9.7.1.13 max" },
    { "max.$1", "s16 s32 s64", "d:1 s:1 s:1", 10, "", 0, op_max_s, NULL, "9.7.1.13 max" },
    { "max.relu.$1", "s32", "d:1 s:1 s:1", 80, "sm_90+", 0, op_max_s_relu, NULL, "9.7.1.13 max" },
    { "max.$1", "u16x2", "d:1 s:1 s:1", 80, "sm_90+", 0, op_max_u16x2, NULL, "9.7.1.13 max" },
    { "max{.relu}.$1", "s16x2", "d:1 s:1 s:1", 80, "sm_90+", 0, op_max_s16x2, NULL, "9.7.1.13 max" },
    { "popc.$1", "b32 b64", "d:u32 s:1", 20, "", 0, op_popc, NULL, "9.7.1.14 popc" },
    { "clz.$1", "b32 b64", "d:u32 s:1", 20, "", 0, op_clz, NULL, "9.7.1.15 clz" },
    { "bfind{.shiftamt}.$1", "u32 u64 s32 s64", "d:u32 s:1", 20, "", 0, op_bfind, NULL, "9.7.1.16 bfind" },
    { "fns.b32", NULL, "d:b32 s:b32 s:u32 s:s32", 60, "sm_30+", 0, op_fns, NULL, "9.7.1.17 fns" },
    { "brev.$1", "b32 b64", "d:1 s:1", 20, "", 0, op_brev, NULL, "9.7.1.18 brev" },
};

const struct family family_integer = FAMILY("integer arithmetic", rows);
