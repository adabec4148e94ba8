/* What the ladder's kernels and its host program share.  See examples/ladder/README.md. */
#ifndef LADDER_H
#define LADDER_H

#include <stdint.h>

/* A tile of D, for every step: 128 rows of A and 256 of B, 128 bytes of each along K (padded e2m1: 64 bytes in global
 * memory). */
enum { TILE_M = 128, TILE_N = 256, TILE_ROW_BYTES = 128 };

/* The last step is the library's own kernel; the others have kernels here. */
enum { LADDER_STEPS = 6, LADDER_KERNELS = 5 };

/* 4 scales of 128 rows: one block of the layout 128x4. */
enum { SCALE_BLOCK_ROWS = 128, SCALE_BLOCK_COLUMNS = 4, SCALE_BLOCK_BYTES = 512 };

#ifdef __CUDACC__
struct alignas(64) ladder_map { unsigned char opaque[128]; };
#else
struct ladder_map { _Alignas(64) unsigned char opaque[128]; };
#endif

/* D = (A x SA)(B x SB)^T.  Behind K, TMA fills codes and blocks of scales with zeros, and scales in rows or tiles go on
 * with zeros. */
struct ladder_parameters {
    struct ladder_map a, b;               /* bytes of rows, in boxes of a tile; padded e2m1: elements */
    struct ladder_map a_blocks, b_blocks; /* steps 3 to 5: blocks of 128x4 as (256 bytes, 2 a block along K, rows /
                                             128) */
    const uint8_t *a_scales, *b_scales;   /* step 1: rows of scale_columns bytes; step 2: contiguous tiles */
    void *d;                              /* fp32, or fp16 */
    int64_t d_pitch;                      /* elements, a multiple of 8 */
    int32_t m, n, k_tiles, scale_columns, d_is_half;
};

#endif
