/* Rows of bf16: fp32 sums, one chain for all of K. */
#pragma once

#include "cuda/sm90/mainloop/shared_memory_consumer.cuh"

struct operand_bf16 {
    static constexpr int PRODUCER_REGISTERS = 40, CONSUMER_REGISTERS = 232;

    template <class CONFIG>
    __device__ static inline void sum(float (&sums)[CONFIG::BLOCKS][CONFIG::SUMS], uint32_t shared,
                                      gemm_ring<CONFIG> &ring, gemm_cta cta, uint32_t group, int32_t steps)
    {
        sum_tile<CONFIG, wgmma_bf16>(sums, shared, ring, cta, group, steps);
    }
};
