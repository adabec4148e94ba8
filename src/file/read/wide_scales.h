/* Scales of fp8 weights that a file has in 16 bits, as fp32: llm-compressor writes them in the type of the model. */
#ifndef BSMI_WIDE_SCALES_H
#define BSMI_WIDE_SCALES_H

#include "blockscale/checkpoint.h"
#include "core/core.h"

struct bsmi_wide_scales {
    struct bsmi_wide_tensor {
        int64_t index;
        const float *numbers;
    } * tensors; /* by index */
    int64_t count;
    float *numbers;
    int64_t number_count;
};

/* Those of a checkpoint whose tensors are known.  Errors: BSM_ENOMEM. */
bsm_status bsmi_wide_scales_make(const bsm_context *context, const bsm_checkpoint *checkpoint,
                                 struct bsmi_wide_scales *wide);
void bsmi_wide_scales_free(const bsm_context *context, struct bsmi_wide_scales *wide);

/* The fp32 numbers of a tensor; NULL: it was not made wider. */
const float *bsmi_wide_scales_find(const struct bsmi_wide_scales *wide, int64_t index);
const float *bsmi_checkpoint_wide(const bsm_checkpoint *checkpoint, int64_t index);

#endif
