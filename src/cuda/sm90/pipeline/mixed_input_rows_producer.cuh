/* The loaders of the mixed-input kernels with rows of prepacked weights: a thread for slices of weights, one for rows
 * of A, in warps of their own. */
#pragma once

#include "cuda/ptx/bulk_copy.cuh"
#include "cuda/sm90/mainloop/mixed_input_rows_config.cuh"
#include "load.cuh"

/* Whether tile `number` is half of one, of half the rows. */
template <class CONFIG> __device__ static inline bool is_half(const bsmi_mixed_input_parameters &p, int64_t number)
{
    return CONFIG::HALVES && number >= p.whole_tiles;
}

template <class CONFIG>
__device__ static inline gemm_tile rows_tile_at(const bsmi_mixed_input_parameters &p, int64_t number)
{
    if (!is_half<CONFIG>(p, number)) return gemm_tile_of<CONFIG>(p, number, { 0, 0 });
    const int64_t behind = number - p.whole_tiles;
    gemm_tile tile = gemm_tile_of<CONFIG>(p, p.whole_tiles + behind / 2, { 0, 0 });
    tile.row += (int32_t)(behind % 2) * (CONFIG::ROWS / 2);
    tile.row_end = min(tile.row_end, tile.row + CONFIG::ROWS / 2);
    return tile;
}

/* The tiles of a CTA, or of a cluster, whose CTAs have parts of K. */
template <class CONFIG> __device__ static inline int64_t first_rows_tile() { return blockIdx.x / CONFIG::PARTS; }
template <class CONFIG> __device__ static inline int64_t rows_tiles_at_one_time() { return gridDim.x / CONFIG::PARTS; }

/* This CTA's part of K. */
struct k_part { int32_t first_slice, steps; };

template <class CONFIG> __device__ static inline k_part k_part_of(const bsmi_mixed_input_parameters &p)
{
    const int32_t steps = p.segments[0].blocks;
    if constexpr (CONFIG::PARTS == 1) return { 0, steps };
    const int32_t first = BSMI_FIRST_PART_SLICES((steps + CONFIG::CODE_STEPS - 1) / CONFIG::CODE_STEPS);
    if (cluster_ctarank() == 0) return { 0, first * CONFIG::CODE_STEPS };
    return { first, steps - first * CONFIG::CODE_STEPS };
}

/* Where the loader of slices is. */
template <class CONFIG> struct slice_loader {
    gemm_ring<typename CONFIG::codes_ring> ring;
    int64_t number;                       /* of the tile; behind the last one the loader has ended */
    int32_t left;                         /* slices of the tile */
    const unsigned char *from[CONFIG::GROUPS];         /* the next slice of each warpgroup */
};

/* A tile's first slice of each warpgroup.  One may have columns behind D's last: it reads the last rows of weights that
 * there are. */
template <class CONFIG>
__device__ static inline void first_slices(const bsmi_mixed_input_parameters &p, const gemm_tile &tile,
                                           const unsigned char *(&first)[CONFIG::GROUPS])
{
#pragma unroll
    for (int g = 0; g < CONFIG::GROUPS; g++) {
        const int64_t in_matrix = min((int64_t)(tile.column / 64 + g), p.matrix_tiles - 1),
                      in_all = tile.matrix * p.b_batch_step * p.matrix_tiles + in_matrix;
        first[g] = p.prepacked + in_all * p.tile_slices * CONFIG::SLICE_BYTES;
    }
}

template <class CONFIG>
__device__ static inline void begin_tile(const bsmi_mixed_input_parameters &p, slice_loader<CONFIG> &at)
{
    const gemm_tile tile = rows_tile_at<CONFIG>(p, at.number);
    prefetch_exponents<CONFIG>(p, tile);
    const k_part part = k_part_of<CONFIG>(p);
    at.left = (part.steps + CONFIG::CODE_STEPS - 1) / CONFIG::CODE_STEPS;
    first_slices<CONFIG>(p, tile, at.from);
#pragma unroll
    for (int g = 0; g < CONFIG::GROUPS; g++) at.from[g] += (int64_t)part.first_slice * CONFIG::SLICE_BYTES;
}

template <class CONFIG>
__device__ static inline slice_loader<CONFIG> slice_loader_of(const bsmi_mixed_input_parameters &p)
{
    slice_loader<CONFIG> at = { ring_of_producer<typename CONFIG::codes_ring>(), first_rows_tile<CONFIG>(), 0, {} };
    if (at.number < gemm_tiles(p)) begin_tile<CONFIG>(p, at);
    return at;
}

/* A stage of slices once nobody reads it any more: its barrier, and where it lies. */
struct empty_slices { uint32_t full, to; };

