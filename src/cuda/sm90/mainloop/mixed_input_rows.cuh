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
    bool large, of_warp_are_large;        /* scales of the slice: of any of the four warps, whose wgmma are the same
                                             instructions; of this one */
    uint32_t never;                       /* 0, which ptxas does not know: of keep_operand */
    uint4 codes_of_next;                  /* of the step to be decoded next */
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
    c.of_warp_are_large = are_large(c.of_slice);
    c.large = !CONFIG::CODES::MICRO && barrier_or(1 + c.at.group, 128, c.of_warp_are_large);
}

template <class CONFIG> __device__ static inline void end_slice(rows_consumer<CONFIG> &c)
{
    using RING = typename CONFIG::codes_ring;
    fence_proxy_async_shared();
    __syncwarp();
    if (c.at.lane == 0) mbarrier_arrive(empty_barrier<RING>(c.at.shared, c.codes_ring.stage));
    c.codes_ring.next();
}

template <class CONFIG, int STEP> __device__ static inline uint4 read_codes(const rows_consumer<CONFIG> &c)
{
    return load_shared_v4(c.codes + c.codes_ring.stage * CONFIG::CODE_BYTES + STEP * 2048);
}

/* A step of the slice: both rows of the thread. */
template <class CONFIG, int STEP, prepacked_range RANGE>
__device__ static inline void decode_codes(const rows_consumer<CONFIG> &c, step_operand &operand)
{
#pragma unroll
    for (int row = 0; row < 2; row++)
        decode_prepacked_row<typename CONFIG::CODES, RANGE>(c.codes_of_next, c.of_slice.words[STEP], row, operand,
                                                            c.of_warp_are_large);
}

/* Step 0 of a slice whose scales have just been read. */
template <class CONFIG>
__device__ static inline void decode_first(const rows_consumer<CONFIG> &c, step_operand &operand)
{
    if (c.large) decode_codes<CONFIG, 0, PREPACKED_LARGE>(c, operand);
    else decode_codes<CONFIG, 0, PREPACKED_SMALL>(c, operand);
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

/* Step STEP of a slice, whose scales are of RANGE: its products are issued behind those of the step before.  Meanwhile
 * the next step, whose codes have been read, is decoded into registers that nothing under way reads, and codes of the
 * one behind it are read.  left: steps of the tile behind this one.  True if there is one. */
template <class CONFIG, int STEP, prepacked_range RANGE>
__device__ static inline bool sum_step(tile_sums<CONFIG> &sums, rows_consumer<CONFIG> &c, bool first, int32_t left,
                                       step_operand (&sets)[3])
{
    constexpr int NEXT = (STEP + 1) % CONFIG::CODE_STEPS, SECOND = (STEP + 2) % CONFIG::CODE_STEPS;
    const uint32_t stage = c.ring.stage;
    mbarrier_wait_parity(full_barrier<CONFIG>(c.at.shared, stage), c.ring.parity);
    wgmma_fence();
    issue_step<CONFIG>(sums, sets[STEP % 3], c.rows + stage * (CONFIG::A_BYTES / 16));
    wgmma_commit_group();
    if (left > 0) {
        if constexpr (NEXT == 0) decode_first<CONFIG>(c, sets[0]);
        else decode_codes<CONFIG, NEXT, RANGE>(c, sets[NEXT % 3]);
        if (left == 1 || SECOND == 0) end_slice<CONFIG>(c);
        if (left > 1) {
            if (SECOND == 0) begin_slice<CONFIG>(c);
            c.codes_of_next = read_codes<CONFIG, SECOND>(c);
        }
    }
    wgmma_wait_group<1>();
    keep_operand(c.never, sets[SECOND % 3]);
    if (!first) release_rows<CONFIG>(c);
    c.before = stage;
    c.ring.next();
    return left > 0;
}

template <class CONFIG, prepacked_range RANGE>
__device__ static inline bool sum_slice(tile_sums<CONFIG> &sums, rows_consumer<CONFIG> &c, bool first, int32_t left,
                                        step_operand (&sets)[3])
{
    return sum_step<CONFIG, 0, RANGE>(sums, c, first, left, sets)
           && sum_step<CONFIG, 1, RANGE>(sums, c, false, left - 1, sets)
           && sum_step<CONFIG, 2, RANGE>(sums, c, false, left - 2, sets)
           && sum_step<CONFIG, 3, RANGE>(sums, c, false, left - 3, sets)
           && sum_step<CONFIG, 4, RANGE>(sums, c, false, left - 4, sets)
           && sum_step<CONFIG, 5, RANGE>(sums, c, false, left - 5, sets);
}

/* The sums of a tile, K ascending, 16 columns at a time, as sum_tile of shared_memory_consumer.cuh makes them. */
template <class CONFIG>
__device__ static inline void sum_rows(tile_sums<CONFIG> &sums, rows_consumer<CONFIG> &c, int32_t steps)
{
    step_operand sets[3] = {};
    bool more = true;
#pragma unroll
    for (int i = 0; i < CONFIG::PRODUCT_SUMS; i++) sums[i] = 0;
    begin_slice<CONFIG>(c);
    c.codes_of_next = read_codes<CONFIG, 0>(c);
    decode_first<CONFIG>(c, sets[0]);
    if (steps > 1) c.codes_of_next = read_codes<CONFIG, 1>(c);
    else end_slice<CONFIG>(c);
    for (int32_t left = steps - 1; more; left -= CONFIG::CODE_STEPS) {
        const bool first = left + 1 == steps;
        if (c.large) more = sum_slice<CONFIG, PREPACKED_LARGE>(sums, c, first, left, sets);
        else more = sum_slice<CONFIG, PREPACKED_SMALL>(sums, c, first, left, sets);
    }
    wgmma_wait_group<0>();
#pragma unroll
    for (int i = 0; i < 3; i++) keep_operand(c.never, sets[i]);
    hold<CONFIG>(sums);
    release_rows<CONFIG>(c);
}

template <class CONFIG>
__device__ static inline void consume_rows(const bsmi_mixed_input_parameters &p, uint32_t shared)
{
    if constexpr (CONFIG::GROUPS > 1) setmaxnreg_inc<CONFIG::CONSUMER>();
    transposed_sums<CONFIG> sums;
    rows_consumer<CONFIG> c = rows_consumer_of<CONFIG>(shared);
    c.never = p.segment_count > BSMI_MOST_SEGMENTS ? shared : 0;
    const int64_t tiles = gemm_tiles(p);
    const int32_t steps = p.segments[0].blocks;
    for (int64_t number = blockIdx.x; number < tiles; number += gridDim.x) {
        gemm_tile tile = gemm_tile_of<CONFIG>(p, number, { 0, 0 });
        tile.column += (int32_t)c.at.group * 64;
        prepacked_finish finish = begin_prepacked_finish<CONFIG>(p, tile, c.at);
        sum_rows<CONFIG>(sums[0], c, steps);
        read_row_exponents<CONFIG>(p, tile, finish);
        finish_rows_tile<CONFIG>(p, finish, tile, c.at, sums);
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
