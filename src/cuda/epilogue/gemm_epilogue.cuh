/* From sums in registers to what D holds: exponents of rows and columns, alpha and tensor scales, C, bias; NaN made
 * canonical. The formulas are those at the top of include/blockscale/matmul.h.
 *
 * Terms that are absent are put in as numbers that change nothing: f as 1, bias as -0 (x + -0 is x, also for zeros). */
#pragma once

#include "cuda/ptx/threads.cuh"
#include "cuda/scheduler/gemm_tile.cuh"
#include <blockscale/matmul.h>
#include <cuda_fp16.h>

/* What is the same for every tile. */
struct gemm_finish {
    bool column_factors, column_biases;   /* columns have some of their own */
    bool changes;                         /* f may be other than 1, or there is beta C or bias */
    float f, beta;                        /* f where alpha is one number; beta 0: C is not read */
    double numerator, denominator;        /* f = alpha numerator / denominator, rounded once */
};

__device__ static inline gemm_finish gemm_finish_of(const bsmi_gemm_parameters &p)
{
    const bsmi_epilogue_parameters &e = p.epilogue;
    gemm_finish finish = { false, false, false, 1, 0, 1, 1 };
    if (!p.direct) return finish;
    if (e.tensor_scale_a != nullptr) (e.a_divides ? finish.denominator : finish.numerator) *= (double)*e.tensor_scale_a;
    if (e.tensor_scale_b != nullptr) (e.b_divides ? finish.denominator : finish.numerator) *= (double)*e.tensor_scale_b;
    const bool one_alpha = e.alpha != nullptr && e.alpha_per == BSM_PER_TENSOR;
    finish.f = (float)((one_alpha ? (double)*e.alpha : 1.0) * finish.numerator / finish.denominator);
    if (e.c != nullptr && e.beta != nullptr) finish.beta = *e.beta;
    finish.changes = finish.f != 1 || (e.alpha != nullptr && !one_alpha) || finish.beta != 0 || e.bias != nullptr;
    finish.column_factors = e.alpha != nullptr && e.alpha_per == BSM_PER_COLUMN;
    finish.column_biases = e.bias != nullptr && e.bias_per == BSM_PER_COLUMN;
    return finish;
}

__device__ static inline float factor_of(const gemm_finish &finish, float alpha)
{
    return (float)((double)alpha * finish.numerator / finish.denominator);
}

/* A number of fp32, bf16 or fp16. */
__device__ static inline float load_number(const void *at, bool is_fp32, bool is_bf16)
{
    if (is_fp32) return *(const float *)at;
    const uint16_t bits = *(const uint16_t *)at;
    return is_bf16 ? __uint_as_float((uint32_t)bits << 16) : __half2float(__ushort_as_half(bits));
}
__device__ static inline float load_bias(const bsmi_epilogue_parameters &e, int64_t index)
{
    const bool is_fp32 = e.bias_type == BSM_REAL_FP32;
    return load_number((const unsigned char *)e.bias + index * (is_fp32 ? 4 : 2), is_fp32,
                       e.bias_type == BSM_REAL_BF16);
}

/* Exponents of the tile's columns that a thread brings to the table: every 128th. */
template <int COLUMNS> struct gemm_own_exponents { int32_t columns[(COLUMNS + 127) / 128]; };

template <int COLUMNS>
__device__ static inline gemm_own_exponents<COLUMNS> own_exponents_of(const bsmi_epilogue_parameters &e, int32_t matrix,
                                                                      int32_t first_column)
{
    gemm_own_exponents<COLUMNS> own = {};
    if (e.b_exponents == nullptr) return own;
#pragma unroll
    for (int32_t i = 0; i < (COLUMNS + 127) / 128; i++) {
        const int32_t in_tile = i * 128 + (int32_t)(threadIdx.x % 128);
        if (in_tile < COLUMNS && first_column + in_tile < e.n)
            own.columns[i] = e.b_exponents[matrix * e.b_exponent_step + first_column + in_tile];
    }
    return own;
}

template <int COLUMNS> __device__ static inline bool any_exponent(const gemm_own_exponents<COLUMNS> &own)
{
    int32_t bits = 0;
#pragma unroll
    for (int32_t exponent : own.columns) bits |= exponent;
    return bits != 0;
}

/* An exponent within 63 of 0: two of them give a power of two that is a normal number of fp32. */
__device__ static inline bool is_small(int32_t exponent) { return (uint32_t)(exponent + 63) <= 126; }

