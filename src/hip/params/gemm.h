/* What host and GEMM kernels of gfx950 agree on: the kernels' one parameter, passed by value, and the table of
 * instances.  Plain C11 for the host, C17 for the device (clang, -target amdgcn-amd-amdhsa); no type of HIP.
 *
 * Enumerations of the public headers travel as int32_t.  All pointers are device pointers.  Pitches of bytes end in
 * _bytes; all others count elements. */
#ifndef BSMI_HIP_GEMM_PARAMETERS_H
#define BSMI_HIP_GEMM_PARAMETERS_H

#include <stdint.h>

/* Elements as the fields cbsz and blgp of v_mfma_scale_f32_*_f8f6f4 have them. */
enum bsmi_hip_element { BSMI_HIP_E4M3, BSMI_HIP_E5M2, BSMI_HIP_E2M3, BSMI_HIP_E3M2, BSMI_HIP_E2M1 };

/* A or B: rows of codes, contiguous along K: 4 bits low nibble first, 6 bits as a stream of bits, 8 bits a byte each;
 * or rows of bf16.  Where the caller's rows are otherwise, the host repacks them first.
 *
 * Scales lie in lane order: BSM_LAYOUT_CDNA4_16 (BSM_LAYOUT_AITER is the same in bytes) for instances of non-K
 * dimension 16, BSM_LAYOUT_CDNA4_32 for those of 32.  Both have 256 bytes for 32 rows and 8 scales along K, all of K
 * before the next 32 rows.  Padding may hold anything, NaN too. */
struct bsmi_hip_gemm_operand {
    const unsigned char *codes;           /* aligned to 16 bytes */
    const unsigned char *scales;          /* aligned to 16 bytes; bf16: not read */
    int64_t batch_bytes, scale_batch_bytes;     /* between matrices; 0: one for all */
    int64_t row_bytes;                    /* between rows: a multiple of 16, less than 2^22 */
    int64_t scale_row_bytes;              /* between groups of 32 rows: at least 256 * ceil(ceil(k / 32) / 8), less than
                                             2^26 */
};

/* S to D, the formulas of include/blockscale/matmul.h as far as they go here: t = f S + beta C + bias, relu; then t
 * rounded once to D, or blocks of 32 by a scale of e8m0 and v_cvt_scalef32.  NaN is stored as 0x7fc00000 (fp32),
 * 0x7fff... of the narrow types as the CPU has it.  All else (gates, other activations, other formats of D, tensor
 * scales of D, rows of bf16 with exponents) takes S from memory: direct 0. */
struct bsmi_hip_gemm_finish {
    unsigned char *d;                     /* row (matrix, i) at d + matrix * d_batch_bytes + i * d_row_bytes; grouped:
                                             i is the row of A, and the matrix does not count */
    int64_t d_row_bytes, d_batch_bytes;
    int32_t d_element;                    /* BSM_FP32, BSM_BF16, BSM_FP16, any alignment of numbers; with d_scales one
                                             of e4m3, e5m2, e2m3, e3m2, e2m1; direct 0: BSM_FP32 */
    int32_t direct;                       /* 0: d gets S, and of what is below only a_nans and b_nans are read */
    const float *factor;                  /* f: alpha with tensor scales, rounded to fp32; NULL: 1 */
    const float *beta;                    /* NULL: 0; C is read only where *beta is not 0 */
    const unsigned char *c;               /* NULL: none; addressed as D is */
    int64_t c_row_bytes, c_batch_bytes;
    const unsigned char *bias;            /* NULL: none */
    int64_t bias_batch_pitch;             /* elements; grouped and per row: not counted */
    int32_t factor_per;                   /* bsm_per: tensor, row, column or batch */
    int32_t c_element, bias_element;      /* BSM_FP32, BSM_BF16, BSM_FP16 */
    int32_t bias_per;                     /* bsm_per: row or column */
    int32_t relu;                         /* 1: relu */
    uint32_t *amax;                       /* NULL, or raised to the largest |t| as bits, NaN as 0x7fc00000 */

    /* Quantized D: n is a multiple of 32; d, d_row_bytes and d_batch_bytes of 16 (6 bits: of 8).  Codes lie as those
     * of operands.  A scale's code is the exponent of the bits of a block's largest magnitude and d_scale_addend, less
     * d_scale_exponent, which is every recipe of e8m0; a block with infinity or NaN has scale 255 and codes of 0. */
    unsigned char *d_scales;              /* NULL: D is not quantized */
    int64_t d_scale_batch_bytes;
    int64_t d_scale_row_bytes;            /* linear: between rows; in lane order (BSM_LAYOUT_CDNA4_16): between 32 */
    int32_t d_scales_in_lane_order;
    int32_t d_scale_addend, d_scale_exponent;
    float d_largest;                      /* that the element holds */

    /* Scaled instances: a bit for each row of A and of B, as bsmi_nan_scales_gfx950 writes them: 1 makes the row
     * (column) of D NaN, direct or not, whatever the hardware makes of scale byte 255.  NULL: none. */
    const uint32_t *a_nans, *b_nans;
    int64_t a_nan_words, b_nan_words;     /* between matrices */
};

/* The grid has one dimension, a workgroup a tile, and may be larger than there are tiles.  Workgroup i runs on XCD
 * i % 8: an XCD gets tiles that follow each other, so that they share rows and columns in its L2. */
