/* The mixed-input GEMM kernels for GeForce RTX 50, RTX PRO and GB10, each for MXFP4 and for NVFP4: A is bf16, B is
 * decoded in registers.  The kernel is bsmi_gemm_sm120_CODES_TILE, for a person cuda_mma_sync_CODES_TILE.
 *
 *   source        what B is read from: scales as they are stored, scales brought to layout 128x4, or prepacked weights
 *   rows, groups  of D: rows of A, and 64 columns for each group of four warps
 *   a_steps       steps of 64 columns of K in a stage of A's rows
 *   stages        of the ring of A's rows
 *   code_stages   of the ring of B's codes
 *   scales        as stored: of a row, at most; 0: any K */
#ifndef BSMI_SM120_MIXED_INPUT_INSTANCES_H
#define BSMI_SM120_MIXED_INPUT_INSTANCES_H

#include "cuda/params/gemm.h"
#include "cuda/sm90/operand/prepacked_layout.h"

/*    tile              source                    rows g a_steps st codes scales */
#define BSMI_SM120_MIXED_INPUT_STORED(X) \
    X(16x64_stored,     BSMI_SOURCE_AS_STORED,      16, 1, 4,     2,    4,   640) \
    X(64x64_stored,     BSMI_SOURCE_AS_STORED,      64, 1, 1,     3,    3,   640) \
    X(16x64_128x4,      BSMI_SOURCE_SCALES_128X4,   16, 1, 4,     2,    7,     0) \
    X(128x128_128x4,    BSMI_SOURCE_SCALES_128X4,  128, 2, 1,     3,    2,     0)
#define BSMI_SM120_MIXED_INPUT_PREPACKED(X) \
    X(8x64_prepacked,   BSMI_SOURCE_PREPACKED,       8, 1, 6,     3,    5,     0) \
    X(16x64_prepacked,  BSMI_SOURCE_PREPACKED,      16, 1, 3,     3,    5,     0) \
    X(64x64_prepacked,  BSMI_SOURCE_PREPACKED,      64, 1, 1,     4,    4,     0)

/* The warps that multiply, one that loads codes, one that loads rows. */
#define BSMI_SM120_MIXED_INPUT_THREADS(groups) (128 * (groups) + 64)

/* A stage of codes: 128 bytes of each row, or a slice of prepacked weights; with 128x4, pieces of 512 bytes that have
 * four scales of 128 rows each. */
#define BSMI_SM120_MIXED_INPUT_CODE_BYTES(block, source, groups) \
    ((source) == BSMI_SOURCE_PREPACKED ? BSMI_PREPACKED_SLICE_BYTES(block) : 64 * (groups) * 128)
#define BSMI_SM120_MIXED_INPUT_PIECE_BYTES(block, source) \
    ((source) == BSMI_SOURCE_SCALES_128X4 ? 256 / (4 * (block)) * 512 : 0)

/* Sums on their way to D: of each warp 16 rows and 16 columns, 80 bytes a row; later, with prepacked weights, elements
 * that bf16 cannot hold, in 6912 bytes.  With scales as stored these lie where the scales were. */
#define BSMI_SM120_MIXED_INPUT_CHUNK_BYTES(source, groups) \
    ((source) == BSMI_SOURCE_PREPACKED ? 6912 : (groups) * 4 * 80 * 16)

/* Shared memory from its beginning, X(name, bytes): the rings of A's rows and of B's codes; scales of a tile, 16 bytes
 * more a row so that rows lie in banks of their own, or of the stages; tables of rows and columns; sums on their way;
 * barriers. */
#define BSMI_SM120_MIXED_INPUT_REGIONS(X, block, source, rows, groups, a_steps, stages, code_stages, scales) \
    X(A, (stages) * (a_steps) * (rows) * BSMI_K_STEP * 2) \
    X(CODES, (code_stages) * BSMI_SM120_MIXED_INPUT_CODE_BYTES(block, source, groups)) \
    X(SCALES, (source) == BSMI_SOURCE_AS_STORED \
                  ? 64 * ((scales) + 16) \
                  : (code_stages) * BSMI_SM120_MIXED_INPUT_PIECE_BYTES(block, source)) \
    X(TABLES, (groups) * 12 * ((rows) + 64)) \
    X(CHUNKS, BSMI_SM120_MIXED_INPUT_CHUNK_BYTES(source, groups)) \
    X(FULL, (stages) * 8) \
    X(EMPTY, (stages) * 8) \
    X(CODES_FULL, (code_stages) * 8) \
    X(CODES_EMPTY, (code_stages) * 8)

#define BSMI_SM120_MIXED_INPUT_ADD(name, bytes) + (bytes)
#define BSMI_SM120_MIXED_INPUT_SHARED_BYTES(...) \
    (0 BSMI_SM120_MIXED_INPUT_REGIONS(BSMI_SM120_MIXED_INPUT_ADD, __VA_ARGS__))

#endif
