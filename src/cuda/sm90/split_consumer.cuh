/* The consumers: warpgroups that take turns at the same tile, 64 rows of B and the rows of A, each with sums of its own
 * turns.
 *
 * While the products of one step are made, the next is decoded into other registers.  When a tile's turns are over, the
 * warpgroup that had the last one takes the sums of the others, and finishes the tile, or sends them to the other CTA of the
 * cluster. */
#pragma once

#include "cuda/ptx/wgmma_registers.cuh"
#include "cuda/sm90/epilogue/decoding_epilogue.cuh"
#include "cuda/sm90/operand/register_decoder.cuh"
#include "cuda/sm90/epilogue/fallback_rows.cuh"
#include "cuda/sm90/operand/register_scales.cuh"
#include "split_producer.cuh"
#include "split_sums.cuh"

/* Where a warpgroup is. */
template <class CONFIG> struct split_place {
    register_reader reader;
    gemm_ring<CONFIG> ring;
    split_lane lane;
    uint32_t group, a; /* a: low half of the descriptor of stage 0 */
    int32_t before;    /* the stage whose products may not have ended; -1: none */
    bool never;        /* false, which the compiler does not know */
};

/* Numbers of threads come by way of shfl, so that ptxas does not read special registers again wherever they are wanted. */
template <class CONFIG> __device__ static inline split_place<CONFIG> split_place_of(uint32_t shared)
{
    const uint32_t lane = __shfl_sync(0xffffffff, threadIdx.x % 32, threadIdx.x % 32),
                   number = __shfl_sync(0xffffffff, threadIdx.x / 32, 0);
    const uint32_t group = number / 4;
    return { register_reader_of<CONFIG>(shared),
             { group, 0 },
             { shared, number % 4, lane },
             group,
             (uint32_t)wgmma_descriptor(shared + CONFIG::AT_A),
             -1,
             shared == 0xffffffff };
}

/* Scales ------------------------------------------------------------------------------------------------------------------------ */

template <class CONFIG>
__device__ static inline register_source brought_source(const bsmi_gemm_parameters &p, uint32_t shared, const gemm_tile &tile)
{
    return register_source_of<CONFIG>(p, tile, shared + CONFIG::AT_SCALES, brought_rows<CONFIG>());
}

/* Of the CTA's n-th tile, once nobody reads those that lie there. */
template <class CONFIG>
__device__ static inline void begin_bringing(const bsmi_gemm_parameters &p, uint32_t shared, const gemm_tile &tile, uint32_t n)
{
    if (threadIdx.x >= 32 * CONFIG::BRINGERS) return;
    mbarrier_wait_parity(shared + CONFIG::AT_READ, n % 2 ^ 1);
    begin_scales<CONFIG>(p, tile, brought_source<CONFIG>(p, shared, tile));
}

template <class CONFIG>
__device__ static inline void end_bringing(const bsmi_gemm_parameters &p, uint32_t shared, const gemm_tile &tile)
{
    if (threadIdx.x >= 32 * CONFIG::BRINGERS) return;
    const int32_t steps = (p.segments[0].blocks + CONFIG::STEPS - 1) / CONFIG::STEPS * CONFIG::STEPS;
    const register_findings found = end_scales<CONFIG>(p, tile, brought_source<CONFIG>(p, shared, tile),
                                                       shared + CONFIG::AT_EXPONENTS + brought_rows<CONFIG>() * 4, steps);
    if (threadIdx.x % 32 == 0)
        store_shared(shared + CONFIG::AT_FOUND + threadIdx.x / 32 * 4, (found.special ? 1 : 0) | (found.exponents ? 2 : 0));
    __syncwarp();
    if (threadIdx.x % 32 == 0) mbarrier_arrive(shared + CONFIG::AT_READY);
}