/* What all threads know of the columns' exponents: in_table: the table has them; else all are 0. */
struct gemm_columns { bool in_table, small; };

/* What belongs to the tile's columns, computed once for the rows of four warps, in shared memory: factors, biases,
 * exponents, COLUMNS numbers of 32 bits each, those that there are.  The warps have passed `barrier` since they last
 * used that memory.  scaled: columns may have exponents. */
template <int COLUMNS>
__device__ static inline gemm_columns fill_column_table(const bsmi_epilogue_parameters &e, const gemm_finish &finish,
                                                        const gemm_part &part, const gemm_own_exponents<COLUMNS> &own,
                                                        bool scaled, uint32_t table, uint32_t barrier)
{
    bool beyond = false;
#pragma unroll
    for (int32_t i = 0; i < (COLUMNS + 127) / 128; i++) {
        const int32_t in_tile = i * 128 + (int32_t)(threadIdx.x % 128), column = part.first_column + in_tile;
        if (in_tile >= COLUMNS) continue;
        const bool exists = column < e.n;
        if (finish.column_factors)
            store_shared(table + 4 * in_tile, __float_as_uint(exists ? factor_of(finish, e.alpha[column]) : 1));
        if (finish.column_biases)
            store_shared(table + 4 * (COLUMNS + in_tile),
                         __float_as_uint(exists ? load_bias(e, part.matrix * e.bias_batch_pitch + column) : -0.0f));
        if (scaled) store_shared(table + 4 * (2 * COLUMNS + in_tile), (uint32_t)own.columns[i]);
        beyond |= !is_small(own.columns[i]);
    }
    return { scaled, !barrier_or(barrier, 128, beyond) };
}

__device__ static inline int32_t row_exponent(const bsmi_epilogue_parameters &e, const gemm_part &part, int32_t row)
{
    return e.a_exponents == nullptr || !has_row(part, row) ? 0 : e.a_exponents[part.matrix * e.a_exponent_step + row];
}
/* sum 2^exponent, rounded once: past the exponents of fp32's normal numbers by way of double, where the product is
 * exact. */
__device__ static inline float times_power_of_two(float sum, int32_t exponent)
{
    if (exponent >= -126 && exponent <= 127) return sum * __int_as_float((exponent + 127) << 23);
    const int32_t kept = max(-1000, min(1000, exponent));
    return (float)((double)sum * __longlong_as_double((int64_t)(kept + 1023) << 52));
}

/* The two rows of a part. */
struct gemm_row_exponents { int32_t rows[2]; };
__device__ static inline gemm_row_exponents row_exponents_of(const bsmi_epilogue_parameters &e, const gemm_part &part)
{
    return { { row_exponent(e, part, part.row), row_exponent(e, part, part.row + 8) } };
}

/* Exponents of this thread's two rows, and what its warp knows of them and of the columns'.  any: one of them is not
 * 0. */
struct gemm_exponents {
    bool any;
    gemm_columns columns;
    int32_t rows[2];
};

__device__ static inline gemm_exponents exponents_of(const gemm_row_exponents &of, gemm_columns columns)
{
    gemm_exponents exponents = { columns.in_table || __any_sync(0xffffffff, (of.rows[0] | of.rows[1]) != 0), columns,
                                 { of.rows[0], of.rows[1] } };
    if (!exponents.any) return exponents;
    exponents.columns.small &= __all_sync(0xffffffff, is_small(of.rows[0]) && is_small(of.rows[1]));
    return exponents;
}

/* A product with a power of two that is a normal number is rounded once. */
template <int COLUMNS, int SUMS>
__device__ static inline void apply_small_exponents(const gemm_part &part, const gemm_exponents &exponents,
                                                    uint32_t table, float (&sums)[SUMS])
{
    const uint32_t columns = table + 4 * (2 * COLUMNS + part.column - part.first_column);
    const int32_t rows[2] = { (exponents.rows[0] + 127) << 23, (exponents.rows[1] + 127) << 23 };
#pragma unroll
    for (int i = 0; i < SUMS; i += 4) {
        const uint2 pair = exponents.columns.in_table ? load_shared_v2(columns + 8 * i) : make_uint2(0, 0);
        const int32_t first = (int32_t)(pair.x << 23), second = (int32_t)(pair.y << 23);
        sums[i] *= __int_as_float(rows[0] + first), sums[i + 1] *= __int_as_float(rows[0] + second);
        sums[i + 2] *= __int_as_float(rows[1] + first), sums[i + 3] *= __int_as_float(rows[1] + second);
    }
}

