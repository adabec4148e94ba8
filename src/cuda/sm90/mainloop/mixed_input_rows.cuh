/* Rows of prepacked weights: each consumer warpgroup has 64 rows of B of its own, and all of K.
 *
 *     products    step s issued               step s + 1 issued           step s + 2 issued
 *                   s - 1 waited for            s waited for                s + 1 waited for
 *     decoded         s + 1                       s + 2                       s + 3
 *
 * The more rows of A, the longer are the products that hide a step's decoding; and two warpgroups fill each other's
 * gaps.
 *
 * Barriers of each stage, and how often who arrives in a phase:
 *
 *     full           rows of A, codes: their loader once, with the bytes
 *     empty          rows of A: one thread of each warpgroup, behind wait_group; codes: each warp of the consumers */
#pragma once

#include "cuda/sm90/epilogue/mixed_input_epilogue.cuh"
#include "cuda/sm90/operand/prepacked_registers.cuh"
#include "cuda/sm90/pipeline/mixed_input_rows_producer.cuh"
#include "mixed_input_multiply.cuh"

/* Of tiles that come in halves. */
template <class CONFIG> struct half_config : CONFIG {
    static constexpr int ROWS = CONFIG::ROWS / 2, PRODUCT_SUMS = ROWS / 2;
};

/* What a thread keeps from step to step. */
template <class CONFIG> struct rows_consumer {
    consumer_thread at;
    uint32_t codes, scales;               /* addresses of this thread's in stage 0 */
    uint32_t rows;                        /* low half of the descriptor of the rows of A in stage 0 */
    bool notifies;                        /* the loader of A's rows, for its warpgroup */

    gemm_ring<CONFIG> ring;
    uint32_t before;                      /* the stage of the step before */
    gemm_ring<typename CONFIG::codes_ring> codes_ring;
    prepacked_scales<typename CONFIG::CODES> of_slice;
    bool large;                           /* scales of the slice */
    uint32_t never;                       /* 0, which ptxas does not know: of keep_operand */
};

template <class CONFIG> __device__ static inline rows_consumer<CONFIG> rows_consumer_of(uint32_t shared)
{
    constexpr uint32_t OF_TWO_ROWS = 2 * BSMI_PREPACKED_COLUMNS / CONFIG::BLOCK;
    rows_consumer<CONFIG> c = {};
    c.at = consumer_thread_of(shared);
    const uint32_t of_group = shared + CONFIG::AT_CODES + c.at.group * CONFIG::SLICE_BYTES,
                   thread = c.at.warp * 32 + c.at.lane;
    c.codes = of_group + thread * 16;
    c.scales = of_group + BSMI_PREPACKED_CODE_BYTES + thread / 4 * OF_TWO_ROWS;
    c.rows = (uint32_t)wgmma_descriptor(shared + CONFIG::AT_A);
    c.notifies = thread == 0;
    return c;
}

/* Decoding --------------------------------------------------------------------------------------------------------- */

template <class CONFIG> __device__ static inline void begin_slice(rows_consumer<CONFIG> &c)
{
    using RING = typename CONFIG::codes_ring;
    mbarrier_wait_parity(full_barrier<RING>(c.at.shared, c.codes_ring.stage), c.codes_ring.parity);
    c.of_slice = read_prepacked_scales<typename CONFIG::CODES>(c.scales + c.codes_ring.stage * CONFIG::CODE_BYTES);
    c.large = are_large(c.of_slice);
}

/* The loader has the fence between these reads and the next bytes. */
template <class CONFIG> __device__ static inline void end_slice(rows_consumer<CONFIG> &c)
{
    using RING = typename CONFIG::codes_ring;
    __syncwarp();
    if (c.at.lane == 0) mbarrier_arrive(empty_barrier<RING>(c.at.shared, c.codes_ring.stage));
    c.codes_ring.next();
}

template <class CONFIG, int STEP> __device__ static inline uint4 read_codes(const rows_consumer<CONFIG> &c)
{
    return load_shared_v4(c.codes + c.codes_ring.stage * CONFIG::CODE_BYTES + STEP * 2048);
}

