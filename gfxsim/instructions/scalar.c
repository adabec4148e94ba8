/* Scalar arithmetic: SOP2, SOPK, SOP1, SOPC. */
#include "families.h"
#include "machine/registers.h"
#include "machine/report.h"

/* What an operation gives: a value, SCC, and which bits of the value nobody has written. */
struct scalar_result { uint64_t value, undefined; bool scc, sets_scc; };

static bool sources(struct wave *w, const struct insn *in, struct scalar s[2])
{
    int n = 0;
    s[0] = s[1] = (struct scalar){ 0, 0 };
    for (int i = 0; i < in->operands; i++) {
        const char role = in->operand[i].role;
        if (role != 's' && role != 'x' && role != 'k') continue;
        if (!scalar_read(w, in, &in->operand[i], &s[n++ & 1])) return false;
    }
    return true;
}

static trap finish(struct wave *w, const struct insn *in, struct scalar_result r)
{
    if (in->operands > 0 && (in->operand[0].role == 'd' || in->operand[0].role == 'x')) {
        if (in->operand[0].dwords == 1) r.value = (uint32_t)r.value, r.undefined = (uint32_t)r.undefined;
        if (!scalar_write(w, in, &in->operand[0], (struct scalar){ r.value, r.undefined }, WRITER_SALU))
            return TRAP_FAULT;
    }
    if (r.sets_scc) w->scc = r.scc, w->scc_defined = r.undefined == 0;
    return TRAP_NONE;
}

/* Arithmetic: one undefined bit makes the result undefined; bitwise operations say themselves. */
static uint64_t spread(const struct scalar s[2]) { return (s[0].undefined | s[1].undefined) != 0 ? UINT64_MAX : 0; }

enum set { SETS_NOTHING, SETS_NONZERO, SETS_GIVEN };

#define SCALAR(name, sets, ...) \
    static trap name(struct wave *w, const struct insn *in) \
    { \
        struct scalar s[2]; \
        if (!sources(w, in, s)) return TRAP_FAULT; \
        const uint64_t a = s[0].value, b = s[1].value; \
        uint64_t d = 0, undefined = spread(s); \
        bool c = w->scc; \
        (void)a, (void)b; \
        __VA_ARGS__; \
        if (in->operand[0].dwords == 1) d = (uint32_t)d; \
        const bool scc = (sets) == SETS_NONZERO ? d != 0 : c; \
        return finish(w, in, (struct scalar_result){ d, undefined, scc, (sets) != SETS_NOTHING }); \
    }
#define A32 ((uint32_t)a)
#define B32 ((uint32_t)b)
#define S32(v) ((int32_t)(v))

SCALAR(s_add_u32, SETS_GIVEN, d = A32 + (uint64_t)B32; c = d >> 32 & 1)
SCALAR(s_sub_u32, SETS_GIVEN, d = A32 - B32; c = A32 < B32)
SCALAR(s_add_i32, SETS_GIVEN, d = A32 + B32; c = ((a ^ d) & (b ^ d)) >> 31 & 1)
SCALAR(s_sub_i32, SETS_GIVEN, d = A32 - B32; c = ((a ^ b) & (a ^ d)) >> 31 & 1)
SCALAR(s_addc_u32, SETS_GIVEN, d = A32 + (uint64_t)B32 + c; c = d >> 32 & 1)
SCALAR(s_subb_u32, SETS_GIVEN, const uint64_t all = A32 - (uint64_t)B32 - c; d = all; c = all >> 63)
SCALAR(s_min_i32, SETS_GIVEN, c = S32(a) < S32(b); d = c ? a : b)
SCALAR(s_min_u32, SETS_GIVEN, c = A32 < B32; d = c ? a : b)
/* on ties SCC is set, too */
SCALAR(s_max_i32, SETS_GIVEN, c = S32(a) >= S32(b); d = c ? a : b)
SCALAR(s_max_u32, SETS_GIVEN, c = A32 >= B32; d = c ? a : b)
SCALAR(s_cselect, SETS_NOTHING, d = c ? a : b; undefined = c ? s[0].undefined : s[1].undefined)
/* a bit that decides alone is known, whatever the other is */
SCALAR(s_and, SETS_NONZERO, d = a & b;
       undefined = (s[0].undefined | s[1].undefined) & (a | s[0].undefined) & (b | s[1].undefined))
