/* What the steps share: formats, the tile in shared and in tensor memory, loading, multiplying, storing.  Each step's
 * own file has the loop along K, and who waits for whom. */
#pragma once

#include "cuda/ptx/bulk_copy.cuh"
#include "cuda/ptx/mbarrier.cuh"
#include "cuda/ptx/tensor_mma.cuh"
#include "cuda/ptx/tensor_registers.cuh"
#include "cuda/ptx/threads.cuh"
#include "ladder.h"

enum { WARPS = 4, THREADS = 32 * WARPS, COLUMNS = 512 };

/* ---- formats ---- */

/* BLOCK_N rows of B, BLOCK_K elements along K.  PACKED: elements in a byte of shared memory; A_LOAD, B_LOAD: bytes
 * that TMA counts for 128 of shared memory (padded e2m1: 64). */
template <mma_kind KIND_, mma_scale_vector VECTOR_, int SCALES_A_STEP_, mma_element A, mma_element B,
          mma_scale_type SCALES, int PACKED, int A_LOAD, int B_LOAD, int BLOCK_N, int BLOCK_K>
struct format {
    static constexpr mma_kind KIND = KIND_;
    static constexpr mma_scale_vector VECTOR = VECTOR_;
    static constexpr int N = BLOCK_N, ROW_BYTES = BLOCK_K / PACKED;
    static_assert(N >= 32 && N <= 256 && ROW_BYTES >= 32, "an instruction takes 32 bytes of a row");
    static_assert((A_LOAD == 128 && B_LOAD == 128) || ROW_BYTES >= 128, "TMA pads e2m1 to rows of 128 bytes");

    static constexpr int PANEL = ROW_BYTES < PANEL_BYTES ? ROW_BYTES : PANEL_BYTES, PANELS = ROW_BYTES / PANEL;
    static constexpr shared_swizzle SWIZZLE = PANEL == 128  ? SHARED_SWIZZLE_128B
                                              : PANEL == 64 ? SHARED_SWIZZLE_64B
                                                            : SHARED_SWIZZLE_32B;
    static constexpr int STEPS = ROW_BYTES / 32;         /* instructions a tile of K, 32 bytes of a row each */
    static constexpr int SCALES_A_STEP = SCALES_A_STEP_; /* of a row, in one instruction */
    static constexpr int SCALES_A_TILE = STEPS * SCALES_A_STEP;
    static constexpr int GROUPS = (SCALES_A_TILE + SCALE_BLOCK_COLUMNS - 1) / SCALE_BLOCK_COLUMNS;
    static constexpr int B_BLOCKS = (N + SCALE_BLOCK_ROWS - 1) / SCALE_BLOCK_ROWS; /* a group, 4 columns each */

    static constexpr int OPERAND_BYTES = (TILE_M * A_LOAD + N * B_LOAD) * ROW_BYTES / 128; /* that TMA counts */
    static constexpr int SCALE_BYTES = (1 + B_BLOCKS) * GROUPS * SCALE_BLOCK_BYTES;

    /* Tensor memory: the sums (step 5 has two sets of them where they fit beside the scales), then the scales of a
     * tile of K in groups of 4. */
    static constexpr int ACCUMULATORS = N < 256 ? 2 : 1;
    static constexpr int A_SCALE_COLUMN = ACCUMULATORS * N, B_SCALE_COLUMN = A_SCALE_COLUMN + 4 * GROUPS;
    static_assert(B_SCALE_COLUMN + 4 * B_BLOCKS * GROUPS <= COLUMNS, "tensor memory has 512 columns");

    static constexpr uint32_t INSTRUCTION = mma_instruction_descriptor({ KIND, A, B, TILE_M, N, MMA_D_F32, SCALES });
};
template <int N, int K>
using mxfp8 = format<MMA_MXF8F6F4, BLOCK_32, 1, MMA_E4M3, MMA_E4M3, MMA_UE8M0, 1, 128, 128, N, K>;
template <int N, int K> using mxfp4 = format<MMA_MXF4, BLOCK_32, 2, MMA_E2M1, MMA_E2M1, MMA_UE8M0, 2, 128, 128, N, K>;
template <int N, int K>
using nvfp4 = format<MMA_MXF4NVF4, BLOCK_16, 4, MMA_E2M1, MMA_E2M1, MMA_UE4M3, 2, 128, 128, N, K>;
/* 64 bytes fill 128: 8 of 16 */
template <int N, int K>
using mixed = format<MMA_MXF8F6F4, BLOCK_32, 1, MMA_E4M3, MMA_E2M1, MMA_UE8M0, 1, 128, 64, N, K>;
template <int N, int K>
using mixed_a = format<MMA_MXF8F6F4, BLOCK_32, 1, MMA_E2M1, MMA_E4M3, MMA_UE8M0, 1, 64, 128, N, K>;

/* ---- shared memory ---- */

