/* Groups of rows of A, each with prepacked weights of its own.  As in mixed_input_rows.cuh each consumer warpgroup has
 * 64 rows of B and all of K, but products have as many rows of A as the tile needs: wgmma's N is 16, 32 or 64, so that
 * groups of all sizes share a kernel, and a row that is not there costs next to nothing.
 *
 * Decoding sets the pace.  A warpgroup decodes a step, multiplies it, and waits for that; meanwhile the other three
 * decode.  One set of operand registers is enough then, as many as four warpgroups have room for. */
#pragma once

#include "cuda/sm90/epilogue/mixed_input_epilogue.cuh"
#include "cuda/sm90/kernels/mixed_input_groups_instances.h"
#include "cuda/sm90/operand/prepacked_registers.cuh"
#include "cuda/sm90/pipeline/mixed_input_groups_producer.cuh"
#include "mixed_input_multiply.cuh"

template <class CODES, int ROWS, int GROUPS, int STAGES, int CODE_STAGES>
struct mixed_input_groups_config : mixed_input_rows_config<CODES, ROWS, GROUPS, STAGES, CODE_STAGES> {
    using ALL = mixed_input_rows_config<CODES, ROWS, GROUPS, STAGES, CODE_STAGES>;
    static constexpr int PRODUCER = 32, CONSUMER = ((GROUPS + 1) * ALL::EVEN - PRODUCER) / GROUPS / 8 * 8;
};

/* What a thread keeps from step to step. */
template <class CONFIG> struct groups_consumer {
    consumer_thread at;
    uint32_t codes, scales;               /* addresses of this thread's in stage 0 */
    uint32_t rows;                        /* low half of the descriptor of the rows of A in stage 0 */
    bool notifies;                        /* the loader of A's rows, for its warpgroup */

    gemm_ring<CONFIG> ring;
    gemm_ring<typename CONFIG::codes_ring> codes_ring;
    prepacked_scales<typename CONFIG::CODES> of_slice;
    bool large;                           /* scales of the slice */
    int32_t width;                        /* rows of A that the tile's products have */
    uint32_t kept;                        /* what operands that products have read are mixed into */
};

template <class CONFIG>
__device__ static inline groups_consumer<CONFIG> groups_consumer_of(uint32_t shared)
{
    constexpr uint32_t OF_TWO_ROWS = 2 * BSMI_PREPACKED_COLUMNS / CONFIG::BLOCK;
    groups_consumer<CONFIG> c = {};
    c.at = consumer_thread_of(shared);
    const uint32_t of_group = shared + CONFIG::AT_CODES + c.at.group * CONFIG::SLICE_BYTES,
                   thread = c.at.warp * 32 + c.at.lane;
    c.codes = of_group + thread * 16;
    c.scales = of_group + BSMI_PREPACKED_CODE_BYTES + thread / 4 * OF_TWO_ROWS;
    c.rows = (uint32_t)wgmma_descriptor(shared + CONFIG::AT_A);
    c.notifies = thread == 0;
    return c;
}

/* For finishing a tile of at most N rows, or of those of a chunk: places in shared memory are the same. */
template <class CONFIG, int N> struct narrowed_config : CONFIG {
    static constexpr int ROWS = N < CONFIG::CHUNK ? CONFIG::CHUNK : N, PRODUCT_SUMS = ROWS / 2;
    static_assert(ROWS % CONFIG::CHUNK == 0 && ROWS <= CONFIG::ROWS, "whole chunks are finished");
};

template <class CONFIG, int N>
__device__ static inline void finish_narrowed(const bsmi_mixed_input_parameters &p, const gemm_tile &tile,
                                              const consumer_thread &at, prepacked_finish finish,
                                              const transposed_sums<CONFIG> &sums)
{
    using NARROWED = narrowed_config<CONFIG, N>;
    read_row_exponents<NARROWED>(p, tile, finish);
    finish_rows_tile<NARROWED>(p, finish, tile, at, reinterpret_cast<const transposed_sums<NARROWED> &>(sums));
}

/* Tables that the tile is finished with have as many rows as it is finished with. */
template <class CONFIG>
__device__ static inline prepacked_finish begin_narrowed(const bsmi_mixed_input_parameters &p, const gemm_tile &tile,
                                                         const groups_consumer<CONFIG> &c)
{
    constexpr int ROWS = CONFIG::ROWS;
    if (c.width == ROWS / 4) return begin_prepacked_finish<narrowed_config<CONFIG, ROWS / 4>>(p, tile, c.at);
    if (c.width == ROWS / 2) return begin_prepacked_finish<narrowed_config<CONFIG, ROWS / 2>>(p, tile, c.at);
    return begin_prepacked_finish<CONFIG>(p, tile, c.at);
}

