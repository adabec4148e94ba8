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

/* The steps of a job, ascending; the ring goes on behind them.  All of it is inlined by order: in a kernel of many
 * loops the compiler else keeps fragments in memory. */
template <class CONFIG, class PAIR> struct gemm_summing {
    const gemm_reader<CONFIG> &reader;
    uint32_t shared;
    gemm_set_ring<CONFIG> &ring;
    int32_t step;                         /* the next to wait for */
    int32_t last_products;                /* of the job's last step that K has */
    gemm_stage stage;
    gemm_fragments<CONFIG> fragments[2];

    __device__ __forceinline__ void wait_for_stage()
    {
        mbarrier_wait_parity(full_barrier<CONFIG>(shared, ring.stage()), ring.parity);
        stage = stage_of<CONFIG>(shared, ring.stage(), step++);
    }

    template <int PRODUCT> __device__ __forceinline__ void load()
    {
        load_fragments<CONFIG, PAIR, PRODUCT>(fragments[PRODUCT % 2], fragments[(PRODUCT + 1) % 2], reader, stage);
    }

    template <int PRODUCT, bool IS_LAST> __device__ __forceinline__ void multiply_product(gemm_sums<CONFIG> &sums)
    {
        gemm_fragments<CONFIG> &f = fragments[PRODUCT % 2];
        if (CONFIG::SCALED && IS_LAST && PRODUCT > 0 && PRODUCT >= last_products) clear_scales(f);
        multiply<CONFIG, PAIR, PRODUCT>(sums, f);
    }

    /* One step, of which the fragments of PRODUCT have been loaded; behind it, unless it is the job's last, those of
     * the next. */
    template <bool IS_LAST, int PRODUCT = 0> __device__ __forceinline__ void work(gemm_sums<CONFIG> &sums)
    {
        if constexpr (PRODUCT + 1 < CONFIG::PRODUCTS) {
            load<PRODUCT + 1>();
            multiply_product<PRODUCT, IS_LAST>(sums);
            work<IS_LAST, PRODUCT + 1>(sums);
        } else {
            release_stage<CONFIG>(shared, ring.stage());
            ring.next();
            if constexpr (CONFIG::PRODUCTS == 1) multiply_product<PRODUCT, IS_LAST>(sums);
            if constexpr (!IS_LAST) {
                wait_for_stage();
                load<0>();
            }
            if constexpr (CONFIG::PRODUCTS > 1) multiply_product<PRODUCT, IS_LAST>(sums);
        }
    }
};

template <class CONFIG, class PAIR>
__device__ __forceinline__ static void sum_job(const bsmi_blackwell_parameters &p, gemm_sums<CONFIG> &sums,
                                      const gemm_reader<CONFIG> &reader, uint32_t shared, gemm_set_ring<CONFIG> &ring,
                                      const gemm_job &job)
{
    gemm_summing<CONFIG, PAIR> s = { reader, shared, ring, job.first_step,
                                     job.has_last_step ? p.last_products : CONFIG::PRODUCTS };
    s.wait_for_stage();
    s.template load<0>();
#pragma unroll 1
    for (int32_t i = 1; i < job.steps; i++) s.template work<false>(sums);
    s.template work<true>(sums);
}
