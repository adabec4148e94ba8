/* The consumers: warpgroups that take turns at the same tile, 64 rows of B and the rows of A.
 *
 * In its turn a warpgroup multiplies six steps of K, and the sums go on to the next one by way of shared memory: K stays one chain of
 * sums.  It decodes its turn into registers while the others have theirs.  Each warp has its own part of the sums, and waits for no other
 * warp than the one that had this part before it. */
#pragma once

#include "cuda/ptx/named_barriers.cuh"
#include "cuda/sm90/operand/packed_decoder.cuh"
#include "cuda/sm90/epilogue/packed_epilogue.cuh"
#include "cuda/sm90/pipeline/packed_producer.cuh"
#include "turns.cuh"

/* Where a warpgroup is. */
template <class CONFIG> struct packed_place {
    gemm_ring<CONFIG> ring;
    gemm_ring<typename CONFIG::panel_ring> panel_ring;
    uint32_t shared, group, warp, lane;   /* warp: of the warpgroup */
    uint32_t codes, scales;               /* addresses of this thread's in stage 0 */
};

/* Numbers of threads come by way of shfl, so that ptxas does not read special registers again wherever they are wanted. */
template <class CONFIG> __device__ static inline packed_place<CONFIG> packed_place_of(uint32_t shared)
{
    const uint32_t lane = __shfl_sync(0xffffffff, threadIdx.x % 32, threadIdx.x % 32),
                   number = __shfl_sync(0xffffffff, threadIdx.x / 32, 0);
    const uint32_t group = number / 4, warp = number % 4, panels = shared + CONFIG::AT_PANELS;
    constexpr uint32_t OF_TWO_ROWS = 2 * BSMI_PANEL_COLUMNS / CONFIG::BLOCK;
    return { { group, 0 },
             { group, 0 },
             shared,
             group,
             warp,
             lane,
             panels + (warp * 32 + lane) * 16,
             panels + BSMI_PANEL_CODE_BYTES + (warp * 8 + lane / 4) * OF_TWO_ROWS };
}

/* Sums -------------------------------------------------------------------------------------------------------------------------- */

/* The barrier at which a warp waits for the one that has the turn before. */
template <class CONFIG> __device__ static inline uint32_t barrier_of_group(const packed_place<CONFIG> &at, uint32_t group)
{
    return 1 + CONFIG::GROUPS + group * 4 + at.warp;
}

/* The kernel's first turn waits for nobody. */
template <class CONFIG> __device__ static inline void take_sums(const packed_place<CONFIG> &at, bool first, bool waits, turn_sums<CONFIG> &sums)
{
    if (waits) barrier_sync(barrier_of_group<CONFIG>(at, at.group), 64);
#pragma unroll
    for (int i = 0; i < CONFIG::PRODUCT_SUMS; i += 4) {
        const uint4 v = first ? make_uint4(0, 0, 0, 0) : load_shared_v4(place_of_sums<CONFIG>(at) + i / 4 * 2048);
        sums[i] = __uint_as_float(v.x), sums[i + 1] = __uint_as_float(v.y), sums[i + 2] = __uint_as_float(v.z),
        sums[i + 3] = __uint_as_float(v.w);
    }
}

/* Those of a tile's last turn stay; for the kernel's last one nobody waits. */
template <class CONFIG> __device__ static inline void give_sums(const packed_place<CONFIG> &at, bool last, bool waited_for, const turn_sums<CONFIG> &sums)
{
#pragma unroll
    for (int i = 0; i < CONFIG::PRODUCT_SUMS && !last; i += 4)
        store_shared_v4(place_of_sums<CONFIG>(at) + i / 4 * 2048,
                        make_uint4(__float_as_uint(sums[i]), __float_as_uint(sums[i + 1]), __float_as_uint(sums[i + 2]), __float_as_uint(sums[i + 3])));
    if (waited_for) barrier_arrive(barrier_of_group<CONFIG>(at, at.group + 1 == CONFIG::GROUPS ? 0 : at.group + 1), 64);
}

/* Turns ------------------------------------------------------------------------------------------------------------------------- */