/* What all warps have found. */
template <class CONFIG>
__device__ static inline register_findings await_scales(const bsmi_gemm_parameters &p, split_place<CONFIG> &at,
                                                        const gemm_tile &tile, uint32_t n)
{
    mbarrier_wait_parity(at.lane.shared + CONFIG::AT_READY, n % 2);
    const uint32_t found = load_shared(at.lane.shared + CONFIG::AT_FOUND + at.lane.lane % CONFIG::BRINGERS * 4);
    aim_at_scales<CONFIG>(p, register_source_of<CONFIG>(p, tile, at.lane.shared + CONFIG::AT_SCALES, (int32_t)at.lane.warp * 16),
                          at.reader);
    return { __any_sync(0xffffffff, found & 1) != 0, __any_sync(0xffffffff, found & 2) != 0 };
}

/* Turns ------------------------------------------------------------------------------------------------------------------------- */

/* The first operands of two steps: while the products of one are made, the other is decoded. */
struct split_operands {
    uint32_t even[16], odd[16];
};

/* Four products of 16 columns.  a: of the step's rows of A.  Those of the step before are made when it ends. */
template <class CONFIG>
__device__ static inline void multiply_step(split_sums<CONFIG> &sums, const uint32_t (&operand)[16], uint32_t a)
{
    wgmma_fence();
#pragma unroll
    for (int k = 0; k < 4; k++) wgmma_bf16_registers<CONFIG::ROWS>::multiply(sums, operand + 4 * k, a + 2 * k);
    wgmma_commit_group();
    wgmma_wait_group<1>();
}

/* The registers are read here, where the products that read them have ended: ptxas before CUDA 13.3 takes them for free once
 * such a product has been issued (its release notes), and gives them to others.  Stores that are never made take no more than
 * a place among the instructions. */
__device__ static inline void keep(const uint32_t (&operand)[16], bool never, uint32_t shared)
{
#pragma unroll
    for (int i = 0; i < 16; i += 4)
        if (never) store_shared_v4(shared, make_uint4(operand[i], operand[i + 1], operand[i + 2], operand[i + 3]));
}

template <class CONFIG> __device__ static inline void release_before(split_place<CONFIG> &at)
{
    fence_proxy_async_shared();           /* behind the reads of the stage, before the copy engine fills it again */
    __syncwarp();
    if (at.before >= 0 && at.lane.lane == 0) mbarrier_arrive(empty_barrier<CONFIG>(at.lane.shared, (uint32_t)at.before));
}

/* even, odd: registers of two steps' first operand.  The codes of a step are read while those of the one before are decoded. */
template <class CONFIG, bool SPECIAL>
__device__ static inline void take_turn(split_place<CONFIG> &at, int32_t turn, split_sums<CONFIG> &sums, uint32_t (&even)[16],
                                        uint32_t (&odd)[16])
{
    using CODES = typename CONFIG::CODES;
    constexpr uint32_t STEP = CONFIG::A_BYTES / 16;
    const uint32_t stage = at.ring.stage, a = at.a + stage * CONFIG::STEPS * STEP;
    const register_scales<CODES> first = read_scales<CONFIG>(at.reader, turn * CONFIG::STEPS);
    mbarrier_wait_parity(full_barrier<CONFIG>(at.lane.shared, stage), at.ring.parity);
    const register_codes c0 = read_step<CONFIG, 0>(at.reader, stage), c1 = read_step<CONFIG, 1>(at.reader, stage);
    decode_step<CODES, 0, SPECIAL>(at.reader, c0, first, even);
    multiply_step<CONFIG>(sums, even, a);
    keep(odd, at.never, at.lane.shared);
    release_before<CONFIG>(at);
    const register_codes c2 = read_step<CONFIG, 2>(at.reader, stage);
    decode_step<CODES, 1, SPECIAL>(at.reader, c1, first, odd);
    multiply_step<CONFIG>(sums, odd, a + STEP);
    keep(even, at.never, at.lane.shared);
    const register_scales<CODES> second = read_scales<CONFIG>(at.reader, turn * CONFIG::STEPS + 2);
    const register_codes c3 = read_step<CONFIG, 3>(at.reader, stage);
    decode_step<CODES, 0, SPECIAL>(at.reader, c2, second, even);
    multiply_step<CONFIG>(sums, even, a + 2 * STEP);
    keep(odd, at.never, at.lane.shared);
    decode_step<CODES, 1, SPECIAL>(at.reader, c3, second, odd);
    multiply_step<CONFIG>(sums, odd, a + 3 * STEP);
    keep(even, at.never, at.lane.shared);
    at.before = (int32_t)stage;
    at.ring.advance(CONFIG::GROUPS);
}

