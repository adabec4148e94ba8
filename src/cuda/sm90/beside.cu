/* The GEMM kernels that decode MXFP4 and NVFP4 beside the products. */
#include "beside.cuh"

#define MXFP4(...) BESIDE_KERNEL(mxfp4, __VA_ARGS__)
#define NVFP4(...) BESIDE_KERNEL(nvfp4, __VA_ARGS__)

BSMI_SM90_BESIDE(MXFP4)
BSMI_SM90_BESIDE(NVFP4)
