/* Floating point: fp32 with denormals, rounded to nearest even, as compilers set MODE; transcendental functions are
 * rounded correctly here, the hardware's may differ in the last bit. */
#include "families.h"
#include "valu.h"

static float fused(float a, float b, float c) { return fmaf(a, b, c); }
static float scaled_by(float a, int32_t n) { return ldexpf(a, n > 400 ? 400 : n < -400 ? -400 : n); }
static uint32_t float_mantissa(uint32_t a)
{
    int e;
    const float f = as_float(a);
    return isfinite(f) ? as_bits(frexpf(f, &e)) : a;
}
static uint32_t float_exponent(uint32_t a)
{
    int e = 0;
    const float f = as_float(a);
    if (!isfinite(f)) return 0;
    (void)frexpf(f, &e);
    return (uint32_t)e;
}

LANES_OF(v_fract_f32, as_bits(FA - floorf(FA)))
LANES_OF(v_trunc_f32, as_bits(truncf(FA)))
LANES_OF(v_ceil_f32, as_bits(ceilf(FA)))
LANES_OF(v_rndne_f32, as_bits(nearbyintf(FA)))
LANES_OF(v_floor_f32, as_bits(floorf(FA)))
LANES_OF(v_exp_f32, as_bits((float)exp2((double)FA)))
LANES_OF(v_log_f32, as_bits((float)log2((double)FA)))
LANES_OF(v_rcp_f32, as_bits(1.0f / FA))
LANES_OF(v_rsq_f32, as_bits((float)(1.0 / sqrt((double)FA))))
LANES_OF(v_sqrt_f32, as_bits(sqrtf(FA)))
LANES_OF(v_frexp_exp_i32_f32, float_exponent(A))
LANES_OF(v_frexp_mant_f32, float_mantissa(A))

enum { F1 = ROW_FLOAT | ROW_FLOATS_OUT, T1 = F1 | ROW_TRANSCENDENTAL };
static const struct row rows1[] = {
    { "v_fract_f32", 27, "d1 s1f", F1, 0, valu_run, v_fract_f32 },
    { "v_trunc_f32", 28, "d1 s1f", F1, 0, valu_run, v_trunc_f32 },
    { "v_ceil_f32", 29, "d1 s1f", F1, 0, valu_run, v_ceil_f32 },
    { "v_rndne_f32", 30, "d1 s1f", F1, 0, valu_run, v_rndne_f32 },
    { "v_floor_f32", 31, "d1 s1f", F1, 0, valu_run, v_floor_f32 },
    { "v_exp_f32", 32, "d1 s1f", T1, 0, valu_run, v_exp_f32 },
    { "v_log_f32", 33, "d1 s1f", T1, 0, valu_run, v_log_f32 },
    { "v_rcp_f32", 34, "d1 s1f", T1, 0, valu_run, v_rcp_f32 },
    { "v_rcp_iflag_f32", 35, "d1 s1f", T1, 0, valu_run, v_rcp_f32 },
    { "v_rsq_f32", 36, "d1 s1f", T1, 0, valu_run, v_rsq_f32 },
    { "v_sqrt_f32", 39, "d1 s1f", T1, 0, valu_run, v_sqrt_f32 },
    { "v_frexp_exp_i32_f32", 51, "d1 s1f", ROW_FLOAT, 0, valu_run, v_frexp_exp_i32_f32 },
    { "v_frexp_mant_f32", 52, "d1 s1f", F1, 0, valu_run, v_frexp_mant_f32 },
};
const struct family family_float1 = FAMILY("Vector ALU Operations", FORMAT_VOP1, rows1);

LANES_OF(v_add_f32, as_bits(FA + FB))
LANES_OF(v_sub_f32, as_bits(FA - FB))
LANES_OF(v_subrev_f32, as_bits(FB - FA))
LANES_OF(v_mul_f32, as_bits(FA * FB))
LANES_OF(v_min_f32, as_bits((float)least(FA, FB)))
LANES_OF(v_max_f32, as_bits((float)most(FA, FB)))
LANES_OF(v_fmac_f32, as_bits(fused(FA, FB, as_float(x->d[l]))))
LANES_OF(v_fmamk_f32, as_bits(fused(FA, as_float(x->s[3][l]), FB)))
LANES_OF(v_fmaak_f32, as_bits(fused(FA, FB, as_float(x->s[3][l]))))

