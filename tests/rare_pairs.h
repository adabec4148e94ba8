/* Pairs of formats that tests of every pair may leave out. */
#ifndef TESTS_RARE_PAIRS_H
#define TESTS_RARE_PAIRS_H

#include "blockscale.h"

/* Codes of 4 and 6 bits without block scales beside another format: read and packed as those of MXFP4 and MXFP6, and
 * summed as e4m3 and e5m2 without scales, which are tried with all.  A fourth of the pairs is kept. */
static inline bool pair_is_rare(int a, int b)
{
    const bool narrow_a = a > BSM_FORMAT_FP32, narrow_b = b > BSM_FORMAT_FP32;
    return narrow_a != narrow_b && (a + b) % 4 != 0;
}

#endif
