/* mbarrier objects (PTX ISA 9.7.13.15): one function an instruction.  Addresses are those of shared memory. */
#pragma once

#include <stdint.h>

__device__ static inline uint32_t shared_address(const void *pointer)
{
    return (uint32_t)__cvta_generic_to_shared(pointer);
}

/* 9.7.13.15.9 */
__device__ static inline void mbarrier_init(uint32_t barrier, uint32_t arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

/* Makes the initialised barriers known to the cluster and to TMA, once a cluster barrier follows
 * (9.7.13.4). */
__device__ static inline void fence_mbarrier_init()
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

/* Announces bytes of copies, then arrives (9.7.13.15.13). */
__device__ static inline void mbarrier_arrive_expect_tx(uint32_t barrier, uint32_t bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

/* 9.7.13.15.13 */
__device__ static inline void mbarrier_arrive(uint32_t barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

/* Arrives on a barrier of another CTA of the cluster: an address from mapa_shared_cluster (9.7.13.15.13). */
__device__ static inline void mbarrier_arrive_cluster(uint32_t barrier)
{
    asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(barrier) : "memory");
}

/* True once the phase of this parity is complete, whichever CTA of the cluster arrives; may give up early
 * (9.7.13.15.16). */
__device__ static inline bool mbarrier_try_wait_parity(uint32_t barrier, uint32_t parity)
{
    uint32_t complete;
    asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
                 : "=r"(complete) : "r"(barrier), "r"(parity) : "memory");
    return complete != 0;
}

/* Until then. */
__device__ static inline void mbarrier_wait_parity(uint32_t barrier, uint32_t parity)
{
    while (!mbarrier_try_wait_parity(barrier, parity)) {}
}

/* ---- forms with their semantics and scope written out, for clusters and for what other fences order ---- */

/* The object's memory may be used for something else (9.7.13.15.10). */
__device__ static inline void mbarrier_inval(uint32_t barrier)
{
    asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(barrier) : "memory");
}

/* Announces bytes of copies (9.7.13.15.11), or says that they have come (9.7.13.15.12), without arriving. */
__device__ static inline void mbarrier_expect_tx(uint32_t barrier, uint32_t bytes)
{
    asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
__device__ static inline void mbarrier_complete_tx(uint32_t barrier, uint32_t bytes)
{
    asm volatile("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

/* So many arrivals at once (9.7.13.15.13). */
__device__ static inline void mbarrier_arrive_count(uint32_t barrier, uint32_t arrivals)
{
    asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
/* Orders nothing by itself: for what tcgen05_fence_before_thread_sync orders (9.7.16.6.4.4). */
__device__ static inline void mbarrier_arrive_relaxed(uint32_t barrier)
{
    asm volatile("mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
/* At a barrier of another CTA: an address from mapa_shared_cluster. */
__device__ static inline void mbarrier_arrive_release_cluster(uint32_t barrier)
{
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(barrier) : "memory");
}
__device__ static inline void mbarrier_arrive_relaxed_cluster(uint32_t barrier)
{
    asm volatile("mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [%0];" ::"r"(barrier) : "memory");
}
__device__ static inline void mbarrier_arrive_expect_tx_cluster(uint32_t barrier, uint32_t bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.relaxed.cluster.shared::cluster.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
                 : "memory");
}
/* Arrives, and will not arrive in later phases (9.7.13.15.14). */
__device__ static inline void mbarrier_arrive_drop(uint32_t barrier)
{
    asm volatile("mbarrier.arrive_drop.release.cta.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

/* True if the phase of this parity is complete; does not wait (9.7.13.15.16). */
__device__ static inline bool mbarrier_test_wait_parity(uint32_t barrier, uint32_t parity)
{
    uint32_t complete;
    asm volatile("{\n.reg .pred p;\nmbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
                 : "=r"(complete) : "r"(barrier), "r"(parity) : "memory");
    return complete != 0;
}

/* As mbarrier_try_wait_parity, and acquires what other CTAs of the cluster released. */
__device__ static inline bool mbarrier_try_wait_parity_acquire_cluster(uint32_t barrier, uint32_t parity)
{
    uint32_t complete;
    asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;\n"
                 "selp.u32 %0, 1, 0, p;\n}"
                 : "=r"(complete) : "r"(barrier), "r"(parity) : "memory");
    return complete != 0;
}
/* Acquires nothing: for what tcgen05_fence_after_thread_sync orders. */
__device__ static inline bool mbarrier_try_wait_parity_relaxed(uint32_t barrier, uint32_t parity)
{
    uint32_t complete;
    asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.relaxed.cta.shared::cta.b64 p, [%1], %2;\n"
                 "selp.u32 %0, 1, 0, p;\n}"
                 : "=r"(complete) : "r"(barrier), "r"(parity) : "memory");
    return complete != 0;
}
__device__ static inline bool mbarrier_try_wait_parity_relaxed_cluster(uint32_t barrier, uint32_t parity)
{
    uint32_t complete;
    asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.relaxed.cluster.shared::cta.b64 p, [%1], %2;\n"
                 "selp.u32 %0, 1, 0, p;\n}"
                 : "=r"(complete) : "r"(barrier), "r"(parity) : "memory");
    return complete != 0;
}
