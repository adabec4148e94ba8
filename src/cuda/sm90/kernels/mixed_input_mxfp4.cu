/* The mixed-input GEMM kernels for MXFP4 as it is stored. */
#include "cuda/sm90/mainloop/mixed_input.cuh"

#define MXFP4(...) MIXED_INPUT_KERNEL(mxfp4, __VA_ARGS__)

BSMI_SM90_MIXED_INPUT_AS_STORED(MXFP4)
BSMI_SM90_MIXED_INPUT_SCALES_128X4(MXFP4)
