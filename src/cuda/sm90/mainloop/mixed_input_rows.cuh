/* Rows of prepacked weights: each consumer warpgroup has 64 rows of B of its own, and all of K.  Where one warpgroup
 * multiplies, a scheduler has one warp, and a step lasts as long as that warp's instructions, one behind the other, if
 * they take longer than the products: so a slice of six steps is one stretch of code, and where the ring has six stages
 * their addresses are constants.  nvcc inlines nothing that long by itself, and a call would make ptxas wait for every
 * product.
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
#include "exchanged_sums.cuh"
#include "mixed_input_multiply.cuh"

/* Codes and scales of a step, a thread's two rows. */
template <class CODES> struct step_codes {
    uint4 codes;
    uint32_t scales[CODES::MICRO ? 2 : 1];
};

/* What a thread keeps from step to step. */
template <class CONFIG> struct rows_consumer {
    consumer_thread at;
    uint32_t codes, scales;               /* addresses of this thread's in stage 0 */
    uint32_t rows;                        /* low half of the descriptor of the rows of A in stage 0 */
    bool notifies;                        /* the loader of A's rows, for its warpgroup */

    gemm_ring<CONFIG> ring;               /* where stages are fixed, of the slice's first step */
    uint32_t before;                      /* where they are not, the stage of the step before */
    gemm_ring<typename CONFIG::codes_ring> codes_ring;
    uint32_t slice_codes, slice_scales;   /* addresses of this thread's in the slice's stage */
    bool large;                           /* of MXFP4, scales of the slice, of any of the warpgroup's warps */
    bool ready;                           /* the next step's rows of A are known to be there */
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

/* Stages of A's rows ----------------------------------------------------------------------------------------------- */

/* Step STEP of a slice, where the ring goes round once or several times in a slice: all addresses are constants. */
template <class CONFIG, int STEP> __device__ static inline uint32_t stage_of(const rows_consumer<CONFIG> &c)
{
    return CONFIG::FIXED_STAGES ? STEP % CONFIG::STAGES : c.ring.stage;
}
template <class CONFIG, int STEP> __device__ static inline uint32_t parity_of(const rows_consumer<CONFIG> &c)
{
    return CONFIG::FIXED_STAGES ? c.ring.parity ^ (STEP / CONFIG::STAGES & 1) : c.ring.parity;
}
template <class CONFIG, int STEP> __device__ static inline void next_stage(rows_consumer<CONFIG> &c)
{
    c.before = stage_of<CONFIG, STEP>(c);
    if (!CONFIG::FIXED_STAGES) c.ring.next();
    else if (STEP + 1 == CONFIG::CODE_STEPS) c.ring.parity ^= CONFIG::CODE_STEPS / CONFIG::STAGES & 1;
}

template <class CONFIG, int STEP> __device__ static inline uint32_t full_rows(const rows_consumer<CONFIG> &c)
{
    return full_barrier<CONFIG>(c.at.shared, stage_of<CONFIG, STEP>(c));
}

/* Of the step before STEP. */
template <class CONFIG, int STEP> __device__ static inline void release_rows(const rows_consumer<CONFIG> &c)
{
    const uint32_t before = CONFIG::FIXED_STAGES ? (STEP + CONFIG::CODE_STEPS - 1) % CONFIG::STAGES : c.before;
    release_stage<CONFIG>(empty_barrier<CONFIG>(c.at.shared, before), c.notifies);
}

/* The slice's steps behind the last of K, from STEP on: their stages come empty.  The thread that releases stages waits
 * for them; others meet it at a barrier before they come to the next tile's. */
template <class CONFIG, int STEP> __device__ static inline void pass_rows(rows_consumer<CONFIG> &c)
{
    if constexpr (CONFIG::FIXED_STAGES && STEP < CONFIG::CODE_STEPS) {
        if (c.notifies) mbarrier_wait_parity(full_rows<CONFIG, STEP>(c), parity_of<CONFIG, STEP>(c));
        next_stage<CONFIG, STEP>(c);
        release_rows<CONFIG, STEP + 1>(c);
        pass_rows<CONFIG, STEP + 1>(c);
    }
}

/* Decoding --------------------------------------------------------------------------------------------------------- */

template <class CONFIG, int STEP>
__device__ static inline step_codes<typename CONFIG::CODES> read_codes(const rows_consumer<CONFIG> &c)
{
    step_codes<typename CONFIG::CODES> of;
    of.codes = load_shared_v4(c.slice_codes + STEP * 2048);
    read_step_scales<typename CONFIG::CODES>(c.slice_scales, STEP, of.scales);
    return of;
}

/* Its first step's codes. */
template <class CONFIG>
__device__ static inline step_codes<typename CONFIG::CODES> begin_slice(rows_consumer<CONFIG> &c)
{
    using RING = typename CONFIG::codes_ring;
    mbarrier_wait_parity(full_barrier<RING>(c.at.shared, c.codes_ring.stage), c.codes_ring.parity);
    c.slice_codes = c.codes + c.codes_ring.stage * CONFIG::CODE_BYTES;
    c.slice_scales = c.scales + c.codes_ring.stage * CONFIG::CODE_BYTES;
    const step_codes<typename CONFIG::CODES> of = read_codes<CONFIG, 0>(c);
    if (!CONFIG::CODES::MICRO) c.large = barrier_or(1 + c.at.group, 128, (int32_t)of.scales[0] >= 0);
    return of;
}

/* The loader has the fence between these reads and the next bytes. */
template <class CONFIG> __device__ static inline void end_slice(rows_consumer<CONFIG> &c)
{
    using RING = typename CONFIG::codes_ring;
    __syncwarp();
    if (c.at.lane == 0) mbarrier_arrive(empty_barrier<RING>(c.at.shared, c.codes_ring.stage));
    c.codes_ring.next();
}

/* What a step is decoded by: a warpgroup knows for a slice, or finds out for the step. */
enum rows_range { ROWS_SMALL, ROWS_LARGE, ROWS_ANY };

template <class CODES, prepacked_range RANGE>
__device__ __forceinline__ static void decode_rows(const step_codes<CODES> &of, step_operand &operand)
{
#pragma unroll
    for (int row = 0; row < 2; row++) decode_prepacked_row<CODES, RANGE>(of.codes, of.scales, row, operand);
}

/* A step of the slice: both rows of the thread.  Scales that are small for some warps of a warpgroup are decoded as
 * those that are not: RANGE says how the warp's are. */
template <class CONFIG, rows_range RANGE>
__device__ __forceinline__ static void decode_codes(const rows_consumer<CONFIG> &c,
                                                    const step_codes<typename CONFIG::CODES> &of,
                                                    step_operand &operand)
{
    using CODES = typename CONFIG::CODES;
    if (CODES::MICRO || RANGE == ROWS_SMALL || (RANGE == ROWS_ANY && !c.large))
        decode_rows<CODES, PREPACKED_SMALL>(of, operand);
    else if ((int32_t)of.scales[0] >= 0)
        decode_rows<CODES, PREPACKED_LARGE>(of, operand);
    else
        decode_rows<CODES, PREPACKED_SMALL>(of, operand);
}

/* Products --------------------------------------------------------------------------------------------------------- */

/* The registers are read here, behind the wait for the products that read them: before CUDA 13.3 ptxas takes them for
 * free once such a product has been issued (release notes of 13.3, ptxas).  Each store has a predicate of its own, or
 * ptxas makes branches of them. */
__device__ static inline void keep_operand(uint32_t never, const step_operand &operand)
{
#pragma unroll
    for (int i = 0; i < 16; i += 4)
        asm volatile("{\n.reg .pred p;\nsetp.gt.u32 p, %0, %5;\n@p st.shared.v4.u32 [%0], {%1, %2, %3, %4};\n}"
                     ::"r"(never), "r"(operand[i]), "r"(operand[i + 1]), "r"(operand[i + 2]), "r"(operand[i + 3]),
                     "r"(i * 16));
}

/* Step STEP of a slice: its products are issued behind those of the step before, which are waited for then, and the
 * next step is decoded into the registers that they have read.  LAST: slice of a tile, of which `behind` steps are
 * behind this one.  True if there is a step behind this one. */
template <class CONFIG, class TILE, int STEP, rows_range RANGE, bool LAST>
__device__ __forceinline__ static bool sum_step(tile_sums<TILE> &sums, rows_consumer<CONFIG> &c, bool first,
                                                int32_t behind, const step_operand &now, step_operand &other)
{
    constexpr int NEXT = (STEP + 1) % CONFIG::CODE_STEPS;
    const bool more = !LAST || (NEXT != 0 && behind > 0);
    step_codes<typename CONFIG::CODES> next;
    if (!c.ready) mbarrier_wait_parity(full_rows<CONFIG, STEP>(c), parity_of<CONFIG, STEP>(c));
    wgmma_fence();
    issue_step<TILE>(sums, now, c.rows + stage_of<CONFIG, STEP>(c) * (CONFIG::A_BYTES / 16));
    wgmma_commit_group();
    if (NEXT == 0 || !more) end_slice<CONFIG>(c);
    if (more) next = NEXT == 0 ? begin_slice<CONFIG>(c) : read_codes<CONFIG, NEXT>(c);
    wgmma_wait_group<1>();
    keep_operand(c.never, other);
    if (!first) release_rows<CONFIG, STEP>(c);
    next_stage<CONFIG, STEP>(c);
    if (!more) return false;
    c.ready = mbarrier_test_wait_parity(full_rows<CONFIG, NEXT>(c), parity_of<CONFIG, NEXT>(c));
    decode_codes<CONFIG, NEXT == 0 ? ROWS_ANY : RANGE>(c, next, other);
    return true;
}

/* Six steps, and the next slice's first one decoded. */
template <class CONFIG, class TILE, rows_range RANGE>
__device__ __forceinline__ static void sum_slice(tile_sums<TILE> &sums, rows_consumer<CONFIG> &c, bool first,
                                                 step_operand &even, step_operand &odd)
{
    sum_step<CONFIG, TILE, 0, RANGE, false>(sums, c, first, 0, even, odd);
    sum_step<CONFIG, TILE, 1, RANGE, false>(sums, c, false, 0, odd, even);
    sum_step<CONFIG, TILE, 2, RANGE, false>(sums, c, false, 0, even, odd);
    sum_step<CONFIG, TILE, 3, RANGE, false>(sums, c, false, 0, odd, even);
    sum_step<CONFIG, TILE, 4, RANGE, false>(sums, c, false, 0, even, odd);
    sum_step<CONFIG, TILE, 5, RANGE, false>(sums, c, false, 0, odd, even);
}

/* Behind the last step, STEP. */
template <class CONFIG, class TILE, int STEP>
__device__ __forceinline__ static void end_sums(tile_sums<TILE> &sums, rows_consumer<CONFIG> &c,
                                                const step_operand &now)
{
    wgmma_wait_group<0>();
    keep_operand(c.never, now);
    hold<TILE>(sums);
    release_rows<CONFIG, STEP + 1>(c);
    pass_rows<CONFIG, STEP + 1>(c);
}

/* The tile's last slice. */
template <class CONFIG, class TILE, int STEP>
__device__ __forceinline__ static void sum_last_slice(tile_sums<TILE> &sums, rows_consumer<CONFIG> &c, bool first,
                                                      int32_t behind, step_operand &now, step_operand &other)
{
    const bool more = sum_step<CONFIG, TILE, STEP, ROWS_ANY, true>(sums, c, STEP == 0 && first, behind, now, other);
    if constexpr (STEP + 1 < CONFIG::CODE_STEPS) {
        if (more) {
            sum_last_slice<CONFIG, TILE, STEP + 1>(sums, c, first, behind - 1, other, now);
            return;
        }
    }
    end_sums<CONFIG, TILE, STEP>(sums, c, now);
}

/* The sums of a tile, K ascending, 16 columns at a time, as sum_tile of shared_memory_consumer.cuh makes them. */
template <class CONFIG, class TILE>
__device__ __forceinline__ static void sum_rows(tile_sums<TILE> &sums, rows_consumer<CONFIG> &c, int32_t steps)
{
    step_operand even, odd = {};
    int32_t left = steps;
#pragma unroll
    for (int i = 0; i < TILE::PRODUCT_SUMS; i++) sums[i] = 0;
    c.ready = false;
    decode_codes<CONFIG, ROWS_ANY>(c, begin_slice<CONFIG>(c), even);
    for (; left > CONFIG::CODE_STEPS; left -= CONFIG::CODE_STEPS) {
        if (!CONFIG::CODES::MICRO && c.large) sum_slice<CONFIG, TILE, ROWS_LARGE>(sums, c, left == steps, even, odd);
        else sum_slice<CONFIG, TILE, ROWS_SMALL>(sums, c, left == steps, even, odd);
    }
    sum_last_slice<CONFIG, TILE, 0>(sums, c, left == steps, left - 1, even, odd);
}

/* The CTA's tiles from `number` on, those in front of `end`: of TILE's rows.  The next one's number. */
template <class CONFIG, class TILE>
__device__ __forceinline__ static int64_t consume_tiles(const bsmi_mixed_input_parameters &p, rows_consumer<CONFIG> &c,
                                                        int64_t number, int64_t end)
{
    const int32_t steps = p.segments[0].blocks;
    for (; number < end; number += gridDim.x) {
        transposed_sums<TILE> sums;
        gemm_tile tile = rows_tile_at<CONFIG>(p, number);
        tile.column += (int32_t)c.at.group * 64;
        prepacked_finish finish = begin_prepacked_finish<TILE>(p, tile, c.at);
        sum_rows<CONFIG, TILE>(sums[0], c, steps);
        read_row_exponents<TILE>(p, tile, finish);
        finish_rows_tile<TILE>(p, finish, tile, c.at, sums);
    }
    return number;
}

/* No CTA ends while the other one may still give it sums, or arrive on its barriers. */
template <class CONFIG> __device__ static inline void end_together()
{
    if (CONFIG::PARTS == 1) return;
    __syncwarp();
    synchronize_ctas(false);
}

/* Tiles of which the CTA has a part of K: it gives the other one its sums of half of the rows, and finishes the other
 * half. */
template <class CONFIG>
__device__ __forceinline__ static void consume_parts(const bsmi_mixed_input_parameters &p, rows_consumer<CONFIG> &c)
{
    using HALF = half_config<CONFIG>;
    const int64_t tiles = gemm_tiles(p);
    const int32_t steps = k_part_of<CONFIG>(p).steps;
    uint32_t n = 0;
    for (int64_t number = first_rows_tile<CONFIG>(); number < tiles; number += rows_tiles_at_one_time<CONFIG>(), n++) {
        transposed_sums<CONFIG> sums;
        transposed_sums<HALF> finished;
        gemm_tile tile = half_of_tile<CONFIG>(rows_tile_at<CONFIG>(p, number), cluster_ctarank());
        tile.column += (int32_t)c.at.group * 64;
        expect_sums<CONFIG>(c.at);
        prepacked_finish finish = begin_prepacked_finish<HALF>(p, tile, c.at);
        sum_rows<CONFIG, CONFIG>(sums[0], c, steps);
        read_row_exponents<HALF>(p, tile, finish);
        exchange_sums<CONFIG>(c.at, n, sums[0], finished[0]);
        finish_rows_tile<HALF>(p, finish, tile, c.at, finished);
        release_sums<CONFIG>(c.at);
    }
}

template <class CONFIG>
__device__ __forceinline__ static void consume_rows(const bsmi_mixed_input_parameters &p, uint32_t shared)
{
    if constexpr (CONFIG::GROUPS > 1) setmaxnreg_inc<CONFIG::CONSUMER>();
    rows_consumer<CONFIG> c = rows_consumer_of<CONFIG>(shared);
    c.never = p.segment_count > BSMI_MOST_SEGMENTS ? shared + 1024 : 0;
    const int64_t tiles = gemm_tiles(p);
    if constexpr (CONFIG::PARTS > 1) {
        consume_parts<CONFIG>(p, c);
        end_together<CONFIG>();
    } else if constexpr (CONFIG::HALVES) {
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
    if constexpr (CONFIG::PARTS > 1) initialize_exchange<CONFIG>(shared);
    fence_mbarrier_init();
}

template <class CONFIG>
__device__ static inline void produce_rows(const bsmi_mixed_input_parameters &p, uint32_t shared, int32_t loader,
                                           slice_loader<CONFIG> &slices)
{
    if constexpr (CONFIG::GROUPS > 1) setmaxnreg_dec<CONFIG::PRODUCER>();
    if (loader == 0 && elect_sync()) load_slices<CONFIG>(p, shared, -1, slices);
    if (loader == 1 && elect_sync()) load_steps_of_rows<CONFIG>(p, shared);
    end_together<CONFIG>();
}

/* Weights are loaded before the kernels in front of this one have ended, rows of A behind them. */
template <class CONFIG>
__device__ __forceinline__ static void mixed_input_rows_gemm(const bsmi_mixed_input_parameters &p)
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
    if (CONFIG::PARTS > 1) __syncwarp();
    synchronize_ctas(CONFIG::PARTS == 1);
    griddepcontrol_launch_dependents();
    if (loader < 0) consume_rows<CONFIG>(p, shared);
    else produce_rows<CONFIG>(p, shared, loader, slices);
}

/* parts: of K, a CTA each.  The arguments behind `tile` are the table's columns. */
#define MIXED_INPUT_ROWS_KERNEL(codes, parts, tile, rows, groups, ...)                                                 \
    extern "C" __global__ void __launch_bounds__(BSMI_MIXED_INPUT_ROWS_THREADS(groups), 1)                             \
        bsmi_gemm_##codes##_##tile(const __grid_constant__ bsmi_mixed_input_parameters p)                              \
    {                                                                                                                  \
        mixed_input_rows_gemm<mixed_input_rows_config<codes_##codes, parts, rows, groups, __VA_ARGS__>>(p);            \
    }
