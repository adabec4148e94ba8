/* D = finish(A B^T) on Hopper where B is block-scaled and A has few rows: B's codes go from memory to the tensor cores
 * without being written as bf16 to memory.  Both operands of wgmma lie in shared memory.
 *
 * A persistent grid of CTAs or clusters, with two rings.  Roles:
 *
 *   warpgroup 0       one thread loads rows of A, 64 columns a stage, another one codes and scales of B, 128 bytes of a
 *                     row a stage (pipeline/fused_producer.cuh)
 *   warpgroup 1       multiplies, finishes and stores 64 columns of D (fused_consumer.cuh)
 *   DECODERS          warpgroups that dequantize codes to rows of bf16, in the stages that hold rows of A
 *                     (fused_dequantizer.cuh); they take steps of K in turn, so that a warp that waits for memory or
 * for its own instructions leaves the SM to others
 *
 *      codes:   TMA --> codes full --> dequantizers --> codes empty --> TMA
 *      stages:  TMA (rows of A) and dequantizers (rows of B) --> full --> wgmma --> empty --> both
 *
 * wgmma computes D^T = B A^T: its first operand, 64 rows, is B's, so that its columns are as few as the rows of A.  A
 * code is dequantized once for each tile of rows of A.  CTAs of a cluster load a part each of the rows of A.  The
 * numbers that are multiplied, and the order of sums, are those of the shared-memory main loop: so are the bits of
 * D. */
#pragma once

#include "cuda/sm90/pipeline/fused_producer.cuh"
#include "cuda/sm90/pipeline/persistent.cuh"
#include "fused_consumer.cuh"
#include "fused_dequantizer.cuh"

/* full: the producer's arrival and its bytes, and one of each warp that dequantizes a part of the step.  The ring of
 * codes: a warp arrives for each of its steps. */
template <class CONFIG> __device__ static inline void initialize_fused_barriers(uint32_t shared)
{
    constexpr int WARPS = 4;
    initialize_ring<CONFIG>(shared, 1 + WARPS, CONFIG::CLUSTER);
    initialize_ring<typename CONFIG::codes_ring>(shared, 1, WARPS * CONFIG::CODE_STEPS);
    fence_mbarrier_init();
}

template <class CONFIG> struct fused_roles {
    static constexpr bool WAITS_FIRST = true;
    __device__ static inline void begin(uint32_t shared) { initialize_fused_barriers<CONFIG>(shared); }
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
            consume_fused<CONFIG>(p, shared, cta);
        } else {
            setmaxnreg_dec<CONFIG::DECODER>();
            with_element<typename CONFIG::CODES>(p.code_element, [&](auto tag) {
                dequantize<CONFIG, decltype(tag)::ELEMENT>(p, shared, cta, group - 2);
            });
        }
    }
};

#define FUSED_KERNEL(codes, tile, rows, cluster_columns, decoders, stages, code_stages) \
    extern "C" __global__ void __launch_bounds__(128 * (2 + decoders), 1) \
        bsmi_gemm_##codes##_##tile(const __grid_constant__ bsmi_fused_parameters p) \
    { \
        using CONFIG = fused_config<codes_##codes, rows, cluster_columns, decoders, stages, code_stages>; \
        run_persistent<CONFIG, fused_roles<CONFIG>>(p, p); \
    }
