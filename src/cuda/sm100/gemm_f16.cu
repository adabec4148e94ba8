/* The GEMM kernels for tensor memory that multiply bf16 rows. */
#include "gemm.cuh"

#define KERNEL(...) GEMM_KERNEL(f16, MMA_F16, __VA_ARGS__)
BSMI_SM100_GEMM_F16(KERNEL)
