/* The table of GEMM kernels: what each instance consists of, and what the host asks of it. */
#ifndef BSMI_CUDA_INSTANCES_H
#define BSMI_CUDA_INSTANCES_H

#include "cuda/params/gemm.h"

#include <stdbool.h>

enum bsmi_gemm_main_loop {
    BSMI_MAIN_LOOP_SHARED_MEMORY,         /* wgmma, both operands in shared memory by TMA */
    BSMI_MAIN_LOOP_FUSED,                 /* fused dequantization: warpgroups make bf16 rows of B's codes in shared
                                             memory */
    BSMI_MAIN_LOOP_MIXED_INPUT,           /* the warpgroups that multiply make bf16 of B's codes, in registers: wgmma's
                                             first operand */
    BSMI_MAIN_LOOP_TENSOR_MEMORY,         /* tcgen05 */
    BSMI_MAIN_LOOP_REGISTERS,             /* mma.sync, both operands in shared memory by TMA,
                                             or by cp.async where rows forbid it */
    BSMI_MAIN_LOOP_MIXED_INPUT_REGISTERS, /* mixed input by mma.sync: bf16 of B's codes is its first operand */
    BSMI_MAIN_LOOP_MIXED_INPUT_TENSOR_MEMORY  /* mixed input by tcgen05: bf16 of B's codes is its first operand, in
                                             tensor memory */
};

/* What the tensor cores multiply: rows of numbers, or codes as one of the kinds of products that they have for them. */
enum bsmi_gemm_operands {
    BSMI_OPERANDS_BF16,
    BSMI_OPERANDS_MXF8F6F4,               /* elements of 4, 6 and 8 bits, an e8m0 scale for 32 */
    BSMI_OPERANDS_MXF4,                   /* e2m1, an e8m0 scale for 32 */
    BSMI_OPERANDS_MXF4NVF4,               /* e2m1, a scale for 16 */
    BSMI_OPERANDS_INT8,                   /* rows of 8-bit integers, made of MXFP4 */
    BSMI_OPERANDS_FP8                     /* requantized e4m3 codes, for BSM_COMPUTE_FAST alone */
};

/* The codes of B that it dequantizes. */
enum bsmi_gemm_codes {
    BSMI_CODES_NONE,
    BSMI_CODES_MXFP4, BSMI_CODES_NVFP4,   /* two a byte, the first in the low half */
    BSMI_CODES_BYTES,                     /* MXFP8, MXFP6, MXINT8, a byte each */
    BSMI_CODES_STREAM                     /* MXFP6, a stream of 6 bits */
};

/* Who computes rows and columns that bf16 cannot hold. */
enum bsmi_gemm_fallback { BSMI_FALLBACK_BY_SUMS, BSMI_FALLBACK_IN_KERNEL };

/* When it works: the device finds whether all rows of a product of MXFP4 fit int8. */
enum bsmi_gemm_condition { BSMI_RUNS_ALWAYS, BSMI_RUNS_IF_INT8_FITS, BSMI_RUNS_UNLESS_INT8_FITS };

/* Nanoseconds that a step of 64 columns of K takes, measured on one H200 (docs/design/hopper.md); 0: not known, or as
 * the one before. */
struct bsmi_gemm_cost {
    int step;                             /* every cluster has a tile */
    int in_l2;                            /* one wave of tiles whose rows of bf16 the L2 cache holds */
    int in_l2_behind;                     /* the same behind a kernel that has dequantized B */
    int alone;                            /* of CTAs that share an SM: one has it for itself */
    int tile;                             /* no step, but what a tile of groups takes besides, beyond what all take */
    int narrow;                           /* of tiles that need half of their rows or less; 0: products have all rows */
    int half;                             /* of half of a tile */
    int single, single_narrow;            /* step and narrow of products without groups; 0: as above, but kernels for
                                             groups are not chosen for them */
};

/* One instance: a tile of D per CTA (of a cluster: cluster_rows x cluster_columns such tiles). */
struct bsmi_gemm_instance {
    const char *name;                     /* for a person: "cuda_wgmma_128x256" */
    const char *function, *file;
    enum bsmi_gemm_main_loop main_loop;
    enum bsmi_gemm_operands operands;
    enum bsmi_gemm_source source;
    enum bsmi_gemm_codes codes;
    enum bsmi_gemm_schedule schedule;
    enum bsmi_gemm_fallback fallback;
    enum bsmi_gemm_condition condition;
    int tile_rows, tile_columns;          /* of one CTA */
    int cluster_rows, cluster_columns;    /* CTAs of a cluster along M and N; 1, 1: none */
    int k_parts;                          /* of which sums are made, BSM_ORDER_SPLIT_K: by as many CTAs of a cluster,
                                             which have one tile; 0 counts as 1 */
    bool k_parts_in_turn;                 /* or by one */
    int threads, shared_bytes;
    int sm_ctas;                          /* CTAs that share an SM by design; 1 as a rule */
    int a_box_rows, b_box_rows;           /* rows of the boxes that the tensor maps of A and B are made with */
    int d_box_rows, d_box_bytes;          /* box of D's map, swizzled over its whole width; 0: no map is wanted */
    int most_columns;                     /* of K; 0: any */
    bool adds_up_groups;                  /* rows of groups, by itself: no kernel in front makes tables of them */
    bool late_rows;                       /* decodes some rows of its operands itself */
    bool column_groups;                   /* takes groups along K; without, it is only taken if it is forced */
    bool splits_k;                        /* parts of K go to CTAs of their own: other sums, only taken if it is
                                             forced */
    int sets;                             /* of warps, each with tiles of its own: one stores while the other
                                             multiplies; 0 counts as 1 */
    int step_bytes;                       /* of a row, that a stage has; where codes are multiplied */
    bool halves;                          /* of the last round's tiles, where there are few of them */
    bool copies_rows;                     /* that TMA cannot describe, by cp.async */
    bool sparse;                          /* B is, and alone: swapped, whatever rows its tile has */
    struct bsmi_gemm_cost cost;
};

