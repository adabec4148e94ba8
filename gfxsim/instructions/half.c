/* fp16, a half of a register, and 16-bit whole numbers of VOP3: op_sel names the half of each source and of the result;
 * the result's other half stays.  VOP1 and VOP2 read and write the lower half and clear the upper one. */
#include "families.h"
#include "matrix/elements.h"
#include "valu.h"

static double half(uint32_t bits) { return (double)half_to_float((uint16_t)bits); }
/* Rounded once: the product of two halves is exact in fp64, and so is its sum with a third but for numbers so far apart
 * that the smaller one decides no more than a tie, which long double settles where it is longer. */
static uint16_t fused(double a, double b, double c)
{
    const long double sum = (long double)(a * b) + (long double)c;
    return double_to_half((double)sum);
}
static double scaled_by(double a, int32_t n) { return ldexp(a, n > 100 ? 100 : n < -100 ? -100 : n); }
static uint32_t to_i16(double d)
{
    return d != d ? 0 : d >= 32767 ? 0x7fff : d <= -32768 ? 0x8000 : (uint32_t)(int32_t)d & 0xffff;
}
static uint32_t to_u16(double d) { return d != d || d <= 0 ? 0 : d >= 65535 ? 0xffff : (uint32_t)d; }
static uint32_t half_exponent(double d)
{
    int e = 0;
    if (isfinite(d)) (void)frexp(d, &e);
    return (uint32_t)e & 0xffff;
}
static double half_mantissa(double d)
{
    int e;
    return isfinite(d) ? frexp(d, &e) : d;
}

#define HA half(A)
#define HB half(B)
#define HC half(C)
LANES_OF(v_cvt_f16_u16, double_to_half((double)(uint16_t)A))
LANES_OF(v_cvt_f16_i16, double_to_half((double)(int16_t)A))
LANES_OF(v_cvt_u16_f16, to_u16(HA))
LANES_OF(v_cvt_i16_f16, to_i16(HA))
LANES_OF(v_rcp_f16, double_to_half(1.0 / HA))
LANES_OF(v_sqrt_f16, double_to_half(sqrt(HA)))
LANES_OF(v_rsq_f16, double_to_half(1.0 / sqrt(HA)))
LANES_OF(v_log_f16, double_to_half(log2(HA)))
LANES_OF(v_exp_f16, double_to_half(exp2(HA)))
LANES_OF(v_frexp_mant_f16, double_to_half(half_mantissa(HA)))
LANES_OF(v_frexp_exp_i16_f16, half_exponent(HA))
LANES_OF(v_floor_f16, double_to_half(floor(HA)))
LANES_OF(v_ceil_f16, double_to_half(ceil(HA)))
LANES_OF(v_trunc_f16, double_to_half(trunc(HA)))
LANES_OF(v_rndne_f16, double_to_half(nearbyint(HA)))
LANES_OF(v_fract_f16, double_to_half(HA - floor(HA)))

enum { H1 = ROW_FLOAT | ROW_FLOATS_OUT, T1 = H1 | ROW_TRANSCENDENTAL };
static const struct row rows1[] = {
    { "v_cvt_f16_u16", 57, "d1h s1w", ROW_FLOATS_OUT, 0, valu_run, v_cvt_f16_u16 },
    { "v_cvt_f16_i16", 58, "d1h s1w", ROW_FLOATS_OUT, 0, valu_run, v_cvt_f16_i16 },
    { "v_cvt_u16_f16", 59, "d1 s1h", ROW_FLOAT, 0, valu_run, v_cvt_u16_f16 },
    { "v_cvt_i16_f16", 60, "d1 s1h", ROW_FLOAT, 0, valu_run, v_cvt_i16_f16 },
    { "v_rcp_f16", 61, "d1h s1h", T1, 0, valu_run, v_rcp_f16 },
    { "v_sqrt_f16", 62, "d1h s1h", T1, 0, valu_run, v_sqrt_f16 },
    { "v_rsq_f16", 63, "d1h s1h", T1, 0, valu_run, v_rsq_f16 },
    { "v_log_f16", 64, "d1h s1h", T1, 0, valu_run, v_log_f16 },
    { "v_exp_f16", 65, "d1h s1h", T1, 0, valu_run, v_exp_f16 },
    { "v_frexp_mant_f16", 66, "d1h s1h", H1, 0, valu_run, v_frexp_mant_f16 },
    { "v_frexp_exp_i16_f16", 67, "d1 s1h", ROW_FLOAT, 0, valu_run, v_frexp_exp_i16_f16 },
    { "v_floor_f16", 68, "d1h s1h", H1, 0, valu_run, v_floor_f16 },
    { "v_ceil_f16", 69, "d1h s1h", H1, 0, valu_run, v_ceil_f16 },
    { "v_trunc_f16", 70, "d1h s1h", H1, 0, valu_run, v_trunc_f16 },
    { "v_rndne_f16", 71, "d1h s1h", H1, 0, valu_run, v_rndne_f16 },
    { "v_fract_f16", 72, "d1h s1h", H1, 0, valu_run, v_fract_f16 },
};
const struct family family_half1 = FAMILY("Vector ALU Operations", FORMAT_VOP1, rows1);

