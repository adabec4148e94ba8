/* The consumers of the mixed-input kernels by mma.sync: warps that decode 16 rows of B each and multiply them with all
 * rows of A.
 *
 *     step        s                                   s + 1
 *     rows of A   ldmatrix, product by product
 *     products    s, made while  -------------------> s + 1
 *     weights     s + 1 is decoded into other registers; with the last step of a stage, the next stage is read
 *
 * No warp waits for another: a stage is handed back by each that has read it. */
#pragma once

#include "cuda/sm90/mainloop/mixed_input_mma_sync.cuh"
#include "cuda/sm90/pipeline/mixed_input_producer.cuh"
#include "mixed_input_weights.cuh"

/* Where a warp is in both rings, and in K. */
template <class CONFIG> struct mixed_input_summing {
    using WEIGHTS = typename weights_of<CONFIG>::type;
    using CODES_RING = typename CONFIG::codes_ring;
    WEIGHTS weights;
    uint32_t rows;                        /* address of the lane's in stage 0 */
    gemm_ring<CONFIG> ring;
    gemm_ring<CODES_RING> codes_ring;
    int32_t step, end;                    /* of the segment */
    typename WEIGHTS::stage stage;

    __device__ inline mixed_input_summing(const consumer_thread &at)
        : weights(at), rows(at.shared + CONFIG::AT_A + place_of_rows<CONFIG::ROWS>(at.lane)), ring{ 0, 0 },
          codes_ring{ 0, 0 }
    {
    }

    __device__ inline void wait_for_codes()
    {
        mbarrier_wait_parity(full_barrier<CODES_RING>(weights.at.shared, codes_ring.stage), codes_ring.parity);
    }
    __device__ inline void release_codes()
    {
        release_read_stage<CONFIG>(empty_barrier<CODES_RING>(weights.at.shared, codes_ring.stage),
                                   weights.at.lane == 0);
        codes_ring.next();
    }

    /* The stage of codes that begins with step `first`. */
    __device__ inline void read_stage(int32_t first)
    {
        wait_for_codes();
        stage = weights.read(codes_ring.stage, first, end - first);
        release_codes();
    }

    /* Step NUMBER of the stage has been decoded.  True if the segment has a stage behind this one. */
    template <bool RARE, int NUMBER>
    __device__ inline bool sum_steps(const step_operand &now, tile_sums<CONFIG> &sums)
    {
        constexpr int IN_STAGE = NUMBER % CONFIG::A_STEPS;
        const bool is_last = step + 1 == end;
        step_operand next;
        if constexpr (IN_STAGE == 0)
            mbarrier_wait_parity(full_barrier<CONFIG>(weights.at.shared, ring.stage), ring.parity);
        if constexpr (NUMBER + 1 < CONFIG::STEPS) weights.template decode<RARE, NUMBER + 1>(stage, next);
        else if (!is_last) read_stage(step + 1);
        multiply_rows<CONFIG>(rows + (ring.stage * CONFIG::A_STEPS + IN_STAGE) * CONFIG::A_BYTES, now, sums);
        if (IN_STAGE + 1 == CONFIG::A_STEPS || is_last) {
            release_read_stage<CONFIG>(empty_barrier<CONFIG>(weights.at.shared, ring.stage), weights.at.lane == 0);
            ring.next();
        }
        step++;
        if (is_last) return false;
        if constexpr (NUMBER + 1 < CONFIG::STEPS) return sum_steps<RARE, NUMBER + 1>(next, sums);
        return true;
    }

    template <bool RARE> __device__ inline bool sum_stage(tile_sums<CONFIG> &sums)
    {
        step_operand first;
        weights.template decode<RARE, 0>(stage, first);
        return sum_steps<RARE, 0>(first, sums);
    }

    /* All of K in one chain of sums, ascending, 16 columns at a time. */
    __device__ inline void sum_tile(const bsmi_gemm_parameters &p, tile_sums<CONFIG> &sums)
    {
#pragma unroll
        for (int i = 0; i < CONFIG::PRODUCT_SUMS; i++) sums[i] = 0;
        for (int32_t segment = 0; segment < p.segment_count; segment++) {
            step = 0, end = p.segments[segment].blocks;
            read_stage(0);
            while (weights.is_rare(stage) ? sum_stage<true>(sums) : sum_stage<false>(sums)) {}
        }
    }
};

/* Slices of prepacked weights behind those that K has, which there are if K is short: none is multiplied. */
template <class CONFIG>
__device__ static inline void skip_slices(const bsmi_mixed_input_parameters &p, mixed_input_summing<CONFIG> &s)
{
    for (int32_t slice = (s.end + CONFIG::STEPS - 1) / CONFIG::STEPS; slice < slices_of<CONFIG>(p); slice++) {
        s.wait_for_codes();
        s.release_codes();
    }
}

template <class CONFIG>
__device__ static inline void consume_weights(const typename CONFIG::PARAMETERS &p, uint32_t shared)
{
    transposed_sums<CONFIG> sums;
    const consumer_thread at = consumer_thread_of(shared);
    mixed_input_summing<CONFIG> s(at);
    const int64_t tiles = gemm_tiles(p);
    for (int64_t number = blockIdx.x; number < tiles; number += gridDim.x) {
        gemm_tile tile = mixed_input_tile<CONFIG>(p, number);
        tile.column += (int32_t)at.group * 64;
        s.weights.begin_tile(p, tile);
        s.sum_tile(p, sums[0]);
        if constexpr (CONFIG::PREPACKED) skip_slices<CONFIG>(p, s);
        s.weights.end_tile(p, tile, sums);
    }
}
