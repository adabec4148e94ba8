/* The producer: one thread a CTA, which fills the ring with tiles of A and B. */
#pragma once

#include "cuda/sm90/kernels/gemm_config.cuh"

/* The CTAs that share this CTA's rows of A: those of its row of the cluster; and its rows of B: those of its column. */
template <class CONFIG> __device__ static inline uint16_t sharers_of_a(gemm_cta cta)
{
    uint32_t mask = 0;
    for (uint32_t column = 0; column < CONFIG::CLUSTER_COLUMNS; column++) mask |= 1u << (cta.row + column * CONFIG::CLUSTER_ROWS);
    return (uint16_t)mask;
}
template <class CONFIG> __device__ static inline uint16_t sharers_of_b(gemm_cta cta)
{
    return (uint16_t)(((1u << CONFIG::CLUSTER_ROWS) - 1) << cta.column * CONFIG::CLUSTER_ROWS);
}

template <int SHARERS>
__device__ static inline void load(uint32_t to, const bsmi_tensor_map &map, int32_t column, int32_t row, int32_t matrix, uint32_t full,
                                   uint16_t sharers)
{
    if (SHARERS == 1) tensor_load(to, &map, column, row, matrix, full);
    else tensor_load_multicast(to, &map, column, row, matrix, full, sharers);
}

/* Waits until the stage is free here and wherever this CTA's part goes, announces a whole stage, and loads this CTA's part of it. */
template <class CONFIG>
__device__ static inline void load_stage(const bsmi_gemm_parameters &p, uint32_t shared, gemm_ring<CONFIG> ring, gemm_cta cta,
                                         const gemm_tile &tile, int32_t a_column, int32_t b_column)
{
    const uint32_t full = full_barrier<CONFIG>(shared, ring.stage), empty = empty_barrier<CONFIG>(shared, ring.stage);
    const uint32_t a_part = cta.column * CONFIG::A_BOX_ROWS, b_part = cta.row * CONFIG::B_BOX_ROWS;
    mbarrier_wait_parity(empty, ring.parity);
    mbarrier_arrive_expect_tx(full, CONFIG::A_BYTES + CONFIG::B_BYTES);
    load<CONFIG::CLUSTER_COLUMNS>(shared + CONFIG::AT_A + ring.stage * CONFIG::A_BYTES + a_part * CONFIG::K_BYTES, p.a, a_column,
                                  tile.row + (int32_t)a_part, p.epilogue.grouped ? 0 : tile.matrix * p.a_batch_step, full,
                                  sharers_of_a<CONFIG>(cta));
    load<CONFIG::CLUSTER_ROWS>(shared + CONFIG::AT_B + ring.stage * CONFIG::B_BYTES + b_part * CONFIG::K_BYTES, p.b, b_column,
                               tile.column + (int32_t)b_part, tile.matrix * p.b_batch_step, full, sharers_of_b<CONFIG>(cta));
}

template <class CONFIG>
__device__ static inline void produce(const bsmi_gemm_parameters &p, uint32_t shared, gemm_cta cta)
{
    gemm_ring<CONFIG> ring = { 0, 1 };    /* the phase before the first counts as complete: every stage begins empty */
    const int64_t tiles = gemm_tiles(p), step = gridDim.x / CONFIG::CLUSTER;
    for (int64_t number = blockIdx.x / CONFIG::CLUSTER; number < tiles; number += step) {
        const gemm_tile tile = gemm_tile_of<CONFIG>(p, number, cta);
        if (number < step) griddepcontrol_wait();             /* and rows, where they are decoded */
        for (int32_t s = 0; s < p.segment_count; s++)
            for (int32_t block = 0; block < p.segments[s].blocks; block++, ring.next())
                load_stage<CONFIG>(p, shared, ring, cta, tile, p.segments[s].a_column + block * BSMI_K_STEP,
                                   p.segments[s].b_column + block * BSMI_K_STEP);
    }
    griddepcontrol_launch_dependents();
}
