/* Vector arithmetic of integers and bits: VOP1, VOP2, VOP3. */
#include "families.h"
#include "valu.h"

LANES_OF(v_mov_b32, A)
static void v_mov_b64(struct lanes *x) { for (uint32_t l = 0; l < LANES; l++) set_pair(x->d, l, WA); }
LANES_OF(v_not_b32, ~A)
static uint32_t reversed(uint32_t v)
{
    v = (v >> 1 & 0x55555555) | (v & 0x55555555) << 1;
    v = (v >> 2 & 0x33333333) | (v & 0x33333333) << 2;
    v = (v >> 4 & 0x0f0f0f0f) | (v & 0x0f0f0f0f) << 4;
    return __builtin_bswap32(v);
}
LANES_OF(v_bfrev_b32, reversed(A))
LANES_OF(v_ffbh_u32, A == 0 ? UINT32_MAX : (uint32_t)__builtin_clz(A))
LANES_OF(v_ffbl_b32, A == 0 ? UINT32_MAX : (uint32_t)__builtin_ctz(A))
LANES_OF(v_ffbh_i32, SA == 0 || SA == -1 ? UINT32_MAX : (uint32_t)__builtin_clz(SA < 0 ? ~A : A))
/* x^32 + ...: the next number of the generator that stochastic rounding uses, too */
LANES_OF(v_prng_b32, A << 1 ^ ((A >> 31) != 0 ? 197u : 0u))
static void v_nop(struct lanes *x) { (void)x; }

static const struct row rows1[] = {
    { "v_nop", 0, "", ROW_NO_SHORT, 0, valu_run, v_nop },
    { "v_mov_b32", 1, "d1 s1", ROW_BYTEWISE, 0, valu_run, v_mov_b32 },
    { "v_not_b32", 43, "d1 s1", ROW_BYTEWISE, 0, valu_run, v_not_b32 },
    { "v_bfrev_b32", 44, "d1 s1", ROW_BITWISE, 0, valu_run, v_bfrev_b32 },
    { "v_ffbh_u32", 45, "d1 s1", 0, 0, valu_run, v_ffbh_u32 },
    { "v_ffbl_b32", 46, "d1 s1", 0, 0, valu_run, v_ffbl_b32 },
    { "v_ffbh_i32", 47, "d1 s1", 0, 0, valu_run, v_ffbh_i32 },
    { "v_mov_b64", 56, "d2 s2i", ROW_BYTEWISE, 0, valu_run, v_mov_b64 },
    { "v_accvgpr_mov_b32", 82, "d1 s1", ROW_BYTEWISE | ROW_NO_SHORT, 0, valu_run, v_mov_b32 },
    { "v_prng_b32", 88, "d1 s1", 0, 0, valu_run, v_prng_b32 },
};
const struct family family_vector1 = FAMILY("Vector ALU Operations", FORMAT_VOP1, rows1);

/* ---- VOP2 ---- */

