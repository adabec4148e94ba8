/* The instances of the mixed-input GEMM kernels for groups of rows of A, with prepacked weights: bsmi_gemm_CODES_TILE,
 * each for MXFP4 and for NVFP4.
 *
 *   rows          of A that a tile has, at most
 *   groups        consumer warpgroups, each with 64 rows of B
 *   by_warps      products by mma.sync, a warp's by itself, not by wgmma
 *   stages        of the ring of A's rows
 *   code_stages   of the ring of B's slices */
#ifndef BSMI_SM90_MIXED_INPUT_GROUPS_INSTANCES_H
#define BSMI_SM90_MIXED_INPUT_GROUPS_INSTANCES_H

#include "mixed_input_instances.h"

/* Of a box of A's rows: a tile loads as many boxes as its rows want.  Steps of 64 columns in a stage of A's rows. */
enum { BSMI_GROUPS_BOX_ROWS = 8, BSMI_GROUPS_A_STEPS = 2 };

/*    tile                   rows g by_warps st codes */
#define BSMI_SM90_MIXED_INPUT_GROUPS(X) \
    X(64x256_groups_prepacked, 64, 4, false, 5, 2) \
    X(32x256_groups_prepacked, 32, 4, true,  3, 3)

/* Sums on their way to D, of a warpgroup: 16 rows at a time, 80 bytes for 16 columns of four warps; later elements that
 * bf16 cannot hold. */
enum { BSMI_GROUPS_CHUNK = 16, BSMI_GROUPS_CHUNK_BYTES = 6912 };

/* Shared memory from its beginning, as BSMI_MIXED_INPUT_ROWS_REGIONS, and a table of groups. */
#define BSMI_MIXED_INPUT_GROUPS_REGIONS(X, block, rows, groups, by_warps, stages, code_stages) \
    X(A, (stages) * BSMI_GROUPS_A_STEPS * (rows) * BSMI_K_STEP * 2)                            \
    X(CODES, (code_stages) * (groups) * BSMI_PREPACKED_SLICE_BYTES(block))                     \
    X(TABLES, (groups) * 12 * ((rows) + 64))                                                   \
    X(CHUNKS, (groups) * BSMI_GROUPS_CHUNK_BYTES)                                              \
    X(GROUP_TABLE, (2 * (BSMI_MOST_GROUPS_IN_KERNEL + 1) * 4 + 7) / 8 * 8)                     \
    X(FULL, (stages) * 8)                                                                      \
    X(EMPTY, (stages) * 8)                                                                     \
    X(CODES_FULL, (code_stages) * 8)                                                           \
    X(CODES_EMPTY, (code_stages) * 8)

#define BSMI_MIXED_INPUT_GROUPS_SHARED_BYTES(...) (0 BSMI_MIXED_INPUT_GROUPS_REGIONS(BSMI_MIXED_INPUT_ADD, __VA_ARGS__))

#endif
