/* What one instance of the GEMM kernels that divide K consists of: sizes, shared memory, barriers, turns. */
#pragma once

#include "cuda/ptx/cluster_store.cuh"
#include "cuda/sm90/kernels/decoding_config.cuh"
#include "split_instances.h"

/* The parameters are columns of the table in split_instances.h. */
template <class CODES_, int ROWS_, int GROUPS_, int STAGES_, int MOST_COLUMNS_> struct split_config {
    using CODES = CODES_;
    static constexpr int ROWS = ROWS_, COLUMNS = 64, GROUPS = GROUPS_, STAGES = STAGES_;

    /* A cluster makes one tile: its CTAs divide K. */
    static constexpr int CLUSTER_ROWS = 1, CLUSTER_COLUMNS = 1, CLUSTER = 1;

    /* One warpgroup loads.  Those that multiply have turns of four steps each; WARPS is what they are together. */
    static constexpr int WARPS = 4 * GROUPS, THREADS = 128 * (GROUPS + 1), PRODUCTS = 1, PRODUCT_SUMS = ROWS / 2, STEPS = 4,
                         ROW_LOADERS = 2;

    /* The registers of an SM are dealt out evenly at first, the same number of warps to each of its four parts. */
    static constexpr int EVEN = 65536 / THREADS / 8 * 8, PRODUCER = 40;
    static constexpr int CONSUMER = ((GROUPS + 1) * EVEN - PRODUCER) / GROUPS / 8 * 8;

    /* A stage, which is a turn: of A's rows four steps, and 128 bytes of each of B's. */
    static constexpr int A_BOX_ROWS = ROWS, K_BYTES = BSMI_K_STEP * 2, A_BYTES = ROWS * K_BYTES, CODE_BYTES = COLUMNS * 128;

    /* Scales of the tile's rows of B, all of them: a row's bytes, and 16 so that rows lie in banks of their own.  Some warps
     * bring those of some rows each. */
    static constexpr int BLOCK = CODES::MICRO ? 16 : 32, SCALE_PITCH = MOST_COLUMNS_ / BLOCK + 16,
                         SCALE_BYTES = COLUMNS * SCALE_PITCH;
    static constexpr int BRINGERS = 8, WARP_ROWS = COLUMNS / BRINGERS;

    /* The sums of a warpgroup. */
    static constexpr int SUM_BYTES = ROWS * COLUMNS * 4;

    /* For the epilogue, as decoding_config has them; tables are each warpgroup's own. */
    static constexpr int ROW_TABLE_BYTES = 3 * 4 * ROWS, TABLE_BYTES = ROW_TABLE_BYTES + 3 * 4 * COLUMNS;
    static constexpr int CHUNK = ROWS < 32 ? ROWS : 32, CHUNK_PITCH = 16 * 4 + 16, CHUNKS_BYTES = BSMI_SM90_SPLIT_CHUNKS;

    /* Shared memory, from its beginning.  GIVEN: sums of the warpgroups but one; SENT: those of the other CTA. */
    static constexpr int AT_A = 0, AT_CODES = AT_A + STAGES * STEPS * A_BYTES, AT_GIVEN = AT_CODES + STAGES * CODE_BYTES,
                         AT_SENT = AT_GIVEN + (GROUPS - 1) * SUM_BYTES, AT_CHUNKS = AT_SENT + SUM_BYTES,
                         AT_SCALES = AT_CHUNKS + CHUNKS_BYTES, AT_EXPONENTS = AT_SCALES + SCALE_BYTES,
                         AT_FOUND = AT_EXPONENTS + COLUMNS * 4, AT_TABLES = AT_FOUND + BRINGERS * 4,
                         AT_FULL = AT_TABLES + GROUPS * TABLE_BYTES, AT_EMPTY = AT_FULL + STAGES * 8,
                         AT_READY = AT_EMPTY + STAGES * 8, AT_READ = AT_READY + 8, AT_GIVEN_FULL = AT_READ + 8,
                         AT_GIVEN_EMPTY = AT_GIVEN_FULL + 4 * 8, AT_SENT_FULL = AT_GIVEN_EMPTY + 4 * 8,
                         AT_SENT_EMPTY = AT_SENT_FULL + 4 * 8, SHARED_BYTES = AT_SENT_EMPTY + 4 * 8;

    static_assert(STAGES % GROUPS == 0, "a warpgroup finds in a stage the phase that follows the one it found there before");
    static_assert(CODES::NIBBLES, "codes of four bits");
    static_assert(STAGES > GROUPS, "a turn is loaded while others are multiplied");
    static_assert(WARPS >= BRINGERS && COLUMNS % BRINGERS == 0, "warps bring whole rows of scales");
    static_assert(ROWS % CHUNK == 0 && CHUNK % 16 == 0 && 4 * CHUNK * CHUNK_PITCH <= CHUNKS_BYTES,
                  "a warp finishes 16 rows at a time");
    static_assert(A_BOX_ROWS % 8 == 0 && A_BYTES % 1024 == 0, "boxes are whole swizzle patterns");
    static_assert(SCALE_PITCH % 16 == 0 && AT_SCALES % 16 == 0, "rows of scales are copied 16 bytes at a time");
    static_assert(SHARED_BYTES == BSMI_SM90_SPLIT_BYTES(BLOCK, ROWS, GROUPS, STAGES, MOST_COLUMNS_), "as the host has it");
    static_assert(SHARED_BYTES <= 232448, "shared memory of a CTA");
};

/* Of the cluster's CTAs, which divide K, this one.  There are two at most: the order in which two sums are added changes
 * nothing. */
struct split_part {
    uint32_t rank, parts;
};

__device__ static inline split_part split_part_of() { return { cluster_ctarank(), cluster_nctarank() }; }

/* The cluster's tiles that this one begins with, and goes on by. */
__device__ static inline uint32_t first_of_cluster(const split_part &part) { return blockIdx.x / part.parts; }
__device__ static inline uint32_t clusters_of(const split_part &part) { return gridDim.x / part.parts; }

/* Turns of a tile are its steps four by four; a CTA takes each parts-th. */
template <class CONFIG> __device__ static inline int32_t turns_of_part(const bsmi_gemm_parameters &p, const split_part &part)
{
    const int32_t turns = (p.segments[0].blocks + CONFIG::STEPS - 1) / CONFIG::STEPS;
    return (turns - (int32_t)part.rank + (int32_t)part.parts - 1) / (int32_t)part.parts;
}
