/* The mixed-input GEMM kernels for prepacked NVFP4. */
#include "cuda/sm90/mainloop/mixed_input.cuh"
#include "cuda/sm90/mainloop/mixed_input_rows.cuh"

#define NVFP4(...) MIXED_INPUT_KERNEL(nvfp4, __VA_ARGS__)
#define NVFP4_ROWS(...) MIXED_INPUT_ROWS_KERNEL(nvfp4, 1, __VA_ARGS__)

BSMI_SM90_MIXED_INPUT_PREPACKED(NVFP4)
BSMI_SM90_MIXED_INPUT_ROWS(NVFP4_ROWS)
