/* Cluster launch control (PTX ISA 9.7.13.17, sm_100): a CTA that is done takes over one that has not begun.  One
 * function an instruction.  Responses are 16 bytes of shared memory. */
#pragma once

#include <stdint.h>

/* Asks for a cluster that has not begun; the response comes through the async proxy, its 16 bytes to the barrier.  One
 * thread. */
__device__ static inline void clusterlaunchcontrol_try_cancel(uint32_t response, uint32_t barrier)
{
    asm volatile(
        "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%0], [%1];" ::"r"(
            response),
        "r"(barrier)
        : "memory");
}
/* The same; every CTA of the cluster gets the response, and its barrier the bytes. */
__device__ static inline void clusterlaunchcontrol_try_cancel_multicast(uint32_t response, uint32_t barrier)
{
    asm volatile(
        "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.multicast::cluster::all.b128"
        " [%0], [%1];" ::"r"(response),
        "r"(barrier)
        : "memory");
}

/* Whether the response (read from shared memory) names a cluster, and its first CTA (9.7.13.18). */
__device__ static inline bool clusterlaunchcontrol_is_canceled(uint64_t low, uint64_t high)
{
    uint32_t canceled;
    asm volatile("{\n.reg .b128 r;\n.reg .pred p;\nmov.b128 r, {%1, %2};\n"
                 "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p, r;\nselp.u32 %0, 1, 0, p;\n}"
                 : "=r"(canceled)
                 : "l"(low), "l"(high));
    return canceled != 0;
}
__device__ static inline uint3 clusterlaunchcontrol_first_ctaid(uint64_t low, uint64_t high)
{
    uint3 first;
    asm volatile("{\n.reg .b128 r;\n.reg .b32 fourth;\nmov.b128 r, {%3, %4};\n"
                 "clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%0, %1, %2, fourth}, r;\n}"
                 : "=r"(first.x), "=r"(first.y), "=r"(first.z)
                 : "l"(low), "l"(high));
    return first;
}