/* Factors and addends of this thread's two rows. */
struct gemm_row_terms { float factor[2], bias[2]; };

__device__ static inline gemm_row_terms row_terms_of(const bsmi_epilogue_parameters &e, const gemm_finish &finish,
                                                     const gemm_part &part)
{
    gemm_row_terms terms;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int32_t row = part.row + 8 * half;
        terms.factor[half] = finish.f;
        terms.bias[half] = -0.0f;
        if (!has_row(part, row)) continue;
        if (e.alpha != nullptr && e.alpha_per == BSM_PER_ROW) terms.factor[half] = factor_of(finish, e.alpha[row]);
        if (e.alpha != nullptr && e.alpha_per == BSM_PER_BATCH)
            terms.factor[half] = factor_of(finish, e.alpha[part.matrix]);
        if (e.bias != nullptr && e.bias_per == BSM_PER_ROW)
            terms.bias[half] = load_bias(e, (e.grouped ? 0 : part.matrix * e.bias_batch_pitch) + row);
    }
    return terms;
}

/* t = f S + bias, both of them a row's or of the whole matrix: what most products want. */
template <int SUMS> __device__ static inline void apply_row_terms(const gemm_row_terms &terms, float (&sums)[SUMS])
{
#pragma unroll
    for (int i = 0; i < SUMS; i++) sums[i] = fmaf(terms.factor[i % 4 / 2], sums[i], terms.bias[i % 4 / 2]);
}

/* The same where columns have a factor, a bias, or both. */
template <int COLUMNS, int SUMS>
__device__ static inline void apply_column_terms(const gemm_finish &finish, const gemm_row_terms &terms,
                                                 uint32_t columns, float (&sums)[SUMS])
{
    const bool has_factors = finish.column_factors, has_biases = finish.column_biases;
#pragma unroll
    for (int i = 0; i < SUMS; i += 4) {
        const uint2 factors = has_factors ? load_shared_v2(columns + 8 * i) : make_uint2(0, 0);
        const uint2 biases = has_biases ? load_shared_v2(columns + 4 * COLUMNS + 8 * i) : make_uint2(0, 0);
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const float factor = has_factors ? __uint_as_float(j % 2 ? factors.y : factors.x) : terms.factor[j / 2];
            sums[i + j] = fmaf(factor, sums[i + j],
                               has_biases ? __uint_as_float(j % 2 ? biases.y : biases.x) : terms.bias[j / 2]);
        }
    }
}

/* The cases are told apart once, not for every element: branches in unrolled code cost an eighth of a large product. */
template <int COLUMNS, int SUMS>
__device__ static inline void apply_terms(const bsmi_epilogue_parameters &e, const gemm_finish &finish,
                                          const gemm_part &part, uint32_t table, float (&sums)[SUMS])
{
    const gemm_row_terms terms = row_terms_of(e, finish, part);
    const uint32_t columns = table + 4 * (part.column - part.first_column);
    if (finish.column_factors || finish.column_biases) apply_column_terms<COLUMNS>(finish, terms, columns, sums);
    else apply_row_terms(terms, sums);
}

/* Whether a thread of the warp has any NaN. */
template <int SUMS> __device__ static inline bool any_nan_of_warp(const float (&sums)[SUMS])
{
    bool any[4] = { false, false, false, false };
#pragma unroll
    for (int i = 0; i < SUMS; i += 2) any[i / 2 % 4] |= !(sums[i] >= sums[i + 1]) & !(sums[i] < sums[i + 1]);
    return __any_sync(0xffffffff, any[0] | any[1] | any[2] | any[3]);
}

template <int SUMS> __device__ static inline void make_nan_canonical(float (&sums)[SUMS])
{
#pragma unroll
    for (int i = 0; i < SUMS; i++)
        if (isnan(sums[i])) sums[i] = __int_as_float(0x7fc00000);
}

/* Exponents are small, beta is 0.  table: as fill_column_table<COLUMNS> left it, of columns that have anything of their
 * own.  True if there is any NaN, as it came. */
template <int COLUMNS, int SUMS>
__device__ static inline bool finish_sums(const bsmi_epilogue_parameters &e, const gemm_finish &finish,
                                          const gemm_part &part, const gemm_exponents &exponents, uint32_t table,
                                          float (&sums)[SUMS])
{
    if (exponents.any) apply_small_exponents<COLUMNS>(part, exponents, table, sums);
    if (finish.changes) apply_terms<COLUMNS>(e, finish, part, table, sums);
    return any_nan_of_warp(sums);
}
