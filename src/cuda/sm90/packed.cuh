/* D = finish(A B^T) on Hopper where B has codes of four bits and A few rows, and B's codes and scales lie in panels (panel_layout.h).
 *
 * A persistent grid of CTAs with two rings of stages, and roles:
 *
 *   warpgroups       take turns at a tile: decode 64 rows of B and multiply them, wgmma's first operand, in registers; the one
 *                    with the last turn finishes and stores 64 columns of D, while the others go on with the next tile
 *   the last one     one thread loads turns of panels, two load rows of A
 *
 * wgmma computes D^T = B A^T, so that its columns are as few as the rows of A.  The numbers that are multiplied, and the order of sums,
 * are those of the kernels that read decoded rows: so are the bits of D. */
#pragma once

#include "packed_consumer.cuh"

/* Full: of each producer an arrival and its bytes.  Empty: of the warps of the one warpgroup that reads the stage.  Of turns: the warp
 * before. */
template <class CONFIG> __device__ static inline void initialize_packed_barriers(uint32_t shared)
{
    using PANELS = typename CONFIG::panel_ring;
    for (uint32_t stage = 0; stage < CONFIG::STAGES; stage++) {
        mbarrier_init(full_barrier<CONFIG>(shared, stage), CONFIG::ROW_LOADERS);
        mbarrier_init(empty_barrier<CONFIG>(shared, stage), 4);
    }
    for (uint32_t stage = 0; stage < PANELS::STAGES; stage++) {
        mbarrier_init(full_barrier<PANELS>(shared, stage), 1);
        mbarrier_init(empty_barrier<PANELS>(shared, stage), 4);
    }
    for (uint32_t warp = 0; warp < CONFIG::WARPS; warp++) mbarrier_init(shared + CONFIG::AT_TURNS + warp * 8, 1);
    fence_mbarrier_init();
    for (uint32_t warp = 0; warp < 4; warp++) mbarrier_arrive(shared + CONFIG::AT_TURNS + warp * 8); /* the first turn waits for nobody */
}

/* Of the first tile, before anything may be read that a kernel in front may write: such writes arrive in the L2 cache, too.  A turn for each
 * warpgroup: what more there is to ask for would keep rows of A waiting. */
template <class CONFIG> __device__ static inline void prefetch_panel(const bsmi_gemm_parameters &p)
{
    const gemm_tile tile = gemm_tile_of<CONFIG>(p, blockIdx.x, { 0, 0 });
    cp_async_bulk_prefetch(panel_of<CONFIG>(p, tile, 0), CONFIG::GROUPS * CONFIG::PANEL_BYTES);
}

template <class CONFIG> __device__ static inline void packed_gemm(const bsmi_gemm_parameters &p)
{
    extern __shared__ __align__(1024) unsigned char memory[];
    const uint32_t shared = __shfl_sync(0xffffffff, shared_address(memory), 0);
    if (threadIdx.x == 0) initialize_packed_barriers<CONFIG>(shared);
    if (threadIdx.x == 32 * CONFIG::WARPS) prefetch_tensormap(&p.a);
    __syncthreads();
    if (threadIdx.x == 32 * CONFIG::WARPS && p.first_of_call && blockIdx.x < p.tiles) prefetch_panel<CONFIG>(p);
    __syncwarp();
    if (p.epilogue.grouped || p.first_of_call) griddepcontrol_wait(); /* tables of groups are made in front of this kernel; panels perhaps by another call */
    if (threadIdx.x < 32 * CONFIG::WARPS) {
        setmaxnreg_inc<CONFIG::CONSUMER>();
        consume_packed<CONFIG>(p, memory, shared);
    } else {
        setmaxnreg_dec<CONFIG::PRODUCER>();
        produce_packed<CONFIG>(p, shared);
    }
}

#define PACKED_KERNEL(codes, tile, ...)                                                                                  \
    extern "C" __global__ void __launch_bounds__(128 * (BSMI_SM90_PACKED_GROUPS + 1), 1)                                 \
        bsmi_gemm_##codes##_##tile(const __grid_constant__ bsmi_gemm_parameters p)                                       \
    {                                                                                                                    \
        packed_gemm<packed_config<codes_##codes, __VA_ARGS__>>(p);                                                       \
    }
