/* What the ladder's kernels and its host program share.  See examples/ladder/README.md. */
#ifndef LADDER_H
#define LADDER_H

#include <stdint.h>

/* A tile of D has 128 rows of A; how many of B, and how much of K is loaded at a time, each kernel says in its name
 * ("step1_mxfp8_256x128": block N x block K, in elements). */
enum { TILE_M = 128 };

/* Bytes of a row that one copy by TMA brings, at most: the widest swizzle.  A tile with longer rows lies in several
 * panels of them. */
enum { PANEL_BYTES = 128 };

/* Shared memory of a CTA; stages of step 5: as many as fit, up to 4, but for the 1 KiB of its barriers. */
enum { SHARED_BYTES = 232448, LADDER_STAGES = 4 };

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
