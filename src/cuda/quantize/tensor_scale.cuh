/* The tensor scale of a matrix that is quantized: given, or computed from what bsmi_amax leaves. */
#ifndef BSMI_TENSOR_SCALE_CUH
#define BSMI_TENSOR_SCALE_CUH

#include "cuda/params/kernels.h"
#include "cuda/ptx/arithmetic.cuh"
#include "quantize/block/clamp.h"

/* The tensor scale that amax gives.  tensor_scale.c has the reason why this rounds once. */
__device__ static float computed_tensor_scale(const bsmi_quantize_parameters &p, float amax)
{
    const double least = 0x1p-126, most = 0x1.fffffep127, all = (double)amax;
    const double exact = all == 0 ? 1 : p.destination.tensor_scale_divides ? p.largest / all : all / p.largest;
    return __double2float_rn(fmax(least, fmin(most, exact)));
}

/* By every thread.  The word that bsmi_amax leaves tells by its sign whether a CTA has put the tensor scale into its
 * place. */
__device__ static float find_tensor_scale(const bsmi_quantize_parameters &p, bsmi_clamp clamp)
{
    if (p.computed == nullptr) return p.destination.tensor_scale == nullptr ? 1 : *p.destination.tensor_scale;
    const uint32_t word = ptx_load_relaxed(p.computed);
    if ((word & 0x80000000) == 0) return __uint_as_float(word);
    const float t = computed_tensor_scale(p, bsmi_clamped(clamp, __uint_as_float(word & 0x7fffffff)));
    if (blockIdx.x == 0 && threadIdx.x == 0) ptx_store_relaxed(p.computed, __float_as_uint(t));
    return t;
}

#endif
