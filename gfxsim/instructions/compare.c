/* Comparisons: a bit a lane of a mask. */
#include "families.h"
#include "valu.h"

#define MASK_OF(name, expression) \
    static void name(struct lanes *x) \
    { \
        for (uint32_t l = 0; l < LANES; l++) x->mask_out |= (uint64_t)(expression) << l; \
    }
#define INTEGERS(suffix, a, b) \
    MASK_OF(lt_##suffix, (a) < (b)) \
    MASK_OF(eq_##suffix, (a) == (b)) \
    MASK_OF(le_##suffix, (a) <= (b)) \
    MASK_OF(gt_##suffix, (a) > (b)) \
    MASK_OF(ne_##suffix, (a) != (b)) \
    MASK_OF(ge_##suffix, (a) >= (b))
INTEGERS(i16, (int16_t)A, (int16_t)B)
INTEGERS(u16, (uint16_t)A, (uint16_t)B)
INTEGERS(i32, SA, SB)
INTEGERS(u32, A, B)
INTEGERS(i64, (int64_t)WA, (int64_t)WB)
INTEGERS(u64, WA, WB)
MASK_OF(lt_f32, FA < FB)
MASK_OF(eq_f32, FA == FB)
MASK_OF(le_f32, FA <= FB)
MASK_OF(gt_f32, FA > FB)
MASK_OF(lg_f32, FA < FB || FA > FB)
MASK_OF(ge_f32, FA >= FB)
MASK_OF(o_f32, FA == FA && FB == FB)
MASK_OF(u_f32, FA != FA || FB != FB)
MASK_OF(nge_f32, !(FA >= FB))
MASK_OF(nlg_f32, !(FA < FB || FA > FB))
MASK_OF(ngt_f32, !(FA > FB))
MASK_OF(nle_f32, !(FA <= FB))
MASK_OF(neq_f32, !(FA == FB))
MASK_OF(nlt_f32, !(FA < FB))

static double twice(uint64_t bits)
{
    double d;
    memcpy(&d, &bits, 8);
    return d;
}
#define DA twice(WA)
#define DB twice(WB)
MASK_OF(lt_f64, DA < DB)
MASK_OF(eq_f64, DA == DB)
MASK_OF(le_f64, DA <= DB)
MASK_OF(gt_f64, DA > DB)
MASK_OF(lg_f64, DA < DB || DA > DB)
MASK_OF(ge_f64, DA >= DB)
MASK_OF(o_f64, DA == DA && DB == DB)
MASK_OF(u_f64, DA != DA || DB != DB)
MASK_OF(nge_f64, !(DA >= DB))
MASK_OF(nlg_f64, !(DA < DB || DA > DB))
MASK_OF(ngt_f64, !(DA > DB))
MASK_OF(nle_f64, !(DA <= DB))
MASK_OF(neq_f64, !(DA == DB))
MASK_OF(nlt_f64, !(DA < DB))

/* Bits of B: signalling NaN, quiet NaN, then from -infinity to +infinity. */
static bool in_class(uint64_t exponent, uint64_t most, uint64_t mantissa, bool quiet, bool negative, uint32_t wanted)
{
    if (exponent == most && mantissa != 0) return wanted >> (quiet ? 1 : 0) & 1;
    const int step = exponent == most ? 0 : exponent != 0 ? 1 : mantissa != 0 ? 2 : 3;
    return wanted >> (negative ? 2 + step : 9 - step) & 1;
}
MASK_OF(class_f32, in_class(A >> 23 & 255, 255, A & 0x7fffff, A >> 22 & 1, A >> 31, B))
MASK_OF(class_f64, in_class(WA >> 52 & 2047, 2047, WA << 12, WA >> 51 & 1, WA >> 63, B))

#define SIX(suffix, first, words) \
    { "v_cmp_lt_" #suffix, first, words, 0, 0, valu_run, lt_##suffix }, \
    { "v_cmp_eq_" #suffix, first + 1, words, 0, 0, valu_run, eq_##suffix }, \
    { "v_cmp_le_" #suffix, first + 2, words, 0, 0, valu_run, le_##suffix }, \
    { "v_cmp_gt_" #suffix, first + 3, words, 0, 0, valu_run, gt_##suffix }, \
    { "v_cmp_ne_" #suffix, first + 4, words, 0, 0, valu_run, ne_##suffix }, \
    { "v_cmp_ge_" #suffix, first + 5, words, 0, 0, valu_run, ge_##suffix }
#define FLOAT(name, opcode) { "v_cmp_" #name, opcode, "c2 s1f s1f", ROW_FLOAT, 0, valu_run, name }
#define TWICE(name, opcode) { "v_cmp_" #name, opcode, "c2 s2e s2e", ROW_FLOAT, 0, valu_run, name }
static const struct row rows[] = {
    { "v_cmp_class_f32", 16, "c2 s1f s1", ROW_FLOAT, 0, valu_run, class_f32 },
    FLOAT(lt_f32, 65), FLOAT(eq_f32, 66), FLOAT(le_f32, 67), FLOAT(gt_f32, 68), FLOAT(lg_f32, 69), FLOAT(ge_f32, 70),
    FLOAT(o_f32, 71), FLOAT(u_f32, 72), FLOAT(nge_f32, 73), FLOAT(nlg_f32, 74), FLOAT(ngt_f32, 75), FLOAT(nle_f32, 76),
    FLOAT(neq_f32, 77), FLOAT(nlt_f32, 78),
    { "v_cmp_class_f64", 18, "c2 s2e s1", ROW_FLOAT, 0, valu_run, class_f64 },
    TWICE(lt_f64, 97), TWICE(eq_f64, 98), TWICE(le_f64, 99), TWICE(gt_f64, 100), TWICE(lg_f64, 101), TWICE(ge_f64, 102),
    TWICE(o_f64, 103), TWICE(u_f64, 104), TWICE(nge_f64, 105), TWICE(nlg_f64, 106), TWICE(ngt_f64, 107),
    TWICE(nle_f64, 108), TWICE(neq_f64, 109), TWICE(nlt_f64, 110),
    SIX(i16, 161, "c2 s1w s1w"), SIX(u16, 169, "c2 s1w s1w"),
    SIX(i32, 193, "c2 s1 s1"), SIX(u32, 201, "c2 s1 s1"),
    SIX(i64, 225, "c2 s2i s2i"), SIX(u64, 233, "c2 s2i s2i"),
};
const struct family family_compare = FAMILY("Vector ALU Operations", FORMAT_VOPC, rows);
