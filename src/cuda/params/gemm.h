/* The parameters of the GEMM kernels, in the manner of kernels.h: what all of them are given, and what each main loop
 * is given besides. */
#ifndef BSMI_GEMM_PARAMETERS_H
#define BSMI_GEMM_PARAMETERS_H

#include "column_groups.h"
#include "int8.h"
#include "kernels.h"

/* One stretch of K: `blocks` steps of 64 columns, from these columns of the bf16 rows on. */
struct bsmi_segment { int32_t a_column, b_column, blocks; };
enum { BSMI_MOST_SEGMENTS = 4, BSMI_K_STEP = BSMI_COLUMN_STEP };
enum { BSMI_GEMM_WARP_ROWS = 16 };        /* of D, that a warp stores together */
enum { BSMI_GEMM_QUANTIZER_BYTES = 224 }; /* of shared memory: what D is quantized by */

/* The GEMM kernels of sm90/ and sm100/: rows of A and B by TMA, fp32 sums.  A persistent grid: tiles in the order of
 * the scheduler, every CTA (cluster) takes each gridDim-th.  A tile, here and in group_tiles, is what a cluster
 * computes: tile_rows * cluster_rows by tile_columns * cluster_columns of the instance (tables/instances.h); the
 * cluster is one-dimensional, CTAs along M first. Tensor maps: bf16, dimensions (columns of the rows, rows, batch), box
 * (64, rows of the instance, 1), swizzle 128B, zeros outside.  A has one matrix when grouped.
 * An infinite sum is what it is; rows and columns whose exponent is BSMI_ROW_FALLBACK are not stored, in neither
 * place. */
struct bsmi_gemm_parameters {
    struct bsmi_tensor_map a, b, d;
    struct bsmi_segment segments[BSMI_MOST_SEGMENTS];
    int32_t segment_count;
    int32_t a_batch_step, b_batch_step;   /* 0: broadcast, 1: a matrix each; third coordinate of the maps */
    int32_t has_d_map;                    /* d may be stored by TMA: (columns, rows, batch), box as the instance's row
                                             says */
    int32_t row_alignment;                /* grouped: a group's tiles begin at a multiple of so many rows of A, and
                                             those of others are
                                             not stored; 0: at its first row */
    int32_t last_row;                     /* tiles that would begin behind it, a multiple of BSMI_GEMM_WARP_ROWS, begin
                                             there, and store
                                             what would be theirs; 0: none do */
    int32_t band_rows;                    /* tiles of a column that follow each other before the next column: at least
                                             1 */
    int32_t direct;                       /* 1: finish D here: fp32, bf16 or fp16, with alpha, tensor scales of A and B,
                                             beta C and
                                             bias, but no activation, gate, amax or tensor scale of D (kernels that
                                             multiply codes also quantize D here, tensor scale included, and have relu
                                             and amax); 0: store S */
    int64_t row_tiles, column_tiles;      /* of one matrix; grouped: column_tiles alone */
    int64_t tiles;                        /* all of them; grouped: group_tiles[matrices] */
    const int64_t *group_tiles;           /* number of the first tile of each group, [matrices + 1]; grouped only */
    struct bsmi_epilogue_parameters epilogue;
};

/* The parameters of a main loop begin with those of all: a base class for the kernels, the member `gemm` for the
 * host. */
#ifdef __cplusplus
#define BSMI_GEMM_PARAMETERS(name) name : bsmi_gemm_parameters {
#else
#define BSMI_GEMM_PARAMETERS(name) name { struct bsmi_gemm_parameters gemm;
#endif

/* Both operands in shared memory: bf16 rows; int8 rows and e4m3 codes, whose maps have numbers of 16 bits, two elements
 * each. */
struct BSMI_GEMM_PARAMETERS(bsmi_shared_memory_parameters)
    struct bsmi_condition condition;      /* of the int8 path alone */
    struct bsmi_device_matrix a_source, b_source;   /* the operands as they are, for kernels that compute fallback rows
                                                       and columns */
    int64_t k;                            /* theirs; 0: another kernel computes them */
};

/* Both operands in shared memory, bf16 rows, groups along K. */
struct BSMI_GEMM_PARAMETERS(bsmi_column_groups_parameters)
    const struct bsmi_column_group *groups;   /* of each matrix of D; NULL: all of K each */
};

/* Fused dequantization: b maps bytes, box (128, rows of the instance, 1), and scales lie as BSM_LAYOUT_128X4, with no
 * NaN in the padding of the steps of 64 columns that are multiplied; e8m0 less the exponents of rows, as bsmi_decode
 * loads them. */
struct BSMI_GEMM_PARAMETERS(bsmi_fused_parameters)
    const unsigned char *code_scales;     /* aligned to 16 bytes */
    int64_t code_band_bytes, code_batch_bytes; /* of 128 rows, of a matrix */
    int32_t code_element;                 /* of codes of a byte each: bsm_element */
};

/* What the main loop reads of B. */
enum bsmi_gemm_source {
    BSMI_SOURCE_OPERANDS,                 /* the operands that are multiplied */
    BSMI_SOURCE_SCALES_128X4,             /* codes, and scales as BSM_LAYOUT_128X4: a kernel in front finds the
                                             exponents of rows */
    BSMI_SOURCE_AS_STORED,                /* codes and scales as the caller has them: this kernel finds the exponents of
                                             B's rows */
    BSMI_SOURCE_PREPACKED                 /* prepacked weights alone */
};

