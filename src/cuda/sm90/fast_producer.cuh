/* The producer: one thread a CTA, which fills the ring with codes and factors of A and B. */
#pragma once

#include "fast_config.cuh"
#include "gemm_producer.cuh"

/* The factors of a tile's rows (columns) for group number `group` of K. */
__device__ static inline const float *factors_at(const bsmi_fold_factors &f, int32_t matrix, int32_t group, int32_t row)
{
    return f.factors + ((int64_t)matrix * f.groups + group) * f.rows + row;
}

template <class CONFIG>
__device__ static inline void load_fast_stage(const bsmi_fast_parameters &f, uint32_t shared, gemm_ring<CONFIG> ring, gemm_cta cta,
                                              const gemm_tile &tile, int32_t group)
{
    const bsmi_gemm_parameters &p = f.gemm;
    const uint32_t full = full_barrier<CONFIG>(shared, ring.stage), empty = empty_barrier<CONFIG>(shared, ring.stage);
    const uint32_t a_part = cta.column * CONFIG::A_BOX_ROWS, b_part = cta.row * CONFIG::B_BOX_ROWS;
    const uint32_t factors = shared + CONFIG::AT_FACTORS + ring.stage * CONFIG::FACTOR_BYTES;
    const int32_t a_matrix = p.epilogue.grouped ? 0 : tile.matrix * p.a_batch_step, b_matrix = tile.matrix * p.b_batch_step;
    mbarrier_wait_parity(empty, ring.parity);
    mbarrier_arrive_expect_tx(full, CONFIG::A_BYTES + CONFIG::B_BYTES + CONFIG::FACTOR_BYTES);
    load<CONFIG::CLUSTER_COLUMNS>(shared + CONFIG::AT_A + ring.stage * CONFIG::A_BYTES + a_part * CONFIG::K_BYTES, p.a,
                                  group * BSMI_FOLD_COLUMNS, tile.row + (int32_t)a_part, a_matrix, full, sharers_of_a<CONFIG>(cta));
    load<CONFIG::CLUSTER_ROWS>(shared + CONFIG::AT_B + ring.stage * CONFIG::B_BYTES + b_part * CONFIG::K_BYTES, p.b,
                               group * BSMI_FOLD_COLUMNS, tile.column + (int32_t)b_part, b_matrix, full, sharers_of_b<CONFIG>(cta));
    bulk_load(factors, factors_at(f.a_factors, a_matrix, group, tile.row), CONFIG::A_FACTOR_BYTES, full);
    bulk_load(factors + CONFIG::A_FACTOR_BYTES, factors_at(f.b_factors, b_matrix, group, tile.column), CONFIG::B_FACTOR_BYTES, full);
}

template <class CONFIG>
__device__ static inline void produce_fast(const bsmi_fast_parameters &f, uint32_t shared, gemm_cta cta)
{
    gemm_ring<CONFIG> ring = { 0, 1 };    /* the phase before the first counts as complete: every stage begins empty */
    const int64_t tiles = gemm_tiles(f.gemm), step = gridDim.x / CONFIG::CLUSTER;
    for (int64_t number = blockIdx.x / CONFIG::CLUSTER; number < tiles; number += step) {
        const gemm_tile tile = gemm_tile_of<CONFIG>(f.gemm, number, cta);
        for (int32_t group = 0; group < f.a_factors.groups; group++, ring.next())
            load_fast_stage<CONFIG>(f, shared, ring, cta, tile, group);
    }
    griddepcontrol_launch_dependents();
}
