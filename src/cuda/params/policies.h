/* The parameters of kernel bsmi_quantize_policies: bsmi_quantize for any recipe and with these options, slowly;
 * destinations with block scales alone.  Any grid. */
#ifndef BSMI_POLICIES_PARAMETERS_H
#define BSMI_POLICIES_PARAMETERS_H

#include "kernels.h"
#include "quantize/block/clamp.h"

enum { BSMI_POLICIES_THREADS = 128 };
struct bsmi_policies_parameters {
    struct bsmi_quantize_parameters all;
    struct bsmi_clamp clamp;
    int32_t smallest_scale, block_rows;   /* block_rows: rows that share a scale, 1 or the block's length */
};

#endif
