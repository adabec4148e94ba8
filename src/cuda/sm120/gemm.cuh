/* D = finish(A B^T) on GeForce RTX 50, RTX PRO and GB10: codes and scales as they are stored, or bf16 rows, by TMA, or
 * by cp.async where rows forbid it; fp32 sums in the registers of warps, by mma.sync.
 *
 * A persistent grid of CTAs, each of which makes tiles of D in the order of gemm_order.h, every gridDim-th.  Roles:
 *
 *   a producer, of    loads codes of A and B and their scales into a ring of stages (gemm_producer.cuh)
 *   each set a thread (a warp, where it copies rows)
 *   the others        multiply (gemm_consumer.cuh), finish and store (gemm_epilogue.cuh) their rows and columns
 *
 * Cooperative: one set of warps, which share every tile.  Ping-pong: two sets, each with tiles and a ring of its own:
 * one's epilogue hides behind the other's products, and while both multiply, each fills the other's gaps.
 *
 * Nothing but the ring ties the warps of a set together.  All of K goes into one chain of fp32 sums, ascending: their
 * order depends on K and the kind of product alone, not on the instance (but for split_k, which is asked for by name).
 * K is at least one step. */
#pragma once

#include "gemm_consumer.cuh"
#include "gemm_epilogue.cuh"
#include "gemm_producer.cuh"

/* All threads meet behind what fill_finish adds. */
template <class CONFIG> __device__ static inline void begin(const bsmi_blackwell_parameters &p, uint32_t shared)
{
    if (threadIdx.x == 0) {
        if (p.a_copied.size == 0) prefetch_tensormap(&p.a);
        if (p.b_copied.size == 0) prefetch_tensormap(&p.b);
        for (uint32_t stage = 0; stage < CONFIG::ALL_STAGES; stage++) {
            mbarrier_init(full_barrier<CONFIG>(shared, stage), copies_rows<CONFIG>(p) ? 1 + 32 : 1);
            mbarrier_init(empty_barrier<CONFIG>(shared, stage), CONFIG::TILE_WARPS);
        }
        fence_mbarrier_init();
    }
}

/* What is the same for all tiles; in shared memory, since the sums want the registers. */
template <class CONFIG>
__device__ static inline void fill_finish(const bsmi_blackwell_parameters &p, unsigned char *memory)
{
    static_assert(sizeof(gemm_finish) <= BSMI_SM120_FINISH_BYTES, "as the host has it");
    if (threadIdx.x == 0) {
        uint4 *words = (uint4 *)(memory + CONFIG::AT_FINISH); /* padding is read, too */
        words[0] = words[1] = make_uint4(0, 0, 0, 0);
        *(gemm_finish *)words = gemm_finish_of(p);
        if (CONFIG::SCALED && quantizes(p)) *(gemm_quantizer *)(memory + CONFIG::AT_QUANTIZER) = gemm_quantizer_of(p);
    }
    __syncthreads();
}

/* SUM: the types of elements are known to it. */
template <class CONFIG, class SUM>
__device__ static inline void consume(const bsmi_blackwell_parameters &p, unsigned char *memory, uint32_t warp)
{
    const uint32_t shared = shared_address(memory), in_tile = warp % CONFIG::TILE_WARPS,
                   set = warp / CONFIG::TILE_WARPS;
    gemm_set_ring<CONFIG> ring(set, 0);
    uint32_t amax = 0;
    for (gemm_jobs<CONFIG> jobs(p, set); jobs.more(); jobs.next()) {
        const gemm_job job = jobs.job(p);
        gemm_sums<CONFIG> sums = {};
        SUM::sum(p, sums, reader_of<CONFIG>(p, job.tile, in_tile), shared, ring, job);
        finish_job<CONFIG>(p, job, memory, warp, sums, amax);
    }
    if (CONFIG::SCALED) store_amax(p, amax);
}

template <class CONFIG, class SUM> __device__ static inline void gemm(const bsmi_blackwell_parameters &p)
{
    extern __shared__ __align__(1024) unsigned char memory[];
    const uint32_t shared = shared_address(memory), warp = warp_of_cta();
    begin<CONFIG>(p, shared);
    griddepcontrol_wait();
    fill_finish<CONFIG>(p, memory);
    /* 65,536 registers for three warpgroups: the producer's keeps few, the others' sums need many. */
    constexpr bool MOVES = CONFIG::PRODUCERS == 4;
    if (warp >= CONFIG::PRODUCERS) {
        if (MOVES) setmaxnreg_inc<240>();
        consume<CONFIG, SUM>(p, memory, warp - CONFIG::PRODUCERS);
    } else {
        if (MOVES) setmaxnreg_dec<24>();
        if (warp < CONFIG::SETS && copies_rows<CONFIG>(p)) produce<CONFIG, CONFIG::COPIES>(p, shared, warp);
        else if (warp < CONFIG::SETS && elect_sync()) produce<CONFIG, false>(p, shared, warp);
    }
}

/* One pair of types. */
template <class CONFIG, class PAIR> struct one_pair {
    __device__ __forceinline__ static void sum(const bsmi_blackwell_parameters &p, gemm_sums<CONFIG> &sums,
                                      const gemm_reader<CONFIG> &reader, uint32_t shared, gemm_set_ring<CONFIG> &ring,
                                      const gemm_job &job)
    {
        sum_job<CONFIG, PAIR>(p, sums, reader, shared, ring, job);
    }
};

#define GEMM_KERNEL(kind, KIND, SUM, tile, rows, columns, step, along_m, along_n, schedule, stages) \
    extern "C" __global__ void __launch_bounds__(BSMI_SM120_THREADS(rows, columns, along_m, along_n, schedule), 1) \
        bsmi_gemm_sm120_##kind##_##tile(const __grid_constant__ bsmi_blackwell_parameters p) \
    { \
        using CONFIG = gemm_config<KIND, rows, columns, step, along_m, along_n, schedule, stages>; \
        gemm<CONFIG, SUM<CONFIG>>(p); \
    }
