/* The GEMM kernels that decode e2m1. */
#include "decoding.cuh"

#define MXFP4(...) DECODING_KERNEL(mxfp4, __VA_ARGS__)
#define NVFP4(...) DECODING_KERNEL(nvfp4, __VA_ARGS__)

BSMI_SM90_DECODING(MXFP4)
BSMI_SM90_DECODING(NVFP4)
