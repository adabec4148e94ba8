/* The GEMM kernels that decode NVFP4 in registers. */
#include "register.cuh"
#include "turn.cuh"

#define NVFP4(...) REGISTER_KERNEL(nvfp4, __VA_ARGS__)
#define NVFP4_TURNS(...) TURN_KERNEL(nvfp4, __VA_ARGS__)

BSMI_SM90_REGISTERS(NVFP4)
BSMI_SM90_TURNS(NVFP4_TURNS)
