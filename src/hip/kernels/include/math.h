/* What kernels use of <math.h>: GPUs have no C library.  erfc and exp are in functions.h. */
#ifndef BSMI_HIP_MATH_H
#define BSMI_HIP_MATH_H

#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define isnan(x) __builtin_isnan(x)
#define isfinite(x) __builtin_isfinite(x)

static inline double exp(double x);
static inline double erfc(double x);

#endif
