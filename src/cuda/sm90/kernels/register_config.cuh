/* What one instance of the GEMM kernels that decode in registers consists of: sizes, shared memory, barriers, tiles. */
#pragma once

#include "decoding_config.cuh"
#include "register_instances.h"

/* The parameters are columns of the table in register_instances.h. */
template <class CODES_, int ROWS_, int CLUSTER_COLUMNS_, int CTAS_, int STAGES_, int MOST_COLUMNS_> struct register_config {
    using CODES = CODES_;
    static constexpr int ROWS = ROWS_, COLUMNS = 64, STAGES = STAGES_, CTAS = CTAS_, MOST_COLUMNS = MOST_COLUMNS_;
    static constexpr int CLUSTER_ROWS = 1, CLUSTER_COLUMNS = CLUSTER_COLUMNS_, CLUSTER = CLUSTER_COLUMNS;

    /* One warpgroup multiplies, one warp loads. */
    static constexpr int THREADS = 128 + 32, PRODUCTS = 1, PRODUCT_SUMS = ROWS / 2;

    /* A stage: 128 bytes of each of B's rows, and of A's rows as many columns, which are four steps of K. */
    static constexpr int STEPS = 4, A_BOX_ROWS = ROWS / CLUSTER_COLUMNS, K_BYTES = BSMI_K_STEP * 2, A_BYTES = ROWS * K_BYTES;
    static constexpr int CODE_BYTES = COLUMNS * 128;

    /* Scales of the tile's rows of B, all of them: a row's bytes, and 16 so that rows lie in banks of their own. */
    static constexpr int BLOCK = CODES::MICRO ? 16 : 32, SCALE_PITCH = MOST_COLUMNS / BLOCK + 16;
    static constexpr int SCALE_BYTES = COLUMNS * SCALE_PITCH, WARP_ROWS = COLUMNS / 4;

    /* For the epilogue, as decoding_config has them. */
    static constexpr int ROW_TABLE_BYTES = 3 * 4 * ROWS, TABLE_BYTES = ROW_TABLE_BYTES + 3 * 4 * COLUMNS;
    static constexpr int CHUNK = ROWS < 32 ? ROWS : 32, CHUNK_PITCH = 16 * 4 + 16;

    /* Shared memory, from its beginning. */
    static constexpr int AT_A = 0, AT_CODES = AT_A + STAGES * STEPS * A_BYTES, AT_SCALES = AT_CODES + STAGES * CODE_BYTES,
                         AT_TABLES = AT_SCALES + SCALE_BYTES, AT_CHUNKS = AT_TABLES + TABLE_BYTES,
                         AT_FULL = AT_CHUNKS + 4 * CHUNK * CHUNK_PITCH, AT_EMPTY = AT_FULL + STAGES * 8, SHARED_BYTES = AT_EMPTY + STAGES * 8;

    static_assert(CODES::NIBBLES, "codes of four bits");
    static_assert(ROWS % CHUNK == 0 && CHUNK % 16 == 0, "a warp finishes 16 rows at a time");
    static_assert(A_BOX_ROWS % 8 == 0 && A_BYTES % 1024 == 0, "boxes are whole swizzle patterns");
    static_assert(SCALE_PITCH % 16 == 0, "rows of scales are copied 16 bytes at a time");
    static_assert(SHARED_BYTES <= 232448 && CTAS * (SHARED_BYTES + 1024) <= 233472, "shared memory of a multiprocessor");
};