template <class F> struct alignas(1024) stage { /* 1024: where a 128-byte swizzle begins */
    uint8_t a[F::PANELS][TILE_M][F::PANEL], b[F::PANELS][F::N][F::PANEL];
    uint8_t a_scales[F::GROUPS][SCALE_BLOCK_BYTES], b_scales[F::B_BLOCKS][F::GROUPS][SCALE_BLOCK_BYTES];
};

template <class F> __device__ static inline stage<F> *stages()
{
    extern __shared__ __align__(1024) uint8_t dynamic[];
    return reinterpret_cast<stage<F> *>(dynamic);
}

/* ---- barriers ---- */

/* One thread; a __syncthreads must follow.  The fence shows new barriers to TMA, which arrives on them. */
__device__ static inline void init_barriers(uint64_t *barriers, int count)
{
    for (int i = 0; i < count; i++) mbarrier_init(shared_address(&barriers[i]), 1);
    fence_mbarrier_init();
}

__device__ static inline void wait(uint64_t *barrier, uint32_t parity)
{
    mbarrier_wait_parity(shared_address(barrier), parity);
}

/* ---- tensor memory ---- */

/* All threads: the columns are this CTA's.  `address` lies in shared memory. */
__device__ static inline uint32_t allocate_columns(uint32_t *address)
{
    if (threadIdx.x < 32) {
        tcgen05_alloc<1, COLUMNS>(shared_address(address));
        tcgen05_relinquish_alloc_permit<1>();
    }
    __syncthreads();
    return *address;
}

/* Behind a barrier: every warp has read its sums. */
__device__ static inline void release_columns(uint32_t tensor)
{
    if (threadIdx.x < 32) tcgen05_dealloc<1, COLUMNS>(tensor);
}

/* The first of the 32 lanes that this warp reaches. */
__device__ static inline uint32_t lanes_of_warp() { return threadIdx.x / 32 << 21; }

/* ---- one thread: loads, products ---- */

template <class F>
__device__ static inline void load_operands(const ladder_parameters &p, stage<F> &s, uint64_t *full, int k, int m,
                                            int n)
{
#pragma unroll
    for (int i = 0; i < F::PANELS; i++) {
        const int column = k * F::ROW_BYTES + i * F::PANEL;
        const int32_t a[2] = { column, m }, b[2] = { column, n };
        cp_async_bulk_tensor_load(shared_address(s.a[i]), &p.a, a, shared_address(full));
        cp_async_bulk_tensor_load(shared_address(s.b[i]), &p.b, b, shared_address(full));
    }
}

/* The packed blocks of the same tile, whole ones. */
template <class F>
__device__ static inline void load_scales(const ladder_parameters &p, stage<F> &s, uint64_t *full, int k, int m, int n)
{
    static_assert(F::SCALES_A_TILE % SCALE_BLOCK_COLUMNS == 0 && F::N % SCALE_BLOCK_ROWS == 0, "whole blocks of 128x4");
    const int32_t a[3] = { 0, 2 * F::GROUPS * k, m / SCALE_BLOCK_ROWS },
                  b[3] = { 0, 2 * F::GROUPS * k, n / SCALE_BLOCK_ROWS };
    cp_async_bulk_tensor_load(shared_address(s.a_scales), &p.a_blocks, a, shared_address(full));
    cp_async_bulk_tensor_load(shared_address(s.b_scales), &p.b_blocks, b, shared_address(full));
}

/* The instructions of a tile of K, sums from column `d` on.  Step i takes scales i * SCALES_A_STEP and on of a row:
 * group and byte within its cell. */
template <class F> __device__ static inline void multiply(uint32_t tensor, uint32_t d, stage<F> &s, bool adds)
{
#pragma unroll
    for (int i = 0; i < F::STEPS; i++) {
        const uint32_t group = i * F::SCALES_A_STEP / 4, id = i * F::SCALES_A_STEP % 4;
        const int panel = 32 * i / F::PANEL, byte = 32 * i % F::PANEL;
        const uint64_t a = shared_rows_descriptor(shared_address(s.a[panel]), F::SWIZZLE);
        const uint64_t b = shared_rows_descriptor(shared_address(s.b[panel]), F::SWIZZLE);
        tcgen05_mma_block_scale<F::KIND, F::VECTOR, 1>(
            tensor + d, shared_matrix_advance(a, byte), shared_matrix_advance(b, byte),
            mma_with_scale_ids(F::INSTRUCTION, id, id), tensor + F::A_SCALE_COLUMN + 4 * group,
            tensor + F::B_SCALE_COLUMN + 4 * F::B_BLOCKS * group, adds || i > 0);
    }
}

