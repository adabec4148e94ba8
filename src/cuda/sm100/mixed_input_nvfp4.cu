/* The mixed-input GEMM kernel for tensor memory, NVFP4. */
#include "mixed_input.cuh"

MIXED_INPUT_BY_TENSOR_MEMORY(nvfp4)
