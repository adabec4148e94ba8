/* Comparison and selection (PTX ISA 9.7.6, 9.7.7): setp, set, selp, slct. */
#include "instructions/table/families.h"
#include "real.h"

/* What holds between a and b, as masks of lanes; every operator is a few of these bits. */
struct relation { uint32_t less, equal, unordered; };

static struct relation compare_integers(const uint64_t *a, const uint64_t *b, uint32_t lanes, uint32_t bits,
                                        bool is_signed)
{
    struct relation r = { 0, 0, 0 };
    const uint64_t flip = is_signed ? UINT64_C(1) << (bits - 1) : 0, mask = bits_mask(bits);
    FOR_LANES(l, lanes) {
        const uint64_t x = (a[l] & mask) ^ flip, y = (b[l] & mask) ^ flip;
        r.less |= (uint32_t)(x < y) << l;
        r.equal |= (uint32_t)(x == y) << l;
    }
    return r;
}

/* Every f16, bf16 and f32 is a double. */
static double widen(uint64_t bits, enum ptx_type type, bool ftz)
{
    if (type == T_F64) return bits_f64(bits);
    if (type == T_F32) return (double)bits_f32(ftz ? flush32(bits) : bits);
    const struct real x = real_unpack(real_format_of(type), bits, ftz);
    return bits_f64(real_pack(&real_f64, &x, ROUND_RN, false));
}

static struct relation compare_floats(const uint64_t *a, const uint64_t *b, uint32_t lanes, enum ptx_type type,
                                      bool ftz)
{
    struct relation r = { 0, 0, 0 };
    FOR_LANES(l, lanes) {
        const double x = widen(a[l], type, ftz), y = widen(b[l], type, ftz);
        r.less |= (uint32_t)(x < y) << l;
        r.equal |= (uint32_t)(x == y) << l;
        r.unordered |= (uint32_t)__builtin_isunordered(x, y) << l;
    }
    return r;
}

static uint32_t holds(enum compare operation, struct relation r, uint32_t lanes)
{
    const uint32_t ordered = lanes & ~r.unordered;
    switch (operation) {
    case COMPARE_EQ: return r.equal;
    case COMPARE_NE: return ordered & ~r.equal;
    case COMPARE_LT: case COMPARE_LO: return r.less;
    case COMPARE_LE: case COMPARE_LS: return r.less | r.equal;
    case COMPARE_GT: case COMPARE_HI: return ordered & ~(r.less | r.equal);
    case COMPARE_GE: case COMPARE_HS: return ordered & ~r.less;
    case COMPARE_EQU: return r.equal | r.unordered;
    case COMPARE_NEU: return lanes & ~r.equal;
    case COMPARE_LTU: return r.less | r.unordered;
    case COMPARE_LEU: return r.less | r.equal | r.unordered;
    case COMPARE_GTU: return lanes & ~(r.less | r.equal);
    case COMPARE_GEU: return lanes & ~r.less;
    case COMPARE_NUM: return ordered;
    case COMPARE_NAN: return r.unordered;
    default: return 0;
    }
}

static uint32_t compared(struct warp *w, const struct insn *in, uint32_t lanes, enum ptx_type type, int first)
{
    const uint64_t *a = source(w, in, first), *b = source(w, in, first + 1);
    const struct relation r = type_kind(type) == 'f'
                                  ? compare_floats(a, b, lanes, type, (in->flags & FLAG_FTZ) != 0)
                                  : compare_integers(a, b, lanes, type_bits(type), type_kind(type) == 's');
    return holds((enum compare)in->compare, r, lanes);
}

enum { BOOL_NONE, BOOL_AND, BOOL_OR, BOOL_XOR };
static uint32_t combine(uint32_t x, uint32_t c, uint32_t operation)
{
    return operation == BOOL_AND ? x & c : operation == BOOL_OR ? x | c : operation == BOOL_XOR ? x ^ c : x;
}

