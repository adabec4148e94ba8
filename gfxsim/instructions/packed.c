/* Two 16-bit numbers in a register (VOP3P): op_sel names the half of each source for the lower result, op_sel_hi for
 * the upper one; neg_lo and neg_hi change signs.  And fp32 sums of products some of whose factors are halves. */
#include "families.h"
#include "matrix/elements.h"
#include "valu.h"

static uint32_t part(const struct lanes *x, int source, uint32_t l, bool high)
{
    const bool upper = (high ? x->in->op_sel_hi : x->in->op_sel) >> source & 1,
               negated = (x->in->row->flags & ROW_FLOAT) != 0 && (high ? x->in->abs : x->in->neg) >> source & 1;
    return (x->s[source][l] >> (upper ? 16 : 0) & 0xffff) ^ (negated ? 0x8000 : 0);
}
/* A half of the result is known where the halves that it comes from are. */
static void known_halves(struct lanes *x)
{
    for (int high = 0; high < 2; high++) {
        uint64_t all = UINT64_MAX;
        for (int s = 0; s + 1 < x->in->operands; s++) {
            const int first = ((high ? x->in->op_sel_hi : x->in->op_sel) >> s & 1) != 0 ? 2 : 0;
            all &= x->s_defined[s][0][first] & x->s_defined[s][0][first + 1];
        }
        x->d_defined[0][2 * high] = x->d_defined[0][2 * high + 1] = all;
    }
}
#define PACKED_OF(name, expression) \
    static void name(struct lanes *x) \
    { \
        for (uint32_t l = 0; l < LANES; l++) { \
            uint32_t result = 0; \
            for (int high = 0; high < 2; high++) result |= (uint32_t)(uint16_t)(expression) << 16 * high; \
            x->d[l] = result; \
        } \
        known_halves(x); \
    }
#define PA part(x, 0, l, high)
#define PB part(x, 1, l, high)
#define PC part(x, 2, l, high)
#define IA ((int16_t)PA)
#define IB ((int16_t)PB)
#define IC ((int16_t)PC)
#define HA half(PA)
#define HB half(PB)
#define HC half(PC)
static double half(uint32_t bits) { return (double)half_to_float((uint16_t)bits); }
static int32_t saturated(const struct lanes *x, int32_t v)
{
    return !x->in->clamp ? v : v > 32767 ? 32767 : v < -32768 ? -32768 : v;
}
static int64_t saturated_unsigned(const struct lanes *x, int64_t v)
{
    return !x->in->clamp ? v : v > 65535 ? 65535 : v < 0 ? 0 : v;
}
static uint16_t rounded(const struct lanes *x, double d)
{
    return double_to_half(!x->in->clamp ? d : d > 1 ? 1 : d > 0 ? d : 0);
}
PACKED_OF(v_pk_mad_i16, saturated(x, IA * IB + IC))
PACKED_OF(v_pk_mul_lo_u16, PA * PB)
PACKED_OF(v_pk_add_i16, saturated(x, IA + IB))
PACKED_OF(v_pk_sub_i16, saturated(x, IA - IB))
PACKED_OF(v_pk_lshlrev_b16, PB << (PA & 15))
PACKED_OF(v_pk_lshrrev_b16, PB >> (PA & 15))
PACKED_OF(v_pk_ashrrev_i16, IB >> (PA & 15))
PACKED_OF(v_pk_max_i16, IA > IB ? IA : IB)
PACKED_OF(v_pk_min_i16, IA < IB ? IA : IB)
PACKED_OF(v_pk_mad_u16, saturated_unsigned(x, (int64_t)PA * PB + PC))
PACKED_OF(v_pk_add_u16, saturated_unsigned(x, (int64_t)PA + PB))
PACKED_OF(v_pk_sub_u16, saturated_unsigned(x, (int64_t)PA - PB))
PACKED_OF(v_pk_max_u16, PA > PB ? PA : PB)
PACKED_OF(v_pk_min_u16, PA < PB ? PA : PB)
PACKED_OF(v_pk_fma_f16, rounded(x, (double)((long double)(HA * HB) + (long double)HC)))
PACKED_OF(v_pk_add_f16, rounded(x, HA + HB))
PACKED_OF(v_pk_mul_f16, rounded(x, HA * HB))
PACKED_OF(v_pk_min_f16, rounded(x, least(HA, HB)))
PACKED_OF(v_pk_max_f16, rounded(x, most(HA, HB)))

/* ---- mixed: op_sel_hi says that a source is a half, op_sel which; neg and abs as in VOP3 ---- */

