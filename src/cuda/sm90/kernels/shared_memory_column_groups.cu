/* The shared-memory main loop for bf16 rows, with groups along K. */
#include "cuda/sm90/mainloop/column_groups.cuh"
#include "cuda/sm90/operand/bf16.cuh"

#define BF16(tile, ...) COLUMN_GROUPS_KERNEL(operand_bf16, column_groups_##tile, __VA_ARGS__)

BSMI_SM90_GEMM_COLUMN_GROUPS(BF16)
