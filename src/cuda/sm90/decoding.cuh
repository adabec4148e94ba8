/* D = finish(A B^T) on Hopper where B is block-scaled and A has few rows: B's codes go from memory to the tensor cores without ever
 * being written as bf16.
 *
 * wgmma computes D^T = B A^T: its first operand, 64 rows, is B's, decoded by the threads that multiply, in registers; its second is
 * A's bf16 rows in shared memory.  So a code is decoded once for each tile of rows of A, and no tensor core works for rows that A lacks.
 * A persistent grid as in gemm.cuh, with two rings, and roles:
 *
 *   warpgroup 0       one thread loads rows of A, 64 columns a stage, and codes and scales of B, 128 bytes of a row a stage
 *   the others        decode, multiply, finish and store 64 columns of D each
 *
 * CTAs of a cluster load a part each of the rows of A.  The numbers that are multiplied, and the order of sums, are those of the
 * kernels that read decoded rows: so are the bits of D. */
#pragma once

#include "decoding_consumer.cuh"
#include "decoding_producer.cuh"
#include "gemm.cuh"

template <class CONFIG> __device__ static inline void initialize_decoding_barriers(uint32_t shared)
{
    using RING = typename CONFIG::codes_ring;
    for (uint32_t stage = 0; stage < CONFIG::STAGES; stage++) {
        mbarrier_init(full_barrier<CONFIG>(shared, stage), 1);
        mbarrier_init(empty_barrier<CONFIG>(shared, stage), CONFIG::CLUSTER * CONFIG::GROUPS);
    }
    for (uint32_t stage = 0; stage < RING::STAGES; stage++) {
        mbarrier_init(full_barrier<RING>(shared, stage), 1);
        mbarrier_init(empty_barrier<RING>(shared, stage), 4 * CONFIG::GROUPS);       /* each warp says that it has read */
    }
    fence_mbarrier_init();
}

template <class CONFIG> __device__ static inline void decoding_gemm(const bsmi_gemm_parameters &p)
{
    constexpr int PRODUCER = 40, CONSUMER = 232;
    constexpr bool MOVES = CONFIG::GROUPS == 2;
    extern __shared__ __align__(1024) unsigned char memory[];
    const uint32_t shared = shared_address(memory), group = threadIdx.x / 128;
    const gemm_cta cta = gemm_cta_of<CONFIG>(CONFIG::CLUSTER == 1 ? 0 : cluster_ctarank());
    if (threadIdx.x == 0) {
        prefetch_tensormap(&p.a);
        prefetch_tensormap(&p.b);
        initialize_decoding_barriers<CONFIG>(shared);
    }
    synchronize_ctas<CONFIG>();
    griddepcontrol_wait();
    if (group == 0) {
        if (MOVES) setmaxnreg_dec<PRODUCER>();
        if (threadIdx.x == 0) produce_decoding<CONFIG>(p, shared, cta);
    } else {
        if (MOVES) setmaxnreg_inc<CONSUMER>();
        consume_decoding<CONFIG>(p, shared, cta, group - 1);
    }
    /* No CTA ends while another may still arrive on its barriers. */
    __syncwarp();
    synchronize_ctas<CONFIG>();
}

#define DECODING_KERNEL(codes, tile, rows, columns, cluster_columns, stages, code_stages)                                 \
    extern "C" __global__ void __launch_bounds__(128 * (columns / 64 + 1), 1)                                            \
        bsmi_gemm_##codes##_##tile(const __grid_constant__ bsmi_gemm_parameters p)                                       \
    {                                                                                                                    \
        decoding_gemm<decoding_config<codes_##codes, rows, columns, cluster_columns, stages, code_stages>>(p);           \
    }
