/* D = finish(A B^T) on Hopper where B has codes of four bits and A few rows, and B's codes and scales lie in panels (panel_layout.h).
 *
 * A persistent grid of CTAs with two rings of stages, and roles:
 *
 *   warpgroups       take turns at a tile: decode 64 rows of B and multiply them, wgmma's first operand, in registers; the one
 *                    with the last turn finishes and stores 64 columns of D, while the others go on with the next tile
 *   the last one     one thread loads turns of panels, others rows of A
 *
 * wgmma computes D^T = B A^T, so that its columns are as few as the rows of A.  The numbers that are multiplied, and the order of sums,
 * are those of the kernels that read decoded rows: so are the bits of D.
 *
 * Panels are loaded, and the first turns decoded, while the kernel in front of this one ends: until griddepcontrol.wait nothing else is
 * read. */
#pragma once

#include "packed_consumer.cuh"

/* Full: of each producer an arrival and its bytes.  Empty: of the warps of the one warpgroup that reads the stage. */
template <class CONFIG> __device__ static inline void initialize_packed_barriers(uint32_t shared)
{
    using PANELS = typename CONFIG::panel_ring;
    for (uint32_t stage = 0; stage < PANELS::STAGES; stage++) {
        mbarrier_init(full_barrier<PANELS>(shared, stage), 1);
        mbarrier_init(empty_barrier<PANELS>(shared, stage), 4);
    }
    for (uint32_t stage = 0; stage < CONFIG::STAGES; stage++) {
        mbarrier_init(full_barrier<CONFIG>(shared, stage), CONFIG::ROW_LOADERS);
        mbarrier_init(empty_barrier<CONFIG>(shared, stage), 4);
    }
    fence_mbarrier_init();
}

/* By the threads that load, several for A's rows: one that loads all of them takes longer than a turn.  panels: what the first has begun. */
template <class CONFIG>
__device__ static inline void produce_packed(const bsmi_mixed_input_parameters &p, uint32_t shared, const panel_loader<CONFIG> &panels)
{
    const uint32_t warp = warp_of_cta() - CONFIG::WARPS;
    if (!elect_sync()) return;
    if (warp == 0) {
        produce_panels<CONFIG>(p, shared, panels);
    } else {
        prefetch_rows<CONFIG>(p, (int32_t)warp - 1);
        produce_turn_rows<CONFIG>(p, shared, turns_of_panel<CONFIG>(p), (int32_t)warp - 1);
    }
}

template <class CONFIG> __device__ static inline void packed_gemm(const bsmi_mixed_input_parameters &p)
{
    extern __shared__ __align__(1024) unsigned char memory[];
    const uint32_t shared = __shfl_sync(0xffffffff, shared_address(memory), 0), warp = warp_of_cta();
    panel_loader<CONFIG> panels;
    if (p.epilogue.grouped) griddepcontrol_wait(); /* tables of groups are made in front of this kernel */
    if (warp == CONFIG::WARPS && elect_sync()) {
        initialize_packed_barriers<CONFIG>(shared);
        panels = begin_panels<CONFIG>(p, shared);
    }
    if (warp == CONFIG::WARPS + 1 && elect_sync()) prefetch_tensormap(&p.a);
    if (warp < CONFIG::WARPS) clear_rows<CONFIG>(p, shared);
    __syncthreads();
    griddepcontrol_launch_dependents();   /* the next kernel's CTAs may begin wherever these end */
    if (warp < CONFIG::WARPS) {
        setmaxnreg_inc<CONFIG::CONSUMER>();
        consume_packed<CONFIG>(p, memory, shared);
    } else {
        setmaxnreg_dec<CONFIG::PRODUCER>();
        produce_packed<CONFIG>(p, shared, panels);
    }
}

#define PACKED_KERNEL(codes, tile, rows, groups, ...)                                                                    \
    extern "C" __global__ void __launch_bounds__(128 * (groups + 1), 1)                                                  \
        bsmi_gemm_##codes##_##tile(const __grid_constant__ bsmi_mixed_input_parameters p)                                       \
    {                                                                                                                    \
        packed_gemm<packed_config<codes_##codes, rows, groups, __VA_ARGS__>>(p);                                         \
    }
