/* The ring of pipeline stages in shared memory: a stage and its parity, two barriers a stage, and the release of a
 * stage.
 *
 * CONFIG says STAGES, AT_FULL and AT_EMPTY.  full: arrivals of those that fill a stage, and the bytes that TMA loads.
 * empty: arrivals of those that have read it; each main loop says how many. */
#pragma once

#include "cuda/ptx/mbarrier.cuh"
#include "cuda/ptx/threads.cuh"

/* Every role walks the ring with the same functions, so that no two can disagree about the parity. */
template <class CONFIG> struct gemm_ring {
    uint32_t stage, parity;
    __device__ inline void next()
    {
        if (++stage == CONFIG::STAGES) {
            stage = 0;
            parity ^= 1;
        }
    }
    __device__ inline void advance(uint32_t steps) /* at most once round */
    {
        stage += steps;
        if (stage >= CONFIG::STAGES) {
            stage -= CONFIG::STAGES;
            parity ^= 1;
        }
    }
};

/* A producer's ring: the phase before the first counts as complete, so that every stage begins empty. */
template <class CONFIG> __device__ static inline gemm_ring<CONFIG> ring_of_producer() { return { 0, 1 }; }

template <class CONFIG> __device__ static inline uint32_t full_barrier(uint32_t shared, uint32_t stage)
{
    return shared + CONFIG::AT_FULL + stage * 8;
}
template <class CONFIG> __device__ static inline uint32_t empty_barrier(uint32_t shared, uint32_t stage)
{
    return shared + CONFIG::AT_EMPTY + stage * 8;
}
template <class CONFIG> __device__ static inline uint32_t stage_before(uint32_t stage)
{
    return stage == 0 ? CONFIG::STAGES - 1 : stage - 1;
}

template <class CONFIG>
__device__ static inline void initialize_ring(uint32_t shared, uint32_t full_arrivals, uint32_t empty_arrivals)
{
    for (uint32_t stage = 0; stage < CONFIG::STAGES; stage++) {
        mbarrier_init(full_barrier<CONFIG>(shared, stage), full_arrivals);
        mbarrier_init(empty_barrier<CONFIG>(shared, stage), empty_arrivals);
    }
}

/* Arrives on a stage's empty barrier, for the threads that notify: of this CTA, or of one of its cluster, whose address
 * mapa has made. */
template <class CONFIG> __device__ static inline void release_stage(uint32_t empty, bool notifies)
{
    if (!notifies) return;
    if (CONFIG::CLUSTER == 1) mbarrier_arrive(empty);
    else mbarrier_arrive_cluster(empty);
}