static void v_cndmask_b32(struct lanes *x)
{
    const uint64_t m = x->mask_in;
    for (uint32_t l = 0; l < LANES; l++) x->d[l] = (m >> l & 1) != 0 ? B : A;
    for (int b = 0; b < 4; b++)
        x->d_defined[0][b] = x->mask_in_defined ? (x->s_defined[0][0][b] & ~m) | (x->s_defined[1][0][b] & m) : 0;
}
static int32_t low24(uint32_t v) { return (int32_t)(v << 8) >> 8; }
LANES_OF(v_mul_i32_i24, (int64_t)low24(A) * low24(B))
LANES_OF(v_mul_hi_i32_i24, (int64_t)low24(A) * low24(B) >> 32)
LANES_OF(v_mul_u32_u24, (uint64_t)(A & 0xffffff) * (B & 0xffffff))
LANES_OF(v_mul_hi_u32_u24, (uint64_t)(A & 0xffffff) * (B & 0xffffff) >> 32)
LANES_OF(v_min_i32, SA < SB ? A : B)
LANES_OF(v_max_i32, SA > SB ? A : B)
LANES_OF(v_min_u32, A < B ? A : B)
LANES_OF(v_max_u32, A > B ? A : B)
LANES_OF(v_lshrrev_b32, B >> (A & 31))
LANES_OF(v_ashrrev_i32, SB >> (A & 31))
LANES_OF(v_lshlrev_b32, B << (A & 31))
LANES_OF(v_and_b32, A & B)
LANES_OF(v_or_b32, A | B)
LANES_OF(v_xor_b32, A ^ B)
LANES_OF(v_xnor_b32, ~(A ^ B))
static uint32_t sum_of(const struct lanes *x, uint32_t a, uint32_t b)
{
    return x->in->clamp && a + b < a ? UINT32_MAX : a + b;
}
static uint32_t difference_of(const struct lanes *x, uint32_t a, uint32_t b)
{
    return x->in->clamp && a < b ? 0 : a - b;
}
LANES_OF(v_add_u32, sum_of(x, A, B))
LANES_OF(v_sub_u32, difference_of(x, A, B))
LANES_OF(v_subrev_u32, difference_of(x, B, A))
LANES_OF(v_lshlrev_b16, (B << (A & 15)) & 0xffff)
LANES_OF(v_lshrrev_b16, (B & 0xffff) >> (A & 15))
static uint32_t short_of(const struct lanes *x, int32_t value)
{
    return (uint32_t)(!x->in->clamp ? value : value < 0 ? 0 : value > 0xffff ? 0xffff : value) & 0xffff;
}
LANES_OF(v_add_u16, short_of(x, (int32_t)(A & 0xffff) + (int32_t)(B & 0xffff)))
LANES_OF(v_sub_u16, short_of(x, (int32_t)(A & 0xffff) - (int32_t)(B & 0xffff)))
LANES_OF(v_subrev_u16, short_of(x, (int32_t)(B & 0xffff) - (int32_t)(A & 0xffff)))
LANES_OF(v_ashrrev_i16, (int16_t)B >> (A & 15) & 0xffff)
LANES_OF(v_mul_lo_u16, (A & 0xffff) * (B & 0xffff) & 0xffff)
LANES_OF(v_max_u16, (A & 0xffff) > (B & 0xffff) ? A & 0xffff : B & 0xffff)
LANES_OF(v_min_u16, (A & 0xffff) < (B & 0xffff) ? A & 0xffff : B & 0xffff)
LANES_OF(v_max_i16, (int16_t)A > (int16_t)B ? A & 0xffff : B & 0xffff)
LANES_OF(v_min_i16, (int16_t)A < (int16_t)B ? A & 0xffff : B & 0xffff)

/* Sums with carry: the mask that comes in and goes out. */
#define CARRY_OF(name, expression) \
    static void name(struct lanes *x) \
    { \
        for (uint32_t l = 0; l < LANES; l++) { \
            const uint64_t carry = x->mask_in >> l & 1, sum = (expression); \
            (void)carry; \
            x->d[l] = (uint32_t)sum; \
            x->mask_out |= (sum >> 32 & 1) << l; \
        } \
    }
CARRY_OF(v_add_co_u32, (uint64_t)A + B)
CARRY_OF(v_sub_co_u32, (uint64_t)A - B)
CARRY_OF(v_subrev_co_u32, (uint64_t)B - A)
CARRY_OF(v_addc_co_u32, (uint64_t)A + B + carry)
CARRY_OF(v_subb_co_u32, (uint64_t)A - B - carry)
CARRY_OF(v_subbrev_co_u32, (uint64_t)B - A - carry)

