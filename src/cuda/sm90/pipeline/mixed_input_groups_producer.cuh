/* The loaders of the mixed-input kernels for groups of rows.  Where a tile lies is found while the tile before is
 * loaded: its group is searched for in a table. */
#pragma once

#include "cuda/sm90/mainloop/mixed_input_groups_config.cuh"
#include "group_table.cuh"
#include "mixed_input_rows_producer.cuh"

/* Rows of the tile that are the group's. */
template <class CONFIG> __device__ static inline int32_t rows_of_tile(const gemm_tile &tile)
{
    return min(tile.row_end - tile.row, CONFIG::ROWS);
}

/* Where the loader of slices is. */
template <class CONFIG> struct group_slice_loader {
    gemm_ring<typename CONFIG::codes_ring> ring;
    int32_t number;                       /* of the tile; behind the last one the loader has ended */
    int32_t left;                         /* steps of the tile */
    const unsigned char *from[CONFIG::GROUPS];         /* the next slice of each warpgroup */
    const unsigned char *next[CONFIG::GROUPS];         /* the first one of the next tile */
};

/* Of tile `number`, if there is one. */
template <class CONFIG>
__device__ static inline void find_slices(const bsmi_mixed_input_parameters &p, uint32_t shared, int32_t number,
                                          const unsigned char *(&first)[CONFIG::GROUPS])
{
    if (number >= tiles_of_groups<CONFIG>(p, shared)) return;
    const gemm_tile tile = tile_of_groups<CONFIG>(p, shared, number);
    prefetch_exponents<CONFIG>(p, tile);
    first_slices<CONFIG>(p, tile, first);
}

template <class CONFIG>
__device__ static inline group_slice_loader<CONFIG> group_slice_loader_of(const bsmi_mixed_input_parameters &p,
                                                                              uint32_t shared)
{
    group_slice_loader<CONFIG> at = {
        ring_of_producer<typename CONFIG::codes_ring>(), (int32_t)blockIdx.x, p.segments[0].blocks, {}, {},
    };
    find_slices<CONFIG>(p, shared, at.number, at.from);
    return at;
}

/* A slice: codes of `steps` steps, and scales, which lie behind those of all six. */
template <class CONFIG>
__device__ static inline void load_slice(uint32_t to, const unsigned char *from, int32_t steps, uint32_t full)
{
    if (steps >= CONFIG::CODE_STEPS) {
        cp_async_bulk_load(to, from, CONFIG::SLICE_BYTES, full);
    } else {
        cp_async_bulk_load(to, from, steps * BSMI_PREPACKED_STEP_BYTES, full);
        cp_async_bulk_load(to + BSMI_PREPACKED_CODE_BYTES, from + BSMI_PREPACKED_CODE_BYTES,
                           CONFIG::SLICE_BYTES - BSMI_PREPACKED_CODE_BYTES, full);
    }
}

/* The next slices, at most so many. */
template <class CONFIG>
__device__ static inline void load_group_slices(const bsmi_mixed_input_parameters &p, uint32_t shared, int32_t most,
                                                group_slice_loader<CONFIG> &at)
{
    const int32_t tiles = tiles_of_groups<CONFIG>(p, shared), steps = p.segments[0].blocks;
#pragma unroll 1
    for (int32_t i = 0; i != most && at.number < tiles; i++) {
        const empty_slices stage = await_empty_slices<CONFIG>(shared, at.ring);
        const int32_t missing = max(CONFIG::CODE_STEPS - at.left, 0) * BSMI_PREPACKED_STEP_BYTES;
        mbarrier_arrive_expect_tx(stage.full, CONFIG::CODE_BYTES - CONFIG::GROUPS * missing);
#pragma unroll
        for (int g = 0; g < CONFIG::GROUPS; g++) {
            load_slice<CONFIG>(stage.to + g * CONFIG::SLICE_BYTES, at.from[g], at.left, stage.full);
            at.from[g] += CONFIG::SLICE_BYTES;
        }
        at.ring.next();
        if (at.left == steps) find_slices<CONFIG>(p, shared, at.number + (int32_t)gridDim.x, at.next);
        at.left -= CONFIG::CODE_STEPS;
        if (at.left > 0) continue;
        at.number += (int32_t)gridDim.x, at.left = steps;
#pragma unroll
        for (int g = 0; g < CONFIG::GROUPS; g++) at.from[g] = at.next[g];
    }
}

/* A stage of rows of A from this step on: of the tile only the boxes that its group's rows are in. */
template <class CONFIG>
__device__ static inline void load_boxes_of_stage(const bsmi_mixed_input_parameters &p, uint32_t to, uint32_t full,
                                                  const gemm_tile &tile, int32_t boxes, int32_t step, int32_t steps)
{
    const int32_t matrix = matrix_of_a(p, tile), of_box = p.a_box_rows;
    mbarrier_arrive_expect_tx(full, steps * boxes * of_box * CONFIG::K_BYTES);
#pragma unroll 1
    for (int32_t i = 0; i < steps; i++)
#pragma unroll 1
        for (int32_t box = 0; box < boxes; box++)
            tensor_load(to + i * CONFIG::STEP_BYTES + box * of_box * CONFIG::K_BYTES, &p.a, (step + i) * BSMI_K_STEP,
                        tile.row + box * of_box, matrix, full);
}

template <class CONFIG>
__device__ static inline void load_boxes_of_rows(const bsmi_mixed_input_parameters &p, uint32_t shared)
{
    gemm_ring<CONFIG> ring = ring_of_producer<CONFIG>();
    const int32_t tiles = tiles_of_groups<CONFIG>(p, shared), steps = p.segments[0].blocks;
    if ((int32_t)blockIdx.x >= tiles) return;
    gemm_tile next = tile_of_groups<CONFIG>(p, shared, (int32_t)blockIdx.x);
    for (int32_t number = (int32_t)blockIdx.x, behind; number < tiles; number = behind) {
        behind = number + (int32_t)gridDim.x;
        const gemm_tile tile = next;
        const int32_t boxes = (rows_of_tile<CONFIG>(tile) + p.a_box_rows - 1) / p.a_box_rows;
#pragma unroll 1
        for (int32_t step = 0; step < steps; step += CONFIG::A_STEPS, ring.next()) {
            const uint32_t to = shared + CONFIG::AT_A + ring.stage * CONFIG::A_BYTES;
            mbarrier_wait_parity(empty_barrier<CONFIG>(shared, ring.stage), ring.parity);
            if (CONFIG::BY_WARPS) fence_proxy_async_shared();      /* behind ldmatrix */
            load_boxes_of_stage<CONFIG>(p, to, full_barrier<CONFIG>(shared, ring.stage), tile, boxes, step,
                                        min(steps - step, CONFIG::A_STEPS));
            if (step == 0 && behind < tiles) next = tile_of_groups<CONFIG>(p, shared, behind);
        }
    }
}

/* Of the ring of A's rows those that no box of a product with few rows covers: wgmma reads them all.  What becomes of
 * them is not stored. */
template <class CONFIG>
__device__ static inline void clear_rows_of_stages(const bsmi_mixed_input_parameters &p, uint32_t shared)
{
    for (uint32_t at = threadIdx.x * 16; at < CONFIG::STAGES * CONFIG::A_BYTES; at += CONFIG::WARPS * 32 * 16)
        store_shared_v4(shared + CONFIG::AT_A + at, make_uint4(0, 0, 0, 0));
    fence_proxy_async_shared();           /* before TMA and wgmma come to them */
}
