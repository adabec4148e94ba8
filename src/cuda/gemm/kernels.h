/* The kernels that the host launches, by table: which kernel file holds each, and what it is launched with. */
#ifndef BSMI_CUDA_KERNELS_H
#define BSMI_CUDA_KERNELS_H

#include "cuda/params/fp8_requantize.h"
#include "cuda/params/gemm.h"
#include "cuda/params/plain.h"
#include "cuda/params/policies.h"
#include "cuda/params/row_and_column.h"

#include <stdbool.h>
#include <stdint.h>

/* Kernels with a grid of any size: their CTAs stride over the work.  All wait by griddepcontrol.wait, so that they may be launched before
 * the kernel of their call in front of them has ended.  most: CTAs on a multiprocessor, at most: enough to hide latency, few enough to
 * begin seldom; measured (docs/design/memory-bound.md).  0: as many as the launch asks for, which knows better.
 *      id             function               file                 threads                    most */
#define BSMI_CUDA_KERNELS(X)                                                                                 \
    X(SUMS,          "bsmi_sums",           "simt/sums",         BSMI_SUMS_THREADS,         8)         \
    X(GROUP_TABLES,  "bsmi_group_tables",   "simt/sums",         BSMI_GROUP_TABLES_THREADS, 8)         \
    X(DECODE,        "bsmi_decode",         "dequantize/decode",     BSMI_DECODE_THREADS,       0)         \
    X(DECODE_PLAIN,  "bsmi_decode_plain",   "dequantize/decode_plain", BSMI_DECODE_PLAIN_THREADS, 0)       \
    X(FINISH,        "bsmi_finish",         "epilogue/finish",     BSMI_FINISH_THREADS,       8)         \
    X(QUANTIZE,      "bsmi_quantize",       "quantize/quantize",   BSMI_QUANTIZE_THREADS,     0)         \
    X(BOTH,          "bsmi_quantize_both",  "quantize/row_and_column", BSMI_BOTH_THREADS,      4)         \
    X(BOTH_POWERS,   "bsmi_quantize_both_powers", "quantize/row_and_column", BSMI_BOTH_THREADS, 0)        \
    X(BOTH_QUOTIENTS, "bsmi_quantize_both_quotients", "quantize/row_and_column", BSMI_BOTH_THREADS, 0)    \
    X(ORDER_SCALES,  "bsmi_order_scales",   "quantize/row_and_column", BSMI_BOTH_THREADS,      0)         \
    X(POLICIES,      "bsmi_quantize_policies", "quantize/policies", BSMI_POLICIES_THREADS, 8)   \
    X(AMAX,          "bsmi_amax",           "quantize/quantize",   BSMI_AMAX_THREADS,         5)         \
    X(DEQUANTIZE,    "bsmi_dequantize",     "dequantize/dequantize", BSMI_DEQUANTIZE_THREADS,   8)         \
    X(REPACK,        "bsmi_repack",         "scales/repack",     BSMI_REPACK_THREADS,       8)         \
    X(REFOLD,        "bsmi_refold",         "quantize/fp8_requantize",     BSMI_REFOLD_THREADS,       6)         \
    X(CONVERT,       "bsmi_convert_scales", "scales/scales",     BSMI_CONVERT_THREADS,      16)        \
    X(CLEAR_PADDING, "bsmi_clear_padding",  "scales/scales",     BSMI_CONVERT_THREADS,      8)         \
    X(PACK,          "bsmi_pack",           "sm90/kernels/pack",         BSMI_PACK_THREADS,         2)                \
    X(INTEGERS,      "bsmi_integers",       "dequantize/int8_rows",   BSMI_INTEGERS_THREADS,     4)

enum bsmi_cuda_kernel_id {
#define X(id, function, file, threads, most) BSMI_KERNEL_##id,
    BSMI_CUDA_KERNELS(X)
#undef X
    BSMI_KERNEL_COUNT
};

struct bsmi_cuda_kernel { const char *function, *file; int threads, most; };
extern const struct bsmi_cuda_kernel bsmi_cuda_kernels[BSMI_KERNEL_COUNT];