/* Rows of A that products have: a quarter of the tile's, half of them, or all. */
template <class CONFIG> __device__ static inline int32_t width_of_tile(const gemm_tile &tile)
{
    const int32_t rows = rows_of_tile<CONFIG>(tile);
    return rows <= CONFIG::ROWS / 4 ? CONFIG::ROWS / 4 : rows <= CONFIG::ROWS / 2 ? CONFIG::ROWS / 2 : CONFIG::ROWS;
}

template <class CONFIG, int STEP>
__device__ static inline void decode_step(const groups_consumer<CONFIG> &c, step_operand &operand)
{
    using CODES = typename CONFIG::CODES;
    const uint4 codes = load_shared_v4(c.codes + c.codes_ring.stage * CONFIG::CODE_BYTES + STEP * 2048);
    if (c.large) {
#pragma unroll
        for (int row = 0; row < 2; row++)
            decode_prepacked_row<CODES, PREPACKED_LARGE>(codes, c.of_slice.words[STEP], row, operand);
    } else {
#pragma unroll
        for (int row = 0; row < 2; row++)
            decode_prepacked_row<CODES, PREPACKED_SMALL>(codes, c.of_slice.words[STEP], row, operand);
    }
}

/* A step's products, of as many rows of A as the tile needs.  The votes tell ptxas that no warp divides here. */
template <class CONFIG>
__device__ static inline void issue_width(tile_sums<CONFIG> &sums, const groups_consumer<CONFIG> &c,
                                          const step_operand &operand, uint32_t a)
{
    constexpr int ROWS = CONFIG::ROWS;
    if (__all_sync(0xffffffff, c.width == ROWS / 4)) {
        wgmma_fence();
        issue_narrowed<ROWS / 4>(sums, operand, a);
        wgmma_commit_group();
    } else if (__all_sync(0xffffffff, c.width == ROWS / 2)) {
        wgmma_fence();
        issue_narrowed<ROWS / 2>(sums, operand, a);
        wgmma_commit_group();
    } else {
        wgmma_fence();
        issue_step<CONFIG>(sums, operand, a);
        wgmma_commit_group();
    }
}

/* Step STEP of a slice; left: steps of the tile behind this one.  True if there is one.  Operand registers are read
 * behind the wait for the products that read them: before CUDA 13.3 ptxas takes them for free once such a product has
 * been issued (release notes of 13.3, ptxas). */
template <class CONFIG, int STEP>
__device__ static inline bool sum_group_step(tile_sums<CONFIG> &sums, groups_consumer<CONFIG> &c, int32_t left,
                                             step_operand &operand)
{
    using CODES_RING = typename CONFIG::codes_ring;
    const uint32_t stage = c.ring.stage;
    if (STEP == 0) {
        mbarrier_wait_parity(full_barrier<CODES_RING>(c.at.shared, c.codes_ring.stage), c.codes_ring.parity);
        c.of_slice =
            read_prepacked_scales<typename CONFIG::CODES>(c.scales + c.codes_ring.stage * CONFIG::CODE_BYTES);
        c.large = are_large(c.of_slice);
    }
    decode_step<CONFIG, STEP>(c, operand);
    if (STEP == CONFIG::CODE_STEPS - 1 || left == 0) {
        release_read_stage<CONFIG>(empty_barrier<CODES_RING>(c.at.shared, c.codes_ring.stage), c.at.lane == 0);
        c.codes_ring.next();
    }
    mbarrier_wait_parity(full_barrier<CONFIG>(c.at.shared, stage), c.ring.parity);
    issue_width<CONFIG>(sums, c, operand, c.rows + stage * (CONFIG::A_BYTES / 16));
    wgmma_wait_group<0>();
#pragma unroll
    for (int i = 0; i < 16; i += 2)
        asm volatile("lop3.b32 %0, %0, %1, %2, 0x96;" : "+r"(c.kept) : "r"(operand[i]), "r"(operand[i + 1]));
    release_stage<CONFIG>(empty_barrier<CONFIG>(c.at.shared, stage), c.notifies);
    c.ring.next();
    return left > 0;
}

