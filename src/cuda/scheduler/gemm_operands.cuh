/* What the kernels of Blackwell share: rings of stages, steps of K, and the operands of a tile. */
#pragma once

#include "gemm_tile.cuh"

/* A place in a ring of COUNT, and the parity of its phase; every role walks a ring with the same function. */
template <int COUNT> struct gemm_ring {
    uint32_t at, parity;
    __device__ inline void next()
    {
        if (++at == COUNT) {
            at = 0;
            parity ^= 1;
        }
    }
};

/* Steps of K. */
__device__ static inline int32_t gemm_steps(const bsmi_blackwell_parameters &p)
{
    int32_t steps = 0;
    for (int32_t s = 0; s < p.segment_count; s++) steps += p.segments[s].blocks;
    return steps;
}

/* An operand of the instruction: its tensor maps, and where the tile begins in them. */
struct gemm_side {
    const bsmi_tensor_map &rows, &scales;
    const bsmi_operand_boxes &boxes;
    int32_t row, matrix, scale_blocks;
};

__device__ static inline gemm_side gemm_side_a(const bsmi_blackwell_parameters &p, const gemm_tile &tile)
{
    return { p.a, p.a_scales, p.a_boxes, tile.row, p.epilogue.grouped ? 0 : tile.matrix * p.a_batch_step,
             p.a_scale_blocks };
}
__device__ static inline gemm_side gemm_side_b(const bsmi_blackwell_parameters &p, const gemm_tile &tile)
{
    return { p.b, p.b_scales, p.b_boxes, tile.column, tile.matrix * p.b_batch_step, p.b_scale_blocks };
}
