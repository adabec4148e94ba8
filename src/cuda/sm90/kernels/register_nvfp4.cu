/* The GEMM kernels that decode NVFP4 in registers. */
#include "cuda/sm90/mainloop/register.cuh"
#include "cuda/sm90/mainloop/turn.cuh"

#define NVFP4(...) REGISTER_KERNEL(nvfp4, __VA_ARGS__)
#define NVFP4_TURNS(...) TURN_KERNEL(nvfp4, __VA_ARGS__)

BSMI_SM90_REGISTERS(NVFP4)
BSMI_SM90_TURNS(NVFP4_TURNS)
