/* What one instance of the decoding GEMM kernels with 128 columns consists of: sizes, shared memory, barriers. */
#pragma once

#include "decoding_config.cuh"

/* The parameters are columns of the table in gemm_instances.h. */
template <class CODES_, int ROWS_, int CLUSTER_COLUMNS_, int STAGES_, int CODE_STAGES> struct wide_config {
    using CODES = CODES_;
    static constexpr int ROWS = ROWS_, COLUMNS = 128, STAGES = STAGES_, GROUPS = 2;
    static constexpr int CLUSTER_ROWS = 1, CLUSTER_COLUMNS = CLUSTER_COLUMNS_, CLUSTER = CLUSTER_COLUMNS;

    /* Each of two consumer warpgroups has 64 rows of B, a thread two of them with ROWS / 4 sums each. */
    static constexpr int PRODUCTS = 1, PRODUCT_SUMS = ROWS / 2;
    static constexpr int WARPGROUPS = 1 + GROUPS, THREADS = 128 * WARPGROUPS, PRODUCER = 40, CONSUMER = 232;

    /* A stage: rows of A. */
    static constexpr int A_BOX_ROWS = ROWS / CLUSTER_COLUMNS, K_BYTES = BSMI_K_STEP * 2, A_BYTES = ROWS * K_BYTES;

    /* A stage of codes: 128 bytes of each row, and the scales that they need. */
    static constexpr int CODE_COLUMNS = 256, CODE_STEPS = CODE_COLUMNS / BSMI_K_STEP;
    static constexpr int PIECE_COLUMNS = 4 * (CODES::MICRO ? 16 : 32), PIECES = CODE_COLUMNS / PIECE_COLUMNS, PIECE_BYTES = 512;
    static constexpr int CODE_BYTES = COLUMNS * 128, SCALE_BYTES = PIECES * PIECE_BYTES;

    /* Of each consumer warpgroup, as in decoding_config. */
    static constexpr int ROW_TABLE_BYTES = 3 * 4 * ROWS, TABLE_BYTES = ROW_TABLE_BYTES + 3 * 4 * 64;
    static constexpr int CHUNK = 32, CHUNK_PITCH = 16 * 4 + 16;

    /* Shared memory, from its beginning. */
    static constexpr int AT_A = 0, AT_CODES = AT_A + STAGES * A_BYTES, AT_SCALES = AT_CODES + CODE_STAGES * CODE_BYTES,
                         AT_TABLES = AT_SCALES + CODE_STAGES * SCALE_BYTES, AT_CHUNKS = AT_TABLES + GROUPS * TABLE_BYTES,
                         AT_FULL = AT_CHUNKS + GROUPS * 4 * CHUNK * CHUNK_PITCH, AT_EMPTY = AT_FULL + STAGES * 8,
                         AT_CODES_FULL = AT_EMPTY + STAGES * 8, AT_CODES_EMPTY = AT_CODES_FULL + CODE_STAGES * 8,
                         SHARED_BYTES = AT_CODES_EMPTY + CODE_STAGES * 8;

    /* The second ring, for gemm_ring and the functions of barriers. */
    struct codes_ring { static constexpr int STAGES = CODE_STAGES, AT_FULL = AT_CODES_FULL, AT_EMPTY = AT_CODES_EMPTY; };

    static_assert(A_BOX_ROWS % 8 == 0 && A_BOX_ROWS <= 256, "boxes are whole swizzle patterns of at most 256 rows");
    static_assert(PRODUCER + GROUPS * CONSUMER <= WARPGROUPS * (65536 / THREADS / 8 * 8), "registers of an SM");
    static_assert(SHARED_BYTES <= 232448, "shared memory of a CTA");
};
