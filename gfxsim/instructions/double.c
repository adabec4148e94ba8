/* fp64, and the steps of a division in fp32, fp64 and fp16: v_div_scale, v_div_fmas, v_div_fixup. */
#include "families.h"
#include "machine/hazards.h"
#include "machine/registers.h"
#include "matrix/elements.h"
#include "valu.h"

#include <float.h>

#define DA twice(WA)
#define DB twice(WB)
#define DC twice(WC)

static double scaled_by(double a, int32_t n) { return ldexp(a, n > 3000 ? 3000 : n < -3000 ? -3000 : n); }
static uint32_t double_exponent(double d)
{
    int e = 0;
    if (isfinite(d)) (void)frexp(d, &e);
    return (uint32_t)e;
}
static double double_mantissa(double d)
{
    int e;
    return isfinite(d) ? frexp(d, &e) : d;
}
static uint32_t to_signed(double d)
{
    return d != d ? 0 : d >= 2147483647.0 ? INT32_MAX : d <= -2147483648.0 ? (uint32_t)INT32_MIN : (uint32_t)(int32_t)d;
}
static uint32_t to_unsigned(double d)
{
    return d != d || d <= 0 ? 0 : d >= 4294967295.0 ? UINT32_MAX : (uint32_t)d;
}

LANES_OF(v_cvt_i32_f64, to_signed(DA))
LANES_OF(v_cvt_u32_f64, to_unsigned(DA))
WIDE_OF(v_cvt_f64_i32, bits_of((double)SA))
WIDE_OF(v_cvt_f64_u32, bits_of((double)A))
LANES_OF(v_cvt_f32_f64, as_bits((float)DA))
WIDE_OF(v_cvt_f64_f32, bits_of((double)FA))
WIDE_OF(v_trunc_f64, bits_of(trunc(DA)))
WIDE_OF(v_ceil_f64, bits_of(ceil(DA)))
WIDE_OF(v_rndne_f64, bits_of(nearbyint(DA)))
WIDE_OF(v_floor_f64, bits_of(floor(DA)))
WIDE_OF(v_fract_f64, bits_of(DA - floor(DA)))
WIDE_OF(v_rcp_f64, bits_of(1.0 / DA))
WIDE_OF(v_rsq_f64, bits_of(1.0 / sqrt(DA)))
WIDE_OF(v_sqrt_f64, bits_of(sqrt(DA)))
LANES_OF(v_frexp_exp_i32_f64, double_exponent(DA))
WIDE_OF(v_frexp_mant_f64, bits_of(double_mantissa(DA)))

enum { D1 = ROW_FLOAT | ROW_FLOATS_OUT, T1 = D1 | ROW_TRANSCENDENTAL };
static const struct row rows1[] = {
    { "v_cvt_i32_f64", 3, "d1 s2e", ROW_FLOAT, 0, valu_run, v_cvt_i32_f64 },
    { "v_cvt_f64_i32", 4, "d2e s1", ROW_FLOATS_OUT, 0, valu_run, v_cvt_f64_i32 },
    { "v_cvt_f32_f64", 15, "d1 s2e", D1, 0, valu_run, v_cvt_f32_f64 },
    { "v_cvt_f64_f32", 16, "d2e s1f", D1, 0, valu_run, v_cvt_f64_f32 },
    { "v_cvt_u32_f64", 21, "d1 s2e", ROW_FLOAT, 0, valu_run, v_cvt_u32_f64 },
    { "v_cvt_f64_u32", 22, "d2e s1", ROW_FLOATS_OUT, 0, valu_run, v_cvt_f64_u32 },
    { "v_trunc_f64", 23, "d2e s2e", D1, 0, valu_run, v_trunc_f64 },
    { "v_ceil_f64", 24, "d2e s2e", D1, 0, valu_run, v_ceil_f64 },
    { "v_rndne_f64", 25, "d2e s2e", D1, 0, valu_run, v_rndne_f64 },
    { "v_floor_f64", 26, "d2e s2e", D1, 0, valu_run, v_floor_f64 },
    { "v_rcp_f64", 37, "d2e s2e", T1, 0, valu_run, v_rcp_f64 },
    { "v_rsq_f64", 38, "d2e s2e", T1, 0, valu_run, v_rsq_f64 },
    { "v_sqrt_f64", 40, "d2e s2e", T1, 0, valu_run, v_sqrt_f64 },
    { "v_frexp_exp_i32_f64", 48, "d1 s2e", ROW_FLOAT, 0, valu_run, v_frexp_exp_i32_f64 },
    { "v_frexp_mant_f64", 49, "d2e s2e", D1, 0, valu_run, v_frexp_mant_f64 },
    { "v_fract_f64", 50, "d2e s2e", D1, 0, valu_run, v_fract_f64 },
};
const struct family family_double1 = FAMILY("Vector ALU Operations", FORMAT_VOP1, rows1);

