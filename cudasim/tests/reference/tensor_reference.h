/* The tensor core's fused dot product once more, slowly: integers of 1024 bits hold every term and every sum exactly.
 * Written from the published description, not from machine/tensor_core.c. */
#ifndef CUDASIM_TESTS_REFERENCE_TENSOR_REFERENCE_H
#define CUDASIM_TESTS_REFERENCE_TENSOR_REFERENCE_H

#include <stdint.h>

#include "machine/mma/tensor_core.h"

struct reference_model { int group, fraction_bits, late_add; enum tensor_output output; };

/* The value of an element's code; NaN and infinities too. */
double reference_value(enum tensor_format format, uint32_t code);
/* What a term's alignment goes by: the exponent of a normal number, the least one of the format for subnormals, far
 * below all others for zero. */
enum { REFERENCE_ZERO = -10000 };
int reference_exponent(enum tensor_format format, uint32_t code);
uint32_t reference_dot(const struct reference_model *model, enum tensor_format fa, const uint32_t *a,
                       enum tensor_format fb, const uint32_t *b, int length, uint32_t c);

#endif
