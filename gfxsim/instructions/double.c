/* fp64 with denormals, rounded to nearest even; v_rcp_f64 is rounded correctly here, the hardware's may differ in its
 * last bits, which the steps that compilers put behind it mend. */
#include "families.h"
#include "valu.h"

static double twice(uint64_t bits)
{
    double d;
    memcpy(&d, &bits, 8);
    return d;
}
static uint64_t bits_of(double d)
{
    uint64_t bits;
    memcpy(&bits, &d, 8);
    return bits;
}
#define DA twice(WA)
#define DB twice(WB)
#define DC twice(WC)

static double least(double a, double b) { return a != a ? b : b != b ? a : a < b || (a == b && signbit(a)) ? a : b; }
static double most(double a, double b) { return a != a ? b : b != b ? a : a > b || (a == b && !signbit(a)) ? a : b; }
static uint32_t to_unsigned(double d) { return !(d > -1) ? 0 : d >= 4294967296.0 ? UINT32_MAX : (uint32_t)(int64_t)d; }
static uint32_t to_signed(double d)
{
    return (uint32_t)(d != d ? 0 : d >= 2147483647.0 ? INT32_MAX : d <= -2147483648.0 ? INT32_MIN : (int32_t)d);
}
static uint32_t exponent_of(double d)
{
    int e = 0;
    if (isfinite(d)) (void)frexp(d, &e);
    return (uint32_t)e;
}
static double mantissa_of(double d)
{
    int e;
    return isfinite(d) ? frexp(d, &e) : d;
}
static double scaled_by(double d, int32_t n) { return ldexp(d, n > 4000 ? 4000 : n < -4000 ? -4000 : n); }

LANES_OF(v_cvt_i32_f64, to_signed(DA))
WIDE_OF(v_cvt_f64_i32, bits_of((double)SA))
LANES_OF(v_cvt_f32_f64, as_bits((float)DA))
WIDE_OF(v_cvt_f64_f32, bits_of((double)FA))
LANES_OF(v_cvt_u32_f64, to_unsigned(DA))
WIDE_OF(v_cvt_f64_u32, bits_of((double)A))
WIDE_OF(v_trunc_f64, bits_of(trunc(DA)))
WIDE_OF(v_ceil_f64, bits_of(ceil(DA)))
WIDE_OF(v_rndne_f64, bits_of(nearbyint(DA)))
WIDE_OF(v_floor_f64, bits_of(floor(DA)))
WIDE_OF(v_rcp_f64, bits_of(1.0 / DA))
LANES_OF(v_frexp_exp_i32_f64, exponent_of(DA))
WIDE_OF(v_frexp_mant_f64, bits_of(mantissa_of(DA)))

static const struct row rows1[] = {
    { "v_cvt_i32_f64", 3, "d1 s2e", ROW_FLOAT, 0, valu_run, v_cvt_i32_f64 },
    { "v_cvt_f64_i32", 4, "d2 s1", ROW_FLOATS_OUT, 0, valu_run, v_cvt_f64_i32 },
    { "v_cvt_f32_f64", 15, "d1 s2e", ROW_FLOAT | ROW_FLOATS_OUT, 0, valu_run, v_cvt_f32_f64 },
    { "v_cvt_f64_f32", 16, "d2 s1f", ROW_FLOAT | ROW_FLOATS_OUT, 0, valu_run, v_cvt_f64_f32 },
    { "v_cvt_u32_f64", 21, "d1 s2e", ROW_FLOAT, 0, valu_run, v_cvt_u32_f64 },
    { "v_cvt_f64_u32", 22, "d2 s1", ROW_FLOATS_OUT, 0, valu_run, v_cvt_f64_u32 },
    { "v_trunc_f64", 23, "d2 s2e", ROW_FLOAT, 0, valu_run, v_trunc_f64 },
    { "v_ceil_f64", 24, "d2 s2e", ROW_FLOAT, 0, valu_run, v_ceil_f64 },
    { "v_rndne_f64", 25, "d2 s2e", ROW_FLOAT, 0, valu_run, v_rndne_f64 },
    { "v_floor_f64", 26, "d2 s2e", ROW_FLOAT, 0, valu_run, v_floor_f64 },
    { "v_rcp_f64", 37, "d2 s2e", ROW_FLOAT | ROW_TRANSCENDENTAL, 0, valu_run, v_rcp_f64 },
    { "v_frexp_exp_i32_f64", 48, "d1 s2e", ROW_FLOAT, 0, valu_run, v_frexp_exp_i32_f64 },
    { "v_frexp_mant_f64", 49, "d2 s2e", ROW_FLOAT, 0, valu_run, v_frexp_mant_f64 },
};
const struct family family_double1 = FAMILY("Vector ALU Operations", FORMAT_VOP1, rows1);

WIDE_OF(v_fmac_f64, bits_of(fma(DA, DB, twice(pair(x->d, l)))))

static const struct row rows2[] = {
    { "v_fmac_f64", 4, "x2 s2e s2e", ROW_FLOAT, 0, valu_run, v_fmac_f64 },
};
const struct family family_double2 = FAMILY("Vector ALU Operations", FORMAT_VOP2, rows2);

