/* Activations: evaluated in double, rounded once to fp32. */
#include "activation.h"

#include "product/activation.h"

void bsmi_activate(bsm_activation activation, float *t, int64_t count)
{
    if (activation == BSM_ACT_NONE) return;
    for (int64_t i = 0; i < count; i++) t[i] = (float)bsmi_activation(activation, (double)t[i]);
}

void bsmi_activate_gated(bsm_activation activation, float *t, int64_t pairs)
{
    for (int64_t j = 0; j < pairs; j++) {
        const double gate = (double)t[2 * j], up = (double)t[2 * j + 1];
        t[j] = (float)(activation == BSM_ACT_SWIGLU_CLAMPED ? bsmi_swiglu_clamped(gate, up)
                                                            : bsmi_activation(activation, gate) * up);
    }
}
