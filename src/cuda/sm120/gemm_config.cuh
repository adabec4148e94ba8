/* What one instance of the GEMM kernels by mma.sync consists of: sizes, shared memory, barriers, jobs. */
#pragma once

#include "cuda/ptx/mbarrier.cuh"
#include "cuda/scheduler/gemm_operands.cuh"
#include "gemm_instances.h"

enum gemm_kind { KIND_BF16, KIND_MXF8F6F4, KIND_MXF4, KIND_MXF4NVF4 };

/* The parameters behind the kind are columns of the table in gemm_instances.h. */
template <gemm_kind KIND_, int ROWS_, int COLUMNS_, int STEP_, int ALONG_M_, int ALONG_N_, int SCHEDULE, int STAGES_>
struct gemm_config {
    static constexpr gemm_kind KIND = KIND_;
    static constexpr int ROWS = ROWS_, COLUMNS = COLUMNS_, STEP = STEP_, STAGES = STAGES_;
    static constexpr bool SPLIT_K = SCHEDULE == BSMI_SM120_SPLIT_K;
    static constexpr int SETS = BSMI_SM120_SETS(SCHEDULE), ALL_STAGES = SETS * STAGES;

    /* Warps of a tile, and what each has of it: ROW_PARTS times 16 rows, OCTETS times 8 columns. */
    static constexpr int ALONG_M = ALONG_M_, ALONG_N = ALONG_N_, TILE_WARPS = ALONG_M * ALONG_N;
    static constexpr int WARPS = BSMI_SM120_WARPS(ALONG_M, ALONG_N, SCHEDULE),
                         PRODUCERS = BSMI_SM120_PRODUCERS(ROWS, COLUMNS, ALONG_M, ALONG_N, SCHEDULE);
    static constexpr bool COPIES = BSMI_SM120_COPIES_ROWS(ROWS, COLUMNS, ALONG_M, ALONG_N); /* gemm_copies.cuh */
    static constexpr int WARP_ROWS = ROWS / ALONG_M, WARP_COLUMNS = COLUMNS / ALONG_N;
    static constexpr int ROW_PARTS = WARP_ROWS / 16, OCTETS = WARP_COLUMNS / 8;

    /* A product has 32 bytes of K. */
    static constexpr int PRODUCTS = STEP / 32;
    static constexpr int STEP_COLUMNS = KIND == KIND_BF16 ? STEP / 2 : STEP; /* in units of the tensor maps' columns */
    static constexpr int A_BYTES = ROWS * STEP, B_BYTES = COLUMNS * STEP;

    /* Scales: bytes of a row that a product reads, and that a step does.  One word of a lane serves 32 rows (columns),
     * or the 16 that the warp has. */
    static constexpr int PRODUCT_SCALES = KIND == KIND_MXF8F6F4 ? 1
                                          : KIND == KIND_MXF4   ? 2
                                          : KIND == KIND_MXF4NVF4 ? 4
                                                                  : 0;
    static constexpr bool SCALED = PRODUCT_SCALES > 0;
    static constexpr int STEP_SCALES = PRODUCT_SCALES * PRODUCTS;
    static constexpr int A_GROUPS = (WARP_ROWS + 31) / 32, B_GROUPS = (WARP_COLUMNS + 31) / 32;
    static constexpr int BLOCKS = BSMI_SM120_BLOCKS(PRODUCT_SCALES, STEP), BLOCK_BYTES = BSMI_SM120_BLOCK_BYTES;
    static constexpr int A_SCALE_BYTES = BSMI_SM120_SCALE_BYTES(PRODUCT_SCALES, STEP, ROWS),
                         B_SCALE_BYTES = BSMI_SM120_SCALE_BYTES(PRODUCT_SCALES, STEP, COLUMNS);

    /* The epilogue takes eight rows of 32 columns of a warp at a time. */
    static constexpr int PIECE_ROWS = BSMI_SM120_PIECE_ROWS, PIECE_COLUMNS = BSMI_SM120_PIECE_COLUMNS,
                         PITCH = BSMI_SM120_PIECE_PITCH, ALONG_ROW = WARP_COLUMNS / PIECE_COLUMNS,
                         PIECES = 2 * ROW_PARTS * ALONG_ROW;

