/* The loader of A's rows for groups: of a tile only the boxes that its group's rows are in. */
#pragma once

#include "mixed_input_rows_producer.cuh"

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
