/* The producers: a thread each of three warps.  One loads codes of B, two load rows of A, half of a turn each: a thread that does all of it takes
 * longer than a turn. */
#pragma once

#include "cuda/sm90/kernels/turn_config.cuh"
#include "cuda/sm90/mainloop/turns.cuh"

/* B is as the caller gave it: its codes come before the kernel in front of this one, which makes A's rows, has ended. */
template <class CONFIG> __device__ static inline void produce_turn_codes(const bsmi_mixed_input_parameters &p, uint32_t shared)
{
    using RING = typename CONFIG::codes_ring;
    gemm_ring<RING> ring = { 0, 1 };      /* the phase before the first counts as complete: every stage begins empty */
    const int64_t tiles = gemm_tiles(p);
    const int32_t turns = turns_of<CONFIG>(p);
    for (int64_t number = blockIdx.x; number < tiles; number += gridDim.x) {
        const gemm_tile tile = turn_tile_of<CONFIG>(p, number);
        for (int32_t turn = 0; turn < turns; turn++, ring.next()) {
            const uint32_t full = full_barrier<RING>(shared, ring.stage);
            mbarrier_wait_parity(empty_barrier<RING>(shared, ring.stage), ring.parity);
            mbarrier_arrive_expect_tx(full, CONFIG::CODE_BYTES);
            tensor_load(shared + CONFIG::AT_CODES + ring.stage * CONFIG::CODE_BYTES, &p.b, turn * 128, tile.column, tile.matrix * p.b_batch_step, full);
        }
    }
}

template <class CONFIG> __device__ static inline void produce_turns(const bsmi_mixed_input_parameters &p, uint32_t shared)
{
    const uint32_t warp = warp_of_cta() - CONFIG::WARPS;
    if (warp > CONFIG::ROW_LOADERS || !elect_sync()) return;
    if (warp == 0) {
        produce_turn_codes<CONFIG>(p, shared);
    } else {
        produce_turn_rows<CONFIG>(p, shared, turns_of<CONFIG>(p), (int32_t)warp - 1);
        griddepcontrol_launch_dependents();
    }
}
