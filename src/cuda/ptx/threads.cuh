/* Threads, barriers, registers, clusters, dependent grids: one function an instruction. */
#pragma once

#include <stdint.h>

/* bar.sync (PTX ISA 9.7.13.1): barrier `number` of the CTA, among `threads` threads. */
__device__ static inline void barrier_sync(uint32_t number, uint32_t threads)
{
    asm volatile("bar.sync %0, %1;" ::"r"(number), "r"(threads) : "memory");
}

/* bar.red.or (9.7.13.1): the same; true if the predicate of any of them is. */
__device__ static inline bool barrier_or(uint32_t number, uint32_t threads, bool predicate)
{
    uint32_t any;
    asm volatile("{\n.reg .pred p, q;\nsetp.ne.u32 p, %3, 0;\nbar.red.or.pred q, %1, %2, p;\nselp.u32 %0, 1, 0, q;\n}"
                 : "=r"(any) : "r"(number), "r"(threads), "r"((uint32_t)predicate) : "memory");
    return any != 0;
}

/* setmaxnreg (9.7.20.5): all warps of a warpgroup. */
template <int REGISTERS> __device__ static inline void setmaxnreg_dec()
{
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}
template <int REGISTERS> __device__ static inline void setmaxnreg_inc()
{
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}

/* Rank of this CTA in its cluster. */
__device__ static inline uint32_t cluster_ctarank()
{
    uint32_t rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

/* barrier.cluster (9.7.13.3): all threads of the cluster; what was written before is seen after. */
__device__ static inline void barrier_cluster_arrive()
{
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}
/* The same, but orders nothing by itself. */
__device__ static inline void barrier_cluster_arrive_relaxed()
{
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}
__device__ static inline void barrier_cluster_wait()
{
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

/* elect.sync (9.7.13.14): true for one lane of a converged warp, the same one each time. */
__device__ static inline bool elect_sync()
{
    uint32_t elected;
    asm volatile("{\n.reg .pred p;\nelect.sync _|p, 0xffffffff;\nselp.u32 %0, 1, 0, p;\n}" : "=r"(elected)::"memory");
    return elected != 0;
}

/* Number of the warp in its CTA, in a form that ptxas knows to be the same for all lanes.  Instructions that take their
 * operands for the whole warp (TMA, tcgen05) need one lane of a warp, known by these two: where threadIdx.x decides,
 * ptxas puts a loop around each of them, over lanes that there might be. */
__device__ static inline uint32_t warp_of_cta() { return __shfl_sync(0xffffffff, threadIdx.x / 32, 0); }

/* fence (9.7.13.4): between threads of the cluster. */
__device__ static inline void fence_acq_rel_cluster() { asm volatile("fence.acq_rel.cluster;" ::: "memory"); }

/* fence.proxy.async (9.7.13.4): ordinary accesses to any memory, and those of TMA and of the tensor
 * cores. */
__device__ static inline void fence_proxy_async() { asm volatile("fence.proxy.async;" ::: "memory"); }

/* fence.proxy.tensormap (9.7.13.4): a map in global memory that ordinary stores wrote, before it is used. */
__device__ static inline void fence_proxy_tensormap_release_gpu()
{
    asm volatile("fence.proxy.tensormap::generic.release.gpu;" ::: "memory");
}
__device__ static inline void fence_proxy_tensormap_acquire_gpu(const void *map)
{
    asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"((uint64_t)map) : "memory");
}

/* mapa (9.7.9.23): the address in CTA `rank` of the cluster that corresponds to this one here. */
__device__ static inline uint32_t mapa_shared_cluster(uint32_t address, uint32_t rank)
{
    uint32_t there;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(rank));
    return there;
}

/* griddepcontrol (9.7.13.13). */
__device__ static inline void griddepcontrol_wait() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
__device__ static inline void griddepcontrol_launch_dependents()
{
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

/* stmatrix (9.7.15.4.16): four matrices of 8 x 8 halves; lane l gives the address of row l % 8 of matrix l / 8. */
__device__ static inline void stmatrix_x4(uint32_t address, uint32_t m0, uint32_t m1, uint32_t m2, uint32_t m3)
{
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::
                 "r"(address), "r"(m0), "r"(m1), "r"(m2), "r"(m3) : "memory");
}

/* st.shared.v2 (9.7.9.11). */
__device__ static inline void store_shared_v2(uint32_t address, float x, float y)
{
    asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(address), "f"(x), "f"(y) : "memory");
}

/* ld.shared, st.shared of 8 to 128 bits (9.7.9.8, 9.7.9.11). */
__device__ static inline uint32_t load_shared(uint32_t address)
{
    uint32_t value;
    asm volatile("ld.shared.b32 %0, [%1];" : "=r"(value) : "r"(address) : "memory");
    return value;
}
__device__ static inline uint32_t load_shared_u8(uint32_t address)
{
    uint32_t value;
    asm volatile("ld.shared.u8 %0, [%1];" : "=r"(value) : "r"(address) : "memory");
    return value;
}
__device__ static inline uint32_t load_shared_u16(uint32_t address)
{
    uint16_t value;
    asm volatile("ld.shared.u16 %0, [%1];" : "=h"(value) : "r"(address) : "memory");
    return value;
}
__device__ static inline uint2 load_shared_v2(uint32_t address)
{
    uint2 v;
    asm volatile("ld.shared.v2.b32 {%0, %1}, [%2];" : "=r"(v.x), "=r"(v.y) : "r"(address) : "memory");
    return v;
}
__device__ static inline uint4 load_shared_v4(uint32_t address)
{
    uint4 v;
    asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "r"(address)
                 : "memory");
    return v;
}
__device__ static inline void store_shared(uint32_t address, uint32_t value)
{
    asm volatile("st.shared.b32 [%0], %1;" ::"r"(address), "r"(value) : "memory");
}

__device__ static inline void store_shared_v4(uint32_t address, uint4 v)
{
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
                 : "memory");
}

/* cvt (9.7.9.21): two numbers to nearest, the first in the low half; NaN gives 0x7fff. */
__device__ static inline uint32_t cvt_bf16x2(float low, float high)
{
    uint32_t pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}
__device__ static inline uint32_t cvt_f16x2(float low, float high)
{
    uint32_t pair;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}
