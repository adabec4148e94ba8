/* Groups of rows of A, each with prepacked weights of its own.  As in mixed_input_rows.cuh each consumer warpgroup has
 * 64 rows of B and all of K, but products have as many rows of A as the tile needs: N is 16, 32 or 64, so that groups
 * of all sizes share a kernel, and a row that is not there costs next to nothing.
 *
 * Instructions set the pace.  A warp decodes a step, multiplies it, and waits for that; meanwhile others decode.  One
 * set of operand registers is enough then, as many as four warpgroups have room for.  There are loops for each N, and
 * nothing in them looks for the end of K: what is no whole slice comes behind.
 *
 * wgmma takes a step of 64 rows of A in the time that mma.sync takes for half of them; with 32 rows and less mma.sync
 * needs fewer instructions around it, and warps need not wait for one another.  Both add up in the same order. */
#pragma once

#include "cuda/sm90/epilogue/mixed_input_epilogue.cuh"
#include "cuda/sm90/kernels/mixed_input_groups_instances.h"
#include "cuda/sm90/operand/prepacked_registers.cuh"
#include "cuda/sm90/pipeline/mixed_input_groups_producer.cuh"
#include "mixed_input_mma_sync.cuh"
#include "mixed_input_multiply.cuh"

/* What a thread keeps from step to step. */
template <class CONFIG> struct groups_consumer {
    consumer_thread at;
    uint32_t codes, scales;               /* addresses of this thread's in stage 0 */
    uint32_t rows;                        /* of A in stage 0: low half of their descriptor; mma.sync: address of the
                                             lane's */
    bool notifies;                        /* the loader of A's rows, for its warpgroup or its warp */

    gemm_ring<CONFIG> ring;
    gemm_ring<typename CONFIG::codes_ring> codes_ring;
    prepacked_scales<typename CONFIG::CODES> of_slice;
    bool large;                           /* scales of the slice */
    int32_t width;                        /* rows of A that the tile's products have */
    uint32_t never;                       /* 0, which ptxas does not know: of keep_group_operand */
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
    c.rows = CONFIG::BY_WARPS ? shared + CONFIG::AT_A + place_of_rows<BSMI_GROUPS_CHUNK>(c.at.lane)
                              : (uint32_t)wgmma_descriptor(shared + CONFIG::AT_A);
    c.notifies = CONFIG::BY_WARPS ? c.at.lane == 0 : thread == 0;
    return c;
}

/* Widths ----------------------------------------------------------------------------------------------------------- */

/* Rows of A that products have: 16, 32, ..., or all of the tile's. */
template <class CONFIG> __device__ static inline int32_t width_of_tile(const gemm_tile &tile)
{
    const int32_t rows = rows_of_tile<CONFIG>(tile);
    int32_t width = BSMI_GROUPS_CHUNK;
    while (width < rows) width *= 2;
    return width;
}

/* Decoding --------------------------------------------------------------------------------------------------------- */

template <class CONFIG> __device__ static inline void begin_group_slice(groups_consumer<CONFIG> &c)
{
    using RING = typename CONFIG::codes_ring;
    mbarrier_wait_parity(full_barrier<RING>(c.at.shared, c.codes_ring.stage), c.codes_ring.parity);
    c.of_slice = read_prepacked_scales<typename CONFIG::CODES>(c.scales + c.codes_ring.stage * CONFIG::CODE_BYTES);
    c.large = are_large(c.of_slice);
}

/* The loader has the fence between these reads and the next bytes. */
template <class CONFIG> __device__ static inline void end_group_slice(groups_consumer<CONFIG> &c)
{
    using RING = typename CONFIG::codes_ring;
    __syncwarp();
    if (c.at.lane == 0) mbarrier_arrive(empty_barrier<RING>(c.at.shared, c.codes_ring.stage));
    c.codes_ring.next();
}

template <class CONFIG, int STEP> __device__ static inline uint4 read_group_codes(const groups_consumer<CONFIG> &c)
{
    return load_shared_v4(c.codes + c.codes_ring.stage * CONFIG::CODE_BYTES + STEP * BSMI_PREPACKED_STEP_BYTES);
}

/* A step of the slice: both rows of the thread. */
template <class CONFIG, int STEP>
__device__ static inline void decode_group_codes(const groups_consumer<CONFIG> &c, const uint4 &codes,
                                                 step_operand &operand)
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

/* The registers are read here, behind the wait for the products that read them: before CUDA 13.3 ptxas takes them for
 * free once such a product has been issued (release notes of 13.3, ptxas). */
