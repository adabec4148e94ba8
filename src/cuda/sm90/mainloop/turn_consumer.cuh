/* The consumers: warpgroups that take turns at the same tile, 64 rows of B and the rows of A.
 *
 * In its turn a warpgroup multiplies four steps of K, and the sums go on to the next one by way of shared memory: K stays one chain of
 * sums.  It decodes the codes of its turn before, into registers, while the others have theirs.  Each warp has its own part of the sums, and
 * waits for no other warp than the one that had this part before it. */
#pragma once

#include "cuda/sm90/epilogue/decoding_epilogue.cuh"
#include "cuda/sm90/operand/register_decoder.cuh"
#include "cuda/sm90/epilogue/fallback_rows.cuh"
#include "cuda/sm90/operand/register_scales.cuh"
#include "cuda/sm90/pipeline/turn_producer.cuh"

/* Where a warpgroup is. */
template <class CONFIG> struct turn_place {
    register_reader reader;
    gemm_ring<CONFIG> ring;
    gemm_ring<typename CONFIG::codes_ring> codes_ring;
    uint32_t shared, group, warp, lane;   /* warp: of the warpgroup */
    uint32_t parity;                      /* of its turn's barrier */
};

/* Numbers of threads come by way of shfl, so that ptxas does not read special registers again wherever they are wanted. */
template <class CONFIG> __device__ static inline turn_place<CONFIG> turn_place_of(uint32_t shared)
{
    const uint32_t lane = __shfl_sync(0xffffffff, threadIdx.x % 32, threadIdx.x % 32), number = __shfl_sync(0xffffffff, threadIdx.x / 32, 0);
    const uint32_t group = number / 4;
    return { register_reader_of<CONFIG>(shared), { group % CONFIG::STAGES, group / CONFIG::STAGES % 2 }, { group, 0 }, shared, group, number % 4, lane, 0 };
}

/* To the same warpgroup's next turn. */
template <class RING, int GROUPS> __device__ static inline void advance_turns(gemm_ring<RING> &ring)
{
    ring.stage += GROUPS % RING::STAGES;
    ring.parity ^= GROUPS / RING::STAGES % 2;
    if (ring.stage < RING::STAGES) return;
    ring.stage -= RING::STAGES;
    ring.parity ^= 1;
}

/* Scales ------------------------------------------------------------------------------------------------------------------------ */

template <class CONFIG> __device__ static inline register_source brought_source(const bsmi_mixed_input_parameters &p, uint32_t shared, const gemm_tile &tile)
{
    return register_source_of<CONFIG>(p, tile, shared + CONFIG::AT_SCALES, brought_rows<CONFIG>());
}

/* Of this CTA's n-th tile, once nobody reads those of the one before. */
template <class CONFIG>
__device__ static inline void bring_scales(const bsmi_mixed_input_parameters &p, uint32_t shared, const gemm_tile &tile, uint32_t n, int32_t turns)
{
    if (threadIdx.x >= 32 * CONFIG::BRINGERS) return;
    const register_source source = brought_source<CONFIG>(p, shared, tile);
    mbarrier_wait_parity(shared + CONFIG::AT_READ, n % 2 ^ 1);
    begin_scales<CONFIG>(p, tile, source);
    const register_findings found =
        end_scales<CONFIG>(p, tile, source, shared + CONFIG::AT_EXPONENTS + brought_rows<CONFIG>() * 4, turns * CONFIG::STEPS);
    if (threadIdx.x % 32 == 0) store_shared(shared + CONFIG::AT_FOUND + threadIdx.x / 32 * 4, (found.special ? 1 : 0) | (found.exponents ? 2 : 0));
    __syncwarp();
    if (threadIdx.x % 32 == 0) mbarrier_arrive(shared + CONFIG::AT_READY);
}

/* What all warps have found. */
template <class CONFIG>
__device__ static inline register_findings await_scales(const bsmi_mixed_input_parameters &p, turn_place<CONFIG> &at, const gemm_tile &tile, uint32_t n)
{
    mbarrier_wait_parity(at.shared + CONFIG::AT_READY, n % 2);
    const uint32_t found = load_shared(at.shared + CONFIG::AT_FOUND + at.lane % CONFIG::BRINGERS * 4);
    aim_at_scales<CONFIG>(p, register_source_of<CONFIG>(p, tile, at.shared + CONFIG::AT_SCALES, (int32_t)at.warp * 16), at.reader);
    return { __any_sync(0xffffffff, found & 1) != 0, __any_sync(0xffffffff, found & 2) != 0 };
}

