/* Products of the mixed-input kernels: decoded weights in registers are wgmma's first operand, rows of A in shared
 * memory the second. */
#pragma once

#include "cuda/ptx/tensor_copy.cuh"
#include "cuda/ptx/wgmma_registers.cuh"
#include "cuda/sm90/operand/e2m1_registers.cuh"

template <class CONFIG> using tile_sums = float[CONFIG::PRODUCT_SUMS];

/* They are in their registers here. */
template <class CONFIG> __device__ static inline void hold(tile_sums<CONFIG> &sums)
{
#pragma unroll
    for (int i = 0; i < CONFIG::PRODUCT_SUMS; i++) asm volatile("" : "+f"(sums[i])::"memory");
}

/* A step: four products of 16 columns.  a: the low half of the descriptor of the step's rows of A. */
template <class CONFIG>
__device__ static inline void issue_step(tile_sums<CONFIG> &sums, const step_operand &operand, uint32_t a)
{
#pragma unroll
    for (int k = 0; k < 4; k++) wgmma_bf16_registers<CONFIG::ROWS>::multiply(sums, operand + 4 * k, a + 2 * k);
}

/* The same of the first N rows of A alone, and of their sums. */
template <int N, int SUMS>
__device__ static inline void issue_narrowed(float (&sums)[SUMS], const step_operand &operand, uint32_t a)
{
    static_assert(N / 2 <= SUMS, "sums of as many rows");
#pragma unroll
    for (int k = 0; k < 4; k++)
        wgmma_bf16_registers<N>::multiply(reinterpret_cast<float(&)[N / 2]>(sums), operand + 4 * k, a + 2 * k);
}

/* A step of a schedule that decodes one step while it multiplies another: those of the step before are made when this
 * returns. */
template <class CONFIG>
__device__ static inline void multiply_step(tile_sums<CONFIG> &sums, const step_operand &operand, uint32_t a)
{
    wgmma_fence();
    issue_step<CONFIG>(sums, operand, a);
    wgmma_commit_group();
    wgmma_wait_group<1>();
}

template <class CONFIG>
__device__ static inline void multiply_slice(uint32_t a, const slice_operand<CONFIG> &operand, tile_sums<CONFIG> &sums)
{
    hold<CONFIG>(sums);
    wgmma_fence();
#pragma unroll
    for (int step = 0; step < CONFIG::STEPS; step++)
        issue_step<CONFIG>(sums, operand[step], a + step * (CONFIG::A_BYTES / 16));
    wgmma_commit_group();
    wgmma_wait_group<0>();
    hold<CONFIG>(sums);
}

/* This warp has read a stage by ordinary loads, which come to an end before TMA fills it again. */
template <class CONFIG> __device__ static inline void release_read_stage(uint32_t empty, bool notifies)
{
    fence_proxy_async_shared();
    __syncwarp();
    release_stage<CONFIG>(empty, notifies);
}
