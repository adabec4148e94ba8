/* The GEMM kernels that decode elements of a byte each. */
#include "cuda/sm90/mainloop/decoding.cuh"

#define BYTES(...) DECODING_KERNEL(bytes, __VA_ARGS__)

BSMI_SM90_DECODING_BYTES(BYTES)
BSMI_SM90_DECODING(BYTES)
