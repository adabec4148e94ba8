/* The consumers of rows of integers: as gemm_consumer.cuh, but with sums in s32.
 *
 * A stage's 128 bytes of a row are 128 columns.  Sums of the rows that come here are at most 2^24 in magnitude (integers.cu): as numbers
 * of fp32, which the epilogue finishes, they are exact. */
#pragma once

#include "cuda/ptx/wgmma_integer.cuh"
#include "gemm_consumer.cuh"

template <class CONFIG> using integer_sums = int32_t[CONFIG::BLOCKS][CONFIG::SUMS];

template <class CONFIG>
__device__ static inline void finish_integers(const bsmi_gemm_parameters &p, const gemm_finish &finish, const gemm_part &part,
                                              const tile_exponents<CONFIG> &of, int block, gemm_boxes &boxes, const int32_t (&sums)[CONFIG::SUMS])
{
    float numbers[CONFIG::SUMS];
#pragma unroll
    for (int i = 0; i < CONFIG::SUMS; i++) numbers[i] = (float)sums[i];
    finish_part<CONFIG>(p, finish, part, of, block, boxes, numbers);
}

template <class CONFIG>
__device__ static inline void consume_integers(const bsmi_gemm_parameters &p, uint32_t shared, gemm_cta cta, uint32_t group)
{
    gemm_ring<CONFIG> ring = { 0, 0 };
    gemm_boxes boxes = gemm_boxes_of<CONFIG>(shared, group);
    const gemm_finish finish = gemm_finish_of(p);
    const int64_t tiles = gemm_tiles(p), step = gridDim.x / CONFIG::CLUSTER;
    for (int64_t number = blockIdx.x / CONFIG::CLUSTER; number < tiles; number += step) {
        const gemm_tile tile = gemm_tile_of<CONFIG>(p, number, cta);
        const tile_exponents<CONFIG> exponents = tile_exponents_of<CONFIG>(p, tile, group);
        integer_sums<CONFIG> sums = {};   /* so that nothing of the last tile's is kept while they are converted */
        sum_tile<CONFIG, wgmma_s8>(sums, shared, ring, cta, group, p.segments[0].blocks);
#pragma unroll
        for (int block = 0; block < CONFIG::BLOCKS; block++)
            finish_integers<CONFIG>(p, finish, part_of<CONFIG>(tile, group, block), exponents, block, boxes, sums[block]);
    }
    boxes_are_read();
}
