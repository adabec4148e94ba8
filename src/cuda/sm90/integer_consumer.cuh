/* The consumers of rows of integers: as gemm_consumer.cuh, but with sums in s32.
 *
 * A stage's 128 bytes of a row are 128 columns.  Sums of the rows that come here are at most 2^24 in magnitude (integers.cu): as numbers
 * of fp32, which the epilogue finishes, they are exact. */
#pragma once

#include "cuda/ptx/wgmma_integer.cuh"
#include "gemm_consumer.cuh"

template <class CONFIG> using integer_sums = int32_t[CONFIG::BLOCKS][CONFIG::SUMS];

/* One step of K: four products of 32 columns for each block of 64 rows. */
template <class CONFIG> __device__ static inline void multiply_integers(integer_sums<CONFIG> &sums, uint32_t a, uint32_t b, bool first)
{
    const uint64_t b_tile = wgmma_descriptor(b);
    wgmma_fence();
#pragma unroll
    for (int block = 0; block < CONFIG::BLOCKS; block++) {
        const uint64_t a_tile = wgmma_descriptor(a + block * 64 * CONFIG::K_BYTES);
#pragma unroll
        for (int k = 0; k < 4; k++)
            wgmma_s8<CONFIG::COLUMNS>::multiply(sums[block], a_tile + 2 * k, b_tile + 2 * k, !first || k > 0);
    }
    wgmma_commit_group();
}

/* The sums of one tile: the products of a step are under way while the next step is waited for. */
template <class CONFIG>
__device__ static inline void sum_integers(integer_sums<CONFIG> &sums, uint32_t shared, gemm_ring<CONFIG> &ring, gemm_cta cta, uint32_t group,
                                           int32_t steps)
{
    const uint32_t a = shared + CONFIG::AT_A + group * CONFIG::BLOCKS * 64 * CONFIG::K_BYTES, b = shared + CONFIG::AT_B;
    uint32_t before = 0;
    for (int32_t step = 0; step < steps; step++, ring.next()) {
        mbarrier_wait_parity(full_barrier<CONFIG>(shared, ring.stage), ring.parity);
        multiply_integers<CONFIG>(sums, a + ring.stage * CONFIG::A_BYTES, b + ring.stage * CONFIG::B_BYTES, step == 0);
        if (step > 0) {
            wgmma_wait_group<1>();
            release_stage<CONFIG>(shared, before, cta);
        }
        before = ring.stage;
    }
    wgmma_wait_group<0>();
#pragma unroll
    for (int block = 0; block < CONFIG::BLOCKS; block++)
#pragma unroll
        for (int i = 0; i < CONFIG::SUMS; i++) asm volatile("" : "+r"(sums[block][i])::"memory"); /* not used before this point */
    release_stage<CONFIG>(shared, before, cta);
}

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
        sum_integers<CONFIG>(sums, shared, ring, cta, group, p.segments[0].blocks);
#pragma unroll
        for (int block = 0; block < CONFIG::BLOCKS; block++)
            finish_integers<CONFIG>(p, finish, part_of<CONFIG>(tile, group, block), exponents, block, boxes, sums[block]);
    }
    boxes_are_read();
}
