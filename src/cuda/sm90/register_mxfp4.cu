/* The GEMM kernels that decode MXFP4 in registers. */
#include "register.cuh"

#define MXFP4(...) REGISTER_KERNEL(mxfp4, __VA_ARGS__)

BSMI_SM90_REGISTERS(MXFP4)
