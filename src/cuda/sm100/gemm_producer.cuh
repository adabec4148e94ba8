/* The producer: one thread a CTA, which fills the ring with tiles of A and B and the scales of their rows. */
#pragma once

#include "cuda/ptx/bulk_copy.cuh"
#include "gemm_config.cuh"

enum { BOTH_CTAS = 3 };

/* Into this CTA; the bytes are counted where the products are issued. */
template <class CONFIG>
__device__ static inline void load(uint32_t to, const bsmi_tensor_map &map, int32_t column, int32_t row, int32_t matrix,
                                   uint32_t full)
{
    const int32_t at[3] = { column, row, matrix };
    if constexpr (CONFIG::CTAS == 1) cp_async_bulk_tensor_load(to, &map, at, full);
    else cp_async_bulk_tensor_load<2>(to, &map, at, ptx_even_cta(full));
}

/* A step of one operand's rows, from `row` on. */
template <class CONFIG>
__device__ static inline void load_rows(uint32_t to, const gemm_side &side, int32_t column, int32_t row, uint32_t full)
{
    if constexpr (CONFIG::HAS_MAJORS) {
        const bsmi_operand_boxes &boxes = side.boxes;
#pragma unroll 1
        for (int32_t i = 0; i < boxes.count; i++)
            load<CONFIG>(to + i * boxes.bytes, side.rows, boxes.mn_major ? row + i * boxes.rows : column,
                         boxes.mn_major ? column : row, side.matrix, full);
    } else {
        load<CONFIG>(to, side.rows, column, row, side.matrix, full);
    }
}

/* What TMA counts for one stage, in all CTAs. */
template <class CONFIG> __device__ static inline uint32_t stage_bytes(const bsmi_blackwell_parameters &p)
{
    if (CONFIG::KIND == MMA_F16) return CONFIG::CTAS * (CONFIG::A_BYTES + CONFIG::B_BYTES);
    const int32_t lanes = CONFIG::SWAPPED ? p.b_row_bytes : p.a_row_bytes,
                  columns = CONFIG::SWAPPED ? p.a_row_bytes : p.b_row_bytes;
    return CONFIG::CTAS *
           (uint32_t)(CONFIG::ROWS * lanes + CONFIG::B_PANELS * CONFIG::B_ROWS * columns + CONFIG::A_SCALE_BYTES
                      + CONFIG::B_SCALE_BYTES + CONFIG::METADATA_BYTES);
}

/* Scales of this CTA's rows of A, and of all rows of B: of a pair, each CTA loads every other 128 rows of B for both.
 * Blocks behind the last of a row of blocks belong to the next rows: no product reads them. */
template <class CONFIG>
__device__ static inline void load_scales(const gemm_side &lanes, const gemm_side &columns, uint32_t shared,
                                          uint32_t stage, uint32_t rank, int32_t step, uint32_t full)
{
    const uint32_t a = shared + CONFIG::OF_A_SCALES + stage * CONFIG::A_SCALE_BYTES,
                   b = shared + CONFIG::OF_B_SCALES + stage * CONFIG::B_SCALE_BYTES;
    load<CONFIG>(a, lanes.scales, 0, lanes.row / 128 * lanes.scale_blocks + step * CONFIG::BLOCKS, lanes.matrix, full);
#pragma unroll
    for (int i = 0; i < CONFIG::B_ROW_BLOCKS; i++) {
        const uint32_t to = b + i * CONFIG::A_SCALE_BYTES;
        const int32_t at[3] = { 0, (columns.row / 128 + i) * columns.scale_blocks + step * CONFIG::BLOCKS,
                                columns.matrix };
        if constexpr (CONFIG::CTAS == 1) cp_async_bulk_tensor_load(to, &columns.scales, at, full);
        else if (i % 2 == (int)rank)
            cp_async_bulk_tensor_load_multicast<2>(to, &columns.scales, at, ptx_even_cta(full), BOTH_CTAS);
    }
}

/* Waits until the stage is free, announces a whole stage, and loads it. */
template <class CONFIG>
__device__ static inline void load_stage(const bsmi_blackwell_parameters &p, uint32_t shared,
                                         gemm_ring<CONFIG::STAGES> ring, const gemm_tile &tile, uint32_t rank,
                                         int32_t step, int32_t a_column, int32_t b_column)
{
    const uint32_t full = full_barrier<CONFIG>(shared, ring.at);
    mbarrier_wait_parity(empty_barrier<CONFIG>(shared, ring.at), ring.parity);
    if (rank == 0) mbarrier_arrive_expect_tx(full, stage_bytes<CONFIG>(p));
    const gemm_side lanes = gemm_lane_side<CONFIG>(p, tile), columns = gemm_column_side<CONFIG>(p, tile);
    load_rows<CONFIG>(shared + CONFIG::OF_A + ring.at * CONFIG::A_BYTES, lanes, CONFIG::SWAPPED ? b_column : a_column,
                      lanes.row, full);
#pragma unroll
    for (int panel = 0; panel < CONFIG::B_PANELS; panel++)
        load_rows<CONFIG>(shared + CONFIG::OF_B + ring.at * CONFIG::B_BYTES + panel * CONFIG::B_PANEL_BYTES, columns,
                          (CONFIG::SWAPPED ? a_column : b_column) * CONFIG::B_PANELS + panel * CONFIG::STEP_COLUMNS,
                          columns.row + (int32_t)rank * CONFIG::B_ROWS, full);
    if constexpr (CONFIG::SPARSE)
        load<CONFIG>(shared + CONFIG::OF_METADATA + ring.at * CONFIG::METADATA_BYTES,
                     static_cast<const bsmi_sparse_parameters &>(p).metadata, step * BSMI_SM100_METADATA_ROW_BYTES,
                     lanes.row, lanes.matrix, full);
    if (CONFIG::BLOCKS > 0) load_scales<CONFIG>(lanes, columns, shared, ring.at, rank, step, full);
}

template <class CONFIG>
__device__ static inline void produce(const bsmi_blackwell_parameters &p, uint32_t shared, uint32_t rank)
{
    gemm_ring<CONFIG::STAGES> ring = { 0, 1 }; /* the phase before the first counts as complete: every stage begins
                                                  empty */
    for (gemm_jobs<CONFIG> jobs(p); jobs.more(); jobs.next()) {
        const gemm_job job = jobs.job(p, rank);
        for (int32_t s = 0; s < p.segment_count; s++) { /* one, where K has parts */
            const int32_t end = jobs.parts == 1 ? p.segments[s].blocks : job.first_step + job.steps;
            for (int32_t block = job.first_step; block < end; block++, ring.next())
                load_stage<CONFIG>(p, shared, ring, job.tile, rank, block,
                                   p.segments[s].a_column + block * CONFIG::STEP_COLUMNS,
                                   p.segments[s].b_column + block * CONFIG::STEP_COLUMNS);
        }
    }
    griddepcontrol_launch_dependents();
}
