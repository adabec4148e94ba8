/* The shared-memory main loop for bf16 rows, with large tiles. */
#include "cuda/sm90/mainloop/shared_memory.cuh"
#include "cuda/sm90/operand/bf16.cuh"

#define BF16(tile, ...) SHARED_MEMORY_KERNEL(operand_bf16, tile, __VA_ARGS__)

BSMI_SM90_GEMM_LARGE(BF16)