/* Blocks of 128x4 to tensor memory, each to 4 columns, for all four quarters of the lanes at once. */
template <class F> __device__ static inline void copy_scales(uint32_t tensor, stage<F> &s)
{
#pragma unroll
    for (int g = 0; g < F::GROUPS; g++) {
        tcgen05_cp<1, CP_32X128B>(tensor + F::A_SCALE_COLUMN + 4 * g,
                                  shared_scales_descriptor(shared_address(s.a_scales[g])));
        for (int block = 0; block < F::B_BLOCKS; block++)
            tcgen05_cp<1, CP_32X128B>(tensor + F::B_SCALE_COLUMN + 4 * (F::B_BLOCKS * g + block),
                                      shared_scales_descriptor(shared_address(s.b_scales[block][g])));
    }
}

/* ---- all threads: scales through registers, and the sums to D ---- */

/* The scales of one lane for a tile of K, ROWS / 32 rows that are 32 apart: column i of a group holds row 32 i + lane,
 * and each warp writes the same into its quarter of the lanes. */
template <int ROWS, int GROUPS> struct lane_scales {
    enum { COLUMNS_A_GROUP = ROWS < 128 ? 4 : ROWS / 32 };
    uint32_t word[GROUPS][ROWS / 32]; /* 4 scales each */

    __device__ void store(uint32_t address) const
    {
#pragma unroll
        for (int g = 0; g < GROUPS; g++)
            tcgen05_st<SHAPE_32X32B, ROWS / 32>(address + lanes_of_warp() + COLUMNS_A_GROUP * g, word[g]);
    }
};

/* SCALES of one row (1, 2 or a multiple of 4), side by side in memory, as words of 4 with zeros behind the last. */
template <int SCALES> struct alignas(SCALES < 16 ? SCALES : 16) row_scales {
    uint32_t words[SCALES / 4];
    __device__ uint32_t word(int i) const { return words[i]; }
};
template <> struct row_scales<1> {
    uint8_t all;
    __device__ uint32_t word(int) const { return all; }
};
template <> struct row_scales<2> {
    uint16_t all;
    __device__ uint32_t word(int) const { return all; }
};

/* Columns of one row of D, of which the matrix has `columns`: 16 bytes at a time, up to the pitch. */
__device__ static inline void store_floats(float *to, const uint32_t (&r)[32], int columns)
{
#pragma unroll
    for (int i = 0; i < 32; i += 4) {
        const uint4 four = { r[i], r[i + 1], r[i + 2], r[i + 3] };
        if (i < columns) *reinterpret_cast<uint4 *>(to + i) = four;
    }
}

__device__ static inline uint32_t two_halves(uint32_t low, uint32_t high)
{
    return cvt_f16x2(__uint_as_float(low), __uint_as_float(high));
}
__device__ static inline void store_halves(uint16_t *to, const uint32_t (&r)[32], int columns)
{
#pragma unroll
    for (int i = 0; i < 32; i += 8) {
        const uint4 eight = { two_halves(r[i], r[i + 1]), two_halves(r[i + 2], r[i + 3]),
                              two_halves(r[i + 4], r[i + 5]), two_halves(r[i + 6], r[i + 7]) };
        if (i < columns) *reinterpret_cast<uint4 *>(to + i) = eight;
    }
}

/* Row m + threadIdx.x of D, the tile's columns, 32 at a time; sums from column `d` on. */
template <class F>
__device__ static inline void store_tile(const ladder_parameters &p, uint32_t tensor, uint32_t d, int m, int n)
{
    const int row = m + (int)threadIdx.x;
#pragma unroll 1
    for (int column = 0; column < F::N; column += 32) {
        uint32_t r[32];
        tcgen05_ld<SHAPE_32X32B, 32>(r, tensor + lanes_of_warp() + d + column);
        tcgen05_wait_ld(r);
        if (row >= p.m) continue;
        const int64_t at = row * p.d_pitch + n + column;
        if (p.d_is_half) store_halves(static_cast<uint16_t *>(p.d) + at, r, p.n - n - column);
        else store_floats(static_cast<float *>(p.d) + at, r, p.n - n - column);
    }
}

/* ---- the kernels of a step ---- */

#define LADDER_KERNEL(step, name, block_n, block_k) \
    extern "C" __global__ void __launch_bounds__(THREADS, 1) \
        step##_##name##_##block_n##x##block_k(const __grid_constant__ ladder_parameters p) \
    { \
        step<name<block_n, block_k>>(p); \
    }

/* One a format, 128 bytes of each row along K; with LADDER_BLOCKS those of the other blocks: blocks.h. */
#ifdef LADDER_BLOCKS
#include "blocks.h"
#else
#define LADDER_KERNELS(step) \
    LADDER_KERNEL(step, mxfp8, 256, 128) \
    LADDER_KERNEL(step, mxfp4, 256, 256) \
    LADDER_KERNEL(step, nvfp4, 256, 256) \
    LADDER_KERNEL(step, mixed, 256, 128) \
    LADDER_KERNEL(step, mixed_a, 256, 128)
#define LADDER_REGISTER_KERNELS  LADDER_KERNELS
#define LADDER_ONE_STAGE_KERNELS LADDER_KERNELS
#endif
