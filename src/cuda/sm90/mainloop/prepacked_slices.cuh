/* K slices of prepacked weights, for the K-interleaved schedule: mixed_input_interleaved.cuh says what it asks of its
 * source of weights, and when. */
#pragma once

#include "cuda/sm90/epilogue/mixed_input_epilogue.cuh"
#include "cuda/sm90/operand/prepacked_registers.cuh"

template <class CONFIG> struct prepacked_slices {
    using CODES = typename CONFIG::CODES;
    using PARAMETERS = typename CONFIG::PARAMETERS;
    consumer_thread at;
    uint32_t codes, scales;               /* addresses of this thread's in stage 0 */
    prepacked_finish finish;

    __device__ inline prepacked_slices(const consumer_thread &thread) : at(thread), finish {}
    {
        /* Zero, which ptxas cannot know: an address in a uniform register costs a vote of the warp wherever a thread's
         * predicate guards what is computed of it, while the next warpgroup waits for the sums. */
        at.shared += at.lane >> 5;
        constexpr uint32_t OF_TWO_ROWS = 2 * BSMI_PREPACKED_COLUMNS / CONFIG::BLOCK;
        codes = at.shared + CONFIG::AT_CODES + (at.warp * 32 + at.lane) * 16;
        scales = at.shared + CONFIG::AT_CODES + BSMI_PREPACKED_CODE_BYTES + (at.warp * 8 + at.lane / 4) * OF_TWO_ROWS;
    }

    __device__ inline void begin_tile(const PARAMETERS &p, const gemm_tile &tile, uint32_t, int32_t, bool finishes)
    {
        if (finishes) finish = begin_prepacked_finish<CONFIG>(p, tile, at);
    }

    __device__ inline bool is_special() const { return false; }

    template <prepacked_range RANGE>
    __device__ inline void decode_steps(const uint4 (&of)[CONFIG::STEPS], const prepacked_scales<CODES> &factors,
                                        slice_operand<CONFIG> &operand) const
    {
#pragma unroll
        for (int step = 0; step < CONFIG::STEPS; step++)
#pragma unroll
            for (int row = 0; row < 2; row++)
                decode_prepacked_row<CODES, RANGE>(of[step], factors.words[step], row, operand[step]);
    }

    template <bool> __device__ inline void decode(uint32_t stage, int32_t, slice_operand<CONFIG> &operand) const
    {
        const uint32_t of_stage = stage * CONFIG::CODE_BYTES;
        const prepacked_scales<CODES> of_slice = read_prepacked_scales<CODES>(scales + of_stage);
        uint4 of[CONFIG::STEPS];
#pragma unroll
        for (int step = 0; step < CONFIG::STEPS; step++) of[step] = load_shared_v4(codes + of_stage + step * 2048);
        if (are_large(of_slice)) decode_steps<PREPACKED_LARGE>(of, of_slice, operand);
        else decode_steps<PREPACKED_SMALL>(of, of_slice, operand);
    }

    __device__ inline void release_tile() const {}
    __device__ inline void before_last_slice(const PARAMETERS &p, const gemm_tile &tile)
    {
        read_row_exponents<CONFIG>(p, tile, finish);
    }
    __device__ inline void after_first_slice(const PARAMETERS &, const gemm_tile &) {}
    __device__ inline void begin_next(const PARAMETERS &, const gemm_tile &, uint32_t, int32_t) const {}

    __device__ inline void end_tile(const PARAMETERS &p, const gemm_tile &tile,
                                    const transposed_sums<CONFIG> &sums) const
    {
        finish_prepacked_tile<CONFIG>(p, finish, tile, at, sums);
    }
};
