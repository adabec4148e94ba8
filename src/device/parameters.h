/* What the host and the kernels of every backend agree on: matrices, epilogues, and the parameters of kernels that
 * quantize, dequantize and move scales.  Plain C11, which CUDA C++ and C for GPUs of AMD also compile.
 *
 * Enumerations of the public headers travel as int32_t: their numbers are part of the binary interface and never
 * change. All pointers are device pointers.  Pitches of bytes end in _bytes; all others count elements. */
#ifndef BSMI_DEVICE_PARAMETERS_H
#define BSMI_DEVICE_PARAMETERS_H

#include <stdint.h>

#ifdef __CUDACC__
#define BSMI_HOST_DEVICE __host__ __device__
#else
#define BSMI_HOST_DEVICE
#endif

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

/* Products --------------------------------------------------------------------------------------------------------- */

/* In exponents[]: this row is not in the bf16 rows (they hold zeros); the exact kernel computes its part of S. */
enum { BSMI_ROW_FALLBACK = INT32_MIN };

/* What a stored sum of this row and this column must be multiplied with, as a power of two.  Where one of them is left
 * out, the exact kernel has stored S as it is. */
BSMI_HOST_DEVICE static inline int32_t bsmi_sum_exponent(int32_t row, int32_t column)
{
    return row == BSMI_ROW_FALLBACK || column == BSMI_ROW_FALLBACK ? 0 : row + column;
}

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

/* Kernel bsmi_transpose: codes of 4 to 16 bits, `stored` with columns and rows changed, into `to`, which has their
 * packing by default.  Padding of rows' last bytes is written.  CUDA: any grid of BSMI_TRANSPOSE_THREADS, CTAs stride
 * over squares. */
enum { BSMI_TRANSPOSE_THREADS = 256, BSMI_TRANSPOSE_SIDE = 64 };
struct bsmi_transpose_parameters { struct bsmi_device_matrix stored, to; };

/* Kernel bsmi_expand: codes of 4 to 16 bits of a sparse matrix, whose kept ones are `stored`, with zeros between them
 * into `to`, which has their packing by default and rows aligned to 16 bytes.  Padding of rows' last bytes is written.
 * CUDA: any grid of BSMI_EXPAND_THREADS, threads stride over BSMI_EXPAND_COLUMNS. */
enum { BSMI_EXPAND_THREADS = 256, BSMI_EXPAND_COLUMNS = 16 };
struct bsmi_expand_parameters {
    struct bsmi_device_matrix stored, to;
    const unsigned char *metadata;
    int64_t metadata_row_bytes, metadata_batch_bytes;
    int32_t unit;                         /* codes that are kept or left out together: 1, 2 */
};

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
