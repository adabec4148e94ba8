/* Pieces of the generic epilogue: factors, groups, sums, gates. */
#pragma once

#include "cuda/ptx/arithmetic.cuh"
#include "cuda/quantize/block.cuh"
#include "product/activation.h"

/* f: everything that multiplies, times each other in double, over the product of everything that divides; rounded to
 * fp32. */
__device__ __noinline__ static float factor_of(const bsmi_epilogue_parameters &e, float alpha)
{
    const double a = e.tensor_scale_a == nullptr ? 1 : (double)*e.tensor_scale_a,
                 b = e.tensor_scale_b == nullptr ? 1 : (double)*e.tensor_scale_b;
    double numerator = (double)alpha, denominator = 1;
    if (e.a_divides) denominator *= a;
    else numerator *= a;
    if (e.b_divides) denominator *= b;
    else numerator *= b;
    return __double2float_rn(numerator / denominator);
}

__device__ static inline int64_t find_group(const bsmi_epilogue_parameters &e, int64_t row)
{
    int64_t low = 0, high = e.matrices;
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        if (e.group_starts[middle] <= row) low = middle;
        else high = middle;
    }
    return low;
}

__device__ __noinline__ static float activate_gated(int activation, float gate, float up)
{
    const double g = (double)gate, u = (double)up;
    return __double2float_rn(activation == BSM_ACT_SWIGLU_CLAMPED ? bsmi_swiglu_clamped(g, u)
                                                                  : bsmi_activation((bsm_activation)activation, g) * u);
}

/* Eight sums at `sums`, aligned to 16 bytes.  Parts are added in their order, while the next ones are on their way. */
__device__ static inline eight load_eight_sums(const bsmi_epilogue_parameters &e, const float *sums)
{
    const float4 a = *(const float4 *)sums, b = *(const float4 *)(sums + 4);
    eight t = { { a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w } };
#pragma unroll 4
    for (int part = 1; part < e.sums_parts; part++) {
        const float4 c = *(const float4 *)(sums + part * e.sums_part_pitch),
                     d = *(const float4 *)(sums + part * e.sums_part_pitch + 4);
        t = { { t.x[0] + c.x, t.x[1] + c.y, t.x[2] + c.z, t.x[3] + c.w, t.x[4] + d.x, t.x[5] + d.y, t.x[6] + d.z,
                t.x[7] + d.w } };
    }
    return t;
}

/* f S + bias of eight neighbours; biases: bf16, aligned to 16 bytes, NULL if there are none. */
__device__ static inline void add_biases(eight &t, float factor, const uint16_t *biases)
{
    if (biases == nullptr) {
#pragma unroll
        for (int i = 0; i < 8; i++) t.x[i] *= factor;
        return;
    }
    const uint4 b = *(const uint4 *)biases;
    const uint32_t words[4] = { b.x, b.y, b.z, b.w };
#pragma unroll
    for (int i = 0; i < 8; i++)
        t.x[i] = fmaf(factor, t.x[i], __uint_as_float(i % 2 == 0 ? words[i / 2] << 16 : words[i / 2] & 0xffff0000));
}

__device__ static inline uint32_t bf16_code(float t)
{
    const uint32_t bits = __float_as_uint(t);
    return isnan(t) ? 0x7fc0 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}
