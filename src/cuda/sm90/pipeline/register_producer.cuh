/* The producer: one thread a CTA, which loads rows of A and codes of B.  Steps come in pairs: one behind the last is zeros. */
#pragma once

#include "shared_memory_producer.cuh"
#include "cuda/sm90/kernels/register_config.cuh"

__device__ static inline int32_t paired_steps(const bsmi_mixed_input_parameters &p) { return (p.segments[0].blocks + 1) & ~1; }

/* A stage: `steps` of K from this one on; of A's rows this CTA's part, for all CTAs of the cluster. */
template <class CONFIG>
__device__ static inline void load_steps(const bsmi_mixed_input_parameters &p, uint32_t shared, const gemm_ring<CONFIG> &ring, gemm_cta cta,
                                         const gemm_tile &tile, int32_t step, int32_t steps)
{
    const int32_t part = (int32_t)cta.column * CONFIG::A_BOX_ROWS, a_matrix = p.epilogue.grouped ? 0 : tile.matrix * p.a_batch_step;
    const uint32_t full = full_barrier<CONFIG>(shared, ring.stage);
    mbarrier_wait_parity(empty_barrier<CONFIG>(shared, ring.stage), ring.parity);
    mbarrier_arrive_expect_tx(full, CONFIG::CODE_BYTES + steps * CONFIG::A_BYTES);
    tensor_load(shared + CONFIG::AT_CODES + ring.stage * CONFIG::CODE_BYTES, &p.b, step * (BSMI_K_STEP / 2), tile.column,
                tile.matrix * p.b_batch_step, full);
    const uint32_t to = shared + CONFIG::AT_A + ring.stage * CONFIG::STEPS * CONFIG::A_BYTES + part * CONFIG::K_BYTES;
    for (int32_t i = 0; i < steps; i++)
        load<CONFIG::CLUSTER>(to + i * CONFIG::A_BYTES, p.a, (step + i) * BSMI_K_STEP, tile.row + part, a_matrix, full, sharers_of_a<CONFIG>(cta));
}

template <class CONFIG> __device__ static inline void produce_registers(const bsmi_mixed_input_parameters &p, uint32_t shared, gemm_cta cta)
{
    gemm_ring<CONFIG> ring = { 0, 1 };    /* the phase before the first counts as complete: every stage begins empty */
    const int64_t tiles = gemm_tiles(p), stride = gridDim.x / CONFIG::CLUSTER;
    const int32_t steps = paired_steps(p);
    for (int64_t number = blockIdx.x / CONFIG::CLUSTER; number < tiles; number += stride) {
        const gemm_tile tile = gemm_tile_of<CONFIG>(p, number, cta);
        for (int32_t step = 0; step < steps; step += CONFIG::STEPS, ring.next())
            load_steps<CONFIG>(p, shared, ring, cta, tile, step, min(CONFIG::STEPS, steps - step));
    }
}
