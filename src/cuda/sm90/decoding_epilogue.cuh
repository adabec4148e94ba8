/* From sums of the transposed product to D: the formulas of gemm_epilogue.cuh.
 *
 * A consumer warp has 16 columns of D.  Each thread's sums are of two neighbouring columns, and of each 8 rows two: sums[..][4 j + e] and
 * sums[..][4 j + 2 + e] are row 8 j + 2 c + e of the rows of their product.  They go through shared memory, some rows at a time, so that a
 * thread gets eight columns of a row, and so that one short loop does for all of them: code for each sum by itself is longer than the
 * instruction caches, and fetching it took longer than the products. */
#pragma once

#include "cuda/common/gemm_store.cuh"
#include "cuda/ptx/arithmetic.cuh"
#include "decoding_config.cuh"

template <class CONFIG> using decoded_sums = float[CONFIG::PRODUCTS][CONFIG::PRODUCT_SUMS];

/* What belongs to one row or column of D. */
struct gemm_line { int32_t exponent; float factor, bias; };

/* Three numbers of 32 bits for each of COUNT lines, one kind behind the other. */
template <int COUNT> __device__ static inline void store_line(uint32_t table, int32_t i, const gemm_line &line)
{
    store_shared(table + 4 * i, (uint32_t)line.exponent);
    store_shared(table + 4 * (COUNT + i), __float_as_uint(line.factor));
    store_shared(table + 4 * (2 * COUNT + i), __float_as_uint(line.bias));
}

__device__ static inline gemm_line row_of(const bsmi_epilogue_parameters &e, const gemm_finish &finish, const gemm_tile &tile, int32_t row)
{
    gemm_line line = { 0, finish.f, -0.0f };
    if (row >= tile.row_end) return line;
    if (e.a_exponents != nullptr) line.exponent = e.a_exponents[tile.matrix * e.a_exponent_step + row];
    if (e.alpha != nullptr && e.alpha_per == BSM_PER_ROW) line.factor = factor_of(finish, e.alpha[row]);
    if (e.alpha != nullptr && e.alpha_per == BSM_PER_BATCH) line.factor = factor_of(finish, e.alpha[tile.matrix]);
    if (e.bias != nullptr && e.bias_per == BSM_PER_ROW) line.bias = load_bias(e, (e.grouped ? 0 : tile.matrix * e.bias_batch_pitch) + row);
    return line;
}

__device__ static inline gemm_line column_of(const bsmi_epilogue_parameters &e, const gemm_finish &finish, const gemm_tile &tile, int32_t column)
{
    gemm_line line = { 0, 1, -0.0f };
    if (column >= e.n) return line;
    if (e.b_exponents != nullptr) line.exponent = e.b_exponents[tile.matrix * e.b_exponent_step + column];
    if (finish.column_factors) line.factor = factor_of(finish, e.alpha[column]);
    if (finish.column_biases) line.bias = load_bias(e, tile.matrix * e.bias_batch_pitch + column);
    return line;
}

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

/* Eight numbers of a row, and which of them D gets. */
struct gemm_octet { float v[8]; uint32_t exists; };

__device__ static inline void load_eight(uint32_t from, float (&v)[8])
{
    const uint4 low = load_shared_v4(from), high = load_shared_v4(from + 16);
    const uint32_t words[8] = { low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w };
#pragma unroll
    for (int i = 0; i < 8; i++) v[i] = __uint_as_float(words[i]);
}

/* Columns that are left out drop out; the others get their exponents, but not where S is stored as it is.  columns: the table of columns,
 * from the first of the eight on. */
__device__ static inline void scale_octet(gemm_octet &octet, int32_t row_exponent, uint32_t columns, bool direct)
{
    float exponents[8];
    load_eight(columns, exponents);
#pragma unroll
    for (int i = 0; i < 8; i++) {
        const int32_t exponent = __float_as_int(exponents[i]);
        if (exponent == BSMI_ROW_LEFT_OUT) octet.exists &= ~(1u << i);
        if (direct) octet.v[i] = times_power_of_two(octet.v[i], bsmi_sum_exponent(row_exponent, exponent));
    }
}

/* t = f S + (beta C + bias).  c: of the first of the eight. */
__device__ static inline void change_octet(const bsmi_epilogue_parameters &e, const gemm_finish &finish, gemm_octet &octet, const gemm_line &row,
                                           uint32_t columns, const unsigned char *c)
{
    const bool c_is_fp32 = e.c_element == BSM_FP32, c_is_bf16 = e.c_element == BSM_BF16;
    float factors[8], biases[8];
    if (finish.column_factors) load_eight(columns + 4 * 64, factors);
    if (finish.column_biases) load_eight(columns + 4 * 2 * 64, biases);
#pragma unroll
    for (int i = 0; i < 8; i++) {
        float addend = finish.column_biases ? biases[i] : row.bias;
        if (finish.beta != 0 && (octet.exists >> i & 1) != 0)
            addend = fmaf(finish.beta, load_number(c + i * (c_is_fp32 ? 4 : 2), c_is_fp32, c_is_bf16), addend);
        octet.v[i] = fmaf(finish.column_factors ? factors[i] : row.factor, octet.v[i], addend);
    }
}

