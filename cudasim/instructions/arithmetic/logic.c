/* Logic and shifts (PTX ISA 9.7.8), bit fields and bytes (9.7.1.19-24, 9.7.9.7). */
#include "instructions/table/families.h"
#include "instructions/table/lanes.h"

/* and, or, xor, not; cnot: 1 where a is 0. */
static trap op_and(struct warp *w, const struct insn *in, uint32_t lanes) { BINARY(a & b); }
static trap op_or(struct warp *w, const struct insn *in, uint32_t lanes) { BINARY(a | b); }
static trap op_xor(struct warp *w, const struct insn *in, uint32_t lanes) { BINARY(a ^ b); }
static trap op_not(struct warp *w, const struct insn *in, uint32_t lanes) { UNARY(~a); }
static trap op_cnot(struct warp *w, const struct insn *in, uint32_t lanes) { UNARY(a == 0); }

/* the same of predicates, each of which may be negated */
static void write_predicate(struct warp *w, const struct insn *in, uint32_t lanes, uint32_t value)
{
    uint64_t *d = destination(w, in, 0);
    FOR_LANES(l, lanes) d[l] = value >> l & 1;
}
static trap op_pred(struct warp *w, const struct insn *in, uint32_t lanes)
{
    const uint32_t a = predicate_lanes(w, &in->operand[1], lanes), b = predicate_lanes(w, &in->operand[2], lanes);
    write_predicate(w, in, lanes, in->detail == '&' ? a & b : in->detail == '|' ? a | b : a ^ b);
    return TRAP_NONE;
}
static trap op_not_pred(struct warp *w, const struct insn *in, uint32_t lanes)
{
    write_predicate(w, in, lanes, ~predicate_lanes(w, &in->operand[1], lanes));
    return TRAP_NONE;
}
static const char *prepare_pred(struct module *module, struct insn *in)
{
    (void)module;
    in->detail = in->row->pattern[0] == 'a' ? '&' : in->row->pattern[0] == 'o' ? '|' : '^';
    return NULL;
}

/* lop3.b32 d, a, b, c, table   bit i of d is bit (4 a_i + 2 b_i + c_i) of the table. */
static uint64_t lop3(uint64_t a, uint64_t b, uint64_t c, uint64_t table)
{
    uint64_t d = 0;
    for (uint32_t i = 0; i < 8; i++)
        if ((table >> i & 1) != 0) d |= ((i & 4) != 0 ? a : ~a) & ((i & 2) != 0 ? b : ~b) & ((i & 1) != 0 ? c : ~c);
    return d;
}
static trap op_lop3(struct warp *w, const struct insn *in, uint32_t lanes)
{
    const uint64_t table = (uint64_t)in->operand[4].value;
    TERNARY(lop3(a, b, c, table));
}

/* lop3.or.b32 d|p, a, b, c, table, q   p = (d != 0) or q; .and likewise */
static trap op_lop3_pred(struct warp *w, const struct insn *in, uint32_t lanes)
{
    const uint64_t table = (uint64_t)in->operand[5].value;
    const uint64_t *a = source(w, in, 2), *b = source(w, in, 3), *c = source(w, in, 4);
    const uint32_t q = predicate_lanes(w, &in->operand[6], lanes);
    uint64_t *d = destination(w, in, 0), *p = destination(w, in, 1);
    const bool both = insn_has(in, ".and");
    FOR_LANES(l, lanes) {
        const uint64_t value = lop3(a[l], b[l], c[l], table) & UINT32_MAX;
        const bool other = (q >> l & 1) != 0;
        d[l] = value;
        p[l] = both ? value != 0 && other : value != 0 || other;
    }
    return TRAP_NONE;
}

/* shl, shr: amounts beyond the width give 0, or all signs. */
static trap op_shift(struct warp *w, const struct insn *in, uint32_t lanes)
{
    const uint32_t bits = insn_bits(in), kind = (uint32_t)in->detail;
    uint64_t *d = destination(w, in, 0);
    const uint64_t *a = source(w, in, 1), *b = source(w, in, 2), mask = in->mask;
    FOR_LANES(l, lanes) {
        const uint32_t by = (uint32_t)b[l];
        if (kind == 0) d[l] = by >= bits ? 0 : a[l] << by & mask;
        else if (kind == 1) d[l] = by >= bits ? 0 : (a[l] & mask) >> by;
        else d[l] = (uint64_t)(sign_extend(a[l], bits) >> (by >= bits ? bits - 1 : by)) & mask;
    }
    return TRAP_NONE;
}
static const char *prepare_shl(struct module *module, struct insn *in)
{
    (void)module;
    in->detail = 0;
    return NULL;
}
static const char *prepare_shr(struct module *module, struct insn *in)
{
    (void)module;
    in->detail = type_kind((enum ptx_type)in->type[0]) == 's' ? 2 : 1;
    return NULL;
}

