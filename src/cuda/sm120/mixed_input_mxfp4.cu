/* The mixed-input GEMM kernels by mma.sync for MXFP4 as it is stored. */
#include "mixed_input.cuh"

#define MXFP4(...) MIXED_INPUT_BY_MMA_SYNC(mxfp4, __VA_ARGS__)
BSMI_SM120_MIXED_INPUT_STORED(MXFP4)
