/* Names of what a product can ask for. */
#include "blockscale/matmul.h"

#include <string.h>

static const char *const activations[BSM_ACT_COUNT] = { "none", "relu", "gelu", "gelu_tanh", "silu", "swiglu_clamped" };

const char *bsm_activation_name(int activation)
{
    return activation >= 0 && activation < BSM_ACT_COUNT ? activations[activation] : NULL;
}

int bsm_activation_from_name(const char *name)
{
    for (int i = 0; name != NULL && i < BSM_ACT_COUNT; i++)
        if (strcmp(name, activations[i]) == 0) return i;
    return -1;
}

static const char *const computes[BSM_COMPUTE_COUNT] = { "exact", "fast", "tf32" };

const char *bsm_compute_name(int compute)
{
    return compute >= 0 && compute < BSM_COMPUTE_COUNT ? computes[compute] : NULL;
}

int bsm_compute_from_name(const char *name)
{
    for (int i = 0; name != NULL && i < BSM_COMPUTE_COUNT; i++)
        if (strcmp(name, computes[i]) == 0) return i;
    return -1;
}

static const char *const orders[BSM_ORDER_COUNT] = { "k", "any", "portable", "split_k" };

const char *bsm_order_name(int order) { return order >= 0 && order < BSM_ORDER_COUNT ? orders[order] : NULL; }

int bsm_order_from_name(const char *name)
{
    for (int i = 0; name != NULL && i < BSM_ORDER_COUNT; i++)
        if (strcmp(name, orders[i]) == 0) return i;
    return -1;
}
