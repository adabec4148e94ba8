/* Rows of 8-bit integers, which the producer loads as half as many numbers of 16 bits: a stage's 128 bytes of a row are
 * 128 columns.
 *
 * Sums are s32.  Those of the rows that come here are at most 2^24 in magnitude (dequantize/int8_rows.cu), so that they
 * are exact as fp32, which the epilogue finishes. */
#pragma once

#include "cuda/ptx/wgmma_integer.cuh"
#include "cuda/sm90/mainloop/shared_memory_consumer.cuh"

struct operand_int8 {
    static constexpr int PRODUCER_REGISTERS = 40, CONSUMER_REGISTERS = 232;

    template <class CONFIG>
    __device__ static inline void sum(float (&sums)[CONFIG::BLOCKS][CONFIG::SUMS], uint32_t shared,
                                      gemm_ring<CONFIG> &ring, gemm_cta cta, uint32_t group, int32_t steps)
    {
        int32_t integers[CONFIG::BLOCKS][CONFIG::SUMS] = {};   /* zeros, so that nothing of the last tile is kept */
        sum_tile<CONFIG, wgmma_s8>(integers, shared, ring, cta, group, steps);
#pragma unroll
        for (int block = 0; block < CONFIG::BLOCKS; block++)
#pragma unroll
            for (int i = 0; i < CONFIG::SUMS; i++) sums[block][i] = (float)integers[block][i];
    }
};
