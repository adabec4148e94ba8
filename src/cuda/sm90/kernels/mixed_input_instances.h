/* The instances of the mixed-input GEMM kernels, each for MXFP4 and for NVFP4: bsmi_gemm_CODES_TILE, for a person
 * cuda_wgmma_CODES_TILE.  Host and kernels read this table, and the list of what lies in shared memory.
 *
 *   source        what the weight operand, B, is read from
 *   schedule      how the warpgroups that multiply divide a tile: rows of B, 64 each, or slices of K
 *   rows          of D that a CTA makes
 *   groups        consumer warpgroups
 *   ctas          of an SM at one time
 *   stages        of the ring of A's rows
 *   code_stages   of the ring of B's codes; one warpgroup has one ring for both
 *   columns       of K, at most; 0: any */
#ifndef BSMI_SM90_MIXED_INPUT_INSTANCES_H
#define BSMI_SM90_MIXED_INPUT_INSTANCES_H

#include "cuda/params/gemm.h"
#include "cuda/sm90/operand/prepacked_layout.h"

/* Prepacked K may have any length that a matrix can have. */
enum { BSMI_PREPACKED_MOST_COLUMNS = 1 << 30 };

/*    tile                     source                    schedule                  rows g cta st codes columns */
#define BSMI_SM90_MIXED_INPUT_AS_STORED(X) \
    X(64x64_1x1_registers,    BSMI_SOURCE_AS_STORED,    BSMI_SCHEDULE_ROWS,          64, 1, 1, 3,  3, 20480) \
    X(64x64_1x1_registers_4k, BSMI_SOURCE_AS_STORED,    BSMI_SCHEDULE_ROWS,          64, 1, 2, 2,  2,  4096) \
    X(16x64_1x1_interleaved,  BSMI_SOURCE_AS_STORED,    BSMI_SCHEDULE_K_INTERLEAVED, 16, 3, 1, 6, 10, 20480) \
    X(32x64_1x1_interleaved,  BSMI_SOURCE_AS_STORED,    BSMI_SCHEDULE_K_INTERLEAVED, 32, 3, 1, 4,  6, 20480)
#define BSMI_SM90_MIXED_INPUT_SCALES_128X4(X) \
    X(256x128_1x1,            BSMI_SOURCE_SCALES_128X4, BSMI_SCHEDULE_ROWS,         256, 2, 1, 4,  3,     0)
#define BSMI_SM90_MIXED_INPUT_PREPACKED(X) \
    X(16x64_prepacked, BSMI_SOURCE_PREPACKED, BSMI_SCHEDULE_K_INTERLEAVED, 16, 3, 1, 6, 7, BSMI_PREPACKED_MOST_COLUMNS)\
    X(32x64_prepacked, BSMI_SOURCE_PREPACKED, BSMI_SCHEDULE_K_INTERLEAVED, 32, 3, 1, 4, 6, BSMI_PREPACKED_MOST_COLUMNS)\
    X(64x64_prepacked, BSMI_SOURCE_PREPACKED, BSMI_SCHEDULE_K_INTERLEAVED, 64, 2, 1, 3, 4, BSMI_PREPACKED_MOST_COLUMNS)

/* One warp loads for one warpgroup, and one warpgroup for several. */
#define BSMI_MIXED_INPUT_THREADS(groups) ((groups) == 1 ? 128 + 32 : 128 * ((groups) + 1))

/* Of D that a CTA makes. */
#define BSMI_MIXED_INPUT_COLUMNS(schedule, groups) ((schedule) == BSMI_SCHEDULE_ROWS ? 64 * (groups) : 64)

/* Steps of 64 columns in a stage of A's rows; bytes of a stage of codes, which are four steps or a slice of prepacked
 * weights. */
#define BSMI_MIXED_INPUT_STEPS(source) \
    ((source) == BSMI_SOURCE_SCALES_128X4 ? 1 : (source) == BSMI_SOURCE_PREPACKED ? BSMI_PREPACKED_STEPS : 4)
#define BSMI_MIXED_INPUT_CODE_BYTES(block, source, schedule, groups)    \
    ((source) == BSMI_SOURCE_PREPACKED ? BSMI_PREPACKED_SLICE_BYTES(block) \
                                       : BSMI_MIXED_INPUT_COLUMNS(schedule, groups) * 128)

