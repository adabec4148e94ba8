/* The GEMM kernels that decode a stream of 6 bits. */
#include "cuda/sm90/mainloop/decoding.cuh"

#define STREAM(...) DECODING_KERNEL(stream, __VA_ARGS__)

BSMI_SM90_STREAM(STREAM)
