/* BSM_COMPUTE_FAST: the shared-memory main loop for requantized operands, whose rows have exponents that the epilogue
 * puts back.  The order of sums depends on K alone. */
#include "cuda/sm90/mainloop/shared_memory.cuh"
#include "cuda/sm90/operand/fp8_requantized.cuh"

#define FP8(tile, ...) SHARED_MEMORY_KERNEL(operand_fp8_requantized, fp8_requantized_##tile, __VA_ARGS__)

BSMI_SM90_FAST(FP8)
