/* Named barriers at which some threads do not wait: bar.sync and bar.red stand in threads.cuh. */
#pragma once

#include "threads.cuh"

/* bar.arrive (PTX ISA 9.7.13.1): counts at barrier `number` of the CTA, which `threads` threads come to, and does not
 * wait. */
__device__ static inline void barrier_arrive(uint32_t number, uint32_t threads)
{
    asm volatile("bar.arrive %0, %1;" ::"r"(number), "r"(threads) : "memory");
}
