/* What one instance of the GEMM kernels whose warpgroups take turns consists of: sizes, shared memory, barriers, tiles. */
#pragma once

#include "decoding_config.cuh"
#include "register_instances.h"

/* The parameters are columns of the table in register_instances.h. */
template <class CODES_, int ROWS_, int GROUPS_, int STAGES_, int CODE_STAGES_, int MOST_COLUMNS_> struct turn_config {
    using CODES = CODES_;
    static constexpr int ROWS = ROWS_, COLUMNS = 64, GROUPS = GROUPS_, STAGES = STAGES_, CODE_STAGES = CODE_STAGES_;
    static constexpr int CLUSTER_ROWS = 1, CLUSTER_COLUMNS = 1, CLUSTER = 1;

    /* One warpgroup loads.  Those that multiply have turns of four steps each; WARPS is what they are together. */
    static constexpr int WARPS = 4 * GROUPS, THREADS = 128 * (GROUPS + 1), PRODUCTS = 1, PRODUCT_SUMS = ROWS / 2, STEPS = 4, ROW_LOADERS = 2;

    /* The registers of an SM are dealt out evenly at first, the same number of warps to each of its four parts. */
    static constexpr int EVEN = 65536 / THREADS / 8 * 8, PRODUCER = 40;
    static constexpr int CONSUMER = ((GROUPS + 1) * EVEN - PRODUCER) / GROUPS / 8 * 8;

    /* A stage of A: of its rows as many columns as a turn has.  A stage of codes: 128 bytes of each of B's rows, which are as many. */
    static constexpr int A_BOX_ROWS = ROWS, K_BYTES = BSMI_K_STEP * 2, A_BYTES = ROWS * K_BYTES;
    static constexpr int CODE_BYTES = COLUMNS * 128;

    /* Scales of the tile's rows of B, all of them: a row's bytes, and 16 so that rows lie in banks of their own.  Some warps bring those of
     * some rows each. */
    static constexpr int BLOCK = CODES::MICRO ? 16 : 32, SCALE_PITCH = MOST_COLUMNS_ / BLOCK + 16, SCALE_BYTES = COLUMNS * SCALE_PITCH;
    static constexpr int BRINGERS = 8, WARP_ROWS = COLUMNS / BRINGERS;

    /* For the epilogue, as decoding_config has them; tables are each warpgroup's own. */
    static constexpr int ROW_TABLE_BYTES = 3 * 4 * ROWS, TABLE_BYTES = ROW_TABLE_BYTES + 3 * 4 * COLUMNS;
    static constexpr int CHUNK = ROWS < 32 ? ROWS : 32, CHUNK_PITCH = 16 * 4 + 16, CHUNKS_BYTES = BSMI_SM90_TURN_CHUNKS(ROWS);

    /* Shared memory, from its beginning. */
    static constexpr int AT_A = 0, AT_CODES = AT_A + STAGES * STEPS * A_BYTES, AT_SUMS = AT_CODES + CODE_STAGES * CODE_BYTES,
                         AT_SCALES = AT_SUMS + ROWS * COLUMNS * 4, AT_EXPONENTS = AT_SCALES + SCALE_BYTES, AT_FOUND = AT_EXPONENTS + COLUMNS * 4,
                         AT_TABLES = AT_FOUND + BRINGERS * 4, AT_CHUNKS = AT_TABLES + GROUPS * TABLE_BYTES, AT_FULL = AT_CHUNKS + CHUNKS_BYTES,
                         AT_EMPTY = AT_FULL + STAGES * 8, AT_CODES_FULL = AT_EMPTY + STAGES * 8, AT_CODES_EMPTY = AT_CODES_FULL + CODE_STAGES * 8,
                         AT_TURNS = AT_CODES_EMPTY + CODE_STAGES * 8, AT_READY = AT_TURNS + WARPS * 8, AT_READ = AT_READY + 8,
                         SHARED_BYTES = AT_READ + 8;

    /* The second ring, for gemm_ring and the functions of barriers. */
    struct codes_ring { static constexpr int STAGES = CODE_STAGES_, AT_FULL = AT_CODES_FULL, AT_EMPTY = AT_CODES_EMPTY; };

    static_assert(CODES::NIBBLES, "codes of four bits");
    static_assert(CODE_STAGES > GROUPS, "codes are loaded while others are decoded");
    static_assert(WARPS >= BRINGERS && COLUMNS % BRINGERS == 0, "warps bring whole rows of scales");
    static_assert(ROWS % CHUNK == 0 && CHUNK % 16 == 0 && 4 * CHUNK * CHUNK_PITCH <= CHUNKS_BYTES, "a warp finishes 16 rows at a time");
    static_assert(A_BOX_ROWS % 8 == 0 && A_BYTES % 1024 == 0, "boxes are whole swizzle patterns");
    static_assert(SCALE_PITCH % 16 == 0 && AT_SCALES % 16 == 0, "rows of scales are copied 16 bytes at a time");
    static_assert(SHARED_BYTES == BSMI_SM90_TURN_BYTES(BLOCK, ROWS, GROUPS, STAGES, CODE_STAGES, MOST_COLUMNS_), "as the host has it");
    static_assert(SHARED_BYTES <= 232448, "shared memory of a CTA");
};
