// Kernels whose clusters take over clusters that have not started (clusterlaunchcontrol, PTX ISA 9.7.13.17 and 18).
// Each tile of 64 numbers is doubled, and counted; a CTA asks for the next tile before it works on the present one.
#include "hopper_ptx.cuh"

enum { TILE = 64 };

__device__ __forceinline__ void try_cancel(u32 response, u32 barrier)
{
    asm volatile(
        "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%0], [%1];" ::"r"(
            response),
        "r"(barrier)
        : "memory");
}
__device__ __forceinline__ void try_cancel_for_all(u32 response, u32 barrier)
{
    asm volatile(
        "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.multicast::cluster::all.b128 "
        "[%0], [%1];" ::
            "r"(response),
        "r"(barrier)
        : "memory");
}
// Whether a cluster was taken over, and the first CTA of it.
__device__ __forceinline__ bool query_cancel(u32 response, u32 *x)
{
    u32 taken, first;
    asm volatile("{\n.reg .pred p;\n.reg .b128 r;\nld.shared.b128 r, [%2];\n"
                 "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p, r;\nselp.u32 %0, 1, 0, p;\n"
                 "mov.u32 %1, 0;\n"
                 "@p clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %1, r;\n}"
                 : "=r"(taken), "=r"(first)
                 : "r"(response)
                 : "memory");
    if (taken != 0) *x = first;
    return taken != 0;
}

__device__ __forceinline__ void work(const float *in, float *out, u32 *counts, u32 tile)
{
    const u32 at = tile * TILE + threadIdx.x;
    out[at] = 2 * in[at];
    if (threadIdx.x == 0) atomicAdd(&counts[tile], 1);
}

// One CTA a cluster.
extern "C" __global__ void __launch_bounds__(TILE) take_over(const float *in, float *out, u32 *counts)
{
    __shared__ alignas(16) u8 response[16];
    __shared__ u64 barrier;
    const u32 at = shared_address(response), full = shared_address(&barrier);
    u32 tile = blockIdx.x;
    if (threadIdx.x == 0) mbarrier_init(full, 1), fence_mbarrier_init();
    for (u32 parity = 0;; parity ^= 1) {
        __syncthreads(); // the last response has been read
        if (threadIdx.x == 0) try_cancel(at, full), mbarrier_expect(full, 16);
        work(in, out, counts, tile);
        mbarrier_wait<false>(full, parity);
        if (!query_cancel(at, &tile)) break;
        fence_proxy_async();
    }
}

// Clusters of two CTAs: the first asks for both.
extern "C" __global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(TILE)
    take_over_in_pairs(const float *in, float *out, u32 *counts)
{
    __shared__ alignas(16) u8 response[16];
    __shared__ u64 barrier;
    const u32 at = shared_address(response), full = shared_address(&barrier), rank = cluster_rank();
    u32 first = blockIdx.x - rank;
    if (threadIdx.x == 0) mbarrier_init(full, 1), fence_mbarrier_init();
    for (u32 parity = 0;; parity ^= 1) {
        cluster_sync(); // the last response has been read
        if (threadIdx.x == 0) {
            mbarrier_expect(full, 16);
            if (rank == 0) try_cancel_for_all(at, full);
        }
        work(in, out, counts, first + rank);
        mbarrier_wait<true>(full, parity);
        if (!query_cancel(at, &first)) break;
        fence_proxy_async();
    }
    cluster_sync(); // the response is in both CTAs
}
