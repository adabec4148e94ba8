/* Sums as matrix instructions round them, in three models (enum rounding). */
#ifndef GFXSIM_MATRIX_SUMS_H
#define GFXSIM_MATRIX_SUMS_H

#include <stdint.h>

/* The sum of numbers between 2^-420 and 2^420, rounded once to fp32, to nearest even; NaN and infinities as IEEE has
 * them. */
float sum_exact(const double *term, int count);
/* All terms and C, aligned to the largest exponent, cut 24 bits below it (downwards), the sum rounded to fp32. */
float sum_group(float c, const double *term, int count);

#endif
