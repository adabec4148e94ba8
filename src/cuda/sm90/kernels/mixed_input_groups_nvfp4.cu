/* The mixed-input GEMM kernels for groups of rows of A, prepacked NVFP4. */
#include "cuda/sm90/mainloop/mixed_input_groups.cuh"

#define NVFP4(...) MIXED_INPUT_GROUPS_KERNEL(nvfp4, __VA_ARGS__)

BSMI_SM90_MIXED_INPUT_GROUPS(NVFP4)