static const struct row rows2[] = {
    { "v_add_f32", 1, "d1 s1f s1f", F1, 0, valu_run, v_add_f32 },
    { "v_sub_f32", 2, "d1 s1f s1f", F1, 0, valu_run, v_sub_f32 },
    { "v_subrev_f32", 3, "d1 s1f s1f", F1, 0, valu_run, v_subrev_f32 },
    { "v_mul_f32", 5, "d1 s1f s1f", F1, 0, valu_run, v_mul_f32 },
    { "v_min_f32", 10, "d1 s1f s1f", F1, 0, valu_run, v_min_f32 },
    { "v_max_f32", 11, "d1 s1f s1f", F1, 0, valu_run, v_max_f32 },
    { "v_fmamk_f32", 23, "d1 s1f k1 s1f", ROW_NO_SHORT, 0, valu_run, v_fmamk_f32 },
    { "v_fmaak_f32", 24, "d1 s1f s1f k1", ROW_NO_SHORT, 0, valu_run, v_fmaak_f32 },
    { "v_fmac_f32", 59, "x1 s1f s1f", F1, 0, valu_run, v_fmac_f32 },
};
const struct family family_float2 = FAMILY("Vector ALU Operations", FORMAT_VOP2, rows2);

LANES_OF(v_fma_f32, as_bits(fused(FA, FB, FC)))
LANES_OF(v_min3_f32, as_bits((float)least(least(FA, FB), FC)))
LANES_OF(v_max3_f32, as_bits((float)most(most(FA, FB), FC)))
LANES_OF(v_med3_f32, as_bits((float)middle(FA, FB, FC)))
LANES_OF(v_ldexp_f32, as_bits(scaled_by(FA, SB)))

static const struct row rows3[] = {
    { "v_fma_f32", 459, "d1 s1f s1f s1f", F1, 0, valu_run, v_fma_f32 },
    { "v_min3_f32", 464, "d1 s1f s1f s1f", F1, 0, valu_run, v_min3_f32 },
    { "v_max3_f32", 467, "d1 s1f s1f s1f", F1, 0, valu_run, v_max3_f32 },
    { "v_med3_f32", 470, "d1 s1f s1f s1f", F1, 0, valu_run, v_med3_f32 },
    { "v_ldexp_f32", 648, "d1 s1f s1", F1, 0, valu_run, v_ldexp_f32 },
};
const struct family family_float3 = FAMILY("Vector ALU Operations", FORMAT_VOP3, rows3);

/* ---- two fp32 at a time: op_sel and op_sel_hi name the half of each source for the low and the high result ---- */

static float half_of(const struct lanes *x, int source, uint32_t l, bool high)
{
    const struct insn *in = x->in;
    const bool upper = (high ? in->op_sel_hi : in->op_sel) >> source & 1,
               negated = (high ? in->abs : in->neg) >> source & 1;
    const float f = as_float(x->s[source][(upper ? LANES : 0) + l]);
    return negated ? -f : f;
}
#define PACKED(name, expression) \
    static void name(struct lanes *x) \
    { \
        for (uint32_t l = 0; l < LANES; l++) \
            for (int high = 0; high < 2; high++) x->d[(uint32_t)high * LANES + l] = as_bits(expression); \
    }
#define PA half_of(x, 0, l, high)
#define PB half_of(x, 1, l, high)
#define PC half_of(x, 2, l, high)
PACKED(v_pk_fma_f32, fused(PA, PB, PC))
PACKED(v_pk_mul_f32, PA * PB)
PACKED(v_pk_add_f32, PA + PB)
/* the low result is a half of the first source, the high one of the second */
static void v_pk_mov_b32(struct lanes *x)
{
    for (uint32_t l = 0; l < LANES; l++) {
        x->d[l] = x->s[0][((x->in->op_sel & 1) != 0 ? LANES : 0) + l];
        x->d[LANES + l] = x->s[1][((x->in->op_sel & 2) != 0 ? LANES : 0) + l];
    }
}

static const struct row rows_packed[] = {
    { "v_pk_fma_f32", 48, "d2 s2f s2f s2f", ROW_PACKED, 0, valu_run, v_pk_fma_f32 },
    { "v_pk_mul_f32", 49, "d2 s2f s2f", ROW_PACKED, 0, valu_run, v_pk_mul_f32 },
    { "v_pk_add_f32", 50, "d2 s2f s2f", ROW_PACKED, 0, valu_run, v_pk_add_f32 },
    { "v_pk_mov_b32", 51, "d2 s2f s2f", ROW_PACKED, 0, valu_run, v_pk_mov_b32 },
};
const struct family family_packed = FAMILY("Vector ALU Operations", FORMAT_VOP3P, rows_packed);
