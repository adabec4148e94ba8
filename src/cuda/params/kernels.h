/* What host and kernels agree on: the parameters of every kernel, one struct each, passed by value as a kernel's only
 * parameter ("const __grid_constant__ struct bsmi_..._parameters p").  Plain C11 and CUDA C++; no type of the driver.
 *
 * Enumerations of the public headers travel as int32_t: their numbers are part of the binary interface and never
 * change. All pointers are device pointers.  Pitches of bytes end in _bytes; all others count elements.
 *
 * Kernels of one product follow each other in a stream and may be launched with programmatic stream serialization: each
 * waits by griddepcontrol.wait before it touches memory that one of them writes, most of them before any, and may say
 * griddepcontrol.launch_dependents when its CTAs need no more of the machine. */
#ifndef BSMI_KERNEL_PARAMETERS_H
#define BSMI_KERNEL_PARAMETERS_H

#include <stdint.h>

#ifdef __cplusplus
#define BSMI_ALIGNED(bytes) alignas(bytes)
#else
#define BSMI_ALIGNED(bytes) _Alignas(bytes)
#endif

#ifdef __CUDACC__
#define BSMI_HOST_DEVICE __host__ __device__
#else
#define BSMI_HOST_DEVICE
#endif

/* A CUtensorMap. */
struct bsmi_tensor_map { BSMI_ALIGNED(64) unsigned char opaque[128]; };

/* A matrix as struct bsmi_matrix describes it, without the host's function pointers. ------------------------------- */

/* Where the scale (row, column) of one matrix lies: docs/guide/layouts.md has the formulas, src/layout their C.  All of
 * them are sums of a part of the row and a part of the column. */
struct bsmi_device_layout {
    int32_t kind;                         /* bsm_layout */
    int64_t pitch, tile_rows, tile_columns;   /* pitch filled in where the layout has one */
    int64_t rows, columns, padded_rows, padded_columns;
};

struct bsmi_device_matrix {
    unsigned char *data, *scales;
    const float *tensor_scale;            /* NULL: none */
    int32_t tensor_scale_divides;
    int32_t element, scale, block, bits, packing;   /* bsm_element, bsm_scale; block 0: unscaled; packing as resolved:
                                                       DEFAULT only
                                                       for elements of 8, 16 and 32 bits */
    int64_t rows, columns, batch;
    int64_t row_bytes, batch_bytes, scale_batch_bytes;   /* between rows, between matrices */
    struct bsmi_device_layout layout;     /* of the scales of one matrix */
};

struct bsmi_device_reals {
    unsigned char *data;
    int32_t type;                         /* bsm_real */
    int64_t rows, columns, batch, row_stride, column_stride, batch_stride;
};

/* Decoding an operand into rows of bf16 ---------------------------------------------------------------------------- */

/* In exponents[]: this row is not in the bf16 rows (they hold zeros); the exact kernel computes its part of S. */
enum { BSMI_ROW_FALLBACK = INT32_MIN };

/* What a stored sum of this row and this column must be multiplied with, as a power of two.  Where one of them is left
 * out, the exact kernel has stored S as it is. */
BSMI_HOST_DEVICE static inline int32_t bsmi_sum_exponent(int32_t row, int32_t column)
{
    return row == BSMI_ROW_FALLBACK || column == BSMI_ROW_FALLBACK ? 0 : row + column;
}

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

/* Everything between S and D: docs at the top of include/blockscale/matmul.h. */
struct bsmi_epilogue_parameters {
    int64_t m, n;                         /* of S: n is counted before gating */
    int64_t matrices;                     /* batch, or groups */
    int32_t grouped;
    /* group_starts[g] is the row of A, C and D that group g begins with; [matrices] is the end of the last.  Grouped
     * only. */
    const int64_t *group_starts;

    /* S, if it lies in memory: element (matrix, i, j) at sums + matrix * sums_batch_pitch + i * sums_pitch + j.
     * Grouped: i is the row of A, and the matrix does not count.  S is it times 2^bsmi_sum_exponent, or it is S
     * (sums_are_scaled).  NULL: in registers. Columns are rows of B, however D is gated. */
    float *sums;
    int64_t sums_pitch, sums_batch_pitch;
    int32_t sums_parts;                   /* S is the sum of so many, in this order, sums_part_pitch numbers apart; 0
                                             counts as 1 */
    int32_t sums_are_scaled;              /* exponents of columns are known to the GEMM kernel alone: it applies those
                                             of rows with them, since
                                             one of the two alone can leave fp32's range where S does not */
    int64_t sums_part_pitch;
    const int32_t *a_exponents, *b_exponents;   /* [a_batch * m], [b_batch * n]; NULL: all 0.  See a_batch_step. */
    int64_t a_exponent_step, b_exponent_step;   /* from one matrix's exponents to the next one's: 0 where it is
                                                   broadcast */

