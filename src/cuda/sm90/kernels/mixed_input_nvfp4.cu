/* The mixed-input GEMM kernels for NVFP4 as it is stored. */
#include "cuda/sm90/mainloop/mixed_input.cuh"

#define NVFP4(...) MIXED_INPUT_KERNEL(nvfp4, __VA_ARGS__)

BSMI_SM90_MIXED_INPUT_AS_STORED(NVFP4)
BSMI_SM90_MIXED_INPUT_SCALES_128X4(NVFP4)
