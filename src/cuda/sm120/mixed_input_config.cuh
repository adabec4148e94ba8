/* What one instance of the mixed-input GEMM kernels by mma.sync consists of: sizes, places in shared memory. */
#pragma once

#include "cuda/sm90/mainloop/mixed_input_config.cuh"
#include "mixed_input_instances.h"

/* The parameters are columns of the table in mixed_input_instances.h.  Names that functions of sm90/ ask for mean what
 * they mean there: a group is four warps, each of which has 16 rows of B and all rows of A. */
template <class CODES_, bsmi_gemm_source SOURCE, int ROWS_, int GROUPS_, int A_STEPS_, int STAGES_, int CODE_STAGES_,
          int SCALES>
struct mma_sync_mixed_input_config {
    using CODES = CODES_;
    using PARAMETERS = mixed_input_parameters<SOURCE>;
    static constexpr bool STORED = SOURCE == BSMI_SOURCE_AS_STORED, PREPACKED = SOURCE == BSMI_SOURCE_PREPACKED;
    static constexpr int ROWS = ROWS_, GROUPS = GROUPS_, COLUMNS = 64 * GROUPS, STAGES = STAGES_, WARPS = 4 * GROUPS;
    static constexpr int CLUSTER_ROWS = 1, CLUSTER_COLUMNS = 1, CLUSTER = 1;

    /* A thread has ROWS / 4 sums of each of two columns of D. */
    static constexpr int PRODUCTS = 1, PRODUCT_SUMS = ROWS / 2;

    /* A stage of A: A_STEPS of 64 columns, a box each. */
    static constexpr int A_STEPS = A_STEPS_, A_BYTES = ROWS * BSMI_K_STEP * 2;

    /* A stage of B's codes: STEPS of 64 columns. */
    static constexpr int BLOCK = CODES::MICRO ? 16 : 32,
                         CODE_BYTES = BSMI_SM120_MIXED_INPUT_CODE_BYTES(BLOCK, SOURCE, GROUPS);
    static constexpr int STEPS = PREPACKED ? BSMI_PREPACKED_STEPS : 4, CODE_STEPS = STEPS;

    /* Scales as stored: each warp loads those of its 16 rows. */
    static constexpr int SCALE_PITCH = SCALES + 16, WARP_ROWS = 16, ROW_LANES = 32 / WARP_ROWS;

    /* Scales of a stage in layout 128x4. */
    static constexpr int PIECE_COLUMNS = 4 * BLOCK, PIECES = 256 / PIECE_COLUMNS, PIECE_BYTES = 512,
                         SCALE_BYTES = PIECES * PIECE_BYTES;

    /* For the epilogue. */
    static constexpr int ROW_TABLE_BYTES = 3 * 4 * ROWS, TABLE_BYTES = ROW_TABLE_BYTES + 3 * 4 * 64;
    static constexpr int CHUNK = ROWS < 16 ? ROWS : 16, CHUNK_PITCH = 16 * 4 + 16;

    enum : int {
#define PLACE(name, bytes) AT_##name, END_OF_##name = AT_##name + (bytes) - 1,
        BSMI_SM120_MIXED_INPUT_REGIONS(PLACE, BLOCK, SOURCE, ROWS, GROUPS, A_STEPS_, STAGES, CODE_STAGES_, SCALES)
#undef PLACE
        SHARED_BYTES
    };

    /* The ring of codes, for gemm_ring and the functions of barriers. */
    struct codes_ring {
        static constexpr int STAGES = CODE_STAGES_, AT_FULL = AT_CODES_FULL, AT_EMPTY = AT_CODES_EMPTY;
    };

    static_assert(CODES::NIBBLES, "codes of four bits");
    static_assert((ROWS == 8 || ROWS % 16 == 0) && CODE_STEPS % A_STEPS == 0,
                  "ldmatrix; a stage of codes begins with one of rows");
    static_assert(ROWS >= 16 || PREPACKED, "how others finish D");
    static_assert(GROUPS == 1 || !(STORED || PREPACKED), "one group loads a tile's scales, and has its fallback rows");
    static_assert(A_BYTES % 1024 == 0 && AT_CODES % 1024 == 0, "boxes are whole swizzle patterns");
    static_assert((PREPACKED || CODE_BYTES % 1024 == 0) && CODE_BYTES % 16 == 0 && AT_SCALES % 16 == 0
                      && AT_TABLES % 16 == 0 && AT_CHUNKS % 16 == 0 && AT_FULL % 8 == 0,
                  "swizzle patterns; copies; vectors; barriers");
    static_assert(SCALE_PITCH % 16 == 0 && SCALES * BLOCK % 256 == 0, "rows of scales; whole stages");
    static_assert(SHARED_BYTES <= 101376, "shared memory of a CTA");
};
