/* The mixed-input GEMM kernels for prepacked MXFP4. */
#include "cuda/sm90/mainloop/mixed_input.cuh"
#include "cuda/sm90/mainloop/mixed_input_rows.cuh"

#define MXFP4(...) MIXED_INPUT_KERNEL(mxfp4, __VA_ARGS__)
#define MXFP4_ROWS(...) MIXED_INPUT_ROWS_KERNEL(mxfp4, 1, __VA_ARGS__)

BSMI_SM90_MIXED_INPUT_PREPACKED(MXFP4)
BSMI_SM90_MIXED_INPUT_ROWS(MXFP4_ROWS)
