/* Activations of a row of t. */
#ifndef BSMI_CPU_ACTIVATION_H
#define BSMI_CPU_ACTIVATION_H

#include "blockscale/matmul.h"

void bsmi_activate(bsm_activation activation, float *t, int64_t count);
/* t[j] = act(t[2j]) * t[2j + 1], for pairs of neighbours. */
void bsmi_activate_gated(bsm_activation activation, float *t, int64_t pairs);

#endif
