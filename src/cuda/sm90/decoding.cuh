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

template <class CONFIG> struct decoding_roles {
    __device__ static inline void begin(uint32_t shared) { initialize_decoding_barriers<CONFIG>(shared); }
    __device__ static inline void load(const bsmi_gemm_parameters &p, uint32_t shared, gemm_cta cta)
    {
        produce_decoding<CONFIG>(p, shared, cta);
    }
    __device__ static inline void multiply(const bsmi_gemm_parameters &p, uint32_t shared, gemm_cta cta, uint32_t group)
    {
        consume_decoding<CONFIG>(p, shared, cta, group);
    }
};

#define DECODING_KERNEL(codes, tile, rows, columns, cluster_columns, stages, code_stages)                                 \
    extern "C" __global__ void __launch_bounds__(128 * (columns / 64 + 1), 1)                                            \
        bsmi_gemm_##codes##_##tile(const __grid_constant__ bsmi_gemm_parameters p)                                       \
    {                                                                                                                    \
        using CONFIG = decoding_config<codes_##codes, rows, columns, cluster_columns, stages, code_stages>;              \
        gemm<CONFIG, decoding_roles<CONFIG>>(p);                                                                         \
    }
