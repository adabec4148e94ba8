/* Activations in double: the formulas of bsm_activation, in forms that do not cancel.  Also compiled for GPUs. */
#ifndef BSMI_ACTIVATION_H
#define BSMI_ACTIVATION_H

#include "blockscale/matmul.h"
#include "format/format.h"

/* 1 + erf(z) is erfc(-z), and (1 + tanh(u)) / 2 is 1 / (1 + exp(-2u)). */
BSMI_SHARED double bsmi_activation(bsm_activation activation, double x)
{
    switch (activation) {
    case BSM_ACT_RELU: return x > 0 || isnan(x) ? x : 0;
    case BSM_ACT_GELU: return x * erfc(-x * 0.70710678118654752440) / 2;
    case BSM_ACT_GELU_TANH: return x / (1 + exp(-2 * 0.79788456080286535588 * (x + 0.044715 * x * x * x)));
    case BSM_ACT_SILU: return x / (1 + exp(-x));
    default: return x;
    }
}

/* gpt-oss: NaN stays NaN through the comparisons. */
BSMI_SHARED double bsmi_swiglu_clamped(double gate, double up)
{
    const double g = gate > 7 ? 7 : gate, u = up > 7 ? 7 : up < -7 ? -7 : up;
    return g / (1 + exp(-1.702 * g)) * (u + 1);
}

#endif
