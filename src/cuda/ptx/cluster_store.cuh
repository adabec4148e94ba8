/* What CTAs of a cluster send each other: stores into another's shared memory that complete on an mbarrier there. */
#pragma once

#include <stdint.h>

/* st.async (PTX ISA 9.7.9.12): four numbers; both addresses from mapa_shared_cluster, of the same CTA.  As floats: sums
 * stay in the registers that wgmma has left them in, or ptxas makes every product wait. */
__device__ static inline void st_async_v4(uint32_t address, const float (&v)[4], uint32_t barrier)
{
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, %2, %3, %4}, [%5];" ::
                 "r"(address), "f"(v[0]), "f"(v[1]), "f"(v[2]), "f"(v[3]), "r"(barrier) : "memory");
}

/* st.shared::cluster (9.7.9.11): an address from mapa_shared_cluster. */
__device__ static inline void store_shared_cluster(uint32_t address, uint32_t value)
{
    asm volatile("st.shared::cluster.b32 [%0], %1;" ::"r"(address), "r"(value) : "memory");
}

/* CTAs of the cluster. */
__device__ static inline uint32_t cluster_nctarank()
{
    uint32_t count;
    asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(count));
    return count;
}
