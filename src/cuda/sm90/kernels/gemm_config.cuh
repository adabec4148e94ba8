/* What one instance of the GEMM kernels consists of: sizes, shared memory, barriers, tiles. */
#pragma once

#include "cuda/scheduler/gemm_tile.cuh"
#include "cuda/ptx/mbarrier.cuh"
#include "cuda/ptx/tensor_copy.cuh"
#include "cuda/ptx/threads.cuh"
#include "cuda/ptx/wgmma.cuh"
#include "gemm_instances.h"

/* The parameters are columns of the table in gemm_instances.h. */
template <int ROWS_, int COLUMNS_, int GROUPS_, int CLUSTER_ROWS_, int CLUSTER_COLUMNS_, int STAGES_, int D_BOX_BYTES_> struct gemm_config {
    static constexpr int ROWS = ROWS_, COLUMNS = COLUMNS_, GROUPS = GROUPS_, STAGES = STAGES_, D_BOX_BYTES = D_BOX_BYTES_;
    static constexpr int CLUSTER_ROWS = CLUSTER_ROWS_, CLUSTER_COLUMNS = CLUSTER_COLUMNS_, CLUSTER = CLUSTER_ROWS * CLUSTER_COLUMNS;
    static constexpr int THREADS = 128 * (GROUPS + 1);

    /* A consumer warpgroup has BLOCKS stacked products of 64 rows, SUMS fp32 registers each. */
    static constexpr int BLOCKS = ROWS / 64 / GROUPS, SUMS = COLUMNS / 2;

    /* With few sums, the products of a step take no longer than the instructions between them: then each stage has instructions of its own, in
     * which its addresses are constants. */
    static constexpr bool STAGES_ARE_CONSTANTS = BLOCKS * SUMS <= 64;

    /* What is rarely asked for stands once for all kernels of a file, in functions that are called.  Kernels with one warpgroup, which do without
     * setmaxnreg, became slower by having a call anywhere, though their steps have the same instructions: 64x48 from 9.0 to 10.8 us. */
    static constexpr bool CALLS = GROUPS == 2;

    /* Two such warpgroups also compute rows and columns that bf16 leaves out: behind small products another kernel for them would be felt. */
    static constexpr bool COMPUTES_LEFT_OUT = STAGES_ARE_CONSTANTS && CALLS;

    /* Boxes: each CTA of a row of the cluster loads its part of A for all of them, likewise B in a column of it. */
    static constexpr int A_BOX_ROWS = ROWS / CLUSTER_COLUMNS, B_BOX_ROWS = COLUMNS / CLUSTER_ROWS;
    static constexpr int K_BYTES = BSMI_K_STEP * 2, A_BYTES = ROWS * K_BYTES, B_BYTES = COLUMNS * K_BYTES;

    /* D leaves through two boxes of 16 rows for each consumer warp. */
    static constexpr int D_BOX = BSMI_GEMM_D_BOX_ROWS * D_BOX_BYTES;

    /* Shared memory, from its beginning. */
    static constexpr int AT_A = 0, AT_B = AT_A + STAGES * A_BYTES, AT_D = AT_B + STAGES * B_BYTES, AT_FULL = AT_D + GROUPS * 8 * D_BOX,
                         AT_EMPTY = AT_FULL + STAGES * 8, SHARED_BYTES = AT_EMPTY + STAGES * 8;

    static_assert(ROWS % (64 * GROUPS) == 0, "a warpgroup multiplies 64 rows at a time");
    static_assert(BLOCKS * SUMS <= 128, "the sums leave the consumers registers to work with");
    static_assert(A_BYTES % 1024 == 0 && B_BYTES % 1024 == 0, "swizzle patterns begin at multiples of 1024 bytes");
    static_assert(A_BOX_ROWS % 8 == 0 && B_BOX_ROWS % 8 == 0, "boxes are whole swizzle patterns");
    static_assert(A_BOX_ROWS <= 256 && B_BOX_ROWS <= 256, "a box has at most 256 rows");
    static_assert(COLUMNS * 2 % D_BOX_BYTES == 0 && D_BOX % (8 * D_BOX_BYTES) == 0, "a row of the tile is whole boxes");
    static_assert(3 * 4 * COLUMNS <= 8 * D_BOX, "the boxes hold the table of columns");
    static_assert(SHARED_BYTES <= 232448, "shared memory of a CTA");
};

/* A stage of the ring and the parity of its phase; every role walks it with the same function. */
template <class CONFIG> struct gemm_ring {
    uint32_t stage, parity;
    __device__ inline void next()
    {
        if (++stage == CONFIG::STAGES) {
            stage = 0;
            parity ^= 1;
        }
    }
    __device__ inline void advance(uint32_t steps) /* at most a whole turn */
    {
        stage += steps;
        if (stage >= CONFIG::STAGES) {
            stage -= CONFIG::STAGES;
            parity ^= 1;
        }
    }
};

/* full: one arrival, of the own producer, and the bytes of a stage.  empty: an arrival of every consumer warpgroup of every CTA
 * that what this CTA loads goes to, or whose loads come here: those of its row and its column of the cluster. */
template <class CONFIG> __device__ static inline uint32_t full_barrier(uint32_t shared, uint32_t stage)
{
    return shared + CONFIG::AT_FULL + stage * 8;
}
template <class CONFIG> __device__ static inline uint32_t empty_barrier(uint32_t shared, uint32_t stage)
{
    return shared + CONFIG::AT_EMPTY + stage * 8;
}

/* All threads of the cluster; alone: of a CTA that has none. */
__device__ static inline void synchronize_ctas(bool alone)
{
    if (alone) {
        __syncthreads();
    } else {
        barrier_cluster_arrive();
        barrier_cluster_wait();
    }
}

/* The place of a CTA in its cluster. */
struct gemm_cta { uint32_t row, column; };
template <class CONFIG> __device__ static inline gemm_cta gemm_cta_of(uint32_t rank)
{
    return { rank % CONFIG::CLUSTER_ROWS, rank / CONFIG::CLUSTER_ROWS };
}

template <class CONFIG> __device__ static inline gemm_tile gemm_tile_of(const bsmi_gemm_parameters &p, int64_t number, gemm_cta cta)
{
    gemm_tile tile = gemm_tile_at(p, number, CONFIG::ROWS * CONFIG::CLUSTER_ROWS, CONFIG::COLUMNS * CONFIG::CLUSTER_COLUMNS);
    tile.row += (int32_t)cta.row * CONFIG::ROWS;
    tile.column += (int32_t)cta.column * CONFIG::COLUMNS;
    return gemm_tile_inside(p, tile);
}
