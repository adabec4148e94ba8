/* What one instance of the GEMM kernels for tensor memory consists of: sizes, shared memory, tensor memory, barriers,
 * tiles. */
#pragma once

#include "cuda/scheduler/gemm_operands.cuh"
#include "cuda/ptx/mbarrier.cuh"
#include "cuda/ptx/tensor_copy.cuh"
#include "cuda/ptx/tensor_memory.cuh"
#include "cuda/ptx/tensor_mma.cuh"
#include "cuda/ptx/threads.cuh"
#include "gemm_instances.h"

/* The last four parameters are columns of the table in gemm_instances.h.  ROWS and COLUMNS are lanes and columns of an
 * accumulator, rows of the operands that the instruction calls A and B.  These are the product's A and B, or, SWAPPED,
 * its B and A: D^T = B A^T, for few rows of D.  A swapped instance stores D from registers, without boxes (D_BOX_BYTES
 * 0). */
template <mma_kind KIND_, int COLUMNS_, int CTAS_, int STAGES_, int D_BOX_BYTES_, bool SPARSE_ = false>
struct gemm_config {
    static constexpr mma_kind KIND = KIND_;
    static constexpr int COLUMNS = COLUMNS_, CTAS = CTAS_, STAGES = STAGES_, D_BOX_BYTES = D_BOX_BYTES_,
                         ROWS = BSMI_SM100_ROWS;
    static constexpr bool SWAPPED = D_BOX_BYTES == 0, SPARSE = SPARSE_;

    /* A step of K is 128 bytes of a row in shared memory, less where all of K is: four products of 32 bytes. */
    static constexpr int ROW_BYTES = BSMI_SM100_ROW_BYTES, PRODUCTS = 4, PRODUCT_BYTES = ROW_BYTES / PRODUCTS;
    static constexpr int STEP_COLUMNS = KIND == MMA_F16 ? 64 : 128; /* in units of the tensor maps' columns */
    /* Operands may be MN-major. */
    static constexpr bool HAS_MAJORS = !SPARSE && (KIND == MMA_F16 || KIND == MMA_MXF8F6F4);
    static constexpr int A_BYTES = ROWS * ROW_BYTES, B_ROWS = COLUMNS / CTAS;

    /* Of a sparse A these are kept codes: a product has twice their columns, 64 bytes of B, so a step has two panels of
     * 128 bytes of B's rows, and 32 bytes of metadata of each row of A, 8 columns of tensor memory. */
    static constexpr int B_PANELS = SPARSE ? 2 : 1, B_PANEL_BYTES = B_ROWS * ROW_BYTES,
                         B_BYTES = B_PANELS * B_PANEL_BYTES, B_PRODUCT_BYTES = B_PANELS * PRODUCT_BYTES;
    static constexpr int METADATA_BYTES = SPARSE ? ROWS * BSMI_SM100_METADATA_ROW_BYTES : 0,
                         METADATA_COLUMNS = SPARSE ? BSMI_SM100_METADATA_ROW_BYTES / 4 : 0;

    /* Scales: a block of layout 128x4 is 512 bytes, and 4 columns of tensor memory.  Of a step, 128 rows have this
     * many: */
    static constexpr int BLOCKS = KIND == MMA_MXF8F6F4 ? 1 : KIND == MMA_MXF4 ? 2 : KIND == MMA_MXF4NVF4 ? 4 : 0;
    static constexpr int BLOCK_PRODUCTS = BLOCKS == 0 ? PRODUCTS : PRODUCTS / BLOCKS;      /* that read one block */
    static constexpr int B_ROW_BLOCKS = (COLUMNS + 127) / 128, BLOCK_BYTES = BSMI_SM100_SCALE_BLOCK_BYTES;
    static constexpr int A_SCALE_BYTES = BLOCKS * BLOCK_BYTES, B_SCALE_BYTES = B_ROW_BLOCKS * A_SCALE_BYTES;

    /* What is rarely asked for is called where quantizing D is, too. */
    static constexpr bool CALLS = BLOCKS > 0;

    /* The epilogue takes CHUNK columns of 16 rows at a time, SUMS numbers a thread; swapped, of 32 rows. */
    static constexpr int MOST = SWAPPED ? 16 : 64, CHUNK = COLUMNS < MOST ? COLUMNS : MOST, CHUNKS = COLUMNS / CHUNK;
    static constexpr int SUMS = SWAPPED ? CHUNK : CHUNK / 2, PIECES = ROWS * COLUMNS / (128 * SUMS);
    static constexpr int D_BOX = 16 * D_BOX_BYTES, TABLE_BYTES = SWAPPED ? 0 : (KIND == MMA_F16 ? 3 : 2) * 4 * COLUMNS;