SCALAR(s_or, SETS_NONZERO, d = a | b;
       undefined = (s[0].undefined | s[1].undefined) & (~a | s[0].undefined) & (~b | s[1].undefined))
SCALAR(s_xor, SETS_NONZERO, d = a ^ b; undefined = s[0].undefined | s[1].undefined)
SCALAR(s_andn2, SETS_NONZERO, d = a & ~b;
       undefined = (s[0].undefined | s[1].undefined) & (a | s[0].undefined) & (~b | s[1].undefined))
SCALAR(s_orn2, SETS_NONZERO, d = a | ~b; undefined = s[0].undefined | s[1].undefined)
SCALAR(s_nand, SETS_NONZERO, d = ~(a & b))
SCALAR(s_nor, SETS_NONZERO, d = ~(a | b))
SCALAR(s_xnor, SETS_NONZERO, d = ~(a ^ b))
SCALAR(s_lshl_b32, SETS_NONZERO, d = A32 << (b & 31))
SCALAR(s_lshl_b64, SETS_NONZERO, d = a << (b & 63))
SCALAR(s_lshr_b32, SETS_NONZERO, d = A32 >> (b & 31))
SCALAR(s_lshr_b64, SETS_NONZERO, d = a >> (b & 63))
SCALAR(s_ashr_i32, SETS_NONZERO, d = (uint64_t)(int64_t)(S32(a) >> (b & 31)))
SCALAR(s_ashr_i64, SETS_NONZERO, d = (uint64_t)((int64_t)a >> (b & 63)))
SCALAR(s_bfm_b32, SETS_NOTHING, d = ((UINT64_C(1) << (a & 31)) - 1) << (b & 31))
SCALAR(s_bfm_b64, SETS_NOTHING, d = ((UINT64_C(1) << (a & 63)) - 1) << (b & 63))
SCALAR(s_mul_i32, SETS_NOTHING, d = A32 * (uint64_t)B32)
static uint64_t field(uint64_t a, uint64_t b, uint32_t bits, bool is_signed)
{
    const uint32_t offset = (uint32_t)b & (bits - 1), asked = (uint32_t)(b >> 16) & 0x7f,
                   width = asked > bits ? bits : asked;
    if (width == 0) return 0;
    const uint64_t shifted = a >> offset, ones = width >= 64 ? UINT64_MAX : (UINT64_C(1) << width) - 1;
    const uint64_t value = shifted & ones;
    return is_signed && width < 64 && (value >> (width - 1) & 1) != 0 ? value | ~ones : value;
}
SCALAR(s_bfe_u32, SETS_NONZERO, d = field(A32, b, 32, false))
SCALAR(s_bfe_i32, SETS_NONZERO, d = field((uint64_t)(int64_t)S32(a), b, 32, true))
SCALAR(s_bfe_u64, SETS_NONZERO, d = field(a, b, 64, false))
SCALAR(s_bfe_i64, SETS_NONZERO, d = field(a, b, 64, true))
SCALAR(s_absdiff_i32, SETS_NONZERO, const int64_t difference = (int64_t)S32(a) - S32(b);
       d = (uint64_t)(difference < 0 ? -difference : difference))
SCALAR(s_mul_hi_u32, SETS_NOTHING, d = A32 * (uint64_t)B32 >> 32)
SCALAR(s_mul_hi_i32, SETS_NOTHING, d = (uint64_t)((int64_t)S32(a) * S32(b)) >> 32)
SCALAR(s_lshl_add_u32, SETS_GIVEN, d = ((uint64_t)A32 << in->row->detail) + B32; c = d >> 32 != 0)
SCALAR(s_pack_ll, SETS_NOTHING, d = (a & 0xffff) | b << 16)
SCALAR(s_pack_lh, SETS_NOTHING, d = (a & 0xffff) | (b & 0xffff0000))
SCALAR(s_pack_hh, SETS_NOTHING, d = A32 >> 16 | (b & 0xffff0000))