/* c of the forms with a boolean operation, which have `count` operands; the others have one less. */
static uint32_t third_predicate(struct warp *w, const struct insn *in, uint32_t lanes, int count)
{
    return in->operands < count ? 0 : predicate_lanes(w, &in->operand[count - 1], lanes);
}

/* setp.cmp p, a, b of f16 and bf16: one result only */
static trap op_setp_half(struct warp *w, const struct insn *in, uint32_t lanes)
{
    const uint32_t is = compared(w, in, lanes, (enum ptx_type)in->type[0], 1);
    const uint32_t c = third_predicate(w, in, lanes, 4);
    const uint32_t p = combine(is, c, (uint32_t)in->detail);
    uint64_t *p_row = destination(w, in, 0);
    FOR_LANES(l, lanes) p_row[l] = p >> l & 1;
    return TRAP_NONE;
}

/* setp.cmp p|q, a, b   p = a cmp b, q = not;  setp.cmp.bool p|q, a, b, c   p = (a cmp b) bool c, q = !(a cmp b) bool
 * c */
static trap op_setp(struct warp *w, const struct insn *in, uint32_t lanes)
{
    const uint32_t is = compared(w, in, lanes, (enum ptx_type)in->type[0], 2);
    const uint32_t c = third_predicate(w, in, lanes, 5);
    const uint32_t operation = (uint32_t)in->detail, p = combine(is, c, operation),
                   q = combine(lanes & ~is, c, operation);
    const bool pair = in->operand[1].kind != OPERAND_NONE;
    uint64_t *p_row = destination(w, in, 0), *q_row = pair ? destination(w, in, 1) : p_row;
    FOR_LANES(l, lanes) {
        if (pair) q_row[l] = q >> l & 1;
        p_row[l] = p >> l & 1;
    }
    return TRAP_NONE;
}

/* Halves compared on their own: low and high results. */
static void compared_x2(struct warp *w, const struct insn *in, uint32_t lanes, enum ptx_type packed, int first,
                        uint32_t c, uint32_t *low, uint32_t *high)
{
    const enum ptx_type type = packed == T_F16X2 ? T_F16 : T_BF16;
    const uint64_t *a = source(w, in, first), *b = source(w, in, first + 1);
    uint64_t low_a[LANES], low_b[LANES], high_a[LANES], high_b[LANES];
    FOR_LANES(l, lanes)
        low_a[l] = a[l] & 0xffff, high_a[l] = a[l] >> 16, low_b[l] = b[l] & 0xffff, high_b[l] = b[l] >> 16;
    const bool ftz = (in->flags & FLAG_FTZ) != 0;
    const enum compare how = (enum compare)in->compare;
    *low = combine(holds(how, compare_floats(low_a, low_b, lanes, type, ftz), lanes), c, (uint32_t)in->detail);
    *high = combine(holds(how, compare_floats(high_a, high_b, lanes, type, ftz), lanes), c, (uint32_t)in->detail);
}

/* setp.f16x2: p for the low halves, q for the high ones */
static trap op_setp_x2(struct warp *w, const struct insn *in, uint32_t lanes)
{
    const uint32_t c = third_predicate(w, in, lanes, 5);
    uint32_t p, q;
    compared_x2(w, in, lanes, (enum ptx_type)in->type[0], 2, c, &p, &q);
    uint64_t *p_row = destination(w, in, 0), *q_row = destination(w, in, 1);
    FOR_LANES(l, lanes) q_row[l] = q >> l & 1, p_row[l] = p >> l & 1;
    return TRAP_NONE;
}

/* set of f16x2, bf16x2: each half of d all ones (u32, s32) or 1.0 */
static trap op_set_x2(struct warp *w, const struct insn *in, uint32_t lanes)
{
    const uint32_t c = third_predicate(w, in, lanes, 4);
    const enum ptx_type type = (enum ptx_type)in->type[0];
    const uint64_t yes = type == T_F16X2 ? 0x3c00 : type == T_BF16X2 ? 0x3f80 : 0xffff;
    uint32_t low, high;
    compared_x2(w, in, lanes, (enum ptx_type)in->type[1], 1, c, &low, &high);
    uint64_t *d = destination(w, in, 0);
    FOR_LANES(l, lanes) d[l] = ((low >> l & 1) != 0 ? yes : 0) | ((high >> l & 1) != 0 ? yes << 16 : 0);
    return TRAP_NONE;
}

