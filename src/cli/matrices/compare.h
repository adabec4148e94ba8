/* Comparing a product with what it must be, element by element.  NaN never passes as close to anything. */
#ifndef CLI_COMPARE_H
#define CLI_COMPARE_H

#include <stdbool.h>
#include <stdint.h>

/* The unit roundoff of fp32: half the distance from 1 to the next number. */
#define COMPARE_EPS 0x1p-24

/* got: M x N fp32 with a pitch; all others: M x N, tight. */
struct compare_shape { int64_t m, n, pitch; };

/* The first element that is not as it must be, in row-major order. */
struct difference {
    bool found;
    int64_t i, j;
    double got, want, allowed;            /* allowed: |got - want| may be this much; 0 where bits are compared */
    uint32_t got_bits, want_bits;         /* want_bits: of want rounded to fp32 where it is not fp32 */
    int64_t count;                        /* of elements that differ */
};

/* Bits must be equal, NaN and -0 included. */
struct difference compare_bits(struct compare_shape shape, const float *got, const float *want);

/* How far sums may be off: roundings * eps / (1 - roundings * eps) of the magnitude (Higham's gamma_n, the error of n
 * rounded additions) and `least`, which is 0 but where sums may be cut below fp32's normal numbers, and `more` of each
 * element, unless NULL. */
struct compare_limit { int64_t roundings; double least; const double *more; };

/* NaN of `sum` must be the canonical NaN, an infinity that infinity, all others within the limit; where the magnitude
 * is infinite and the sum is not, everything passes.  *worst, unless NULL, becomes the largest |got - sum| / (eps *
 * magnitude), least and more taken off, of the elements whose bound is finite if that is larger than what it holds. */
struct difference compare_bound(struct compare_shape shape, const float *got, const double *sum,
                                const double *magnitude, struct compare_limit limit, double *worst);

/* Bits as in compare_bits, but a `sum` that fp32 has as a subnormal number or not at all (`want` is it, rounded to
 * nearest) may also have been cut toward zero `cuts` times, by less than 2^-149 each time; zeros that cuts leave are
 * +0. */
struct difference compare_cut(struct compare_shape shape, const float *got, const float *want, const double *sum,
                              int cuts);

/* Bits as in compare_bits, but what is off by less than `flushed` is right, too: matrix units make zeros of products
 * that are too small. */
struct difference compare_flushed(struct compare_shape shape, const float *got, const float *want, const double *sum,
                                  double flushed);

/* Between the rows nothing may have been written: all columns from n to pitch still have the bits `fill`. */
struct difference compare_gaps(struct compare_shape shape, const float *got, uint32_t fill);

#endif
