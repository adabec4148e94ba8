/* The producer: one thread for each set of warps, which fills its ring with codes of A and B and the scales of their
 * rows; where it copies rows that TMA cannot describe (gemm_copies.cuh), a whole warp, whose first thread does all the
 * rest. */
#pragma once

#include "cuda/ptx/tensor_copy.cuh"
#include "gemm_copies.cuh"

/* Scales of a step: whole blocks of layout 128x4, or the 16 bytes of each linear row that hold them.  Blocks behind the
 * last of a row of blocks belong to the next rows: the consumers leave them out. */
template <class CONFIG, int ROWS>
__device__ static inline void load_scales(const gemm_side &side, bool linear, uint32_t to, int32_t step, uint32_t full)
{
    if (linear) {
        tensor_load_cta(to, &side.scales, step * CONFIG::STEP_SCALES / 16 * 16, side.row, side.matrix, full);
        return;
    }
    const int32_t block = step * CONFIG::STEP_SCALES / 4;
#pragma unroll
    for (int i = 0; i < (ROWS + 127) / 128; i++)
        tensor_load_cta(to + i * CONFIG::BLOCKS * CONFIG::BLOCK_BYTES, &side.scales, 0,
                        (side.row / 128 + i) * side.scale_blocks + block, side.matrix, full);
}

template <class CONFIG, int ROWS> __device__ static inline uint32_t scale_bytes(bool linear)
{
    return linear ? ROWS * BSMI_SM120_LINEAR_BYTES : (ROWS + 127) / 128 * CONFIG::BLOCKS * CONFIG::BLOCK_BYTES;
}

/* What TMA counts for one stage. */
template <class CONFIG> __device__ static inline uint32_t stage_bytes(const bsmi_blackwell_parameters &p)
{
    if (!CONFIG::SCALED)
        return (p.a_copied.size == 0 ? CONFIG::A_BYTES : 0) + (p.b_copied.size == 0 ? CONFIG::B_BYTES : 0);
    return (uint32_t)(CONFIG::ROWS * p.a_row_bytes + CONFIG::COLUMNS * p.b_row_bytes)
           + scale_bytes<CONFIG, CONFIG::ROWS>(p.a_scales_linear)
           + scale_bytes<CONFIG, CONFIG::COLUMNS>(p.b_scales_linear);
}

/* A step of a tile, and where it goes. */
struct gemm_load {
    uint32_t stage, full;
    int32_t step, a_column, b_column;     /* columns as the tensor maps count them */
};

/* By one thread: announces a whole stage, and loads what TMA can describe. */
template <class CONFIG, bool COPIES>
__device__ static inline void load_by_tma(const bsmi_blackwell_parameters &p, const gemm_side &a, const gemm_side &b,
                                          uint32_t shared, uint32_t bytes, const gemm_load &load)
{
    const uint32_t stage = load.stage, full = load.full;
    mbarrier_arrive_expect_tx(full, bytes);
    if (!COPIES || p.a_copied.size == 0)
        tensor_load_cta(shared + CONFIG::OF_A + stage * CONFIG::A_BYTES, &a.rows, load.a_column, a.row, a.matrix, full);
    if (!COPIES || p.b_copied.size == 0)
        tensor_load_cta(shared + CONFIG::OF_B + stage * CONFIG::B_BYTES, &b.rows, load.b_column, b.row, b.matrix, full);
    if (!CONFIG::SCALED) return;
    load_scales<CONFIG, CONFIG::ROWS>(a, p.a_scales_linear,
                                      shared + CONFIG::OF_A_SCALES + stage * CONFIG::A_SCALE_BYTES, load.step, full);
    load_scales<CONFIG, CONFIG::COLUMNS>(b, p.b_scales_linear,
                                         shared + CONFIG::OF_B_SCALES + stage * CONFIG::B_SCALE_BYTES, load.step, full);
}

/* By the warp: each lane arrives once its copies are complete. */
template <class CONFIG>
__device__ static inline void load_by_copies(const bsmi_blackwell_parameters &p, const gemm_side &a, const gemm_side &b,
                                             uint32_t shared, const gemm_load &load)
{
    constexpr int COLUMN_BYTES = CONFIG::STEP / CONFIG::STEP_COLUMNS;
    copy_rows<CONFIG::ROWS, CONFIG::STEP>(p.a_copied, a, shared + CONFIG::OF_A + load.stage * CONFIG::A_BYTES,
                                          load.a_column * COLUMN_BYTES);
    copy_rows<CONFIG::COLUMNS, CONFIG::STEP>(p.b_copied, b, shared + CONFIG::OF_B + load.stage * CONFIG::B_BYTES,
                                             load.b_column * COLUMN_BYTES);
    cp_async_mbarrier_arrive_noinc(load.full);
}

/* Waits until the stage is free, and loads it. */
template <class CONFIG, bool COPIES>
__device__ static inline void load_stage(const bsmi_blackwell_parameters &p, const gemm_side &a, const gemm_side &b,
                                         uint32_t shared, const gemm_set_ring<CONFIG> &ring, uint32_t bytes,
                                         int32_t step, int32_t a_column, int32_t b_column)
{
    const uint32_t stage = ring.stage();
    const gemm_load load = { stage, full_barrier<CONFIG>(shared, stage), step, a_column, b_column };
    mbarrier_wait_parity(empty_barrier<CONFIG>(shared, stage), ring.parity);
    if (!COPIES || threadIdx.x % 32 == 0) load_by_tma<CONFIG, COPIES>(p, a, b, shared, bytes, load);
    if (COPIES) load_by_copies<CONFIG>(p, a, b, shared, load);
}

/* COPIES: by a warp, else by a thread of it. */
template <class CONFIG, bool COPIES>
__device__ static inline void produce(const bsmi_blackwell_parameters &p, uint32_t shared, uint32_t set)
{
    gemm_set_ring<CONFIG> ring(set, 1);   /* the phase before the first counts as complete */
    const uint32_t bytes = stage_bytes<CONFIG>(p);
    for (gemm_jobs<CONFIG> jobs(p, set); jobs.more(); jobs.next()) {
        const gemm_job job = jobs.job(p);
        const gemm_side a = gemm_side_a(p, job.tile), b = gemm_side_b(p, job.tile);
        for (int32_t s = 0; s < p.segment_count; s++) { /* one, but for bf16 */
            const int32_t end = CONFIG::SPLIT_K ? job.first_step + job.steps : p.segments[s].blocks;
            for (int32_t step = job.first_step; step < end; step++, ring.next())
                load_stage<CONFIG, COPIES>(p, a, b, shared, ring, bytes, step,
                                           p.segments[s].a_column + step * CONFIG::STEP_COLUMNS,
                                           p.segments[s].b_column + step * CONFIG::STEP_COLUMNS);
        }
    }
    griddepcontrol_launch_dependents();
}
