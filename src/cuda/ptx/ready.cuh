/* What tells threads of other CTAs that something is there. */
#pragma once

#include <stdint.h>

/* red.release (PTX ISA 9.7.13.7): what the thread, and those that it is ordered behind, wrote is seen by whoever
 * acquires. */
__device__ static inline void red_release_gpu_add(uint32_t *to, uint32_t count)
{
    asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(to), "r"(count) : "memory");
}

/* ld.acquire (9.7.9.8). */
__device__ static inline uint32_t load_acquire_gpu(const uint32_t *from)
{
    uint32_t value;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
    return value;
}

/* nanosleep (9.7.19.2). */
__device__ static inline void nanosleep(uint32_t nanoseconds) { asm volatile("nanosleep.u32 %0;" ::"r"(nanoseconds)); }