/* shf.l d, a, b, c   the upper word of (b:a) << c; shf.r the lower word of (b:a) >> c.  .clamp: c at most 32; .wrap: c
 * modulo
 * 32. */
static uint32_t amount(uint64_t c, bool wrap) { return wrap ? (uint32_t)c & 31 : (uint32_t)c > 32 ? 32 : (uint32_t)c; }
static trap op_shf_l(struct warp *w, const struct insn *in, uint32_t lanes)
{
    const bool wrap = in->detail != 0;
    TERNARY((b << 32 | a) << amount(c, wrap) >> 32);
}
static trap op_shf_r(struct warp *w, const struct insn *in, uint32_t lanes)
{
    const bool wrap = in->detail != 0;
    TERNARY((b << 32 | a) >> amount(c, wrap));
}
static const char *prepare_shf(struct module *module, struct insn *in)
{
    (void)module;
    in->mask = UINT32_MAX;
    in->detail = insn_has(in, ".wrap");
    return NULL;
}

/* Positions and lengths of fields: the low 8 bits for 32-bit fields; on hardware 64-bit fields are made of shifts that
 * take all
 * 32. */
static uint32_t field_number(uint64_t value, uint32_t bits)
{
    const uint32_t number = (uint32_t)value;
    return bits == 32 ? number & 255 : number > 255 ? 255 : number;
}

/* bfe d, a, b, c   c bits of a from bit b on; signed: the field's top bit (or a's, where the field ends above)
 * extends. */
static uint64_t bfe(uint64_t a, uint64_t b, uint64_t c, uint32_t bits, bool is_signed)
{
    const uint32_t position = field_number(b, bits), length = field_number(c, bits), msb = bits - 1;
    const uint32_t last = length == 0 ? 0 : position + length - 1 < msb ? position + length - 1 : msb;
    const bool sign = is_signed && length != 0 && (a >> last & 1) != 0;
    uint64_t d = position > msb ? 0 : a >> position;
    const uint32_t have = position > msb ? 0 : bits - position, used = length < have ? length : have;
    d = used == 0 ? 0 : d & bits_mask(used);
    if (sign) d |= used >= 64 ? 0 : ~bits_mask(used == 0 ? 0 : used);
    return d & bits_mask(bits);
}
static trap op_bfe(struct warp *w, const struct insn *in, uint32_t lanes)
{
    const uint32_t bits = insn_bits(in);
    const bool is_signed = type_kind((enum ptx_type)in->type[0]) == 's';
    uint64_t *d = destination(w, in, 0);
    const uint64_t *a = source(w, in, 1), *b = source(w, in, 2), *c = source(w, in, 3);
    FOR_LANES(l, lanes) d[l] = bfe(a[l] & in->mask, b[l], c[l], bits, is_signed);
    return TRAP_NONE;
}

/* bfi d, a, b, c, n   b with its n bits from bit c on replaced by a's lowest. */
static trap op_bfi(struct warp *w, const struct insn *in, uint32_t lanes)
{
    const uint32_t bits = insn_bits(in);
    uint64_t *d = destination(w, in, 0);
    const uint64_t *a = source(w, in, 1), *b = source(w, in, 2), *c = source(w, in, 3), *n = source(w, in, 4);
    FOR_LANES(l, lanes) {
        const uint32_t position = field_number(c[l], bits), length = field_number(n[l], bits);
        const uint64_t field =
            position >= bits || length == 0 ? 0 : bits_mask(length > 64 ? 64 : length) << position & in->mask;
        d[l] = (b[l] & ~field) | (position >= bits ? 0 : a[l] << position & field);
    }
    return TRAP_NONE;
}

/* szext.mode d, a, b   a's lowest b bits, extended by their top bit or by zeros. */
static trap op_szext(struct warp *w, const struct insn *in, uint32_t lanes)
{
    const bool is_signed = in->type[0] == T_S32, wrap = insn_has(in, ".wrap");
    uint64_t *d = destination(w, in, 0);
    const uint64_t *a = source(w, in, 1), *b = source(w, in, 2);
    FOR_LANES(l, lanes) {
        uint32_t n = (uint32_t)b[l];
        n = wrap ? n & 31 : n > 32 ? 32 : n;
        const uint64_t low = n == 0 ? 0 : a[l] & bits_mask(n);
        d[l] = n == 0 ? 0 : (is_signed ? (uint64_t)sign_extend(low, n) : low) & UINT32_MAX;
    }
    return TRAP_NONE;
}

