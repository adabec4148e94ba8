/* What host and kernels of BSM_COMPUTE_FAST agree on, as kernel_parameters.h does for the others. */
#ifndef BSMI_FAST_PARAMETERS_H
#define BSMI_FAST_PARAMETERS_H

#include "kernel_parameters.h"

/* A power of two for each row and each group of BSMI_FOLD_COLUMNS columns: that of (matrix, group, row) at
 * factors + (matrix * groups + group) * rows + row, aligned to 16 bytes; what lies behind the operand's own rows counts for nothing. */
enum { BSMI_FOLD_COLUMNS = 128 };
struct bsmi_fold_factors {
    float *factors;
    int64_t rows;                         /* a multiple of 16 */
    int32_t groups;
};

/* Kernel bsmi_refold, of two operands with blocks of 32 and e8m0 scales.  Writes rows of e4m3 codes, zeros from source.columns to a multiple
 * of BSMI_FOLD_COLUMNS, and their factors: the number that a code stands for is code * factor * 2^exponent of its row, with the rounding that
 * include/blockscale/matmul.h states.
 * Any grid of BSMI_REFOLD_THREADS threads a CTA: warps stride over BSMI_REFOLD_ROWS rows each, those of the first operand before the second's. */
enum { BSMI_REFOLD_THREADS = 128, BSMI_REFOLD_ROWS = 8 };
struct bsmi_refold_operand {
    struct bsmi_device_matrix source;
    unsigned char *codes;                 /* aligned to 128 bytes */
    int64_t row_bytes, batch_bytes;       /* multiples of 128 */
    struct bsmi_fold_factors factors;
    int32_t permuted;                     /* factors of 16 rows lie as a thread of wgmma has columns: 0, 1, 8, 9, then 2, 3, 10, 11 .. */
    int32_t *exponents;                   /* [batch * rows] */
};
struct bsmi_refold_parameters { struct bsmi_refold_operand operands[2]; };

/* The GEMM kernels: maps of refolded codes, box (BSMI_FOLD_COLUMNS, rows of the instance, 1), and their factors, which reach as far as tiles
 * do; B's are permuted.  Grouped: row_alignment is a multiple of 4.  Segments are not looked at. */
struct bsmi_fast_parameters {
    struct bsmi_gemm_parameters gemm;     /* first: a GEMM kernel's parameters, for those who launch it */
    struct bsmi_fold_factors a_factors, b_factors;
};

#endif