/* What the warpgroups that multiply have of a tile. */
enum bsmi_gemm_schedule {
    BSMI_SCHEDULE_ROWS,                   /* rows of its own each, all of K */
    BSMI_SCHEDULE_K_INTERLEAVED           /* slices of K in turn; boxes of A have only as many rows as A, where these
                                             are fewer */
};

/* Mixed input: b maps bytes as above, and the kernel reads scales from b_source, in any layout; or it reads prepacked
 * weights (sm90/operand/prepacked_layout.h). */
struct BSMI_GEMM_PARAMETERS(bsmi_mixed_input_parameters)
    const unsigned char *prepacked;       /* the first tile's first slice */
    int64_t matrix_tiles, tile_slices;    /* tiles of 64 rows in a matrix, K slices of a tile */
    struct bsmi_device_matrix a_source, b_source;   /* the operands as they are, for fallback rows and columns, too */
    int64_t k;
    int32_t only_exponent_zero;           /* of B's rows: as for bsmi_decode */
    int32_t a_box_rows;                   /* of boxes of A: no more than there are */
    int64_t whole_tiles;                  /* rows of prepacked weights: the tiles behind so many come in two halves, one
                                             behind the other, and count twice in `tiles`; boxes of A have half of a
                                             tile's rows then */
    int32_t first_of_call;                /* no kernel of the same call is in front: others may still write B when it
                                             begins */
    const int64_t *group_rows;            /* of each group, for kernels that add them up themselves */
};

/* Groups that they have room for. */
enum { BSMI_MOST_GROUPS_IN_KERNEL = 512 };

/* Rows that no tensor map describes, which kernels by mma.sync copy by cp.async to where TMA would have put them. */
struct bsmi_copied_rows {
    const unsigned char *data;
    int64_t pitch, batch_bytes;
    int32_t rows, row_bytes;              /* of a matrix; what is behind them counts as zeros */
    int32_t size;                         /* bytes of a copy, 4 or 8: everything begins at multiples of it; 0: TMA */
};

/* How a step of K of an operand comes to shared memory where tcgen05 reads it, and how products find it there.  K-major
 * it is one box, rows of 128 bytes, of 64 or 32 where K has no more.  MN-major it is boxes of lines: numbers of the
 * same k, of as many rows as 128 bytes hold or the tile has; one box lies behind the other. */
struct bsmi_operand_boxes {
    uint64_t descriptor;                  /* of the matrix in shared memory, less its address (ptx/descriptors.h) */
    int32_t product_bytes;                /* from one product of 32 bytes of K to the next */
    int32_t mn_major;                     /* the map's dimensions are (rows, columns, batch), its boxes are lines */
    int32_t count, rows, bytes;           /* boxes; rows of the operand in a box; its bytes in shared memory */
};

/* Operands for the tensor cores of Blackwell: bf16 rows, or codes.  Kernels that multiply codes have maps of the codes,
 * whose boxes have a step's bytes of shared memory (128; 12.x also 32 and 64), and maps of the scales in layout 128x4,
 * without swizzle: dimensions (512 bytes of a block, blocks, batch), box (a block, a step's blocks along K, 1).  The
 * scales of 128 rows are a_scale_blocks along K. */
struct BSMI_GEMM_PARAMETERS(bsmi_blackwell_parameters)
    struct bsmi_tensor_map a_scales, b_scales;
    int32_t a_scale_blocks, b_scale_blocks;
    int32_t a_scales_linear, b_scales_linear; /* mma.sync: the map of the scales has bytes, dimensions (scales of a row,
                                             rows, batch), boxes of 16 bytes of a tile's rows */
    int32_t a_element, b_element;         /* mma.sync: enum mma_sync_element */
    int32_t a_row_bytes, b_row_bytes;     /* what TMA counts for a step of a row in shared memory: of 128 bytes 64 and
                                             96 where it pads 16 codes of 4 and of 6 bits to 16 bytes; 64 and 32 where
                                             a box has no more; nothing of copied rows */
    uint32_t instruction;                 /* types of elements and scales, as the instruction descriptor has them */
    int32_t last_products;                /* products of the last step of K: scales behind them are not read */
    int32_t split_blocks;                 /* the sum starts afresh every so many steps of K, and the parts are added in
                                             ascending order: a function of K alone; 0: never */
    int32_t parts;                        /* so many of them; 0 counts as 1 */
    int32_t split_k;                      /* instances of fewer rows than columns, direct 0: parts go to CTAs of their
                                             own, and each to its place in epilogue.sums; 0: a CTA makes all parts of a
                                             tile */
    float *kept;                          /* parts > 1, not split_k: tile_rows * tile_columns numbers of each CTA of
                                             the grid */
    struct bsmi_copied_rows a_copied, b_copied; /* mma.sync: instead of the maps a and b, each for itself */
    struct bsmi_operand_boxes a_boxes, b_boxes; /* tcgen05 */
};

/* The same with a sparse B: its kept codes, scales of these, and of its metadata a map of bytes, box (32, rows of a
 * tile, 1), swizzle 32B.  A base class, or a member, as above. */
#ifdef __cplusplus
struct bsmi_sparse_parameters : bsmi_blackwell_parameters {
#else
struct bsmi_sparse_parameters { struct bsmi_blackwell_parameters blackwell;
#endif
    struct bsmi_tensor_map metadata;
};

#endif
