/* The GEMM kernels that read panels of NVFP4. */
#include "cuda/sm90/mainloop/packed.cuh"

#define NVFP4(...) PACKED_KERNEL(nvfp4, __VA_ARGS__)

BSMI_SM90_PACKED(NVFP4)