/* bmsk.mode d, a, b   b ones from bit a on. */
static trap op_bmsk(struct warp *w, const struct insn *in, uint32_t lanes)
{
    const bool wrap = insn_has(in, ".wrap");
    uint64_t *d = destination(w, in, 0);
    const uint64_t *a = source(w, in, 1), *b = source(w, in, 2);
    FOR_LANES(l, lanes) {
        uint32_t position = (uint32_t)a[l], length = (uint32_t)b[l];
        position = wrap ? position & 31 : position > 32 ? 32 : position;
        length = wrap ? length & 31 : length > 32 ? 32 : length;
        d[l] = (length == 0 ? 0 : bits_mask(length)) << position & UINT32_MAX;
    }
    return TRAP_NONE;
}

/* prmt d, a, b, c   four bytes chosen from b:a by the nibbles of c; bit 3 of a nibble: the byte's sign, eight times.
 * The modes take the nibbles from c's two low bits by fixed patterns. */
static uint64_t permute(uint64_t a, uint64_t b, uint32_t selectors)
{
    const uint64_t both = (b & UINT32_MAX) << 32 | (a & UINT32_MAX);
    uint64_t d = 0;
    for (uint32_t i = 0; i < 4; i++) {
        const uint32_t s = selectors >> (4 * i) & 15;
        uint64_t byte = both >> (8 * (s & 7)) & 255;
        if ((s & 8) != 0) byte = (byte & 0x80) != 0 ? 255 : 0;
        d |= byte << (8 * i);
    }
    return d;
}
static const struct { const char *word; uint16_t selectors[4]; } prmt_modes[] = {
    { ".f4e", { 0x3210, 0x4321, 0x5432, 0x6543 } }, { ".b4e", { 0x5670, 0x6701, 0x7012, 0x0123 } },
    { ".rc8", { 0x0000, 0x1111, 0x2222, 0x3333 } }, { ".ecl", { 0x3210, 0x3211, 0x3222, 0x3333 } },
    { ".ecr", { 0x0000, 0x1110, 0x2210, 0x3210 } }, { ".rc16", { 0x1010, 0x3232, 0x1010, 0x3232 } },
};
static trap op_prmt(struct warp *w, const struct insn *in, uint32_t lanes)
{
    uint64_t *d = destination(w, in, 0);
    const uint64_t *a = source(w, in, 1), *b = source(w, in, 2), *c = source(w, in, 3);
    const uint32_t mode = in->choice[0];
    FOR_LANES(l, lanes)
        d[l] = permute(a[l], b[l], mode == 0 ? (uint32_t)c[l] : prmt_modes[mode - 1].selectors[c[l] & 3]);
    return TRAP_NONE;
}

/* dp4a d, a, b, c   d = c + the sum of the products of four bytes; dp2a: of two halves of a with two bytes of b. */
static int64_t part(uint64_t x, uint32_t index, uint32_t bits, bool is_signed)
{
    const uint64_t field = x >> (index * bits) & bits_mask(bits);
    return is_signed ? sign_extend(field, bits) : (int64_t)field;
}
static trap op_dp4a(struct warp *w, const struct insn *in, uint32_t lanes)
{
    const bool signed_a = in->type[0] == T_S32, signed_b = in->type[1] == T_S32;
    uint64_t *d = destination(w, in, 0);
    const uint64_t *a = source(w, in, 1), *b = source(w, in, 2), *c = source(w, in, 3);
    FOR_LANES(l, lanes) {
        int64_t sum = sign_extend(c[l], 32);
        for (uint32_t i = 0; i < 4; i++) sum += part(a[l], i, 8, signed_a) * part(b[l], i, 8, signed_b);
        d[l] = (uint64_t)sum & UINT32_MAX;
    }
    return TRAP_NONE;
}
static trap op_dp2a(struct warp *w, const struct insn *in, uint32_t lanes)
{
    const bool signed_a = in->type[0] == T_S32, signed_b = in->type[1] == T_S32;
    const uint32_t first = insn_has(in, ".hi") ? 2 : 0;
    uint64_t *d = destination(w, in, 0);
    const uint64_t *a = source(w, in, 1), *b = source(w, in, 2), *c = source(w, in, 3);
    FOR_LANES(l, lanes) {
        int64_t sum = sign_extend(c[l], 32);
        for (uint32_t i = 0; i < 2; i++) sum += part(a[l], i, 16, signed_a) * part(b[l], first + i, 8, signed_b);
        d[l] = (uint64_t)sum & UINT32_MAX;
    }
    return TRAP_NONE;
}

