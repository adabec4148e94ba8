/* What the mixed-input kernels for tensor memory consist of: sizes, shared memory, tensor memory, rings; and how their
 * roles walk tiles. */
#pragma once

#include "cuda/params/tensor_mixed_input.h"
#include "cuda/ptx/tensor_registers.cuh"
#include "gemm_swapped.cuh"
#include "mixed_input_instances.h"

template <class CODES_> struct tensor_mixed_input_config {
    using CODES = CODES_;

    /* A stage of A's rows: a step of 64 columns.  A stage of B's codes: 256 columns of 128 rows, and pieces of 512
     * bytes with four scales of each of these. */
    static constexpr int STAGES = BSMI_SM100_MIXED_INPUT_STAGES, ROW_BYTES = BSMI_K_STEP * 2,
                         A_BYTES = BSMI_SM100_MIXED_INPUT_ROWS * ROW_BYTES;
    static constexpr int CODE_STAGES = BSMI_SM100_MIXED_INPUT_CODE_STAGES, CODE_STEPS = 4,
                         CODE_BYTES = BSMI_SM100_ROWS * CODE_STEPS * BSMI_K_STEP / 2;
    static constexpr int BLOCK = CODES::MICRO ? 16 : 32, PIECE_COLUMNS = 4 * BLOCK, PIECE_BYTES = 512,
                         SCALE_BYTES = CODE_STEPS * BSMI_K_STEP / PIECE_COLUMNS * PIECE_BYTES;
    static constexpr int DECODING_WARPS = 8;

    /* Tensor memory: two accumulators, then decoded operands, of each lane 64 numbers a step in 32 cells, two steps a
     * stage. */
    static constexpr int TENSOR_COLUMNS = 512, ACCUMULATOR_COLUMNS = BSMI_SM100_MIXED_INPUT_ROWS,
                         AT_OPERANDS = 2 * ACCUMULATOR_COLUMNS, STEP_CELLS = BSMI_K_STEP / 2, PAIR_STEPS = 2,
                         OPERAND_COLUMNS = PAIR_STEPS * STEP_CELLS,
                         OPERAND_STAGES = BSMI_SM100_MIXED_INPUT_OPERAND_STAGES;

    /* For the functions of gemm_swapped.cuh. */
    static constexpr int CTAS = 1, BLOCKS = 0, CHUNK = 16, SUMS = CHUNK;

    /* Shared memory, from its beginning. */
    static constexpr int AT_ROWS = 0, AT_CODES = AT_ROWS + STAGES * A_BYTES,
                         AT_SCALES = AT_CODES + CODE_STAGES * CODE_BYTES,
                         AT_ROWS_FULL = AT_SCALES + CODE_STAGES * SCALE_BYTES,
                         AT_ROWS_EMPTY = AT_ROWS_FULL + STAGES * 8,
                         AT_CODES_FULL = AT_ROWS_EMPTY + STAGES * 8, AT_CODES_EMPTY = AT_CODES_FULL + CODE_STAGES * 8,
                         AT_OPERANDS_FULL = AT_CODES_EMPTY + CODE_STAGES * 8,
                         AT_OPERANDS_EMPTY = AT_OPERANDS_FULL + OPERAND_STAGES * 8,
                         AT_FILLED = AT_OPERANDS_EMPTY + OPERAND_STAGES * 8, AT_DRAINED = AT_FILLED + 16,
                         AT_TENSOR = AT_DRAINED + 16, SHARED_BYTES = AT_TENSOR + 16;

    /* Barriers: who arrives in a phase, and who waits for its end; filled and drained as in gemm_config.cuh.
     *
     *              full                                   empty
     *   rows       the bytes; waits: the multiplier       the commit behind the step's products; waits: their loader
     *   codes      the bytes; wait: all decoding warps    each of these, once it has read; waits: their loader
     *   operands   four warps, once stored; waits: the    the commit behind the products of both steps; wait: the
     *              multiplier                             four warps that store the next */
    struct rows_ring {
        static constexpr int STAGES = BSMI_SM100_MIXED_INPUT_STAGES, AT_FULL = AT_ROWS_FULL, AT_EMPTY = AT_ROWS_EMPTY;
    };
    struct codes_ring {
        static constexpr int STAGES = CODE_STAGES, AT_FULL = AT_CODES_FULL, AT_EMPTY = AT_CODES_EMPTY;
    };
    struct operands_ring {
        static constexpr int STAGES = OPERAND_STAGES, AT_FULL = AT_OPERANDS_FULL, AT_EMPTY = AT_OPERANDS_EMPTY;
    };

    static_assert(AT_OPERANDS + OPERAND_STAGES * OPERAND_COLUMNS <= TENSOR_COLUMNS, "tensor memory");
    static_assert(A_BYTES % 1024 == 0 && CODE_BYTES % 1024 == 0, "stages are whole swizzle patterns");
    static_assert(SHARED_BYTES == BSMI_SM100_MIXED_INPUT_SHARED_BYTES(BLOCK), "as the host has it");
    static_assert(SHARED_BYTES <= 232448, "shared memory of a CTA");
};

/* The tiles of this CTA, in their order. */
template <class DO>
__device__ static inline void for_each_tile(const bsmi_tensor_mixed_input_parameters &p, const DO &with)
{
    const int64_t tiles = gemm_tiles(p);
    for (int64_t number = blockIdx.x; number < tiles; number += gridDim.x)
        with(gemm_tile_at(p, number, p.tile_rows, BSMI_SM100_ROWS));
}

/* The stages of codes of these: with(tile, first step of the segment, steps). */
template <class CONFIG, class DO>
__device__ static inline void for_each_stage(const bsmi_tensor_mixed_input_parameters &p, const DO &with)
{
    for_each_tile(p, [&](const gemm_tile &tile) {
        for (int32_t s = 0; s < p.segment_count; s++)
            for (int32_t step = 0; step < p.segments[s].blocks; step += CONFIG::CODE_STEPS)
                with(tile, step, min(CONFIG::CODE_STEPS, p.segments[s].blocks - step));
    });
}
