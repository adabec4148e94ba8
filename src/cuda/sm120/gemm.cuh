/* D = finish(A B^T) on GeForce RTX 50, RTX PRO and GB10: codes and scales as they are stored, or bf16 rows, by TMA; fp32
 * sums in the registers of warps, by mma.sync.
 *
 * A persistent grid of CTAs, each of which makes tiles of D in the order of gemm_order.h, every gridDim-th.  Roles:
 *
 *   warp 0, a thread   loads codes of A and B and their scales into a ring of stages (gemm_producer.cuh)
 *   the others         multiply (gemm_consumer.cuh), finish and store (gemm_epilogue.cuh) their rows and columns
 *
 * Cooperative: all of them share every tile.  Ping-pong: two sets of warps take the CTA's tiles in turn; the one's
 * epilogue hides behind the other's products, which read the stages that follow.
 *
 * Nobody but the ring ties warps together.  All of K goes into one chain of fp32 sums, ascending: their order depends
 * on K and the kind of product alone, not on the instance (but for split_k, which is asked for by name).  K is at least
 * one step. */
#pragma once

#include "gemm_consumer.cuh"
#include "gemm_epilogue.cuh"
#include "gemm_producer.cuh"

template <class CONFIG> __device__ static inline void begin(const bsmi_blackwell_parameters &p, uint32_t shared)
{
    if (threadIdx.x == 0) {
        prefetch_tensormap(&p.a);
        prefetch_tensormap(&p.b);
        for (uint32_t stage = 0; stage < CONFIG::STAGES; stage++) {
            mbarrier_init(full_barrier<CONFIG>(shared, stage), 1);
            mbarrier_init(empty_barrier<CONFIG>(shared, stage), CONFIG::TILE_WARPS);
        }
        for (uint32_t set = 0; CONFIG::PING_PONG && set < 2; set++)
            mbarrier_init(turn_barrier<CONFIG>(shared, set), CONFIG::TILE_WARPS);
        fence_mbarrier_init();
    }
    __syncthreads();
}

/* By one warp, for itself. */
__device__ static inline void fill_quantizer(const bsmi_blackwell_parameters &p, gemm_quantizer *quantizer)
{
    if (threadIdx.x % 32 == 0) *quantizer = gemm_quantizer_of(p);
    __syncwarp();
}

/* SUM: the types of elements are known to it. */
template <class CONFIG, class SUM>
__device__ static inline void consume(const bsmi_blackwell_parameters &p, unsigned char *memory, uint32_t warp)
{
    const uint32_t shared = shared_address(memory), of_warp = CONFIG::OF_WARPS + warp * CONFIG::WARP_BYTES,
                   in_tile = warp % CONFIG::TILE_WARPS, set = warp / CONFIG::TILE_WARPS;
    gemm_quantizer *quantizer = (gemm_quantizer *)(memory + of_warp + CONFIG::OF_QUANTIZER);
    gemm_ring<CONFIG::STAGES> ring = { 0, 0 };
    const gemm_finish finish = gemm_finish_of(p);
    uint32_t amax = 0;
    if (CONFIG::SCALED && quantizes(p)) fill_quantizer(p, quantizer);
    gemm_jobs<CONFIG> jobs(p);
    for (uint32_t turn = 0; jobs.more(); jobs.next(), turn++) {
        const gemm_job job = jobs.job(p);
        if (CONFIG::PING_PONG && turn % 2 != set) {
            ring.skip(job.steps);
            continue;
        }
        if (CONFIG::PING_PONG) mbarrier_wait_parity(turn_barrier<CONFIG>(shared, set), turn / 2 % 2 ^ (set == 0));
        gemm_sums<CONFIG> sums = {};
        SUM::sum(p, sums, reader_of<CONFIG>(p, job.tile, in_tile), shared, ring, job, jobs.all_steps,
                 turn_barrier<CONFIG>(shared, 1 - set));
        finish_job<CONFIG>(p, finish, job, quantizer, shared + of_warp, in_tile, sums, amax);
    }
    if (CONFIG::SCALED) store_amax(p, amax);
}

template <class CONFIG, class SUM> __device__ static inline void gemm(const bsmi_blackwell_parameters &p)
{
    extern __shared__ __align__(1024) unsigned char memory[];
    const uint32_t shared = shared_address(memory), warp = warp_of_cta();
    begin<CONFIG>(p, shared);
    griddepcontrol_wait();
    /* 65,536 registers for three warpgroups: the producer's keeps few, the others' sums need many. */
    constexpr bool MOVES = CONFIG::PRODUCERS > 1;
    if (warp >= CONFIG::PRODUCERS) {
        if (MOVES) setmaxnreg_inc<240>();
        consume<CONFIG, SUM>(p, memory, warp - CONFIG::PRODUCERS);
    } else {
        if (MOVES) setmaxnreg_dec<24>();
        if (warp == 0 && elect_sync()) produce<CONFIG>(p, shared);
    }
}

/* One pair of types. */
template <class CONFIG, class PAIR> struct one_pair {
    __device__ static inline void sum(const bsmi_blackwell_parameters &, gemm_sums<CONFIG> &sums,
                                      const gemm_reader &reader, uint32_t shared, gemm_ring<CONFIG::STAGES> &ring,
                                      const gemm_job &job, int32_t all_steps, uint32_t next_turn)
    {
        sum_job<CONFIG, PAIR>(sums, reader, shared, ring, job, all_steps, next_turn);
    }
};

#define GEMM_KERNEL(kind, KIND, SUM, tile, rows, columns, step, along_m, along_n, schedule, stages) \
    extern "C" __global__ void __launch_bounds__(BSMI_SM120_THREADS(rows, columns, along_m, along_n, schedule), 1) \
        bsmi_gemm_sm120_##kind##_##tile(const __grid_constant__ bsmi_blackwell_parameters p) \
    { \
        using CONFIG = gemm_config<KIND, rows, columns, step, along_m, along_n, schedule, stages>; \
        gemm<CONFIG, SUM<CONFIG>>(p); \
    }