template <class CODES, panel_range RANGE>
__device__ static inline void decode_steps(const uint4 (&codes)[BSMI_PANEL_STEPS], const panel_scales<CODES> &scales,
                                           uint32_t (&operand)[BSMI_PANEL_STEPS][16])
{
#pragma unroll
    for (int step = 0; step < BSMI_PANEL_STEPS; step++)
#pragma unroll
        for (int row = 0; row < 2; row++) decode_panel_row<CODES, RANGE>(codes[step], scales.words[step], row, operand[step]);
}

template <class CONFIG> __device__ static inline void decode_panel(const packed_place<CONFIG> &at, turn_operand<CONFIG> &operand)
{
    using CODES = typename CONFIG::CODES;
    const uint32_t stage = at.panel_ring.stage * CONFIG::PANEL_BYTES;
    const panel_scales<CODES> scales = read_panel_scales<CODES>(at.scales + stage);
    uint4 codes[CONFIG::STEPS];
#pragma unroll
    for (int step = 0; step < CONFIG::STEPS; step++) codes[step] = load_shared_v4(at.codes + stage + step * 2048);
    if (are_large(scales)) decode_steps<CODES, PANEL_LARGE>(codes, scales, operand);
    else decode_steps<CODES, PANEL_SMALL>(codes, scales, operand);
}

/* Where a turn lies among all those of the CTA. */
struct packed_turn { bool first_of_tile, last_of_tile, first, last; };

template <class CONFIG>
__device__ static inline void take_packed_turn(packed_place<CONFIG> &at, const packed_turn &turn, turn_sums<CONFIG> &sums)
{
    using PANELS = typename CONFIG::panel_ring;
    turn_operand<CONFIG> operand;
    mbarrier_wait_parity(full_barrier<PANELS>(at.shared, at.panel_ring.stage), at.panel_ring.parity);
    decode_panel<CONFIG>(at, operand);
    fence_proxy_async_shared();           /* behind the reads of the stage, before the copy engine fills it again */
    __syncwarp();
    if (at.lane == 0) mbarrier_arrive(empty_barrier<PANELS>(at.shared, at.panel_ring.stage));
    const uint32_t a = rows_of_turn<CONFIG>(at);
    mbarrier_wait_parity(full_barrier<CONFIG>(at.shared, at.ring.stage), at.ring.parity);
    take_sums<CONFIG>(at, turn.first_of_tile, !turn.first, sums);
    multiply_turn<CONFIG>(a, operand, sums);
    give_sums<CONFIG>(at, turn.last_of_tile, !turn.last, sums);
    if (at.lane == 0) mbarrier_arrive(empty_barrier<CONFIG>(at.shared, at.ring.stage));
    at.panel_ring.advance(CONFIG::GROUPS);
    at.ring.advance(CONFIG::GROUPS);
}

/* Tiles ------------------------------------------------------------------------------------------------------------------------- */

template <class CONFIG>
__device__ static inline void consume_packed(const bsmi_mixed_input_parameters &p, unsigned char *memory, uint32_t shared)
{
    decoded_sums<CONFIG> sums;
    packed_place<CONFIG> at = packed_place_of<CONFIG>(shared);
    const int64_t tiles = gemm_tiles(p), step = gridDim.x;
    const int32_t turns = turns_of_panel<CONFIG>(p);
    int32_t turn = (int32_t)at.group;
    for (int64_t number = blockIdx.x; number < tiles; number += step, turn -= turns) {
        const gemm_tile tile = turn_tile_of<CONFIG>(p, number);
        const bool finishes = (turns - 1 - turn) % CONFIG::GROUPS == 0, is_first = number < step, is_last = number + step >= tiles;
        packed_finish finish = {};
        if (finishes) finish = begin_packed_finish<CONFIG>(p, tile, shared, at.group);
#pragma unroll 1
        for (; turn < turns; turn += CONFIG::GROUPS) {
            const bool begins = turn == 0, ends = turn + 1 == turns;
            if (ends) ask_for_row_exponents<CONFIG>(p, tile, finish);
            take_packed_turn<CONFIG>(at, { begins, ends, begins && is_first, ends && is_last }, sums[0]);
        }
        if (finishes) end_packed_finish<CONFIG>(p, memory, finish, tile, shared, at.group, sums);
    }
}
