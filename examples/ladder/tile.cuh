/* What the steps share: formats, the tile in shared and in tensor memory, loading, multiplying, storing.  Each step's
 * own file has the loop along K, and who waits for whom. */
#pragma once

#include "cuda/ptx/bulk_copy.cuh"
#include "cuda/ptx/mbarrier.cuh"
#include "cuda/ptx/tensor_mma.cuh"
#include "cuda/ptx/tensor_registers.cuh"
#include "cuda/ptx/threads.cuh"
#include "ladder.h"

enum { WARPS = 4, THREADS = 32 * WARPS, K_STEPS = 4 }; /* K_STEPS: instructions a tile, 32 bytes of K each */

/* Tensor memory: the sums, then the scales of a tile of K in groups of 4: 4 columns a group for A's 128 rows, 8 for B's
 * 256. */
enum { D_COLUMN = 0, A_SCALE_COLUMN = TILE_N, B_SCALE_COLUMN = A_SCALE_COLUMN + 16, COLUMNS = 512 };

/* ---- formats ---- */

template <mma_kind KIND_, mma_scale_vector VECTOR_, int SCALES_A_STEP_, mma_element A, mma_element B,
          mma_scale_type SCALES, int A_ROW_BYTES, int B_ROW_BYTES>
struct format {
    static constexpr mma_kind KIND = KIND_;
    static constexpr mma_scale_vector VECTOR = VECTOR_;
    static constexpr int SCALES_A_STEP = SCALES_A_STEP_; /* of a row, in one instruction */
    static constexpr int GROUPS = K_STEPS * SCALES_A_STEP / SCALE_BLOCK_COLUMNS;
    static constexpr int OPERAND_BYTES = TILE_M * A_ROW_BYTES + TILE_N * B_ROW_BYTES; /* that TMA counts */
    static constexpr int SCALE_BYTES = (TILE_M + TILE_N) * 4 * GROUPS;
    static constexpr uint32_t INSTRUCTION =
        mma_instruction_descriptor({ KIND, A, B, TILE_M, TILE_N, MMA_D_F32, SCALES });
};
using mxfp8 = format<MMA_MXF8F6F4, BLOCK_32, 1, MMA_E4M3, MMA_E4M3, MMA_UE8M0, 128, 128>;
using mxfp4 = format<MMA_MXF4, BLOCK_32, 2, MMA_E2M1, MMA_E2M1, MMA_UE8M0, 128, 128>;
using nvfp4 = format<MMA_MXF4NVF4, BLOCK_16, 4, MMA_E2M1, MMA_E2M1, MMA_UE4M3, 128, 128>;
/* 64 bytes fill 128: 8 of 16 */
using mixed = format<MMA_MXF8F6F4, BLOCK_32, 1, MMA_E4M3, MMA_E2M1, MMA_UE8M0, 128, 64>;
using mixed_a = format<MMA_MXF8F6F4, BLOCK_32, 1, MMA_E2M1, MMA_E4M3, MMA_UE8M0, 64, 128>;

/* ---- shared memory ---- */

template <class F> struct alignas(1024) stage { /* 1024: where a 128-byte swizzle begins */
    uint8_t a[TILE_M][TILE_ROW_BYTES], b[TILE_N][TILE_ROW_BYTES];
    uint8_t a_scales[F::GROUPS][SCALE_BLOCK_BYTES], b_scales[TILE_N / SCALE_BLOCK_ROWS][F::GROUPS][SCALE_BLOCK_BYTES];
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
    const int32_t a[2] = { k * TILE_ROW_BYTES, m }, b[2] = { k * TILE_ROW_BYTES, n };
    cp_async_bulk_tensor_load(shared_address(s.a), &p.a, a, shared_address(full));
    cp_async_bulk_tensor_load(shared_address(s.b), &p.b, b, shared_address(full));
}

/* The packed blocks of the same tile. */
template <class F>
__device__ static inline void load_scales(const ladder_parameters &p, stage<F> &s, uint64_t *full, int k, int m, int n)
{
    const int32_t a[3] = { 0, 2 * F::GROUPS * k, m / SCALE_BLOCK_ROWS },
                  b[3] = { 0, 2 * F::GROUPS * k, n / SCALE_BLOCK_ROWS };
    cp_async_bulk_tensor_load(shared_address(s.a_scales), &p.a_blocks, a, shared_address(full));
    cp_async_bulk_tensor_load(shared_address(s.b_scales), &p.b_blocks, b, shared_address(full));
}

