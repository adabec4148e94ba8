/* The tensor scale: computed from the largest magnitude. */
#ifndef BSMI_TENSOR_SCALE_H
#define BSMI_TENSOR_SCALE_H

#include "blockscale/quantize.h"
#include "matrix/matrix.h"
#include "matrix/reals.h"
#include "quantize/block/block.h"

/* Whether a tensor scale can be computed for the format; the sentence names why not. */
bsm_status bsmi_tensor_scale_check(const struct bsmi_matrix *destination);

/* The largest magnitude of element times scale; 0 for formats whose range needs no tensor scale.  Four over six leaves
 * its scales room: they go up to 256. */
double bsmi_tensor_scale_largest(const struct bsmi_matrix *destination, bsm_recipe recipe);

/* The scale that makes the largest finite magnitude of `source`, clamped, the largest that the destination's format
 * holds: exact and rounded once, or as the options' preset has it. */
float bsmi_tensor_scale_compute(const bsm_context *context, const struct bsmi_reals *source,
                                const struct bsmi_matrix *destination, const bsm_quantize_options *options);

#endif