    /* Shared memory, from its beginning. */
    static constexpr int OF_A = 0, OF_B = OF_A + ALL_STAGES * A_BYTES, OF_A_SCALES = OF_B + ALL_STAGES * B_BYTES,
                         OF_B_SCALES = OF_A_SCALES + ALL_STAGES * A_SCALE_BYTES,
                         OF_WARPS = OF_B_SCALES + ALL_STAGES * B_SCALE_BYTES,
                         WARP_BYTES = BSMI_SM120_WARP_BYTES(WARP_COLUMNS),
                         OF_TABLE = PIECE_ROWS * PITCH,
                         AT_FULL = OF_WARPS + WARPS * WARP_BYTES, AT_EMPTY = AT_FULL + ALL_STAGES * 8,
                         AT_FINISH = AT_EMPTY + ALL_STAGES * 8, AT_QUANTIZER = AT_FINISH + BSMI_SM120_FINISH_BYTES,
                         SHARED_BYTES = AT_QUANTIZER + (SCALED ? BSMI_GEMM_QUANTIZER_BYTES : 0);

    static_assert(WARP_ROWS % 16 == 0 && (WARP_ROWS == 16 || WARP_ROWS % 32 == 0), "what a word of scales serves");
    static_assert(WARP_COLUMNS % 32 == 0, "blocks of 32 numbers of D lie in a warp");
    static_assert(STEP == 32 || STEP == 64 || STEP == 128, "swizzles");
    static_assert(ROWS * STEP % (8 * STEP) == 0 && A_BYTES % 1024 == 0 && B_BYTES % 1024 == 0,
                  "swizzle patterns begin at multiples of their size");
    static_assert(A_SCALE_BYTES % 128 == 0 && B_SCALE_BYTES % 128 == 0, "where TMA writes without a swizzle");
    static_assert(WARP_BYTES % 16 == 0 && AT_FULL % 16 == 0, "alignment");
    static_assert(SHARED_BYTES
                      == BSMI_SM120_SHARED_BYTES(PRODUCT_SCALES, ROWS, COLUMNS, STEP, ALONG_M, ALONG_N, SCHEDULE,
                                                 STAGES),
                  "as the host has it");
    static_assert(SHARED_BYTES <= 101376, "shared memory of a CTA");
};

/* Barriers: who arrives in a phase, and who waits for its end.
 *
 *   full[stage]    arrives: the producer, and the bytes of the stage; where rows  waits: the warps of the tile
 *                  are copied, each lane of the producer's warp, too
 *   empty[stage]   arrives: a lane of each warp of the tile, once it has read it  waits: the producer
 *
 * The producer begins with the parity of the phase before the first, which counts as complete: every stage is empty.
 * Each set of warps has STAGES stages, a ring and a producer of its own: a set that stores does not hold up the
 * other. */
template <class CONFIG> __device__ static inline uint32_t full_barrier(uint32_t shared, uint32_t stage)
{
    return shared + CONFIG::AT_FULL + stage * 8;
}
template <class CONFIG> __device__ static inline uint32_t empty_barrier(uint32_t shared, uint32_t stage)
{
    return shared + CONFIG::AT_EMPTY + stage * 8;
}

/* A tile of D, or one part of K of it. */
struct gemm_job {
    gemm_tile tile;
    int32_t part, first_step, steps;
    bool has_last_step;                   /* of K */
};

/* The ring of a set, and the stage that it has come to, among all of them. */
template <class CONFIG> struct gemm_set_ring : gemm_ring<CONFIG::STAGES> {
    uint32_t set;
    __device__ inline gemm_set_ring(uint32_t set_, uint32_t parity)
        : gemm_ring<CONFIG::STAGES>{ 0, parity }, set(set_)
    {
    }
    __device__ inline uint32_t stage() const { return CONFIG::SETS == 1 ? this->at : set * CONFIG::STAGES + this->at; }
};

/* The jobs of a set of this CTA, in their order: its producer and its warps walk them so.  All CTAs have one before any
 * has a second one. */
template <class CONFIG> struct gemm_jobs {
    int64_t number, count;
    int32_t all_steps;
    __device__ gemm_jobs(const bsmi_blackwell_parameters &p, uint32_t set)
        : number(blockIdx.x + (int64_t)set * gridDim.x), count(gemm_tiles(p) * (CONFIG::SPLIT_K ? p.parts : 1)),
          all_steps(gemm_steps(p))
    {
    }
    __device__ bool more() const { return number < count; }
    __device__ void next() { number += (int64_t)CONFIG::SETS * gridDim.x; }
    __device__ gemm_job job(const bsmi_blackwell_parameters &p) const
    {
        gemm_job job = { {}, 0, 0, all_steps, true };
        if (CONFIG::SPLIT_K) {
            job.part = (int32_t)((uint32_t)number % (uint32_t)p.parts);
            job.first_step = job.part * p.split_blocks;
            job.steps = min(p.split_blocks, all_steps - job.first_step);
            job.has_last_step = job.first_step + job.steps == all_steps;
        }
        job.tile = gemm_tile_at(p, CONFIG::SPLIT_K ? (uint32_t)number / (uint32_t)p.parts : number, CONFIG::ROWS,
                                CONFIG::COLUMNS);
        return job;
    }
};
