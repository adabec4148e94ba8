/* The producers: a thread each of three warps.  One loads codes of B, two load rows of A, half of a turn each: a thread that
 * does all of it takes longer than a turn. */
#pragma once

#include "split_config.cuh"

/* B is as the caller gave it: its codes come before the kernel in front of this one, which makes A's rows, has ended. */
template <class CONFIG>
__device__ static inline void load_codes(const bsmi_gemm_parameters &p, uint32_t shared, uint32_t stage, const gemm_tile &tile,
                                         int32_t turn)
{
    const uint32_t full = full_barrier<CONFIG>(shared, stage);
    mbarrier_arrive_expect_tx(full, CONFIG::CODE_BYTES);
    tensor_load(shared + CONFIG::AT_CODES + stage * CONFIG::CODE_BYTES, &p.b, turn * 128, tile.column, tile.matrix * p.b_batch_step,
                full);
}

/* Of the turn the steps from `step` on. */
template <class CONFIG>
__device__ static inline void load_rows(const bsmi_gemm_parameters &p, uint32_t shared, uint32_t stage, const gemm_tile &tile,
                                        int32_t turn, int32_t step)
{
    constexpr int STEPS = CONFIG::STEPS / CONFIG::ROW_LOADERS;
    const uint32_t full = full_barrier<CONFIG>(shared, stage),
                   to = shared + CONFIG::AT_A + (stage * CONFIG::STEPS + step) * CONFIG::A_BYTES;
    const int32_t matrix = p.epilogue.grouped ? 0 : tile.matrix * p.a_batch_step;
    mbarrier_arrive_expect_tx(full, STEPS * CONFIG::A_BYTES);
#pragma unroll
    for (int32_t i = 0; i < STEPS; i++)
        tensor_load(to + i * CONFIG::A_BYTES, &p.a, (turn * CONFIG::STEPS + step + i) * BSMI_K_STEP, tile.row, matrix, full);
}

/* loader: 0 for codes, then those of rows. */
template <class CONFIG>
__device__ static inline void produce_split(const bsmi_gemm_parameters &p, uint32_t shared, const split_part &part, uint32_t loader)
{
    gemm_ring<CONFIG> ring = { 0, 1 }; /* the phase before the first counts as complete: every stage begins empty */
    const int64_t tiles = gemm_tiles(p);
    const int32_t turns = turns_of_part<CONFIG>(p, part), step = ((int32_t)loader - 1) * (CONFIG::STEPS / CONFIG::ROW_LOADERS);
    for (int64_t number = first_of_cluster(part); number < tiles; number += clusters_of(part)) {
        const gemm_tile tile = gemm_tile_of<CONFIG>(p, number, { 0, 0 });
        for (int32_t turn = 0; turn < turns; turn++, ring.next()) {
            const int32_t of_tile = turn * (int32_t)part.parts + (int32_t)part.rank;
            mbarrier_wait_parity(empty_barrier<CONFIG>(shared, ring.stage), ring.parity);
            if (loader == 0) load_codes<CONFIG>(p, shared, ring.stage, tile, of_tile);
            else load_rows<CONFIG>(p, shared, ring.stage, tile, of_tile, step);
        }
    }
}

template <class CONFIG>
__device__ static inline void produce_splits(const bsmi_gemm_parameters &p, uint32_t shared, const split_part &part)
{
    const uint32_t loader = warp_of_cta() - CONFIG::WARPS;
    if (loader > CONFIG::ROW_LOADERS || !elect_sync()) return;
    if (loader > 0) griddepcontrol_wait();
    produce_split<CONFIG>(p, shared, part, loader);
    if (loader > 0) griddepcontrol_launch_dependents();
}