/* All products have ended. */
template <class CONFIG>
__device__ static inline void end_turns(split_place<CONFIG> &at, split_sums<CONFIG> &sums, uint32_t (&odd)[16])
{
    wgmma_wait_group<0>();
    keep(odd, at.never, at.lane.shared);
#pragma unroll
    for (int i = 0; i < CONFIG::PRODUCT_SUMS; i++) asm volatile("" : "+f"(sums[i])::"memory");
    release_before<CONFIG>(at);
    at.before = -1;
}

/* Tiles ------------------------------------------------------------------------------------------------------------------------- */

/* What the warpgroup that finishes the tile reads while it multiplies. */
struct split_finish {
    gemm_finish finish;
    bool scaled;
};

template <class CONFIG>
__device__ static inline split_finish begin_finish(const bsmi_gemm_parameters &p, const gemm_tile &tile,
                                                   const split_place<CONFIG> &at)
{
    griddepcontrol_wait();
    const gemm_finish finish = gemm_finish_of(p);
    return { finish, fill_tables<CONFIG>(p, finish, tile, at.lane.shared, at.group) };
}

/* Exponents of the tile's columns, once they are known: `exponent` is that of the column whose number is this thread's in the
 * warpgroup. */
template <class CONFIG>
__device__ static inline void add_exponents(const split_place<CONFIG> &at, uint32_t exponent, split_finish &finish)
{
    const uint32_t thread = at.lane.warp * 32 + at.lane.lane,
                   to = tables_of<CONFIG>(at.lane.shared, at.group) + CONFIG::ROW_TABLE_BYTES;
    if (thread < CONFIG::COLUMNS) store_shared(to + thread * 4, exponent);
    barrier_sync(1 + at.group, 128);
    finish.scaled = true;
}

template <class CONFIG>
__device__ static inline void end_finish(const bsmi_gemm_parameters &p, unsigned char *memory, const split_finish &f,
                                         const gemm_tile &tile, const split_place<CONFIG> &at, const decoded_sums<CONFIG> &sums)
{
    decoded_tile d = decoded_tile_of<CONFIG>(p, tile, at.lane.shared, at.group, f.scaled);
    d.chunk -= at.group * 4 * CONFIG::CHUNK * CONFIG::CHUNK_PITCH; /* one warpgroup finishes at a time */
    static_assert(sizeof(left_out_memory) <= CONFIG::CHUNKS_BYTES && CONFIG::AT_CHUNKS % 8 == 0, "lies where sums went to D");
    finish_columns<CONFIG>(p, f.finish, tile, d, sums);
    const uint32_t tables = tables_of<CONFIG>(at.lane.shared, at.group);
    if (f.scaled)
        compute_left_out(p, tile, (left_out_memory *)(memory + CONFIG::AT_CHUNKS), CONFIG::ROWS, 64, tables,
                         tables + CONFIG::ROW_TABLE_BYTES, 1 + at.group);
}

/* Whose sums of a tile go where, by numbers that depend on K alone: chain i has the turns i, i + GROUPS, ..., and the sums of
 * all are added to those of the chain that has the last turn, in the order in which they follow it. */
struct split_chain {
    bool adds, finishes;
    uint32_t slot;
};

template <class CONFIG>
__device__ static inline split_chain split_chain_of(const split_part &part, int32_t chain, int32_t turns, uint32_t n)
{
    const int32_t last = (turns + CONFIG::GROUPS - 1) % CONFIG::GROUPS;
    return { chain == last, chain == last && n % part.parts == part.rank,
             (uint32_t)(chain - last - 1 + 2 * CONFIG::GROUPS) % CONFIG::GROUPS };
}

