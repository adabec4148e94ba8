/* The GEMM kernels with large tiles. */
#include "cuda/sm90/mainloop/gemm.cuh"
#include "gemm_instances.h"

BSMI_SM90_GEMM_LARGE(GEMM_KERNEL)