static const struct row rows2[] = {
    { "s_add_u32", 0, "d1 s1 s1", 0, 0, s_add_u32, NULL }, { "s_sub_u32", 1, "d1 s1 s1", 0, 0, s_sub_u32, NULL },
    { "s_add_i32", 2, "d1 s1 s1", 0, 0, s_add_i32, NULL }, { "s_sub_i32", 3, "d1 s1 s1", 0, 0, s_sub_i32, NULL },
    { "s_addc_u32", 4, "d1 s1 s1", 0, 0, s_addc_u32, NULL }, { "s_subb_u32", 5, "d1 s1 s1", 0, 0, s_subb_u32, NULL },
    { "s_min_i32", 6, "d1 s1 s1", 0, 0, s_min_i32, NULL }, { "s_min_u32", 7, "d1 s1 s1", 0, 0, s_min_u32, NULL },
    { "s_max_i32", 8, "d1 s1 s1", 0, 0, s_max_i32, NULL }, { "s_max_u32", 9, "d1 s1 s1", 0, 0, s_max_u32, NULL },
    { "s_cselect_b32", 10, "d1 s1 s1", 0, 0, s_cselect, NULL },
    { "s_cselect_b64", 11, "d2 s2 s2", 0, 0, s_cselect, NULL },
    { "s_and_b32", 12, "d1 s1 s1", 0, 0, s_and, NULL }, { "s_and_b64", 13, "d2 s2 s2", 0, 0, s_and, NULL },
    { "s_or_b32", 14, "d1 s1 s1", 0, 0, s_or, NULL }, { "s_or_b64", 15, "d2 s2 s2", 0, 0, s_or, NULL },
    { "s_xor_b32", 16, "d1 s1 s1", 0, 0, s_xor, NULL }, { "s_xor_b64", 17, "d2 s2 s2", 0, 0, s_xor, NULL },
    { "s_andn2_b32", 18, "d1 s1 s1", 0, 0, s_andn2, NULL }, { "s_andn2_b64", 19, "d2 s2 s2", 0, 0, s_andn2, NULL },
    { "s_orn2_b32", 20, "d1 s1 s1", 0, 0, s_orn2, NULL }, { "s_orn2_b64", 21, "d2 s2 s2", 0, 0, s_orn2, NULL },
    { "s_nand_b32", 22, "d1 s1 s1", 0, 0, s_nand, NULL }, { "s_nand_b64", 23, "d2 s2 s2", 0, 0, s_nand, NULL },
    { "s_nor_b32", 24, "d1 s1 s1", 0, 0, s_nor, NULL }, { "s_nor_b64", 25, "d2 s2 s2", 0, 0, s_nor, NULL },
    { "s_xnor_b32", 26, "d1 s1 s1", 0, 0, s_xnor, NULL }, { "s_xnor_b64", 27, "d2 s2 s2", 0, 0, s_xnor, NULL },
    { "s_lshl_b32", 28, "d1 s1 s1", 0, 0, s_lshl_b32, NULL }, { "s_lshl_b64", 29, "d2 s2 s1", 0, 0, s_lshl_b64, NULL },
    { "s_lshr_b32", 30, "d1 s1 s1", 0, 0, s_lshr_b32, NULL }, { "s_lshr_b64", 31, "d2 s2 s1", 0, 0, s_lshr_b64, NULL },
    { "s_ashr_i32", 32, "d1 s1 s1", 0, 0, s_ashr_i32, NULL }, { "s_ashr_i64", 33, "d2 s2i s1", 0, 0, s_ashr_i64, NULL },
    { "s_bfm_b32", 34, "d1 s1 s1", 0, 0, s_bfm_b32, NULL }, { "s_bfm_b64", 35, "d2 s1 s1", 0, 0, s_bfm_b64, NULL },
    { "s_mul_i32", 36, "d1 s1 s1", 0, 0, s_mul_i32, NULL },
    { "s_bfe_u32", 37, "d1 s1 s1", 0, 0, s_bfe_u32, NULL }, { "s_bfe_i32", 38, "d1 s1 s1", 0, 0, s_bfe_i32, NULL },
    { "s_bfe_u64", 39, "d2 s2 s1", 0, 0, s_bfe_u64, NULL }, { "s_bfe_i64", 40, "d2 s2i s1", 0, 0, s_bfe_i64, NULL },
    { "s_absdiff_i32", 42, "d1 s1 s1", 0, 0, s_absdiff_i32, NULL },
    { "s_mul_hi_u32", 44, "d1 s1 s1", 0, 0, s_mul_hi_u32, NULL },
    { "s_mul_hi_i32", 45, "d1 s1 s1", 0, 0, s_mul_hi_i32, NULL },
    { "s_lshl1_add_u32", 46, "d1 s1 s1", 0, 1, s_lshl_add_u32, NULL },
    { "s_lshl2_add_u32", 47, "d1 s1 s1", 0, 2, s_lshl_add_u32, NULL },
    { "s_lshl3_add_u32", 48, "d1 s1 s1", 0, 3, s_lshl_add_u32, NULL },
    { "s_lshl4_add_u32", 49, "d1 s1 s1", 0, 4, s_lshl_add_u32, NULL },
    { "s_pack_ll_b32_b16", 50, "d1 s1 s1", 0, 0, s_pack_ll, NULL },
    { "s_pack_lh_b32_b16", 51, "d1 s1 s1", 0, 0, s_pack_lh, NULL },
    { "s_pack_hh_b32_b16", 52, "d1 s1 s1", 0, 0, s_pack_hh, NULL },
};
const struct family family_scalar2 = FAMILY("Scalar ALU Operations", FORMAT_SOP2, rows2);