WIDE_OF(v_fma_f64, bits_of(fma(DA, DB, DC)))
WIDE_OF(v_add_f64, bits_of(DA + DB))
WIDE_OF(v_mul_f64, bits_of(DA * DB))
WIDE_OF(v_min_f64, bits_of(least(DA, DB)))
WIDE_OF(v_max_f64, bits_of(most(DA, DB)))
WIDE_OF(v_ldexp_f64, bits_of(scaled_by(DA, SB)))

/* ---- division: the steps that the manual gives to v_div_scale, v_div_fmas and v_div_fixup ---- */

static int field_of(double d) { return (int)(bits_of(d) >> 52 & 0x7ff); }
static bool is_denormal(double d) { return d != 0 && field_of(d) == 0; }

/* Denominator or numerator, whichever the first source is, moved so that no step of the quotient loses bits; true where
 * v_div_fmas moves the result back. */
static bool scale_for_division(double value, double denominator, double numerator, double *scaled)
{
    *scaled = value;
    if (numerator == 0 || denominator == 0) {
        *scaled = NAN;
        return false;
    }
    if (field_of(numerator) - field_of(denominator) >= 768) {
        if (value == denominator) *scaled = ldexp(value, 128);
        return true;
    }
    if (is_denormal(denominator)) {
        *scaled = ldexp(value, 128);
        return false;
    }
    const bool reciprocal = is_denormal(1.0 / denominator), quotient = is_denormal(numerator / denominator);
    if (reciprocal && quotient) {
        if (value == denominator) *scaled = ldexp(value, 128);
        return true;
    }
    if (reciprocal) *scaled = ldexp(value, -128);
    else if (quotient) {
        if (value == numerator) *scaled = ldexp(value, 128);
        return true;
    } else if (field_of(numerator) <= 53) *scaled = ldexp(value, 128);
    return false;
}

static double fixed_up(double quotient, double denominator, double numerator)
{
    const bool negative = signbit(denominator) != signbit(numerator);
    if (numerator != numerator) return numerator;
    if (denominator != denominator) return denominator;
    if ((numerator == 0 && denominator == 0) || (isinf(numerator) && isinf(denominator))) return -NAN;
    const double magnitude = denominator == 0 || isinf(numerator) ? INFINITY
                             : isinf(denominator) || numerator == 0 ? 0
                                                                    : fabs(quotient);
    return negative ? -magnitude : magnitude;
}

static void v_div_scale_f64(struct lanes *x)
{
    for (uint32_t l = 0; l < LANES; l++) {
        double scaled;
        x->mask_out |= (uint64_t)scale_for_division(DA, DB, DC, &scaled) << l;
        set_pair(x->d, l, bits_of(scaled));
    }
}
static void v_div_fmas_f64(struct lanes *x)
{
    const uint64_t vcc = x->w->sgpr[VCC] | (uint64_t)x->w->sgpr[VCC + 1] << 32,
                   undefined = x->w->sgpr_undefined[VCC] | (uint64_t)x->w->sgpr_undefined[VCC + 1] << 32;
    x->mask_in_defined = (undefined & x->lanes) == 0;
    for (uint32_t l = 0; l < LANES; l++) {
        const double sum = fma(DA, DB, DC);
        set_pair(x->d, l, bits_of((vcc >> l & 1) == 0 ? sum : ldexp(sum, field_of(DC) > 1023 ? 128 : -128)));
    }
}
WIDE_OF(v_div_fixup_f64, bits_of(fixed_up(DA, DB, DC)))

static const struct row rows3[] = {
    { "v_fma_f64", 460, "d2 s2e s2e s2e", ROW_FLOAT, 0, valu_run, v_fma_f64 },
    { "v_div_fixup_f64", 479, "d2 s2e s2e s2e", ROW_FLOAT, 0, valu_run, v_div_fixup_f64 },
    { "v_div_scale_f64", 481, "d2 c2 s2e s2e s2e", ROW_FLOAT, 0, valu_run, v_div_scale_f64 },
    { "v_div_fmas_f64", 483, "d2 s2e s2e s2e", ROW_FLOAT, 0, valu_run, v_div_fmas_f64 },
    { "v_add_f64", 640, "d2 s2e s2e", ROW_FLOAT, 0, valu_run, v_add_f64 },
    { "v_mul_f64", 641, "d2 s2e s2e", ROW_FLOAT, 0, valu_run, v_mul_f64 },
    { "v_min_f64", 642, "d2 s2e s2e", ROW_FLOAT, 0, valu_run, v_min_f64 },
    { "v_max_f64", 643, "d2 s2e s2e", ROW_FLOAT, 0, valu_run, v_max_f64 },
    { "v_ldexp_f64", 644, "d2 s2e s1", ROW_FLOAT, 0, valu_run, v_ldexp_f64 },
};
const struct family family_double3 = FAMILY("Vector ALU Operations", FORMAT_VOP3, rows3);