template <class CONFIG>
__device__ static inline empty_slices await_empty_slices(uint32_t shared,
                                                         const gemm_ring<typename CONFIG::codes_ring> &ring)
{
    using RING = typename CONFIG::codes_ring;
    const empty_slices stage = { full_barrier<RING>(shared, ring.stage),
                                 shared + CONFIG::AT_CODES + ring.stage * CONFIG::CODE_BYTES };
    mbarrier_wait_parity(empty_barrier<RING>(shared, ring.stage), ring.parity);
    fence_proxy_async_shared();           /* behind the consumers' reads, which it would hold up */
    return stage;
}

/* The next slices, at most so many. */
template <class CONFIG>
__device__ static inline void load_slices(const bsmi_mixed_input_parameters &p, uint32_t shared, int32_t most,
                                          slice_loader<CONFIG> &at)
{
    const int64_t tiles = gemm_tiles(p);
#pragma unroll 1
    for (int32_t i = 0; i != most && at.number < tiles; i++) {
        const empty_slices stage = await_empty_slices<CONFIG>(shared, at.ring);
        mbarrier_arrive_expect_tx(stage.full, CONFIG::CODE_BYTES);
#pragma unroll
        for (int g = 0; g < CONFIG::GROUPS; g++) {
            cp_async_bulk_load(stage.to + g * CONFIG::SLICE_BYTES, at.from[g], CONFIG::SLICE_BYTES, stage.full);
            at.from[g] += CONFIG::SLICE_BYTES;
        }
        at.ring.next();
        if (--at.left > 0) continue;
        at.number += rows_tiles_at_one_time<CONFIG>();
        if (at.number < tiles) begin_tile<CONFIG>(p, at);
    }
}

/* Rows of A, a step at a time. */
template <class CONFIG>
__device__ static inline void load_steps_of_rows(const bsmi_mixed_input_parameters &p, uint32_t shared)
{
    gemm_ring<CONFIG> ring = ring_of_producer<CONFIG>();
    const int64_t tiles = gemm_tiles(p);
    const k_part part = k_part_of<CONFIG>(p);
    const int32_t steps = part.steps, first_column = part.first_slice * BSMI_PREPACKED_COLUMNS;
    const int64_t first_tile = first_rows_tile<CONFIG>();
    const int32_t box_bytes = p.a_box_rows * CONFIG::K_BYTES;
    for (int64_t number = first_tile; number < tiles; number += rows_tiles_at_one_time<CONFIG>()) {
        const gemm_tile tile = rows_tile_at<CONFIG>(p, number);
        const bool two_boxes = CONFIG::HALVES && number < p.whole_tiles && p.whole_tiles < p.tiles;
        const int32_t matrix = matrix_of_a(p, tile);
        if (number == first_tile) griddepcontrol_wait();
#pragma unroll 1
        for (int32_t step = 0; step < steps; step++, ring.next()) {
            const uint32_t full = full_barrier<CONFIG>(shared, ring.stage);
            mbarrier_wait_parity(empty_barrier<CONFIG>(shared, ring.stage), ring.parity);
            const uint32_t to = shared + CONFIG::AT_A + ring.stage * CONFIG::A_BYTES;
            mbarrier_arrive_expect_tx(full, two_boxes ? 2 * box_bytes : box_bytes);
            tensor_load(to, &p.a, first_column + step * BSMI_K_STEP, tile.row, matrix, full);
            if (two_boxes)
                tensor_load(to + box_bytes, &p.a, step * BSMI_K_STEP, tile.row + CONFIG::ROWS / 2, matrix, full);
        }
#pragma unroll 1
        for (int32_t passed = steps; CONFIG::FIXED_STAGES && passed % CONFIG::CODE_STEPS != 0; passed++, ring.next()) {
            mbarrier_wait_parity(empty_barrier<CONFIG>(shared, ring.stage), ring.parity);
            mbarrier_arrive(full_barrier<CONFIG>(shared, ring.stage));
        }
    }
}

/* Of the ring of A's rows, where boxes have fewer of them than a stage: wgmma reads them all.  What becomes of the
 * others is not stored. */
template <class CONFIG>
__device__ static inline void clear_missing_rows(const bsmi_mixed_input_parameters &p, uint32_t shared)
{
    const int32_t missing = CONFIG::ROWS - p.a_box_rows, chunks = missing * (CONFIG::K_BYTES / 16);
    if (missing == 0 || is_half<CONFIG>(p, p.tiles - 1)) return;
    for (int32_t stage = 0; stage < CONFIG::STAGES; stage++)
        for (int32_t i = (int32_t)threadIdx.x; i < chunks; i += CONFIG::WARPS * 32)
            store_shared_v4(shared + CONFIG::AT_A + stage * CONFIG::A_BYTES + p.a_box_rows * CONFIG::K_BYTES + i * 16,
                            make_uint4(0, 0, 0, 0));
    fence_proxy_async_shared();           /* before TMA and wgmma come to them */
}
