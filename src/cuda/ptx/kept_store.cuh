/* Stores of what is read again soon. */
#pragma once

#include <stdint.h>

/* 16 bytes that L2 evicts last (9.7.9.11 st, 9.7.9.18 createpolicy). */
__device__ static inline void ptx_store_16_evict_last(void *to, uint4 v)
{
    uint64_t policy;
    asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
    asm volatile("st.global.L2::cache_hint.v4.u32 [%0], {%1, %2, %3, %4}, %5;"
                 :: "l"(to), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w), "l"(policy) : "memory");
}
