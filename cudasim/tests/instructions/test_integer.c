/* Integer, carry, logic, comparison and integer conversion instructions at the boundaries of their operands. */
#include "tests/support/operate.h"

#define U16(x) ((uint16_t)(x))
#define U32(x) ((uint32_t)(x))
#define S16(x) ((int16_t)(x))
#define S32(x) ((int32_t)(x))
#define S64(x) ((int64_t)(x))
__extension__ typedef __int128 int128;
__extension__ typedef unsigned __int128 uint128;

REFERENCE(add16, U16(a + b))
REFERENCE(add32, U32(a + b))
REFERENCE(add64, a + b)
REFERENCE(add_sat, U32(S64(S32(a)) + S32(b) > INT32_MAX   ? INT32_MAX
                       : S64(S32(a)) + S32(b) < INT32_MIN ? INT32_MIN
                                                          : S64(S32(a)) + S32(b)))
REFERENCE(sub_sat, U32(S64(S32(a)) - S32(b) > INT32_MAX   ? INT32_MAX
                       : S64(S32(a)) - S32(b) < INT32_MIN ? INT32_MIN
                                                          : S64(S32(a)) - S32(b)))
REFERENCE(sub32, U32(a - b))
REFERENCE(mul16, U16(U32(U16(a)) * U16(b)))
REFERENCE(mul32, U32(a * b))
REFERENCE(mul64, a * b)
REFERENCE(hi_u16, U16(U32(U16(a)) * U16(b) >> 16))
REFERENCE(hi_s32, U32(S64(S32(a)) * S32(b) >> 32))
REFERENCE(hi_u32, U32((uint64_t)U32(a) * U32(b) >> 32))
REFERENCE(hi_s64, (int128)S64(a) * S64(b) >> 64)
REFERENCE(hi_u64, (uint128)a * b >> 64)
REFERENCE(wide_u32, (uint64_t)U32(a) * U32(b))
REFERENCE(wide_s32, S64(S32(a)) * S32(b))
REFERENCE(wide_s16, U32(S32(S16(a)) * S16(b)))
REFERENCE(mad32, U32(a * b + c))
REFERENCE(mad_wide, (uint64_t)(S64(S32(a)) * S32(b)) + c)
REFERENCE(mad_hi, U32((uint64_t)(S64(S32(a)) * S32(b) >> 32) + c))
REFERENCE(mul24, U32((a & 0xffffff) * (b & 0xffffff)))
REFERENCE(mul24_hi, U32(((S64(a << 40) >> 40) * (S64(b << 40) >> 40)) >> 16))
REFERENCE(sad_s32, U32(c + (S32(a) < S32(b) ? b - a : a - b)))
REFERENCE(div_s32, S32(b) == 0 ? UINT32_MAX : U32(S64(S32(a)) / S32(b)))
REFERENCE(div_u64, b == 0 ? UINT64_MAX : a / b)
REFERENCE(rem_s32, S32(b) == 0 ? UINT32_MAX : U32(S64(S32(a)) % S32(b)))
REFERENCE(rem_u16, U16(b) == 0 ? UINT16_MAX : U16(a) % U16(b))
REFERENCE(abs_s32, S32(a) < 0 ? U32(0 - a) : U32(a))
REFERENCE(neg_s64, 0 - a)
REFERENCE(min_s64, S64(a) < S64(b) ? a : b)
REFERENCE(max_u32, U32(a) > U32(b) ? U32(a) : U32(b))
REFERENCE(max_s16x2,
          U16(S16(a) > S16(b) ? a : b) | (uint64_t)U16(S16(a >> 16) > S16(b >> 16) ? a >> 16 : b >> 16) << 16)
REFERENCE(popc64, __builtin_popcountll(a))
REFERENCE(clz32, U32(a) == 0 ? 32 : __builtin_clz(U32(a)))
REFERENCE(bfind_s32,
          (S32(a) < 0 ? ~U32(a) : U32(a)) == 0 ? UINT32_MAX : 31 - U32(__builtin_clz(S32(a) < 0 ? ~U32(a) : U32(a))))