/* The four instructions of a tile of K.  Step i takes scales i * SCALES_A_STEP and on of a row: group and byte within
 * its cell. */
template <class F> __device__ static inline void multiply(uint32_t tensor, stage<F> &s, bool adds)
{
    const uint64_t a = shared_rows_descriptor(shared_address(s.a), SHARED_SWIZZLE_128B);
    const uint64_t b = shared_rows_descriptor(shared_address(s.b), SHARED_SWIZZLE_128B);
#pragma unroll
    for (int i = 0; i < K_STEPS; i++) {
        const uint32_t group = i * F::SCALES_A_STEP / 4, id = i * F::SCALES_A_STEP % 4;
        tcgen05_mma_block_scale<F::KIND, F::VECTOR, 1>(
            tensor + D_COLUMN, shared_matrix_advance(a, 32 * i), shared_matrix_advance(b, 32 * i),
            mma_with_scale_ids(F::INSTRUCTION, id, id), tensor + A_SCALE_COLUMN + 4 * group,
            tensor + B_SCALE_COLUMN + 8 * group, adds || i > 0);
    }
}

/* Blocks of 128x4 to tensor memory, each to 4 columns, for all four quarters of the lanes at once. */
template <class F> __device__ static inline void copy_scales(uint32_t tensor, stage<F> &s)
{
#pragma unroll
    for (int g = 0; g < F::GROUPS; g++) {
        tcgen05_cp<1, CP_32X128B>(tensor + A_SCALE_COLUMN + 4 * g,
                                  shared_scales_descriptor(shared_address(s.a_scales[g])));
        for (int half = 0; half < 2; half++)
            tcgen05_cp<1, CP_32X128B>(tensor + B_SCALE_COLUMN + 8 * g + 4 * half,
                                      shared_scales_descriptor(shared_address(s.b_scales[half][g])));
    }
}

/* ---- all threads: scales through registers, and the sums to D ---- */

/* The scales of one lane for a tile of K, ROWS / 32 rows that are 32 apart: column i of a group holds row 32 i + lane,
 * and each warp writes the same into its quarter of the lanes. */
template <int ROWS, int GROUPS> struct lane_scales {
    uint32_t word[GROUPS][ROWS / 32]; /* 4 scales each */

    __device__ void store(uint32_t address) const
    {
#pragma unroll
        for (int g = 0; g < GROUPS; g++)
            tcgen05_st<SHAPE_32X32B, ROWS / 32>(address + lanes_of_warp() + ROWS / 32 * g, word[g]);
    }
};

/* The 4 * GROUPS scales of one row, side by side in memory. */
template <int GROUPS> struct alignas(4 * GROUPS) row_scales {
    uint32_t word[GROUPS];
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

/* Row m + threadIdx.x of D, the tile's columns, 32 at a time. */
__device__ static inline void store_tile(const ladder_parameters &p, uint32_t tensor, int m, int n)
{
    const int row = m + (int)threadIdx.x;
#pragma unroll 1
    for (int column = 0; column < TILE_N; column += 32) {
        uint32_t r[32];
        tcgen05_ld<SHAPE_32X32B, 32>(r, tensor + lanes_of_warp() + D_COLUMN + column);
        tcgen05_wait_ld(r);
        if (row >= p.m) continue;
        const int64_t at = row * p.d_pitch + n + column;
        if (p.d_is_half) store_halves(static_cast<uint16_t *>(p.d) + at, r, p.n - n - column);
        else store_floats(static_cast<float *>(p.d) + at, r, p.n - n - column);
    }
}

/* ---- the kernels of a step, one a format ---- */

#define LADDER_KERNEL(step, name) \
    extern "C" __global__ void __launch_bounds__(THREADS, 1) \
        step##_##name(const __grid_constant__ ladder_parameters p) \
    { \
        step<name>(p); \
    }
#define LADDER_KERNELS(step) \
    LADDER_KERNEL(step, mxfp8) \
    LADDER_KERNEL(step, mxfp4) \
    LADDER_KERNEL(step, nvfp4) \
    LADDER_KERNEL(step, mixed) \
    LADDER_KERNEL(step, mixed_a)