static const struct row rows2[] = {
    { "v_cndmask_b32", 0, "d1 s1 s1 m2", ROW_OWN_DEFINED | ROW_FLOAT, 0, valu_run, v_cndmask_b32 },
    { "v_mul_i32_i24", 6, "d1 s1 s1", 0, 0, valu_run, v_mul_i32_i24 },
    { "v_mul_hi_i32_i24", 7, "d1 s1 s1", 0, 0, valu_run, v_mul_hi_i32_i24 },
    { "v_mul_u32_u24", 8, "d1 s1 s1", 0, 0, valu_run, v_mul_u32_u24 },
    { "v_mul_hi_u32_u24", 9, "d1 s1 s1", 0, 0, valu_run, v_mul_hi_u32_u24 },
    { "v_min_i32", 12, "d1 s1 s1", 0, 0, valu_run, v_min_i32 },
    { "v_max_i32", 13, "d1 s1 s1", 0, 0, valu_run, v_max_i32 },
    { "v_min_u32", 14, "d1 s1 s1", 0, 0, valu_run, v_min_u32 },
    { "v_max_u32", 15, "d1 s1 s1", 0, 0, valu_run, v_max_u32 },
    { "v_lshrrev_b32", 16, "d1 s1 s1", ROW_BITWISE, 1, valu_run, v_lshrrev_b32 },
    { "v_ashrrev_i32", 17, "d1 s1 s1", ROW_BITWISE, 1, valu_run, v_ashrrev_i32 },
    { "v_lshlrev_b32", 18, "d1 s1 s1", ROW_BITWISE, 1, valu_run, v_lshlrev_b32 },
    { "v_and_b32", 19, "d1 s1 s1", ROW_BITWISE, 0, valu_run, v_and_b32 },
    { "v_or_b32", 20, "d1 s1 s1", ROW_BITWISE, 0, valu_run, v_or_b32 },
    { "v_xor_b32", 21, "d1 s1 s1", ROW_BYTEWISE, 0, valu_run, v_xor_b32 },
    { "v_add_co_u32", 25, "d1 c2 s1 s1", 0, 0, valu_run, v_add_co_u32 },
    { "v_sub_co_u32", 26, "d1 c2 s1 s1", 0, 0, valu_run, v_sub_co_u32 },
    { "v_subrev_co_u32", 27, "d1 c2 s1 s1", 0, 0, valu_run, v_subrev_co_u32 },
    { "v_addc_co_u32", 28, "d1 c2 s1 s1 m2", 0, 0, valu_run, v_addc_co_u32 },
    { "v_subb_co_u32", 29, "d1 c2 s1 s1 m2", 0, 0, valu_run, v_subb_co_u32 },
    { "v_subbrev_co_u32", 30, "d1 c2 s1 s1 m2", 0, 0, valu_run, v_subbrev_co_u32 },
    { "v_add_u16", 38, "d1 s1w s1w", ROW_CLAMPS, 0, valu_run, v_add_u16 },
    { "v_sub_u16", 39, "d1 s1w s1w", ROW_CLAMPS, 0, valu_run, v_sub_u16 },
    { "v_subrev_u16", 40, "d1 s1w s1w", ROW_CLAMPS, 0, valu_run, v_subrev_u16 },
    { "v_mul_lo_u16", 41, "d1 s1w s1w", 0, 0, valu_run, v_mul_lo_u16 },
    { "v_lshlrev_b16", 42, "d1 s1w s1w", ROW_BITWISE, 1, valu_run, v_lshlrev_b16 },
    { "v_lshrrev_b16", 43, "d1 s1w s1w", ROW_BITWISE, 1, valu_run, v_lshrrev_b16 },
    { "v_ashrrev_i16", 44, "d1 s1w s1w", ROW_BITWISE, 1, valu_run, v_ashrrev_i16 },
    { "v_max_u16", 47, "d1 s1w s1w", 0, 0, valu_run, v_max_u16 },
    { "v_max_i16", 48, "d1 s1w s1w", 0, 0, valu_run, v_max_i16 },
    { "v_min_u16", 49, "d1 s1w s1w", 0, 0, valu_run, v_min_u16 },
    { "v_min_i16", 50, "d1 s1w s1w", 0, 0, valu_run, v_min_i16 },
    { "v_add_u32", 52, "d1 s1 s1", ROW_CLAMPS, 0, valu_run, v_add_u32 },
    { "v_sub_u32", 53, "d1 s1 s1", ROW_CLAMPS, 0, valu_run, v_sub_u32 },
    { "v_subrev_u32", 54, "d1 s1 s1", ROW_CLAMPS, 0, valu_run, v_subrev_u32 },
    { "v_xnor_b32", 61, "d1 s1 s1", ROW_BYTEWISE, 0, valu_run, v_xnor_b32 },
};
const struct family family_vector2 = FAMILY("Vector ALU Operations", FORMAT_VOP2, rows2);

/* ---- VOP3 ---- */

