/* The loaders of the mixed-input kernels: codes of B, rows of A, and what of either can be asked for in advance.
 *
 * Interleaved schedules have a thread for codes and two or three for rows of A, which have as many steps of each slice:
 * a thread that loads all of it takes longer than a slice is multiplied.  One warpgroup has one thread for both.  (Two
 * warpgroups have those of fused_producer.cuh.) */
#pragma once

#include "blockscale/scale_layout.h"
#include "cuda/ptx/bulk_copy.cuh"
#include "cuda/sm90/mainloop/mixed_input_config.cuh"
#include "load.cuh"

/* K slices of a tile.  Each warpgroup has one at least: those behind K are zeros. */
template <class CONFIG> __device__ static inline int32_t slices_of(const bsmi_mixed_input_parameters &p)
{
    if constexpr (CONFIG::PREPACKED) return (int32_t)p.tile_slices;
    else return max((p.segments[0].blocks + CONFIG::STEPS - 1) / CONFIG::STEPS, CONFIG::GROUPS);
}

/* Steps of a tile for one warpgroup, which has them in pairs: one behind the last is zeros. */
__device__ static inline int32_t paired_steps(const bsmi_gemm_parameters &p) { return (p.segments[0].blocks + 1) & ~1; }

/* The same as gemm_tile_of, without its divisions for what few rows mostly are: loads wait for them. */
template <class CONFIG, bool BY_WARP = false>
__device__ static inline gemm_tile mixed_input_tile(const bsmi_gemm_parameters &p, int64_t number)
{
    if (p.epilogue.grouped || p.tiles != p.column_tiles) return gemm_tile_of<CONFIG, BY_WARP>(p, number, { 0, 0 });
    return { 0, (int32_t)number * CONFIG::COLUMNS, 0, (int32_t)p.epilogue.m, 0 };
}

/* In advance ------------------------------------------------------------------------------------------------------- */

/* What a kernel does that may have begun before the kernels in front of it have ended: nothing may be read yet that
 * they may write, but what will be read may be prefetched into the L2 cache, where their writes arrive, too. */

/* Codes of so many stages of a tile, and scales of its rows if they lie linearly.  One thread. */
template <class CONFIG>
__device__ static inline void prefetch_stored(const bsmi_mixed_input_parameters &p, const gemm_tile &tile,
                                              int32_t stages)
{
    const bsmi_device_matrix &m = p.b_source;
    const int32_t matrix = tile.matrix * p.b_batch_step;
    for (int32_t stage = 0; stage < stages; stage++) {
        const int32_t at[3] = { stage * 128, tile.column, matrix };
        cp_async_bulk_prefetch_tensor(&p.b, at);
    }
    if (m.layout.kind != BSM_LAYOUT_LINEAR) return;
    const uint64_t begin = (uint64_t)m.scales + matrix * m.scale_batch_bytes + tile.column * m.layout.pitch;
    const int64_t rows = min((int64_t)CONFIG::COLUMNS, m.rows - tile.column),
                  count = (m.columns + CONFIG::BLOCK - 1) / CONFIG::BLOCK;
    const uint64_t from = (begin + 15) & ~(uint64_t)15,
                   to = (begin + (rows - 1) * m.layout.pitch + count) & ~(uint64_t)15;
    if (to > from && to - from <= 1 << 18) cp_async_bulk_prefetch((const void *)from, (uint32_t)(to - from));
}

/* Rows of A that the caller gave, of the CTA's first tile: of the steps of K each CTA asks for its share. */
template <class CONFIG>
__device__ static inline void prefetch_rows(const bsmi_mixed_input_parameters &p, int32_t loader)
{
    /* decoded by another kernel; not known yet */
    if (p.epilogue.a_exponents != nullptr || p.epilogue.grouped || blockIdx.x >= p.tiles) return;
    const gemm_tile tile = mixed_input_tile<CONFIG>(p, blockIdx.x);
    const int32_t loaders = (int32_t)gridDim.x * CONFIG::ROW_LOADERS;
#pragma unroll 1
    for (int32_t step = (int32_t)blockIdx.x * CONFIG::ROW_LOADERS + loader; step < p.segments[0].blocks;
         step += loaders) {
        const int32_t place[3] = { step * BSMI_K_STEP, tile.row, tile.matrix * p.a_batch_step };
        cp_async_bulk_prefetch_tensor(&p.a, place);
    }
}

