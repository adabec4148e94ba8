/* The mixed-input GEMM kernels for prepacked MXFP4, K in two parts. */
#include "cuda/sm90/mainloop/mixed_input.cuh"
#include "cuda/sm90/mainloop/mixed_input_rows.cuh"

#define MXFP4(...) MIXED_INPUT_PARTS_KERNEL(mxfp4, __VA_ARGS__)
#define MXFP4_ROWS(...) MIXED_INPUT_ROWS_KERNEL(mxfp4, BSMI_K_PARTS, __VA_ARGS__)

BSMI_SM90_MIXED_INPUT_PARTS_IN_TURN(MXFP4)
BSMI_SM90_MIXED_INPUT_SPLIT_K(MXFP4_ROWS)
