/* Late rows: those of operands that warps of the GEMM kernel decode while others multiply what a kernel in front has
 * decoded.  See kernels.h. */
#ifndef BSMI_LATE_ROWS_PARAMETERS_H
#define BSMI_LATE_ROWS_PARAMETERS_H

#include "gemm.h"
#include "plain.h"

/* A job is what a warp decodes at one time: some rows, a power of two of them, of one panel.  A chunk is what it has
 * under way. */
enum { BSMI_LATE_PANEL_ROWS = 128, BSMI_LATE_CHUNK_COLUMNS = 1024 };

/* What it decodes: how codes lie (fast_path_octets.cuh), elements, scales. */
#define BSMI_LATE_PATHS(X) \
    X(FAST_NIBBLES, BSM_E2M1, BSM_E8M0) \
    X(FAST_NIBBLES, BSM_E2M1, BSM_UE4M3) \
    X(FAST_BYTES, BSM_E4M3, BSM_E8M0) \
    X(FAST_BYTES, BSM_E5M2, BSM_E8M0)

struct bsmi_late_rows {
    const unsigned char *codes, *scales;  /* of the first late row, as bsmi_plain_rows has them, scales linear */
    uint16_t *decoded;
    uint32_t *ready;                      /* of each panel, the late ones alone: jobs that are done */
    uint32_t *early;                      /* of each job: 1 if the kernel in front has decoded it, because it has
                                             exponents */
    int32_t first;                        /* late row, a multiple of a panel's; all rows, if none is late */
    int32_t jobs, job_rows, chunks;       /* of all late rows; of a job */
    int32_t panel_shift;                  /* jobs of a panel, as a power of two */
    int32_t element, scale;
};

/* Kernel bsmi_decode_early: bsmi_decode_plain for the rows that are not late, plain.rows[..].rows of them, and behind
 * them, for a job of each of its warps, what the late ones want: their exponents, and to be decoded at once where one
 * of them has an exponent.  All counts become 0. */
struct bsmi_decode_early_parameters {
    struct bsmi_decode_plain_parameters plain;
    struct bsmi_late_rows late[2];
    int32_t early_ctas[2], late_ctas;     /* of both operands; of the first one's late rows */
    uint32_t *counts;
    int32_t count;
};

/* Both operands in shared memory, bf16 rows, of which some are late. */
struct bsmi_late_rows_parameters {
    struct bsmi_shared_memory_parameters shared_memory;
    struct bsmi_late_rows late[2];
    uint32_t *taken;                      /* jobs that some warp has taken: B's, whose tiles come first, then A's */
};

#endif
