/* The GEMM kernels that decode a stream of 6 bits. */
#include "cuda/sm90/mainloop/fused_dequantization.cuh"

#define STREAM(...) FUSED_KERNEL(stream, __VA_ARGS__)

BSMI_SM90_STREAM(STREAM)