/* ---- with a constant of 16 bits ---- */

SCALAR(s_movk_i32, SETS_NOTHING, d = (uint64_t)(int64_t)in->simm)
static trap s_cmovk_i32(struct wave *w, const struct insn *in) { return w->scc ? s_movk_i32(w, in) : TRAP_NONE; }
SCALAR(s_addk_i32, SETS_GIVEN, const uint32_t k = (uint32_t)in->simm; d = A32 + k; c = ((A32 ^ d) & (k ^ d)) >> 31 & 1)
SCALAR(s_mulk_i32, SETS_NOTHING, d = A32 * (uint32_t)in->simm)

enum comparison { EQUAL, DIFFERENT, GREATER, GREATER_EQUAL, LESS, LESS_EQUAL };
static bool compares(enum comparison how, int64_t a, int64_t b)
{
    switch (how) {
    case EQUAL: return a == b;
    case DIFFERENT: return a != b;
    case GREATER: return a > b;
    case GREATER_EQUAL: return a >= b;
    case LESS: return a < b;
    default: return a <= b;
    }
}
#define COMPARES(name, left, right) \
    static trap name(struct wave *w, const struct insn *in) \
    { \
        struct scalar s[2]; \
        if (!sources(w, in, s)) return TRAP_FAULT; \
        const uint64_t a = s[0].value, b = s[1].value; \
        (void)b; \
        w->scc = compares((enum comparison)in->row->detail, left, right); \
        w->scc_defined = (s[0].undefined | s[1].undefined) == 0; \
        return TRAP_NONE; \
    }
COMPARES(s_cmp_i32, S32(a), S32(b))
COMPARES(s_cmp_u32, A32, B32)
COMPARES(s_cmpk_i32, S32(a), in->simm)
COMPARES(s_cmpk_u32, A32, (uint16_t)in->simm)
COMPARES(s_cmp_u64, (int64_t)(a ^ b), 0)
SCALAR(s_bitcmp, SETS_GIVEN, c = (a >> (b & (in->operand[0].dwords == 2 ? 63 : 31)) & 1) == in->row->detail)

