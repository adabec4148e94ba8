/* The GEMM kernels that decode MXFP4 in registers and divide K. */
#include "split.cuh"

#define MXFP4(...) SPLIT_KERNEL(mxfp4, __VA_ARGS__)

BSMI_SM90_SPLITS(MXFP4)
