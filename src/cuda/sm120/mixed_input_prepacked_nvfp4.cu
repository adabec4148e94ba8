/* The mixed-input GEMM kernels by mma.sync for prepacked NVFP4. */
#include "mixed_input.cuh"

#define NVFP4(...) MIXED_INPUT_BY_MMA_SYNC(nvfp4, __VA_ARGS__)
BSMI_SM120_MIXED_INPUT_PREPACKED(NVFP4)
