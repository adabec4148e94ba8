/* One consumer warpgroup: it decodes 64 rows of B as they are stored, step by step, and multiplies them with the rows
 * of A.
 *
 *     step        s                s + 1            s + 2
 *     codes       read at s - 1    read at s        read at s + 1
 *     decoded     even registers   odd registers    even registers
 *     products    issued -> made   issued -> made
 *                 while s + 1 is decoded
 *
 * Steps come in pairs, so that each of the two operands has registers of its own. */
#pragma once

#include "cuda/sm90/epilogue/mixed_input_epilogue.cuh"
#include "cuda/sm90/operand/tile_scales.cuh"
#include "cuda/sm90/pipeline/mixed_input_producer.cuh"
#include "mixed_input_multiply.cuh"

/* What a thread keeps from stage to stage. */
template <class CONFIG> struct one_warpgroup {
    e2m1_reader codes;
    scale_reader scales;
    gemm_ring<CONFIG> ring;
    uint32_t a;                           /* low half of the descriptor of stage 0 */
    uint32_t full, empty;                 /* barriers of stage 0 */
    bool notifies;                        /* the producer, for its warp */
};

template <class CONFIG> __device__ static inline one_warpgroup<CONFIG> one_warpgroup_of(uint32_t shared)
{
    const uint32_t lane = __shfl_sync(0xffffffff, threadIdx.x % 32, threadIdx.x % 32);
    return { e2m1_reader_of(shared + CONFIG::AT_CODES),
             { 0, { 0x3210, 0x3210 } },
             { 0, 0 },
             (uint32_t)wgmma_descriptor(shared + CONFIG::AT_A),
             shared + CONFIG::AT_FULL,
             shared + CONFIG::AT_EMPTY,
             lane == 0 };
}

template <class CONFIG> __device__ static inline void await_stage(const one_warpgroup<CONFIG> &at)
{
    mbarrier_wait_parity(at.full + at.ring.stage * 8, at.ring.parity);
}

/* The stage before this one. */
template <class CONFIG>
__device__ static inline void release_last_stage(const one_warpgroup<CONFIG> &at, uint32_t stage)
{
    release_read_stage<CONFIG>(at.empty + stage_before<CONFIG>(stage) * 8, at.notifies);
}

/* What a pair of steps begins with. */
template <class CONFIG> struct step_pair {
    e2m1_rows codes;
    step_scales<typename CONFIG::CODES> scales;
};

template <class CONFIG, int NUMBER>
__device__ static inline step_pair<CONFIG> read_pair(const one_warpgroup<CONFIG> &at, int32_t step)
{
    return { read_rows<CONFIG>(at.codes, NUMBER, at.ring.stage), read_scales<CONFIG>(at.scales, step) };
}

/* Steps NUMBER and NUMBER + 1 of the stage; `pair` becomes the next one, if there is one.
 * The result of redux is in a uniform register, where wgmma wants its descriptors. */
template <class CONFIG, int NUMBER, bool SPECIAL>
__device__ static inline void sum_pair(tile_sums<CONFIG> &sums, one_warpgroup<CONFIG> &at, step_pair<CONFIG> &pair,
                                       int32_t step, int32_t steps)
{
    using CODES = typename CONFIG::CODES;
    constexpr uint32_t STEP = CONFIG::A_BYTES / 16;
    uint32_t even[16], odd[16];
    const uint32_t stage = at.ring.stage,
                   a = __reduce_or_sync(0xffffffff, at.a + stage * CONFIG::STEPS * STEP) + NUMBER * STEP;
    const e2m1_rows next = read_rows<CONFIG>(at.codes, NUMBER + 1, stage);
    decode_step<CODES>(at.codes, pair.codes, halves_of<CODES, 0, SPECIAL>(pair.scales), even);
    multiply_step<CONFIG>(sums, even, a);
    if (NUMBER == 0 && step > 0) release_last_stage<CONFIG>(at, stage);
    const step_scales<CODES> scales = pair.scales;
    const bool last = step + 2 >= steps;
    if (NUMBER != 0 || last) at.ring.next();
    if (!last) {
        if (NUMBER != 0) await_stage<CONFIG>(at);
        pair = read_pair<CONFIG, NUMBER == 0 ? 2 : 0>(at, step + 2);
    }
    decode_step<CODES>(at.codes, next, halves_of<CODES, 1, SPECIAL>(scales), odd);
    multiply_step<CONFIG>(sums, odd, a + STEP);
}

