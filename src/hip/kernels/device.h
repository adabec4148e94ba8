/* What all kernels share: how they are declared, their place in the grid, barriers, and numbers across a wave. */
#ifndef BSMI_HIP_DEVICE_H
#define BSMI_HIP_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* void NAME(struct parameters p, uint32_t groups): launched with `threads` threads a workgroup; groups: how many there
 * are, which a kernel would have to ask a packet in memory for. */
#define KERNEL(threads) \
    __attribute__((device_kernel, visibility("protected"), amdgpu_flat_work_group_size(threads, threads))) void

/* LDS of a workgroup; nothing is written into it at first. */
#define LDS static __attribute__((address_space(3), loader_uninitialized))

enum { WAVE = 64 };

static inline uint32_t thread_number(void) { return __builtin_amdgcn_workitem_id_x(); }
static inline uint32_t group_number(void) { return __builtin_amdgcn_workgroup_id_x(); }

/* All waves of the workgroup have come, and what they wrote into LDS is there: the instruction alone waits for
 * nothing. */
static inline void barrier(void)
{
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

static inline int64_t at_least_zero(int64_t value) { return value < 0 ? 0 : value; }
static inline int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static inline uint32_t larger_word(uint32_t a, uint32_t b) { return a > b ? a : b; }

/* Quotients of sizes that mostly have 32 bits: those of 64 are a hundred instructions. */
static inline int64_t quotient(int64_t a, int64_t b)
{
    return ((uint64_t)a | (uint64_t)b) >> 32 == 0 ? (int64_t)((uint32_t)a / (uint32_t)b) : a / b;
}
static inline int64_t divided_up(int64_t a, int64_t b) { return quotient(a + b - 1, b); }

/* The largest word of the wave's active lanes, raised at `to` by one of them. */
static inline void raise_to_largest(uint32_t *to, uint32_t word)
{
    const uint32_t largest = __builtin_amdgcn_wave_reduce_max_u32(word, 0);
    if (largest != 0 && __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0)) ==
                            (uint32_t)__builtin_ctzll(__builtin_amdgcn_read_exec()))
        __scoped_atomic_fetch_max(to, largest, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
}

#endif
