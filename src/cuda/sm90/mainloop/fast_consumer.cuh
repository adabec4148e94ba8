/* The consumers of refolded codes: as gemm_consumer.cuh, but sums of wgmma's e4m3 keep 13 bits, so that those of each BSMI_FAST_COLUMNS columns
 * begin at zero, and are added in fp32 ("promotion").
 *
 * A warpgroup has one register for each sum of its rows and one for what is under way: while it adds, the tensor cores work for the other. */
#pragma once

#include "cuda/params/fp8_requantize.h"
#include "cuda/ptx/wgmma_e4m3.cuh"
#include "gemm_consumer.cuh"

/* A stage's 128 bytes of a row are 128 columns. */
enum { FAST_STEPS = BSMI_FAST_COLUMNS / 128 };

/* S of one tile, K ascending. */
template <class CONFIG>
__device__ static inline void sum_fast_tile(float (&sums)[CONFIG::BLOCKS][CONFIG::SUMS], uint32_t shared, gemm_ring<CONFIG> &ring, gemm_cta cta,
                                            uint32_t group, int32_t steps)
{
#pragma unroll
    for (int block = 0; block < CONFIG::BLOCKS; block++)
#pragma unroll
        for (int i = 0; i < CONFIG::SUMS; i++) sums[block][i] = 0;
#pragma unroll 1
    for (int32_t step = 0; step < steps; step += FAST_STEPS) {
        float part[CONFIG::BLOCKS][CONFIG::SUMS];
        sum_tile<CONFIG, wgmma_e4m3>(part, shared, ring, cta, group, FAST_STEPS);
#pragma unroll
        for (int block = 0; block < CONFIG::BLOCKS; block++)
#pragma unroll
            for (int i = 0; i < CONFIG::SUMS; i++) sums[block][i] += part[block][i];
    }
}

template <class CONFIG>
__device__ static inline void consume_fast(const bsmi_gemm_parameters &p, uint32_t shared, gemm_cta cta, uint32_t group)
{
    float sums[CONFIG::BLOCKS][CONFIG::SUMS];
    gemm_ring<CONFIG> ring = { 0, 0 };
    gemm_boxes boxes = gemm_boxes_of<CONFIG>(shared, group);
    const gemm_finish finish = gemm_finish_of(p);
    const int64_t tiles = gemm_tiles(p), step = gridDim.x / CONFIG::CLUSTER;
    for (int64_t number = blockIdx.x / CONFIG::CLUSTER; number < tiles; number += step) {
        const gemm_tile tile = gemm_tile_of<CONFIG>(p, number, cta);
        if (number < step) griddepcontrol_wait();             /* exponents are another kernel's */
        const tile_exponents<CONFIG> exponents = tile_exponents_of<CONFIG>(p, tile, group);
        sum_fast_tile<CONFIG>(sums, shared, ring, cta, group, p.segments[0].blocks);
#pragma unroll
        for (int block = 0; block < CONFIG::BLOCKS; block++)
            finish_part<CONFIG>(p, finish, part_of<CONFIG>(tile, group, block), exponents, block, boxes, sums[block]);
    }
    boxes_are_read();
}
