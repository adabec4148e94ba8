/* D = finish(A B^T) on Hopper where B is block-scaled and A has few rows: B's codes go from memory to the tensor cores without being
 * written as bf16 to memory.
 *
 * A persistent grid as in gemm.cuh, with two rings, and roles:
 *
 *   warpgroup 0       one thread loads rows of A, 64 columns a stage, another one codes and scales of B, 128 bytes of a row a stage
 *   warpgroup 1       multiplies, finishes and stores 64 columns of D
 *   DECODERS          make bf16 rows of codes, in the stages that hold rows of A; they take steps of K in turn, so that a warp that waits
 *                     for memory or for its own instructions leaves the SM to others
 *
 * wgmma computes D^T = B A^T: its first operand, 64 rows, is B's, so that its columns are as few as the rows of A.  A code is decoded
 * once for each tile of rows of A.  CTAs of a cluster load a part each of the rows of A.  The numbers that are multiplied, and the order
 * of sums, are those of the kernels that read decoded rows: so are the bits of D. */
#pragma once

#include "decoding_consumer.cuh"
#include "cuda/sm90/operand/decoding_decoder.cuh"
#include "cuda/sm90/pipeline/decoding_producer.cuh"
#include "cuda/sm90/pipeline/persistent.cuh"

/* full: the producer's arrival and its bytes, and one of each warp that decodes a part of the step.  The decoders' ring: a warp arrives
 * for each of its steps. */
template <class CONFIG> __device__ static inline void initialize_decoding_barriers(uint32_t shared)
{
    using RING = typename CONFIG::codes_ring;
    constexpr int WARPS = 4;
    for (uint32_t stage = 0; stage < CONFIG::STAGES; stage++) {
        mbarrier_init(full_barrier<CONFIG>(shared, stage), 1 + WARPS);
        mbarrier_init(empty_barrier<CONFIG>(shared, stage), CONFIG::CLUSTER);
    }
    for (uint32_t stage = 0; stage < RING::STAGES; stage++) {
        mbarrier_init(full_barrier<RING>(shared, stage), 1);
        mbarrier_init(empty_barrier<RING>(shared, stage), WARPS * CONFIG::CODE_STEPS);
    }
    fence_mbarrier_init();
}

template <class CONFIG> struct decoding_roles {
    static constexpr bool WAITS_FIRST = true;
    __device__ static inline void begin(uint32_t shared) { initialize_decoding_barriers<CONFIG>(shared); }
    __device__ static inline void work(const bsmi_fused_parameters &p, uint32_t address, gemm_cta cta, uint32_t group)
    {
        const uint32_t shared = __shfl_sync(0xffffffff, address, 0);
        if (group == 0) {
            setmaxnreg_dec<CONFIG::PRODUCER>();
            const uint32_t warp = warp_of_cta();
            if (warp == 0 && elect_sync()) produce_rows<CONFIG>(p, shared, cta);
            else if (warp == 1 && elect_sync()) produce_codes<CONFIG>(p, shared, cta);
        } else if (group == 1) {
            setmaxnreg_inc<CONFIG::CONSUMER>();
            consume_decoded<CONFIG>(p, shared, cta);
        } else {
            setmaxnreg_dec<CONFIG::DECODER>();
            with_element<typename CONFIG::CODES>(p.code_element, [&](auto tag) {
                decode<CONFIG, decltype(tag)::ELEMENT>(p, shared, cta, group - 2);
            });
        }
    }
};

#define DECODING_KERNEL(codes, tile, rows, cluster_columns, decoders, stages, code_stages)                               \
    extern "C" __global__ void __launch_bounds__(128 * (2 + decoders), 1)                                                \
        bsmi_gemm_##codes##_##tile(const __grid_constant__ bsmi_fused_parameters p)                                       \
    {                                                                                                                    \
        using CONFIG = decoding_config<codes_##codes, rows, cluster_columns, decoders, stages, code_stages>;             \
        run_persistent<CONFIG, decoding_roles<CONFIG>>(p, p);\
    }