static const struct row rows_k[] = {
    { "s_movk_i32", 0, "d1", 0, 0, s_movk_i32, NULL }, { "s_cmovk_i32", 1, "d1", 0, 0, s_cmovk_i32, NULL },
    { "s_cmpk_eq_i32", 2, "x1", 0, EQUAL, s_cmpk_i32, NULL },
      { "s_cmpk_lg_i32", 3, "x1", 0, DIFFERENT, s_cmpk_i32, NULL },
    { "s_cmpk_gt_i32", 4, "x1", 0, GREATER, s_cmpk_i32, NULL },
    { "s_cmpk_ge_i32", 5, "x1", 0, GREATER_EQUAL, s_cmpk_i32, NULL },
    { "s_cmpk_lt_i32", 6, "x1", 0, LESS, s_cmpk_i32, NULL },
    { "s_cmpk_le_i32", 7, "x1", 0, LESS_EQUAL, s_cmpk_i32, NULL },
    { "s_cmpk_eq_u32", 8, "x1", 0, EQUAL, s_cmpk_u32, NULL },
      { "s_cmpk_lg_u32", 9, "x1", 0, DIFFERENT, s_cmpk_u32, NULL },
    { "s_cmpk_gt_u32", 10, "x1", 0, GREATER, s_cmpk_u32, NULL },
    { "s_cmpk_ge_u32", 11, "x1", 0, GREATER_EQUAL, s_cmpk_u32, NULL },
    { "s_cmpk_lt_u32", 12, "x1", 0, LESS, s_cmpk_u32, NULL },
    { "s_cmpk_le_u32", 13, "x1", 0, LESS_EQUAL, s_cmpk_u32, NULL },
    { "s_addk_i32", 14, "x1", 0, 0, s_addk_i32, NULL }, { "s_mulk_i32", 15, "x1", 0, 0, s_mulk_i32, NULL },
};
const struct family family_scalar_k = FAMILY("Scalar ALU Operations", FORMAT_SOPK, rows_k);

/* The distance into M0's lowest byte, what it moves into bits 12 to 15; instructions/valu.c heeds them. */
static trap s_set_gpr_idx_on(struct wave *w, const struct insn *in)
{
    static const struct operand m0 = { .kind = OPERAND_SGPR, .dwords = 1, .index = M0 };
    struct scalar index, old;
    if (!scalar_read(w, in, &in->operand[0], &index) || !scalar_read(w, in, &m0, &old)) return TRAP_FAULT;
    const uint64_t moved = 0xf0ff;
    const struct scalar value = { (old.value & ~moved) | (index.value & 0xff) | (uint64_t)in->simm << 12,
                                  (old.undefined & ~moved) | (index.undefined & 0xff) };
    w->indexing = true;
    return scalar_write(w, in, &m0, value, WRITER_SALU) ? TRAP_NONE : TRAP_FAULT;
}

static const struct row rows_c[] = {
    { "s_cmp_eq_i32", 0, "s1 s1", 0, EQUAL, s_cmp_i32, NULL },
      { "s_cmp_lg_i32", 1, "s1 s1", 0, DIFFERENT, s_cmp_i32, NULL },
    { "s_cmp_gt_i32", 2, "s1 s1", 0, GREATER, s_cmp_i32, NULL },
    { "s_cmp_ge_i32", 3, "s1 s1", 0, GREATER_EQUAL, s_cmp_i32, NULL },
    { "s_cmp_lt_i32", 4, "s1 s1", 0, LESS, s_cmp_i32, NULL },
    { "s_cmp_le_i32", 5, "s1 s1", 0, LESS_EQUAL, s_cmp_i32, NULL },
    { "s_cmp_eq_u32", 6, "s1 s1", 0, EQUAL, s_cmp_u32, NULL },
      { "s_cmp_lg_u32", 7, "s1 s1", 0, DIFFERENT, s_cmp_u32, NULL },
    { "s_cmp_gt_u32", 8, "s1 s1", 0, GREATER, s_cmp_u32, NULL },
    { "s_cmp_ge_u32", 9, "s1 s1", 0, GREATER_EQUAL, s_cmp_u32, NULL },
    { "s_cmp_lt_u32", 10, "s1 s1", 0, LESS, s_cmp_u32, NULL },
    { "s_cmp_le_u32", 11, "s1 s1", 0, LESS_EQUAL, s_cmp_u32, NULL },
    { "s_bitcmp0_b32", 12, "s1 s1", 0, 0, s_bitcmp, NULL }, { "s_bitcmp1_b32", 13, "s1 s1", 0, 1, s_bitcmp, NULL },
    { "s_bitcmp0_b64", 14, "s2 s1", 0, 0, s_bitcmp, NULL }, { "s_bitcmp1_b64", 15, "s2 s1", 0, 1, s_bitcmp, NULL },
    { "s_set_gpr_idx_on", 17, "s1", 0, 0, s_set_gpr_idx_on, NULL },
    { "s_cmp_eq_u64", 18, "s2 s2", 0, EQUAL, s_cmp_u64, NULL },
    { "s_cmp_lg_u64", 19, "s2 s2", 0, DIFFERENT, s_cmp_u64, NULL },
};
const struct family family_scalar_c = FAMILY("Scalar ALU Operations", FORMAT_SOPC, rows_c);

