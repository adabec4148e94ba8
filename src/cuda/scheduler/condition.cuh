/* Kernels that may turn out not to be needed, which the device alone knows. */
#ifndef BSMI_CONDITION_CUH
#define BSMI_CONDITION_CUH

#include "cuda/params/int8.h"

/* All threads of the CTA come here; the answer is the same in all CTAs. */
__device__ static inline bool condition_holds(const bsmi_condition &condition)
{
    if (condition.flags == nullptr) return true;
    uint32_t any = 0;
    for (int32_t i = (int32_t)threadIdx.x; i < condition.count; i += (int32_t)blockDim.x) any |= condition.flags[i];
    return (__syncthreads_or(any != 0) != 0) == (condition.wanted != 0);
}

#endif
