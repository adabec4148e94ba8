/* D = finish(A B^T) on Hopper: bf16 rows of A and B by TMA, fp32 sums by wgmma.
 *
 * A persistent grid of CTAs or clusters, each of which makes tiles of D in the order of gemm_order.h, every gridDim-th.  Roles:
 *
 *   warpgroup 0       one thread loads tiles of 64 columns into a ring of stages, and runs ahead into the next tile (gemm_producer.cuh)
 *   the others        multiply, finish and store 64 or 128 rows of the tile each (gemm_consumer.cuh)
 *
 * CTAs of a cluster that need the same rows of A or B load a part each, for all of them.  Every step of K goes into one chain of
 * fp32 sums, in ascending order: the order depends on K alone, not on the instance.  K is at least one step. */
#pragma once

#include "gemm_consumer.cuh"
#include "cuda/sm90/pipeline/gemm_producer.cuh"

template <class CONFIG> __device__ static inline void initialize_barriers(uint32_t shared)
{
    constexpr int SENDERS = CONFIG::CLUSTER_ROWS + CONFIG::CLUSTER_COLUMNS - 1;
    for (uint32_t stage = 0; stage < CONFIG::STAGES; stage++) {
        mbarrier_init(full_barrier<CONFIG>(shared, stage), 1);
        mbarrier_init(empty_barrier<CONFIG>(shared, stage), SENDERS * CONFIG::GROUPS);
    }
    fence_mbarrier_init();
}

/* What the kernels with this skeleton differ in: their barriers, what their warpgroups do, and whether all threads wait for the kernel
 * in front before that.  Without, those that load and those that multiply wait when they know their first tile, and the instructions up
 * to there have come meanwhile; groups' tables are waited for before, by all kernels. */
template <class CONFIG> struct gemm_roles {
    static constexpr bool WAITS_FIRST = false;
    __device__ static inline void begin(uint32_t shared) { initialize_barriers<CONFIG>(shared); }
    __device__ static inline void work(const bsmi_gemm_parameters &p, uint32_t shared, gemm_cta cta, uint32_t group)
    {
        /* 65,536 registers for three warpgroups: the producer's keeps few, the consumers' sums need many.  Two have enough. */
        constexpr int PRODUCER = 40, CONSUMER = 232;
        constexpr bool MOVES = CONFIG::GROUPS == 2;
        if (group == 0) {
            if (MOVES) setmaxnreg_dec<PRODUCER>();
            if (warp_of_cta() == 0 && elect_sync()) produce<CONFIG>(p, shared, cta);
        } else {
            if (MOVES) setmaxnreg_inc<CONSUMER>();
            consume<CONFIG>(p, shared, cta, group - 1);
        }
    }
};

template <class CONFIG, class ROLES = gemm_roles<CONFIG>> __device__ static inline void gemm(const bsmi_gemm_parameters &p)
{
    extern __shared__ __align__(1024) unsigned char memory[];
    const uint32_t shared = shared_address(memory), group = threadIdx.x / 128;
    const gemm_cta cta = gemm_cta_of<CONFIG>(CONFIG::CLUSTER == 1 ? 0 : cluster_ctarank());
    if (threadIdx.x == 0) {
        prefetch_tensormap(&p.a);
        prefetch_tensormap(&p.b);
        ROLES::begin(shared);
    }
    synchronize_ctas(CONFIG::CLUSTER == 1);
    if (ROLES::WAITS_FIRST || p.epilogue.grouped) griddepcontrol_wait();
    ROLES::work(p, shared, cta, group);
    /* No CTA ends while another may still arrive on its barriers. */
    __syncwarp();
    synchronize_ctas(CONFIG::CLUSTER == 1);
}

#define GEMM_KERNEL(tile, rows, columns, groups, cluster_rows, cluster_columns, stages, d_box_bytes)                    \
    extern "C" __global__ void __launch_bounds__(128 * (groups + 1), 1)                                                  \
        bsmi_gemm_##tile(const __grid_constant__ bsmi_gemm_parameters p)                                                 \
    {                                                                                                                    \
        gemm<gemm_config<rows, columns, groups, cluster_rows, cluster_columns, stages, d_box_bytes>>(p);                 \
    }