__device__ static inline void keep_group_operand(uint32_t never, const step_operand &operand)
{
    asm volatile("{\n.reg .pred p;\nsetp.ne.u32 p, %0, 0;\n"
                 "@p st.shared.v4.u32 [%0], {%1, %2, %3, %4};\n@p st.shared.v4.u32 [%0], {%5, %6, %7, %8};\n"
                 "@p st.shared.v4.u32 [%0], {%9, %10, %11, %12};\n@p st.shared.v4.u32 [%0], {%13, %14, %15, %16};\n}"
                 ::"r"(never), "r"(operand[0]), "r"(operand[1]), "r"(operand[2]), "r"(operand[3]), "r"(operand[4]),
                 "r"(operand[5]), "r"(operand[6]), "r"(operand[7]), "r"(operand[8]), "r"(operand[9]),
                 "r"(operand[10]), "r"(operand[11]), "r"(operand[12]), "r"(operand[13]), "r"(operand[14]),
                 "r"(operand[15]));
}

/* Sums ------------------------------------------------------------------------------------------------------------- */

/* For tiles of at most N rows: places in shared memory are the same. */
template <class CONFIG, int N> struct narrowed_config : CONFIG {
    static constexpr int ROWS = N, PRODUCT_SUMS = N / 2;
};

/* The products of a decoded step, of N rows of A. */
template <class CONFIG, int N>
__device__ __forceinline__ static void multiply_group_step(tile_sums<CONFIG> &sums, const groups_consumer<CONFIG> &c,
                                                  const step_operand &operand, uint32_t rows)
{
    using NARROWED = narrowed_config<CONFIG, N>;
    if constexpr (CONFIG::BY_WARPS) {
        multiply_rows<NARROWED>(rows, operand, reinterpret_cast<tile_sums<NARROWED> &>(sums));
    } else {
        wgmma_fence();
        issue_narrowed<N>(sums, operand, rows);
        wgmma_commit_group();
        wgmma_wait_group<0>();
        keep_group_operand(c.never, operand);
    }
}

/* Step STEP of a slice: decoded, multiplied, and waited for. */
template <class CONFIG, int N, int STEP>
__device__ __forceinline__ static void sum_group_step(tile_sums<CONFIG> &sums, groups_consumer<CONFIG> &c, bool is_last)
{
    constexpr int IN_STAGE = STEP % CONFIG::A_STEPS, UNIT = CONFIG::BY_WARPS ? 1 : 16;
    step_operand operand;
    decode_group_codes<CONFIG, STEP>(c, read_group_codes<CONFIG, STEP>(c), operand);
    if (is_last) end_group_slice<CONFIG>(c);
    if (IN_STAGE == 0) mbarrier_wait_parity(full_barrier<CONFIG>(c.at.shared, c.ring.stage), c.ring.parity);
    multiply_group_step<CONFIG, N>(
        sums, c, operand, c.rows + c.ring.stage * (CONFIG::A_BYTES / UNIT) + IN_STAGE * (CONFIG::STEP_BYTES / UNIT));
    if (IN_STAGE + 1 < CONFIG::A_STEPS && !is_last) return;
    if (CONFIG::BY_WARPS) __syncwarp();
    release_stage<CONFIG>(empty_barrier<CONFIG>(c.at.shared, c.ring.stage), c.notifies);
    c.ring.next();
}

/* Steps of a slice from STEP on, of so many. */
template <class CONFIG, int N, int STEP>
__device__ __forceinline__ static void sum_last_steps(tile_sums<CONFIG> &sums, groups_consumer<CONFIG> &c,
                                                      int32_t steps)
{
    sum_group_step<CONFIG, N, STEP>(sums, c, STEP + 1 == steps);
    if constexpr (STEP + 2 < CONFIG::CODE_STEPS)
        if (STEP + 1 < steps) sum_last_steps<CONFIG, N, STEP + 1>(sums, c, steps);
}

template <class CONFIG, int N>
__device__ __forceinline__ static void sum_steps(tile_sums<CONFIG> &sums, groups_consumer<CONFIG> &c, int32_t steps)
{
    for (; steps >= CONFIG::CODE_STEPS; steps -= CONFIG::CODE_STEPS) {
        begin_group_slice<CONFIG>(c);
        sum_group_step<CONFIG, N, 0>(sums, c, false);
        sum_group_step<CONFIG, N, 1>(sums, c, false);
        sum_group_step<CONFIG, N, 2>(sums, c, false);
        sum_group_step<CONFIG, N, 3>(sums, c, false);
        sum_group_step<CONFIG, N, 4>(sums, c, false);
        sum_group_step<CONFIG, N, 5>(sums, c, true);
    }
    if (steps == 0) return;
    begin_group_slice<CONFIG>(c);
    sum_last_steps<CONFIG, N, 0>(sums, c, steps);
}

