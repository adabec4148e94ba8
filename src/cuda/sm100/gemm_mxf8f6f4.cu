/* The GEMM kernels for tensor memory that multiply elements of 4, 6 and 8 bits with a scale for 32. */
#include "gemm.cuh"

#define KERNEL(...) GEMM_KERNEL(mxf8f6f4, MMA_MXF8F6F4, __VA_ARGS__)
BSMI_SM100_GEMM_MXF8F6F4(KERNEL)
