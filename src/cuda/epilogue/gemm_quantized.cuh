/* D quantized where its sums are: finished numbers in registers are exchanged between the lanes of a warp until each
 * lane has eight neighbours of a row, as bsmi_finish has them, and from there on the functions are the same: block
 * maxima by two shuffles, codes and scales stored from registers.  A row's piece of 32 columns lies in four
 * neighbouring lanes.
 *
 * Numbers outside of D count as zeros: rows of B behind the last may have scales that are NaN. */
#pragma once

#include "cuda/quantize/block.cuh"
#include "gemm_epilogue.cuh"

/* In shared memory: what is fixed for D. */
struct gemm_quantizer { block_quantizer block; scale_part scale_rows, scale_columns; };
static_assert(sizeof(gemm_quantizer) <= BSMI_GEMM_QUANTIZER_BYTES, "as the host has it");

/* Whether D is quantized here; not in GGUF's blocks, which may be wider than tiles. */
__device__ static inline bool quantizes(const bsmi_gemm_parameters &p)
{
    return p.direct && p.epilogue.d.block != 0;
}

__device__ static inline gemm_quantizer gemm_quantizer_of(const bsmi_gemm_parameters &p)
{
    const bsmi_epilogue_parameters &e = p.epilogue;
    const scale_places places = make_places(e.d.layout);
    return { make_quantizer(e.d, e.d.tensor_scale == nullptr ? 1 : *e.d.tensor_scale, e.d_recipe,
                            BSM_ROUND_NEAREST_EVEN, e.d_nonfinite, 0, false),
             places.row, places.column };
}

/* By all epilogue warps, before the first tile. */
__device__ static inline void make_gemm_quantizer(const bsmi_gemm_parameters &p, gemm_quantizer *q,
                                                  uint32_t barrier)
{
    if (threadIdx.x % 128 == 0) *q = gemm_quantizer_of(p);
    barrier_sync(barrier, 128);
}

/* Lane l of every COUNT neighbours has pieces 0 .. COUNT - 1 of WIDTH numbers; afterwards pieces l of all of them, in
 * order. */
template <int COUNT, int WIDTH> __device__ static inline void exchange_pieces(float (&x)[COUNT * WIDTH])
{
#pragma unroll
    for (int bit = 1; bit < COUNT; bit *= 2) {
        const bool high = (threadIdx.x & bit) != 0;
#pragma unroll
        for (int i = 0; i < COUNT * WIDTH; i++) {
            if (i / WIDTH & bit) continue;
            float &low_piece = x[i], &high_piece = x[i + bit * WIDTH];
            const float received = __shfl_xor_sync(0xffffffff, high ? low_piece : high_piece, bit);
            (high ? low_piece : high_piece) = received;
        }
    }
}

/* Eight columns from `column` on of a row of D, or nothing (is_row false); by whole warps: neighbours have the octets
 * beside. */
__device__ __forceinline__ static void quantize_octet(const bsmi_gemm_parameters &p, const gemm_quantizer &q, eight t,
                                                      int32_t matrix, int32_t row, int32_t column, bool is_row)
{
    const bsmi_device_matrix &d = p.epilogue.d;
    const int64_t batch = p.epilogue.grouped ? 0 : matrix;
    const int count = is_row ? (int)max((int64_t)0, min((int64_t)8, d.columns - column)) : 0;
#pragma unroll
    for (int i = 0; i < 8; i++)
        if (i >= count) t.x[i] = 0;
    const quantized v = quantize_to_nearest(q.block, t);
    if (count == 0) return;
    unsigned char *scales = d.scales + batch * d.scale_batch_bytes + place_in(q.scale_rows, row);
    unsigned char *codes = d.data + batch * d.batch_bytes + row * d.row_bytes;
    store_quantized(d, q.scale_columns, codes, scales, column / 8, count, 0, q.block, v);
}

__device__ __noinline__ static void store_octet_quantized(const bsmi_gemm_parameters &p, const gemm_quantizer &q,
                                                          eight t, int32_t matrix, int32_t row, int32_t column,
                                                          bool is_row)
{
    quantize_octet(p, q, t, matrix, row, column, is_row);
}

/* Two neighbours of a row of C, of which D has so many; a call, because code for each of a thread's numbers is as long
 * as all the rest. */
