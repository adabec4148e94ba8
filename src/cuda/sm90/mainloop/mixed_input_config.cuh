/* What one instance of the mixed-input GEMM kernels consists of: sizes, threads, registers, places in shared memory. */
#pragma once

#include "fused_config.cuh"
#include "cuda/sm90/kernels/mixed_input_instances.h"

template <bsmi_gemm_source SOURCE> struct mixed_input_parameters_of { using PARAMETERS = bsmi_mixed_input_parameters; };
template <> struct mixed_input_parameters_of<BSMI_SOURCE_SCALES_128X4> { using PARAMETERS = bsmi_fused_parameters; };
template <bsmi_gemm_source SOURCE>
using mixed_input_parameters = typename mixed_input_parameters_of<SOURCE>::PARAMETERS;

/* The parameters are columns of the table in mixed_input_instances.h. */
template <class CODES_, bsmi_gemm_source SOURCE, bsmi_gemm_schedule SCHEDULE, int ROWS_, int GROUPS_, int CTAS_,
          int STAGES_, int CODE_STAGES_, int MOST_COLUMNS>
struct mixed_input_config {
    using CODES = CODES_;
    using PARAMETERS = mixed_input_parameters<SOURCE>;
    static constexpr bool STORED = SOURCE == BSMI_SOURCE_AS_STORED, PREPACKED = SOURCE == BSMI_SOURCE_PREPACKED;
    static constexpr bool INTERLEAVED = SCHEDULE == BSMI_SCHEDULE_K_INTERLEAVED, ONE_WARPGROUP = GROUPS_ == 1,
                          TWO_WARPGROUPS = !INTERLEAVED && GROUPS_ == 2;
    static constexpr int ROWS = ROWS_, COLUMNS = BSMI_MIXED_INPUT_COLUMNS(SCHEDULE, GROUPS_), GROUPS = GROUPS_,
                         STAGES = STAGES_, CTAS = CTAS_;

    /* K is one chain of sums. */
    static constexpr int PARTS = 1;

    /* There is no cluster; what other kernels share with these asks for it. */
    static constexpr int CLUSTER_ROWS = 1, CLUSTER_COLUMNS = 1, CLUSTER = 1;

    /* A consumer warpgroup multiplies 64 rows of B with all rows of A: a thread has ROWS / 4 sums of each of two
     * columns of D. */
    static constexpr int WARPS = 4 * GROUPS, THREADS = BSMI_MIXED_INPUT_THREADS(GROUPS), PRODUCTS = 1,
                         PRODUCT_SUMS = ROWS / 2;

    /* The registers of an SM are dealt out evenly at first, the same number of warps to each of its four parts; the
     * loaders give some to the consumers. */
    static constexpr int EVEN = 65536 / THREADS / 8 * 8, PRODUCER = PREPACKED ? 32 : 40;
    static constexpr int CONSUMER = ((GROUPS + 1) * EVEN - PRODUCER) / GROUPS / 8 * 8;

    /* A stage of A: STEPS of 64 columns; several threads load it where one would take longer than a slice is
     * multiplied. */
    static constexpr int STEPS = BSMI_MIXED_INPUT_STEPS(SOURCE), ROW_LOADERS = !INTERLEAVED ? 1 : PREPACKED ? 3 : 2;
    static constexpr int A_BOX_ROWS = ROWS, K_BYTES = BSMI_K_STEP * 2, A_BYTES = ROWS * K_BYTES;

    /* A stage of B's codes: 128 bytes of each row, which are four steps, or a slice of prepacked weights. */
    static constexpr int BLOCK = CODES::MICRO ? 16 : 32,
                         CODE_BYTES = BSMI_MIXED_INPUT_CODE_BYTES(BLOCK, SOURCE, SCHEDULE, GROUPS);
    static constexpr int CODE_STEPS = PREPACKED ? STEPS : 4;

    /* Scales of all columns of a row, where they are STORED; eight warps or four load those of so many rows each. */
    static constexpr int SCALE_PITCH = MOST_COLUMNS / BLOCK + 16, SCALE_LOADERS = INTERLEAVED ? 8 : 4,
                         WARP_ROWS = 64 / SCALE_LOADERS,
                         ROW_LANES = 32 / WARP_ROWS;

