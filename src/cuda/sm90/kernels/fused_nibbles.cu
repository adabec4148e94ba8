/* The GEMM kernels that decode e2m1. */
#include "cuda/sm90/mainloop/fused_dequantization.cuh"

#define MXFP4(...) FUSED_KERNEL(mxfp4, __VA_ARGS__)
#define NVFP4(...) FUSED_KERNEL(nvfp4, __VA_ARGS__)

BSMI_SM90_DECODING(MXFP4)
BSMI_SM90_DECODING(NVFP4)
