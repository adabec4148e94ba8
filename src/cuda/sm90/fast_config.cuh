/* What the instance for refolded codes consists of: a gemm_config with the factors of rows and columns beside each stage. */
#pragma once

#include "cuda/fast_parameters.h"
#include "cuda/ptx/wgmma_e4m3.cuh"
#include "fast_instances.h"
#include "gemm_config.cuh"

/* A step is BSMI_FOLD_COLUMNS codes of a byte, as many bytes as BSMI_K_STEP numbers of bf16. */
template <int ROWS, int COLUMNS, int GROUPS, int CLUSTER_ROWS, int CLUSTER_COLUMNS, int STAGES, int D_BOX_BYTES>
struct fast_config : gemm_config<ROWS, COLUMNS, GROUPS, CLUSTER_ROWS, CLUSTER_COLUMNS, STAGES, D_BOX_BYTES> {
    using base = gemm_config<ROWS, COLUMNS, GROUPS, CLUSTER_ROWS, CLUSTER_COLUMNS, STAGES, D_BOX_BYTES>;

    /* A warpgroup's 64 rows are multiplied with so many columns at a time: registers hold the sums of all of its columns, and the products
     * of one such part. */
    static constexpr int PART = 128, PARTS = COLUMNS / PART;

    /* Factors of a stage: the rows', then the columns'. */
    static constexpr int A_FACTOR_BYTES = ROWS * 4, B_FACTOR_BYTES = COLUMNS * 4, FACTOR_BYTES = A_FACTOR_BYTES + B_FACTOR_BYTES;
    static constexpr int AT_FACTORS = base::SHARED_BYTES, SHARED_BYTES = AT_FACTORS + STAGES * FACTOR_BYTES;

    static_assert(base::K_BYTES == BSMI_FOLD_COLUMNS, "a step is as many codes as a group that shares a factor");
    static_assert(base::BLOCKS == 1 && COLUMNS % PART == 0, "a warpgroup has 64 rows, and whole parts");
    static_assert(base::SUMS + PART / 2 <= 192, "sums and products leave registers to work with");
    static_assert(AT_FACTORS % 16 == 0 && A_FACTOR_BYTES % 16 == 0, "bulk copies move 16 bytes");
    static_assert(SHARED_BYTES <= 232448, "shared memory of a CTA");
};
