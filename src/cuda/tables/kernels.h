/* The table of kernels that are no GEMMs: which kernel file holds each, and what it is launched with. */
#ifndef BSMI_CUDA_KERNELS_H
#define BSMI_CUDA_KERNELS_H

#include "cuda/params/column_groups.h"
#include "cuda/params/fp8_requantize.h"
#include "cuda/params/int8.h"
#include "cuda/params/late_rows.h"
#include "cuda/params/plain.h"
#include "cuda/params/policies.h"
#include "cuda/params/row_and_column.h"

#include <stdint.h>

/* Kernels with a grid of any size: their CTAs stride over the work.  All wait by griddepcontrol.wait, so that they may
 * be launched before the kernel of their call in front of them has ended.  most: CTAs on an SM, at most:
 * enough to hide latency, few enough to begin seldom; measured (docs/design/memory-bound.md).  0: as many as the launch
 * asks for, which knows better.
 *    id              function                          file                          threads                     most
 */
#define BSMI_CUDA_KERNELS(X) \
    X(SUMS, "bsmi_sums", "simt/sums", BSMI_SUMS_THREADS, 8) \
    X(GROUP_TABLES, "bsmi_group_tables", "simt/sums", BSMI_GROUP_TABLES_THREADS, 8) \
    X(DECODE, "bsmi_decode", "dequantize/decode", BSMI_DECODE_THREADS, 0) \
    X(DECODE_PLAIN, "bsmi_decode_plain", "dequantize/decode_plain", BSMI_DECODE_PLAIN_THREADS, 0) \
    X(DECODE_EARLY, "bsmi_decode_early", "dequantize/decode_early", BSMI_DECODE_PLAIN_THREADS, 0) \
    X(COLUMN_TABLES, "bsmi_column_tables", "dequantize/decode_columns", BSMI_COLUMN_TABLES_THREADS, 8) \
    X(DECODE_COLUMNS, "bsmi_decode_columns", "dequantize/decode_columns", BSMI_DECODE_COLUMNS_THREADS, 0) \
    X(FINISH, "bsmi_finish", "epilogue/finish", BSMI_FINISH_THREADS, 8) \
    X(QUANTIZE, "bsmi_quantize", "quantize/quantize", BSMI_QUANTIZE_THREADS, 0) \
    X(ROW_AND_COLUMN, "bsmi_quantize_row_and_column", "quantize/row_and_column", BSMI_ROW_AND_COLUMN_THREADS, 4) \
    X(ROW_AND_COLUMN_POWERS, "bsmi_quantize_row_and_column_powers", "quantize/row_and_column", \
      BSMI_ROW_AND_COLUMN_THREADS, 0) \
    X(ROW_AND_COLUMN_QUOTIENTS, "bsmi_quantize_row_and_column_quotients", "quantize/row_and_column", \
      BSMI_ROW_AND_COLUMN_THREADS, 0) \
    X(ORDER_SCALES, "bsmi_order_scales", "quantize/row_and_column", BSMI_ROW_AND_COLUMN_THREADS, 0) \
    X(POLICIES, "bsmi_quantize_policies", "quantize/policies", BSMI_POLICIES_THREADS, 8) \
    X(AMAX, "bsmi_amax", "quantize/quantize", BSMI_AMAX_THREADS, 5) \
    X(DEQUANTIZE, "bsmi_dequantize", "dequantize/dequantize", BSMI_DEQUANTIZE_THREADS, 8) \
    X(REPACK, "bsmi_repack", "scales/repack", BSMI_REPACK_THREADS, 8) \
    X(TRANSPOSE, "bsmi_transpose", "scales/transpose", BSMI_TRANSPOSE_THREADS, 8) \
    X(EXPAND, "bsmi_expand", "scales/expand", BSMI_EXPAND_THREADS, 8) \
    X(REQUANTIZE_FP8, "bsmi_requantize_fp8", "quantize/fp8_requantize", BSMI_REQUANTIZE_FP8_THREADS, 6) \
    X(CONVERT, "bsmi_convert_scales", "scales/scales", BSMI_CONVERT_THREADS, 16) \
    X(CLEAR_PADDING, "bsmi_clear_padding", "scales/scales", BSMI_CONVERT_THREADS, 8) \
    X(PREPACK, "bsmi_prepack", "sm90/kernels/prepack", BSMI_PREPACK_THREADS, 2) \
    X(UNPACK, "bsmi_unpack", "sm90/kernels/unpack", BSMI_UNPACK_THREADS, 12) \
    X(INT8_ROWS, "bsmi_int8_rows", "dequantize/int8_rows", BSMI_INT8_ROWS_THREADS, 4)

enum bsmi_cuda_kernel_id {
#define X(id, function, file, threads, most) BSMI_KERNEL_##id,
    BSMI_CUDA_KERNELS(X)
#undef X
    BSMI_KERNEL_COUNT
};

struct bsmi_cuda_kernel { const char *function, *file; int threads, most; };
extern const struct bsmi_cuda_kernel bsmi_cuda_kernels[BSMI_KERNEL_COUNT];

#endif