/* Scales in shared memory: of each of a tile's rows all, and 16 bytes so that rows lie in banks of their own; or of a
 * stage of 256 columns pieces of 512 bytes, each of which has four scales of 128 rows. */
#define BSMI_MIXED_INPUT_SCALE_BYTES(block, source, code_stages, columns)        \
    ((source) == BSMI_SOURCE_AS_STORED ? 64 * ((columns) / (block) + 16)         \
     : (source) == BSMI_SOURCE_SCALES_128X4 ? (code_stages) * (256 / (4 * (block))) * 512 : 0)

/* Sums on their way to D, of each warp some rows and 16 columns, 80 bytes a row.  Interleaved warpgroups share a place
 * for them, which later has elements that bf16 cannot hold, in 6912 bytes. */
#define BSMI_MIXED_INPUT_CHUNK(source, rows) ((source) == BSMI_SOURCE_PREPACKED || (rows) < 32 ? 16 : 32)
#define BSMI_MIXED_INPUT_CHUNK_BYTES(source, schedule, rows, groups)                                      \
    ((schedule) == BSMI_SCHEDULE_ROWS ? (groups) * 4 * 80 * BSMI_MIXED_INPUT_CHUNK(source, rows)          \
     : BSMI_MIXED_INPUT_CHUNK(source, rows) == 16 ? 6912 : 4 * 80 * 32)

/* What is for scales that interleaved warpgroups load themselves, and nothing else. */
#define BSMI_MIXED_INPUT_IF_FOUND(source, schedule, bytes) \
    ((source) == BSMI_SOURCE_AS_STORED && (schedule) == BSMI_SCHEDULE_K_INTERLEAVED ? (bytes) : 0)

/* Shared memory from its beginning, X(name, bytes): the rings of A's rows and of B's codes; sums that are handed on;
 * scales; exponents of the tile's columns, and what each of eight warps has found about scales; tables of rows and
 * columns; sums on their way to D; barriers. */
#define BSMI_MIXED_INPUT_REGIONS(X, block, source, schedule, rows, groups, ctas, stages, code_stages, columns) \
    X(A, (stages) * BSMI_MIXED_INPUT_STEPS(source) * (rows) * BSMI_K_STEP * 2)                                 \
    X(CODES, (code_stages) * BSMI_MIXED_INPUT_CODE_BYTES(block, source, schedule, groups))                     \
    X(SUMS, (schedule) == BSMI_SCHEDULE_K_INTERLEAVED ? (rows) * 64 * 4 : 0)                                   \
    X(SCALES, BSMI_MIXED_INPUT_SCALE_BYTES(block, source, code_stages, columns))                               \
    X(EXPONENTS, BSMI_MIXED_INPUT_IF_FOUND(source, schedule, 64 * 4))                                          \
    X(FOUND, BSMI_MIXED_INPUT_IF_FOUND(source, schedule, 8 * 4))                                               \
    X(TABLES, (groups) * 12 * ((rows) + 64))                                                                   \
    X(CHUNKS, BSMI_MIXED_INPUT_CHUNK_BYTES(source, schedule, rows, groups))                                    \
    X(FULL, (stages) * 8)                                                                                      \
    X(EMPTY, (stages) * 8)                                                                                     \
    X(CODES_FULL, (groups) == 1 ? 0 : (code_stages) * 8)                                                       \
    X(CODES_EMPTY, (groups) == 1 ? 0 : (code_stages) * 8)                                                      \
    X(SCALES_FULL, BSMI_MIXED_INPUT_IF_FOUND(source, schedule, 8))                                             \
    X(SCALES_EMPTY, BSMI_MIXED_INPUT_IF_FOUND(source, schedule, 8))

/* Rows of prepacked weights: D of `rows` x 64 `groups` a CTA, whose consumer warpgroups have 64 rows of B each.  With 6
 * stages each step of a slice has a stage of its own; where a step is short, or has many bytes, more of them have to be
 * under way than six or three stages hold. */