/* What a GEMM kernel multiplies: bf16 rows, or codes as one of the kinds of products that tensor cores have for them. */
enum bsmi_gemm_kind {
    BSMI_GEMM_BF16,
    BSMI_GEMM_MXF8F6F4,                   /* elements of 4, 6 and 8 bits, an e8m0 scale for 32 */
    BSMI_GEMM_MXF4,                       /* e2m1, an e8m0 scale for 32 */
    BSMI_GEMM_MXF4NVF4,                   /* e2m1, a scale for 16 */
    BSMI_GEMM_INTEGERS,                   /* rows of 8-bit integers, made of MXFP4; bf16 rows where there are none */
    BSMI_GEMM_FAST                        /* refolded codes, for BSM_COMPUTE_FAST alone */
};

/* What a kernel for bf16 rows decodes itself of B. */
enum bsmi_gemm_decodes {
    BSMI_DECODES_NONE,                    /* B comes as bf16 rows, too */
    BSMI_DECODES_MXFP4, BSMI_DECODES_NVFP4, /* two a byte, the first in the low half */
    BSMI_DECODES_BYTES,                   /* MXFP8, MXFP6, MXINT8, a byte each */
    BSMI_DECODES_STREAM                   /* MXFP6, a stream of 6 bits */
};

/* One instance of the GEMM kernels: a tile of D per CTA (of a cluster: cluster_rows x cluster_columns such tiles). */
struct bsmi_gemm_instance {
    const char *name;                     /* for a person: "cuda_wgmma_128x256" */
    const char *function, *file;
    enum bsmi_gemm_kind kind;
    bool has_tensor_memory;               /* multiplies by tcgen05 */
    int tile_rows, tile_columns;          /* of one CTA */
    int cluster_rows, cluster_columns;    /* CTAs of a cluster along M and N; 1, 1: none */
    int threads, shared_bytes;
    int a_box_rows, b_box_rows;           /* rows of the boxes that the tensor maps of A and B are made with */
    int d_box_rows, d_box_bytes;          /* box of D's map, swizzled over its whole width; 0: no map is wanted */
    enum bsmi_gemm_decodes decodes;       /* then B's box is 128 bytes of b_box_rows rows */
    int most_columns;                     /* decodes B in registers, K up to this, reads scales as they are, and finds the exponents of
                                             B's rows; 0: does not */
    bool begins_early;                    /* waits for all in front of it also as the first of its call: first_of_call */
    bool panels;                          /* reads B from panels alone */
    bool computes_left_out;               /* rows and columns that bf16 leaves out, too: bsmi_sums need not */
    bool fits_boxes;                      /* boxes of A have only as many rows as A, where these are fewer */
};

/* Decodes B in registers. */
static inline bool bsmi_gemm_has_registers(const struct bsmi_gemm_instance *gemm) { return gemm->most_columns > 0; }

/* CTAs of a cluster. */
static inline int bsmi_gemm_cluster(const struct bsmi_gemm_instance *gemm)
{
    return gemm->cluster_rows * gemm->cluster_columns;
}

/* Of tensor memory, with few rows: multiplies D^T = B A^T. */
static inline bool bsmi_gemm_is_swapped(const struct bsmi_gemm_instance *gemm) { return gemm->has_tensor_memory && gemm->tile_rows < 128; }

extern const struct bsmi_gemm_instance bsmi_gemm_instances[];
extern const int bsmi_gemm_instance_count;
enum { BSMI_MOST_GEMM_INSTANCES = 128 };

/* Number of the instance for bf16 rows that takes the place of one for integers; -1 for others. */
int bsmi_gemm_rest(int gemm);

/* Row tiles of a band (gemm_order.h): what `clusters` tiles read at one time is least when together they make a square.  Of the sizes within a
 * quarter of that one it is that which leaves the least for a last, smaller band of a matrix's row_tiles; 0: not known, groups have some each. */
int32_t bsmi_gemm_band(const struct bsmi_gemm_instance *instance, int clusters, int64_t row_tiles);

/* last_row of bsmi_gemm_parameters for matrices of m rows: tiles that begin there end with the last row, or up to 15 rows behind it. */
int32_t bsmi_gemm_last_row(const struct bsmi_gemm_instance *instance, int64_t m);

#endif
