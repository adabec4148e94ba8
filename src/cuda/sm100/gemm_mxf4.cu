/* The GEMM kernels for tensor memory that multiply e2m1 with a scale for 32. */
#include "gemm.cuh"

#define KERNEL(...) GEMM_KERNEL(mxf4, MMA_MXF4, __VA_ARGS__)
BSMI_SM100_GEMM_MXF4(KERNEL)
