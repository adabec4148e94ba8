/* The parameters of the kernels that are no GEMMs, beside those that all backends have (device/parameters.h): one
 * struct each, a kernel's only parameter.  Every kernel takes any grid: its threads, or its workgroups, stride over the
 * work. */
#ifndef BSMI_HIP_KERNEL_PARAMETERS_H
#define BSMI_HIP_KERNEL_PARAMETERS_H

#include "device/parameters.h"
#include "quantize/block/clamp.h"

enum { BSMI_HIP_THREADS = 256 };          /* of a workgroup, of every kernel here */

/* The columns of A and B that a group along K has. */
struct bsmi_hip_column_group { int64_t first, columns; };

/* Kernel bsmi_sums: S by one thread an element, in the order of sums of the CPU's kernels and with their bits.
 * only_fallback: the rows and columns whose exponents in the epilogue are BSMI_ROW_FALLBACK alone. */
enum { BSMI_HIP_SUMS_ROWS = 16, BSMI_HIP_SUMS_COLUMNS = 16 };
struct bsmi_hip_sums_parameters {
    struct bsmi_device_matrix a, b;
    int64_t k;
    int32_t a_batch_step, b_batch_step, only_fallback;
    int64_t tiles;                        /* of all matrices; grouped: at most */
    const struct bsmi_hip_column_group *column_groups;    /* of each matrix of D; NULL: all have all of K */
    struct bsmi_epilogue_parameters epilogue;
};

/* Kernel bsmi_finish: the epilogue, S in memory to D, everything the contract has.  Writes every element of D and its
 * scales; padding of scales is written by bsmi_clear_padding. */
struct bsmi_hip_finish_parameters { struct bsmi_epilogue_parameters epilogue; };

/* Kernel bsmi_group_tables: where each group begins, and with which tile of the GEMM kernel, as params/gemm.h has it.
 * Rows are kept within 0 .. m. */
struct bsmi_hip_group_tables_parameters {
    const int64_t *group_rows;
    int64_t groups, m, tile_rows, column_tiles;
    int64_t *group_starts, *group_tiles;  /* groups + 1 each */
};

/* Kernel bsmi_column_tables: the same of groups along K, which begin at multiples of `unit` and keep within 0 .. k. */
struct bsmi_hip_column_tables_parameters {
    const int64_t *group_columns;
    int64_t groups, k, unit;
    struct bsmi_hip_column_group *table;
};

/* Kernel bsmi_quantize: blocks, and squares of them that share a scale, by any recipe; matrices without block scales,
 * too.  The bits of bsm_quantize.  Kernel bsmi_tensor_scale, one thread: what bsmi_amax has left at `computed` becomes
 * the tensor scale. */
struct bsmi_hip_quantize_parameters {
    struct bsmi_quantize_parameters all;
    struct bsmi_clamp clamp;
    int32_t smallest_scale, block_rows;   /* block_rows: rows that share a scale, 1 or the block's length */
};

/* Kernel bsmi_decode: rows of bf16 and their exponents (kernels/decode.c says which), of e8m0 formats with rows that
 * bf16 does not hold as BSMI_ROW_FALLBACK and zeros.  An fp16 number is the sum of two terms.  A row has `stretches`
 * stretches side by side, padded_columns each, zeros behind source.columns: stretch s has term s / repeat % terms of
 * every number, so that those of A and of B, one behind the other, have every pair of terms once. */
struct bsmi_hip_decode_parameters {
    struct bsmi_device_matrix source;
    uint16_t *decoded;                    /* aligned to 16 bytes */
    int64_t row_pitch, batch_pitch, padded_columns;       /* numbers, even */
    int32_t stretches, repeat;
    int32_t only_exponent_zero;           /* the other operand is bf16, with numbers of any size */
    int32_t *exponents;                   /* [batch * rows]; NULL: all are 0 */
};

/* Kernel bsmi_pack_b: prepacked weights (params/gemm.h), a matrix of them behind another, of elements of 4, 6 or 8 bits
 * with scales of e8m0 for 32 of them, or without. */
struct bsmi_hip_pack_b_parameters {
    struct bsmi_device_matrix source;
    unsigned char *codes, *scales;        /* aligned to 16 bytes */
};

/* Kernel bsmi_factors: f of the epilogue, alpha with tensor scales, one for each alpha. */
struct bsmi_hip_factors_parameters {
    struct bsmi_epilogue_parameters epilogue;
    int64_t count;
    float *factors;
};

/* Kernel bsmi_repack: codes of every row one behind another from the lowest bit on, zeros up to padded_columns. */
struct bsmi_hip_repack_parameters {
    struct bsmi_device_matrix source;
    unsigned char *to;
    int64_t row_bytes, batch_bytes, padded_columns;       /* padded_columns: a multiple of 8 */
};

#endif
