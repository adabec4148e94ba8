/* What every code is worth and which code is nearest, stated a second time: in doubles and by search, sharing nothing
 * with src/format but the numbers of the enumerators. */
#ifndef BSM_TEST_ORACLE_H
#define BSM_TEST_ORACLE_H

#include "blockscale/format.h"

struct oracle_element {
    int bits, exponent_bits, mantissa_bits, bias;
    uint32_t largest;                     /* finite positive code */
    enum { ONLY_NUMBERS, ONE_NAN, IEEE, INTEGER } kind;
};

extern const struct oracle_element oracle_elements[BSM_ELEMENT_COUNT];

/* Value of a code, and of the positive code one above the largest as if the exponents went on. */
double oracle_decode(bsm_element element, uint32_t code);

/* The code nearest to value, ties to the even code. */
uint32_t oracle_encode(bsm_element element, double value, bool saturate);

/* The largest code whose value is at most `magnitude` (which is finite), not beyond one above the largest. */
uint32_t oracle_floor_code(bsm_element element, double magnitude);

/* The sign of a negative code: its sign bit, or two's complement. */
uint32_t oracle_negative(bsm_element element, uint32_t positive_code);

#endif