    /* Scales of a stage of codes, where they lie as 128x4. */
    static constexpr int PIECE_COLUMNS = 4 * BLOCK, PIECES = 256 / PIECE_COLUMNS, PIECE_BYTES = 512,
                         SCALE_BYTES = PIECES * PIECE_BYTES;

    /* For the epilogue: each warpgroup has tables of its own.  K slices end one after another, so that one place for
     * chunks is enough. */
    static constexpr int ROW_TABLE_BYTES = 3 * 4 * ROWS, TABLE_BYTES = ROW_TABLE_BYTES + 3 * 4 * 64;
    static constexpr int CHUNK = BSMI_MIXED_INPUT_CHUNK(SOURCE, ROWS), CHUNK_PITCH = 16 * 4 + 16;

    enum : int {
#define PLACE(name, bytes) AT_##name, END_OF_##name = AT_##name + (bytes) - 1,
        BSMI_MIXED_INPUT_REGIONS(PLACE, BLOCK, SOURCE, SCHEDULE, ROWS, GROUPS, CTAS, STAGES, CODE_STAGES_, MOST_COLUMNS)
#undef PLACE
        SHARED_BYTES
    };

    /* The ring of codes, and the scales of a tile as a ring of one stage, for gemm_ring and the functions of
     * barriers. */
    struct codes_ring {
        static constexpr int STAGES = CODE_STAGES_, AT_FULL = AT_CODES_FULL, AT_EMPTY = AT_CODES_EMPTY;
    };
    struct scales_ring { static constexpr int STAGES = 1, AT_FULL = AT_SCALES_FULL, AT_EMPTY = AT_SCALES_EMPTY; };

    static_assert(CODES::NIBBLES, "codes of four bits");
    static_assert(INTERLEAVED ? SOURCE != BSMI_SOURCE_SCALES_128X4
                  : STORED    ? GROUPS == 1
                              : TWO_WARPGROUPS && !PREPACKED,
                  "schedules that there are");
    static_assert(!INTERLEAVED || (STAGES >= GROUPS && CODE_STAGES_ > GROUPS),
                  "slices are loaded while others are multiplied");
    static_assert(!INTERLEAVED || 1 + GROUPS + WARPS <= 16,
                  "named barriers: each warpgroup's, and one for each warp that hands sums on");
    static_assert(!PREPACKED || GROUPS <= BSMI_PREPACKED_LEAST_SLICES, "each warpgroup has a slice");
    static_assert(STEPS % ROW_LOADERS == 0, "each thread loads as many steps of a slice");
    static_assert(ROWS % CHUNK == 0 && CHUNK % 16 == 0, "a warp finishes 16 rows at a time");
    static_assert(A_BYTES % 1024 == 0 && AT_CODES % 1024 == 0, "boxes are whole swizzle patterns");
    static_assert(SCALE_PITCH % 16 == 0 && AT_SCALES % 16 == 0, "rows of scales are copied 16 bytes at a time");
    static_assert(CODE_BYTES % 16 == 0 && AT_SUMS % 16 == 0 && AT_CHUNKS % 8 == 0 && AT_FULL % 8 == 0,
                  "copies; vectors; barriers");
    static_assert(SHARED_BYTES <= 232448 && CTAS * (SHARED_BYTES + 1024) <= 233472, "shared memory of an SM");
};

/* K-interleaved, K in two parts: the first one's sums lie behind everything else, until the second one's are made. */
template <class CONFIG> struct mixed_input_parts_config : CONFIG {
    static constexpr int PARTS = BSMI_K_PARTS;
    enum : int { AT_KEPT = (CONFIG::SHARED_BYTES + 15) / 16 * 16, SHARED_BYTES = AT_KEPT + CONFIG::ROWS * 64 * 4 };
    static_assert(CONFIG::PREPACKED && CONFIG::INTERLEAVED && SHARED_BYTES <= 232448, "shared memory of a CTA");
};

/* Where a thread of the consumers is: its warpgroup, the warp in that, its lane.  The numbers come by way of shfl, so
 * that ptxas does not read special registers again wherever they are wanted. */
struct consumer_thread { uint32_t shared, group, warp, lane; };

__device__ static inline consumer_thread consumer_thread_of(uint32_t shared)
{
    const uint32_t lane = __shfl_sync(0xffffffff, threadIdx.x % 32, threadIdx.x % 32),
                   number = __shfl_sync(0xffffffff, threadIdx.x / 32, 0);
    return { shared, number / 4, number % 4, lane };
}