/*    tile                  rows g  st codes */
#define BSMI_SM90_MIXED_INPUT_ROWS(X) \
    X(64x128_rows_prepacked,  64, 2, 14, 3) \
    X(128x64_rows_prepacked, 128, 1,  9, 4) \
    X(256x64_rows_prepacked, 256, 1,  5, 3) \
    X(128x128_rows_prepacked,128, 2,  6, 3) \
    X(256x128_rows_prepacked,256, 2,  4, 2)

/* K in two parts (prepacked_layout.h), BSM_ORDER_SPLIT_K: K-interleaved, one part behind the other, */
#define BSMI_SM90_MIXED_INPUT_PARTS_IN_TURN(X) \
    X(16x64_split_k, BSMI_SOURCE_PREPACKED, BSMI_SCHEDULE_K_INTERLEAVED, 16, 3, 1, 6, 7, BSMI_PREPACKED_MOST_COLUMNS) \
    X(32x64_split_k, BSMI_SOURCE_PREPACKED, BSMI_SCHEDULE_K_INTERLEAVED, 32, 3, 1, 4, 6, BSMI_PREPACKED_MOST_COLUMNS)
#define BSMI_MIXED_INPUT_PARTS_SHARED_BYTES(block, source, schedule, rows, ...) \
    ((BSMI_MIXED_INPUT_SHARED_BYTES(block, source, schedule, rows, __VA_ARGS__) + 15) / 16 * 16 + (rows) * 64 * 4)

/* or rows of prepacked weights, a part for each CTA of a cluster. */
/*    tile            rows g  st codes */
#define BSMI_SM90_MIXED_INPUT_SPLIT_K(X) \
    X(64x128_split_k,  64, 2, 14, 3) \
    X(128x128_split_k,128, 2,  6, 3)

/* Whose tiles of a last round that would leave half of the SMs idle come in halves. */
#define BSMI_MIXED_INPUT_ROWS_HALVES(rows, groups) ((rows) == 256 && (groups) == 2)

/* Two warps load, of a warpgroup that gives several others its registers. */
#define BSMI_MIXED_INPUT_ROWS_THREADS(groups) ((groups) == 1 ? 128 + 64 : 128 * ((groups) + 1))

/* Of a warpgroup, sums on their way to D; before that, of a part of K, those that the other CTA gives of half of the
 * rows. */
#define BSMI_MIXED_INPUT_ROWS_CHUNK_BYTES(parts, rows) \
    ((parts) > 1 && (rows) * 128 > 4 * 80 * 32 ? (rows) * 128 : 4 * 80 * 32)

/* Shared memory from its beginning: the rings of A's rows and of slices; tables of rows and columns; sums on their way
 * to D; barriers. */
#define BSMI_MIXED_INPUT_ROWS_REGIONS(X, block, parts, rows, groups, stages, code_stages) \
    X(A, (stages) * (rows) * BSMI_K_STEP * 2)                                             \
    X(CODES, (code_stages) * (groups) * BSMI_PREPACKED_SLICE_BYTES(block))                \
    X(TABLES, (groups) * 12 * ((rows) + 64))                                              \
    X(CHUNKS, (groups) * BSMI_MIXED_INPUT_ROWS_CHUNK_BYTES(parts, rows))                  \
    X(FULL, (stages) * 8)                                                                 \
    X(EMPTY, (stages) * 8)                                                                \
    X(CODES_FULL, (code_stages) * 8)                                                      \
    X(CODES_EMPTY, (code_stages) * 8)                                                     \
    X(GIVEN, (parts) > 1 ? (groups) * 8 : 0)                                              \
    X(TAKEN, (parts) > 1 ? (groups) * 8 : 0)

#define BSMI_MIXED_INPUT_ROWS_SHARED_BYTES(...) (0 BSMI_MIXED_INPUT_ROWS_REGIONS(BSMI_MIXED_INPUT_ADD, __VA_ARGS__))

#define BSMI_MIXED_INPUT_ADD(name, bytes) + (bytes)
#define BSMI_MIXED_INPUT_SHARED_BYTES(...) (0 BSMI_MIXED_INPUT_REGIONS(BSMI_MIXED_INPUT_ADD, __VA_ARGS__))

#endif