/* Of the ring of A's rows, where boxes have fewer of them than a stage: wgmma reads them all.  What becomes of the
 * others is not stored. */
template <class CONFIG> __device__ static inline void clear_rows(const bsmi_mixed_input_parameters &p, uint32_t shared)
{
    if (p.a_box_rows == CONFIG::ROWS) return;
    for (uint32_t at = threadIdx.x * 16; at < CONFIG::STAGES * CONFIG::STEPS * CONFIG::A_BYTES;
         at += CONFIG::WARPS * 32 * 16)
        store_shared_v4(shared + CONFIG::AT_A + at, make_uint4(0, 0, 0, 0));
    fence_proxy_async_shared();           /* before TMA and wgmma come to them */
}

/* Interleaved schedules -------------------------------------------------------------------------------------------- */

/* Where the loader of codes is. */
template <class CONFIG> struct code_loader {
    gemm_ring<typename CONFIG::codes_ring> ring;
    int64_t number;                       /* of the tile; behind the last one the loader has ended */
    int32_t slice, column, matrix;        /* STORED: the tile's rows of B */
    const unsigned char *from;            /* PREPACKED: the next slice */
};

template <class CONFIG>
__device__ static inline void begin_tile(const bsmi_mixed_input_parameters &p, code_loader<CONFIG> &at)
{
    const gemm_tile tile = mixed_input_tile<CONFIG>(p, at.number);
    at.slice = 0, at.column = tile.column, at.matrix = tile.matrix * p.b_batch_step;
    if constexpr (CONFIG::PREPACKED) {
        const int64_t in_all = at.matrix * p.matrix_tiles + tile.column / CONFIG::COLUMNS;
        at.from = p.prepacked + in_all * p.tile_slices * CONFIG::CODE_BYTES;
        prefetch_exponents<CONFIG>(p, tile);
    }
}

template <class CONFIG>
__device__ static inline code_loader<CONFIG> code_loader_of(const bsmi_mixed_input_parameters &p)
{
    code_loader<CONFIG> at = { ring_of_producer<typename CONFIG::codes_ring>(), (int64_t)blockIdx.x, 0, 0, 0, nullptr };
    if (at.number < gemm_tiles(p)) begin_tile<CONFIG>(p, at);
    return at;
}

/* The next slices, at most so many. */
template <class CONFIG>
__device__ static inline void load_codes(const bsmi_mixed_input_parameters &p, uint32_t shared, int32_t most,
                                         code_loader<CONFIG> &at)
{
    using RING = typename CONFIG::codes_ring;
    const int64_t tiles = gemm_tiles(p);
    const int32_t slices = slices_of<CONFIG>(p);
#pragma unroll 1
    for (int32_t i = 0; i != most && at.number < tiles; i++) {
        const uint32_t full = full_barrier<RING>(shared, at.ring.stage);
        const uint32_t to = shared + CONFIG::AT_CODES + at.ring.stage * CONFIG::CODE_BYTES;
        mbarrier_wait_parity(empty_barrier<RING>(shared, at.ring.stage), at.ring.parity);
        mbarrier_arrive_expect_tx(full, CONFIG::CODE_BYTES);
        if constexpr (CONFIG::PREPACKED) {
            cp_async_bulk_load(to, at.from, CONFIG::CODE_BYTES, full);
            at.from += CONFIG::CODE_BYTES;
        } else {
            tensor_load(to, &p.b, at.slice * 128, at.column, at.matrix, full);
        }
        at.ring.next();
        if (++at.slice < slices) continue;
        at.number += gridDim.x;
        if (at.number < tiles) begin_tile<CONFIG>(p, at);
    }
}

