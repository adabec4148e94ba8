/* The epilogue: each warp for itself, eight rows of 32 of its sums at a time.  They go through shared memory, so that a
 * lane gets eight columns of a row, and so that one short loop does for all of them: code for each sum by itself would
 * be longer than all the rest, and what is rarely asked for would cost registers. */
#pragma once

#include "cuda/epilogue/gemm_amax.cuh"
#include "cuda/epilogue/gemm_octet.cuh"
#include "cuda/epilogue/gemm_quantized.cuh"
#include "gemm_fragments.cuh"

/* A piece: eight rows of a part of 16, and 32 columns; those of a row of pieces follow each other.  No two of 16 lanes
 * meet in a bank. */
template <class CONFIG>
__device__ static inline void put_piece(const gemm_sums<CONFIG> &sums, int32_t piece, uint32_t memory)
{
    const uint32_t lane = threadIdx.x % 32, at = memory + lane / 4 * CONFIG::PITCH + lane % 4 * 8;
#pragma unroll
    for (int i = 0; i < CONFIG::PIECES; i++) {
        if (i != piece) continue;
        const int of_rows = i / CONFIG::ALONG_ROW, half = of_rows % 2 * 2, first = i % CONFIG::ALONG_ROW * 4;
#pragma unroll
        for (int octet = 0; octet < 4; octet++) {
            const float(&d)[4] = sums[of_rows / 2][first + octet];
            store_shared_v2(at + octet * 32, d[half], d[half + 1]);
        }
    }
}

/* What belongs to the warp's columns, where they have something of their own. */
template <class CONFIG>
__device__ static inline bool fill_table(const bsmi_blackwell_parameters &p, const gemm_finish &finish,
                                         const gemm_tile &tile, uint32_t table)
{
    const bool scaled = p.epilogue.b_exponents != nullptr || p.epilogue.a_exponents != nullptr;
    if (!scaled && !finish.column_factors && !finish.column_biases) return false;
    for (uint32_t i = threadIdx.x % 32; i < CONFIG::WARP_COLUMNS; i += 32)
        store_line(table, CONFIG::WARP_COLUMNS, i, column_of(p.epilogue, finish, tile, tile.column + (int32_t)i));
    __syncwarp();
    return scaled;
}

/* S of a part of K, for bsmi_finish to add. */
template <class CONFIG>
__device__ static inline void move_to_part(const bsmi_blackwell_parameters &p, int32_t part, gemm_octet_place &place)
{
    if (CONFIG::SPLIT_K) place.output.data += part * p.epilogue.sums_part_pitch * 4;
}

/* relu and the largest magnitude, behind finish_octet's numbers. */
__device__ static inline void go_on(const bsmi_blackwell_parameters &p, gemm_octet &octet, uint32_t &amax)
{
    if (p.epilogue.activation == BSM_ACT_RELU) {
#pragma unroll
        for (int i = 0; i < 8; i++) octet.v[i] = relu(octet.v[i]);
    }
    if (p.epilogue.amax == nullptr) return;
#pragma unroll
    for (int i = 0; i < 8; i++)
        if (octet.exists >> i & 1) amax = raise_amax(amax, octet.v[i]);
}

/* A lane has an octet of the piece; `place` is that of its columns.  By whole warps: where D is quantized, lanes that
 * have no row take part. */
template <class CONFIG>
__device__ static inline void store_piece(const bsmi_blackwell_parameters &p, const gemm_finish &finish,
                                          const gemm_octet_place &place, const gemm_quantizer *quantizer,
                                          const gemm_tile &tile, int32_t row, uint32_t at, uint32_t &amax)
{
    gemm_octet octet = { {}, 0 };
    const bool exists = has_row(tile, row)
                        && finish_octet_numbers(p, finish, place, CONFIG::WARP_COLUMNS, tile.matrix, row,
                                                row_of(p.epilogue, finish, tile, row), make_uint2(at, at + 16), octet);
    if (CONFIG::SCALED && exists && goes_on(p)) go_on(p, octet, amax);
    if (CONFIG::SCALED && quantizes(p)) {
        eight t;
#pragma unroll
        for (int i = 0; i < 8; i++) t.x[i] = octet.v[i];
        quantize_octet(p, *quantizer, t, tile.matrix, row, place.column, exists);
    } else if (exists) {
        store_octet_at(place, row, octet);
    }
}

template <class CONFIG>
__device__ static inline void finish_job(const bsmi_blackwell_parameters &p, const gemm_job &job,
                                         const unsigned char *of_cta, uint32_t warp, const gemm_sums<CONFIG> &sums,
                                         uint32_t &amax)
{
    const gemm_finish finish = *(const gemm_finish *)(of_cta + CONFIG::AT_FINISH);
    const gemm_quantizer *quantizer = (const gemm_quantizer *)(of_cta + CONFIG::AT_QUANTIZER);
    const uint32_t memory = shared_address(of_cta) + CONFIG::OF_WARPS + warp * CONFIG::WARP_BYTES;
    gemm_tile tile = job.tile;
    warp %= CONFIG::TILE_WARPS;
    tile.row += (int32_t)(warp % CONFIG::ALONG_M * CONFIG::WARP_ROWS);
    tile.column += (int32_t)(warp / CONFIG::ALONG_M * CONFIG::WARP_COLUMNS);
    const uint32_t table = memory + CONFIG::OF_TABLE, lane = threadIdx.x % 32,
                   at = memory + lane / 4 * CONFIG::PITCH + lane % 4 * 32;
    const bool scaled = fill_table<CONFIG>(p, finish, tile, table);
#pragma unroll 1
    for (int32_t piece = 0; piece < CONFIG::PIECES; piece++) {
        const int32_t row = tile.row + piece / CONFIG::ALONG_ROW * CONFIG::PIECE_ROWS + (int32_t)lane / 4,
                      column = piece % CONFIG::ALONG_ROW * CONFIG::PIECE_COLUMNS + (int32_t)lane % 4 * 8;
        gemm_octet_place place =
            octet_place_of(p, tile.matrix, tile.column + column, table + (uint32_t)column * 4, scaled);
        move_to_part<CONFIG>(p, job.part, place);
        put_piece<CONFIG>(sums, piece, memory);
        __syncwarp();
        store_piece<CONFIG>(p, finish, place, quantizer, tile, row, at, amax);
        __syncwarp();
    }
}