/* ---- one source ---- */

SCALAR(s_mov, SETS_NOTHING, d = a; undefined = s[0].undefined)
static trap s_cmov(struct wave *w, const struct insn *in) { return w->scc ? s_mov(w, in) : TRAP_NONE; }
SCALAR(s_not, SETS_NONZERO, d = ~a; undefined = s[0].undefined)
static uint64_t mirrored(uint64_t a, int bits)
{
    uint64_t d = 0;
    for (int i = 0; i < bits; i++) d |= (a >> i & 1) << (bits - 1 - i);
    return d;
}
SCALAR(s_brev, SETS_NOTHING, d = mirrored(a, 32 * in->operand[0].dwords))
SCALAR(s_bcnt1, SETS_NONZERO, d = (uint64_t)__builtin_popcountll(a))
SCALAR(s_ff1, SETS_NOTHING, d = a == 0 ? UINT64_MAX : (uint64_t)__builtin_ctzll(a))
SCALAR(s_flbit, SETS_NOTHING,
       d = a == 0 ? UINT64_MAX : (uint64_t)__builtin_clzll(a) - (in->operand[1].dwords == 1 ? 32 : 0))
SCALAR(s_sext_i8, SETS_NOTHING, d = (uint64_t)(int64_t)(int8_t)a)
SCALAR(s_sext_i16, SETS_NOTHING, d = (uint64_t)(int64_t)(int16_t)a)
/* the destination is the second source */
SCALAR(s_bitset, SETS_NOTHING,
       d = UINT64_C(1) << (b & (in->operand[0].dwords == 2 ? 63 : 31)); d = in->row->detail ? a | d : a & ~d)
SCALAR(s_abs_i32, SETS_NONZERO, d = S32(a) < 0 ? (uint32_t)0 - A32 : A32)

enum mask_operation { MASK_AND, MASK_OR, MASK_XOR, MASK_ANDN2, MASK_ANDN1 };
static trap s_saveexec(struct wave *w, const struct insn *in)
{
    struct scalar s[2];
    if (!sources(w, in, s)) return TRAP_FAULT;
    const uint64_t exec = wave_exec(w), a = s[0].value;
    static const struct operand target = { .kind = OPERAND_SGPR, .dwords = 2, .index = EXEC };
    uint64_t value = a & exec;
    switch ((enum mask_operation)in->row->detail) {
    case MASK_AND: break;
    case MASK_OR: value = a | exec; break;
    case MASK_XOR: value = a ^ exec; break;
    case MASK_ANDN2: value = a & ~exec; break;
    case MASK_ANDN1: value = ~a & exec; break;
    }
    const uint64_t undefined = in->row->detail == MASK_AND ? s[0].undefined & exec : s[0].undefined;
    if (!scalar_write(w, in, &in->operand[0], (struct scalar){ exec, 0 }, WRITER_SALU)
        || !scalar_write(w, in, &target, (struct scalar){ value, undefined }, WRITER_SALU))
        return TRAP_FAULT;
    w->scc = value != 0, w->scc_defined = true;
    return TRAP_NONE;
}

