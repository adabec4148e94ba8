/* The consumer: a warpgroup that multiplies 64 decoded rows of B with the rows of A, and finishes 64 columns of D. */
#pragma once

#include "cuda/sm90/epilogue/decoding_epilogue.cuh"
#include "shared_memory_consumer.cuh"

/* What a thread keeps from step to step: computing it again in each takes longer than the products of few rows. */
struct decoded_operands {
    uint64_t a, b;                        /* descriptors of stage 0 */
    uint32_t full, empty;                 /* barriers of stage 0; the second one where this thread tells that a stage is read */
    bool tells;
};

/* shared and thread come by way of shfl, so that ptxas does not read special registers again wherever they are wanted. */
template <class CONFIG> __device__ static inline decoded_operands decoded_operands_of(uint32_t shared)
{
    const uint32_t thread = __shfl_sync(0xffffffff, threadIdx.x % 128, threadIdx.x % 32), empty = shared + CONFIG::AT_EMPTY;
    return { wgmma_descriptor(shared + CONFIG::AT_A), wgmma_descriptor(shared + CONFIG::AT_B),
             shared + CONFIG::AT_FULL, CONFIG::CLUSTER == 1 ? empty : mapa_shared_cluster(empty, thread % CONFIG::CLUSTER),
             thread < CONFIG::CLUSTER };
}

/* This warpgroup reads nothing of the stage any more: says so to every CTA whose part of A's rows it holds. */
template <class CONFIG> __device__ static inline void release_decoded(const decoded_operands &o, uint32_t stage)
{
    if (!o.tells) return;
    if (CONFIG::CLUSTER == 1) mbarrier_arrive(o.empty + stage * 8);
    else mbarrier_arrive_cluster(o.empty + stage * 8);
}

/* One step of K: four products of 16 columns. */
template <class CONFIG>
__device__ static inline void multiply_decoded(decoded_sums<CONFIG> &sums, const decoded_operands &o, uint32_t stage, bool adds)
{
    const uint64_t a = o.a + stage * (CONFIG::A_BYTES / 16), b = o.b + stage * (CONFIG::B_BYTES / 16);
    wgmma_fence();
#pragma unroll
    for (int product = 0; product < CONFIG::PRODUCTS; product++)
#pragma unroll
        for (int k = 0; k < 4; k++)
            wgmma_bf16<CONFIG::PRODUCT_ROWS>::multiply(sums[product], b + 2 * k, a + 2 * k + product * (CONFIG::PRODUCT_ROWS * CONFIG::K_BYTES / 16),
                                                       adds || k > 0);
    wgmma_commit_group();
}

/* The sums of a tile, K ascending, 16 columns at a time, as sum_tile of shared_memory_consumer.cuh makes them. */
template <class CONFIG>
__device__ static inline void sum_decoded(decoded_sums<CONFIG> &sums, const decoded_operands &o, gemm_ring<CONFIG> &ring, int32_t steps)
{
    uint32_t before = 0;
    for (int32_t step = 0; step < steps; step++, ring.next()) {
        mbarrier_wait_parity(o.full + ring.stage * 8, ring.parity);
        multiply_decoded<CONFIG>(sums, o, ring.stage, step > 0);
        if (step > 0) {
            wgmma_wait_group<1>();
            release_decoded<CONFIG>(o, before);
        }
        before = ring.stage;
    }
    wgmma_wait_group<0>();
#pragma unroll
    for (int product = 0; product < CONFIG::PRODUCTS; product++)
#pragma unroll
        for (int i = 0; i < CONFIG::PRODUCT_SUMS; i++) asm volatile("" : "+f"(sums[product][i])::"memory");
    release_decoded<CONFIG>(o, before);
}

template <class CONFIG>
__device__ static inline void consume_decoded(const bsmi_gemm_parameters &p, uint32_t shared, gemm_cta cta)
{
    decoded_sums<CONFIG> sums;
    gemm_ring<CONFIG> ring = { 0, 0 };
    const decoded_operands operands = decoded_operands_of<CONFIG>(shared);
    const gemm_finish finish = gemm_finish_of(p);
    const int64_t tiles = gemm_tiles(p), step = gridDim.x / CONFIG::CLUSTER;
    int32_t k_steps = 0;
    for (int32_t s = 0; s < p.segment_count; s++) k_steps += p.segments[s].blocks;
    for (int64_t number = blockIdx.x / CONFIG::CLUSTER; number < tiles; number += step) {
        const gemm_tile tile = gemm_tile_of<CONFIG>(p, number, cta);
        const bool scaled = fill_tables<CONFIG>(p, finish, tile, shared, 0);
        sum_decoded<CONFIG>(sums, operands, ring, k_steps);
        finish_decoded_tile<CONFIG>(p, finish, tile, decoded_tile_of<CONFIG>(p, tile, shared, 0, scaled), sums);
    }
}