/* Rows of A of a tile, of each slice a share of the steps. */
template <class CONFIG>
__device__ static inline void load_slice_rows(const bsmi_mixed_input_parameters &p, uint32_t shared,
                                              const gemm_tile &tile, int32_t slices, int32_t loader,
                                              gemm_ring<CONFIG> &ring)
{
    constexpr int STEPS = CONFIG::STEPS / CONFIG::ROW_LOADERS;
    const int32_t step = loader * STEPS, matrix = matrix_of_a(p, tile);
#pragma unroll 1
    for (int32_t slice = 0; slice < slices; slice++, ring.next()) {
        const uint32_t full = full_barrier<CONFIG>(shared, ring.stage);
        const uint32_t to = shared + CONFIG::AT_A + (ring.stage * CONFIG::STEPS + step) * CONFIG::A_BYTES;
        mbarrier_wait_parity(empty_barrier<CONFIG>(shared, ring.stage), ring.parity);
        mbarrier_arrive_expect_tx(full, STEPS * p.a_box_rows * CONFIG::K_BYTES);
#pragma unroll
        for (int32_t i = 0; i < STEPS; i++)
            tensor_load(to + i * CONFIG::A_BYTES, &p.a, (slice * CONFIG::STEPS + step + i) * BSMI_K_STEP, tile.row,
                        matrix, full);
    }
}

/* By one of the threads that load rows of A. */
template <class CONFIG>
__device__ static inline void produce_slice_rows(const bsmi_mixed_input_parameters &p, uint32_t shared, int32_t loader)
{
    gemm_ring<CONFIG> ring = ring_of_producer<CONFIG>();
    const int64_t tiles = gemm_tiles(p);
    const int32_t slices = slices_of<CONFIG>(p);
    if (blockIdx.x >= tiles) return;
    gemm_tile tile = mixed_input_tile<CONFIG>(p, blockIdx.x);
    griddepcontrol_wait();
    for (int64_t number = blockIdx.x;;) {
        load_slice_rows<CONFIG>(p, shared, tile, slices, loader, ring);
        number += gridDim.x;
        if (number >= tiles) break;
        tile = mixed_input_tile<CONFIG>(p, number);
    }
}

/* One warpgroup ---------------------------------------------------------------------------------------------------- */

/* A stage: `steps` of K from this one on, of B's codes and A's rows. */
template <class CONFIG>
__device__ static inline void load_steps(const bsmi_mixed_input_parameters &p, uint32_t shared,
                                         const gemm_ring<CONFIG> &ring, const gemm_tile &tile, int32_t step,
                                         int32_t steps)
{
    const uint32_t full = full_barrier<CONFIG>(shared, ring.stage);
    const uint32_t to = shared + CONFIG::AT_A + ring.stage * CONFIG::STEPS * CONFIG::A_BYTES;
    const int32_t matrix = matrix_of_a(p, tile);
    mbarrier_wait_parity(empty_barrier<CONFIG>(shared, ring.stage), ring.parity);
    mbarrier_arrive_expect_tx(full, CONFIG::CODE_BYTES + steps * CONFIG::A_BYTES);
    tensor_load(shared + CONFIG::AT_CODES + ring.stage * CONFIG::CODE_BYTES, &p.b, step * (BSMI_K_STEP / 2),
                tile.column, tile.matrix * p.b_batch_step, full);
    for (int32_t i = 0; i < steps; i++)
        tensor_load(to + i * CONFIG::A_BYTES, &p.a, (step + i) * BSMI_K_STEP, tile.row, matrix, full);
}

template <class CONFIG>
__device__ static inline void produce_steps(const bsmi_mixed_input_parameters &p, uint32_t shared)
{
    gemm_ring<CONFIG> ring = ring_of_producer<CONFIG>();
    const int32_t steps = paired_steps(p);
    for_each_tile<CONFIG>(p, { 0, 0 }, [&](const gemm_tile &tile, bool) {
        for (int32_t step = 0; step < steps; step += CONFIG::STEPS, ring.next())
            load_steps<CONFIG>(p, shared, ring, tile, step, min(CONFIG::STEPS, steps - step));
    });
}
