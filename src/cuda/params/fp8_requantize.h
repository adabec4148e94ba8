/* What host and kernels of BSM_COMPUTE_FAST agree on, as kernels.h does for the others. */
#ifndef BSMI_FAST_PARAMETERS_H
#define BSMI_FAST_PARAMETERS_H

#include "kernels.h"

/* Columns of K whose products are summed by tensor cores before fp32 takes over; rows of codes are multiples of it
 * long. */
enum { BSMI_FAST_COLUMNS = 256 };

/* Kernel bsmi_requantize_fp8, of two operands with blocks of 32 and e8m0 scales.  Writes rows of e4m3 codes, zeros from
 * source.columns to row_bytes, and exponents of rows: the number that a code stands for is code * 2^exponent of its
 * row, with the rounding that include/blockscale/matmul.h states.
 * Any grid of BSMI_REQUANTIZE_FP8_THREADS threads a CTA: warps stride over BSMI_REQUANTIZE_FP8_ROWS rows each, those of
 * the first operand before the second's. */
enum { BSMI_REQUANTIZE_FP8_THREADS = 128, BSMI_REQUANTIZE_FP8_ROWS = 8 };
struct bsmi_requantize_fp8_operand {
    struct bsmi_device_matrix source;
    unsigned char *codes;                 /* aligned to 128 bytes */
    int64_t row_bytes, batch_bytes;       /* multiples of 128; row_bytes at least source.columns */
    int32_t *exponents;                   /* [batch * rows] */
};
struct bsmi_requantize_fp8_parameters { struct bsmi_requantize_fp8_operand operands[2]; };

#endif
