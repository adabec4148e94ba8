/* Presets: the blocks of other projects, step by step in their arithmetic, docs/guide/recipes.md explains each. */
#ifndef BSMI_PRESETS_H
#define BSMI_PRESETS_H

#include "blockscale/quantize.h"

enum bsmi_rounding_of_preset {
    BSMI_TIES_TO_EVEN,
    BSMI_TIES_DOWN,                       /* e2m1 */
    BSMI_SMALLEST_ERROR                   /* e2m1: the first of all codes whose fp32 difference from x is the
                                             smallest */
};
enum bsmi_zero_of_preset {
    BSMI_ZERO_SIGNED,                     /* +-0 keeps its sign */
    BSMI_ZERO_POSITIVE,                   /* a quotient of -0 becomes +0; what rounds to zero keeps its sign */
    BSMI_ZERO_NEGATIVE                    /* a quotient of +0 becomes -0 */
};

/* What a block is quantized for: its element, the type of the source's numbers, and the tensor scale as it is stored
 * (1: none). */
struct bsmi_preset_setting { bsm_element element; bsm_real type; float t; };

/* What a preset does with blocks of some formats. */
struct bsmi_preset_rule {
    bsm_preset preset;
    uint32_t formats;                     /* bits of bsm_format */
    bool has_tensor_scale, divides;       /* whether it may have one, and how it must be used */
    uint8_t (*scale_code)(const struct bsmi_preset_setting *of, float amax);
    /* What is rounded to an element; scale is the decoded code. */
    double (*quotient)(const struct bsmi_preset_setting *of, float x, float scale);
    enum bsmi_rounding_of_preset rounding;
    enum bsmi_zero_of_preset zero;
    float (*tensor_scale)(bsm_real type, float amax);        /* a computed one; NULL: the exact quotient, rounded
                                                                once */
};

/* The rule for blocks of `format`, for a destination with or without a tensor scale; NULL with the sentence if there is
 * none. */
const struct bsmi_preset_rule *bsmi_preset_choose(bsm_preset preset, bsm_format format, bool has_tensor_scale,
                                                  bsm_tensor_scale_use use);

/* One block of finite numbers, of which amax is the largest magnitude: gives the scale code, and what was rounded. */
uint8_t bsmi_preset_block(const struct bsmi_preset_rule *rule, const struct bsmi_preset_setting *of, bsm_scale scale,
                          float amax, const float *x, int count, double *quotients, uint8_t *codes);

#endif
