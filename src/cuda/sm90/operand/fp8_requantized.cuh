/* Rows of e4m3 that quantize/fp8_requantize.cu has made, which the producer loads as half as many numbers of 16 bits.
 *
 * Accumulation has two levels: sums of wgmma's e4m3 keep 13 bits, so that those of each BSMI_FAST_COLUMNS columns begin
 * at zero, and are added in fp32 ("promotion").  A warpgroup has one register for each sum of its rows and one for what
 * is under way: while it adds, the tensor cores work for the other warpgroup. */
#pragma once

#include "cuda/params/fp8_requantize.h"
#include "cuda/ptx/wgmma_e4m3.cuh"
#include "cuda/sm90/mainloop/shared_memory_consumer.cuh"

struct operand_fp8_requantized {
    /* Of a consumer's 240 registers, sums and what is under way are 192. */
    static constexpr int PRODUCER_REGISTERS = 24, CONSUMER_REGISTERS = 240;

    /* Steps of K, 128 bytes of a row each, that tensor cores sum by themselves. */
    static constexpr int FIRST_LEVEL_STEPS = BSMI_FAST_COLUMNS / 128;

    template <class CONFIG>
    __device__ static inline void sum(float (&sums)[CONFIG::BLOCKS][CONFIG::SUMS], uint32_t shared,
                                      gemm_ring<CONFIG> &ring, gemm_cta cta, uint32_t group, int32_t steps)
    {
#pragma unroll
        for (int block = 0; block < CONFIG::BLOCKS; block++)
#pragma unroll
            for (int i = 0; i < CONFIG::SUMS; i++) sums[block][i] = 0;
#pragma unroll 1
        for (int32_t step = 0; step < steps; step += FIRST_LEVEL_STEPS) {
            float part[CONFIG::BLOCKS][CONFIG::SUMS];
            sum_tile<CONFIG, wgmma_e4m3>(part, shared, ring, cta, group, FIRST_LEVEL_STEPS);
#pragma unroll
            for (int block = 0; block < CONFIG::BLOCKS; block++)
#pragma unroll
                for (int i = 0; i < CONFIG::SUMS; i++) sums[block][i] += part[block][i];
        }
    }
};
