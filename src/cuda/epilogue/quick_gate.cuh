/* Gated activations in fp32, for a D of bf16: nearly always that tells which bf16 number the activation in double would
 * be rounded to. */
#pragma once

#include "blockscale/matmul.h"
#include "cuda/ptx/arithmetic.cuh"

/* Errors are relative.  The exponent x has the constant's and the product's, 2^-23.7 of it in all, which for |x| <= 24
 * is 2^-19.6 of 2^x; ex2.approx adds 2^-22, rcp.approx 2^-23, and the sum, the clamped up and two products 2^-24 each.
 * Together less than 2^-19; a fp32 number has 2^24 units of its last place at most, so the result is off by less than
 * 32 of them, and the number in double, rounded to fp32, by one half. */
enum { QUICK_GATE_UNITS = 64 };

/* g / (1 + exp(-factor g)) * up; *sure: its bf16 is that of the activation in double. */
__device__ static inline float quick_gated(int activation, float gate, float up, bool *sure)
{
    const bool clamped = activation == BSM_ACT_SWIGLU_CLAMPED;
    const float g = clamped ? fminf(gate, 7.0f) : gate, u = clamped ? fminf(fmaxf(up, -7.0f), 7.0f) + 1.0f : up,
                x = g * (clamped ? -2.4554669595f : -1.4426950409f),
                t = g * ptx_rcp_approx(1.0f + ptx_ex2_approx(x)) * u;
    const uint32_t bits = __float_as_uint(t), exponent = bits >> 23 & 0xff;
    const int32_t from_middle = (int32_t)(bits & 0xffff) - 0x8000;
    *sure = fabsf(x) <= 24.0f && fabsf(up) <= 1e30f && exponent > 32 && exponent < 250
            && (from_middle > QUICK_GATE_UNITS || from_middle < -QUICK_GATE_UNITS);
    return t;
}

/* Whether this epilogue asks for such a number, and nothing besides. */
__device__ static inline bool has_quick_gate(const bsmi_epilogue_parameters &e)
{
    return (e.activation == BSM_ACT_SWIGLU_CLAMPED || e.activation == BSM_ACT_SILU) && e.gate != BSM_GATE_NONE
           && e.d.element == BSM_BF16 && e.d.tensor_scale == nullptr && e.amax == nullptr;
}
