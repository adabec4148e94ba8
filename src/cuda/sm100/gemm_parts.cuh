/* What both epilogues do with an accumulator once its numbers are in registers: hand it back, and add up the parts of
 * K.
 *
 * Where K is long it is summed in parts, each a chain of sums that begins with zero, and the parts are added in
 * ascending order.  Where the parts go depends on K alone (codes.c), so that D has the same bits for every M; who adds
 * them does not matter. */
#pragma once

#include "cuda/ptx/tensor_registers.cuh"
#include "gemm_config.cuh"

/* One arrival a warp, where the products are issued. */
template <class CONFIG> __device__ static inline void release_accumulator(uint32_t barrier)
{
    tcgen05_fence_before_thread_sync();
    if (threadIdx.x % 32 != 0) return;
    if (CONFIG::CTAS == 1) mbarrier_arrive(barrier);
    else mbarrier_arrive_cluster(mapa_shared_cluster(barrier, cluster_ctarank() & ~1u));
}

/* Adds the parts before this one to `sums`, which are number `piece` of those that this thread has of the tile, and
 * keeps them if there are more to come; true if these are the sums to finish: of all parts, or of a part that
 * bsmi_finish adds.  What a thread keeps it alone reads again, so nothing need be waited for; it lies so that the 128
 * threads write and read lines. */
template <class CONFIG>
__device__ static inline bool add_parts(const bsmi_blackwell_parameters &p, const gemm_job &job, int piece,
                                        float (&sums)[CONFIG::SUMS])
{
    if (p.parts <= 1 || (CONFIG::SWAPPED && p.split_k)) return true;
    float4 *kept = (float4 *)p.kept + ((int64_t)blockIdx.x * CONFIG::PIECES + piece) * (CONFIG::SUMS / 4) * 128
                   + threadIdx.x % 128;
#pragma unroll
    for (int i = 0; i < CONFIG::SUMS; i += 4, kept += 128) {
        if (job.part > 0) {
            const float4 before = *kept;
            sums[i] += before.x, sums[i + 1] += before.y, sums[i + 2] += before.z, sums[i + 3] += before.w;
        }
        if (job.part + 1 < p.parts) *kept = make_float4(sums[i], sums[i + 1], sums[i + 2], sums[i + 3]);
    }
    return job.part + 1 == p.parts;
}