REFERENCE(bfind_shift, U32(a) == 0 ? UINT32_MAX : U32(__builtin_clz(U32(a))))

static void integer_arithmetic(struct test *t)
{
    static const struct operation operations[] = {
        { "add.s16 %rs9, %rs1, %rs2;", 's', add16 },
        { "add.u32 %r9, %r1, %r2;", 'r', add32 },
        { "add.s64 %rd9, %rd1, %rd2;", 'd', add64 },
        { "add.sat.s32 %r9, %r1, %r2;", 'r', add_sat },
        { "sub.sat.s32 %r9, %r1, %r2;", 'r', sub_sat },
        { "sub.s32 %r9, %r1, %r2;", 'r', sub32 },
        { "mul.lo.u16 %rs9, %rs1, %rs2;", 's', mul16 },
        { "mul.lo.s32 %r9, %r1, %r2;", 'r', mul32 },
        { "mul.lo.s64 %rd9, %rd1, %rd2;", 'd', mul64 },
        { "mul.hi.u16 %rs9, %rs1, %rs2;", 's', hi_u16 },
        { "mul.hi.s32 %r9, %r1, %r2;", 'r', hi_s32 },
        { "mul.hi.u32 %r9, %r1, %r2;", 'r', hi_u32 },
        { "mul.hi.s64 %rd9, %rd1, %rd2;", 'd', hi_s64 },
        { "mul.hi.u64 %rd9, %rd1, %rd2;", 'd', hi_u64 },
        { "mul.wide.u32 %rd9, %r1, %r2;", 'd', wide_u32 },
        { "mul.wide.s32 %rd9, %r1, %r2;", 'd', wide_s32 },
        { "mul.wide.s16 %r9, %rs1, %rs2;", 'r', wide_s16 },
        { "mad.lo.s32 %r9, %r1, %r2, %r3;", 'r', mad32 },
        { "mad.wide.s32 %rd9, %r1, %r2, %rd3;", 'd', mad_wide },
        { "mad.hi.s32 %r9, %r1, %r2, %r3;", 'r', mad_hi },
        { "mul24.lo.u32 %r9, %r1, %r2;", 'r', mul24 },
        { "mul24.hi.s32 %r9, %r1, %r2;", 'r', mul24_hi },
        { "sad.s32 %r9, %r1, %r2, %r3;", 'r', sad_s32 },
        { "div.s32 %r9, %r1, %r2;", 'r', div_s32 },
        { "div.u64 %rd9, %rd1, %rd2;", 'd', div_u64 },
        { "rem.s32 %r9, %r1, %r2;", 'r', rem_s32 },
        { "rem.u16 %rs9, %rs1, %rs2;", 's', rem_u16 },
        { "abs.s32 %r9, %r1;", 'r', abs_s32 },
        { "neg.s64 %rd9, %rd1;", 'd', neg_s64 },
        { "min.s64 %rd9, %rd1, %rd2;", 'd', min_s64 },
        { "max.u32 %r9, %r1, %r2;", 'r', max_u32 },
        { "max.s16x2 %r9, %r1, %r2;", 'r', max_s16x2 },
        { "popc.b64 %r9, %rd1;", 'r', popc64 },
        { "clz.b32 %r9, %r1;", 'r', clz32 },
        { "bfind.s32 %r9, %r1;", 'r', bfind_s32 },
        { "bfind.shiftamt.u32 %r9, %r1;", 'r', bfind_shift },
    };
    static uint64_t a[2000], b[2000], c[2000];
    const struct operands in = { a, b, c, boundary_integers(t, a, b, c, 2000) };
    for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++) operate(t, "sm_90a", &operations[i], &in);
}

