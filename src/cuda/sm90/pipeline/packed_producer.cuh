/* The loader of panels: a thread. */
#pragma once

#include "cuda/ptx/bulk_copy.cuh"
#include "cuda/sm90/kernels/packed_config.cuh"
#include "cuda/sm90/mainloop/turns.cuh"

/* Where the loader of panels is. */
template <class CONFIG> struct panel_loader {
    gemm_ring<typename CONFIG::panel_ring> ring;
    int64_t number;                       /* of the tile; behind the last it has ended */
    const unsigned char *from;
    int32_t turn;
};

template <class CONFIG>
__device__ static inline void aim_at_panel(const bsmi_mixed_input_parameters &p, int64_t tiles, panel_loader<CONFIG> &at)
{
    at.turn = 0;
    if (at.number < tiles) at.from = panel_of<CONFIG>(p, turn_tile_of<CONFIG>(p, at.number));
}

template <class CONFIG>
__device__ static inline void load_panel_turn(const bsmi_mixed_input_parameters &p, uint32_t shared, int64_t tiles, int32_t turns,
                                              panel_loader<CONFIG> &at)
{
    using RING = typename CONFIG::panel_ring;
    const uint32_t full = full_barrier<RING>(shared, at.ring.stage);
    mbarrier_wait_parity(empty_barrier<RING>(shared, at.ring.stage), at.ring.parity);
    mbarrier_arrive_expect_tx(full, CONFIG::PANEL_BYTES);
    cp_async_bulk_load(shared + CONFIG::AT_PANELS + at.ring.stage * CONFIG::PANEL_BYTES, at.from, CONFIG::PANEL_BYTES, full);
    at.ring.next();
    at.from += CONFIG::PANEL_BYTES;
    if (++at.turn < turns) return;
    at.number += gridDim.x;
    aim_at_panel<CONFIG>(p, tiles, at);
}

/* As many turns as the ring has stages. */
template <class CONFIG>
__device__ static inline panel_loader<CONFIG> begin_panels(const bsmi_mixed_input_parameters &p, uint32_t shared)
{
    panel_loader<CONFIG> at = { { 0, 1 }, (int64_t)blockIdx.x, nullptr, 0 };   /* the phase before the first counts as complete */
    const int64_t tiles = gemm_tiles(p);
    const int32_t turns = turns_of_panel<CONFIG>(p);
    aim_at_panel<CONFIG>(p, tiles, at);
#pragma unroll 1
    for (int i = 0; i < CONFIG::PANEL_STAGES && at.number < tiles; i++) load_panel_turn<CONFIG>(p, shared, tiles, turns, at);
    return at;
}

template <class CONFIG>
__device__ static inline void produce_panels(const bsmi_mixed_input_parameters &p, uint32_t shared, panel_loader<CONFIG> at)
{
    const int64_t tiles = gemm_tiles(p);
    const int32_t turns = turns_of_panel<CONFIG>(p);
#pragma unroll 1
    while (at.number < tiles) load_panel_turn<CONFIG>(p, shared, tiles, turns, at);
}