extern const struct bsmi_gemm_instance bsmi_gemm_instances[];
extern const int bsmi_gemm_instance_count;
enum { BSMI_MOST_GEMM_INSTANCES = 192 };

/* CTAs of a cluster. */
static inline int bsmi_gemm_cluster(const struct bsmi_gemm_instance *gemm)
{
    const int along_k = gemm->k_parts > 1 && !gemm->k_parts_in_turn ? gemm->k_parts : 1;
    return gemm->cluster_rows * gemm->cluster_columns * along_k;
}

/* Whether its sums are those of BSM_ORDER_SPLIT_K. */
static inline bool bsmi_gemm_has_k_parts(const struct bsmi_gemm_instance *gemm) { return gemm->k_parts > 1; }

static inline bool bsmi_gemm_has_tensor_memory(const struct bsmi_gemm_instance *gemm)
{
    return gemm->main_loop == BSMI_MAIN_LOOP_TENSOR_MEMORY;
}

/* Whether its parameters are those of Blackwell's tensor cores. */
static inline bool bsmi_gemm_is_of_blackwell(const struct bsmi_gemm_instance *gemm)
{
    return bsmi_gemm_has_tensor_memory(gemm) || gemm->main_loop == BSMI_MAIN_LOOP_REGISTERS;
}

/* Whether what it takes is modelled, not measured. */
static inline bool bsmi_gemm_is_modelled(const struct bsmi_gemm_instance *gemm)
{
    return bsmi_gemm_is_of_blackwell(gemm) || gemm->main_loop >= BSMI_MAIN_LOOP_MIXED_INPUT_REGISTERS;
}

/* Codes of both operands, scaled by the tensor cores. */
static inline bool bsmi_gemm_multiplies_codes(const struct bsmi_gemm_instance *gemm)
{
    return bsmi_gemm_is_of_blackwell(gemm) && gemm->operands != BSMI_OPERANDS_BF16;
}

/* Elements of K in a step, of Blackwell's kernels; half of them are kept where B is sparse. */
static inline int64_t bsmi_gemm_step_columns(const struct bsmi_gemm_instance *gemm)
{
    if (gemm->operands == BSMI_OPERANDS_BF16) return gemm->step_bytes / 2;
    return (gemm->operands == BSMI_OPERANDS_MXF8F6F4 && !gemm->sparse ? 1 : 2) * (int64_t)gemm->step_bytes;
}

/* Few rows: multiplies D^T = B A^T by tcgen05. */
static inline bool bsmi_gemm_is_swapped(const struct bsmi_gemm_instance *gemm)
{
    return bsmi_gemm_has_tensor_memory(gemm) && (gemm->tile_rows < 128 || gemm->sparse);
}

/* Of bf16 rows of A and B's codes. */
static inline bool bsmi_gemm_dequantizes(const struct bsmi_gemm_instance *gemm)
{
    return gemm->codes != BSMI_CODES_NONE;
}

static inline bool bsmi_gemm_reads_prepacked(const struct bsmi_gemm_instance *gemm)
{
    return gemm->source == BSMI_SOURCE_PREPACKED;
}

/* Whether B's codes are decoded into tensor memory.  Prepacked weights are B's scales alone then, as BSM_LAYOUT_128X4:
 * codes are read as they are stored. */
static inline bool bsmi_gemm_decodes_to_tensor_memory(const struct bsmi_gemm_instance *gemm)
{
    return gemm->main_loop == BSMI_MAIN_LOOP_MIXED_INPUT_TENSOR_MEMORY;
}

/* Scales of B in any layout, without a kernel in front; A is not fp16. */
static inline bool bsmi_gemm_reads_any_scales(const struct bsmi_gemm_instance *gemm)
{
    return gemm->source == BSMI_SOURCE_AS_STORED || gemm->source == BSMI_SOURCE_PREPACKED;
}

/* Waits itself for all in front of it, also as the first of its call: first_of_call.  Where CTAs share an SM it does
 * not pay. */
static inline bool bsmi_gemm_begins_early(const struct bsmi_gemm_instance *gemm)
{
    return bsmi_gemm_reads_any_scales(gemm) && gemm->sm_ctas == 1;
}

/* Number of the instance for bf16 rows that takes the place of one for int8; -1 for others. */
int bsmi_gemm_int8_fallback(int gemm);

/* Row tiles of a band (gemm_order.h): what `clusters` tiles read at one time is least when together they make a
 * square.  Of the sizes within a quarter of that one it is that which leaves the least for a last, smaller band of a
 * matrix's row_tiles; 0: not known, groups have some each. */
int32_t bsmi_gemm_band(const struct bsmi_gemm_instance *instance, int clusters, int64_t row_tiles);

/* last_row of bsmi_gemm_parameters for matrices of m rows: tiles that begin there end with the last row, or up to 15
 * rows behind it. */
int32_t bsmi_gemm_last_row(const struct bsmi_gemm_instance *instance, int64_t m);

/* Tiles of a product, of m rows each matrix, that come in halves: those of a last round in which `clusters` have a half
 * each, or fewer. */
int64_t bsmi_gemm_tiles_in_halves(const struct bsmi_gemm_instance *instance, int64_t m, int64_t tiles,
                                  int64_t clusters);

#endif
