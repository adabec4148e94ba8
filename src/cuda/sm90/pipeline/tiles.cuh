/* The persistent grid: CTAs or clusters that make every gridDim-th tile of D, in the order of cuda/scheduler. */
#pragma once

#include "cuda/ptx/threads.cuh"
#include "cuda/scheduler/gemm_tile.cuh"

/* The place of a CTA in its cluster. */
struct gemm_cta { uint32_t row, column; };
template <class CONFIG> __device__ static inline gemm_cta gemm_cta_of(uint32_t rank)
{
    return { rank % CONFIG::CLUSTER_ROWS, rank / CONFIG::CLUSTER_ROWS };
}

template <class CONFIG, bool BY_WARP = false>
__device__ static inline gemm_tile gemm_tile_of(const bsmi_gemm_parameters &p, int64_t number, gemm_cta cta)
{
    constexpr int32_t ROWS = CONFIG::ROWS * CONFIG::CLUSTER_ROWS, COLUMNS = CONFIG::COLUMNS * CONFIG::CLUSTER_COLUMNS;
    gemm_tile tile = gemm_tile_at<BY_WARP>(p, number, ROWS, COLUMNS);
    tile.row += (int32_t)cta.row * CONFIG::ROWS;
    tile.column += (int32_t)cta.column * CONFIG::COLUMNS;
    return gemm_tile_inside(p, tile);
}

/* work(tile, is_first) for each tile of this CTA. */
template <class CONFIG, class WORK>
__device__ static inline void for_each_tile(const bsmi_gemm_parameters &p, gemm_cta cta, WORK work)
{
    const int64_t tiles = gemm_tiles(p), step = gridDim.x / CONFIG::CLUSTER;
    for (int64_t number = blockIdx.x / CONFIG::CLUSTER; number < tiles; number += step)
        work(gemm_tile_of<CONFIG>(p, number, cta), number < step);
}

/* work(segment, block) for each step of K of a tile. */
template <class WORK> __device__ static inline void for_each_step(const bsmi_gemm_parameters &p, WORK work)
{
    for (int32_t s = 0; s < p.segment_count; s++)
        for (int32_t block = 0; block < p.segments[s].blocks; block++) work(p.segments[s], block);
}

__device__ static inline int32_t steps_of_k(const bsmi_gemm_parameters &p)
{
    int32_t steps = 0;
    for (int32_t s = 0; s < p.segment_count; s++) steps += p.segments[s].blocks;
    return steps;
}

/* All threads of the cluster; alone: of a CTA that has none. */
__device__ static inline void synchronize_ctas(bool alone)
{
    if (alone) {
        __syncthreads();
    } else {
        barrier_cluster_arrive();
        barrier_cluster_wait();
    }
}