LANES_OF(v_add_f16, double_to_half(HA + HB))
LANES_OF(v_sub_f16, double_to_half(HA - HB))
LANES_OF(v_subrev_f16, double_to_half(HB - HA))
LANES_OF(v_mul_f16, double_to_half(HA * HB))
LANES_OF(v_max_f16, double_to_half(most(HA, HB)))
LANES_OF(v_min_f16, double_to_half(least(HA, HB)))
LANES_OF(v_ldexp_f16, double_to_half(scaled_by(HA, (int16_t)B)))

static const struct row rows2[] = {
    { "v_add_f16", 31, "d1h s1h s1h", H1, 0, valu_run, v_add_f16 },
    { "v_sub_f16", 32, "d1h s1h s1h", H1, 0, valu_run, v_sub_f16 },
    { "v_subrev_f16", 33, "d1h s1h s1h", H1, 0, valu_run, v_subrev_f16 },
    { "v_mul_f16", 34, "d1h s1h s1h", H1, 0, valu_run, v_mul_f16 },
    { "v_max_f16", 45, "d1h s1h s1h", H1, 0, valu_run, v_max_f16 },
    { "v_min_f16", 46, "d1h s1h s1h", H1, 0, valu_run, v_min_f16 },
    { "v_ldexp_f16", 51, "d1h s1h s1w", H1, 0, valu_run, v_ldexp_f16 },
};
const struct family family_half2 = FAMILY("Vector ALU Operations", FORMAT_VOP2, rows2);

/* ---- VOP3: halves by op_sel ---- */

/* A source's half, as bits. */
static uint32_t picked(const struct lanes *x, int source, uint32_t l)
{
    return x->s[source][l] >> ((x->in->op_sel >> source & 1) != 0 ? 16 : 0) & 0xffff;
}
/* The bytes of the result that are written are known where all sources are. */
static void put_half(struct lanes *x, const uint16_t value[LANES])
{
    const uint32_t shift = (x->in->op_sel & 8) != 0 ? 16 : 0;
    uint64_t all = UINT64_MAX;
    for (int s = 0; s + 1 < x->in->operands; s++) {
        const uint32_t first = (x->in->op_sel >> s & 1) != 0 ? 2 : 0, bytes = x->in->operand[1 + s].type == 'u' ? 4 : 2;
        for (uint32_t b = first; b < first + bytes && b < 4; b++) all &= x->s_defined[s][0][b];
    }
    for (uint32_t l = 0; l < LANES; l++) x->d[l] = (x->d[l] & ~(0xffffu << shift)) | (uint32_t)value[l] << shift;
    for (uint32_t b = shift / 8; b < shift / 8 + 2; b++) x->d_defined[0][b] = all;
}
#define HALVES_OF(name, expression) \
    static void name(struct lanes *x) \
    { \
        uint16_t value[LANES]; \
        for (uint32_t l = 0; l < LANES; l++) value[l] = (uint16_t)(expression); \
        put_half(x, value); \
    }