/* The turns of a tile; SPECIAL: for all warps alike. */
template <class CONFIG>
__device__ static inline void sum_turns(split_place<CONFIG> &at, const split_part &part, bool special, int32_t &turn, int32_t turns,
                                        split_operands &o, split_sums<CONFIG> &sums)
{
#pragma unroll
    for (int i = 0; i < CONFIG::PRODUCT_SUMS; i++) sums[i] = 0;
#pragma unroll 1
    for (; turn < turns; turn += CONFIG::GROUPS) {
        const int32_t of_tile = turn * (int32_t)part.parts + (int32_t)part.rank;
        if (special) take_turn<CONFIG, true>(at, of_tile, sums, o.even, o.odd);
        else take_turn<CONFIG, false>(at, of_tile, sums, o.even, o.odd);
    }
    __syncwarp(); /* also where there was no turn: exponents are read */
    if (at.lane.lane == 0) mbarrier_arrive(at.lane.shared + CONFIG::AT_READ);
    end_turns<CONFIG>(at, sums, o.odd);
}

/* Brings the warpgroups' sums to one of them, and two CTAs' to one.  True where they are all now. */
template <class CONFIG>
__device__ static inline bool gather_sums(const split_lane &at, const split_part &part, const split_chain &chain, uint32_t n,
                                          split_sums<CONFIG> &sums)
{
    if (!chain.adds) {
        give_sums<CONFIG>(at, n, chain.slot, sums);
        return false;
    }
    take_given<CONFIG>(at, n, sums);
    if (!chain.finishes) send_sums<CONFIG>(at, n, part.rank ^ 1, sums);
    else if (part.parts > 1) take_sent<CONFIG>(at, n, part.rank ^ 1, sums);
    return chain.finishes;
}

template <class CONFIG>
__device__ static inline void consume_split(const bsmi_gemm_parameters &p, unsigned char *memory, uint32_t shared,
                                            const split_part &part)
{
    decoded_sums<CONFIG> sums;
    split_operands operands = {};
    split_place<CONFIG> at = split_place_of<CONFIG>(shared);
    const int64_t tiles = gemm_tiles(p);
    const int32_t turns = turns_of_part<CONFIG>(p, part);
    int32_t turn = (int32_t)at.group;
    int64_t number = first_of_cluster(part);
    if (number >= tiles) return;
    gemm_tile tile = gemm_tile_of<CONFIG>(p, number, { 0, 0 });
    begin_bringing<CONFIG>(p, shared, tile, 0);
    for (uint32_t n = 0; number < tiles; n++, turn -= turns) {
        const gemm_tile now = tile;
        const split_chain chain = split_chain_of<CONFIG>(part, turn, turns, n);
        split_finish finish = {};
        if (chain.finishes) finish = begin_finish<CONFIG>(p, now, at); /* while scales come */
        if (n == 0) end_bringing<CONFIG>(p, shared, now);
        const register_findings found = await_scales<CONFIG>(p, at, now, n);
        /* Read while this tile's scales are: the next one's exponents lie there as soon as all are decoded. */
        const uint32_t exponent = load_shared(shared + CONFIG::AT_EXPONENTS + threadIdx.x % CONFIG::COLUMNS * 4);
        if (found.exponents && chain.finishes) add_exponents<CONFIG>(at, exponent, finish);
        sum_turns<CONFIG>(at, part, found.special, turn, turns, operands, sums[0]);
        number += clusters_of(part);
        if (number < tiles) { /* in front of finishing: the others wait for these scales */
            tile = gemm_tile_of<CONFIG>(p, number, { 0, 0 });
            begin_bringing<CONFIG>(p, shared, tile, n + 1);
            end_bringing<CONFIG>(p, shared, tile);
        }
        if (gather_sums<CONFIG>(at.lane, part, chain, n, sums[0])) end_finish<CONFIG>(p, memory, finish, now, at, sums);
    }
}
