/* The GEMM kernels that decode elements of a byte each. */
#include "cuda/sm90/mainloop/fused_dequantization.cuh"

#define BYTES(...) FUSED_KERNEL(bytes, __VA_ARGS__)

BSMI_SM90_DECODING_BYTES(BYTES)
BSMI_SM90_DECODING(BYTES)
