/* The parameters of the mixed-input kernels for tensor memory, in the manner of gemm.h. */
#ifndef BSMI_TENSOR_MIXED_INPUT_PARAMETERS_H
#define BSMI_TENSOR_MIXED_INPUT_PARAMETERS_H

#include "gemm.h"

#ifdef __cplusplus
struct bsmi_tensor_mixed_input_parameters : bsmi_blackwell_parameters {
#else
struct bsmi_tensor_mixed_input_parameters {
    struct bsmi_blackwell_parameters blackwell;
#endif
    /* b maps bytes, box (128, 128, 1), and scales lie as BSM_LAYOUT_128X4, with no NaN in the padding of the steps of
     * 64 columns that are multiplied; e8m0 less the exponents of rows, as bsmi_decode loads them. */
    BSMI_ALIGNED(64) const unsigned char *code_scales; /* itself aligned to 16 bytes.  The member is aligned so that C++
                                             does not place it in the padding behind its base, as C does not */
    int64_t code_band_bytes, code_batch_bytes; /* of 128 rows, of a matrix */
    int32_t tile_rows;                    /* of A: N of the instruction, and rows of A's boxes */
};

#endif