/* The sums of a tile, K ascending, 16 columns at a time. */
template <class CONFIG>
__device__ static inline void sum_group(tile_sums<CONFIG> &sums, groups_consumer<CONFIG> &c, int32_t steps)
{
    step_operand operand;
#pragma unroll
    for (int i = 0; i < CONFIG::PRODUCT_SUMS; i++) sums[i] = 0;
    for (int32_t left = steps - 1;; left -= CONFIG::CODE_STEPS) {
        if (!sum_group_step<CONFIG, 0>(sums, c, left, operand)) break;
        if (!sum_group_step<CONFIG, 1>(sums, c, left - 1, operand)) break;
        if (!sum_group_step<CONFIG, 2>(sums, c, left - 2, operand)) break;
        if (!sum_group_step<CONFIG, 3>(sums, c, left - 3, operand)) break;
        if (!sum_group_step<CONFIG, 4>(sums, c, left - 4, operand)) break;
        if (!sum_group_step<CONFIG, 5>(sums, c, left - 5, operand)) break;
    }
    hold<CONFIG>(sums);
}

template <class CONFIG>
__device__ static inline void consume_groups(const bsmi_mixed_input_parameters &p, uint32_t shared)
{
    if constexpr (CONFIG::GROUPS > 1) setmaxnreg_inc<CONFIG::CONSUMER>();
    transposed_sums<CONFIG> sums;
    groups_consumer<CONFIG> c = groups_consumer_of<CONFIG>(shared);
    const int64_t tiles = gemm_tiles(p);
    const int32_t steps = p.segments[0].blocks;
    for (int64_t number = blockIdx.x; number < tiles; number += gridDim.x) {
        gemm_tile tile = gemm_tile_of<CONFIG, true>(p, number, { 0, 0 });
        tile.column += (int32_t)c.at.group * 64;
        c.width = width_of_tile<CONFIG>(tile);
        const prepacked_finish finish = begin_narrowed<CONFIG>(p, tile, c);
        sum_group<CONFIG>(sums[0], c, steps);
        if (c.width == CONFIG::ROWS / 4) finish_narrowed<CONFIG, CONFIG::ROWS / 4>(p, tile, c.at, finish, sums);
        else if (c.width == CONFIG::ROWS / 2) finish_narrowed<CONFIG, CONFIG::ROWS / 2>(p, tile, c.at, finish, sums);
        else finish_narrowed<CONFIG, CONFIG::ROWS>(p, tile, c.at, finish, sums);
    }
    if (p.segment_count > BSMI_MOST_SEGMENTS) store_shared(shared, c.kept);       /* never, which ptxas does not know */
}

template <class CONFIG>
__device__ static inline void produce_groups(const bsmi_mixed_input_parameters &p, uint32_t shared, int32_t loader,
                                             slice_loader<CONFIG> &slices)
{
    if constexpr (CONFIG::GROUPS > 1) setmaxnreg_dec<CONFIG::PRODUCER>();
    if (loader == 0 && elect_sync()) load_slices<CONFIG>(p, shared, -1, slices);
    if (loader == 1 && elect_sync()) load_boxes_of_rows<CONFIG>(p, shared);
}

template <class CONFIG> __device__ static inline void mixed_input_groups_gemm(const bsmi_mixed_input_parameters &p)
{
    extern __shared__ __align__(1024) unsigned char memory[];
    const uint32_t shared = __shfl_sync(0xffffffff, shared_address(memory), 0), warp = warp_of_cta();
    const int32_t loader = (int32_t)warp - CONFIG::WARPS;
    slice_loader<CONFIG> slices;
    if (loader < 0) clear_missing_rows<CONFIG>(p, shared);
    if (loader == 1 && elect_sync()) prefetch_tensormap(&p.a);
    if (p.epilogue.grouped) griddepcontrol_wait();
    if (loader == 0 && elect_sync()) {
        initialize_ring<CONFIG>(shared, 1, CONFIG::GROUPS);
        initialize_ring<typename CONFIG::codes_ring>(shared, 1, CONFIG::WARPS);
        fence_mbarrier_init();
        slices = slice_loader_of<CONFIG>(p);
        load_slices<CONFIG>(p, shared, CONFIG::codes_ring::STAGES, slices);
    }
    __syncthreads();
    griddepcontrol_launch_dependents();
    if (loader < 0) consume_groups<CONFIG>(p, shared);
    else produce_groups<CONFIG>(p, shared, loader, slices);
}

/* The arguments behind `tile` are the table's columns. */
#define MIXED_INPUT_GROUPS_KERNEL(codes, tile, rows, groups, ...)                                                      \
    extern "C" __global__ void __launch_bounds__(BSMI_MIXED_INPUT_ROWS_THREADS(groups), 1)                             \
        bsmi_gemm_##codes##_##tile(const __grid_constant__ bsmi_mixed_input_parameters p)                              \
    {                                                                                                                  \
        mixed_input_groups_gemm<mixed_input_groups_config<codes_##codes, rows, groups, __VA_ARGS__>>(p);               \
    }
