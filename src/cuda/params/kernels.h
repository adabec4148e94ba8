/* What host and kernels agree on: the parameters of every kernel, one struct each, passed by value as a kernel's only
 * parameter ("const __grid_constant__ struct bsmi_..._parameters p").  Plain C11 and CUDA C++; no type of the driver.
 * What the kernels of other backends have in common with these is in device/parameters.h, with how numbers travel.
 *
 * Kernels of one product follow each other in a stream and may be launched with programmatic stream serialization: each
 * waits by griddepcontrol.wait before it touches memory that one of them writes, most of them before any, and may say
 * griddepcontrol.launch_dependents when its CTAs need no more of the machine. */
#ifndef BSMI_KERNEL_PARAMETERS_H
#define BSMI_KERNEL_PARAMETERS_H

#include "device/parameters.h"

#ifdef __cplusplus
#define BSMI_ALIGNED(bytes) alignas(bytes)
#else
#define BSMI_ALIGNED(bytes) _Alignas(bytes)
#endif

/* A CUtensorMap. */
struct bsmi_tensor_map { BSMI_ALIGNED(64) unsigned char opaque[128]; };

/* Decoding an operand into rows of bf16 ---------------------------------------------------------------------------- */

/* Kernel bsmi_decode, of one operand or two.  Writes, for every row of every matrix of the source, `terms` stretches of
 * padded_columns bf16 numbers side by side, whose sum times 2^exponent is the row's exact value (tensor scale not
 * included); columns at and behind source.columns are zeros.  Terms: 1; for fp16 2, of the same sign, both zero or
 * neither: infinity times their sum needs no care. A row whose numbers span too much (decode.cu says how much) gets
 * BSMI_ROW_FALLBACK and zeros.  NaN scale or element: NaN in the row's bf16 numbers, which makes it no fallback row.
 * Only formats with e8m0 scales have exponents other than 0 and fallback rows. Row (batch, row) begins at
 * decoded + batch * batch_pitch + row * pitch. Any grid of BSMI_DECODE_THREADS threads a CTA: the first first_ctas CTAs
 * stride over rows of the first operand, those behind them, at least one if there is a second operand, over its rows.
 * The second operand may be one whose codes a GEMM kernel decodes itself: of it scales alone are brought, as
 * BSM_LAYOUT_128X4, padding finite.  Those with e8m0 get exponents and fallback rows by the same rules; a
 * scale is written less the exponent of its row, cut to 1 .. 254; NaN stays.  Rows of codes and their pitches are
 * multiples of 16 bytes. */
enum { BSMI_DECODE_THREADS = 256, BSMI_MOST_FALLBACK_FLAGS = 2048 };
struct bsmi_decode_operand {
    struct bsmi_device_matrix source;
    uint16_t *decoded;                    /* aligned to 128 bytes */
    int64_t pitch, batch_pitch;           /* multiples of 64 */
    int64_t padded_columns;               /* columns rounded up to 64 */
    int32_t only_exponent_zero;           /* the other operand is bf16 as the caller has it, with numbers of any size:
                                             rows that need
                                             another exponent are fallback rows */
    int32_t *exponents;                   /* [batch * rows]; may be NULL unless scales are e8m0 */
    uint32_t *fallback;                   /* [CTAs of the operand]: 1 where one of the CTA's rows is a fallback row,
                                             else 0;
                                             e8m0 only */
};
struct bsmi_row_scales_parameters {
    struct bsmi_device_matrix source;
    unsigned char *scales;                /* aligned to 16 bytes */
    int64_t band_bytes, batch_bytes;      /* of 128 rows, of a matrix */
    int32_t only_exponent_zero;           /* as above */
    int32_t *exponents;                   /* [batch * rows]; e8m0 only, like the rest */
    uint32_t *fallback;                   /* [CTAs of the operand] */
};
struct bsmi_decode_parameters {
    struct bsmi_decode_operand operands[2];
    struct bsmi_row_scales_parameters scales;
    int32_t first_ctas;                   /* all of the grid or more: there is no second operand */
    int32_t loads_scales;                /* the second operand is `scales`, not operands[1] */
};
enum { BSMI_ROW_SCALES_ROWS = 4 * BSMI_DECODE_THREADS / 32 };       /* that a CTA loads at one time */