static const struct row rows[] = {
    { "and.$1", "b16 b32 b64", "d:1 s:1 s:1", 10, "", 0, op_and, NULL, "9.7.8.1 and" },
    { "and.pred", NULL, "P p p", 10, "", 0, op_pred, prepare_pred, "9.7.8.1 and" },
    { "or.$1", "b16 b32 b64", "d:1 s:1 s:1", 10, "", 0, op_or, NULL, "9.7.8.2 or" },
    { "or.pred", NULL, "P p p", 10, "", 0, op_pred, prepare_pred, "9.7.8.2 or" },
    { "xor.$1", "b16 b32 b64", "d:1 s:1 s:1", 10, "", 0, op_xor, NULL, "9.7.8.3 xor" },
    { "xor.pred", NULL, "P p p", 10, "", 0, op_pred, prepare_pred, "9.7.8.3 xor" },
    { "not.$1", "b16 b32 b64", "d:1 s:1", 10, "", 0, op_not, NULL, "9.7.8.4 not" },
    { "not.pred", NULL, "P p", 10, "", 0, op_not_pred, NULL, "9.7.8.4 not" },
    { "cnot.$1", "b16 b32 b64", "d:1 s:1", 10, "", 0, op_cnot, NULL, "9.7.8.5 cnot" },
    { "lop3.$1", "b32", "d:1 s:1 s:1 s:1 i:u32", 43, "", 0, op_lop3, NULL, "9.7.8.6 lop3" },
    { "lop3(.or|.and).$1", "b32", "d_:1 &P s:1 s:1 s:1 i:u32 p", 82, "sm_70+", 0, op_lop3_pred, NULL, "9.7.8.6 lop3" },
    { "shl.$1", "b16 b32 b64", "d:1 s:1 s:u32", 10, "", 0, op_shift, prepare_shl, "9.7.8.8 shl" },
    { "shr.$1", "b16 b32 b64 u16 u32 u64 s16 s32 s64", "d:1 s:1 s:u32", 10, "", 0, op_shift, prepare_shr,
      "9.7.8.9 shr" },
    { "shf.l(.clamp|.wrap).b32", NULL, "d:b32 s:b32 s:b32 s:u32", 31, "", 0, op_shf_l, prepare_shf, "9.7.8.7 shf" },
    { "shf.r(.clamp|.wrap).b32", NULL, "d:b32 s:b32 s:b32 s:u32", 31, "", 0, op_shf_r, prepare_shf, "9.7.8.7 shf" },
    { "bfe.$1", "u32 u64 s32 s64", "d:1 s:1 s:u32 s:u32", 20, "", 0, op_bfe, NULL, "9.7.1.19 bfe" },
    { "bfi.$1", "b32 b64", "d:1 s:1 s:1 s:u32 s:u32", 20, "", 0, op_bfi, NULL, "9.7.1.20 bfi" },
    { "szext(.clamp|.wrap).$1", "u32 s32", "d:1 s:1 s:u32", 76, "sm_70+", 0, op_szext, NULL, "9.7.1.21 szext" },
    { "bmsk(.clamp|.wrap).b32", NULL, "d:b32 s:u32 s:u32", 76, "sm_70+", 0, op_bmsk, NULL, "9.7.1.22 bmsk" },
    { "dp4a.$1.$2", "u32 s32; u32 s32", "d:b32 s:b32 s:b32 s:b32", 50, "sm_61+", 0, op_dp4a, NULL, "9.7.1.23 dp4a" },
    { "dp2a(.lo|.hi).$1.$2", "u32 s32; u32 s32", "d:b32 s:b32 s:b32 s:b32", 50, "sm_61+", 0, op_dp2a, NULL,
      "9.7.1.24 dp2a" },
    { "prmt.b32{.f4e|.b4e|.rc8|.ecl|.ecr|.rc16}", NULL, "d:b32 s:b32 s:b32 s:b32", 20, "", 0, op_prmt, NULL,
      "9.7.9.7 prmt" },
};

const struct family family_logic = FAMILY("logic, shifts, bit fields", rows);
