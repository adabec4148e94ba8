/* The loaders for groups: of weights parts of slices; of A's rows only the boxes that the tile's group has rows in. */
#pragma once

#include "mixed_input_rows_producer.cuh"

/* Where the loader of parts is. */
template <class CONFIG> struct part_loader {
    slice_loader<CONFIG> tile;            /* left: parts of it */
    uint32_t steps;                       /* of the slice that are loaded */
};

template <class CONFIG>
__device__ static inline part_loader<CONFIG> part_loader_of(const bsmi_mixed_input_parameters &p)
{
    return { slice_loader_of<CONFIG>(p), 0 };
}

/* The next parts, at most so many: codes, and the scales of the slice that they are from. */
template <class CONFIG>
__device__ static inline void load_parts(const bsmi_mixed_input_parameters &p, uint32_t shared, int32_t most,
                                         part_loader<CONFIG> &at)
{
    using RING = typename CONFIG::codes_ring;
    constexpr uint32_t CODES = CONFIG::CODE_STEPS * CONFIG::STEP_BYTES, SCALES = CONFIG::SLICE_BYTES - CODES;
    const int64_t tiles = gemm_tiles(p);
#pragma unroll 1
    for (int32_t i = 0; i != most && at.tile.number < tiles; i++) {
        const uint32_t full = full_barrier<RING>(shared, at.tile.ring.stage);
        uint32_t to = shared + CONFIG::AT_CODES + at.tile.ring.stage * CONFIG::CODE_BYTES;
        const bool ends_slice = at.steps + CONFIG::CODE_STEPS == BSMI_PREPACKED_STEPS;
        mbarrier_wait_parity(empty_barrier<RING>(shared, at.tile.ring.stage), at.tile.ring.parity);
        mbarrier_arrive_expect_tx(full, CONFIG::CODE_BYTES);
#pragma unroll
        for (int g = 0; g < CONFIG::GROUPS; g++, to += CONFIG::SLICE_BYTES) {
            cp_async_bulk_load(to, at.tile.from[g] + at.steps * CONFIG::STEP_BYTES, CODES, full);
            cp_async_bulk_load(to + CODES, at.tile.from[g] + BSMI_PREPACKED_CODE_BYTES, SCALES, full);
            if (ends_slice) at.tile.from[g] += BSMI_PREPACKED_SLICE_BYTES(CONFIG::BLOCK);
        }
        at.steps = ends_slice ? 0 : at.steps + CONFIG::CODE_STEPS;
        at.tile.ring.next();
        if (--at.tile.left > 0) continue;
        at.tile.number += gridDim.x, at.steps = 0;
        if (at.tile.number < tiles) begin_tile<CONFIG>(p, at.tile);
    }
}

/* Rows of the tile that are the group's. */
template <class CONFIG> __device__ static inline int32_t rows_of_tile(const gemm_tile &tile)
{
    return min(tile.row_end - tile.row, CONFIG::ROWS);
}

template <class CONFIG>
__device__ static inline void load_boxes_of_rows(const bsmi_mixed_input_parameters &p, uint32_t shared)
{
    gemm_ring<CONFIG> ring = ring_of_producer<CONFIG>();
    const int64_t tiles = gemm_tiles(p);
    const int32_t steps = p.segments[0].blocks, of_box = p.a_box_rows;
    for (int64_t number = blockIdx.x; number < tiles; number += gridDim.x) {
        const gemm_tile tile = gemm_tile_of<CONFIG>(p, number, { 0, 0 });
        const int32_t matrix = matrix_of_a(p, tile), boxes = (rows_of_tile<CONFIG>(tile) + of_box - 1) / of_box;
        const uint32_t bytes = boxes * of_box * CONFIG::K_BYTES;
        if (number == blockIdx.x) griddepcontrol_wait();
#pragma unroll 1
        for (int32_t step = 0; step < steps; step++, ring.next()) {
            const uint32_t full = full_barrier<CONFIG>(shared, ring.stage);
            uint32_t to = shared + CONFIG::AT_A + ring.stage * CONFIG::A_BYTES;
            mbarrier_wait_parity(empty_barrier<CONFIG>(shared, ring.stage), ring.parity);
            mbarrier_arrive_expect_tx(full, bytes);
#pragma unroll 1
            for (int32_t box = 0; box < boxes; box++, to += of_box * CONFIG::K_BYTES)
                tensor_load(to, &p.a, step * BSMI_K_STEP, tile.row + box * of_box, matrix, full);
        }
    }
}
