/* The GEMM kernels that decode NVFP4 in registers and divide K. */
#include "split.cuh"

#define NVFP4(...) SPLIT_KERNEL(nvfp4, __VA_ARGS__)

BSMI_SM90_SPLITS(NVFP4)
