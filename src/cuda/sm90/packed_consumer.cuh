/* The consumers: warpgroups that take turns at the same tile, 64 rows of B and the rows of A.
 *
 * In its turn a warpgroup multiplies four steps of K, and the sums go on to the next one by way of shared memory: K stays one chain of
 * sums.  It decodes its turn into registers while the others have theirs.  Each warp has its own part of the sums, and waits for no other
 * warp than the one that had this part before it. */
#pragma once

#include "decoding_epilogue.cuh"
#include "packed_decoder.cuh"
#include "packed_producer.cuh"
#include "register_left_out.cuh"

/* Where a warpgroup is. */
template <class CONFIG> struct packed_place {
    gemm_ring<CONFIG> ring;
    gemm_ring<typename CONFIG::panel_ring> panel_ring;
    uint32_t shared, group, warp, lane;   /* warp: of the warpgroup */
    uint32_t codes, scales;               /* addresses of this thread's in stage 0 */
    uint32_t parity;                      /* of its turn's barrier */
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
             panels + BSMI_PANEL_CODE_BYTES + (warp * 8 + lane / 4) * OF_TWO_ROWS,
             0 };
}

/* Sums -------------------------------------------------------------------------------------------------------------------------- */

template <class CONFIG> __device__ static inline void take_sums(packed_place<CONFIG> &at, bool first, turn_sums<CONFIG> &sums)
{
    mbarrier_wait_parity(barrier_of_turn<CONFIG>(at, at.group), at.parity);
    at.parity ^= 1;
#pragma unroll
    for (int i = 0; i < CONFIG::PRODUCT_SUMS; i += 4) {
        const uint4 v = first ? make_uint4(0, 0, 0, 0) : load_shared_v4(place_of_sums<CONFIG>(at) + i / 4 * 2048);
        sums[i] = __uint_as_float(v.x), sums[i + 1] = __uint_as_float(v.y), sums[i + 2] = __uint_as_float(v.z),
        sums[i + 3] = __uint_as_float(v.w);
    }
}

/* Those of the last turn stay. */
template <class CONFIG> __device__ static inline void give_sums(const packed_place<CONFIG> &at, bool last, const turn_sums<CONFIG> &sums)
{
#pragma unroll
    for (int i = 0; i < CONFIG::PRODUCT_SUMS && !last; i += 4)
        store_shared_v4(place_of_sums<CONFIG>(at) + i / 4 * 2048,
                        make_uint4(__float_as_uint(sums[i]), __float_as_uint(sums[i + 1]), __float_as_uint(sums[i + 2]), __float_as_uint(sums[i + 3])));
    __syncwarp();
    if (at.lane == 0) mbarrier_arrive(barrier_of_turn<CONFIG>(at, at.group + 1 == CONFIG::GROUPS ? 0 : at.group + 1));
}

/* Turns ------------------------------------------------------------------------------------------------------------------------- */

template <class CONFIG> __device__ static inline void decode_panel(const packed_place<CONFIG> &at, turn_operand<CONFIG> &operand)
{
    using CODES = typename CONFIG::CODES;
    const uint32_t stage = at.panel_ring.stage * CONFIG::PANEL_BYTES;
    const panel_scales<CODES> scales = read_panel_scales<CODES>(at.scales + stage);
    uint4 codes[CONFIG::STEPS];
#pragma unroll
    for (int step = 0; step < CONFIG::STEPS; step++) codes[step] = load_shared_v4(at.codes + stage + step * 2048);
    if (are_large(scales)) decode_steps<CODES, true>(codes, scales, operand);
    else decode_steps<CODES, false>(codes, scales, operand);
}

template <class CONFIG>
__device__ static inline void take_packed_turn(packed_place<CONFIG> &at, int32_t turn, int32_t turns, turn_sums<CONFIG> &sums)
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
    take_sums<CONFIG>(at, turn == 0, sums);
    multiply_turn<CONFIG>(a, operand, sums);
    give_sums<CONFIG>(at, turn + 1 == turns, sums);
    if (at.lane == 0) mbarrier_arrive(empty_barrier<CONFIG>(at.shared, at.ring.stage));
    at.panel_ring.advance(CONFIG::GROUPS);
    at.ring.advance(CONFIG::GROUPS);
}

/* Tiles ------------------------------------------------------------------------------------------------------------------------- */

/* What the warpgroup that finishes a tile reads in front of its first turn: while that comes, or the others have theirs. */
struct packed_finish {
    gemm_finish finish;
    bool scaled;
};

template <class CONFIG>
__device__ static inline packed_finish begin_packed_finish(const bsmi_gemm_parameters &p, const gemm_tile &tile, const packed_place<CONFIG> &at)
{
    griddepcontrol_wait();
    const gemm_finish finish = gemm_finish_of(p);
    return { finish, fill_tables<CONFIG>(p, finish, tile, at.shared, at.group) };
}

template <class CONFIG>
__device__ static inline void end_packed_finish(const bsmi_gemm_parameters &p, unsigned char *memory, const packed_finish &f,
                                                const gemm_tile &tile, const packed_place<CONFIG> &at, const decoded_sums<CONFIG> &sums)
{
    decoded_tile d = decoded_tile_of<CONFIG>(p, tile, at.shared, at.group, f.scaled);
    d.chunk -= at.group * 4 * CONFIG::CHUNK * CONFIG::CHUNK_PITCH; /* one warpgroup finishes at a time */
    static_assert(sizeof(left_out_memory) <= CONFIG::CHUNKS_BYTES && CONFIG::AT_CHUNKS % 8 == 0, "lies where sums went to D");
    finish_decoded_tile<CONFIG>(p, f.finish, tile, d, sums);
    const uint32_t tables = tables_of<CONFIG>(at.shared, at.group);
    if (f.scaled)
        compute_left_out(p, tile, (left_out_memory *)(memory + CONFIG::AT_CHUNKS), CONFIG::ROWS, tables,
                         tables + CONFIG::ROW_TABLE_BYTES, 1 + at.group);
}

template <class CONFIG>
__device__ static inline void consume_packed(const bsmi_gemm_parameters &p, unsigned char *memory, uint32_t shared)
{
    decoded_sums<CONFIG> sums;
    packed_place<CONFIG> at = packed_place_of<CONFIG>(shared);
    const int64_t tiles = gemm_tiles(p);
    const int32_t turns = turns_of<CONFIG>(p);
    int32_t turn = (int32_t)at.group;
    for (int64_t number = blockIdx.x; number < tiles; number += gridDim.x, turn -= turns) {
        const gemm_tile tile = gemm_tile_of<CONFIG>(p, number, { 0, 0 });
        const bool finishes = (turns - 1 - turn) % CONFIG::GROUPS == 0;
        packed_finish finish = {};
        if (finishes) finish = begin_packed_finish<CONFIG>(p, tile, at);
#pragma unroll 1
        for (; turn < turns; turn += CONFIG::GROUPS) take_packed_turn<CONFIG>(at, turn, turns, sums[0]);
        if (finishes) end_packed_finish<CONFIG>(p, memory, finish, tile, at, sums);
    }
}
