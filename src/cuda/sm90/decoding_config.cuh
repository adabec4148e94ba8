/* What one instance of the decoding GEMM kernels consists of: sizes, shared memory, barriers, tiles. */
#pragma once

#include "cuda/ptx/wgmma_registers.cuh"
#include "gemm_config.cuh"

/* What B's rows hold, and how far 128 bytes of a row reach.  Scales lie as 128x4 (docs/layouts.md): pieces of 512 bytes, each four scale
 * columns of 128 rows. */
struct codes_mxfp4 { static constexpr bool NIBBLES = true, MICRO = false; };     /* e2m1, blocks of 32 with e8m0 */
struct codes_nvfp4 { static constexpr bool NIBBLES = true, MICRO = true; };      /* e2m1, blocks of 16 with ue4m3 */
struct codes_bytes { static constexpr bool NIBBLES = false, MICRO = false; };    /* 8 and 6 bits, a byte each, blocks of 32 with e8m0 */

/* The parameters are columns of the table in gemm_instances.h. */
template <class CODES_, int ROWS_, int COLUMNS_, int CLUSTER_COLUMNS_, int STAGES_, int CODE_STAGES> struct decoding_config {
    using CODES = CODES_;
    static constexpr int ROWS = ROWS_, COLUMNS = COLUMNS_, STAGES = STAGES_;
    static constexpr int CLUSTER_ROWS = 1, CLUSTER_COLUMNS = CLUSTER_COLUMNS_, CLUSTER = CLUSTER_COLUMNS;

    /* A consumer warpgroup has 64 rows of B, each thread two of them with ROWS / 4 sums each. */
    static constexpr int GROUPS = COLUMNS / 64, SUMS = ROWS / 2, THREADS = 128 * (GROUPS + 1);

    static constexpr int A_BOX_ROWS = ROWS / CLUSTER_COLUMNS, K_BYTES = BSMI_K_STEP * 2, A_BYTES = ROWS * K_BYTES;

    /* A stage of codes: 128 bytes of each row, and the scales that they need. */
    static constexpr int CODE_COLUMNS = CODES::NIBBLES ? 256 : 128, CODE_STEPS = CODE_COLUMNS / BSMI_K_STEP;
    static constexpr int PIECE_COLUMNS = 4 * (CODES::MICRO ? 16 : 32), PIECES = CODE_COLUMNS / PIECE_COLUMNS, PIECE_BYTES = 512;
    static constexpr int CODE_BYTES = COLUMNS * 128, SCALE_BYTES = PIECES * PIECE_BYTES;

    /* What belongs to rows of A, for each consumer warpgroup: three numbers a row. */
    static constexpr int TABLE_BYTES = 3 * 4 * ROWS;

    /* Shared memory, from its beginning. */
    static constexpr int AT_A = 0, AT_CODES = AT_A + STAGES * A_BYTES, AT_SCALES = AT_CODES + CODE_STAGES * CODE_BYTES,
                         AT_TABLES = AT_SCALES + CODE_STAGES * SCALE_BYTES, AT_FULL = AT_TABLES + GROUPS * TABLE_BYTES,
                         AT_EMPTY = AT_FULL + STAGES * 8, AT_CODES_FULL = AT_EMPTY + STAGES * 8,
                         AT_CODES_EMPTY = AT_CODES_FULL + CODE_STAGES * 8, SHARED_BYTES = AT_CODES_EMPTY + CODE_STAGES * 8;

    /* The second ring, for gemm_ring and the functions of barriers. */
    struct codes_ring { static constexpr int STAGES = CODE_STAGES, AT_FULL = AT_CODES_FULL, AT_EMPTY = AT_CODES_EMPTY; };

    static_assert(COLUMNS == 64 || COLUMNS == 128, "one or two warpgroups, within the 128 rows of a piece of scales");
    static_assert(A_BYTES % 1024 == 0, "swizzle patterns begin at multiples of 1024 bytes");
    static_assert(A_BOX_ROWS % 8 == 0 && A_BOX_ROWS <= 256, "boxes are whole swizzle patterns of at most 256 rows");
    static_assert(SHARED_BYTES <= 232448, "shared memory of a CTA");
};