static uint64_t code_base(const struct wave *w)
{
    const struct program *p = w->group->grid->launch->program;
    return p->base + p->text;
}
SCALAR(s_getpc, SETS_NOTHING, d = code_base(w) + w->next)
static trap jump(struct wave *w, const struct insn *in, const struct operand *o)
{
    uint64_t target;
    if (!scalar_defined(w, in, o, "an address to run at", &target)) return TRAP_FAULT;
    const uint64_t offset = target - code_base(w);
    if (offset >= w->group->grid->launch->program->text_bytes || offset % 4 != 0)
        return wave_fault(w, in, NO_LANE, REPORT_ILLEGAL, "goes to 0x%llx, which is none of the kernel's instructions",
                          (unsigned long long)target);
    w->next = (uint32_t)offset;
    return TRAP_JUMP;
}
static trap s_setpc(struct wave *w, const struct insn *in) { return jump(w, in, &in->operand[0]); }
static trap s_swappc(struct wave *w, const struct insn *in)
{
    const struct scalar back = { code_base(w) + w->next, 0 };
    const trap t = jump(w, in, &in->operand[1]);
    return t == TRAP_FAULT || scalar_write(w, in, &in->operand[0], back, WRITER_SALU) ? t : TRAP_FAULT;
}

static const struct row rows1[] = {
    { "s_mov_b32", 0, "d1 s1", 0, 0, s_mov, NULL }, { "s_mov_b64", 1, "d2 s2i", 0, 0, s_mov, NULL },
    { "s_cmov_b32", 2, "d1 s1", 0, 0, s_cmov, NULL }, { "s_cmov_b64", 3, "d2 s2i", 0, 0, s_cmov, NULL },
    { "s_not_b32", 4, "d1 s1", 0, 0, s_not, NULL }, { "s_not_b64", 5, "d2 s2i", 0, 0, s_not, NULL },
    { "s_brev_b32", 8, "d1 s1", 0, 0, s_brev, NULL }, { "s_brev_b64", 9, "d2 s2i", 0, 0, s_brev, NULL },
    { "s_bcnt1_i32_b32", 12, "d1 s1", 0, 0, s_bcnt1, NULL }, { "s_bcnt1_i32_b64", 13, "d1 s2i", 0, 0, s_bcnt1, NULL },
    { "s_ff1_i32_b32", 16, "d1 s1", 0, 0, s_ff1, NULL }, { "s_ff1_i32_b64", 17, "d1 s2i", 0, 0, s_ff1, NULL },
    { "s_flbit_i32_b32", 18, "d1 s1", 0, 0, s_flbit, NULL }, { "s_flbit_i32_b64", 19, "d1 s2i", 0, 0, s_flbit, NULL },
    { "s_sext_i32_i8", 22, "d1 s1", 0, 0, s_sext_i8, NULL }, { "s_sext_i32_i16", 23, "d1 s1", 0, 0, s_sext_i16, NULL },
    { "s_bitset0_b32", 24, "x1 s1", 0, 0, s_bitset, NULL }, { "s_bitset1_b32", 26, "x1 s1", 0, 1, s_bitset, NULL },
    { "s_bitset0_b64", 25, "x2 s1", 0, 0, s_bitset, NULL }, { "s_bitset1_b64", 27, "x2 s1", 0, 1, s_bitset, NULL },
    { "s_getpc_b64", 28, "d2", 0, 0, s_getpc, NULL }, { "s_setpc_b64", 29, "s2", ROW_VECTOR_SOURCES, 0, s_setpc, NULL },
    { "s_swappc_b64", 30, "d2 s2", ROW_VECTOR_SOURCES, 0, s_swappc, NULL },
    { "s_and_saveexec_b64", 32, "d2 s2i", 0, MASK_AND, s_saveexec, NULL },
    { "s_or_saveexec_b64", 33, "d2 s2i", 0, MASK_OR, s_saveexec, NULL },
    { "s_xor_saveexec_b64", 34, "d2 s2i", 0, MASK_XOR, s_saveexec, NULL },
    { "s_andn2_saveexec_b64", 35, "d2 s2i", 0, MASK_ANDN2, s_saveexec, NULL },
    { "s_abs_i32", 48, "d1 s1", 0, 0, s_abs_i32, NULL },
    { "s_andn1_saveexec_b64", 51, "d2 s2i", 0, MASK_ANDN1, s_saveexec, NULL },
};
const struct family family_scalar1 = FAMILY("Scalar ALU Operations", FORMAT_SOP1, rows1);
