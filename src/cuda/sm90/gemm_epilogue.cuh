/* From sums in registers to what D holds: exponents of rows and columns, alpha and tensor scales, C, bias; NaN made canonical.
 * The formulas are those at the top of include/blockscale/matmul.h. */
#pragma once

#include "gemm_config.cuh"
#include <blockscale/matmul.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

/* What one thread has of 64 rows of a tile: rows `row` and row + 8, columns `column` + 8 j and the one behind it. */
struct gemm_part {
    int32_t first_row, first_column;      /* of the 64 rows */
    int32_t row, column, row_end, matrix;
};

__device__ static inline gemm_part gemm_part_of(const bsmi_gemm_parameters &p, const gemm_tile &tile, uint32_t rows_before)
{
    const uint32_t thread = threadIdx.x % 128;
    gemm_part part;
    part.first_row = tile.row + (int32_t)rows_before;
    part.first_column = tile.column;
    part.row = part.first_row + (int32_t)(thread / 32 * 16 + thread % 32 / 4);
    part.column = tile.column + (int32_t)(thread % 4 * 2);
    part.row_end = tile.row_end;
    part.matrix = tile.matrix;
    return part;
}

/* What is the same for every tile. */
struct gemm_finish {
    bool scales, adds;                    /* f may be other than 1; there is beta C or bias */
    float f, beta;                        /* f where alpha is one number; beta 0: C is not read */
    double numerator, denominator;        /* f = alpha numerator / denominator, rounded once */
};

__device__ static inline gemm_finish gemm_finish_of(const bsmi_epilogue_parameters &e)
{
    gemm_finish finish = { false, false, 1, 0, 1, 1 };
    if (e.tensor_scale_a != nullptr) (e.a_divides ? finish.denominator : finish.numerator) *= (double)*e.tensor_scale_a;
    if (e.tensor_scale_b != nullptr) (e.b_divides ? finish.denominator : finish.numerator) *= (double)*e.tensor_scale_b;
    const bool one_alpha = e.alpha != nullptr && e.alpha_per == BSM_PER_TENSOR;
    finish.f = (float)((one_alpha ? (double)*e.alpha : 1.0) * finish.numerator / finish.denominator);
    finish.scales = finish.f != 1 || (e.alpha != nullptr && !one_alpha);
    if (e.c != nullptr && e.beta != nullptr) finish.beta = *e.beta;
    finish.adds = finish.beta != 0 || e.bias != nullptr;
    return finish;
}

__device__ static inline float gemm_factor(const gemm_finish &finish, float alpha)
{
    return (float)((double)alpha * finish.numerator / finish.denominator);
}

__device__ static inline float load_real(const void *from, int64_t index, int32_t type)
{
    if (type == BSM_REAL_FP32) return ((const float *)from)[index];
    if (type == BSM_REAL_BF16) return __bfloat162float(((const __nv_bfloat16 *)from)[index]);
    return __half2float(((const __half *)from)[index]);
}
__device__ static inline float load_element(const void *from, int64_t index, int32_t element)
{
    return load_real(from, index, element == BSM_FP32 ? BSM_REAL_FP32 : element == BSM_BF16 ? BSM_REAL_BF16 : BSM_REAL_FP16);
}

/* sum 2^exponent, rounded once: past the exponents of fp32's normal numbers by way of double, where the product is exact. */
__device__ static inline float times_power_of_two(float sum, int32_t exponent)
{
    if (exponent >= -126 && exponent <= 127) return sum * __int_as_float((exponent + 127) << 23);
    const int32_t kept = max(-1000, min(1000, exponent));
    return (float)((double)sum * __longlong_as_double((int64_t)(kept + 1023) << 52));
}

