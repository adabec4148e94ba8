/* The GEMM kernels that decode NVFP4 in registers. */
#include "register.cuh"

#define NVFP4(...) REGISTER_KERNEL(nvfp4, __VA_ARGS__)

BSMI_SM90_REGISTERS(NVFP4)