/* A chain over 128 bits: (a:b) + (b:c) and its difference, the upper word; the carry out of the sum. */
REFERENCE(carry_high, a + b + (b + c < b))
REFERENCE(carry_out, ((uint128)a + b + (b + c < b)) >> 64)
REFERENCE(borrow_high, a - b - (b < c))
REFERENCE(madc, U32(U32(S64(S32(a)) * S32(b) >> 32) + U32(c) + ((uint64_t)U32(a * b) + U32(c) > UINT32_MAX)))

static void carries(struct test *t)
{
    static const struct operation operations[] = {
        { "add.cc.u64 %rd8, %rd2, %rd3; addc.u64 %rd9, %rd1, %rd2;", 'd', carry_high },
        { "add.cc.u64 %rd8, %rd2, %rd3; addc.cc.u64 %rd8, %rd1, %rd2; addc.u64 %rd9, 0, 0;", 'd', carry_out },
        { "sub.cc.u64 %rd8, %rd2, %rd3; subc.u64 %rd9, %rd1, %rd2;", 'd', borrow_high },
        { "mad.lo.cc.u32 %r8, %r1, %r2, %r3; madc.hi.s32 %r9, %r1, %r2, %r3;", 'r', madc },
    };
    static uint64_t a[2000], b[2000], c[2000];
    const struct operands in = { a, b, c, boundary_integers(t, a, b, c, 2000) };
    for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++) operate(t, "sm_90a", &operations[i], &in);
}

static uint64_t lop3_by_bits(uint64_t a, uint64_t b, uint64_t c, uint32_t table)
{
    uint64_t d = 0;
    for (int i = 0; i < 32; i++)
        d |= (uint64_t)(table >> ((a >> i & 1) * 4 + (b >> i & 1) * 2 + (c >> i & 1)) & 1) << i;
    return d;
}
/* The low 8 bits of 32-bit fields' numbers; of 64-bit fields all of them, as on hardware. */
static int field_number(uint64_t value, int msb)
{
    return msb == 31 ? (int)(value & 0xff) : U32(value) > 255 ? 255 : (int)U32(value);
}
/* The manual's pseudo code, bit by bit. */
static uint64_t bfe_by_bits(uint64_t a, uint64_t b, uint64_t c, int msb, bool is_signed)
{
    const int pos = field_number(b, msb), len = field_number(c, msb);
    const int last = pos + len - 1 < msb ? pos + len - 1 : msb;
    const uint64_t sign = !is_signed || len == 0 ? 0 : a >> last & 1;
    uint64_t d = 0;
    for (int i = 0; i <= msb; i++) d |= (i < len && pos + i <= msb ? a >> (pos + i) & 1 : sign) << i;
    return d;
}
static uint64_t bfi_by_bits(uint64_t a, uint64_t b, uint64_t c, int len, int msb)
{
    const int pos = field_number(c, msb);
    uint64_t f = b & (msb == 63 ? UINT64_MAX : UINT32_MAX);
    for (int i = 0; i < len && pos + i <= msb; i++) f = (f & ~(UINT64_C(1) << (pos + i))) | (a >> i & 1) << (pos + i);
    return f;
}
REFERENCE(lop3_e8, lop3_by_bits(a, b, c, 0xe8))
REFERENCE(lop3_1b, lop3_by_bits(a, b, c, 0x1b))
REFERENCE(shl32, U32(b) > 31 ? 0 : U32(a << U32(b)))
REFERENCE(shr_s32, U32(S32(a) >> (U32(b) > 31 ? 31 : U32(b))))
REFERENCE(shr_u64, U32(b) > 63 ? 0 : a >> U32(b))
REFERENCE(shr_s16, U16(S16(a) >> (U32(b) > 15 ? 15 : U32(b))))
REFERENCE(shf_l_wrap, U32(((b << 32 | U32(a)) << (c & 31)) >> 32))
REFERENCE(shf_r_clamp, U32((uint128)(b << 32 | U32(a)) >> (U32(c) > 32 ? 32 : U32(c))))
REFERENCE(bfe_s32, bfe_by_bits(U32(a), b, c, 31, true))
REFERENCE(bfe_u64, bfe_by_bits(a, b, c, 63, false))
REFERENCE(bfe_s64, bfe_by_bits(a, b, c, 63, true))
REFERENCE(bfi_b32, bfi_by_bits(a, b, c, 11, 31))
REFERENCE(bfi_b64, bfi_by_bits(a, b, c, 45, 63))
REFERENCE(cnot, U32(a) == 0)
REFERENCE(and_pred, (a & 1) != 0 && (b & 1) == 0)

