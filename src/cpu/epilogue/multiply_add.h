/* Rows of fp32 numbers, multiplied and added with one rounding. */
#ifndef BSMI_MULTIPLY_ADD_H
#define BSMI_MULTIPLY_ADD_H

#include <stdint.h>

/* to[j] = factor * numbers[j] + addends[j], the factor being factors[j] unless that is NULL.  `to` may be one of the
 * others.  features: BSM_CPU_ bits that may be used. */
void bsmi_multiply_add(uint32_t features, const float *factors, float factor, const float *numbers,
                       const float *addends, int64_t count, float *to);

#endif
