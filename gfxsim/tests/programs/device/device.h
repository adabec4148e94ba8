/* C for gfx950 by clang alone.  All kernels have one signature: two inputs, an output, a number; test_compiled.c has
 * their counterparts on the host.  They run in 2 workgroups of 256. */
#ifndef GFXSIM_TESTS_DEVICE_H
#define GFXSIM_TESTS_DEVICE_H

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
#define GLOBAL __attribute__((address_space(1)))
#define LDS __attribute__((address_space(3)))
#define SHARED(type, name, count) static LDS type name[count] __attribute__((loader_uninitialized))
#define KERNEL(name) \
    __attribute__((amdgpu_kernel)) void name(const GLOBAL void *pa, const GLOBAL void *pb, GLOBAL void *po, int n)
#define THREAD ((int)__builtin_amdgcn_workitem_id_x())
#define GROUP ((int)__builtin_amdgcn_workgroup_id_x())
#define INDEX (256 * GROUP + THREAD)
/* a of this type at the thread's place, b likewise, where results go */
#define ELEMENT(type, width) \
    const type x = ((const GLOBAL type *)pa)[INDEX], y = ((const GLOBAL type *)pb)[INDEX]; \
    GLOBAL type *const o = (GLOBAL type *)po + (width) * INDEX; \
    (void)y, (void)n

static inline void barrier(void)
{
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

#endif