#define PA picked(x, 0, l)
#define PB picked(x, 1, l)
#define PC picked(x, 2, l)
#define IA ((int16_t)PA)
#define IB ((int16_t)PB)
#define IC ((int16_t)PC)
#define LEAST(a, b) ((a) < (b) ? (a) : (b))
#define MOST(a, b) ((a) > (b) ? (a) : (b))
#define MIDDLE(a, b, c) MOST(LEAST(a, b), LEAST(MOST(a, b), c))
HALVES_OF(v_min3_f16, double_to_half(least(least(half(PA), half(PB)), half(PC))))
HALVES_OF(v_max3_f16, double_to_half(most(most(half(PA), half(PB)), half(PC))))
HALVES_OF(v_med3_f16, double_to_half(middle(half(PA), half(PB), half(PC))))
HALVES_OF(v_fma_f16, fused(half(PA), half(PB), half(PC)))
HALVES_OF(v_min3_i16, LEAST(LEAST(IA, IB), IC))
HALVES_OF(v_max3_i16, MOST(MOST(IA, IB), IC))
HALVES_OF(v_med3_i16, MIDDLE(IA, IB, IC))
HALVES_OF(v_min3_u16, LEAST(LEAST(PA, PB), PC))
HALVES_OF(v_max3_u16, MOST(MOST(PA, PB), PC))
HALVES_OF(v_med3_u16, MIDDLE(PA, PB, PC))
HALVES_OF(v_mad_u16, PA * PB + PC)
static int32_t saturated(const struct lanes *x, int32_t value)
{
    return !x->in->clamp ? value : value > 32767 ? 32767 : value < -32768 ? -32768 : value;
}
HALVES_OF(v_add_i16, saturated(x, IA + IB))
HALVES_OF(v_sub_i16, saturated(x, IA - IB))
HALVES_OF(v_bitop3_b16, looked_up(truth_table(x->in), PA, PB, PC))
/* numerator over denominator, from the quotient that fp32 has given */
static uint16_t fixed(double quotient, double denominator, double numerator)
{
    const double sign = signbit(denominator) != signbit(numerator) ? -1.0 : 1.0;
    if (numerator != numerator || denominator != denominator) return 0x7e00;
    if ((numerator == 0 && denominator == 0) || (isinf(numerator) && isinf(denominator))) return 0xfe00;
    if (denominator == 0 || isinf(numerator)) return double_to_half(sign * INFINITY);
    if (isinf(denominator) || numerator == 0) return double_to_half(sign * 0.0);
    return double_to_half(copysign(quotient, sign));
}
HALVES_OF(v_div_fixup_f16, fixed(half(PA), half(PB), half(PC)))
static void v_pack_b32_f16(struct lanes *x)
{
    for (uint32_t l = 0; l < LANES; l++) x->d[l] = PA | PB << 16;
    for (int s = 0; s < 2; s++)
        for (int b = 0; b < 2; b++)
            x->d_defined[0][2 * s + b] = x->s_defined[s][0][((x->in->op_sel >> s & 1) != 0 ? 2 : 0) + b];
}
LANES_OF(v_mad_legacy_u16, ((A & 0xffff) * (B & 0xffff) + C) & 0xffff)
LANES_OF(v_mad_i32_i16, (uint32_t)(IA * IB) + C)

enum { OWN = ROW_SELECTS | ROW_HALF | ROW_OWN_DEFINED, F = OWN | ROW_FLOAT };
static const struct row rows3[] = {
    { "v_mad_legacy_u16", 491, "d1 s1w s1w s1w", 0, 0, valu_run, v_mad_legacy_u16 },
    { "v_mad_i32_i16", 498, "d1 s1w s1w s1", ROW_SELECTS, 0, valu_run, v_mad_i32_i16 },
    { "v_min3_f16", 500, "x1h s1h s1h s1h", F, 0, valu_run, v_min3_f16 },
    { "v_min3_i16", 501, "x1 s1w s1w s1w", OWN, 0, valu_run, v_min3_i16 },
    { "v_min3_u16", 502, "x1 s1w s1w s1w", OWN, 0, valu_run, v_min3_u16 },
    { "v_max3_f16", 503, "x1h s1h s1h s1h", F, 0, valu_run, v_max3_f16 },
    { "v_max3_i16", 504, "x1 s1w s1w s1w", OWN, 0, valu_run, v_max3_i16 },
    { "v_max3_u16", 505, "x1 s1w s1w s1w", OWN, 0, valu_run, v_max3_u16 },
    { "v_med3_f16", 506, "x1h s1h s1h s1h", F, 0, valu_run, v_med3_f16 },
    { "v_med3_i16", 507, "x1 s1w s1w s1w", OWN, 0, valu_run, v_med3_i16 },
    { "v_med3_u16", 508, "x1 s1w s1w s1w", OWN, 0, valu_run, v_med3_u16 },
    { "v_mad_u16", 516, "x1 s1w s1w s1w", OWN, 0, valu_run, v_mad_u16 },
    { "v_fma_f16", 518, "x1h s1h s1h s1h", F, 0, valu_run, v_fma_f16 },
    { "v_div_fixup_f16", 519, "x1h s1h s1h s1h", F, 0, valu_run, v_div_fixup_f16 },
    { "v_bitop3_b16", 563, "x1 s1w s1w s1w", OWN | ROW_BITWISE, 0, valu_run, v_bitop3_b16 },
    { "v_add_i16", 670, "x1 s1w s1w", OWN | ROW_CLAMPS, 0, valu_run, v_add_i16 },
    { "v_sub_i16", 671, "x1 s1w s1w", OWN | ROW_CLAMPS, 0, valu_run, v_sub_i16 },
    { "v_pack_b32_f16", 672, "d1 s1h s1h", ROW_SELECTS | ROW_OWN_DEFINED | ROW_FLOAT, 0, valu_run, v_pack_b32_f16 },
};
const struct family family_half3 = FAMILY("Vector ALU Operations", FORMAT_VOP3, rows3);
