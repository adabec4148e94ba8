/* The shared-memory main loop for rows of which some are late: the three warps beside the producer's, which else have
 * nothing to do, make them. */
#pragma once

#include "cuda/sm90/operand/late_rows.cuh"
#include "shared_memory.cuh"

template <class CONFIG, class OPERAND> struct late_rows_roles : shared_memory_roles<CONFIG, OPERAND> {
    __device__ static inline void work(const bsmi_late_rows_parameters &p, uint32_t shared, gemm_cta cta,
                                       uint32_t group)
    {
        static_assert(CONFIG::GROUPS == 2, "registers move");
        if (group == 0) {
            setmaxnreg_dec<OPERAND::PRODUCER_REGISTERS>();
            if (warp_of_cta() != 0) OPERAND::decode(p);
            else if (elect_sync())
                produce<CONFIG>(p.shared_memory, shared, cta,
                                [&](const gemm_tile &tile) { OPERAND::template await<CONFIG>(p, tile); });
        } else {
            setmaxnreg_inc<OPERAND::CONSUMER_REGISTERS>();
            consume<CONFIG, OPERAND>(p.shared_memory, shared, cta, group - 1);
        }
    }
};

#define LATE_ROWS_KERNEL(operand, name, rows, columns, groups, ...) \
    extern "C" __global__ void __launch_bounds__(128 * (groups + 1), 1) \
        bsmi_gemm_##name(const __grid_constant__ bsmi_late_rows_parameters p) \
    { \
        using CONFIG = shared_memory_config<rows, columns, groups, __VA_ARGS__>; \
        run_persistent<CONFIG, late_rows_roles<CONFIG, operand>>(p, p.shared_memory); \
    }
