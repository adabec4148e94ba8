/* What one instance of the shared-memory main loop consists of: sizes, and places in shared memory. */
#pragma once

#include "cuda/ptx/wgmma.cuh"
#include "cuda/sm90/kernels/shared_memory_instances.h"
#include "cuda/sm90/pipeline/ring.cuh"
#include "cuda/sm90/pipeline/tiles.cuh"

/* The parameters are columns of the table in shared_memory_instances.h. */
template <int ROWS_, int COLUMNS_, int GROUPS_, int CLUSTER_ROWS_, int CLUSTER_COLUMNS_, int STAGES_, int D_BOX_BYTES_>
struct shared_memory_config {
    static constexpr int ROWS = ROWS_, COLUMNS = COLUMNS_, GROUPS = GROUPS_, STAGES = STAGES_,
                         D_BOX_BYTES = D_BOX_BYTES_;
    static constexpr int CLUSTER_ROWS = CLUSTER_ROWS_, CLUSTER_COLUMNS = CLUSTER_COLUMNS_;
    static constexpr int CLUSTER = CLUSTER_ROWS * CLUSTER_COLUMNS;
    static constexpr int THREADS = 128 * (GROUPS + 1);

    /* A consumer warpgroup has BLOCKS stacked products of 64 rows, SUMS fp32 registers each. */
    static constexpr int BLOCKS = ROWS / 64 / GROUPS, SUMS = COLUMNS / 2;

    /* With few sums, the products of a step take no longer than the instructions between them: then each stage has
     * instructions of its own, in which its addresses are constants. */
    static constexpr bool STAGES_ARE_CONSTANTS = BLOCKS * SUMS <= 64;

    /* What is rarely asked for stands once for all kernels of a file, in functions that are called.  Kernels with one
     * warpgroup, which do without setmaxnreg, became slower by having a call anywhere, though their steps have the same
     * instructions: 64x48 from 9.0 to 10.8 us. */
    static constexpr bool CALLS = GROUPS == 2;

    /* Two such warpgroups also compute the fallback rows and columns: behind small products another kernel for them
     * would be felt. */
    static constexpr bool COMPUTES_FALLBACK = STAGES_ARE_CONSTANTS && CALLS;

    /* Boxes: each CTA of a row of the cluster loads its part of A for all of them, likewise B in a column of it. */
    static constexpr int A_BOX_ROWS = ROWS / CLUSTER_COLUMNS, B_BOX_ROWS = COLUMNS / CLUSTER_ROWS;
    static constexpr int K_BYTES = BSMI_K_STEP * 2, A_BYTES = ROWS * K_BYTES, B_BYTES = COLUMNS * K_BYTES;

    /* D leaves through two boxes of 16 rows for each consumer warp. */
    static constexpr int D_BOX = BSMI_GEMM_D_BOX_ROWS * D_BOX_BYTES;

    /* Shared memory, from its beginning. */
    static constexpr int AT_A = 0, AT_B = AT_A + STAGES * A_BYTES, AT_D = AT_B + STAGES * B_BYTES,
                         AT_FULL = AT_D + GROUPS * 8 * D_BOX, AT_EMPTY = AT_FULL + STAGES * 8,
                         SHARED_BYTES = AT_EMPTY + STAGES * 8;

    static_assert(ROWS % (64 * GROUPS) == 0, "a warpgroup multiplies 64 rows at a time");
    static_assert(BLOCKS * SUMS <= 128, "the sums leave the consumers registers to work with");
    static_assert(A_BYTES % 1024 == 0 && B_BYTES % 1024 == 0, "swizzle patterns begin at multiples of 1024 bytes");
    static_assert(A_BOX_ROWS % 8 == 0 && B_BOX_ROWS % 8 == 0, "boxes are whole swizzle patterns");
    static_assert(A_BOX_ROWS <= 256 && B_BOX_ROWS <= 256, "a box has at most 256 rows");
    static_assert(COLUMNS * 2 % D_BOX_BYTES == 0 && D_BOX % (8 * D_BOX_BYTES) == 0, "a row of the tile is whole boxes");
    static_assert(3 * 4 * COLUMNS <= 8 * D_BOX, "the boxes hold the table of columns");
    static_assert(SHARED_BYTES == BSMI_SM90_SHARED_MEMORY_BYTES(ROWS, COLUMNS, GROUPS, STAGES, D_BOX_BYTES),
                  "as the host has it");
    static_assert(SHARED_BYTES <= 232448, "shared memory of a CTA");
};
