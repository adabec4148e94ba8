/* From sums of the transposed product to D: the formulas of gemm_epilogue.cuh.
 *
 * A consumer warp has 16 columns of D.  Each thread's sums are of two neighbouring columns, and of each 8 rows two:
 * sums[..][4 j + e] and sums[..][4 j + 2 + e] are row 8 j + 2 c + e of the rows of their product.  They go through
 * shared memory, some rows at a time, so that a thread gets eight columns of a row, and so that one short loop does for
 * all of them: code for each sum by itself is longer than the instruction caches, and fetching it took longer than the
 * products. */
#pragma once

#include "cuda/epilogue/gemm_octet.cuh"
#include "cuda/sm90/mainloop/fused_config.cuh"

template <class CONFIG> using transposed_sums = float[CONFIG::PRODUCTS][CONFIG::PRODUCT_SUMS];

/* Each consumer warpgroup has tables and chunks of its own. */
template <class CONFIG> __device__ static inline uint32_t tables_of(uint32_t shared, uint32_t group)
{
    return shared + CONFIG::AT_TABLES + group * CONFIG::TABLE_BYTES;
}

/* The tables of one tile of the warpgroup.  True if any exponent is other than 0. */
template <class CONFIG>
__device__ static inline bool fill_tables(const bsmi_gemm_parameters &p, const gemm_finish &finish,
                                          const gemm_tile &tile, uint32_t shared, uint32_t group)
{
    const uint32_t barrier = 1 + group, tables = tables_of<CONFIG>(shared, group);
    const int32_t thread = (int32_t)(threadIdx.x % 128);
    bool any = false;
    barrier_sync(barrier, 128);           /* those of the tile before are read */
    for (int32_t i = thread; i < CONFIG::ROWS; i += 128) {
        const gemm_line line = row_of(p.epilogue, finish, tile, tile.row + i);
        any |= line.exponent != 0;
        store_line(tables, CONFIG::ROWS, (uint32_t)i, line);
    }
    if (thread < 64) {
        const gemm_line line = column_of(p.epilogue, finish, tile, tile.column + thread);
        any |= line.exponent != 0;
        store_line(tables + CONFIG::ROW_TABLE_BYTES, 64, (uint32_t)thread, line);
    }
    return barrier_or(barrier, 128, any);
}

/* CHUNK rows of the warp's columns into shared memory, rows CHUNK_PITCH bytes apart: no two of 16 threads meet in a
 * bank. */
template <class CONFIG>
__device__ static inline void put_chunk(const transposed_sums<CONFIG> &sums, int32_t chunk, uint32_t memory)
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

template <class CONFIG>
__device__ static inline void exchange_chunk(const transposed_sums<CONFIG> &sums, int32_t chunk, uint32_t memory)
{
    __syncwarp();                         /* the chunk before is read */
    put_chunk<CONFIG>(sums, chunk, memory);
    __syncwarp();
}

/* What finishing one tile needs, the same for all its rows. */
struct transposed_tile {
    gemm_octet_place place;               /* of this thread's columns */
    uint32_t rows, chunk;                 /* addresses: of the table of rows, of this thread's columns in the warp's
                                             chunk */
};

template <class CONFIG>
__device__ static inline transposed_tile transposed_tile_of(const bsmi_gemm_parameters &p, const gemm_tile &tile,
                                                      uint32_t shared, uint32_t group, bool scaled)
{
    const uint32_t warp = threadIdx.x % 128 / 32, half = threadIdx.x % 2, in_tile = warp * 16 + half * 8;
    const uint32_t rows = tables_of<CONFIG>(shared, group);
    return { octet_place_of(p, tile.matrix, tile.column + (int32_t)in_tile,
                            rows + CONFIG::ROW_TABLE_BYTES + in_tile * 4, scaled),
             rows, shared + CONFIG::AT_CHUNKS + (group * 4 + warp) * CONFIG::CHUNK * CONFIG::CHUNK_PITCH + half * 32 };
}

/* Whether bf16 is stored 16 bytes at a time, each number times one factor, and no column of the tile lies outside: most
 * products. */
