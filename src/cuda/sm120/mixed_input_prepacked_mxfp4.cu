/* The mixed-input GEMM kernels by mma.sync for prepacked MXFP4. */
#include "mixed_input.cuh"

#define MXFP4(...) MIXED_INPUT_BY_MMA_SYNC(mxfp4, __VA_ARGS__)
BSMI_SM120_MIXED_INPUT_PREPACKED(MXFP4)