struct bsmi_hip_gemm_parameters {
    struct bsmi_hip_gemm_operand a, b;
    int64_t m, n;                         /* of D (grouped: m is not read): less than 2^31 - 256 */
    int64_t k;                            /* elements, at least 1; rows of an operand: less than 2^22 bytes */
    int64_t row_tiles, column_tiles;      /* of one matrix; grouped: column_tiles alone */
    int64_t tiles;                        /* all of them: matrices * row_tiles * column_tiles; grouped: not read */
    int32_t matrices;                     /* batch, or groups */
    int32_t band_rows;                    /* tiles of a column that follow each other before the next column: at least
                                             1 */
    /* Grouped: group g has rows group_starts[g] .. group_starts[g + 1] of A and D, and matrix g of B.  Its tiles begin
     * at its first row rounded down to a multiple of 32, since 32 rows share a group of scales; rows of others are not
     * stored.  group_tiles[g] is the number of its first tile, [matrices + 1]:
     *     ceil((group_starts[g + 1] - group_starts[g] / 32 * 32) / rows) * column_tiles of each group that has rows. */
    const int64_t *group_starts, *group_tiles;  /* NULL: not grouped */
    struct bsmi_hip_gemm_finish finish;
};

/* Kernel bsmi_nan_scales_gfx950: which rows have a NaN among their scales, which lie in lane order.  A wave for each 32
 * rows of a matrix: ceil(groups * matrices / 4) workgroups of BSMI_NAN_SCALES_THREADS threads. */
enum { BSMI_NAN_SCALES_THREADS = 256 };
struct bsmi_hip_nan_scales_parameters {
    const unsigned char *scales;
    int64_t scale_row_bytes, scale_batch_bytes;
    int64_t columns;                      /* scales of a row */
    int32_t groups, matrices;             /* groups of 32 rows in a matrix */
    int32_t dim;                          /* 16 or 32: of the instance that reads them */
    uint32_t *nans;                       /* [matrices][groups]: a bit a row; bits of rows behind the last are any */
};

/* The instances: each for every pair of elements of A and B, unless said otherwise.  The kernel is
 * bsmi_gemm_gfx950_A_B_TILE, as bsmi_gemm_gfx950_e4m3_e2m1_256x256, in a code object of its own, gemm_A_B_TILE; with
 * bf16 rows it is bsmi_gemm_gfx950_bf16_TILE in gemm_bf16_TILE.
 *
 *   rows, columns    of D, a workgroup's
 *   along_m, along_n waves of 64 lanes that share them
 *   dim              non-K dimension of the MFMA: it decides how scales lie
 *
 *     tile         rows columns along_m along_n dim */
#define BSMI_HIP_GEMM_SCALED(X) \
    X(256x256,     256, 256, 2, 2, 16) \
    X(256x256_32,  256, 256, 2, 2, 32) \
    X(128x128,     128, 128, 2, 2, 16) \
    X(32x128,       32, 128, 1, 4, 16)
#define BSMI_HIP_GEMM_BF16(X) \
    X(256x256,     256, 256, 2, 2, 16) \
    X(128x128,     128, 128, 2, 2, 16) \
    X(32x128,       32, 128, 1, 4, 16)

/* B prepacked: bsmi_gemm_gfx950_A_B_TILE in gemm_A_B_TILE, for the pairs of the second table.  codes and scales of b
 * are what bsmi_pack_b wrote, row_bytes is BSMI_HIP_PACKED_ROW_BYTES, between 16 rows, and scale_row_bytes
 * BSMI_HIP_PACKED_SCALE_BYTES.  The same sums as all instances of dimension 16.
 *
 *     tile                  rows columns along_m along_n dim */
#define BSMI_HIP_GEMM_PREPACKED(X) \
    X(256x256_prepacked,    256, 256, 2, 2, 16) \
    X(32x128_prepacked,      32, 128, 1, 4, 16)
#define BSMI_HIP_GEMM_PREPACKED_PAIRS(X) \
    X(E4M3, E4M3) \
    X(E2M3, E2M3) \
    X(E4M3, E2M1) \
    X(E5M2, E2M1) \
    X(E2M3, E2M1) \
    X(E3M2, E2M1) \
    X(E2M1, E2M1)

/* Prepacked weights: of each 16 rows all of K, 128 columns at a time, as the 64 lanes of an MFMA want them: lane l has
 * row l % 16.  8 bits: 16 bytes of each lane (columns 16 (l / 16) ..), then 16 that lie 64 columns behind; 6 bits: 16
 * bytes of each lane (from column 32 (l / 16) on), then the 8 that follow; 4 bits: 16 bytes.  K is filled up with zeros
 * to a multiple of 256, rows to a multiple of 16.  Scales: as BSM_LAYOUT_CDNA4_16, padding 0. */
enum { BSMI_HIP_PACKED_ROWS = 16 };
#define BSMI_HIP_PACKED_ROW_BYTES(k, bits) (((k) + 255) / 256 * 512 * (bits))
#define BSMI_HIP_PACKED_SCALE_BYTES(k) (((k) + 255) / 256 * 256)

#define BSMI_HIP_GEMM_THREADS(along_m, along_n) (64 * (along_m) * (along_n))

#endif
