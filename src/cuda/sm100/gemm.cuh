/* D = finish(A B^T) on Blackwell: codes and scales as they are stored, or bf16 rows, by TMA; fp32 sums in tensor
 * memory by tcgen05.mma.
 *
 * A persistent grid of CTAs or pairs, each of which makes tiles of D in the order of gemm_order.h, every gridDim-th.
 * Roles:
 *
 *   warp 0, a thread     loads 128 bytes of each row of A and B, and their scales, into a ring of stages
 * (gemm_producer.cuh) warp 1, a thread     copies a stage's scales into tensor memory and multiplies; of a pair, the
 * even CTA's for both (gemm_multiplier.cuh) warp 2               allocates tensor memory warps 4 to 7         read an
 * accumulator while the next tile is multiplied into the other, finish and store (gemm_epilogue.cuh)
 *
 * Two rings go round.  A stage: empty, loaded by the producer; full, multiplied; empty again when the products have
 * read it.  An accumulator: drained, multiplied into; filled when the last products of a tile are done, read by the
 * epilogue; drained again. gemm_config.cuh says who arrives on which of these barriers, and who waits.  Nobody else
 * waits for anybody between the first and the last barrier of all threads, and all roles walk the same jobs in the same
 * order, so that no role tells another where it is.
 *
 * The steps of K go into one chain of fp32 sums, ascending, or, where K is long,
 * into a chain for each part of K (gemm_parts.cuh): their order depends on K and the kind of product alone, not on the
 * instance. Swapped instances, for few rows of D, multiply B A^T.  K is at least one step. */
#pragma once

#include "gemm_epilogue.cuh"
#include "gemm_multiplier.cuh"
#include "gemm_producer.cuh"

enum { PRODUCER_WARP = 0, MULTIPLIER_WARP = 1, ALLOCATOR_WARP = 2, FIRST_EPILOGUE_WARP = 4, EPILOGUE_WARPS = 4 };

template <class CONFIG> __device__ static inline void initialize_barriers(uint32_t shared)
{
    for (uint32_t stage = 0; stage < CONFIG::STAGES; stage++) {
        mbarrier_init(full_barrier<CONFIG>(shared, stage), 1);
        mbarrier_init(empty_barrier<CONFIG>(shared, stage), 1);
    }
    for (uint32_t i = 0; i < 2; i++) {
        mbarrier_init(filled_barrier<CONFIG>(shared, i), 1);
        mbarrier_init(drained_barrier<CONFIG>(shared, i), EPILOGUE_WARPS * CONFIG::CTAS);
    }
    fence_mbarrier_init();
}

template <class CONFIG> __device__ static inline void synchronize_ctas()
{
    if (CONFIG::CTAS == 1) {
        __syncthreads();
    } else {
        barrier_cluster_arrive();
        barrier_cluster_wait();
    }
}

template <class CONFIG>
__device__ static inline void begin(const bsmi_blackwell_parameters &p, uint32_t shared, uint32_t warp)
{
    if (threadIdx.x == 0) {
        prefetch_tensormap(&p.a);
        prefetch_tensormap(&p.b);
        initialize_barriers<CONFIG>(shared);
    }
    if (warp == ALLOCATOR_WARP) {
        tcgen05_alloc<CONFIG::CTAS, CONFIG::TENSOR_COLUMNS>(shared + CONFIG::AT_TENSOR);
        tcgen05_relinquish_alloc_permit<CONFIG::CTAS>();
    }
    synchronize_ctas<CONFIG>();
}

template <class CONFIG> __device__ static inline void gemm(const bsmi_blackwell_parameters &p)
{
    extern __shared__ __align__(1024) unsigned char memory[];
    const uint32_t shared = shared_address(memory), warp = warp_of_cta(),
                   rank = CONFIG::CTAS == 1 ? 0 : cluster_ctarank();
    begin<CONFIG>(p, shared, warp);
    const uint32_t tensor = load_shared(shared + CONFIG::AT_TENSOR);
    griddepcontrol_wait();
    if (warp == PRODUCER_WARP && elect_sync()) produce<CONFIG>(p, shared, rank);
    else if (warp == MULTIPLIER_WARP && rank == 0 && elect_sync()) multiply_tiles<CONFIG>(p, shared, tensor);
    else if (warp >= FIRST_EPILOGUE_WARP) finish_jobs<CONFIG>(p, memory, tensor, rank);
    /* The accumulators have been read; of a pair, no CTA ends while the other may still arrive on its barriers. */
    __syncwarp();
    synchronize_ctas<CONFIG>();
    if (warp == ALLOCATOR_WARP) tcgen05_dealloc<CONFIG::CTAS, CONFIG::TENSOR_COLUMNS>(tensor);
}

#define GEMM_KERNEL(kind, KIND, tile, columns, ctas, stages, d_box_bytes) \
    extern "C" __global__ void __launch_bounds__(BSMI_SM100_THREADS, 1) \
        bsmi_gemm_##kind##_##tile(const __grid_constant__ bsmi_blackwell_parameters p) \
    { \
        gemm<gemm_config<KIND, columns, ctas, stages, d_box_bytes>>(p); \
    }
