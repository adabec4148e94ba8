/* The int8 path: the shared-memory main loop for 8-bit integers, and for bf16 rows in its place where integers do not
 * serve.  Which of the two works, the device finds out. */
#include "cuda/sm90/mainloop/shared_memory.cuh"
#include "cuda/sm90/operand/bf16.cuh"
#include "cuda/sm90/operand/int8.cuh"

#define INT8(tile, ...) CONDITIONAL_SHARED_MEMORY_KERNEL(operand_int8, int8_##tile, __VA_ARGS__)
#define FALLBACK(tile, ...) CONDITIONAL_SHARED_MEMORY_KERNEL(operand_bf16, int8_fallback_##tile, __VA_ARGS__)

BSMI_SM90_GEMM_INTEGERS(INT8)
BSMI_SM90_GEMM_INTEGERS(FALLBACK)
