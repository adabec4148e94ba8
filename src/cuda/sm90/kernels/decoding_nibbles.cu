/* The GEMM kernels that decode e2m1. */
#include "cuda/sm90/mainloop/fused_dequantization.cuh"
#include "cuda/sm90/mainloop/decoding_wide.cuh"

#define MXFP4(...) FUSED_KERNEL(mxfp4, __VA_ARGS__)
#define WIDE_MXFP4(...) WIDE_DECODING_KERNEL(mxfp4, __VA_ARGS__)
#define NVFP4(...) FUSED_KERNEL(nvfp4, __VA_ARGS__)
#define WIDE_NVFP4(...) WIDE_DECODING_KERNEL(nvfp4, __VA_ARGS__)

BSMI_SM90_DECODING(MXFP4)
BSMI_SM90_DECODING(NVFP4)
BSMI_SM90_WIDE_DECODING(WIDE_MXFP4)
BSMI_SM90_WIDE_DECODING(WIDE_NVFP4)
