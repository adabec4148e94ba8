/* What quantizing and dequantizing were asked for, checked: what a device gets in the CPU's place. */
#ifndef BSMI_REQUEST_H
#define BSMI_REQUEST_H

#include "blockscale/quantize.h"
#include "quantize/block/clamp.h"
#include "matrix/matrix.h"
#include "matrix/reals.h"

struct bsmi_quantize_request {
    struct bsmi_reals source;
    struct bsmi_matrix destination;
    bsm_recipe recipe;
    bsm_rounding rounding;
    uint64_t seed;
    bsm_nonfinite nonfinite;
    bool no_saturate;
    bool computes_tensor_scale;           /* from the largest finite magnitude, into *destination.tensor_scale */
    double largest;                       /* that the format holds; for a computed tensor scale */
    struct bsmi_clamp clamp;
    uint8_t smallest_scale;
    int block_rows;                       /* rows that share a scale: 1, or the block's length */
};

struct bsmi_dequantize_request { struct bsmi_matrix source; struct bsmi_reals destination; };

#endif
