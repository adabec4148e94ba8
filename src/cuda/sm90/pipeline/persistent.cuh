/* What all kernels on a persistent grid begin and end with.  ROLES: their barriers, and what each warpgroup does. */
#pragma once

#include "cuda/ptx/mbarrier.cuh"
#include "cuda/ptx/tensor_copy.cuh"
#include "tiles.cuh"

/* ROLES::WAITS_FIRST: all threads wait for the kernel in front before their work.  Without, those that load and those
 * that multiply wait when they know their first tile, and the instructions up to there have come meanwhile; the tables
 * of groups are waited for first by all kernels. */
template <class CONFIG, class ROLES, class PARAMETERS>
__device__ static inline void run_persistent(const PARAMETERS &parameters, const bsmi_gemm_parameters &p)
{
    extern __shared__ __align__(1024) unsigned char memory[];
    const uint32_t shared = shared_address(memory), group = threadIdx.x / 128;
    const gemm_cta cta = gemm_cta_of<CONFIG>(CONFIG::CLUSTER == 1 ? 0 : cluster_ctarank());
    if (threadIdx.x == 0) {
        prefetch_tensormap(&p.a);
        prefetch_tensormap(&p.b);
        ROLES::begin(shared);
    }
    synchronize_ctas(CONFIG::CLUSTER == 1);
    if (ROLES::WAITS_FIRST || p.epilogue.grouped) griddepcontrol_wait();
    ROLES::work(parameters, shared, cta, group);
    /* No CTA ends while another may still arrive on its barriers. */
    __syncwarp();
    synchronize_ctas(CONFIG::CLUSTER == 1);
}
