/* Copies of 16 bytes a thread from global to shared memory (PTX ISA 9.7.9.25.3), where no tensor map fits. */
#pragma once

#include <stdint.h>

/* The first `bytes` (0 to 16) from global memory, zeros behind them; both addresses are multiples of 16. */
__device__ static inline void cp_async_16(uint32_t to, const void *from, uint32_t bytes)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"((uint64_t)from), "r"(bytes) : "memory");
}
/* 4 or 8 bytes, the same. */
template <int SIZE> __device__ static inline void cp_async(uint32_t to, const void *from, uint32_t bytes)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"((uint64_t)from), "n"(SIZE), "r"(bytes)
                 : "memory");
}
__device__ static inline void cp_async_commit_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }
/* Until at most PENDING of this thread's groups are under way. */
template <int PENDING> __device__ static inline void cp_async_wait_group()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}
/* Arrives at the barrier when this thread's copies so far are complete: one of the arrivals that it counts
 * (9.7.13.15.15). */
__device__ static inline void cp_async_mbarrier_arrive_noinc(uint32_t barrier)
{
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(barrier) : "memory");
}
