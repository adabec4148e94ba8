/* What one instance of the mixed-input kernels with rows of prepacked weights consists of: sizes, threads, places in
 * shared memory. */
#pragma once

#include "mixed_input_config.cuh"

/* The parameters are columns of the table in mixed_input_instances.h. */
template <class CODES_, int PARTS_, int ROWS_, int GROUPS_, int STAGES_, int CODE_STAGES_>
struct mixed_input_rows_config {
    using CODES = CODES_;
    using PARAMETERS = bsmi_mixed_input_parameters;
    static constexpr int PARTS = PARTS_, ROWS = ROWS_, GROUPS = GROUPS_, COLUMNS = 64 * GROUPS, STAGES = STAGES_;

    /* Tiles of the last round may come in halves, of half the rows. */
    static constexpr bool HALVES = BSMI_MIXED_INPUT_ROWS_HALVES(ROWS, GROUPS);

    /* CTAs of a cluster have PARTS of K of one tile, and no tiles of their own, as others that ask for this have. */
    static constexpr int CLUSTER_ROWS = 1, CLUSTER_COLUMNS = 1, CLUSTER = 1;

    /* Each step of a slice has a stage of its own, always the same, and a slice all its steps: those behind the last of
     * K pass empty. */
    static constexpr bool FIXED_STAGES = BSMI_PREPACKED_STEPS % STAGES_ == 0;

    /* A consumer warpgroup multiplies 64 rows of B with all rows of A: a thread has ROWS / 4 sums of each of two
     * columns of D. */
    static constexpr int WARPS = 4 * GROUPS, THREADS = BSMI_MIXED_INPUT_ROWS_THREADS(GROUPS), PRODUCTS = 1,
                         PRODUCT_SUMS = ROWS / 2;

    /* The registers of an SM are dealt out evenly at first; the loaders give some to several consumers. */
    static constexpr int EVEN = 65536 / THREADS / 8 * 8, PRODUCER = 24,
                         CONSUMER = ((GROUPS + 1) * EVEN - PRODUCER) / GROUPS / 8 * 8;

    /* A stage of A is a step of 64 columns. */
    static constexpr int K_BYTES = BSMI_K_STEP * 2, A_BYTES = ROWS * K_BYTES;

    /* A stage of B's codes: a slice of prepacked weights for each warpgroup. */
    static constexpr int BLOCK = CODES::MICRO ? 16 : 32, SLICE_BYTES = BSMI_PREPACKED_SLICE_BYTES(BLOCK),
                         CODE_BYTES = GROUPS * SLICE_BYTES, CODE_STEPS = BSMI_PREPACKED_STEPS;

    /* For the epilogue: each warpgroup has tables and chunks of its own. */
    static constexpr int ROW_TABLE_BYTES = 3 * 4 * ROWS, TABLE_BYTES = ROW_TABLE_BYTES + 3 * 4 * 64;
    /* Groups' tiles, of four warpgroups, are narrow and not the same. */
    static constexpr bool CODE_OF_EACH_CHUNK = GROUPS <= 2;
    static constexpr int CHUNK = 32, CHUNK_PITCH = 16 * 4 + 16,
                         CHUNK_BYTES = BSMI_MIXED_INPUT_ROWS_CHUNK_BYTES(PARTS, ROWS);

    enum : int {
#define PLACE(name, bytes) AT_##name, END_OF_##name = AT_##name + (bytes) - 1,
        BSMI_MIXED_INPUT_ROWS_REGIONS(PLACE, BLOCK, PARTS, ROWS, GROUPS, STAGES, CODE_STAGES_)
#undef PLACE
        SHARED_BYTES
    };

    /* The ring of codes, for gemm_ring and the functions of barriers. */
    struct codes_ring {
        static constexpr int STAGES = CODE_STAGES_, AT_FULL = AT_CODES_FULL, AT_EMPTY = AT_CODES_EMPTY;
    };

    static_assert(CODES::NIBBLES, "codes of four bits");
    static_assert(CODE_STEPS % 2 == 0, "two sets of operands take turns in a slice");
    static_assert(PARTS == 1 || (PARTS == BSMI_K_PARTS && ROWS / PARTS % CHUNK == 0 && CHUNK_BYTES >= ROWS * 128),
                  "each part's CTA finishes half of the rows, for which the other one gives its sums");
    static_assert(4 * CHUNK * CHUNK_PITCH <= CHUNK_BYTES, "each of four warps has a chunk");
    static_assert(ROWS % CHUNK == 0 && CHUNK % 16 == 0, "a warp finishes 16 rows at a time");
    static_assert(A_BYTES % 1024 == 0 && ROWS <= 256, "boxes are whole swizzle patterns of at most 256 rows");
    static_assert(SLICE_BYTES % 16 == 0 && AT_CODES % 16 == 0 && AT_CHUNKS % 16 == 0 && AT_FULL % 8 == 0,
                  "copies; vectors; barriers");
    static_assert(SHARED_BYTES <= 232448, "shared memory of a CTA");
};
