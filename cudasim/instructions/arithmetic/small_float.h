/* The formats of 4, 6 and 8 bits: codes to numbers and back.  OCP 8-bit Floating Point Specification 1.0, OCP
 * Microscaling Formats 1.0. */
#ifndef CUDASIM_INSTRUCTIONS_ARITHMETIC_SMALL_FLOAT_H
#define CUDASIM_INSTRUCTIONS_ARITHMETIC_SMALL_FLOAT_H

#include "real.h"

struct small_format {
    uint8_t exponent_bits, mantissa_bits;
    uint8_t largest;                      /* code of the largest finite magnitude */
    uint8_t nan;                          /* what a NaN becomes: a NaN where the format has one, else the largest
                                             number */
};
/* NULL: no such format.  The packed types (e4m3x2) give the format of their elements. */
const struct small_format *small_format_of(enum ptx_type type);
static inline uint32_t small_bits(const struct small_format *f) { return 1u + f->exponent_bits + f->mantissa_bits; }

struct real small_decode(const struct small_format *f, uint32_t code);
/* Nearest, ties to even; beyond the largest magnitude, infinities too: the largest. */
uint32_t small_encode(const struct small_format *f, const struct real *x);

#endif