/* The vote tells ptxas that no warp divides here, which wgmma forbids. */
template <class CONFIG, int N = BSMI_GROUPS_CHUNK>
__device__ __forceinline__ static void sum_narrowed(tile_sums<CONFIG> &sums, groups_consumer<CONFIG> &c, int32_t steps)
{
    if constexpr (N < CONFIG::ROWS)
        if (__all_sync(0xffffffff, c.width > N)) return sum_narrowed<CONFIG, 2 * N>(sums, c, steps);
    sum_steps<CONFIG, N>(sums, c, steps);
}

/* The sums of a tile, K ascending, 16 columns at a time. */
template <class CONFIG>
__device__ __forceinline__ static void sum_group(tile_sums<CONFIG> &sums, groups_consumer<CONFIG> &c, int32_t steps)
{
#pragma unroll
    for (int i = 0; i < CONFIG::PRODUCT_SUMS; i++) sums[i] = 0;
    sum_narrowed<CONFIG>(sums, c, steps);
    hold<CONFIG>(sums);
}

/* The kernel ------------------------------------------------------------------------------------------------------- */

template <class CONFIG>
__device__ static inline void consume_groups(const bsmi_mixed_input_parameters &p, uint32_t shared)
{
    if constexpr (CONFIG::GROUPS > 1) setmaxnreg_inc<CONFIG::CONSUMER>();
    transposed_sums<CONFIG> sums;
    groups_consumer<CONFIG> c = groups_consumer_of<CONFIG>(shared);
    c.never = p.segment_count > BSMI_MOST_SEGMENTS ? shared : 0;
    const int32_t tiles = tiles_of_groups<CONFIG>(p, shared), steps = p.segments[0].blocks;
    for (int32_t number = (int32_t)blockIdx.x; number < tiles; number += (int32_t)gridDim.x) {
        gemm_tile tile = tile_of_groups<CONFIG>(p, shared, number);
        tile.column += (int32_t)c.at.group * 64;
        c.width = width_of_tile<CONFIG>(tile);
        prepacked_finish finish = begin_prepacked_finish<CONFIG>(p, tile, c.at);
        sum_group<CONFIG>(sums[0], c, steps);
        read_row_exponents<CONFIG>(p, tile, finish);
        finish_rows_tile<CONFIG>(p, finish, tile, c.at, sums, c.width / CONFIG::CHUNK);
    }
}

template <class CONFIG>
__device__ static inline void produce_groups(const bsmi_mixed_input_parameters &p, uint32_t shared, int32_t loader,
                                             group_slice_loader<CONFIG> &slices)
{
    if constexpr (CONFIG::GROUPS > 1) setmaxnreg_dec<CONFIG::PRODUCER>();
    if (loader == 0 && elect_sync()) load_group_slices<CONFIG>(p, shared, -1, slices);
    if (loader == 1 && elect_sync()) {
        griddepcontrol_wait();
        load_boxes_of_rows<CONFIG>(p, shared);
    }
}

template <class CONFIG> __device__ static inline void mixed_input_groups_gemm(const bsmi_mixed_input_parameters &p)
{
    extern __shared__ __align__(1024) unsigned char memory[];
    const uint32_t shared = __shfl_sync(0xffffffff, shared_address(memory), 0), warp = warp_of_cta();
    const int32_t loader = (int32_t)warp - CONFIG::WARPS;
    group_slice_loader<CONFIG> slices;
    if (loader < 0) clear_rows_of_stages<CONFIG>(p, shared);
    if (loader == 1 && elect_sync()) prefetch_tensormap(&p.a);
    if (loader == 0 && elect_sync()) {
        initialize_ring<CONFIG>(shared, 1, CONFIG::BY_WARPS ? CONFIG::WARPS : CONFIG::GROUPS);
        initialize_ring<typename CONFIG::codes_ring>(shared, 1, CONFIG::WARPS);
        fence_mbarrier_init();
    }
    if (p.epilogue.grouped) {
        griddepcontrol_wait();
        if (loader == 0) make_group_table<CONFIG>(p, shared);
        __syncwarp();
    }
    if (loader == 0 && elect_sync()) {
        slices = group_slice_loader_of<CONFIG>(p, shared);
        load_group_slices<CONFIG>(p, shared, CONFIG::codes_ring::STAGES, slices);
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