/* Sums -------------------------------------------------------------------------------------------------------------------------- */

template <class CONFIG> __device__ static inline void take_sums(const turn_place<CONFIG> &at, bool first, turn_sums<CONFIG> &sums)
{
#pragma unroll
    for (int i = 0; i < CONFIG::PRODUCT_SUMS; i += 4) {
        const uint4 v = first ? make_uint4(0, 0, 0, 0) : load_shared_v4(place_of_sums<CONFIG>(at) + i / 4 * 2048);
        sums[i] = __uint_as_float(v.x), sums[i + 1] = __uint_as_float(v.y), sums[i + 2] = __uint_as_float(v.z), sums[i + 3] = __uint_as_float(v.w);
    }
}

template <class CONFIG> __device__ static inline void give_sums(const turn_place<CONFIG> &at, const turn_sums<CONFIG> &sums)
{
#pragma unroll
    for (int i = 0; i < CONFIG::PRODUCT_SUMS; i += 4)
        store_shared_v4(place_of_sums<CONFIG>(at) + i / 4 * 2048, make_uint4(__float_as_uint(sums[i]), __float_as_uint(sums[i + 1]),
                                                                             __float_as_uint(sums[i + 2]), __float_as_uint(sums[i + 3])));
}

/* Turns ------------------------------------------------------------------------------------------------------------------------- */

/* The codes of a step are read while those of the one before are decoded. */
template <class CONFIG, bool SPECIAL>
__device__ static inline void decode_turn(const turn_place<CONFIG> &at, int32_t turn, turn_operand<CONFIG> &operand)
{
    using CODES = typename CONFIG::CODES;
    const uint32_t stage = at.codes_ring.stage;
    const register_scales<CODES> first = read_scales<CONFIG>(at.reader, turn * CONFIG::STEPS);
    const register_codes c0 = read_step<CONFIG, 0>(at.reader, stage), c1 = read_step<CONFIG, 1>(at.reader, stage);
    decode_step<CODES, 0, SPECIAL>(at.reader, c0, first, operand[0]);
    const register_scales<CODES> second = read_scales<CONFIG>(at.reader, turn * CONFIG::STEPS + 2);
    const register_codes c2 = read_step<CONFIG, 2>(at.reader, stage);
    decode_step<CODES, 1, SPECIAL>(at.reader, c1, first, operand[1]);
    const register_codes c3 = read_step<CONFIG, 3>(at.reader, stage);
    decode_step<CODES, 0, SPECIAL>(at.reader, c2, second, operand[2]);
    decode_step<CODES, 1, SPECIAL>(at.reader, c3, second, operand[3]);
}

/* The sums of the last turn stay. */
template <class CONFIG, bool SPECIAL>
__device__ static inline void take_turn(turn_place<CONFIG> &at, int32_t turn, int32_t turns, turn_sums<CONFIG> &sums)
{
    using CODES_RING = typename CONFIG::codes_ring;
    turn_operand<CONFIG> operand;
    mbarrier_wait_parity(full_barrier<CODES_RING>(at.shared, at.codes_ring.stage), at.codes_ring.parity);
    decode_turn<CONFIG, SPECIAL>(at, turn, operand);
    fence_proxy_async_shared();           /* behind the reads of the stage, before the copy engine fills it again */
    __syncwarp();
    if (at.lane == 0) mbarrier_arrive(empty_barrier<CODES_RING>(at.shared, at.codes_ring.stage));
    if (at.lane == 0 && turn + CONFIG::GROUPS >= turns) mbarrier_arrive(at.shared + CONFIG::AT_READ);
    const uint32_t a = rows_of_turn<CONFIG>(at);
    mbarrier_wait_parity(full_barrier<CONFIG>(at.shared, at.ring.stage), at.ring.parity);
    mbarrier_wait_parity(barrier_of_turn<CONFIG>(at, at.group), at.parity);
    take_sums<CONFIG>(at, turn == 0, sums);
    multiply_turn<CONFIG>(a, operand, sums);
    if (turn + 1 < turns) give_sums<CONFIG>(at, sums);
    __syncwarp();
    if (at.lane == 0) mbarrier_arrive(barrier_of_turn<CONFIG>(at, at.group + 1 == CONFIG::GROUPS ? 0 : at.group + 1));
    if (at.lane == 0) mbarrier_arrive(empty_barrier<CONFIG>(at.shared, at.ring.stage));
    at.parity ^= 1;
    advance_turns<CONFIG, CONFIG::GROUPS>(at.ring);
    advance_turns<CODES_RING, CONFIG::GROUPS>(at.codes_ring);
}