    /* Tensor memory, from its first column: two accumulators, then the scales of one step, which each step writes
     * anew.  Where these leave too little room the accumulators share columns: see gemm_epilogue.cuh.  The manual asks
     * for no alignment of D; both begin at multiples of 32 columns nevertheless, as those of all kernels known to run
     * do. */
    static constexpr int TENSOR_COLUMNS = 512, SCALE_COLUMNS = 4 * BLOCKS * (1 + B_ROW_BLOCKS);
    static constexpr int AT_METADATA = TENSOR_COLUMNS - METADATA_COLUMNS, AT_A_SCALES = AT_METADATA - SCALE_COLUMNS,
                         AT_B_SCALES = AT_A_SCALES + 4 * BLOCKS;
    static constexpr bool SHARES = 2 * COLUMNS > AT_A_SCALES;
    static constexpr int AT_SECOND = SHARES         ? (AT_A_SCALES - COLUMNS) / 32 * 32
                                     : COLUMNS < 32 ? 32
                                                    : COLUMNS,
                         ACCUMULATORS = SHARES ? 1 : 2;

    /* Shared memory, from its beginning. */
    static constexpr int OF_A = 0, OF_B = OF_A + STAGES * A_BYTES, AT_D = OF_B + STAGES * B_BYTES,
                         OF_A_SCALES = AT_D + 8 * D_BOX, OF_B_SCALES = OF_A_SCALES + STAGES * A_SCALE_BYTES,
                         OF_METADATA = OF_B_SCALES + STAGES * B_SCALE_BYTES,
                         AT_TABLE = OF_METADATA + STAGES * METADATA_BYTES, AT_FULL = AT_TABLE + TABLE_BYTES,
                         AT_EMPTY = AT_FULL + STAGES * 8, AT_FILLED = AT_EMPTY + STAGES * 8,
                         AT_DRAINED = AT_FILLED + 16, AT_TENSOR = AT_DRAINED + 16, AT_QUANTIZER = AT_TENSOR + 16,
                         SHARED_BYTES = AT_QUANTIZER + (BLOCKS == 0 ? 0 : BSMI_GEMM_QUANTIZER_BYTES);

    static_assert(COLUMNS <= 256 && COLUMNS % (KIND == MMA_F16 ? 16 : 8) == 0, "N of an instruction with 128 rows");
    static_assert(COLUMNS % 32 == 0 || SWAPPED, "the scales of a tile's columns begin with lane 0");
    static_assert(!SWAPPED || (CTAS == 1 && !SHARES), "swapped: what the epilogue does");
    static_assert(B_ROWS % 8 == 0, "boxes are whole swizzle patterns");
    static_assert(AT_SECOND % 32 == 0 && AT_SECOND + COLUMNS <= AT_A_SCALES,
                  "accumulators and scales have columns of their own");
    static_assert(!SHARES || COLUMNS - AT_SECOND <= CHUNK, "what the accumulators share is read first, as one chunk");
    static_assert(CHUNK * 2 % (SWAPPED ? 1 : D_BOX_BYTES) == 0, "a row of a chunk is whole boxes");
    static_assert(AT_D % 1024 == 0 && D_BOX % 512 == 0, "swizzle patterns begin at multiples of their size");
    static_assert(!SPARSE || (SWAPPED && BLOCKS > 0 && OF_METADATA % 256 == 0), "sparse: what the multiplier does");
    static_assert(SHARED_BYTES
                      == BSMI_SM100_SHARED_BYTES(BLOCKS, KIND == MMA_F16 ? 3 : 2, COLUMNS, CTAS, STAGES, D_BOX_BYTES)
                             + (SPARSE ? BSMI_SM100_SPARSE_BYTES(COLUMNS, STAGES) : 0),
                  "as the host has it");
    static_assert(SHARED_BYTES <= 232448, "shared memory of a CTA");
};

/* Barriers: who arrives in a phase, and who waits for its end.  Of a pair, each CTA has them, but full and drained of
 * the even one alone count: it multiplies for both.
 *
 *   full[stage]      arrives: the even CTA's producer, and the bytes of the stage in all CTAs          waits: the
 * multiplier empty[stage]     arrives, in every CTA: the commit behind the products that read the stage         waits:
 * the CTA's producer filled[i]        arrives, in every CTA: the commit behind the last products of accumulator i
 * waits: the CTA's epilogue warps drained[i]       arrives: a thread of every epilogue warp of all CTAs, once its warp
 * has read      waits: the multiplier accumulator i; where the two share columns (then i is always 0): what they share
 *
 * full and filled begin incomplete; producer and multiplier begin with the parity of the phase before the first, which
 * counts as complete: every stage is empty, every accumulator drained. */