template <int SUMS>
__device__ static inline void apply_exponents(const bsmi_epilogue_parameters &e, const gemm_part &part, float (&sums)[SUMS])
{
    int32_t of_row[2] = { 0, 0 };
    for (int half = 0; half < 2; half++)
        if (e.a_exponents != nullptr && part.row + 8 * half < part.row_end)
            of_row[half] = e.a_exponents[part.matrix * e.a_exponent_step + part.row + 8 * half];
#pragma unroll
    for (int j = 0; j < SUMS / 4; j++)
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const int32_t column = part.column + 8 * j + i;
            const int32_t of_column =
                e.b_exponents == nullptr || column >= e.n ? 0 : e.b_exponents[part.matrix * e.b_exponent_step + column];
            sums[4 * j + i] = times_power_of_two(sums[4 * j + i], bsmi_sum_exponent(of_row[0], of_column));
            sums[4 * j + 2 + i] = times_power_of_two(sums[4 * j + 2 + i], bsmi_sum_exponent(of_row[1], of_column));
        }
}

/* f of this row and column. */
__device__ static inline float factor_at(const bsmi_epilogue_parameters &e, const gemm_finish &finish, int32_t matrix, int32_t row,
                                         int32_t column)
{
    if (e.alpha == nullptr || e.alpha_per == BSM_PER_TENSOR) return finish.f;
    return gemm_factor(finish, e.alpha[e.alpha_per == BSM_PER_ROW ? row : e.alpha_per == BSM_PER_COLUMN ? column : matrix]);
}

/* beta C + bias of this row and column. */
__device__ static inline float addend_at(const bsmi_epilogue_parameters &e, const gemm_finish &finish, int32_t matrix, int32_t row,
                                         int32_t column)
{
    float bias = 0;
    if (e.bias != nullptr) {
        const int64_t first = e.bias_per == BSM_PER_ROW && e.grouped ? 0 : matrix * e.bias_batch_pitch;
        bias = load_real(e.bias, first + (e.bias_per == BSM_PER_ROW ? row : column), e.bias_type);
    }
    if (finish.beta == 0) return bias;
    const float c = load_element(e.c + (e.grouped ? 0 : matrix * e.c_batch_bytes) + row * e.c_row_bytes, column, e.c_element);
    return e.bias == nullptr ? finish.beta * c : fmaf(finish.beta, c, bias);
}

template <int SUMS>
__device__ static inline void apply_factors(const bsmi_epilogue_parameters &e, const gemm_finish &finish, const gemm_part &part,
                                            float (&sums)[SUMS])
{
    const bool one_factor = e.alpha == nullptr || e.alpha_per == BSM_PER_TENSOR;
    if (one_factor && !finish.adds) {
#pragma unroll
        for (int i = 0; i < SUMS; i++) sums[i] = finish.f * sums[i];
        return;
    }
#pragma unroll
    for (int i = 0; i < SUMS; i++) {
        const int32_t row = part.row + i % 4 / 2 * 8, column = part.column + i / 4 * 8 + i % 2;
        if (row < part.row_end && column < e.n) {
            const float f = factor_at(e, finish, part.matrix, row, column);
            sums[i] = finish.adds ? fmaf(f, sums[i], addend_at(e, finish, part.matrix, row, column)) : f * sums[i];
        }
    }
}

template <int SUMS> __device__ static inline void make_nan_canonical(float (&sums)[SUMS])
{
    bool any = false;
#pragma unroll
    for (int i = 0; i < SUMS; i += 2) any |= isnan(sums[i]) | isnan(sums[i + 1]);
    if (!any) return;
#pragma unroll
    for (int i = 0; i < SUMS; i++)
        if (isnan(sums[i])) sums[i] = __int_as_float(0x7fc00000);
}

template <int SUMS>
__device__ static inline void finish_sums(const bsmi_epilogue_parameters &e, const gemm_finish &finish, const gemm_part &part,
                                          float (&sums)[SUMS])
{
    if (e.a_exponents != nullptr || e.b_exponents != nullptr) apply_exponents(e, part, sums);
    if (finish.scales || finish.adds) apply_factors(e, finish, part, sums);
    make_nan_canonical(sums);
}