WIDE_OF(v_fmac_f64, bits_of(fma(DA, DB, twice(pair(x->d, l)))))
static const struct row rows2[] = { { "v_fmac_f64", 4, "x2e s2e s2e", D1, 0, valu_run, v_fmac_f64 } };
const struct family family_double2 = FAMILY("Vector ALU Operations", FORMAT_VOP2, rows2);

/* ---- division ---- */

/* What differs between fp32 and fp64 in AMD's published pseudocode. */
struct division { int bias, gap, step, tiny, vanishes; };
static const struct division single = { 127, 96, 64, 23, -150 }, wide = { 1023, 768, 128, 53, -1075 };

static int biased(const struct division *f, double d)
{
    if (d == 0) return 0;
    if (!isfinite(d)) return 2 * f->bias + 1;
    const int e = ilogb(d) + f->bias;
    return e < 0 ? 0 : e;
}
static bool denormal(const struct division *f, double d)
{
    return d != 0 && isfinite(d) && (d != d || ilogb(d) < 1 - f->bias);
}

/* `value` is the numerator or the denominator; *scaled: whether v_div_fmas has to scale the result. */
static double prescaled(const struct division *f, double value, double denominator, double numerator, bool *scaled)
{
    const int en = biased(f, numerator), ed = biased(f, denominator);
    const bool of_denominator = bits_of(value) == bits_of(denominator), of_numerator = bits_of(value)
                                                                                       == bits_of(numerator);
    *scaled = false;
    if (numerator == 0 || denominator == 0) return NAN;
    /* 1 / denominator and numerator / denominator as numbers of the format: by exponents, since fp64's do not fit */
    const bool reciprocal_is_small = isfinite(denominator) && fabs(denominator) > ldexp(1, f->bias - 1),
               quotient_is_small = isfinite(denominator) && isfinite(numerator)
                                   && ilogb(numerator) - ilogb(denominator)
                                          - (fabs(scalbn(numerator, -ilogb(numerator)))
                                             < fabs(scalbn(denominator, -ilogb(denominator)))) < 1 - f->bias;
    if (en - ed >= f->gap) {
        *scaled = true;
        return of_denominator ? ldexp(value, f->step) : value;
    }
    if (denormal(f, denominator)) return ldexp(value, f->step);
    if (reciprocal_is_small && quotient_is_small) {
        *scaled = true;
        return of_denominator ? ldexp(value, -f->step) : value;
    }
    if (reciprocal_is_small) return ldexp(value, -f->step);
    if (quotient_is_small) {
        *scaled = true;
        return of_numerator ? ldexp(value, f->step) : value;
    }
    return en <= f->tiny ? ldexp(value, f->step) : value;
}

static void v_div_scale_f32(struct lanes *x)
{
    for (uint32_t l = 0; l < LANES; l++) {
        bool scaled;
        x->d[l] = as_bits((float)prescaled(&single, (double)FA, (double)FB, (double)FC, &scaled));
        x->mask_out |= (uint64_t)scaled << l;
    }
}
static void v_div_scale_f64(struct lanes *x)
{
    for (uint32_t l = 0; l < LANES; l++) {
        bool scaled;
        set_pair(x->d, l, bits_of(prescaled(&wide, DA, DB, DC, &scaled)));
        x->mask_out |= (uint64_t)scaled << l;
    }
}

/* VCC says which lanes' results are scaled back; four wait states behind a vector instruction that writes it. */
static trap div_fmas(struct wave *w, const struct insn *in)
{
    static const struct operand vcc = { .kind = OPERAND_SGPR, .dwords = 2, .index = VCC };
    uint64_t mask;
    if (!hazard_vcc_div_fmas(w, in) || !scalar_defined(w, in, &vcc, "lanes to scale", &mask)) return TRAP_FAULT;
    return valu_run(w, in);
}
/* A large quotient has had its denominator scaled up, a small one its numerator. */
static int scale_back(const struct lanes *x, uint32_t l, const struct division *f, double quotient)
{
    if (!(x->w->sgpr[VCC + l / 32] >> l % 32 & 1)) return 0;
    return biased(f, quotient) > f->bias ? f->step : -f->step;
}
/* a * b + c with more bits than fp64 where long double has them, the last one set if it is not exact: rounded once more
 * it is rounded once. */