template <class CONFIG> __device__ static inline uint32_t full_barrier(uint32_t shared, uint32_t stage)
{
    return shared + CONFIG::AT_FULL + stage * 8;
}
template <class CONFIG> __device__ static inline uint32_t empty_barrier(uint32_t shared, uint32_t stage)
{
    return shared + CONFIG::AT_EMPTY + stage * 8;
}
template <class CONFIG> __device__ static inline uint32_t filled_barrier(uint32_t shared, uint32_t accumulator)
{
    return shared + CONFIG::AT_FILLED + accumulator * 8;
}
template <class CONFIG> __device__ static inline uint32_t drained_barrier(uint32_t shared, uint32_t accumulator)
{
    return shared + CONFIG::AT_DRAINED + accumulator * 8;
}

/* The first column of an accumulator. */
template <class CONFIG> __device__ static inline uint32_t accumulator_of(uint32_t tensor, uint32_t accumulator)
{
    return tensor + accumulator * CONFIG::AT_SECOND;
}

/* What goes into one accumulator: a tile of D, or one part of K of it. */
struct gemm_job {
    gemm_tile tile;
    int32_t part, first_step, steps;
};

template <class CONFIG>
__device__ static inline gemm_tile gemm_tile_of(const bsmi_blackwell_parameters &p, int64_t number, uint32_t rank)
{
    if (CONFIG::SWAPPED) return gemm_tile_at(p, number, CONFIG::COLUMNS, CONFIG::ROWS);
    gemm_tile tile = gemm_tile_at(p, number, CONFIG::ROWS * CONFIG::CTAS, CONFIG::COLUMNS);
    tile.row += (int32_t)rank * CONFIG::ROWS;
    return tile;
}

/* The jobs of this CTA or pair, in their order; every role walks them so.  The parts of a tile follow each other in one
 * CTA, which adds them up; or, where tiles are fewer than CTAs (p.split_k, swapped instances), they go to as many CTAs,
 * and bsmi_finish adds them. */
template <class CONFIG> struct gemm_jobs {
    int64_t number, count, step;
    int32_t part, parts, all_steps;
    bool split_k;
    __device__ explicit gemm_jobs(const bsmi_blackwell_parameters &p)
        : number(blockIdx.x / CONFIG::CTAS), step(gridDim.x / CONFIG::CTAS), part(0), parts(p.parts > 1 ? p.parts : 1),
          all_steps(gemm_steps(p)), split_k(CONFIG::SWAPPED && p.split_k != 0)
    {
        count = gemm_tiles(p) * (split_k ? parts : 1);
    }
    __device__ bool more() const { return number < count; }
    __device__ void next()
    {
        if (!split_k && ++part < parts) return;
        part = 0;
        number += step;
    }
    __device__ gemm_job job(const bsmi_blackwell_parameters &p, uint32_t rank) const
    {
        gemm_job job;
        job.part = split_k ? (int32_t)((uint32_t)number % (uint32_t)parts) : part;
        job.tile = gemm_tile_of<CONFIG>(p, split_k ? (uint32_t)number / (uint32_t)parts : number, rank);
        job.first_step = parts == 1 ? 0 : job.part * p.split_blocks;
        job.steps = parts == 1 ? all_steps : min(p.split_blocks, all_steps - job.first_step);
        return job;
    }
};

/* What fills lanes of the accumulator, and what fills columns. */
template <class CONFIG>
__device__ static inline const bsmi_operand_boxes &gemm_lane_boxes(const bsmi_blackwell_parameters &p)
{
    return CONFIG::SWAPPED ? p.b_boxes : p.a_boxes;
}
template <class CONFIG>
__device__ static inline const bsmi_operand_boxes &gemm_column_boxes(const bsmi_blackwell_parameters &p)
{
    return CONFIG::SWAPPED ? p.a_boxes : p.b_boxes;
}
template <class CONFIG>
__device__ static inline gemm_side gemm_lane_side(const bsmi_blackwell_parameters &p, const gemm_tile &tile)
{
    return CONFIG::SWAPPED ? gemm_side_b(p, tile) : gemm_side_a(p, tile);
}
template <class CONFIG>
__device__ static inline gemm_side gemm_column_side(const bsmi_blackwell_parameters &p, const gemm_tile &tile)
{
    return CONFIG::SWAPPED ? gemm_side_a(p, tile) : gemm_side_b(p, tile);
}
