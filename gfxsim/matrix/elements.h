/* What codes of matrix operands are worth. */
#ifndef GFXSIM_MATRIX_ELEMENTS_H
#define GFXSIM_MATRIX_ELEMENTS_H

#include <stdbool.h>
#include <stdint.h>

/* The first five as cbsz and blgp number them. */
enum element { ELEMENT_E4M3, ELEMENT_E5M2, ELEMENT_E2M3, ELEMENT_E3M2, ELEMENT_E2M1, ELEMENT_BF16, ELEMENT_F16,
               ELEMENT_I8,
               ELEMENTS };

uint32_t element_bits(enum element e);
double element_value(enum element e, uint32_t code);      /* NaN and infinities included */

/* Rounded to nearest even.  Too large: the largest code, or, of e4m3 and e5m2 unless `saturates`, NaN or infinity; NaN
 * becomes the largest code of a format that has none. */
uint32_t element_encode(enum element e, double value, bool saturates);

float half_to_float(uint16_t bits);
/* Rounded to nearest even. */
uint16_t double_to_half(double d);
uint16_t float_to_half(float f);
uint16_t float_to_bfloat(float f);

#endif
