/* The GEMM kernels that decode a stream of 6 bits. */
#include "decoding.cuh"

#define STREAM(...) DECODING_KERNEL(stream, __VA_ARGS__)

BSMI_SM90_STREAM(STREAM)
