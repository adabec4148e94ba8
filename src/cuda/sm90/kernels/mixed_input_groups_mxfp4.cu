/* The mixed-input GEMM kernels for groups of rows of A, prepacked MXFP4. */
#include "cuda/sm90/mainloop/mixed_input_groups.cuh"

#define MXFP4(...) MIXED_INPUT_GROUPS_KERNEL(mxfp4, __VA_ARGS__)

BSMI_SM90_MIXED_INPUT_GROUPS(MXFP4)