__device__ __noinline__ static float2 load_pair_of_c(const bsmi_epilogue_parameters &e, const unsigned char *c,
                                                     int count)
{
    const bool is_fp32 = e.c_element == BSM_FP32, is_bf16 = e.c_element == BSM_BF16;
    return make_float2(count > 0 ? load_number(c, is_fp32, is_bf16) : 0,
                       count > 1 ? load_number(c + (is_fp32 ? 4 : 2), is_fp32, is_bf16) : 0);
}

/* t = f S + (beta C + bias), in registers, where beta is not 0.  Codes have no exponents.  True if there is any NaN. */
template <int COLUMNS, int SUMS>
__device__ static inline bool apply_all_terms(const bsmi_epilogue_parameters &e, const gemm_finish &finish,
                                              const gemm_part &part, uint32_t table, float (&sums)[SUMS])
{
    const gemm_row_terms terms = row_terms_of(e, finish, part);
    const uint32_t columns = table + 4 * (part.column - part.first_column);
    const unsigned char *c = e.c + (e.grouped ? 0 : part.matrix * e.c_batch_bytes)
                             + (int64_t)part.column * (e.c_element == BSM_FP32 ? 4 : 2);
#pragma unroll
    for (int i = 0; i < SUMS; i += 2) {
        const int32_t half = i % 4 / 2, row = part.row + 8 * half, in_part = i / 4 * 8;
        const int32_t count = has_row(part, row) ? (int32_t)e.n - part.column - in_part : 0;
        const float2 of_c =
            load_pair_of_c(e, c + row * e.c_row_bytes + in_part * (e.c_element == BSM_FP32 ? 4 : 2), count);
        const uint2 factors = finish.column_factors ? load_shared_v2(columns + 4 * in_part)
                                                    : make_uint2(__float_as_uint(terms.factor[half]),
                                                                 __float_as_uint(terms.factor[half]));
        const uint2 biases = finish.column_biases
                                 ? load_shared_v2(columns + 4 * (COLUMNS + in_part))
                                 : make_uint2(__float_as_uint(terms.bias[half]), __float_as_uint(terms.bias[half]));
        sums[i] = fmaf(__uint_as_float(factors.x), sums[i], fmaf(finish.beta, of_c.x, __uint_as_float(biases.x)));
        sums[i + 1] =
            fmaf(__uint_as_float(factors.y), sums[i + 1], fmaf(finish.beta, of_c.y, __uint_as_float(biases.y)));
    }
    return any_nan_of_warp(sums);
}

/* Sums as tcgen05.ld.16x256b leaves them (gemm_part): pairs of columns, eight apart, of two rows. */
template <int SUMS>
__device__ static inline void store_rows_quantized(const bsmi_gemm_parameters &p, const gemm_quantizer &q,
                                                   const gemm_part &part, const float (&sums)[SUMS])
{
#pragma unroll
    for (int first = 0; first < SUMS; first += 16)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            eight t;
#pragma unroll
            for (int i = 0; i < 8; i++) t.x[i] = sums[first + i / 2 * 4 + half * 2 + i % 2];
            exchange_pieces<4, 2>(t.x);
            const int32_t row = part.row + 8 * half,
                          column = part.box_column + first * 2 + (int32_t)(threadIdx.x % 4) * 8;
            store_octet_quantized(p, q, t, part.matrix, row, column, has_row(part, row));
        }
}

/* A column for each lane, eight rows from `row` on: lane 8 o + i gets row i of octet o, and then lane 4 i + o has
 * it. */
__device__ static inline void store_columns_quantized(const bsmi_gemm_parameters &p, const gemm_quantizer &q,
                                                      const gemm_tile &tile, int32_t first_row, int32_t first_column,
                                                      eight t)
{
    const uint32_t lane = threadIdx.x % 32;
    exchange_pieces<8, 1>(t.x);
#pragma unroll
    for (int i = 0; i < 8; i++) t.x[i] = __shfl_sync(0xffffffff, t.x[i], (int)(lane % 4 * 8 + lane / 4));
    const int32_t row = first_row + (int32_t)(lane / 4), column = first_column + (int32_t)(lane % 4) * 8;
    store_octet_quantized(p, q, t, tile.matrix, row, column, row >= tile.row_begin && row < tile.row_end);
}
