/* D_g = finish(A_g B_g^T) on Hopper for groups along K: the shared-memory main loop, whose rows of bf16 have the steps
 * of each group's columns one behind the other.
 *
 * Roles, ring and sums are those of shared_memory.cuh; which steps a tile has is its matrix's row of a table, that a
 * kernel in front has made.  A file of its own, so that the loops that know their steps from the parameters keep their
 * instructions.  Without a table it is one of them. */
#pragma once

#include "shared_memory.cuh"

struct steps_of_tile { int32_t first, count; };

/* Of a segment.  The kernel in front has been waited for. */
__device__ static inline steps_of_tile steps_of(const bsmi_column_groups_parameters &p, const gemm_tile &tile,
                                                int32_t segment)
{
    if (p.groups == nullptr) return { 0, p.segments[segment].blocks };
    const bsmi_column_group &group = p.groups[tile.matrix];
    return { group.step, group.steps };
}

template <class CONFIG>
__device__ static inline void produce_groups(const bsmi_column_groups_parameters &p, uint32_t shared, gemm_cta cta)
{
    gemm_ring<CONFIG> ring = ring_of_producer<CONFIG>();
    for_each_tile<CONFIG>(p, cta, [&](const gemm_tile &tile, bool is_first) {
        if (is_first) griddepcontrol_wait();
        for (int32_t s = 0; s < p.segment_count; s++) {
            const steps_of_tile steps = steps_of(p, tile, s);
            for (int32_t step = steps.first; step < steps.first + steps.count; step++) {
                load_stage<CONFIG>(p, shared, ring, cta, tile, p.segments[s].a_column + step * BSMI_K_STEP,
                                   p.segments[s].b_column + step * BSMI_K_STEP);
                ring.next();
            }
        }
    });
    griddepcontrol_launch_dependents();
}

template <class CONFIG> __device__ static inline void clear_sums(float (&sums)[CONFIG::BLOCKS][CONFIG::SUMS])
{
#pragma unroll
    for (int block = 0; block < CONFIG::BLOCKS; block++)
#pragma unroll
        for (int i = 0; i < CONFIG::SUMS; i++) sums[block][i] = 0;
}

template <class CONFIG, class OPERAND>
__device__ static inline void consume_groups(const bsmi_column_groups_parameters &p, uint32_t shared, gemm_cta cta,
                                             uint32_t group)
{
    gemm_ring<CONFIG> ring = { 0, 0 };
    gemm_boxes boxes = gemm_boxes_of<CONFIG>(shared, group);
    const gemm_finish finish = gemm_finish_of(p);
    for_each_tile<CONFIG>(p, cta, [&](const gemm_tile &tile, bool is_first) {
        if (is_first) griddepcontrol_wait();
        const tile_exponents<CONFIG> exponents = tile_exponents_of<CONFIG>(p, tile, group);
        int32_t steps = 0;
        for (int32_t s = 0; s < p.segment_count; s++) steps += steps_of(p, tile, s).count;
        float sums[CONFIG::BLOCKS][CONFIG::SUMS];
        if (steps > 0) OPERAND::template sum<CONFIG>(sums, shared, ring, cta, group, steps);
        else clear_sums<CONFIG>(sums);
#pragma unroll
        for (int block = 0; block < CONFIG::BLOCKS; block++)
            finish_part<CONFIG>(p, finish, part_of<CONFIG>(tile, group, block), exponents, block, boxes, sums[block]);
    });
    boxes_are_read();
}

template <class CONFIG, class OPERAND> struct column_groups_roles {
    static constexpr bool WAITS_FIRST = false;
    __device__ static inline void begin(uint32_t shared) { shared_memory_roles<CONFIG, OPERAND>::begin(shared); }
    __device__ static inline void work(const bsmi_column_groups_parameters &p, uint32_t shared, gemm_cta cta,
                                       uint32_t group)
    {
        static_assert(CONFIG::GROUPS == 2, "registers move from the producer's warpgroup to two others");
        if (group == 0) {
            setmaxnreg_dec<OPERAND::PRODUCER_REGISTERS>();
            if (warp_of_cta() == 0 && elect_sync()) produce_groups<CONFIG>(p, shared, cta);
        } else {
            setmaxnreg_inc<OPERAND::CONSUMER_REGISTERS>();
            consume_groups<CONFIG, OPERAND>(p, shared, cta, group - 1);
        }
    }
};

#define COLUMN_GROUPS_KERNEL(operand, name, rows, columns, groups, ...)                                                \
    extern "C" __global__ void __launch_bounds__(128 * (groups + 1), 1)                                                \
        bsmi_gemm_##name(const __grid_constant__ bsmi_column_groups_parameters p)                                      \
    {                                                                                                                  \
        using CONFIG = shared_memory_config<rows, columns, groups, __VA_ARGS__>;                                       \
        run_persistent<CONFIG, column_groups_roles<CONFIG, operand>>(p, p);                                            \
    }
