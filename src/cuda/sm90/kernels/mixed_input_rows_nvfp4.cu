/* The mixed-input GEMM kernels for rows of prepacked NVFP4. */
#include "cuda/sm90/mainloop/mixed_input_rows.cuh"

#define NVFP4(...) MIXED_INPUT_ROWS_KERNEL(nvfp4, __VA_ARGS__)

BSMI_SM90_MIXED_INPUT_ROWS(NVFP4)
