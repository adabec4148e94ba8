/* The consumer of fused dequantization: a warpgroup that multiplies 64 dequantized rows of B with the rows of A, and
 * finishes 64 columns of D. */
#pragma once

#include "cuda/sm90/epilogue/transposed.cuh"
#include "shared_memory_consumer.cuh"

/* What a thread keeps from step to step: computing it again in each takes longer than the products of few rows. */
struct fused_operands {
    uint64_t a, b;                        /* descriptors of stage 0 */
    uint32_t full, empty;                 /* barriers of stage 0; empty: in the CTA that this thread notifies */
    bool notifies;
};

/* shared and thread come by way of shfl: otherwise ptxas reads special registers again wherever they are wanted. */
template <class CONFIG> __device__ static inline fused_operands fused_operands_of(uint32_t shared)
{
    const uint32_t thread = __shfl_sync(0xffffffff, threadIdx.x % 128, threadIdx.x % 32),
                   empty = shared + CONFIG::AT_EMPTY;
    return { wgmma_descriptor(shared + CONFIG::AT_A), wgmma_descriptor(shared + CONFIG::AT_B), shared + CONFIG::AT_FULL,
             CONFIG::CLUSTER == 1 ? empty : mapa_shared_cluster(empty, thread % CONFIG::CLUSTER),
             thread < CONFIG::CLUSTER };
}

/* One step of K: four products of 16 columns. */
template <class CONFIG>
__device__ static inline void multiply_fused(transposed_sums<CONFIG> &sums, const fused_operands &o, uint32_t stage,
                                             bool adds)
{
    const uint64_t a = o.a + stage * (CONFIG::A_BYTES / 16), b = o.b + stage * (CONFIG::B_BYTES / 16);
    wgmma_fence();
#pragma unroll
    for (int product = 0; product < CONFIG::PRODUCTS; product++)
#pragma unroll
        for (int k = 0; k < 4; k++)
            wgmma_bf16<CONFIG::PRODUCT_ROWS>::multiply(
                sums[product], b + 2 * k, a + 2 * k + product * (CONFIG::PRODUCT_ROWS * CONFIG::K_BYTES / 16),
                adds || k > 0);
    wgmma_commit_group();
}

/* The sums of a tile, K ascending, 16 columns at a time, as sum_tile of shared_memory_consumer.cuh makes them. */
template <class CONFIG>
__device__ static inline void sum_fused(transposed_sums<CONFIG> &sums, const fused_operands &o, gemm_ring<CONFIG> &ring,
                                        int32_t steps)
{
    uint32_t before = 0;
    for (int32_t step = 0; step < steps; step++, ring.next()) {
        mbarrier_wait_parity(o.full + ring.stage * 8, ring.parity);
        multiply_fused<CONFIG>(sums, o, ring.stage, step > 0);
        if (step > 0) {
            wgmma_wait_group<1>();
            release_stage<CONFIG>(o.empty + before * 8, o.notifies);
        }
        before = ring.stage;
    }
    wgmma_wait_group<0>();
#pragma unroll
    for (int product = 0; product < CONFIG::PRODUCTS; product++)
#pragma unroll
        for (int i = 0; i < CONFIG::PRODUCT_SUMS; i++) asm volatile("" : "+f"(sums[product][i])::"memory");
    release_stage<CONFIG>(o.empty + before * 8, o.notifies);
}

template <class CONFIG>
__device__ static inline void consume_fused(const bsmi_gemm_parameters &p, uint32_t shared, gemm_cta cta)
{
    transposed_sums<CONFIG> sums;
    gemm_ring<CONFIG> ring = { 0, 0 };
    const fused_operands operands = fused_operands_of<CONFIG>(shared);
    const gemm_finish finish = gemm_finish_of(p);
    const int32_t steps = steps_of_k(p);
    for_each_tile<CONFIG>(p, cta, [&](const gemm_tile &tile, bool) {
        const bool scaled = fill_tables<CONFIG>(p, finish, tile, shared, 0);
        sum_fused<CONFIG>(sums, operands, ring, steps);
        finish_transposed_tile<CONFIG>(p, finish, tile, transposed_tile_of<CONFIG>(p, tile, shared, 0, scaled), sums);
    });
}