LANES_OF(v_mad_i32_i24, (int64_t)low24(A) * low24(B) + SC)
LANES_OF(v_mad_u32_u24, (uint64_t)(A & 0xffffff) * (B & 0xffffff) + C)
LANES_OF(v_bfe_u32, (C & 31) == 0 ? 0 : (A >> (B & 31)) & (UINT32_MAX >> (32 - (C & 31))))
static uint32_t bfe_signed(uint32_t a, uint32_t b, uint32_t c)
{
    const uint32_t width = c & 31, offset = b & 31;
    if (width == 0) return 0;
    const uint32_t left = offset + width >= 32 ? 0 : 32 - offset - width;
    return (uint32_t)((int32_t)(a << left) >> (left + offset > 31 ? 31 : left + offset));
}
LANES_OF(v_bfe_i32, bfe_signed(A, B, C))
LANES_OF(v_bfi_b32, (A & B) | (~A & C))
LANES_OF(v_alignbit_b32, ((uint64_t)A << 32 | B) >> (C & 31))
LANES_OF(v_alignbyte_b32, ((uint64_t)A << 32 | B) >> 8 * (C & 3))
#define LEAST(a, b) ((a) < (b) ? (a) : (b))
#define MOST(a, b) ((a) > (b) ? (a) : (b))
LANES_OF(v_min3_i32, LEAST(LEAST(SA, SB), SC))
LANES_OF(v_min3_u32, LEAST(LEAST(A, B), C))
LANES_OF(v_max3_i32, MOST(MOST(SA, SB), SC))
LANES_OF(v_max3_u32, MOST(MOST(A, B), C))
LANES_OF(v_med3_i32, MOST(LEAST(SA, SB), LEAST(MOST(SA, SB), SC)))
LANES_OF(v_med3_u32, MOST(LEAST(A, B), LEAST(MOST(A, B), C)))
/* Each byte of C names a byte of { A, B }: 0..7; 8..11 the sign of a half, 12 zero, above all ones. */
static uint32_t permuted(uint64_t data, uint32_t selector)
{
    uint32_t result = 0;
    for (int i = 0; i < 4; i++) {
        const uint32_t s = selector >> 8 * i & 0xff;
        uint32_t byte = s < 8 ? (uint32_t)(data >> 8 * s) & 0xff : s == 12 ? 0 : 0xff;
        if (s >= 8 && s < 12) byte = (data >> (16 * (s - 8) + 15) & 1) != 0 ? 0xff : 0;
        result |= byte << 8 * i;
    }
    return result;
}
static void v_perm_b32(struct lanes *x)
{
    for (uint32_t l = 0; l < LANES; l++) x->d[l] = permuted((uint64_t)A << 32 | B, C);
    memset(x->d_defined[0], 0, sizeof x->d_defined[0]);
    for (uint32_t l = 0; l < LANES; l++)
        for (int i = 0; i < 4; i++) {
            const uint32_t s = C >> 8 * i & 0xff;
            const uint32_t from = s < 8 ? s : s < 12 ? 2 * (s - 8) + 1 : 8;
            const uint64_t known = from == 8 ? 1 : x->s_defined[from < 4][0][from & 3] >> l & 1;
            x->d_defined[0][i] |= (known & x->s_defined[2][0][i] >> l) << l;
        }
}
LANES_OF(v_xad_u32, (A ^ B) + C)
LANES_OF(v_lshl_add_u32, (A << (B & 31)) + C)
LANES_OF(v_add_lshl_u32, (A + B) << (C & 31))
LANES_OF(v_add3_u32, A + B + C)
LANES_OF(v_lshl_or_b32, (A << (B & 31)) | C)
LANES_OF(v_and_or_b32, (A & B) | C)
LANES_OF(v_or3_b32, A | B | C)
LANES_OF(v_mad_u32_u16, (A & 0xffff) * (B & 0xffff) + C)
/* Shifts of 0 to 4; larger ones count as 0. */
WIDE_OF(v_lshl_add_u64, (WA << ((B & 7) > 4 ? 0 : B & 7)) + WC)
LANES_OF(v_bitop3_b32, looked_up(truth_table(x->in), A, B, C))
LANES_OF(v_mul_lo_u32, A * B)
LANES_OF(v_mul_hi_u32, (uint64_t)A * B >> 32)
LANES_OF(v_mul_hi_i32, (uint64_t)((int64_t)SA * SB) >> 32)
LANES_OF(v_bcnt_u32_b32, (uint32_t)__builtin_popcount(A) + B)
LANES_OF(v_mbcnt_lo_u32_b32, (uint32_t)__builtin_popcount(A & (l >= 32 ? UINT32_MAX : (1u << l) - 1)) + B)
LANES_OF(v_mbcnt_hi_u32_b32, (uint32_t)__builtin_popcount(l < 32 ? 0 : A & ((1u << (l - 32)) - 1)) + B)
static uint32_t saturated(const struct lanes *x, int64_t value)
{
    return (uint32_t)(!x->in->clamp ? value : value > INT32_MAX ? INT32_MAX : value < INT32_MIN ? INT32_MIN : value);
}
LANES_OF(v_add_i32, saturated(x, (int64_t)SA + SB))
LANES_OF(v_sub_i32, saturated(x, (int64_t)SA - SB))
LANES_OF(v_bfm_b32, ((1u << (A & 31)) - 1) << (B & 31))
WIDE_OF(v_lshlrev_b64, WB << (A & 63))
WIDE_OF(v_lshrrev_b64, WB >> (A & 63))
WIDE_OF(v_ashrrev_i64, (int64_t)WB >> (A & 63))
/* A sum of 64 bits whose addend C has 64: its low half knows nothing of C's high one, which compilers leave undefined
 * where they want the low half alone. */