template <class CONFIG>
__device__ static inline bool finishes_by_fast_path(const bsmi_gemm_parameters &p, const gemm_finish &finish,
                                                    const gemm_tile &tile, const transposed_tile &d)
{
    const bsmi_epilogue_parameters &e = p.epilogue;
    const gemm_output &to = d.place.output;
    const bool one_factor =
        finish.beta == 0 && e.bias == nullptr && (e.alpha == nullptr || e.alpha_per == BSM_PER_TENSOR);
    const bool aligned = (((uint64_t)to.data | (uint64_t)to.row_bytes) & 15) == 0;
    return p.direct && one_factor && tile.column + 64 <= e.n && !d.place.scaled && to.element == BSM_BF16 && aligned;
}

/* The same bits as finish_octet.  A warp has one of four schedulers for itself, and waits for each result: so both rows
 * that a thread has of a chunk go together. */
template <class CONFIG>
__device__ static inline void finish_columns_by_fast_path(float factor, const gemm_tile &tile, const transposed_tile &d,
                                                     const transposed_sums<CONFIG> &sums,
                                                     int32_t chunks = CONFIG::ROWS / CONFIG::CHUNK)
{
    constexpr int ROWS_OF_THREAD = CONFIG::CHUNK / 16;
    const uint32_t first = threadIdx.x % 32 / 2, chunk_memory = d.chunk - threadIdx.x % 2 * 32;
    const uint32_t at = d.chunk + first * CONFIG::CHUNK_PITCH;
    const int64_t row_bytes = d.place.output.row_bytes;
    int32_t row = tile.row + (int32_t)first;
    unsigned char *to = d.place.output.data + row * row_bytes + (int64_t)d.place.column * 2;
#pragma unroll 1
    for (int32_t chunk = 0; chunk < chunks; chunk++) {
        float v[ROWS_OF_THREAD][8];
        exchange_chunk<CONFIG>(sums, chunk, chunk_memory);
#pragma unroll
        for (int i = 0; i < ROWS_OF_THREAD; i++)
            load_eight(at + i * 16 * CONFIG::CHUNK_PITCH, at + i * 16 * CONFIG::CHUNK_PITCH + 16, v[i]);
#pragma unroll
        for (int i = 0; i < ROWS_OF_THREAD; i++) {
            uint32_t pairs[4];
            float all = 0;                /* NaN, if one of them is, or if there are infinities of both signs */
#pragma unroll
            for (int j = 0; j < 8; j++) v[i][j] *= factor, all += v[i][j];
            convert_pairs<BSM_BF16, 4, 0>(pairs, v[i], isnan(all));
            if (has_row(tile, row)) ptx_store_16(to, make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]));
            to += 16 * row_bytes, row += 16;
        }
    }
}

template <class CONFIG>
__device__ static inline void finish_columns(const bsmi_gemm_parameters &p, const gemm_finish &finish,
                                             const gemm_tile &tile, const transposed_tile &d,
                                             const transposed_sums<CONFIG> &sums,
                                             int32_t chunks = CONFIG::ROWS / CONFIG::CHUNK)
{
    const uint32_t first = threadIdx.x % 32 / 2, chunk_memory = d.chunk - threadIdx.x % 2 * 32;
#pragma unroll 1
    for (int32_t chunk = 0; chunk < chunks; chunk++) {
        exchange_chunk<CONFIG>(sums, chunk, chunk_memory);
#pragma unroll 1
        for (uint32_t row = first; row < CONFIG::CHUNK; row += 16) {
            const uint32_t in_tile = chunk * CONFIG::CHUNK + row, at = d.chunk + row * CONFIG::CHUNK_PITCH;
            if (has_row(tile, tile.row + (int32_t)in_tile))
                finish_octet(p, finish, d.place, 64, tile.matrix, tile.row + (int32_t)in_tile,
                             load_line(d.rows, CONFIG::ROWS, in_tile), make_uint2(at, at + 16));
        }
    }
}

template <class CONFIG>
__device__ static inline void finish_transposed_tile(const bsmi_gemm_parameters &p, const gemm_finish &finish,
                                                  const gemm_tile &tile, const transposed_tile &d,
                                                  const transposed_sums<CONFIG> &sums)
{
    if (finishes_by_fast_path<CONFIG>(p, finish, tile, d)) finish_columns_by_fast_path<CONFIG>(finish.f, tile, d, sums);
    else finish_columns<CONFIG>(p, finish, tile, d, sums);
}
