/* The consumers of refolded codes: warpgroups that multiply 128 columns of K on the tensor cores, and add what comes of it, times the factors
 * of its row and column, to sums in fp32 ("promotion").
 *
 * While one warpgroup adds, the tensor cores work for the other: nothing but the ring ties them together. */
#pragma once

#include "fast_config.cuh"
#include "gemm_consumer.cuh"

/* This warp reads nothing of the stage any more, neither codes nor factors: says so to every CTA that fills it. */
template <class CONFIG> __device__ static inline void release_fast_stage(uint32_t shared, uint32_t stage, gemm_cta cta)
{
    const uint32_t lane = threadIdx.x % 32, empty = empty_barrier<CONFIG>(shared, stage);
    __syncwarp();
    if (CONFIG::CLUSTER == 1) {
        if (lane == 0) mbarrier_arrive(empty);
        return;
    }
    const gemm_cta to = gemm_cta_of<CONFIG>(lane);
    if (lane < CONFIG::CLUSTER && (to.row == cta.row || to.column == cta.column))
        mbarrier_arrive_cluster(mapa_shared_cluster(empty, lane));
}

/* One group of K: four products of 32 columns, the first of which begins the sum. */
template <class CONFIG> __device__ static inline void multiply_group(float (&products)[CONFIG::PART / 2], uint32_t a, uint32_t b)
{
    const uint64_t a_tile = wgmma_descriptor(a), b_tile = wgmma_descriptor(b);
    wgmma_fence();
#pragma unroll
    for (int k = 0; k < 4; k++) wgmma_e4m3<CONFIG::PART>::multiply(products, a_tile + 2 * k, b_tile + 2 * k, k > 0);
    wgmma_commit_group();
    wgmma_wait_group<0>();
#pragma unroll
    for (int i = 0; i < CONFIG::PART / 2; i++) asm volatile("" : "+f"(products[i])::"memory");
}

/* sums[FIRST ..] += products times the factors of rows and columns, whose product is exact.  columns: this thread's factors of the part, four
 * at a time, in the order in which it has columns; 64 bytes from each four to the next. */
template <int FIRST, int COUNT, int SUMS>
__device__ static inline void promote(float (&sums)[SUMS], const float (&products)[COUNT], float first_row, float second_row,
                                      uint32_t columns)
{
#pragma unroll
    for (int i = 0; i < COUNT; i += 8) {
        const uint4 four = load_shared_v4(columns + 8 * i);
        const uint32_t factors[4] = { four.x, four.y, four.z, four.w };
#pragma unroll
        for (int j = 0; j < 8; j++) {
            const float column = __uint_as_float(factors[j / 4 * 2 + j % 2]);
            sums[FIRST + i + j] = fmaf(products[i + j], (j % 4 < 2 ? first_row : second_row) * column, sums[FIRST + i + j]);
        }
    }
}

template <class CONFIG, int PART_NUMBER = 0>
__device__ static inline void sum_parts(float (&sums)[CONFIG::SUMS], uint32_t a, uint32_t b, float first_row, float second_row,
                                        uint32_t columns)
{
    float products[CONFIG::PART / 2];
    multiply_group<CONFIG>(products, a, b + PART_NUMBER * CONFIG::PART * CONFIG::K_BYTES);
    promote<PART_NUMBER * CONFIG::PART / 2>(sums, products, first_row, second_row, columns + PART_NUMBER * CONFIG::PART * 4);
    if constexpr (PART_NUMBER + 1 < CONFIG::PARTS) sum_parts<CONFIG, PART_NUMBER + 1>(sums, a, b, first_row, second_row, columns);
}

/* S of one tile: groups of K ascending. */
template <class CONFIG>
__device__ static inline void sum_fast_tile(float (&sums)[CONFIG::SUMS], uint32_t shared, gemm_ring<CONFIG> &ring, gemm_cta cta,
                                            uint32_t group, int32_t steps)
{
    const uint32_t lane = threadIdx.x % 32, row = group * 64 + threadIdx.x % 128 / 32 * 16 + lane / 4;
    const uint32_t a = shared + CONFIG::AT_A + group * 64 * CONFIG::K_BYTES, b = shared + CONFIG::AT_B, factors = shared + CONFIG::AT_FACTORS;
#pragma unroll
    for (int i = 0; i < CONFIG::SUMS; i++) sums[i] = 0;
#pragma unroll 1
    for (int32_t step = 0; step < steps; step++, ring.next()) {
        const uint32_t of_stage = factors + ring.stage * CONFIG::FACTOR_BYTES;
        mbarrier_wait_parity(full_barrier<CONFIG>(shared, ring.stage), ring.parity);
        const float first_row = __uint_as_float(load_shared(of_stage + row * 4)), second_row = __uint_as_float(load_shared(of_stage + row * 4 + 32));
        sum_parts<CONFIG>(sums, a + ring.stage * CONFIG::A_BYTES, b + ring.stage * CONFIG::B_BYTES, first_row, second_row,
                          of_stage + CONFIG::A_FACTOR_BYTES + lane % 4 * 16);
        release_fast_stage<CONFIG>(shared, ring.stage, cta);
    }
}

template <class CONFIG>
__device__ static inline void consume_fast(const bsmi_fast_parameters &f, uint32_t shared, gemm_cta cta, uint32_t group)
{
    const bsmi_gemm_parameters &p = f.gemm;
    float sums[CONFIG::SUMS];
    gemm_ring<CONFIG> ring = { 0, 0 };
    gemm_boxes boxes = gemm_boxes_of<CONFIG>(shared, group);
    const gemm_finish finish = gemm_finish_of(p);
    const int64_t tiles = gemm_tiles(p), step = gridDim.x / CONFIG::CLUSTER;
    for (int64_t number = blockIdx.x / CONFIG::CLUSTER; number < tiles; number += step) {
        const gemm_tile tile = gemm_tile_of<CONFIG>(p, number, cta);
        const tile_exponents<CONFIG> exponents = tile_exponents_of<CONFIG>(p, tile, group);
        sum_fast_tile<CONFIG>(sums, shared, ring, cta, group, f.a_factors.groups);
        finish_part<CONFIG>(p, finish, part_of<CONFIG>(tile, group, 0), exponents, 0, boxes, sums);
    }
    boxes_are_read();
}
