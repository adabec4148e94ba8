/* Two consumer warpgroups: each decodes 64 rows of B of its own, step by step, and multiplies them with the rows of A,
 * which both read.
 *
 *     step        s                s + 1                        s + 2
 *     products    issued           issued, s waited for         issued, s + 1 waited for
 *     decoded                      s + 2 into the registers of s
 *
 * The tensor cores have the other warpgroup's products while one waits and decodes.  Scales come in layout 128x4, a
 * piece a stage, less the exponents of rows; a sum of K may have several segments. */
#pragma once

#include "cuda/sm90/epilogue/transposed.cuh"
#include "cuda/sm90/operand/e2m1_registers.cuh"
#include "cuda/sm90/pipeline/fused_producer.cuh"
#include "mixed_input_multiply.cuh"

/* What a thread keeps from step to step. */
template <class CONFIG> struct two_warpgroups {
    e2m1_reader codes;
    uint32_t shared, scales;              /* scales: address of its first row's, within a stage; the second row's are 16
                                             bytes behind */
    bool notifies_of_rows, notifies_of_codes;         /* the producers: for its warpgroup, for its warp */

    gemm_ring<CONFIG> ring;
    uint32_t before;                      /* the stage of the step before */
    gemm_ring<typename CONFIG::codes_ring> codes_ring;
    uint32_t number;                      /* of the next step to decode, in its stage of codes */
    int32_t segment, left;                /* steps of the segment that are left to decode */
    uint32_t kept;                        /* of keep() */
};

template <class CONFIG>
__device__ static inline two_warpgroups<CONFIG> two_warpgroups_of(uint32_t shared, uint32_t group)
{
    const uint32_t thread = __shfl_sync(0xffffffff, threadIdx.x % 128, threadIdx.x % 32);
    const uint32_t row = group * 64 + thread / 32 * 16 + thread % 32 / 4 * 2;
    two_warpgroups<CONFIG> at = {};
    at.codes = e2m1_reader_of(shared + CONFIG::AT_CODES + group * 64 * 128);
    at.shared = shared, at.scales = row % 32 * 16 + row / 32 * 4;
    at.notifies_of_rows = thread == 0, at.notifies_of_codes = thread % 32 == 0;
    return at;
}

template <class CONFIG>
__device__ static inline void begin_segment(const bsmi_gemm_parameters &p, two_warpgroups<CONFIG> &at, int32_t segment)
{
    at.segment = segment, at.number = 0;
    at.left = segment < p.segment_count ? p.segments[segment].blocks : 0;
}

/* Scales ----------------------------------------------------------------------------------------------------------- */

template <class CONFIG> __device__ static inline piece_scales read_piece(const two_warpgroups<CONFIG> &at)
{
    const uint32_t piece = at.number * BSMI_K_STEP / CONFIG::PIECE_COLUMNS * CONFIG::PIECE_BYTES;
    const uint32_t from = at.shared + CONFIG::AT_SCALES + at.codes_ring.stage * CONFIG::SCALE_BYTES + piece + at.scales;
    const uint32_t shift = CONFIG::CODES::MICRO ? 0 : at.number % 2 * 16;
    return { { load_shared(from) >> shift, load_shared(from + 16) >> shift } };
}

/* Steps ------------------------------------------------------------------------------------------------------------ */

/* The next step.  The one that ends a segment may leave others of the stage of codes unused. */
template <class CONFIG>
__device__ static inline void decode_next(const bsmi_gemm_parameters &p, two_warpgroups<CONFIG> &at,
                                          step_operand &operand)
{
    using CODES = typename CONFIG::CODES;
    using RING = typename CONFIG::codes_ring;
    const uint32_t stage = at.codes_ring.stage;
    if (at.number == 0) mbarrier_wait_parity(full_barrier<RING>(at.shared, stage), at.codes_ring.parity);
    const piece_scales scales = read_piece<CONFIG>(at);
    const e2m1_words words = gather_words(at.codes, read_rows<CONFIG>(at.codes, at.number, stage));
    at.number++, at.left--;
    if (at.number == CONFIG::CODE_STEPS || at.left == 0) {
        release_read_stage<CONFIG>(empty_barrier<RING>(at.shared, stage), at.notifies_of_codes);
        at.codes_ring.next();
        at.number = 0;
        if (at.left == 0) begin_segment<CONFIG>(p, at, at.segment + 1);
    }
    decode_step<CODES>(at.codes, words, halves_of_piece<CODES>(scales), operand);
}

