/* Activations: evaluated in double, rounded once to fp32. */
#include "epilogue.h"

/* Forms that do not cancel: 1 + erf(z) is erfc(-z), and (1 + tanh(u)) / 2 is 1 / (1 + exp(-2u)). */
static double evaluate(bsm_activation activation, double x)
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
static double swiglu_clamped(double gate, double up)
{
    const double g = gate > 7 ? 7 : gate, u = up > 7 ? 7 : up < -7 ? -7 : up;
    return g / (1 + exp(-1.702 * g)) * (u + 1);
}

void bsmi_activate(bsm_activation activation, float *t, int64_t count)
{
    if (activation == BSM_ACT_NONE) return;
    for (int64_t i = 0; i < count; i++) t[i] = (float)evaluate(activation, (double)t[i]);
}

void bsmi_activate_gated(bsm_activation activation, float *t, int64_t pairs)
{
    for (int64_t j = 0; j < pairs; j++) {
        const double gate = (double)t[2 * j], up = (double)t[2 * j + 1];
        t[j] = (float)(activation == BSM_ACT_SWIGLU_CLAMPED ? swiglu_clamped(gate, up) : evaluate(activation, gate) * up);
    }
}
