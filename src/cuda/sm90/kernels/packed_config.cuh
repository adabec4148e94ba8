/* What one instance of the GEMM kernels that read panels consists of: sizes, shared memory, barriers. */
#pragma once

#include "decoding_config.cuh"
#include "packed_instances.h"

/* The parameters are columns of the table in packed_instances.h. */
template <class CODES_, int ROWS_, int GROUPS_, int STAGES_, int PANEL_STAGES_> struct packed_config {
    using CODES = CODES_;
    static constexpr int ROWS = ROWS_, COLUMNS = BSMI_PANEL_ROWS, GROUPS = GROUPS_, STAGES = STAGES_, PANEL_STAGES = PANEL_STAGES_;
    static constexpr int CLUSTER_ROWS = 1, CLUSTER_COLUMNS = 1;

    /* One warpgroup loads: a warp panels, the others A's rows.  WARPS: those that multiply, in turns. */
    static constexpr int WARPS = 4 * GROUPS, ROW_LOADERS = 3, THREADS = 128 * (GROUPS + 1), PRODUCTS = 1, PRODUCT_SUMS = ROWS / 2,
                         STEPS = BSMI_PANEL_STEPS;

    /* The registers of an SM are dealt out evenly at first, the same number of warps to each of its four parts. */
    static constexpr int EVEN = 65536 / THREADS / 8 * 8, PRODUCER = 32;
    static constexpr int CONSUMER = ((GROUPS + 1) * EVEN - PRODUCER) / GROUPS / 8 * 8;

    /* A stage of A: of its rows as many columns as a turn has.  A stage of panels: a turn. */
    static constexpr int K_BYTES = BSMI_K_STEP * 2, A_BYTES = ROWS * K_BYTES;
    static constexpr int BLOCK = CODES::MICRO ? 16 : 32, PANEL_BYTES = BSMI_PANEL_TURN_BYTES(BLOCK);

    /* For the epilogue, as decoding_config has them; tables are each warpgroup's own. */
    static constexpr int ROW_TABLE_BYTES = 3 * 4 * ROWS, TABLE_BYTES = ROW_TABLE_BYTES + 3 * 4 * COLUMNS;
    static constexpr int CHUNK = 16, CHUNK_PITCH = 16 * 4 + 16, CHUNKS_BYTES = BSMI_SM90_PACKED_CHUNKS;

    /* Shared memory, from its beginning. */
    static constexpr int AT_A = 0, AT_PANELS = AT_A + STAGES * STEPS * A_BYTES, AT_SUMS = AT_PANELS + PANEL_STAGES * PANEL_BYTES,
                         AT_CHUNKS = AT_SUMS + ROWS * COLUMNS * 4, AT_TABLES = AT_CHUNKS + CHUNKS_BYTES,
                         AT_FULL = AT_TABLES + GROUPS * TABLE_BYTES, AT_EMPTY = AT_FULL + STAGES * 8,
                         AT_PANELS_FULL = AT_EMPTY + STAGES * 8, AT_PANELS_EMPTY = AT_PANELS_FULL + PANEL_STAGES * 8,
                         SHARED_BYTES = AT_PANELS_EMPTY + PANEL_STAGES * 8;

    /* The second ring, for gemm_ring and the functions of barriers. */
    struct panel_ring { static constexpr int STAGES = PANEL_STAGES_, AT_FULL = AT_PANELS_FULL, AT_EMPTY = AT_PANELS_EMPTY; };

    static_assert(CODES::NIBBLES, "codes of four bits");
    static_assert(STAGES >= GROUPS && PANEL_STAGES > GROUPS, "turns are loaded while others are multiplied");
    static_assert(1 + GROUPS + WARPS <= 16, "named barriers: each warpgroup's, each warp's turn");
    static_assert(GROUPS <= BSMI_PANEL_LEAST_TURNS, "each warpgroup has a turn");
    static_assert(STEPS % ROW_LOADERS == 0, "each loads as many steps of a turn");
    static_assert(ROWS % CHUNK == 0 && 4 * CHUNK * CHUNK_PITCH <= CHUNKS_BYTES, "a warp finishes 16 rows at a time");
    static_assert(A_BYTES % 1024 == 0, "boxes are whole swizzle patterns");
    static_assert(PANEL_BYTES % 16 == 0 && AT_PANELS % 16 == 0 && AT_FULL % 8 == 0, "bulk copies; barriers");
    static_assert(SHARED_BYTES == BSMI_SM90_PACKED_BYTES(BLOCK, ROWS, GROUPS, STAGES, PANEL_STAGES), "as the host has it");
    static_assert(SHARED_BYTES <= 232448, "shared memory of a CTA");
};

/* Turns of a tile.  Each warpgroup has one at least: those behind K are zeros. */
template <class CONFIG> __device__ static inline int32_t turns_of_panel(const bsmi_mixed_input_parameters &p) { return (int32_t)p.panel_turns; }

/* The tile's panel, from its first turn on. */
template <class CONFIG> __device__ static inline const unsigned char *panel_of(const bsmi_mixed_input_parameters &p, const gemm_tile &tile)
{
    const int64_t panel = (int64_t)tile.matrix * p.b_batch_step * p.matrix_panels + tile.column / CONFIG::COLUMNS;
    return p.panels + panel * p.panel_turns * CONFIG::PANEL_BYTES;
}