static uint64_t prmt_by_bytes(uint64_t a, uint64_t b, uint64_t c)
{
    uint8_t bytes[8], d[4];
    const uint32_t low = U32(a), high = U32(b);
    memcpy(bytes, &low, 4), memcpy(bytes + 4, &high, 4);
    for (int i = 0; i < 4; i++) {
        const int selector = (int)(c >> (4 * i) & 15);
        d[i] = bytes[selector & 7];
        if (selector > 7) d[i] = d[i] > 127 ? 0xff : 0;
    }
    return (uint64_t)d[0] | (uint64_t)d[1] << 8 | (uint64_t)d[2] << 16 | (uint64_t)d[3] << 24;
}
static uint64_t dp4a_by_bytes(uint64_t a, uint64_t b, uint64_t c)
{
    int64_t sum = S32(c);
    for (int i = 0; i < 4; i++) sum += (int64_t)(int8_t)(a >> (8 * i)) * (uint8_t)(b >> (8 * i));
    return U32(sum);
}

static void logic_and_fields(struct test *t)
{
    static const struct operation operations[] = {
        { "lop3.b32 %r9, %r1, %r2, %r3, 0xe8;", 'r', lop3_e8 },
        { "lop3.b32 %r9, %r1, %r2, %r3, 0x1b;", 'r', lop3_1b },
        { "shl.b32 %r9, %r1, %r2;", 'r', shl32 },
        { "shr.s32 %r9, %r1, %r2;", 'r', shr_s32 },
        { "shr.u64 %rd9, %rd1, %r2;", 'd', shr_u64 },
        { "shr.s16 %rs9, %rs1, %r2;", 's', shr_s16 },
        { "shf.l.wrap.b32 %r9, %r1, %r2, %r3;", 'r', shf_l_wrap },
        { "shf.r.clamp.b32 %r9, %r1, %r2, %r3;", 'r', shf_r_clamp },
        { "bfe.s32 %r9, %r1, %r2, %r3;", 'r', bfe_s32 },
        { "bfe.u64 %rd9, %rd1, %r2, %r3;", 'd', bfe_u64 },
        { "bfe.s64 %rd9, %rd1, %r2, %r3;", 'd', bfe_s64 },
        { "bfi.b32 %r9, %r1, %r2, %r3, 11;", 'r', bfi_b32 },
        { "bfi.b64 %rd9, %rd1, %rd2, %r3, 45;", 'd', bfi_b64 },
        { "prmt.b32 %r9, %r1, %r2, %r3;", 'r', prmt_by_bytes },
        { "dp4a.s32.u32 %r9, %r1, %r2, %r3;", 'r', dp4a_by_bytes },
        { "cnot.b32 %r9, %r1;", 'r', cnot },
        { "and.pred %p9, %p1, !%p2;", 'p', and_pred },
    };
    static uint64_t a[2000], b[2000], c[2000];
    const struct operands in = { a, b, c, boundary_integers(t, a, b, c, 2000) };
    for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++) operate(t, "sm_90a", &operations[i], &in);
}

