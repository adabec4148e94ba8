/* The GEMM kernels with small tiles, for few rows. */
#include "gemm.cuh"
#include "gemm_instances.h"

BSMI_SM90_GEMM_SMALL(GEMM_KERNEL)
