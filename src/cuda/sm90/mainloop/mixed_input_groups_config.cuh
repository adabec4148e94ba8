/* What one instance of the mixed-input kernels for groups of rows consists of: sizes, threads, registers, places in
 * shared memory. */
#pragma once

#include "cuda/sm90/kernels/mixed_input_groups_instances.h"
#include "mixed_input_config.cuh"

/* The parameters are columns of the table in mixed_input_groups_instances.h. */
template <class CODES_, int ROWS_, int GROUPS_, bool BY_WARPS_, int STAGES_, int CODE_STAGES_>
struct mixed_input_groups_config {
    using CODES = CODES_;
    using PARAMETERS = bsmi_mixed_input_parameters;
    static constexpr bool BY_WARPS = BY_WARPS_;
    static constexpr int ROWS = ROWS_, GROUPS = GROUPS_, COLUMNS = 64 * GROUPS, STAGES = STAGES_;

    /* There is no cluster; what other kernels share with these asks for it. */
    static constexpr int CLUSTER_ROWS = 1, CLUSTER_COLUMNS = 1, CLUSTER = 1;

    /* A consumer warpgroup multiplies 64 rows of B with all rows of A: a thread has ROWS / 4 sums of each of two
     * columns of D. */
    static constexpr int WARPS = 4 * GROUPS, THREADS = BSMI_MIXED_INPUT_ROWS_THREADS(GROUPS), PRODUCTS = 1,
                         PRODUCT_SUMS = ROWS / 2;

    /* The registers of an SM are dealt out evenly at first; the loaders give some to several consumers. */
    static constexpr int EVEN = 65536 / THREADS / 8 * 8, PRODUCER = 32,
                         CONSUMER = ((GROUPS + 1) * EVEN - PRODUCER) / GROUPS / 8 * 8;

    /* A stage of A: some steps of 64 columns, so that a slice has whole stages. */
    static constexpr int K_BYTES = BSMI_K_STEP * 2, A_STEPS = BSMI_GROUPS_A_STEPS, STEP_BYTES = ROWS * K_BYTES,
                         A_BYTES = A_STEPS * STEP_BYTES;

    /* A stage of B's codes: a slice of prepacked weights for each warpgroup. */
    static constexpr int BLOCK = CODES::MICRO ? 16 : 32, SLICE_BYTES = BSMI_PREPACKED_SLICE_BYTES(BLOCK),
                         CODE_BYTES = GROUPS * SLICE_BYTES, CODE_STEPS = BSMI_PREPACKED_STEPS;

    /* For the epilogue: each warpgroup has tables and chunks of its own. */
    static constexpr int ROW_TABLE_BYTES = 3 * 4 * ROWS, TABLE_BYTES = ROW_TABLE_BYTES + 3 * 4 * 64;
    static constexpr int CHUNK = BSMI_GROUPS_CHUNK, CHUNK_PITCH = 16 * 4 + 16, CHUNK_BYTES = BSMI_GROUPS_CHUNK_BYTES;

    static constexpr bool CODE_OF_EACH_CHUNK = false;    /* tiles are narrow, and not the same */

    enum : int {
#define PLACE(name, bytes) AT_##name, END_OF_##name = AT_##name + (bytes) - 1,
        BSMI_MIXED_INPUT_GROUPS_REGIONS(PLACE, BLOCK, ROWS, GROUPS, BY_WARPS, STAGES, CODE_STAGES_)
#undef PLACE
        SHARED_BYTES
    };

    /* The ring of codes, for gemm_ring and the functions of barriers. */
    struct codes_ring {
        static constexpr int STAGES = CODE_STAGES_, AT_FULL = AT_CODES_FULL, AT_EMPTY = AT_CODES_EMPTY;
    };

    static_assert(CODES::NIBBLES, "codes of four bits");
    static_assert(CODE_STEPS % A_STEPS == 0, "a slice has whole stages of rows of A");
    static_assert(ROWS % CHUNK == 0 && CHUNK == 16, "a warp finishes 16 rows at a time");
    static_assert(STEP_BYTES % 1024 == 0 && ROWS <= 256, "boxes are whole swizzle patterns of at most 256 rows");
    static_assert(SLICE_BYTES % 16 == 0 && AT_CODES % 16 == 0 && AT_CHUNKS % 16 == 0 && AT_FULL % 8 == 0,
                  "copies; vectors; barriers");
    static_assert(CHUNK_BYTES >= 4 * CHUNK * CHUNK_PITCH, "chunks of four warps");
    static_assert(SHARED_BYTES <= 232448, "shared memory of a CTA");
};
