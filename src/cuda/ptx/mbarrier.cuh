/* mbarrier objects (PTX ISA 9.7.13.15): one function an instruction.  Addresses are those of shared memory. */
#pragma once

#include <stdint.h>

__device__ static inline uint32_t shared_address(const void *pointer) { return (uint32_t)__cvta_generic_to_shared(pointer); }

/* 9.7.13.15.9 */
__device__ static inline void mbarrier_init(uint32_t barrier, uint32_t arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

/* Makes the initialised barriers known to the cluster and to the copy engine, once a cluster barrier follows (9.7.13.4). */
__device__ static inline void fence_mbarrier_init() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

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

/* True once the phase of this parity is complete; may give up early (9.7.13.15.16). */
__device__ static inline bool mbarrier_try_wait_parity(uint32_t barrier, uint32_t parity)
{
    uint32_t complete;
    asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
                 : "=r"(complete) : "r"(barrier), "r"(parity) : "memory");
    return complete != 0;
}

/* The same, where threads of other CTAs of the cluster arrive. */
__device__ static inline bool mbarrier_try_wait_parity_cluster(uint32_t barrier, uint32_t parity)
{
    uint32_t complete;
    asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
                 : "=r"(complete) : "r"(barrier), "r"(parity) : "memory");
    return complete != 0;
}
