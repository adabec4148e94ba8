/* The producers: a thread each of three warps.  One loads turns of panels, two load rows of A, half of a turn each: a thread that does all of
 * it takes longer than a turn. */
#pragma once

#include "cuda/ptx/bulk_copy.cuh"
#include "packed_config.cuh"
#include "turns.cuh"

/* The panels do not come from the kernel in front of this one, which makes A's rows. */
template <class CONFIG> __device__ static inline void produce_panels(const bsmi_gemm_parameters &p, uint32_t shared)
{
    using RING = typename CONFIG::panel_ring;
    gemm_ring<RING> ring = { 0, 1 };      /* the phase before the first counts as complete: every stage begins empty */
    const int64_t tiles = gemm_tiles(p);
    const int32_t turns = turns_of<CONFIG>(p);
    for (int64_t number = blockIdx.x; number < tiles; number += gridDim.x) {
        const unsigned char *from = panel_of<CONFIG>(p, gemm_tile_of<CONFIG>(p, number, { 0, 0 }), 0);
        for (int32_t turn = 0; turn < turns; turn++, ring.next(), from += CONFIG::PANEL_BYTES) {
            const uint32_t full = full_barrier<RING>(shared, ring.stage);
            mbarrier_wait_parity(empty_barrier<RING>(shared, ring.stage), ring.parity);
            mbarrier_arrive_expect_tx(full, CONFIG::PANEL_BYTES);
            cp_async_bulk_load(shared + CONFIG::AT_PANELS + ring.stage * CONFIG::PANEL_BYTES, from, CONFIG::PANEL_BYTES, full);
        }
    }
}

template <class CONFIG> __device__ static inline void produce_packed(const bsmi_gemm_parameters &p, uint32_t shared)
{
    const uint32_t warp = warp_of_cta() - CONFIG::WARPS;
    if (warp > CONFIG::ROW_LOADERS || !elect_sync()) return;
    if (warp == 0) {
        produce_panels<CONFIG>(p, shared);
    } else {
        griddepcontrol_wait();
        produce_turn_rows<CONFIG>(p, shared, { 0, 0 }, ((int32_t)warp - 1) * (CONFIG::STEPS / CONFIG::ROW_LOADERS));
        griddepcontrol_launch_dependents();
    }
}
