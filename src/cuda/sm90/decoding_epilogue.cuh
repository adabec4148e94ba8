/* From sums of the transposed product to D: the formulas of gemm_epilogue.cuh, with rows and columns of D in each other's places.
 *
 * A thread has two neighbouring columns of D, and of each 8 rows two: sums[4 j + e] and sums[4 j + 2 + e] are row 8 j + 2 c + e of the
 * tile and its two columns.  A warp stores 32 or 64 bytes of four rows at a time. */
#pragma once

#include "cuda/common/gemm_store.cuh"
#include "decoding_codes.cuh"

/* What belongs to rows of D: exponents, factors, biases, ROWS numbers of 32 bits each. */
template <int ROWS>
__device__ static inline void fill_row_table(const bsmi_epilogue_parameters &e, const gemm_finish &finish, const gemm_tile &tile, uint32_t table)
{
    for (int32_t i = (int32_t)(threadIdx.x % 128); i < ROWS; i += 128) {
        const int32_t row = tile.row + i;
        int32_t exponent = 0;
        float factor = finish.f, bias = -0.0f;
        if (row < tile.row_end) {
            if (e.a_exponents != nullptr) exponent = e.a_exponents[tile.matrix * e.a_exponent_step + row];
            if (e.alpha != nullptr && e.alpha_per == BSM_PER_ROW) factor = factor_of(finish, e.alpha[row]);
            if (e.alpha != nullptr && e.alpha_per == BSM_PER_BATCH) factor = factor_of(finish, e.alpha[tile.matrix]);
            if (e.bias != nullptr && e.bias_per == BSM_PER_ROW)
                bias = load_bias(e, (e.grouped ? 0 : tile.matrix * e.bias_batch_pitch) + row);
        }
        store_shared(table + 4 * i, (uint32_t)exponent);
        store_shared(table + 4 * (ROWS + i), __float_as_uint(factor));
        store_shared(table + 4 * (2 * ROWS + i), __float_as_uint(bias));
    }
}

/* What belongs to this thread's two columns. */
struct gemm_column_terms { int32_t exponent[2]; float factor[2], bias[2]; bool exists[2]; };

__device__ static inline gemm_column_terms column_terms_of(const bsmi_epilogue_parameters &e, const gemm_finish &finish, int32_t matrix,
                                                           int32_t column)
{
    gemm_column_terms terms = { { 0, 0 }, { 1, 1 }, { -0.0f, -0.0f }, { false, false } };
#pragma unroll
    for (int i = 0; i < 2; i++) {
        if (column + i >= e.n) continue;
        terms.exists[i] = true;
        if (e.b_exponents != nullptr) terms.exponent[i] = e.b_exponents[matrix * e.b_exponent_step + column + i];
        if (finish.column_factors) terms.factor[i] = factor_of(finish, e.alpha[column + i]);
        if (finish.column_biases) terms.bias[i] = load_bias(e, matrix * e.bias_batch_pitch + column + i);
        if (terms.exponent[i] == BSMI_ROW_LEFT_OUT) terms.exists[i] = false;
    }
    return terms;
}

/* t = f S + (beta C + bias) of one element that exists; what is not finished here stays S. */
struct gemm_element { int32_t row_exponent; float row_factor, row_bias; const unsigned char *c; };

__device__ static inline float finish_element(const bsmi_gemm_parameters &p, const gemm_finish &finish, const gemm_element &of_row,
                                              const gemm_column_terms &columns, int i, float sum)
{
    const bsmi_epilogue_parameters &e = p.epilogue;
    const bool c_is_fp32 = e.c_element == BSM_FP32;
    if (e.a_exponents != nullptr || e.b_exponents != nullptr)
        sum = times_power_of_two(sum, bsmi_sum_exponent(of_row.row_exponent, columns.exponent[i]));
    if (finish.changes) {
        float addend = finish.column_biases ? columns.bias[i] : of_row.row_bias;
        if (finish.beta != 0)
            addend = fmaf(finish.beta, load_number(of_row.c + i * (c_is_fp32 ? 4 : 2), c_is_fp32, e.c_element == BSM_BF16), addend);
        sum = fmaf(finish.column_factors ? columns.factor[i] : of_row.row_factor, sum, addend);
    }
    return isnan(sum) ? __int_as_float(0x7fc00000) : sum;
}

template <class CONFIG>
__device__ static inline void finish_columns(const bsmi_gemm_parameters &p, const gemm_finish &finish, const gemm_tile &tile, uint32_t group,
                                             uint32_t table, float (&sums)[CONFIG::SUMS])
{
    constexpr int ROWS = CONFIG::ROWS;
    const bsmi_epilogue_parameters &e = p.epilogue;
    const int32_t column = tile.column + (int32_t)(group * 64 + first_row_of_thread()), c = (int32_t)(threadIdx.x % 4);
    const gemm_output output = gemm_output_of(p, tile.matrix);
    const gemm_column_terms columns = column_terms_of(e, finish, tile.matrix, column);
    const int64_t bytes = output.element == BSM_FP32 ? 4 : 2, c_bytes = e.c_element == BSM_FP32 ? 4 : 2;
    const bool changes = p.direct && finish.changes, has_table = changes || e.a_exponents != nullptr;
    if (has_table) {
        barrier_sync(1 + group, 128);     /* the table of the tile before is read */
        fill_row_table<ROWS>(e, finish, tile, table);
        barrier_sync(1 + group, 128);
    }
#pragma unroll
    for (int i = 0; i < CONFIG::SUMS / 2; i++) {
        const int32_t in_tile = i / 2 * 8 + 2 * c + i % 2, row = tile.row + in_tile, at = i / 2 * 4 + i % 2;
        if (row >= tile.row_end) continue;
        gemm_element of_row = { 0, 1, -0.0f, nullptr };
        if (has_table) of_row.row_exponent = (int32_t)load_shared(table + 4 * in_tile);
        if (of_row.row_exponent == BSMI_ROW_LEFT_OUT) continue;
        if (changes) {
            of_row.row_factor = __uint_as_float(load_shared(table + 4 * (ROWS + in_tile)));
            of_row.row_bias = __uint_as_float(load_shared(table + 4 * (2 * ROWS + in_tile)));
            of_row.c = e.c + (e.grouped ? 0 : tile.matrix * e.c_batch_bytes) + row * e.c_row_bytes + column * c_bytes;
        }
        float pair[2] = { sums[at], sums[at + 2] };
#pragma unroll
        for (int j = 0; j < 2; j++)
            if (p.direct && columns.exists[j]) pair[j] = finish_element(p, finish, of_row, columns, j, pair[j]);
        if (columns.exists[0] || columns.exists[1])
            store_pair(output.data + row * output.row_bytes + column * bytes, output.element, pair[0], pair[1], columns.exists[0],
                       columns.exists[1]);
    }
}
