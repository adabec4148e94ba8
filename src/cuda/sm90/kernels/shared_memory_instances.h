/* The instances of the shared-memory main loop.
 *
 *   tile             its name: the kernel is bsmi_gemm_TILE, for a person cuda_wgmma_TILE
 *   rows, columns    of D that a CTA makes; each consumer warpgroup takes rows / groups of them
 *   groups           consumer warpgroups
 *   cluster          CTAs along M, which share B's tiles, and along N, which share A's
 *   stages           of the ring in shared memory
 *   d_box_bytes      of a row of a box that D is stored by: divides the bytes of a tile's row for every type of D
 *
 *    tile         rows cols groups cluster stages d_box_bytes */
#ifndef BSMI_SM90_SHARED_MEMORY_INSTANCES_H
#define BSMI_SM90_SHARED_MEMORY_INSTANCES_H

/* Rows of a box that D is stored by: a warp's. */
enum { BSMI_GEMM_D_BOX_ROWS = 16 };

#define BSMI_SM90_GEMM_LARGE(X)                          \
    X(128x256_2x1,  128, 256, 2, 2, 1,  4, 128) \
    X(128x224_2x1,  128, 224, 2, 2, 1,  4,  64) \
    X(128x224_1x2,  128, 224, 2, 1, 2,  4,  64) \
    X(128x192_2x1,  128, 192, 2, 2, 1,  4, 128)

#define BSMI_SM90_GEMM_SMALL(X)                          \
    X(128x128_1x1,  128, 128, 2, 1, 1,  6, 128) \
    X(128x96_1x1,   128,  96, 2, 1, 1,  7,  64) \
    X(128x64_1x1,   128,  64, 2, 1, 1,  8, 128) \
    X(64x128_1x1,    64, 128, 1, 1, 1,  8, 128) \
    X(64x96_1x1,     64,  96, 1, 1, 1, 10,  64) \
    X(64x48_1x1,     64,  48, 1, 1, 1, 15,  32)

/* For groups along K, bsmi_gemm_column_groups_TILE. */
#define BSMI_SM90_GEMM_COLUMN_GROUPS(X) \
    X(128x256_2x1,  128, 256, 2, 2, 1,  4, 128) \
    X(128x128_1x1,  128, 128, 2, 1, 1,  6, 128)

/* For rows of which it decodes some itself, bsmi_gemm_late_rows_TILE. */
#define BSMI_SM90_GEMM_LATE_ROWS(X) \
    X(128x256_2x1,  128, 256, 2, 2, 1,  4, 128)

/* For 8-bit integers, bsmi_gemm_int8_TILE, and for the bf16 rows that take their place where integers do not serve,
 * bsmi_gemm_int8_fallback_TILE. */
#define BSMI_SM90_GEMM_INTEGERS(X) \
    X(128x256_2x1,  128, 256, 2, 2, 1,  4, 128)

/* For rows requantized to e4m3, bsmi_gemm_fp8_requantized_TILE. */
#define BSMI_SM90_FAST(X) \
    X(128x192_2x1,  128, 192, 2, 2, 1,  5,  64)

/* Shared memory, as kernels and the host have it: the ring, with two barriers a stage, and eight boxes of D for each
 * consumer warpgroup. */
#define BSMI_SM90_SHARED_MEMORY_BYTES(rows, columns, groups, stages, d_box_bytes)                                      \
    ((stages) * (((rows) + (columns)) * BSMI_K_STEP * 2 + 16) + (groups) * 8 * BSMI_GEMM_D_BOX_ROWS * (d_box_bytes))

#endif
