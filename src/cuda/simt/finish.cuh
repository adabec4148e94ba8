/* One element of S to one of D, for the plain cases: D is fp32, bf16 or fp16 without a tensor scale, no activation, no
 * gate. */
#ifndef BSMI_SIMT_FINISH_CUH
#define BSMI_SIMT_FINISH_CUH

#include "blockscale/matmul.h"
#include "cuda/params/kernels.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

/* f = alpha tA tB in double, rounded once; cpu/epilogue.c forms it in this order. */
__device__ static inline float factor_of(const bsmi_epilogue_parameters &e, int64_t matrix, int64_t row, int64_t column)
{
    double numerator = 1, denominator = 1;
    if (e.alpha != nullptr)
        numerator = (double)e.alpha[e.alpha_per == BSM_PER_ROW      ? row
                                    : e.alpha_per == BSM_PER_COLUMN ? column
                                    : e.alpha_per == BSM_PER_BATCH  ? matrix
                                                                    : 0];
    const double a = e.tensor_scale_a == nullptr ? 1 : (double)*e.tensor_scale_a,
                 b = e.tensor_scale_b == nullptr ? 1 : (double)*e.tensor_scale_b;
    if (e.a_divides) denominator *= a;
    else numerator *= a;
    if (e.b_divides) denominator *= b;
    else numerator *= b;
    return (float)(numerator / denominator);
}

__device__ static inline float load_number(const void *data, int32_t real, int64_t index)
{
    if (real == BSM_REAL_FP16) return __half2float(((const __half *)data)[index]);
    if (real == BSM_REAL_BF16) return __bfloat162float(((const __nv_bfloat16 *)data)[index]);
    return ((const float *)data)[index];
}

__device__ static inline int32_t real_of(int32_t element)
{
    return element == BSM_FP16 ? BSM_REAL_FP16 : element == BSM_BF16 ? BSM_REAL_BF16 : BSM_REAL_FP32;
}

/* t of the contract: fma(f, S, fma(beta, C, bias)), terms that are absent left out. */
__device__ static inline float finished_value(const bsmi_epilogue_parameters &e, int64_t matrix, int64_t row,
                                              int64_t column, float sum)
{
    const float f = factor_of(e, matrix, row, column), beta = e.beta == nullptr || e.c == nullptr ? 0 : *e.beta;
    const float c = beta == 0 ? 0
                              : load_number(e.c + (e.grouped ? 0 : matrix * e.c_batch_bytes) + row * e.c_row_bytes,
                                            real_of(e.c_element), column);
    if (e.bias == nullptr) return beta == 0 ? f * sum : fmaf(f, sum, beta * c);
    const bool per_row = e.bias_per == BSM_PER_ROW;
    const float bias = load_number(e.bias, e.bias_type,
                                   (e.grouped && per_row ? 0 : matrix * e.bias_batch_pitch) + (per_row ? row : column));
    return fmaf(f, sum, beta == 0 ? bias : fmaf(beta, c, bias));
}

/* NaN is written as the canonical one of D's type. */
__device__ static inline void store_finished(const bsmi_epilogue_parameters &e, int64_t matrix, int64_t row,
                                             int64_t column, float t)
{
    unsigned char *to = e.d.data + (e.grouped ? 0 : matrix * e.d.batch_bytes) + row * e.d.row_bytes;
    if (e.d.element == BSM_FP32) ((uint32_t *)to)[column] = isnan(t) ? 0x7fc00000 : __float_as_uint(t);
    else if (e.d.element == BSM_BF16)
        ((uint16_t *)to)[column] = isnan(t) ? 0x7fc0 : __bfloat16_as_ushort(__float2bfloat16_rn(t));
    else ((uint16_t *)to)[column] = isnan(t) ? 0x7e00 : __half_as_ushort(__float2half_rn(t));
}

#endif
