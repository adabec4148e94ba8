/* The mixed-input GEMM kernel for tensor memory, MXFP4. */
#include "mixed_input.cuh"

MIXED_INPUT_BY_TENSOR_MEMORY(mxfp4)
