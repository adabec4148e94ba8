/* D = finish(A B^T) on Hopper where B has codes of four bits, A few rows, and the order of sums is free: BSM_ORDER_ANY.
 *
 * Decoding and multiplying are those of register.cuh, but each of several warpgroups has sums of its own, of its turns of
 * four steps of K; so have the two CTAs of a cluster, if it has two.  They are added when a tile's turns are over, in an
 * order that depends on K and the instance alone: the same product gives the same bits each time.  A persistent grid of CTAs
 * or clusters with a ring of stages, and roles:
 *
 *   warpgroups       take turns at a tile: decode 64 rows of B and multiply them, wgmma's first operand, in registers; the
 *                    one with the last turn adds, finishes and stores 64 columns of D, while the others go on with the next
 *                    tile
 *   the last one     one thread loads codes of B, 128 bytes of a row a stage, two load rows of A */
#pragma once

#include "cuda/sm90/pipeline/register_prefetch.cuh"
#include "split_consumer.cuh"

/* Full: of each producer an arrival and its bytes.  Empty: of the warps of the one warpgroup that reads the stage.  Scales
 * are brought, and read, by all.  Of sums, for each of four warps: given by other warpgroups, sent by the other CTA. */
template <class CONFIG> __device__ static inline void initialize_split_barriers(uint32_t shared)
{
    for (uint32_t stage = 0; stage < CONFIG::STAGES; stage++) {
        mbarrier_init(full_barrier<CONFIG>(shared, stage), 1 + CONFIG::ROW_LOADERS);
        mbarrier_init(empty_barrier<CONFIG>(shared, stage), 4);
    }
    mbarrier_init(shared + CONFIG::AT_READY, CONFIG::BRINGERS);
    mbarrier_init(shared + CONFIG::AT_READ, CONFIG::WARPS);
    for (uint32_t warp = 0; warp < 4; warp++) {
        mbarrier_init(shared + CONFIG::AT_GIVEN_FULL + warp * 8, CONFIG::GROUPS - 1);
        mbarrier_init(shared + CONFIG::AT_GIVEN_EMPTY + warp * 8, 1);
        mbarrier_init(shared + CONFIG::AT_SENT_FULL + warp * 8, 1);
        mbarrier_init(shared + CONFIG::AT_SENT_EMPTY + warp * 8, 1);
    }
    fence_mbarrier_init();
}

template <class CONFIG> __device__ static inline void split_gemm(const bsmi_gemm_parameters &p)
{
    extern __shared__ __align__(1024) unsigned char memory[];
    const uint32_t shared = __shfl_sync(0xffffffff, shared_address(memory), 0);
    const split_part part = split_part_of();
    if (threadIdx.x == 0) initialize_split_barriers<CONFIG>(shared);
    if (threadIdx.x == 32 * CONFIG::WARPS) {
        prefetch_tensormap(&p.a);
        prefetch_tensormap(&p.b);
    }
    synchronize_ctas(part.parts == 1);
    if (threadIdx.x == 32 * CONFIG::WARPS && p.first_of_call && first_of_cluster(part) < p.tiles)
        prefetch_tile<CONFIG>(p, gemm_tile_of<CONFIG>(p, first_of_cluster(part), { 0, 0 }), (int32_t)part.rank, (int32_t)part.parts,
                              min(turns_of_part<CONFIG>(p, part), CONFIG::STAGES));
    __syncwarp();
    if (p.epilogue.grouped || p.first_of_call)
        griddepcontrol_wait(); /* tables of groups are made in front of this kernel; B perhaps by another call */
    if (threadIdx.x < 32 * CONFIG::WARPS) {
        setmaxnreg_inc<CONFIG::CONSUMER>();
        consume_split<CONFIG>(p, memory, shared, part);
    } else {
        setmaxnreg_dec<CONFIG::PRODUCER>();
        produce_splits<CONFIG>(p, shared, part);
    }
    /* No CTA ends while the other may still send to it, or arrive on its barriers. */
    __syncwarp();
    if (part.parts > 1) synchronize_ctas(false);
}

#define SPLIT_KERNEL(codes, tile, rows, groups, ...)                                                                               \
    extern "C" __global__ void __launch_bounds__(128 * (groups + 1), 1)                                                            \
        bsmi_gemm_##codes##_##tile##_split(const __grid_constant__ bsmi_gemm_parameters p)                                         \
    {                                                                                                                              \
        split_gemm<split_config<codes_##codes, rows, groups, __VA_ARGS__>>(p);                                                     \
    }
