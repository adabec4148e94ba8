/* The GEMM kernels that decode MXFP4 in registers. */
#include "cuda/sm90/mainloop/register.cuh"
#include "cuda/sm90/mainloop/turn.cuh"

#define MXFP4(...) REGISTER_KERNEL(mxfp4, __VA_ARGS__)
#define MXFP4_TURNS(...) TURN_KERNEL(mxfp4, __VA_ARGS__)

BSMI_SM90_REGISTERS(MXFP4)
BSMI_SM90_TURNS(MXFP4_TURNS)