static float mixed(const struct lanes *x, int source, uint32_t l)
{
    const bool is_half = x->in->op_sel_hi >> source & 1, upper = x->in->op_sel >> source & 1;
    const uint32_t bits = x->s[source][l];
    float f = is_half ? half_to_float((uint16_t)(bits >> (upper ? 16 : 0))) : as_float(bits);
    if ((x->in->abs >> source & 1) != 0) f = fabsf(f);
    return (x->in->neg >> source & 1) != 0 ? -f : f;
}
static uint64_t mixed_known(const struct lanes *x)
{
    uint64_t all = UINT64_MAX;
    for (int s = 0; s < 3; s++) {
        const bool is_half = x->in->op_sel_hi >> s & 1;
        const int first = is_half && (x->in->op_sel >> s & 1) != 0 ? 2 : 0;
        for (int b = first; b < first + (is_half ? 2 : 4); b++) all &= x->s_defined[s][0][b];
    }
    return all;
}
static float mixed_sum(const struct lanes *x, uint32_t l)
{
    const float f = fmaf(mixed(x, 0, l), mixed(x, 1, l), mixed(x, 2, l));
    return !x->in->clamp ? f : f > 1 ? 1 : f > 0 ? f : 0;
}
static void v_fma_mix_f32(struct lanes *x)
{
    for (uint32_t l = 0; l < LANES; l++) x->d[l] = as_bits(mixed_sum(x, l));
    for (int b = 0; b < 4; b++) x->d_defined[0][b] = mixed_known(x);
}
static void into_half(struct lanes *x, uint32_t shift)
{
    for (uint32_t l = 0; l < LANES; l++)
        x->d[l] = (x->d[l] & ~(0xffffu << shift)) | (uint32_t)float_to_half(mixed_sum(x, l)) << shift;
    for (uint32_t b = shift / 8; b < shift / 8 + 2; b++) x->d_defined[0][b] = mixed_known(x);
}
static void v_fma_mixlo_f16(struct lanes *x) { into_half(x, 0); }
static void v_fma_mixhi_f16(struct lanes *x) { into_half(x, 16); }

enum { WHOLE = ROW_PACKED | ROW_OWN_DEFINED | ROW_CLAMPS, FLOAT = WHOLE | ROW_FLOAT, MIXED = FLOAT | ROW_MIXED };
#define TWO "d1 s1 s1"
#define THREE "d1 s1 s1 s1"
static const struct row rows[] = {
    { "v_pk_mad_i16", 0, THREE, WHOLE, 0, valu_run, v_pk_mad_i16 },
    { "v_pk_mul_lo_u16", 1, TWO, WHOLE, 0, valu_run, v_pk_mul_lo_u16 },
    { "v_pk_add_i16", 2, TWO, WHOLE, 0, valu_run, v_pk_add_i16 },
    { "v_pk_sub_i16", 3, TWO, WHOLE, 0, valu_run, v_pk_sub_i16 },
    { "v_pk_lshlrev_b16", 4, TWO, WHOLE, 0, valu_run, v_pk_lshlrev_b16 },
    { "v_pk_lshrrev_b16", 5, TWO, WHOLE, 0, valu_run, v_pk_lshrrev_b16 },
    { "v_pk_ashrrev_i16", 6, TWO, WHOLE, 0, valu_run, v_pk_ashrrev_i16 },
    { "v_pk_max_i16", 7, TWO, WHOLE, 0, valu_run, v_pk_max_i16 },
    { "v_pk_min_i16", 8, TWO, WHOLE, 0, valu_run, v_pk_min_i16 },
    { "v_pk_mad_u16", 9, THREE, WHOLE, 0, valu_run, v_pk_mad_u16 },
    { "v_pk_add_u16", 10, TWO, WHOLE, 0, valu_run, v_pk_add_u16 },
    { "v_pk_sub_u16", 11, TWO, WHOLE, 0, valu_run, v_pk_sub_u16 },
    { "v_pk_max_u16", 12, TWO, WHOLE, 0, valu_run, v_pk_max_u16 },
    { "v_pk_min_u16", 13, TWO, WHOLE, 0, valu_run, v_pk_min_u16 },
    { "v_pk_fma_f16", 14, "d1 s1h s1h s1h", FLOAT, 0, valu_run, v_pk_fma_f16 },
    { "v_pk_add_f16", 15, "d1 s1h s1h", FLOAT, 0, valu_run, v_pk_add_f16 },
    { "v_pk_mul_f16", 16, "d1 s1h s1h", FLOAT, 0, valu_run, v_pk_mul_f16 },
    { "v_pk_min_f16", 17, "d1 s1h s1h", FLOAT, 0, valu_run, v_pk_min_f16 },
    { "v_pk_max_f16", 18, "d1 s1h s1h", FLOAT, 0, valu_run, v_pk_max_f16 },
    { "v_fma_mix_f32", 32, "d1 s1f s1f s1f", MIXED, 0, valu_run, v_fma_mix_f32 },
    { "v_fma_mixlo_f16", 33, "x1 s1f s1f s1f", MIXED, 0, valu_run, v_fma_mixlo_f16 },
    { "v_fma_mixhi_f16", 34, "x1 s1f s1f s1f", MIXED, 0, valu_run, v_fma_mixhi_f16 },
};
const struct family family_packed16 = FAMILY("Vector ALU Operations", FORMAT_VOP3P, rows);