REFERENCE(lt_s32, S32(a) < S32(b))
REFERENCE(ge_u64, a >= b)
REFERENCE(hi_u16_compare, U16(a) > U16(b))
REFERENCE(le_and_not, S64(a) <= S64(b) && (c & 1) == 0)
REFERENCE(second_or, !(S32(a) != S32(b)) || (c & 1) != 0)
REFERENCE(selp32, (c & 1) != 0 ? U32(a) : U32(b))
REFERENCE(slct32, S32(c) >= 0 ? U32(a) : U32(b))
REFERENCE(set_eq, U32(a) == U32(b) ? UINT32_MAX : 0)
REFERENCE(cvt_s8, U32((int8_t)a))
REFERENCE(cvt_s64_s16, (int64_t)S16(a))
REFERENCE(cvt_sat_s8, U32(S32(a) > 127 ? 127 : S32(a) < -128 ? -128 : S32(a)))
REFERENCE(cvt_sat_u8, S64(a) < 0 ? 0 : S64(a) > 255 ? 255 : U32(a))
REFERENCE(cvt_sat_u32_s64, S64(a) < 0 ? 0 : S64(a) > UINT32_MAX ? UINT32_MAX : U32(a))

static uint32_t clamp_to(uint64_t x, int32_t low, int32_t high, uint32_t mask)
{
    return (uint32_t)(S32(x) < low ? low : S32(x) > high ? high : S32(x)) & mask;
}
REFERENCE(cvt_pack_s16, clamp_to(a, -32768, 32767, 0xffff) << 16 | clamp_to(b, -32768, 32767, 0xffff))
REFERENCE(cvt_pack_u16, clamp_to(a, 0, 65535, 0xffff) << 16 | clamp_to(b, 0, 65535, 0xffff))
REFERENCE(cvt_pack_s8, U32(c) << 16 | clamp_to(a, -128, 127, 0xff) << 8 | clamp_to(b, -128, 127, 0xff))
REFERENCE(cvt_pack_u8, U32(c) << 16 | clamp_to(a, 0, 255, 0xff) << 8 | clamp_to(b, 0, 255, 0xff))

static void comparison_and_conversion(struct test *t)
{
    static const struct operation operations[] = {
        { "setp.lt.s32 %p9, %r1, %r2;", 'p', lt_s32 },
        { "setp.ge.u64 %p9, %rd1, %rd2;", 'p', ge_u64 },
        { "setp.hi.u16 %p9, %rs1, %rs2;", 'p', hi_u16_compare },
        { "setp.le.and.s64 %p9, %rd1, %rd2, !%p3;", 'p', le_and_not },
        { "setp.ne.or.s32 %p8|%p9, %r1, %r2, %p3;", 'p', second_or },
        { "selp.b32 %r9, %r1, %r2, %p3;", 'r', selp32 },
        { "slct.u32.s32 %r9, %r1, %r2, %r3;", 'r', slct32 },
        { "set.eq.u32.u32 %r9, %r1, %r2;", 'r', set_eq },
        { "cvt.s8.s32 %r9, %r1;", 'r', cvt_s8 },
        { "cvt.s64.s16 %rd9, %rs1;", 'd', cvt_s64_s16 },
        { "cvt.sat.s8.s32 %r9, %r1;", 'r', cvt_sat_s8 },
        { "cvt.sat.u8.s64 %r9, %rd1;", 'r', cvt_sat_u8 },
        { "cvt.sat.u32.s64 %r9, %rd1;", 'r', cvt_sat_u32_s64 },
        { "cvt.pack.sat.s16.s32 %r9, %r1, %r2;", 'r', cvt_pack_s16 },
        { "cvt.pack.sat.u16.s32 %r9, %r1, %r2;", 'r', cvt_pack_u16 },
        { "cvt.pack.sat.s8.s32.b32 %r9, %r1, %r2, %r3;", 'r', cvt_pack_s8 },
        { "cvt.pack.sat.u8.s32.b32 %r9, %r1, %r2, %r3;", 'r', cvt_pack_u8 },
    };
    static uint64_t a[2000], b[2000], c[2000];
    const struct operands in = { a, b, c, boundary_integers(t, a, b, c, 2000) };
    for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++) operate(t, "sm_90a", &operations[i], &in);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(integer_arithmetic), TEST(carries), TEST(logic_and_fields),
                                              TEST(comparison_and_conversion) };
    return TEST_MAIN(argc, argv, cases);
}
