/* Parameters of products of integers, in the manner of kernels.h: of the kernel that makes integers, and of
 * those that work, or do not, by what it has found. */
#ifndef BSMI_INT8_PARAMETERS_H
#define BSMI_INT8_PARAMETERS_H

#include "kernels.h"

/* flags NULL: the kernel works.  Else it works if any of `count` flags is set and `wanted` is not 0, or none is and it
 * is 0; if it does not, it ends at once. */
struct bsmi_condition { const uint32_t *flags; int32_t count, wanted; };

/* Kernel bsmi_int8_rows, of both operands of a product of MXFP4.  Writes, for every row whose numbers int8_rows.cu
 * finds to fit, integers of 8 bits whose number times 2^exponent is the row's exact value (tensor scale not included),
 * and zeros up to padded_columns.  Sums of products of two such rows are at most 2^24 in magnitude.  A CTA that meets a
 * row that does not fit says so, and need not write its rows. Any grid of at most BSMI_MOST_UNFIT_FLAGS CTAs: the first
 * first_ctas stride over rows of the first operand, the others, at least one, over the second one's. */
enum { BSMI_INT8_ROWS_THREADS = 256, BSMI_MOST_UNFIT_FLAGS = 2048, BSMI_MOST_INT8_COLUMNS = 1 << 20 };
struct bsmi_int8_rows_operand {
    struct bsmi_device_matrix source;     /* e2m1, an e8m0 scale for 32; nibbles low or high first; columns a multiple
                                             of 32, at most
                                             BSMI_MOST_INT8_COLUMNS; data, row_bytes and batch_bytes multiples of
                                             8 */
    unsigned char *integers;              /* aligned to 128 bytes */
    int64_t pitch, batch_pitch;           /* multiples of 128 */
    int64_t padded_columns;               /* columns rounded up to 128 */
    int32_t *exponents;                   /* [batch * rows] */
};
struct bsmi_int8_rows_parameters {
    struct bsmi_int8_rows_operand operands[2];
    int32_t first_ctas;
    uint32_t *unfit;                      /* [CTAs]: 1 where a row does not fit, else 0 */
};

/* Columns of integers in a step of K of the GEMM kernels for them; their tensor maps have numbers of 16 bits, two
 * integers each. */
enum { BSMI_INT8_K_STEP = 128 };

/* Kernel bsmi_decode.  Where its condition does not hold it says that no row is a fallback row, and writes nothing
 * else. */
struct bsmi_conditional_decode_parameters { struct bsmi_decode_parameters decode; struct bsmi_condition condition; };

#endif