/* set.cmp.dtype.stype d, a, b   all ones or 1.0 where it holds, else 0 */
static trap op_set(struct warp *w, const struct insn *in, uint32_t lanes)
{
    const enum ptx_type type = (enum ptx_type)in->type[0];
    const uint32_t c = third_predicate(w, in, lanes, 4);
    const uint32_t is = combine(compared(w, in, lanes, (enum ptx_type)in->type[1], 1), c, (uint32_t)in->detail);
    const uint64_t yes = type == T_F32    ? 0x3f800000
                         : type == T_F16  ? 0x3c00
                         : type == T_BF16 ? 0x3f80
                                          : bits_mask(type_bits(type));
    uint64_t *d = destination(w, in, 0);
    FOR_LANES(l, lanes) d[l] = (is >> l & 1) != 0 ? yes : 0;
    return TRAP_NONE;
}

static const char *check_operator(const struct insn *in, enum ptx_type type)
{
    const char kind = type_kind(type);
    const enum compare c = (enum compare)in->compare;
    if (kind == 'f' && c >= COMPARE_LO && c <= COMPARE_HS) return "floats are not compared by .lo, .ls, .hi or .hs";
    if (kind != 'f' && c >= COMPARE_EQU) return "integers are not compared by operators for NaN";
    if (kind == 'b' && c != COMPARE_EQ && c != COMPARE_NE) return "bits are compared by .eq and .ne only";
    if (kind == 's' && c >= COMPARE_LO && c <= COMPARE_HS)
        return "signed integers are not compared by .lo, .ls, .hi or .hs";
    return NULL;
}
static void note_boolean(struct insn *in)
{
    in->detail = insn_has(in, ".and")   ? BOOL_AND
                 : insn_has(in, ".or")  ? BOOL_OR
                 : insn_has(in, ".xor") ? BOOL_XOR
                                        : BOOL_NONE;
}
static const char *prepare_setp(struct module *module, struct insn *in)
{
    (void)module;
    note_boolean(in);
    if ((in->flags & FLAG_FTZ) != 0 && type_kind((enum ptx_type)in->type[0]) != 'f') return ".ftz is for f32 and f16";
    if ((in->flags & FLAG_FTZ) != 0 && (in->type[0] == T_F64 || in->type[0] == T_BF16))
        return ".ftz is for f32 and f16";
    return check_operator(in, (enum ptx_type)in->type[0]);
}
static const char *prepare_set(struct module *module, struct insn *in)
{
    (void)module;
    note_boolean(in);
    const enum ptx_type from = (enum ptx_type)in->type[1];
    if ((in->flags & FLAG_FTZ) != 0 && from != T_F32 && from != T_F16 && from != T_F16X2)
        return ".ftz is for f32 and f16";
    return check_operator(in, (enum ptx_type)in->type[1]);
}

/* selp d, a, b, p   p ? a : b */
static trap op_selp(struct warp *w, const struct insn *in, uint32_t lanes)
{
    uint64_t *d = destination(w, in, 0);
    const uint64_t *a = source(w, in, 1), *b = source(w, in, 2);
    const uint32_t p = predicate_lanes(w, &in->operand[3], lanes);
    FOR_LANES(l, lanes) d[l] = ((p >> l & 1) != 0 ? a[l] : b[l]) & in->mask;
    return TRAP_NONE;
}

/* slct d, a, b, c   c >= 0 ? a : b; a NaN selects b, -0 selects a */
static trap op_slct(struct warp *w, const struct insn *in, uint32_t lanes)
{
    uint64_t *d = destination(w, in, 0);
    const uint64_t *a = source(w, in, 1), *b = source(w, in, 2), *c = source(w, in, 3);
    const bool is_float = in->type[1] == T_F32, ftz = (in->flags & FLAG_FTZ) != 0;
    FOR_LANES(l, lanes) {
        const bool first = is_float ? widen(c[l], T_F32, ftz) >= 0.0 : sign_extend(c[l], 32) >= 0;
        d[l] = (first ? a[l] : b[l]) & in->mask;
    }
    return TRAP_NONE;
}