/* Tiles ------------------------------------------------------------------------------------------------------------------------- */

/* exponent: of the tile's column whose number is this thread's in the warpgroup. */
template <class CONFIG>
__device__ static inline bool fill_all_tables(const bsmi_mixed_input_parameters &p, const gemm_finish &finish, const gemm_tile &tile,
                                              const turn_place<CONFIG> &at, bool exponents, uint32_t exponent)
{
    const bool scaled = fill_tables<CONFIG>(p, finish, tile, at.shared, at.group);
    const uint32_t thread = at.warp * 32 + at.lane, to = tables_of<CONFIG>(at.shared, at.group) + CONFIG::ROW_TABLE_BYTES;
    if (exponents && thread < CONFIG::COLUMNS) store_shared(to + thread * 4, exponent);
    barrier_sync(1 + at.group, 128);
    return scaled || exponents;
}

template <class CONFIG>
__device__ static inline void finish_tile(const bsmi_mixed_input_parameters &p, unsigned char *memory, const gemm_finish &finish, const gemm_tile &tile,
                                          const turn_place<CONFIG> &at, bool scaled, const decoded_sums<CONFIG> &sums)
{
    decoded_tile d = decoded_tile_of<CONFIG>(p, tile, at.shared, at.group, scaled);
    d.chunk -= at.group * 4 * CONFIG::CHUNK * CONFIG::CHUNK_PITCH;       /* one warpgroup finishes at a time */
    static_assert(sizeof(left_out_memory) <= CONFIG::CHUNKS_BYTES && CONFIG::AT_CHUNKS % 8 == 0, "lies where sums went to D");
    finish_decoded_tile<CONFIG>(p, finish, tile, d, sums);
    const uint32_t tables = tables_of<CONFIG>(at.shared, at.group);
    if (scaled) compute_left_out(p, tile, (left_out_memory *)(memory + CONFIG::AT_CHUNKS), CONFIG::ROWS, 64, tables, tables + CONFIG::ROW_TABLE_BYTES, 1 + at.group);
}

template <class CONFIG> __device__ static inline void consume_turns(const bsmi_mixed_input_parameters &p, unsigned char *memory, uint32_t shared)
{
    decoded_sums<CONFIG> sums;
    turn_place<CONFIG> at = turn_place_of<CONFIG>(shared);
    const int64_t tiles = gemm_tiles(p);
    const int32_t turns = turns_of<CONFIG>(p);
    int32_t turn = (int32_t)at.group;
    int64_t number = blockIdx.x;
    if (number >= tiles) return;
    gemm_tile tile = turn_tile_of<CONFIG>(p, number);
    for (uint32_t n = 0; number < tiles; n++, turn -= turns) {
        const gemm_tile now = tile;
        const bool finishes = (turns - 1 - turn) % CONFIG::GROUPS == 0;
        gemm_finish finish = {};
        bool scaled = false;
        if (n == 0) bring_scales<CONFIG>(p, shared, now, n, turns);
        const register_findings found = await_scales<CONFIG>(p, at, now, n);
        /* Read while this tile's scales are: the next one's exponents lie there as soon as all are decoded. */
        const uint32_t exponent = load_shared(shared + CONFIG::AT_EXPONENTS + threadIdx.x % CONFIG::COLUMNS * 4);
        for (bool first = true; turn < turns; turn += CONFIG::GROUPS, first = false) {
            if (found.special) take_turn<CONFIG, true>(at, turn, turns, sums[0]);
            else take_turn<CONFIG, false>(at, turn, turns, sums[0]);
            if (!first || !finishes) continue;
            griddepcontrol_wait();
            finish = gemm_finish_of(p);
            scaled = fill_all_tables<CONFIG>(p, finish, now, at, found.exponents, exponent);
        }
        number += gridDim.x;
        if (number < tiles) {             /* in front of finishing: the others wait for these scales */
            tile = turn_tile_of<CONFIG>(p, number);
            bring_scales<CONFIG>(p, shared, tile, n + 1, turns);
        }
        if (finishes) finish_tile<CONFIG>(p, memory, finish, now, at, scaled, sums);
    }
}
