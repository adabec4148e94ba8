/* The instances of the GEMM kernels for GeForce RTX 50, RTX PRO and GB10 (compute capability 12.x).
 *
 *   tile             its name, rows x columns x bytes of K in a step: the kernel is bsmi_gemm_sm120_KIND_TILE, for a
 *                    person cuda_mma_sync_KIND_TILE
 *   rows, columns    of D
 *   step             bytes of K that a stage has of each row
 *   along_m, along_n warps that share a tile: each has rows / along_m of it and columns / along_n
 *   schedule         cooperative: all warps have the same tile; ping-pong: two sets of warps, each with tiles and a
 *                    ring of its own, of which one multiplies while the other stores; split_k: parts of K go to CTAs of
 *                    their own, and bsmi_finish adds them (by name only: other sums)
 *   stages           of a ring in shared memory, of which there are 99 KB
 *
 *        tile                 rows columns step along_m along_n schedule  stages */
#ifndef BSMI_SM120_GEMM_INSTANCES_H
#define BSMI_SM120_GEMM_INSTANCES_H

enum bsmi_sm120_schedule { BSMI_SM120_COOPERATIVE, BSMI_SM120_PING_PONG, BSMI_SM120_SPLIT_K };

/* Sets of warps that multiply, and warps in front of them: a producer for each set; where a warp has more than 2048
 * sums, which leaves eight of them too few registers, a whole warpgroup, whose registers they get. */
#define BSMI_SM120_SETS(schedule) ((schedule) == BSMI_SM120_PING_PONG ? 2 : 1)
#define BSMI_SM120_WARPS(along_m, along_n, schedule) ((along_m) * (along_n) * BSMI_SM120_SETS(schedule))
#define BSMI_SM120_PRODUCERS(rows, columns, along_m, along_n, schedule) \
    ((rows) * (columns) > 2048 * (along_m) * (along_n) ? 4 : BSMI_SM120_SETS(schedule))
/* Where they give registers away, a producer that copies rows costs the others spills. */
#define BSMI_SM120_COPIES_ROWS(rows, columns, along_m, along_n) \
    ((rows) * (columns) <= 2048 * (along_m) * (along_n))
#define BSMI_SM120_THREADS(rows, columns, along_m, along_n, schedule) \
    (32 * (BSMI_SM120_PRODUCERS(rows, columns, along_m, along_n, schedule) \
           + BSMI_SM120_WARPS(along_m, along_n, schedule)))

/* Shared memory.  Scales of a step's rows: each row has `of_32` bytes of scales for 32 bytes of codes.  They come as
 * whole blocks of layout 128x4, or as 16 bytes of each row of a linear layout; the ring has room for either. */
enum { BSMI_SM120_BLOCK_BYTES = 512, BSMI_SM120_LINEAR_BYTES = 16 };
#define BSMI_SM120_BLOCKS(of_32, step) \
    ((of_32) == 0 ? 0 : (of_32) * (step) < 128 ? 1 : (of_32) * (step) / 128)
#define BSMI_SM120_MOST(x, y) ((x) > (y) ? (x) : (y))
#define BSMI_SM120_SCALE_BYTES(of_32, step, rows) \
    ((of_32) == 0 ? 0 \
                  : BSMI_SM120_MOST(((rows) + 127) / 128 * BSMI_SM120_BLOCKS(of_32, step) * BSMI_SM120_BLOCK_BYTES, \
                                    (rows) * BSMI_SM120_LINEAR_BYTES))
#define BSMI_SM120_STAGE_BYTES(of_32, rows, columns, step) \
    (((rows) + (columns)) * (step) + BSMI_SM120_SCALE_BYTES(of_32, step, rows) + \
     BSMI_SM120_SCALE_BYTES(of_32, step, columns))

/* What a warp has for itself: eight rows of 32 of its sums, three numbers for each of its columns.  What all have: what
 * D is finished and quantized by. */
enum { BSMI_SM120_FINISH_BYTES = 32 };
enum { BSMI_SM120_PIECE_ROWS = 8, BSMI_SM120_PIECE_COLUMNS = 32, BSMI_SM120_PIECE_PITCH = 4 * 32 + 32 };
#define BSMI_SM120_WARP_BYTES(columns) (BSMI_SM120_PIECE_ROWS * BSMI_SM120_PIECE_PITCH + 12 * (columns))
#define BSMI_SM120_SHARED_BYTES(of_32, rows, columns, step, along_m, along_n, schedule, stages) \
    (BSMI_SM120_SETS(schedule) * (stages) * (BSMI_SM120_STAGE_BYTES(of_32, rows, columns, step) + 16) + \
     BSMI_SM120_WARPS(along_m, along_n, schedule) * BSMI_SM120_WARP_BYTES((columns) / (along_n)) + \
     BSMI_SM120_FINISH_BYTES + ((of_32) == 0 ? 0 : BSMI_GEMM_QUANTIZER_BYTES))

