/* The shared-memory main loop for bf16 rows, some of which it decodes itself. */
#include "cuda/sm90/mainloop/late_rows.cuh"

#define LATE_ROWS(tile, ...) LATE_ROWS_KERNEL(operand_late_rows, late_rows_##tile, __VA_ARGS__)

BSMI_SM90_GEMM_LATE_ROWS(LATE_ROWS)
