/* Bounds on what counts as the largest magnitude of a block or a tensor.  Also compiled for GPUs. */
#ifndef BSMI_CLAMP_H
#define BSMI_CLAMP_H

#include "format/rounding.h"

struct bsmi_clamp { float low, high; };   /* 0: none */

BSMI_SHARED float bsmi_clamped(struct bsmi_clamp clamp, float amax)
{
    if (clamp.high > 0 && amax > clamp.high) return clamp.high;
    return amax < clamp.low ? clamp.low : amax;
}

/* The same of a magnitude that fp32 may not hold. */
BSMI_SHARED double bsmi_clamped_wide(struct bsmi_clamp clamp, double amax)
{
    if (clamp.high > 0 && amax > (double)clamp.high) return (double)clamp.high;
    return amax < (double)clamp.low ? (double)clamp.low : amax;
}

#endif
