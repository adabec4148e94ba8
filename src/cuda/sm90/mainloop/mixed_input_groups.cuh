/* Groups of rows of A, each with prepacked weights of its own: the main loop of mixed_input_rows.cuh, whose products
 * have as many rows as the tile needs.  A group's last tile, and the only one of a small group, has 32, 64 or all rows
 * of A as wgmma's N, so that groups of all sizes share a kernel, and a row that is not there costs next to nothing. */
#pragma once

#include "cuda/sm90/pipeline/mixed_input_groups_producer.cuh"
#include "mixed_input_rows.cuh"

template <class CODES, int ROWS, int GROUPS, int STAGES, int CODE_STAGES>
struct mixed_input_groups_config : mixed_input_rows_config<CODES, ROWS, GROUPS, STAGES, CODE_STAGES> {
    static constexpr bool NARROWS = true;
};

/* For finishing a tile of at most N rows: places in shared memory are the same. */
template <class CONFIG, int N> struct narrowed_config : CONFIG {
    static constexpr int ROWS = N, PRODUCT_SUMS = N / 2;
    static_assert(N % CONFIG::CHUNK == 0 && N <= CONFIG::ROWS, "whole chunks are finished");
};

template <class CONFIG, int N>
__device__ static inline void finish_narrowed(const bsmi_mixed_input_parameters &p, const gemm_tile &tile,
                                              const consumer_thread &at, prepacked_finish finish,
                                              const transposed_sums<CONFIG> &sums)
{
    using NARROWED = narrowed_config<CONFIG, N>;
    read_row_exponents<NARROWED>(p, tile, finish);
    finish_rows_tile<NARROWED>(p, finish, tile, at, reinterpret_cast<const transposed_sums<NARROWED> &>(sums));
}

/* Tables that the tile is finished with have as many rows as it is finished with. */
template <class CONFIG>
__device__ static inline prepacked_finish begin_narrowed(const bsmi_mixed_input_parameters &p, const gemm_tile &tile,
                                                         const rows_consumer<CONFIG> &c)
{
    constexpr int ROWS = CONFIG::ROWS;
    if (c.width == ROWS / 4) return begin_prepacked_finish<narrowed_config<CONFIG, ROWS / 4>>(p, tile, c.at);
    if (c.width == ROWS / 2) return begin_prepacked_finish<narrowed_config<CONFIG, ROWS / 2>>(p, tile, c.at);
    return begin_prepacked_finish<CONFIG>(p, tile, c.at);
}

/* Rows of A that products have: a quarter of the tile's, half of them, or all. */
template <class CONFIG> __device__ static inline int32_t width_of_tile(const gemm_tile &tile)
{
    const int32_t rows = rows_of_tile<CONFIG>(tile);
    return rows <= CONFIG::ROWS / 4 ? CONFIG::ROWS / 4 : rows <= CONFIG::ROWS / 2 ? CONFIG::ROWS / 2 : CONFIG::ROWS;
}

template <class CONFIG>
__device__ static inline void consume_groups(const bsmi_mixed_input_parameters &p, uint32_t shared)
{
    if constexpr (CONFIG::GROUPS > 1) setmaxnreg_inc<CONFIG::CONSUMER>();
    transposed_sums<CONFIG> sums;
    rows_consumer<CONFIG> c = rows_consumer_of<CONFIG>(shared);
    const int64_t tiles = gemm_tiles(p);
    const int32_t steps = p.segments[0].blocks;
    for (int64_t number = blockIdx.x; number < tiles; number += gridDim.x) {
        gemm_tile tile = gemm_tile_of<CONFIG>(p, number, { 0, 0 });
        tile.column += (int32_t)c.at.group * 64;
        c.width = width_of_tile<CONFIG>(tile);
        const prepacked_finish finish = begin_narrowed<CONFIG>(p, tile, c);
        sum_rows<CONFIG>(sums[0], c, steps);
        if (c.width == CONFIG::ROWS / 4) finish_narrowed<CONFIG, CONFIG::ROWS / 4>(p, tile, c.at, finish, sums);
        else if (c.width == CONFIG::ROWS / 2) finish_narrowed<CONFIG, CONFIG::ROWS / 2>(p, tile, c.at, finish, sums);
        else finish_narrowed<CONFIG, CONFIG::ROWS>(p, tile, c.at, finish, sums);
    }
    if (p.segment_count > BSMI_MOST_SEGMENTS) store_shared(shared, c.kept);       /* never, which ptxas does not know */
}

template <class CONFIG>
__device__ static inline void produce_groups(const bsmi_mixed_input_parameters &p, uint32_t shared, int32_t loader,
                                             slice_loader<CONFIG> &slices)
{
    if constexpr (CONFIG::GROUPS > 1) setmaxnreg_dec<CONFIG::PRODUCER>();
    if (loader == 0 && elect_sync()) load_slices<CONFIG>(p, shared, -1, slices);
    if (loader == 1 && elect_sync()) load_boxes_of_rows<CONFIG>(p, shared);
}

template <class CONFIG> __device__ static inline void mixed_input_groups_gemm(const bsmi_mixed_input_parameters &p)
{
    extern __shared__ __align__(1024) unsigned char memory[];
    const uint32_t shared = __shfl_sync(0xffffffff, shared_address(memory), 0), warp = warp_of_cta();
    const int32_t loader = (int32_t)warp - CONFIG::WARPS;
    slice_loader<CONFIG> slices;
    if (loader < 0) clear_missing_rows<CONFIG>(p, shared);
    if (loader == 1 && elect_sync()) prefetch_tensormap(&p.a);
    if (p.epilogue.grouped) griddepcontrol_wait();
    if (loader == 0 && elect_sync()) {
        initialize_rows_barriers<CONFIG>(shared);
        slices = slice_loader_of<CONFIG>(p);
        load_slices<CONFIG>(p, shared, CONFIG::codes_ring::STAGES, slices);
    }
    __syncthreads();
    griddepcontrol_launch_dependents();
    if (loader < 0) consume_groups<CONFIG>(p, shared);
    else produce_groups<CONFIG>(p, shared, loader, slices);
}

/* The arguments behind `tile` are the table's columns. */
#define MIXED_INPUT_GROUPS_KERNEL(codes, tile, rows, groups, ...)                                                      \
    extern "C" __global__ void __launch_bounds__(BSMI_MIXED_INPUT_ROWS_THREADS(groups), 1)                             \
        bsmi_gemm_##codes##_##tile(const __grid_constant__ bsmi_mixed_input_parameters p)                              \
    {                                                                                                                  \
        mixed_input_groups_gemm<mixed_input_groups_config<codes_##codes, rows, groups, __VA_ARGS__>>(p);                 \
    }
