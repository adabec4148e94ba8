/* The producer of the shared-memory main loop: one thread a CTA, which fills the ring with tiles of A and B. */
#pragma once

#include "cuda/sm90/mainloop/shared_memory_config.cuh"
#include "load.cuh"

/* Waits until the stage is free here and wherever this CTA's part goes, announces the bytes of a whole stage, and loads
 * this CTA's part of it. */
template <class CONFIG>
__device__ static inline void load_stage(const bsmi_gemm_parameters &p, uint32_t shared, gemm_ring<CONFIG> ring,
                                         gemm_cta cta, const gemm_tile &tile, int32_t a_column, int32_t b_column)
{
    const uint32_t full = full_barrier<CONFIG>(shared, ring.stage), empty = empty_barrier<CONFIG>(shared, ring.stage);
    const uint32_t a_part = cta.column * CONFIG::A_BOX_ROWS, b_part = cta.row * CONFIG::B_BOX_ROWS;
    mbarrier_wait_parity(empty, ring.parity);
    mbarrier_arrive_expect_tx(full, CONFIG::A_BYTES + CONFIG::B_BYTES);
    load<CONFIG::CLUSTER_COLUMNS>(shared + CONFIG::AT_A + ring.stage * CONFIG::A_BYTES + a_part * CONFIG::K_BYTES, p.a,
                                  a_column, tile.row + (int32_t)a_part, matrix_of_a(p, tile), full,
                                  sharers_of_a<CONFIG>(cta));
    load<CONFIG::CLUSTER_ROWS>(shared + CONFIG::AT_B + ring.stage * CONFIG::B_BYTES + b_part * CONFIG::K_BYTES, p.b,
                               b_column, tile.column + (int32_t)b_part, tile.matrix * p.b_batch_step, full,
                               sharers_of_b<CONFIG>(cta));
}

/* await(tile): until its rows are there, once what the kernel in front has written is. */
template <class CONFIG, class AWAIT>
__device__ static inline void produce(const bsmi_gemm_parameters &p, uint32_t shared, gemm_cta cta, AWAIT await)
{
    gemm_ring<CONFIG> ring = ring_of_producer<CONFIG>();
    for_each_tile<CONFIG>(p, cta, [&](const gemm_tile &tile, bool is_first) {
        if (is_first) griddepcontrol_wait();                  /* and rows, where another kernel dequantizes them */
        await(tile);
        for_each_step(p, [&](const bsmi_segment &segment, int32_t block) {
            load_stage<CONFIG>(p, shared, ring, cta, tile, segment.a_column + block * BSMI_K_STEP,
                               segment.b_column + block * BSMI_K_STEP);
            ring.next();
        });
    });
    griddepcontrol_launch_dependents();
}

template <class CONFIG>
__device__ static inline void produce(const bsmi_gemm_parameters &p, uint32_t shared, gemm_cta cta)
{
    produce<CONFIG>(p, shared, cta, [](const gemm_tile &) {});
}