/* The registers are read here, so that ptxas gives them to nothing else before the products that read them have been
 * waited for: before CUDA 13.3 it takes them for free once such a product has been issued (release notes of 13.3,
 * ptxas). */
__device__ static inline void keep(uint32_t &kept, const step_operand &operand)
{
#pragma unroll
    for (int i = 0; i < 16; i += 2)
        asm volatile("lop3.b32 %0, %0, %1, %2, 0x96;" : "+r"(kept) : "r"(operand[i]), "r"(operand[i + 1]));
}

template <class CONFIG> __device__ static inline void release_rows(const two_warpgroups<CONFIG> &at)
{
    release_stage<CONFIG>(empty_barrier<CONFIG>(at.shared, at.before), at.notifies_of_rows);
}

/* Step number `step`: its products are issued behind those of the step before, which are waited for then, and the next
 * step is decoded into the registers that they have read.  True if there is a next one. */
template <class CONFIG>
__device__ static inline bool sum_step(const bsmi_gemm_parameters &p, tile_sums<CONFIG> &sums,
                                       two_warpgroups<CONFIG> &at, int32_t step, int32_t steps, const step_operand &now,
                                       step_operand &other)
{
    const uint32_t stage = at.ring.stage;
    const uint32_t a = (uint32_t)wgmma_descriptor(at.shared + CONFIG::AT_A) + stage * (CONFIG::A_BYTES / 16);
    mbarrier_wait_parity(full_barrier<CONFIG>(at.shared, stage), at.ring.parity);
    multiply_step<CONFIG>(sums, now, a);
    keep(at.kept, other);
    if (step > 0) release_rows<CONFIG>(at);
    at.before = stage;
    at.ring.next();
    if (step + 1 == steps) return false;
    decode_next<CONFIG>(p, at, other);
    return true;
}

/* The sums of a tile, K ascending, 16 columns at a time, as sum_tile of shared_memory_consumer.cuh makes them. */
template <class CONFIG>
__device__ static inline void sum_steps(const bsmi_gemm_parameters &p, tile_sums<CONFIG> &sums,
                                        two_warpgroups<CONFIG> &at, int32_t steps)
{
    step_operand even, odd = {};
#pragma unroll
    for (int i = 0; i < CONFIG::PRODUCT_SUMS; i++) sums[i] = 0;
    begin_segment<CONFIG>(p, at, 0);
    decode_next<CONFIG>(p, at, even);
    for (int32_t step = 0;; step += 2) {
        if (!sum_step<CONFIG>(p, sums, at, step, steps, even, odd)) break;
        if (!sum_step<CONFIG>(p, sums, at, step + 1, steps, odd, even)) break;
    }
    wgmma_wait_group<0>();
    keep(at.kept, even);
    keep(at.kept, odd);
    hold<CONFIG>(sums);
    release_rows<CONFIG>(at);
}

template <class CONFIG>
__device__ static inline void consume_two(const bsmi_gemm_parameters &p, uint32_t shared, uint32_t group)
{
    transposed_sums<CONFIG> sums;
    two_warpgroups<CONFIG> at = two_warpgroups_of<CONFIG>(shared, group);
    const gemm_finish finish = gemm_finish_of(p);
    const int64_t tiles = gemm_tiles(p);
    const int32_t steps = steps_of_k(p);
    for (int64_t number = blockIdx.x; number < tiles; number += gridDim.x) {
        gemm_tile tile = gemm_tile_of<CONFIG>(p, number, { 0, 0 });
        tile.column += (int32_t)group * 64;
        const bool scaled = fill_tables<CONFIG>(p, finish, tile, shared, group);
        sum_steps<CONFIG>(p, sums[0], at, steps);
        finish_transposed_tile<CONFIG>(p, finish, tile, transposed_tile_of<CONFIG>(p, tile, shared, group, scaled),
                                       sums);
    }
    if (p.segment_count > BSMI_MOST_SEGMENTS) store_shared(shared, at.kept);      /* never, which ptxas does not know */
}
