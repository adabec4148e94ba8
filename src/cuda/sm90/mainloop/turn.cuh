/* D = finish(A B^T) on Hopper where B has codes of four bits and A few rows: B's codes go from memory to the tensor cores by way of
 * registers, and their scales are read as the caller has them.
 *
 * A persistent grid of CTAs or clusters with two rings of stages, and roles:
 *
 *   warpgroups       take turns at a tile: decode 64 rows of B and multiply them, wgmma's first operand, in registers; the one with the last
 *                    turn finishes and stores 64 columns of D, while the others go on with the next tile
 *   the last one     one thread loads codes of B, 128 bytes of a row a stage, and rows of A
 *
 * wgmma computes D^T = B A^T, so that its columns are as few as the rows of A.  The numbers that are multiplied, and the order of sums,
 * are those of the kernels that read decoded rows: so are the bits of D. */
#pragma once

#include "cuda/sm90/pipeline/register_prefetch.cuh"
#include "turn_consumer.cuh"

/* Full: the producer's arrival and its bytes.  Empty: of the warps of the one warpgroup that reads the stage, of A in every CTA that holds a
 * part of it.  Of turns: the warp before; scales are brought, and read, by all. */
template <class CONFIG> __device__ static inline void initialize_turn_barriers(uint32_t shared)
{
    for (uint32_t stage = 0; stage < CONFIG::STAGES; stage++) {
        mbarrier_init(full_barrier<CONFIG>(shared, stage), CONFIG::ROW_LOADERS);
        mbarrier_init(empty_barrier<CONFIG>(shared, stage), 4);
    }
    for (uint32_t stage = 0; stage < CONFIG::CODE_STAGES; stage++) {
        mbarrier_init(full_barrier<typename CONFIG::codes_ring>(shared, stage), 1);
        mbarrier_init(empty_barrier<typename CONFIG::codes_ring>(shared, stage), 4);
    }
    for (uint32_t warp = 0; warp < CONFIG::WARPS; warp++) mbarrier_init(shared + CONFIG::AT_TURNS + warp * 8, 1);
    mbarrier_init(shared + CONFIG::AT_READY, CONFIG::BRINGERS);
    mbarrier_init(shared + CONFIG::AT_READ, CONFIG::WARPS);
    fence_mbarrier_init();
    for (uint32_t warp = 0; warp < 4; warp++) mbarrier_arrive(shared + CONFIG::AT_TURNS + warp * 8);       /* the first turn waits for nobody */
}

template <class CONFIG> __device__ static inline void turn_gemm(const bsmi_mixed_input_parameters &p)
{
    extern __shared__ __align__(1024) unsigned char memory[];
    const uint32_t shared = __shfl_sync(0xffffffff, shared_address(memory), 0);
    if (threadIdx.x == 0) initialize_turn_barriers<CONFIG>(shared);
    if (threadIdx.x == 32 * CONFIG::WARPS) {
        prefetch_tensormap(&p.a);
        prefetch_tensormap(&p.b);
    }
    if (warp_of_cta() < CONFIG::WARPS) clear_rows<CONFIG>(p, shared);
    __syncthreads();
    if (threadIdx.x == 32 * CONFIG::WARPS && p.first_of_call && blockIdx.x < p.tiles)
        prefetch_tile<CONFIG>(p, turn_tile_of<CONFIG>(p, blockIdx.x), min(turns_of<CONFIG>(p), CONFIG::CODE_STAGES));
    for (int32_t i = 0; i < CONFIG::ROW_LOADERS; i++)
        if (threadIdx.x == 32 * (CONFIG::WARPS + 1 + i)) prefetch_rows<CONFIG>(p, i);
    __syncwarp();
    if (p.epilogue.grouped || p.first_of_call) griddepcontrol_wait();   /* tables of groups are made in front of this kernel; B perhaps by another call */
    if (threadIdx.x < 32 * CONFIG::WARPS) {
        setmaxnreg_inc<CONFIG::CONSUMER>();
        consume_turns<CONFIG>(p, memory, shared);
    } else {
        setmaxnreg_dec<CONFIG::PRODUCER>();
        produce_turns<CONFIG>(p, shared);
    }
}

#define TURN_KERNEL(codes, tile, rows, groups, ...)                                                                      \
    extern "C" __global__ void __launch_bounds__(128 * (groups + 1), 1)                                                  \
        bsmi_gemm_##codes##_##tile(const __grid_constant__ bsmi_mixed_input_parameters p)                                       \
    {                                                                                                                    \
        turn_gemm<turn_config<codes_##codes, rows, groups, __VA_ARGS__>>(p);                                             \
    }
