/* Quantizing once more, slowly: every choice by search, every comparison in integers.  Shares nothing with
 * src/quantize. */
#ifndef BSM_TEST_ORACLE_BLOCK_H
#define BSM_TEST_ORACLE_BLOCK_H

#include "blockscale/quantize.h"
#include "exact.h"

struct oracle_setup {
    bsm_format format;
    bsm_recipe recipe;                    /* not DEFAULT, unless the format is unscaled; MSE of floats without a tensor
                                             scale */
    bsm_nonfinite nonfinite;
    float tensor_scale;
    bool divides;
};

struct oracle_block {
    uint8_t scale, codes[32];
    int saturated;
    bool flushed, nan;
};

uint8_t oracle_scale_code(const struct oracle_setup *setup, double amax);
void oracle_quantize_block(const struct oracle_setup *setup, const float *x, int count, struct oracle_block *result);
void oracle_quantize_wide_block(const struct oracle_setup *setup, const double *x, int count,
                                struct oracle_block *result);

/* The code of `element` nearest to +-numerator/denominator, ties to even; beyond the largest code: saturated, or
 * infinity or NaN as the format has them. */
uint32_t oracle_round(bsm_element element, bool negative, struct exact numerator, struct exact denominator,
                      bool saturate);

/* The exact magnitude of element * scale * or / tensor scale as a fraction. */
void oracle_value(double element, double scale, float tensor_scale, bool divides, struct exact *numerator,
                  struct exact *denominator);

#endif
