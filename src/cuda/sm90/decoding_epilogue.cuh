/* From sums of the transposed product to D: the formulas of gemm_epilogue.cuh.
 *
 * A consumer warp has 16 columns of D.  Each thread's sums are of two neighbouring columns, and of each 8 rows two: sums[..][4 j + e] and
 * sums[..][4 j + 2 + e] are row 8 j + 2 c + e of the rows of their product.  They go through shared memory, some rows at a time, so that a
 * thread gets eight columns of a row, and so that one short loop does for all of them: code for each sum by itself is longer than the
 * instruction caches, and fetching it took longer than the products. */
#pragma once

#include "cuda/common/gemm_octet.cuh"
#include "decoding_config.cuh"

template <class CONFIG> using decoded_sums = float[CONFIG::PRODUCTS][CONFIG::PRODUCT_SUMS];

/* Each consumer warpgroup has tables and chunks of its own. */
template <class CONFIG> __device__ static inline uint32_t tables_of(uint32_t shared, uint32_t group)
{
    return shared + CONFIG::AT_TABLES + group * CONFIG::TABLE_BYTES;
}

/* The tables of one tile of the warpgroup.  True if any exponent is other than 0. */
template <class CONFIG>
__device__ static inline bool fill_tables(const bsmi_gemm_parameters &p, const gemm_finish &finish, const gemm_tile &tile, uint32_t shared,
                                          uint32_t group)
{
    const uint32_t barrier = 1 + group, tables = tables_of<CONFIG>(shared, group);
    const int32_t thread = (int32_t)(threadIdx.x % 128);
    bool any = false;
    barrier_sync(barrier, 128);           /* those of the tile before are read */
    for (int32_t i = thread; i < CONFIG::ROWS; i += 128) {
        const gemm_line line = row_of(p.epilogue, finish, tile, tile.row + i);
        any |= line.exponent != 0;
        store_line<CONFIG::ROWS>(tables, i, line);
    }
    if (thread < 64) {
        const gemm_line line = column_of(p.epilogue, finish, tile, tile.column + thread);
        any |= line.exponent != 0;
        store_line<64>(tables + CONFIG::ROW_TABLE_BYTES, thread, line);
    }
    return barrier_or(barrier, 128, any);
}

/* CHUNK rows of the warp's columns into shared memory, rows CHUNK_PITCH bytes apart: no two of 16 threads meet in a bank. */
template <class CONFIG> __device__ static inline void put_chunk(const decoded_sums<CONFIG> &sums, int32_t chunk, uint32_t memory)
{
    constexpr int SUMS = CONFIG::CHUNK / 2;
    const uint32_t lane = threadIdx.x % 32, at = memory + lane % 4 * 2 * CONFIG::CHUNK_PITCH + lane / 4 * 8;
#pragma unroll
    for (int c = 0; c < CONFIG::ROWS / CONFIG::CHUNK; c++) {
        if (c != chunk) continue;
#pragma unroll
        for (int i = 0; i < SUMS; i += 4) {
            const float *of = &sums[(c * SUMS + i) / CONFIG::PRODUCT_SUMS][(c * SUMS + i) % CONFIG::PRODUCT_SUMS];
            store_shared_v2(at + i * 2 * CONFIG::CHUNK_PITCH, of[0], of[2]);
            store_shared_v2(at + (i * 2 + 1) * CONFIG::CHUNK_PITCH, of[1], of[3]);
        }
    }
}

/* What finishing one tile needs, the same for all its rows. */
struct decoded_tile {
    gemm_octet_place place;               /* of this thread's columns */
    uint32_t rows, chunk;                 /* addresses: of the table of rows, of this thread's columns in the warp's chunk */
};

template <class CONFIG>
__device__ static inline decoded_tile decoded_tile_of(const bsmi_gemm_parameters &p, const gemm_tile &tile, uint32_t shared, uint32_t group,
                                                      bool scaled)
{
    const uint32_t warp = threadIdx.x % 128 / 32, half = threadIdx.x % 2, in_tile = warp * 16 + half * 8;
    const uint32_t rows = tables_of<CONFIG>(shared, group);
    return { octet_place_of(p, tile.matrix, tile.column + (int32_t)in_tile, rows + CONFIG::ROW_TABLE_BYTES + in_tile * 4, scaled), rows,
             shared + CONFIG::AT_CHUNKS + (group * 4 + warp) * CONFIG::CHUNK * CONFIG::CHUNK_PITCH + half * 32 };
}

template <class CONFIG>
__device__ static inline void finish_columns(const bsmi_gemm_parameters &p, const gemm_finish &finish, const gemm_tile &tile, const decoded_tile &d,
                                             const decoded_sums<CONFIG> &sums)
{
    const uint32_t first = threadIdx.x % 32 / 2, chunk_memory = d.chunk - threadIdx.x % 2 * 32;
#pragma unroll 1
    for (int32_t chunk = 0; chunk < CONFIG::ROWS / CONFIG::CHUNK; chunk++) {
        __syncwarp();                     /* the chunk before is read */
        put_chunk<CONFIG>(sums, chunk, chunk_memory);
        __syncwarp();
#pragma unroll 1
        for (uint32_t row = first; row < CONFIG::CHUNK; row += 16) {
            const uint32_t in_tile = chunk * CONFIG::CHUNK + row, at = d.chunk + row * CONFIG::CHUNK_PITCH;
            if (tile.row + (int32_t)in_tile < tile.row_end)
                finish_octet<64>(p, finish, d.place, tile.matrix, tile.row + (int32_t)in_tile, load_line<CONFIG::ROWS>(d.rows, in_tile),
                                 make_uint2(at, at + 16));
        }
    }
}
