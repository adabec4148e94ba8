/* The consumers: warps that multiply what the ring holds, each its rows and columns of the tile.
 *
 * Fragments of a product are loaded while those before them are multiplied, across the stages, too.  A stage is handed
 * back when the fragments of its last product have been loaded. */
#pragma once

#include "cuda/ptx/tensor_copy.cuh"
#include "gemm_fragments.cuh"

template <class CONFIG> __device__ static inline void release_stage(uint32_t shared, uint32_t stage)
{
    fence_proxy_async_shared();           /* what was read, before TMA writes there */
    __syncwarp();
    if (threadIdx.x % 32 == 0) mbarrier_arrive(empty_barrier<CONFIG>(shared, stage));
}

/* The steps of a job, ascending; the ring goes on behind them. */
template <class CONFIG, class PAIR> struct gemm_summing {
    const gemm_reader &reader;
    uint32_t shared;
    gemm_ring<CONFIG::STAGES> &ring;
    int32_t step, end, all;               /* the next to wait for; behind the job's last; of all of K */
    uint32_t next_turn;                   /* ping-pong: the other set's barrier */
    gemm_stage stage;
    gemm_fragments<CONFIG> fragments[2];

    __device__ inline void wait_for_stage()
    {
        mbarrier_wait_parity(full_barrier<CONFIG>(shared, ring.at), ring.parity);
        stage = stage_of<CONFIG>(reader, shared, ring.at, step, step + 1 == all);
        step++;
    }

    template <int PRODUCT> __device__ inline void load()
    {
        load_fragments<CONFIG, PAIR, PRODUCT>(fragments[PRODUCT % 2], fragments[(PRODUCT + 1) % 2], reader, stage);
    }

    /* The fragments of PRODUCT have been loaded, and after this function those behind it. */
    template <int PRODUCT> __device__ inline void work(gemm_sums<CONFIG> &sums)
    {
        if constexpr (PRODUCT + 1 < CONFIG::PRODUCTS) {
            load<PRODUCT + 1>();
            multiply<CONFIG, PAIR, PRODUCT>(sums, fragments[PRODUCT % 2]);
            work<PRODUCT + 1>(sums);
        } else {
            release_stage<CONFIG>(shared, ring.at);
            ring.next();
            if constexpr (CONFIG::PRODUCTS == 1) multiply<CONFIG, PAIR, PRODUCT>(sums, fragments[0]);
            if (step < end) {
                wait_for_stage();
                load<0>();
            } else if (CONFIG::PING_PONG && threadIdx.x % 32 == 0) {
                mbarrier_arrive(next_turn);
            }
            if constexpr (CONFIG::PRODUCTS > 1) multiply<CONFIG, PAIR, PRODUCT>(sums, fragments[PRODUCT % 2]);
        }
    }
};

template <class CONFIG, class PAIR>
__device__ static inline void sum_job(gemm_sums<CONFIG> &sums, const gemm_reader &reader, uint32_t shared,
                                      gemm_ring<CONFIG::STAGES> &ring, const gemm_job &job, int32_t all_steps,
                                      uint32_t next_turn)
{
    gemm_summing<CONFIG, PAIR> s = { reader,  shared, ring, job.first_step, job.first_step + job.steps, all_steps,
                                     next_turn };
    s.wait_for_stage();
    s.template load<0>();
#pragma unroll 1
    for (int32_t i = 0; i < job.steps; i++) s.template work<0>(sums);
}
