/* exp and erfc in double, for activations: exact to some 1e-13 of themselves, where fp32 wants 6e-8. */
#ifndef BSMI_HIP_FUNCTIONS_H
#define BSMI_HIP_FUNCTIONS_H

#include <math.h>

/* 2^n times the series of e^r for |r| <= ln(2) / 2, whose 14th term is below 4e-18. */
static inline double exp(double x)
{
    if (x > 710) return (double)INFINITY;
    if (x < -746) return 0;
    const double n = __builtin_rint(x * 1.44269504088896340736);
    const double r = __builtin_fma(-n, 1.90821492927058770002e-10, __builtin_fma(-n, 6.93147180369123816490e-01, x));
    double sum = 1;
#pragma unroll
    for (int i = 13; i > 0; i--) sum = __builtin_fma(sum * (1.0 / i), r, 1);
    return __builtin_ldexp(sum, (int)n);
}

/* erf's series e^-zz 2 / sqrt(pi) (z + 2 z^3 / 3 + 4 z^5 / 15 ...), which has no terms of other signs. */
static inline double erf_by_series(double z, double e)
{
    double term = z, sum = z;
#pragma unroll 1
    for (int n = 1; n < 50; n++) {
        term *= 2 * z * z / (2 * n + 1);
        sum += term;
    }
    return 1.12837916709551257390 * e * sum;
}

/* erfc's continued fraction e^-zz / sqrt(pi) / (z + 1/2 / (z + 2/2 / (z + 3/2 / ...))) for z >= 2, by its numerators
 * and denominators, which stay below 1e100. */
static inline double erfc_by_fraction(double z, double e)
{
    double a0 = 0, a1 = 1, b0 = 1, b1 = z;
#pragma unroll 1
    for (int n = 1; n < 60; n++) {
        const double a = z * a1 + 0.5 * n * a0, b = z * b1 + 0.5 * n * b0;
        a0 = a1, a1 = a, b0 = b1, b1 = b;
    }
    return 0.56418958354775628695 * e * (a1 / b1);
}

static inline double erfc(double x)
{
    const double z = x < 0 ? -x : x;
    if (isnan(x)) return x;
    if (z > 28) return x < 0 ? 2 : 0;
    const double high = (double)(float)z, e = exp(-high * high) * exp(-(z - high) * (z + high));
    if (z < 2) {
        const double erf = erf_by_series(z, e);
        return x < 0 ? 1 + erf : 1 - erf;
    }
    const double tail = erfc_by_fraction(z, e);
    return x < 0 ? 2 - tail : tail;
}

#endif
