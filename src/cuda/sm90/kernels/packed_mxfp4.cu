/* The GEMM kernels that read panels of MXFP4. */
#include "cuda/sm90/mainloop/packed.cuh"

#define MXFP4(...) PACKED_KERNEL(mxfp4, __VA_ARGS__)

BSMI_SM90_PACKED(MXFP4)