__device__ static inline void store_octet(unsigned char *to, int32_t element, const gemm_octet &octet)
{
    const float(&v)[8] = octet.v;
    if (octet.exists != 0xff || (uint64_t)to % 16 != 0) {
#pragma unroll
        for (int i = 0; i < 8; i += 2)
            store_pair(to + i * (element == BSM_FP32 ? 4 : 2), element, v[i], v[i + 1], octet.exists >> i & 1, octet.exists >> (i + 1) & 1);
    } else if (element == BSM_FP32) {
        ptx_store_16(to, make_uint4(__float_as_uint(v[0]), __float_as_uint(v[1]), __float_as_uint(v[2]), __float_as_uint(v[3])));
        ptx_store_16(to + 16, make_uint4(__float_as_uint(v[4]), __float_as_uint(v[5]), __float_as_uint(v[6]), __float_as_uint(v[7])));
    } else {
        uint32_t pairs[4];
        if (element == BSM_BF16) convert_pairs<BSM_BF16, 4, 0>(pairs, v, true);
        else convert_pairs<BSM_FP16, 4, 0>(pairs, v, true);
        ptx_store_16(to, make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]));
    }
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
    gemm_output output;
    int32_t column;                       /* the first of this thread's eight */
    uint32_t exists;                      /* which of them D has */
    uint32_t tables, columns, chunk;      /* addresses: of the tables, of the eight in that of columns, of the warp's chunk */
    bool scaled;                          /* there are exponents other than 0 */
};

template <class CONFIG>
__device__ static inline decoded_tile decoded_tile_of(const bsmi_gemm_parameters &p, const gemm_tile &tile, uint32_t shared, uint32_t group,
                                                      bool scaled)
{
    const uint32_t warp = threadIdx.x % 128 / 32, in_tile_column = warp * 16 + threadIdx.x % 2 * 8;
    const uint32_t tables = tables_of<CONFIG>(shared, group);
    const uint32_t chunk = shared + CONFIG::AT_CHUNKS + (group * 4 + warp) * CONFIG::CHUNK * CONFIG::CHUNK_PITCH;
    const int32_t column = tile.column + (int32_t)in_tile_column;
    const int64_t left = p.epilogue.n - column;
    return { gemm_output_of(p, tile.matrix), column, left >= 8 ? 0xffu : left > 0 ? (1u << left) - 1 : 0u, tables,
             tables + CONFIG::ROW_TABLE_BYTES + in_tile_column * 4, chunk, scaled };
}

/* Eight columns of a row: in_chunk of the chunk, in_tile of the tile. */
template <class CONFIG>
__device__ static inline void finish_octet(const bsmi_gemm_parameters &p, const gemm_finish &finish, const gemm_tile &tile, const decoded_tile &d,
                                           uint32_t in_chunk, uint32_t in_tile)
{
    const bsmi_epilogue_parameters &e = p.epilogue;
    const int32_t row = tile.row + (int32_t)in_tile;
    const gemm_line line = { (int32_t)load_shared(d.tables + 4 * in_tile), __uint_as_float(load_shared(d.tables + 4 * (CONFIG::ROWS + in_tile))),
                             __uint_as_float(load_shared(d.tables + 4 * (2 * CONFIG::ROWS + in_tile))) };
    gemm_octet octet = { {}, d.exists };
    if (row >= tile.row_end || octet.exists == 0 || line.exponent == BSMI_ROW_LEFT_OUT) return;
    load_eight(d.chunk + in_chunk * CONFIG::CHUNK_PITCH + threadIdx.x % 2 * 32, octet.v);
    if (d.scaled) scale_octet(octet, line.exponent, d.columns, p.direct);
    if (p.direct) {
        const unsigned char *c = e.c + (e.grouped ? 0 : tile.matrix * e.c_batch_bytes) + row * e.c_row_bytes;
        if (finish.changes) change_octet(e, finish, octet, line, d.columns, c + (int64_t)d.column * (e.c_element == BSM_FP32 ? 4 : 2));
#pragma unroll
        for (int i = 0; i < 8; i++)
            if (isnan(octet.v[i])) octet.v[i] = __int_as_float(0x7fc00000);
    }
    store_octet(d.output.data + row * d.output.row_bytes + (int64_t)d.column * (d.output.element == BSM_FP32 ? 4 : 2), d.output.element, octet);
}

template <class CONFIG>
__device__ static inline void finish_columns(const bsmi_gemm_parameters &p, const gemm_finish &finish, const gemm_tile &tile, const decoded_tile &d,
                                             const decoded_sums<CONFIG> &sums)
{
    const uint32_t first = threadIdx.x % 32 / 2;
#pragma unroll 1
    for (int32_t chunk = 0; chunk < CONFIG::ROWS / CONFIG::CHUNK; chunk++) {
        __syncwarp();                     /* the chunk before is read */
        put_chunk<CONFIG>(sums, chunk, d.chunk);
        __syncwarp();
#pragma unroll 1
        for (uint32_t row = first; row < CONFIG::CHUNK; row += 16) finish_octet<CONFIG>(p, finish, tile, d, row, chunk * CONFIG::CHUNK + row);
    }
}
