/* Boxes that TMA loads for the CTAs of a cluster that need them. */
#pragma once

#include "cuda/ptx/bulk_copy.cuh"
#include "cuda/ptx/tensor_copy.cuh"
#include "tiles.cuh"

/* The CTAs that share this CTA's rows of A: those of its row of the cluster; and its rows of B: those of its column. */
template <class CONFIG> __device__ static inline uint16_t sharers_of_a(gemm_cta cta)
{
    uint32_t mask = 0;
    for (uint32_t column = 0; column < CONFIG::CLUSTER_COLUMNS; column++)
        mask |= 1u << (cta.row + column * CONFIG::CLUSTER_ROWS);
    return (uint16_t)mask;
}
template <class CONFIG> __device__ static inline uint16_t sharers_of_b(gemm_cta cta)
{
    return (uint16_t)(((1u << CONFIG::CLUSTER_ROWS) - 1) << cta.column * CONFIG::CLUSTER_ROWS);
}

template <int SHARERS>
__device__ static inline void load(uint32_t to, const bsmi_tensor_map &map, int32_t column, int32_t row, int32_t matrix,
                                   uint32_t full, uint16_t sharers)
{
    if (SHARERS == 1) tensor_load(to, &map, column, row, matrix, full);
    else tensor_load_multicast(to, &map, column, row, matrix, full, sharers);
}

/* Of prepacked weights, the exponents of a tile's columns: consumers read them at its beginning. */
template <class CONFIG>
__device__ static inline void prefetch_exponents(const bsmi_mixed_input_parameters &p, const gemm_tile &tile)
{
    const bsmi_epilogue_parameters &e = p.epilogue;
    const int32_t *first = e.b_exponents + tile.matrix * e.b_exponent_step + tile.column;
    const uint64_t begin = (uint64_t)first & ~(uint64_t)15;
    const int32_t columns = min(CONFIG::COLUMNS, (int32_t)e.n - tile.column);
    cp_async_bulk_prefetch((const void *)begin, (uint32_t)((uint64_t)(first + columns) + 15 - begin) & ~15u);
}

/* Groups are rows of one matrix A. */
__device__ static inline int32_t matrix_of_a(const bsmi_gemm_parameters &p, const gemm_tile &tile)
{
    return p.epilogue.grouped ? 0 : tile.matrix * p.a_batch_step;
}