/* Codes of 4 bits. */
#define BSMI_SM120_GEMM_OF_4_BITS(X) \
    X(256x128x64,          256, 128,  64, 4, 2, BSMI_SM120_COOPERATIVE, 2) \
    X(128x128x128,         128, 128, 128, 4, 2, BSMI_SM120_COOPERATIVE, 2) \
    X(128x128x64,          128, 128,  64, 4, 2, BSMI_SM120_COOPERATIVE, 3) \
    X(128x128x64_pingpong, 128, 128,  64, 2, 2, BSMI_SM120_PING_PONG,   2) \
    X(64x128x64_pingpong,   64, 128,  64, 2, 2, BSMI_SM120_PING_PONG,   2) \
    X(128x64x128,          128,  64, 128, 4, 2, BSMI_SM120_COOPERATIVE, 3) \
    X(64x128x128,           64, 128, 128, 2, 4, BSMI_SM120_COOPERATIVE, 3) \
    X(64x64x128,            64,  64, 128, 2, 2, BSMI_SM120_COOPERATIVE, 4) \
    X(64x64x64,             64,  64,  64, 2, 2, BSMI_SM120_COOPERATIVE, 6) \
    X(64x64x32,             64,  64,  32, 2, 2, BSMI_SM120_COOPERATIVE, 8) \
    X(32x128x128,           32, 128, 128, 1, 4, BSMI_SM120_COOPERATIVE, 3) \
    X(16x128x128,           16, 128, 128, 1, 4, BSMI_SM120_COOPERATIVE, 4) \
    X(16x64x128,            16,  64, 128, 1, 2, BSMI_SM120_COOPERATIVE, 5) \
    X(64x64x128_split_k,    64,  64, 128, 2, 2, BSMI_SM120_SPLIT_K,     4) \
    X(16x64x128_split_k,    16,  64, 128, 1, 2, BSMI_SM120_SPLIT_K,     5)

/* A byte for each code in shared memory: codes of 4 and 6 bits are padded by TMA, which does that 128 at a time. */
#define BSMI_SM120_GEMM_OF_BYTES(X) \
    X(128x128x128,         128, 128, 128, 4, 2, BSMI_SM120_COOPERATIVE, 2) \
    X(64x64x128_pingpong,   64,  64, 128, 2, 2, BSMI_SM120_PING_PONG,   2) \
    X(128x64x128,          128,  64, 128, 4, 2, BSMI_SM120_COOPERATIVE, 3) \
    X(64x64x128,            64,  64, 128, 2, 2, BSMI_SM120_COOPERATIVE, 4) \
    X(32x128x128,           32, 128, 128, 1, 4, BSMI_SM120_COOPERATIVE, 3) \
    X(16x64x128,            16,  64, 128, 1, 2, BSMI_SM120_COOPERATIVE, 5) \
    X(64x64x128_split_k,    64,  64, 128, 2, 2, BSMI_SM120_SPLIT_K,     4)

/* e4m3 and e5m2, which nothing pads. */
#define BSMI_SM120_GEMM_OF_8_BITS(X) \
    X(256x128x64,          256, 128,  64, 4, 2, BSMI_SM120_COOPERATIVE, 2) \
    X(128x128x64_pingpong, 128, 128,  64, 2, 2, BSMI_SM120_PING_PONG,   2)

/* Rows of bf16. */
#define BSMI_SM120_GEMM_BF16(X) \
    X(128x128x128,         128, 128, 128, 4, 2, BSMI_SM120_COOPERATIVE, 2) \
    X(64x64x128_pingpong,   64,  64, 128, 2, 2, BSMI_SM120_PING_PONG,   2) \
    X(128x64x128,          128,  64, 128, 4, 2, BSMI_SM120_COOPERATIVE, 3) \
    X(64x128x128,           64, 128, 128, 2, 4, BSMI_SM120_COOPERATIVE, 3) \
    X(64x64x128,            64,  64, 128, 2, 2, BSMI_SM120_COOPERATIVE, 4) \
    X(32x128x128,           32, 128, 128, 1, 4, BSMI_SM120_COOPERATIVE, 3) \
    X(16x64x128,            16,  64, 128, 1, 2, BSMI_SM120_COOPERATIVE, 7)

#endif