static void define_mad(struct lanes *x)
{
    uint64_t low = UINT64_MAX, high = UINT64_MAX;
    for (int b = 0; b < 4; b++) {
        low &= x->s_defined[0][0][b] & x->s_defined[1][0][b] & x->s_defined[2][0][b];
        high &= x->s_defined[2][1][b];
    }
    for (int b = 0; b < 4; b++) x->d_defined[0][b] = low, x->d_defined[1][b] = low & high;
}

static void v_mad_u64_u32(struct lanes *x)
{
    define_mad(x);
    for (uint32_t l = 0; l < LANES; l++) {
        const uint64_t product = (uint64_t)A * B, sum = product + WC;
        set_pair(x->d, l, sum);
        x->mask_out |= (uint64_t)(sum < product) << l;
    }
}
static void v_mad_i64_i32(struct lanes *x)
{
    define_mad(x);
    for (uint32_t l = 0; l < LANES; l++) {
        int64_t sum;
        const bool over = __builtin_add_overflow((int64_t)SA * SB, (int64_t)WC, &sum);
        set_pair(x->d, l, (uint64_t)sum);
        x->mask_out |= (uint64_t)over << l;
    }
}

static const struct row rows3[] = {
    { "v_mad_i32_i24", 450, "d1 s1 s1 s1", 0, 0, valu_run, v_mad_i32_i24 },
    { "v_mad_u32_u24", 451, "d1 s1 s1 s1", 0, 0, valu_run, v_mad_u32_u24 },
    { "v_bfe_u32", 456, "d1 s1 s1 s1", ROW_BITWISE, 6, valu_run, v_bfe_u32 },
    { "v_bfe_i32", 457, "d1 s1 s1 s1", ROW_BITWISE, 6, valu_run, v_bfe_i32 },
    { "v_bfi_b32", 458, "d1 s1 s1 s1", ROW_BITWISE, 0, valu_run, v_bfi_b32 },
    { "v_alignbit_b32", 462, "d1 s1 s1 s1", ROW_BITWISE, 4, valu_run, v_alignbit_b32 },
    { "v_alignbyte_b32", 463, "d1 s1 s1 s1", ROW_BITWISE, 4, valu_run, v_alignbyte_b32 },
    { "v_min3_i32", 465, "d1 s1 s1 s1", 0, 0, valu_run, v_min3_i32 },
    { "v_min3_u32", 466, "d1 s1 s1 s1", 0, 0, valu_run, v_min3_u32 },
    { "v_max3_i32", 468, "d1 s1 s1 s1", 0, 0, valu_run, v_max3_i32 },
    { "v_max3_u32", 469, "d1 s1 s1 s1", 0, 0, valu_run, v_max3_u32 },
    { "v_med3_i32", 471, "d1 s1 s1 s1", 0, 0, valu_run, v_med3_i32 },
    { "v_med3_u32", 472, "d1 s1 s1 s1", 0, 0, valu_run, v_med3_u32 },
    { "v_mad_u64_u32", 488, "d2 c2 s1 s1 s2", ROW_OWN_DEFINED, 0, valu_run, v_mad_u64_u32 },
    { "v_mad_i64_i32", 489, "d2 c2 s1 s1 s2i", ROW_OWN_DEFINED, 0, valu_run, v_mad_i64_i32 },
    { "v_perm_b32", 493, "d1 s1 s1 s1", ROW_OWN_DEFINED, 0, valu_run, v_perm_b32 },
    { "v_mad_u32_u16", 497, "d1 s1w s1w s1", 0, 0, valu_run, v_mad_u32_u16 },
    { "v_xad_u32", 499, "d1 s1 s1 s1", 0, 0, valu_run, v_xad_u32 },
    { "v_lshl_add_u32", 509, "d1 s1 s1 s1", 0, 0, valu_run, v_lshl_add_u32 },
    { "v_add_lshl_u32", 510, "d1 s1 s1 s1", 0, 0, valu_run, v_add_lshl_u32 },
    { "v_add3_u32", 511, "d1 s1 s1 s1", 0, 0, valu_run, v_add3_u32 },
    { "v_lshl_or_b32", 512, "d1 s1 s1 s1", ROW_BITWISE, 2, valu_run, v_lshl_or_b32 },
    { "v_and_or_b32", 513, "d1 s1 s1 s1", ROW_BITWISE, 0, valu_run, v_and_or_b32 },
    { "v_or3_b32", 514, "d1 s1 s1 s1", ROW_BITWISE, 0, valu_run, v_or3_b32 },
    { "v_lshl_add_u64", 520, "d2 s2 s1 s2", 0, 0, valu_run, v_lshl_add_u64 },
    { "v_bitop3_b32", 564, "d1 s1 s1 s1", ROW_BITWISE, 0, valu_run, v_bitop3_b32 },
    { "v_mul_lo_u32", 645, "d1 s1 s1", 0, 0, valu_run, v_mul_lo_u32 },
    { "v_mul_hi_u32", 646, "d1 s1 s1", 0, 0, valu_run, v_mul_hi_u32 },
    { "v_mul_hi_i32", 647, "d1 s1 s1", 0, 0, valu_run, v_mul_hi_i32 },
    { "v_bcnt_u32_b32", 651, "d1 s1 s1", 0, 0, valu_run, v_bcnt_u32_b32 },
    { "v_mbcnt_lo_u32_b32", 652, "d1 s1 s1", 0, 0, valu_run, v_mbcnt_lo_u32_b32 },
    { "v_mbcnt_hi_u32_b32", 653, "d1 s1 s1", 0, 0, valu_run, v_mbcnt_hi_u32_b32 },
    { "v_lshlrev_b64", 655, "d2 s1 s2", ROW_BITWISE, 1, valu_run, v_lshlrev_b64 },
    { "v_lshrrev_b64", 656, "d2 s1 s2", ROW_BITWISE, 1, valu_run, v_lshrrev_b64 },
    { "v_ashrrev_i64", 657, "d2 s1 s2", ROW_BITWISE, 1, valu_run, v_ashrrev_i64 },
    { "v_bfm_b32", 659, "d1 s1 s1", 0, 0, valu_run, v_bfm_b32 },
    { "v_add_i32", 668, "d1 s1 s1", ROW_CLAMPS, 0, valu_run, v_add_i32 },
    { "v_sub_i32", 669, "d1 s1 s1", ROW_CLAMPS, 0, valu_run, v_sub_i32 },
};
const struct family family_vector3 = FAMILY("Vector ALU Operations", FORMAT_VOP3, rows3);

static const struct row rows_accumulators[] = {
    { "v_accvgpr_read_b32", 88, "d1 s1", ROW_BYTEWISE, 0, valu_run, v_mov_b32 },
    { "v_accvgpr_write_b32", 89, "d1 s1", ROW_BYTEWISE, 0, valu_run, v_mov_b32 },
};
const struct family family_accumulators = FAMILY("Vector ALU Operations", FORMAT_VOP3P, rows_accumulators);
