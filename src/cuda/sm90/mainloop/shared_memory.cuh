/* D = finish(A B^T) on Hopper, both operands of wgmma in shared memory.
 *
 * A persistent grid of CTAs or clusters, each of which makes tiles of D.  Roles:
 *
 *   warpgroup 0       one thread loads tiles of 128 bytes of K into the ring, and runs ahead into the next tile
 *                     (pipeline/shared_memory_producer.cuh)
 *   the others        multiply, finish and store 64 or 128 rows of the tile each (shared_memory_consumer.cuh)
 *
 *      TMA --> full[stage] --> wgmma --> empty[stage] --> TMA
 *
 * full: one arrival, of the own producer, and the bytes of a stage.  empty: an arrival of every consumer warpgroup of
 * every CTA that what this CTA loads goes to, or whose loads come here: those of its row and its column of the cluster,
 * whose CTAs load a part each of the rows of A or B that they share.
 *
 * Every step of K goes into one chain of sums, in ascending order: the order depends on K alone, not on the instance.
 * K is at least one step. */
#pragma once

#include "cuda/scheduler/condition.cuh"
#include "cuda/sm90/pipeline/persistent.cuh"
#include "cuda/sm90/pipeline/shared_memory_producer.cuh"
#include "shared_memory_consumer.cuh"

template <class CONFIG, class OPERAND> struct shared_memory_roles {
    static constexpr bool WAITS_FIRST = false;
    __device__ static inline void begin(uint32_t shared)
    {
        initialize_ring<CONFIG>(shared, 1, (CONFIG::CLUSTER_ROWS + CONFIG::CLUSTER_COLUMNS - 1) * CONFIG::GROUPS);
        fence_mbarrier_init();
    }
    __device__ static inline void work(const bsmi_shared_memory_parameters &p, uint32_t shared, gemm_cta cta,
                                       uint32_t group)
    {
        /* 65,536 registers for three warpgroups: the producer's keeps few, the consumers' sums need many.  Two
         * warpgroups have enough. */
        constexpr bool MOVES = CONFIG::GROUPS == 2;
        if (group == 0) {
            if (MOVES) setmaxnreg_dec<OPERAND::PRODUCER_REGISTERS>();
            if (warp_of_cta() == 0 && elect_sync()) produce<CONFIG>(p, shared, cta);
        } else {
            if (MOVES) setmaxnreg_inc<OPERAND::CONSUMER_REGISTERS>();
            consume<CONFIG, OPERAND>(p, shared, cta, group - 1);
        }
    }
};

/* The same, if a condition holds that only the device knows. */
template <class ROLES> struct conditional_roles {
    static constexpr bool WAITS_FIRST = true;
    __device__ static inline void begin(uint32_t shared) { ROLES::begin(shared); }
    __device__ static inline void work(const bsmi_shared_memory_parameters &p, uint32_t shared, gemm_cta cta,
                                       uint32_t group)
    {
        if (condition_holds(p.condition)) ROLES::work(p, shared, cta, group);
    }
};

#define SHARED_MEMORY_KERNEL(operand, name, rows, columns, groups, ...) \
    extern "C" __global__ void __launch_bounds__(128 * (groups + 1), 1) \
        bsmi_gemm_##name(const __grid_constant__ bsmi_shared_memory_parameters p) \
    { \
        using CONFIG = shared_memory_config<rows, columns, groups, __VA_ARGS__>; \
        run_persistent<CONFIG, shared_memory_roles<CONFIG, operand>>(p, p); \
    }
#define CONDITIONAL_SHARED_MEMORY_KERNEL(operand, name, rows, columns, groups, ...)                                    \
    extern "C" __global__ void __launch_bounds__(128 * (groups + 1), 1)                                                \
        bsmi_gemm_##name(const __grid_constant__ bsmi_shared_memory_parameters p)                                   \
    {                                                                                                                  \
        using CONFIG = shared_memory_config<rows, columns, groups, __VA_ARGS__>;                                       \
        run_persistent<CONFIG, conditional_roles<shared_memory_roles<CONFIG, operand>>>(p, p);                    \
    }