static long double nearly(double a, double b, double c)
{
    const long double p = (long double)a * b, pe = fmal(a, b, -p), s = p + c, back = s - p,
                      se = (p - (s - back)) + (c - back), sum = s + (pe + se), rest = (s - sum) + (pe + se);
    if (rest == 0 || !isfinite(sum) || fmodl(ldexpl(sum, -ilogbl(sum) + LDBL_MANT_DIG - 1), 2) != 0) return sum;
    return nextafterl(sum, rest > 0 ? HUGE_VALL : -HUGE_VALL);
}
static float single_fmas(double a, double b, double c, int scale) { return (float)ldexpl(nearly(a, b, c), scale); }
static double wide_fmas(double a, double b, double c, int scale)
{
    return scale == 0 ? fma(a, b, c) : (double)ldexpl(nearly(a, b, c), scale);
}
LANES_OF(v_div_fmas_f32,
         as_bits(single_fmas((double)FA, (double)FB, (double)FC, scale_back(x, l, &single, (double)FC))))
WIDE_OF(v_div_fmas_f64, bits_of(wide_fmas(DA, DB, DC, scale_back(x, l, &wide, DC))))

/* The quotient, or what the operands' special values make of it. */
static double fixed(const struct division *f, double quotient, double denominator, double numerator)
{
    const double sign = signbit(denominator) != signbit(numerator) ? -1.0 : 1.0;
    if (numerator != numerator) return numerator;
    if (denominator != denominator) return denominator;
    if ((numerator == 0 && denominator == 0) || (isinf(numerator) && isinf(denominator))) return -NAN;
    if (denominator == 0 || isinf(numerator)) return sign * INFINITY;
    if (isinf(denominator) || numerator == 0) return sign * 0.0;
    if (biased(f, numerator) - biased(f, denominator) < f->vanishes) return sign * 0.0;
    if (quotient != quotient) return sign * INFINITY;                     /* steps that have overflowed */
    return copysign(quotient, sign);
}
LANES_OF(v_div_fixup_f32, as_bits((float)fixed(&single, (double)FA, (double)FB, (double)FC)))
WIDE_OF(v_div_fixup_f64, bits_of(fixed(&wide, DA, DB, DC)))

WIDE_OF(v_fma_f64, bits_of(fma(DA, DB, DC)))
WIDE_OF(v_add_f64, bits_of(DA + DB))
WIDE_OF(v_mul_f64, bits_of(DA * DB))
WIDE_OF(v_min_f64, bits_of(least(DA, DB)))
WIDE_OF(v_max_f64, bits_of(most(DA, DB)))
WIDE_OF(v_ldexp_f64, bits_of(scaled_by(DA, SB)))

static const struct row rows3[] = {
    { "v_fma_f64", 460, "d2e s2e s2e s2e", D1, 0, valu_run, v_fma_f64 },
    { "v_div_fixup_f32", 478, "d1 s1f s1f s1f", D1, 0, valu_run, v_div_fixup_f32 },
    { "v_div_fixup_f64", 479, "d2e s2e s2e s2e", D1, 0, valu_run, v_div_fixup_f64 },
    { "v_div_scale_f32", 480, "d1 c2 s1f s1f s1f", ROW_FLOAT, 0, valu_run, v_div_scale_f32 },
    { "v_div_scale_f64", 481, "d2 c2 s2e s2e s2e", ROW_FLOAT, 0, valu_run, v_div_scale_f64 },
    { "v_div_fmas_f32", 482, "d1 s1f s1f s1f", D1, 0, div_fmas, v_div_fmas_f32 },
    { "v_div_fmas_f64", 483, "d2e s2e s2e s2e", D1, 0, div_fmas, v_div_fmas_f64 },
    { "v_add_f64", 640, "d2e s2e s2e", D1, 0, valu_run, v_add_f64 },
    { "v_mul_f64", 641, "d2e s2e s2e", D1, 0, valu_run, v_mul_f64 },
    { "v_min_f64", 642, "d2e s2e s2e", D1, 0, valu_run, v_min_f64 },
    { "v_max_f64", 643, "d2e s2e s2e", D1, 0, valu_run, v_max_f64 },
    { "v_ldexp_f64", 644, "d2e s2e s1", D1, 0, valu_run, v_ldexp_f64 },
};
const struct family family_double3 = FAMILY("Vector ALU Operations", FORMAT_VOP3, rows3);
