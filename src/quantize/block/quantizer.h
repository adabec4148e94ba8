/* What is fixed for the blocks of a matrix: their element and scale, how both are rounded, and by which recipe or
 * preset. */
#ifndef BSMI_QUANTIZER_H
#define BSMI_QUANTIZER_H

#include "blockscale/quantize.h"
#include "clamp.h"

struct bsmi_recipe;                       /* one row of recipes.c: name, scale type, scale-code rule */
struct bsmi_preset_rule;                  /* one row of presets.c */

struct bsmi_block_quantizer {
    const struct bsmi_recipe *recipe;
    bsm_element element;
    bsm_scale scale;                      /* E8M0 or UE4M3 */
    bsm_rounding rounding;
    uint64_t seed;
    bsm_nonfinite nonfinite;
    double tensor_scale;                  /* 1: none */
    bool tensor_scale_divides;            /* value = element * scale / tensor_scale */
    bsm_real source;                      /* the type of the numbers; fp64: more bits, and other exponents, than fp32 */
    const struct bsmi_preset_rule *preset;   /* NULL: none */
    struct bsmi_clamp clamp;
    uint8_t smallest_scale;
};

#endif
