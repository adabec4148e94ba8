/* Gated activations in fp32, for a D of bf16: nearly always that tells which bf16 number the activation in double would
 * be rounded to. */
#pragma once

#include "blockscale/matmul.h"
#include "cuda/ptx/arithmetic.cuh"

/* Errors are relative, in units of 2^-24.  The exponent of two is a sum of two numbers, beyond 2^-30 of it; ex2.approx
 * of the larger one adds 4, the smaller one's factor 1, the sum 1, rcp.approx 4 at most, the clamped up and two
 * products 1 each.  Together 13; a fp32 number has 2^24 units of its last place at most, so the result is off by 13 of
 * them, by one half where it is rounded to a subnormal number, and the number in double, rounded to fp32, by one
 * half. */
enum { QUICK_GATE_UNITS = 15 };

/* g / (1 + exp(-factor g)) * up; *sure: its bf16 is that of the activation in double.  NaN passes the comparisons. */
__device__ static inline float quick_gated(bool clamped, float gate, float up, bool *sure)
{
    const double factor = clamped ? -1.702 * 1.4426950408889634 : -1.4426950408889634;
    const float high_factor = (float)factor, low_factor = (float)(factor - (double)high_factor);
    float g = gate, u = up;
    if (clamped) {
        g = gate > 7 ? 7 : gate;
        u = (up > 7 ? 7 : up < -7 ? -7 : up) + 1;
    }
    /* 2^x: of x beyond 60, 2^(x - 64), and the 1 no longer counts; below -60 it is the power that does not. */
    const float all = g * high_factor, x = fminf(fmaxf(all, -60.0f), 180.0f),
                rest = x == all ? fmaf(g, low_factor, fmaf(g, high_factor, -all)) : 0;
    const bool scaled = x > 60;
    float power = ptx_ex2_approx(scaled ? x - 64 : x);
    power = fmaf(power, rest * 0.6931472f, power);
    const float product = g * ptx_rcp_approx(scaled ? power : 1 + power) * u,
                t = scaled ? product * 5.42101086e-20f : product;
    const uint32_t bits = __float_as_uint(t), size = bits & 0x7fffffff,
                   from_middle = (bits & 0xffff) - (0x8000 - QUICK_GATE_UNITS);
    /* Beyond 180 there is an upper bound alone: what is below 2^-135 with it is a zero of bf16. */
    *sure = from_middle > 2 * QUICK_GATE_UNITS && size < (all > 180 ? 1u << 14 : 250u << 23)
            && (fabsf(g) >= 1e-18f || g == 0);                    /* g times 1 / (1 + ...) is a normal number */
    return t;
}

/* Whether this epilogue asks for such a number, and nothing besides. */
__device__ static inline bool has_quick_gate(const bsmi_epilogue_parameters &e)
{
    return (e.activation == BSM_ACT_SWIGLU_CLAMPED || e.activation == BSM_ACT_SILU) && e.gate != BSM_GATE_NONE
           && e.d.element == BSM_BF16 && e.d.tensor_scale == nullptr && e.amax == nullptr;
}
