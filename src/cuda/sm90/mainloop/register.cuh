/* D = finish(A B^T) on Hopper where B has codes of four bits and A few rows: B's codes go from memory to the tensor cores by way of
 * registers, and their scales are read as the caller has them.
 *
 * A grid of small CTAs, several on a multiprocessor where K allows it, with a ring of stages, and roles:
 *
 *   warps 0 to 3      decode 64 rows of B and multiply them: wgmma's first operand, in registers; finish and store 64 columns of D
 *   warp 4            one thread loads codes of B, 128 bytes of a row a stage, and rows of A
 *
 * wgmma computes D^T = B A^T, so that its columns are as few as the rows of A.  The numbers that are multiplied, and the order of sums,
 * are those of the kernels that read decoded rows: so are the bits of D. */
#pragma once

#include "register_consumer.cuh"
#include "cuda/sm90/pipeline/register_prefetch.cuh"

/* full: the producer's arrival and its bytes.  empty: of every warp that multiplies in the CTAs that hold a part of the stage. */
template <class CONFIG> __device__ static inline void initialize_register_barriers(uint32_t shared)
{
    for (uint32_t stage = 0; stage < CONFIG::STAGES; stage++) {
        mbarrier_init(full_barrier<CONFIG>(shared, stage), 1);
        mbarrier_init(empty_barrier<CONFIG>(shared, stage), 4 * CONFIG::CLUSTER);
    }
    fence_mbarrier_init();
}

template <class CONFIG> __device__ static inline void register_gemm(const bsmi_mixed_input_parameters &p)
{
    extern __shared__ __align__(1024) unsigned char memory[];
    const uint32_t shared = __shfl_sync(0xffffffff, shared_address(memory), 0);
    const gemm_cta cta = { 0, CONFIG::CLUSTER == 1 ? 0 : cluster_ctarank() };
    if (threadIdx.x == 0) initialize_register_barriers<CONFIG>(shared);
    if (threadIdx.x == 128) {
        prefetch_tensormap(&p.a);
        prefetch_tensormap(&p.b);
    }
    synchronize_ctas(CONFIG::CLUSTER == 1);
    if (threadIdx.x == 128 && p.first_of_call && blockIdx.x / CONFIG::CLUSTER < p.tiles)
        prefetch_tile<CONFIG>(p, gemm_tile_of<CONFIG>(p, blockIdx.x / CONFIG::CLUSTER, cta),
                              min((paired_steps(p) + CONFIG::STEPS - 1) / CONFIG::STEPS, CONFIG::STAGES));
    __syncwarp();
    griddepcontrol_wait();
    griddepcontrol_launch_dependents();
    if (threadIdx.x < 128) consume_registers<CONFIG>(p, memory, shared, cta);
    else if (elect_sync()) produce_registers<CONFIG>(p, shared, cta);
    /* No CTA ends while another may still arrive on its barriers. */
    __syncwarp();
    if (CONFIG::CLUSTER > 1) synchronize_ctas(false);
}

#define REGISTER_KERNEL(codes, tile, rows, cluster_columns, ctas, stages, columns)                                       \
    extern "C" __global__ void __launch_bounds__(128 + 32, ctas)                                                         \
        bsmi_gemm_##codes##_##tile(const __grid_constant__ bsmi_mixed_input_parameters p)                                       \
    {                                                                                                                    \
        register_gemm<register_config<codes_##codes, rows, cluster_columns, ctas, stages, columns>>(p);                  \
    }