/* The sums of a tile, K ascending, 16 columns at a time, as sum_tile of shared_memory_consumer.cuh makes them.
 * SPECIAL: for all four warps alike. */
template <class CONFIG, bool SPECIAL>
__device__ static inline void sum_steps(tile_sums<CONFIG> &sums, one_warpgroup<CONFIG> &at, int32_t steps)
{
#pragma unroll
    for (int i = 0; i < CONFIG::PRODUCT_SUMS; i++) sums[i] = 0;
    await_stage<CONFIG>(at);
    step_pair<CONFIG> pair = read_pair<CONFIG, 0>(at, 0);
#pragma unroll 1
    for (int32_t step = 0; step < steps; step += CONFIG::STEPS) {
        sum_pair<CONFIG, 0, SPECIAL>(sums, at, pair, step, steps);
        if (step + 2 < steps) sum_pair<CONFIG, 2, SPECIAL>(sums, at, pair, step + 2, steps);
    }
    wgmma_wait_group<0>();
    hold<CONFIG>(sums);
    release_last_stage<CONFIG>(at, at.ring.stage);
}

template <class CONFIG>
__device__ static inline void consume_one(const bsmi_mixed_input_parameters &p, uint32_t shared)
{
    constexpr uint32_t TABLES = CONFIG::AT_TABLES, EXPONENTS = TABLES + CONFIG::ROW_TABLE_BYTES;
    static_assert(sizeof(fallback_memory) <= 64 * CONFIG::SCALE_PITCH && CONFIG::AT_SCALES % 8 == 0,
                  "lies where scales were");
    transposed_sums<CONFIG> sums;
    one_warpgroup<CONFIG> at = one_warpgroup_of<CONFIG>(shared);
    const int64_t tiles = gemm_tiles(p);
    const int32_t steps = paired_steps(p);
    for (int64_t number = blockIdx.x; number < tiles; number += gridDim.x) {
        const gemm_tile tile = gemm_tile_of<CONFIG>(p, number, { 0, 0 });
        const scale_rows scales = own_scale_rows<CONFIG>(p, tile, shared);
        __syncwarp();                     /* those of the tile before are read */
        begin_scales<CONFIG>(p, tile, scales);
        set_scale_reader<CONFIG>(p, scales, at.scales);
        const gemm_finish finish = gemm_finish_of(p);
        const bool scaled = fill_tables<CONFIG>(p, finish, tile, shared, 0);
        const scale_findings found =
            end_scales<CONFIG>(p, tile, scales, shared + EXPONENTS + threadIdx.x / 32 * 64, steps);
        if (barrier_or(1, 128, found.special)) sum_steps<CONFIG, true>(sums[0], at, steps);
        else sum_steps<CONFIG, false>(sums[0], at, steps);
        finish_transposed_tile<CONFIG>(p, finish, tile,
                                    transposed_tile_of<CONFIG>(p, tile, shared, 0, scaled || found.exponents), sums);
        if ((!CONFIG::CODES::MICRO || p.epilogue.a_exponents != nullptr)
            && barrier_or(1, 128, scaled || found.exponents))
            compute_fallback(p, tile, (fallback_memory *)__cvta_shared_to_generic(shared + CONFIG::AT_SCALES),
                             CONFIG::ROWS, 64, shared + TABLES, shared + EXPONENTS, 1);
    }
}
