/* The GEMM kernels that decode elements of a byte each. */
#include "decoding.cuh"

#define BYTES(...) DECODING_KERNEL(bytes, __VA_ARGS__)

BSMI_SM90_DECODING_BYTES(BYTES)
BSMI_SM90_DECODING(BYTES)