/* Kernel bsmi_repack.  Copies the codes of every row, elements of at most 8 bits in any packing, one behind another
 * from the lowest bit on (4 bits: low nibble first; 6 bits: a stream), and zeros up to padded_columns.
 * Any grid of BSMI_REPACK_THREADS threads a CTA: threads stride over eight codes each. */
enum { BSMI_REPACK_THREADS = 256 };
struct bsmi_repack_parameters {
    struct bsmi_device_matrix source;
    unsigned char *to;                    /* aligned to 128 bytes */
    int64_t row_bytes, batch_bytes;       /* between rows and matrices of `to`: multiples of 16 */
    int64_t padded_columns;               /* a multiple of 8 */
};

/* Products --------------------------------------------------------------------------------------------------------- */

/* Kernel bsmi_prepack: prepacked weights (sm90/operand/prepacked_layout.h) of B, whose rows and pitches are multiples
 * of 16 bytes, low nibble first.  A row with a NaN scale becomes a fallback row, as do those of bsmi_decode.  A CTA of
 * BSMI_PREPACK_THREADS for 64 rows. */
enum { BSMI_PREPACK_THREADS = 256 };
struct bsmi_prepack_parameters {
    struct bsmi_device_matrix source;
    int32_t *exponents;                   /* [batch * rows] */
    unsigned char *prepacked;
    int64_t matrix_tiles, tile_slices;    /* tiles of 64 rows in a matrix, K slices of a tile */
    int32_t only_exponent_zero;           /* as for bsmi_decode */
};

/* Kernel bsmi_unpack: codes, low nibble first, and scales of prepacked weights, to `to`.  A fallback row gets NaN
 * scales; e8m0 scales of zeros that prepacked weights do not tell get code 0.  Padding is not written.  CTAs of
 * BSMI_UNPACK_THREADS stride over K slices of tiles. */
enum { BSMI_UNPACK_THREADS = 128 };
struct bsmi_unpack_parameters {
    struct bsmi_device_matrix to;
    const int32_t *exponents;             /* [batch * rows] */
    const unsigned char *prepacked;
    int64_t matrix_tiles, tile_slices;    /* as of bsmi_prepack */
};

/* Kernel bsmi_finish: the generic epilogue, S in memory to D, everything the contract has.
 * Any grid of BSMI_FINISH_THREADS threads a CTA: CTAs stride over pieces of rows.
 * Writes every element of D and its scales; padding of scales is written by bsmi_clear_padding. */
enum { BSMI_FINISH_THREADS = 256 };
struct bsmi_finish_parameters { struct bsmi_epilogue_parameters epilogue; };

/* Kernel bsmi_sums (simt/): S by one thread an element, in the order of sums of the CPU's kernels, from the operands as
 * they are. Any grid of BSMI_SUMS_THREADS.  only_fallback: computes only the fallback rows and columns,
 * by the exponents of the epilogue; every CTA returns at once when no flag is set. */
enum { BSMI_SUMS_THREADS = 256, BSMI_SUMS_ROWS = 16, BSMI_SUMS_COLUMNS = 16 };
struct bsmi_fallback { const uint32_t *flags; int32_t count; };     /* of an operand: what its decoder's CTAs have
                                                                       set */
struct bsmi_sums_parameters {
    struct bsmi_device_matrix a, b;
    int64_t k;
    int32_t a_batch_step, b_batch_step;
    int32_t only_fallback, direct;        /* direct: finish D here; else store S */
    struct bsmi_fallback a_fallback, b_fallback;                    /* count 0: none */
    const int64_t *group_tiles;           /* grouped: tiles of 16 rows and columns; not read if only_fallback */
    struct bsmi_epilogue_parameters epilogue;
    const struct bsmi_column_group *column_groups;   /* of each matrix of D (column_groups.h); NULL: all have all of
                                                        K */
};

/* Kernel bsmi_group_tables: one CTA.  Reads the rows of each group, keeps them within 0 .. m, and writes where each
 * begins and which tile it begins with. */
enum { BSMI_GROUP_TABLES_THREADS = 256 };
struct bsmi_group_tables_parameters {
    const int64_t *group_rows;
    int64_t groups, m, tile_rows, column_tiles;
    int64_t row_alignment;                /* as of bsmi_gemm_parameters */
    int64_t *group_starts, *group_tiles;  /* groups + 1 each */
};

#endif
