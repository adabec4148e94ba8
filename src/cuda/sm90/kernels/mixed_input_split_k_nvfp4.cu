/* The mixed-input GEMM kernels for prepacked NVFP4, K in two parts. */
#include "cuda/sm90/mainloop/mixed_input.cuh"
#include "cuda/sm90/mainloop/mixed_input_rows.cuh"

#define NVFP4(...) MIXED_INPUT_PARTS_KERNEL(nvfp4, __VA_ARGS__)
#define NVFP4_ROWS(...) MIXED_INPUT_ROWS_KERNEL(nvfp4, BSMI_K_PARTS, __VA_ARGS__)

BSMI_SM90_MIXED_INPUT_PARTS_IN_TURN(NVFP4)
BSMI_SM90_MIXED_INPUT_SPLIT_K(NVFP4_ROWS)
