/* The GEMM kernels with small tiles, for few rows. */
#include "cuda/sm90/mainloop/gemm.cuh"
#include "gemm_instances.h"

BSMI_SM90_GEMM_SMALL(GEMM_KERNEL)
