/* What kernels in C for gfx950 share: address spaces, vectors, and the builtins of clang under the names of the
 * CDNA4 ISA. */
#ifndef BSMI_GFX950_DEVICE_H
#define BSMI_GFX950_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#define GLOBAL __attribute__((address_space(1)))
#define LDS __attribute__((address_space(3)))
#define CONSTANT __attribute__((address_space(4)))
#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("unroll")

/* The kernel's threads are a constant of its instance; one wave a SIMD leaves a wave all 512 registers. */
#define KERNEL(threads, waves) \
    __attribute__((device_kernel, visibility("protected"), amdgpu_flat_work_group_size(threads, threads), \
                   amdgpu_waves_per_eu(waves, waves)))

typedef int32_t words2 __attribute__((ext_vector_type(2)));
typedef int32_t words4 __attribute__((ext_vector_type(4)));
typedef int32_t words6 __attribute__((ext_vector_type(6)));
typedef int32_t words8 __attribute__((ext_vector_type(8)));
typedef float floats4 __attribute__((ext_vector_type(4)));
typedef float floats16 __attribute__((ext_vector_type(16)));
typedef __bf16 bf16s8 __attribute__((ext_vector_type(8)));

/* A thread's number of a workgroup of `threads`: the compiler, which knows of no more than 1024, drops what is so for
 * all of them. */
INLINE int32_t thread_of(int32_t threads)
{
    const int32_t thread = __builtin_amdgcn_workitem_id_x();
    __builtin_assume(thread < threads);
    return thread;
}

INLINE int32_t uniform(int32_t x) { return __builtin_amdgcn_readfirstlane(x); }

/* s_waitcnt until at most so many of each counter are outstanding (CDNA4 ISA, 4.4). */
#define WAIT(vm, lgkm) \
    __builtin_amdgcn_s_waitcnt(((vm) & 15) | 7 << 4 | (lgkm) << 8 | ((vm) >> 4) << 14)
enum { ANY_VM = 63, ANY_LGKM = 15 };

/* No instruction moves across. */
INLINE void schedule_fence(void) { __builtin_amdgcn_sched_barrier(0); }

/* s_barrier waits for no memory: WAIT comes first. */
INLINE void barrier(void)
{
    schedule_fence();
    __builtin_amdgcn_s_barrier();
    schedule_fence();
}

/* A raw buffer: loads at or behind `bytes` give 0. */
INLINE __amdgpu_buffer_rsrc_t buffer_of(const void *base, int64_t bytes)
{
    return __builtin_amdgcn_make_buffer_rsrc((void *)base, 0, bytes, 0x00027000);
}

/* 16 bytes of each lane to LDS: lane i's come to `to` + 16 i, whichever place it loads them from.  `to` is the same for
 * all lanes. */
INLINE void load_to_lds(__amdgpu_buffer_rsrc_t from, int32_t lane_offset, int32_t offset, LDS unsigned char *to)
{
    __builtin_amdgcn_raw_ptr_buffer_load_lds(from, (LDS void *)to, 16, lane_offset, offset, 0, 0);
}

#endif