/* A step of the slice: both rows of the thread. */
template <class CONFIG, int STEP>
__device__ static inline void decode_codes(const rows_consumer<CONFIG> &c, const uint4 &codes, step_operand &operand)
{
    using CODES = typename CONFIG::CODES;
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

/* Products --------------------------------------------------------------------------------------------------------- */

/* The registers are read here, behind the wait for the products that read them: before CUDA 13.3 ptxas takes them for
 * free once such a product has been issued (release notes of 13.3, ptxas). */
__device__ static inline void keep_operand(uint32_t never, const step_operand &operand)
{
#pragma unroll
    for (int i = 0; i < 16; i += 4)
        asm volatile("{\n.reg .pred p;\nsetp.ne.u32 p, %0, 0;\n@p st.shared.v4.u32 [%0], {%1, %2, %3, %4};\n}"
                     ::"r"(never), "r"(operand[i]), "r"(operand[i + 1]), "r"(operand[i + 2]), "r"(operand[i + 3]));
}

template <class CONFIG> __device__ static inline void release_rows(const rows_consumer<CONFIG> &c)
{
    release_stage<CONFIG>(empty_barrier<CONFIG>(c.at.shared, c.before), c.notifies);
}

/* Step STEP of a slice: its products are issued behind those of the step before, which are waited for then, and the
 * next step is decoded into the registers that they have read.  left: steps of the tile behind this one.  True if there
 * is one. */
template <class CONFIG, class TILE, int STEP>
__device__ static inline bool sum_step(tile_sums<TILE> &sums, rows_consumer<CONFIG> &c, bool first, int32_t left,
                                       const step_operand &now, step_operand &other)
{
    constexpr int NEXT = (STEP + 1) % CONFIG::CODE_STEPS;
    const uint32_t stage = c.ring.stage;
    uint4 codes;
    mbarrier_wait_parity(full_barrier<CONFIG>(c.at.shared, stage), c.ring.parity);
    wgmma_fence();
    issue_step<TILE>(sums, now, c.rows + stage * (CONFIG::A_BYTES / 16));
    wgmma_commit_group();
    if (NEXT == 0 || left == 0) end_slice<CONFIG>(c);
    if (left > 0) {
        if (NEXT == 0) begin_slice<CONFIG>(c);
        codes = read_codes<CONFIG, NEXT>(c);
    }
    wgmma_wait_group<1>();
    keep_operand(c.never, other);
    if (!first) release_rows<CONFIG>(c);
    c.before = stage;
    c.ring.next();
    if (left == 0) return false;
    decode_codes<CONFIG, NEXT>(c, codes, other);
    return true;
}

/* The sums of a tile, K ascending, 16 columns at a time, as sum_tile of shared_memory_consumer.cuh makes them. */
template <class CONFIG, class TILE>
__device__ static inline void sum_rows(tile_sums<TILE> &sums, rows_consumer<CONFIG> &c, int32_t steps)
{
    step_operand even, odd = {};
#pragma unroll
    for (int i = 0; i < TILE::PRODUCT_SUMS; i++) sums[i] = 0;
    begin_slice<CONFIG>(c);
    decode_codes<CONFIG, 0>(c, read_codes<CONFIG, 0>(c), even);
    for (int32_t left = steps - 1;; left -= CONFIG::CODE_STEPS) {
        if (!sum_step<CONFIG, TILE, 0>(sums, c, left + 1 == steps, left, even, odd)) break;
        if (!sum_step<CONFIG, TILE, 1>(sums, c, false, left - 1, odd, even)) break;
        if (!sum_step<CONFIG, TILE, 2>(sums, c, false, left - 2, even, odd)) break;
        if (!sum_step<CONFIG, TILE, 3>(sums, c, false, left - 3, odd, even)) break;
        if (!sum_step<CONFIG, TILE, 4>(sums, c, false, left - 4, even, odd)) break;
        if (!sum_step<CONFIG, TILE, 5>(sums, c, false, left - 5, odd, even)) break;
    }
    wgmma_wait_group<0>();
    keep_operand(c.never, even);
    keep_operand(c.never, odd);
    hold<TILE>(sums);
    release_rows<CONFIG>(c);
}

/* The CTA's tiles from `number` on, those in front of `end`: of TILE's rows.  The next one's number. */
template <class CONFIG, class TILE>
__device__ static inline int64_t consume_tiles(const bsmi_mixed_input_parameters &p, rows_consumer<CONFIG> &c,
                                               int64_t number, int64_t end)
{
    const int32_t steps = p.segments[0].blocks;
    for (; number < end; number += gridDim.x) {
        transposed_sums<TILE> sums;
        gemm_tile tile = rows_tile_of<CONFIG>(p, number);
        tile.column += (int32_t)c.at.group * 64;
        prepacked_finish finish = begin_prepacked_finish<TILE>(p, tile, c.at);
        sum_rows<CONFIG, TILE>(sums[0], c, steps);
        read_row_exponents<TILE>(p, tile, finish);
        finish_rows_tile<TILE>(p, finish, tile, c.at, sums);
    }
    return number;
}

template <class CONFIG>
__device__ static inline void consume_rows(const bsmi_mixed_input_parameters &p, uint32_t shared)
{
    if constexpr (CONFIG::GROUPS > 1) setmaxnreg_inc<CONFIG::CONSUMER>();
    rows_consumer<CONFIG> c = rows_consumer_of<CONFIG>(shared);
    c.never = p.segment_count > BSMI_MOST_SEGMENTS ? shared : 0;
    const int64_t tiles = gemm_tiles(p);
    if constexpr (CONFIG::HALVES) {
        const int64_t number = consume_tiles<CONFIG, CONFIG>(p, c, blockIdx.x, min(tiles, p.whole_tiles));
        consume_tiles<CONFIG, half_config<CONFIG>>(p, c, number, tiles);
    } else {
        consume_tiles<CONFIG, CONFIG>(p, c, blockIdx.x, tiles);
    }
}

/* The kernel ------------------------------------------------------------------------------------------------------- */

template <class CONFIG> __device__ static inline void initialize_rows_barriers(uint32_t shared)
{
    initialize_ring<CONFIG>(shared, 1, CONFIG::GROUPS);
    initialize_ring<typename CONFIG::codes_ring>(shared, 1, CONFIG::WARPS);
    fence_mbarrier_init();
}

template <class CONFIG>
__device__ static inline void produce_rows(const bsmi_mixed_input_parameters &p, uint32_t shared, int32_t loader,
                                           slice_loader<CONFIG> &slices)
{
    if constexpr (CONFIG::GROUPS > 1) setmaxnreg_dec<CONFIG::PRODUCER>();
    if (loader == 0 && elect_sync()) load_slices<CONFIG>(p, shared, -1, slices);
    if (loader == 1 && elect_sync()) load_steps_of_rows<CONFIG>(p, shared);
}

/* Weights are loaded before the kernels in front of this one have ended, rows of A behind them. */
template <class CONFIG> __device__ static inline void mixed_input_rows_gemm(const bsmi_mixed_input_parameters &p)
{
    extern __shared__ __align__(1024) unsigned char memory[];
    const uint32_t shared = __shfl_sync(0xffffffff, shared_address(memory), 0), warp = warp_of_cta();
    const int32_t loader = (int32_t)warp - CONFIG::WARPS;
    slice_loader<CONFIG> slices;
    if (p.epilogue.grouped) griddepcontrol_wait();
    if (loader == 0 && elect_sync()) {
        initialize_rows_barriers<CONFIG>(shared);
        slices = slice_loader_of<CONFIG>(p);
        load_slices<CONFIG>(p, shared, CONFIG::codes_ring::STAGES, slices);
    }
    if (loader == 1 && elect_sync()) prefetch_tensormap(&p.a);
    if (loader < 0) clear_missing_rows<CONFIG>(p, shared);
    __syncthreads();
    griddepcontrol_launch_dependents();
    if (loader < 0) consume_rows<CONFIG>(p, shared);
    else produce_rows<CONFIG>(p, shared, loader, slices);
}

/* The arguments behind `tile` are the table's columns. */
#define MIXED_INPUT_ROWS_KERNEL(codes, tile, rows, groups, ...)                                                        \
    extern "C" __global__ void __launch_bounds__(BSMI_MIXED_INPUT_ROWS_THREADS(groups), 1)                             \
        bsmi_gemm_##codes##_##tile(const __grid_constant__ bsmi_mixed_input_parameters p)                              \
    {                                                                                                                  \
        mixed_input_rows_gemm<mixed_input_rows_config<codes_##codes, rows, groups, __VA_ARGS__>>(p);                   \
    }