    const float *alpha;                   /* NULL: 1 */
    int32_t alpha_per;                    /* bsm_per */
    const float *tensor_scale_a, *tensor_scale_b;   /* NULL: 1 */
    int32_t a_divides, b_divides;
    const float *beta;                    /* NULL: 0; C is read only if *beta is not 0 */
    const unsigned char *c;               /* NULL: none, whatever beta is */
    int32_t c_element;                    /* BSM_FP32, BSM_BF16, BSM_FP16 */
    int64_t c_row_bytes, c_batch_bytes;   /* c_batch_bytes 0: broadcast */
    const void *bias;                     /* NULL: none */
    int32_t bias_type, bias_per;          /* bsm_real, bsm_per (row or column) */
    int64_t bias_batch_pitch;
    int32_t activation, gate;             /* bsm_activation, bsm_gate */
    struct bsmi_device_matrix d;          /* d.tensor_scale: codes hold t / it (or t * it where it divides) */
    int32_t d_recipe, d_nonfinite, d_no_saturate;   /* d_recipe: DEFAULT resolved to the format's */
    /* Largest |t| as the bits of a float, NaN as 0x7fc00000: atomicMax of unsigned numbers.  The host sets it to 0
     * before. */
    uint32_t *amax;
};

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

/* Quantizing, dequantizing, layouts -------------------------------------------------------------------------------- */

/* Kernel bsmi_quantize: source into codes and scales of destination, bit for bit what bsm_quantize gives on a CPU
 * (block.c, recipes.c, convert_row.c).  tensor_scale of the destination is read on the device.  Padding of rows' last
 * bytes is written. The kernel in front of it in the stream, if it is launched by programmatic stream serialization, is
 * bsmi_amax: the source is read before that has ended.
 * Any grid of BSMI_QUANTIZE_THREADS: CTAs stride over pieces of rows. */
enum { BSMI_QUANTIZE_THREADS = 128 };
struct bsmi_quantize_parameters {
    struct bsmi_device_reals source;
    struct bsmi_device_matrix destination;
    int32_t recipe, rounding, nonfinite, no_saturate;   /* recipe: DEFAULT resolved */
    uint64_t seed;
    uint32_t *computed;                   /* destination.tensor_scale as a word that bsmi_amax has left the amax in:
                                             this kernel puts the
                                             tensor scale there, as tensor_scale.c computes it, also of a matrix without
                                             elements. NULL: the scale is given */
    double largest;                       /* that the format holds; of a computed scale */
    int32_t backward;                     /* rows are taken from the last one on: where the second-level cache still has
                                             them from
                                             bsmi_amax */
};

/* Kernel bsmi_amax: the largest finite magnitude of the source, as the bits of a float with the sign bit set, by
 * atomicMax; the host sets the word to BSMI_NO_AMAX before. */
enum { BSMI_AMAX_THREADS = 128 };
#define BSMI_NO_AMAX 0x80000000u
struct bsmi_amax_parameters { struct bsmi_device_reals source; uint32_t *amax; };

/* Kernel bsmi_dequantize: bit for bit bsm_dequantize. */
enum { BSMI_DEQUANTIZE_THREADS = 256 };
struct bsmi_dequantize_parameters { struct bsmi_device_matrix source; struct bsmi_device_reals destination; };

/* Kernel bsmi_convert_scales: every scale of `from` to its place in `to`, all padding of `to` as zero bytes (not the
 * bytes between pitched rows).  Kernel bsmi_clear_padding: the padding alone; batch buffers, batch_bytes apart. */
enum { BSMI_CONVERT_THREADS = 256 };
struct bsmi_convert_scales_parameters {
    const unsigned char *from;
    unsigned char *to;
    struct bsmi_device_layout from_layout, to_layout;
    int64_t batch, from_batch_bytes, to_batch_bytes;   /* batch 0: 1 */
    int32_t repeat;                       /* column s of `to` is column s / repeat of `from`; 0: 1 */
};
struct bsmi_clear_padding_parameters {
    unsigned char *scales;
    struct bsmi_device_layout layout;
    int64_t batch, batch_bytes;
};

#endif