#define OPERATORS "(.eq|.ne|.lt|.le|.gt|.ge|.lo|.ls|.hi|.hs|.equ|.neu|.ltu|.leu|.gtu|.geu|.num|.nan)"
#define NUMBERS "b16 b32 b64 u16 u32 u64 s16 s32 s64 f32 f64"
#define BOOLEAN "(.and|.or|.xor)"
/* A form, and the form with a predicate. */
#define COMPARE(name, operands, boolean_operands, ftz, types, since, targets, run, prepare, section) \
    { name OPERATORS ftz, types, operands, since, targets, 0, run, prepare, section }, \
    { name OPERATORS BOOLEAN ftz, types, boolean_operands, since, targets, 0, run, prepare, section }
#define SET(ftz, types, since, targets, run, section) \
    COMPARE("set", "d:1 s:2 s:2", "d:1 s:2 s:2 p", ftz ".$1.$2", types, since, targets, run, prepare_set, section)
static const struct row rows[] = {
    COMPARE("setp", "P |P s:1 s:1", "P |P s:1 s:1 p", "{.ftz}.$1", NUMBERS, 10, "", op_setp, prepare_setp,
            "9.7.6.2 setp"),
    COMPARE("setp", "P s:1 s:1", "P s:1 s:1 p", "{.ftz}.$1", "f16", 42, "sm_53+", op_setp_half, prepare_setp,
            "9.7.7.2 setp"),
    COMPARE("setp", "P s:1 s:1", "P s:1 s:1 p", ".$1", "bf16", 78, "sm_90+", op_setp_half, prepare_setp,
            "9.7.7.2 setp"),
    COMPARE("setp", "P &P s:1 s:1", "P &P s:1 s:1 p", "{.ftz}.$1", "f16x2", 42, "sm_53+", op_setp_x2, prepare_setp,
            "9.7.7.2 setp"),
    COMPARE("setp", "P &P s:1 s:1", "P &P s:1 s:1 p", ".$1", "bf16x2", 78, "sm_90+", op_setp_x2, prepare_setp,
            "9.7.7.2 setp"),
    SET("{.ftz}", "u32 s32 f32; " NUMBERS, 10, "", op_set, "9.7.6.1 set"),
    SET("{.ftz}", "u16 s16 u32 s32; f16", 42, "sm_53+", op_set, "9.7.7.1 set"),
    SET("{.ftz}", "f16; " NUMBERS " f16", 42, "sm_53+", op_set, "9.7.7.1 set"),
    SET("", "u16 s16 u32 s32; bf16", 78, "sm_90+", op_set, "9.7.7.1 set"),
    SET("", "bf16; " NUMBERS " bf16", 78, "sm_90+", op_set, "9.7.7.1 set"),
    SET("{.ftz}", "u32 s32 f16x2; f16x2", 42, "sm_53+", op_set_x2, "9.7.7.1 set"),
    SET("", "u32 s32 bf16x2; bf16x2", 78, "sm_90+", op_set_x2, "9.7.7.1 set"),
    { "selp.$1", NUMBERS, "d:1 s:1 s:1 p", 10, "", 0, op_selp, NULL, "9.7.6.3 selp" },
    { "slct{.ftz}.$1.$2", "b16 b32 b64 u16 u32 u64 s16 s32 s64 f32 f64; f32", "d:1 s:1 s:1 s:2", 10, "", 0, op_slct,
      NULL, "9.7.6.4 slct" },
    { "slct.$1.$2", "b16 b32 b64 u16 u32 u64 s16 s32 s64 f32 f64; s32", "d:1 s:1 s:1 s:2", 10, "", 0, op_slct, NULL,
      "9.7.6.4 slct" },
};

const struct family family_compare = FAMILY("comparison and selection", rows);
