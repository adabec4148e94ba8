/* The producers: two warps a CTA, one for bf16 rows of A, one for B's codes with their scales.  By itself, one thread
 * took longer for a step of both than it takes to multiply few rows. */
#pragma once

#include "cuda/sm90/mainloop/fused_config.cuh"
#include "shared_memory_producer.cuh"

/* 128 bytes of the rows of B, and the pieces of scales that belong to the columns that there are: left, of the segment,
 * in steps. */
template <class CONFIG>
__device__ static inline void load_codes(const bsmi_fused_parameters &p, uint32_t shared,
                                         gemm_ring<typename CONFIG::codes_ring> ring, const gemm_tile &tile,
                                         int32_t block, int32_t left)
{
    using RING = typename CONFIG::codes_ring;
    const uint32_t full = full_barrier<RING>(shared, ring.stage), empty = empty_barrier<RING>(shared, ring.stage);
    const int32_t matrix = tile.matrix * p.b_batch_step, columns = block * BSMI_K_STEP;
    const int32_t pieces =
        min(CONFIG::PIECES, (left * BSMI_K_STEP + CONFIG::PIECE_COLUMNS - 1) / CONFIG::PIECE_COLUMNS);
    /* A CTA of a cluster may have no column of D: it reads the scales of the last that there are. */
    const int32_t band = min(tile.column, (int32_t)p.epilogue.n - 1) / 128;
    const unsigned char *scales = p.code_scales + matrix * p.code_batch_bytes + band * p.code_band_bytes
                                + columns / CONFIG::PIECE_COLUMNS * CONFIG::PIECE_BYTES;
    mbarrier_wait_parity(empty, ring.parity);
    mbarrier_arrive_expect_tx(full, CONFIG::CODE_BYTES + pieces * CONFIG::PIECE_BYTES);
    const uint32_t to = shared + CONFIG::AT_CODES + ring.stage * CONFIG::CODE_BYTES;
    if constexpr (CONFIG::CODES::STREAM) {
#pragma unroll
        for (int32_t step = 0; step < CONFIG::CODE_STEPS; step++)
            tensor_load(to + step * CONFIG::STREAM_BOX_BYTES, &p.b, (block + step) * BSMI_STREAM_BOX_BYTES, tile.column,
                        matrix, full);
    } else {
        tensor_load(to, &p.b, CONFIG::CODES::NIBBLES ? columns / 2 : columns, tile.column, matrix, full);
    }
    bulk_load(shared + CONFIG::AT_SCALES + ring.stage * CONFIG::SCALE_BYTES, scales, pieces * CONFIG::PIECE_BYTES,
              full);
}

/* This CTA's part of the rows of A, for all CTAs of the cluster. */
template <class CONFIG>
__device__ static inline void load_rows(const bsmi_gemm_parameters &p, uint32_t shared, gemm_ring<CONFIG> ring,
                                        gemm_cta cta, const gemm_tile &tile, int32_t a_column)
{
    const uint32_t full = full_barrier<CONFIG>(shared, ring.stage), empty = empty_barrier<CONFIG>(shared, ring.stage);
    const uint32_t part = cta.column * CONFIG::A_BOX_ROWS;
    mbarrier_wait_parity(empty, ring.parity);
    mbarrier_arrive_expect_tx(full, CONFIG::A_BYTES);
    load<CONFIG::CLUSTER>(shared + CONFIG::AT_A + ring.stage * CONFIG::A_BYTES + part * CONFIG::K_BYTES, p.a, a_column,
                          tile.row + (int32_t)part, p.epilogue.grouped ? 0 : tile.matrix * p.a_batch_step, full,
                          sharers_of_a<CONFIG>(cta));
}

template <class CONFIG>
__device__ static inline void produce_rows(const bsmi_gemm_parameters &p, uint32_t shared, gemm_cta cta)
{
    gemm_ring<CONFIG> ring = { 0, 1 };    /* the phase before the first counts as complete: every stage begins empty */
    const int64_t tiles = gemm_tiles(p), step = gridDim.x / CONFIG::CLUSTER;
    for (int64_t number = blockIdx.x / CONFIG::CLUSTER; number < tiles; number += step) {
        const gemm_tile tile = gemm_tile_of<CONFIG>(p, number, cta);
        for (int32_t s = 0; s < p.segment_count; s++) {
            const int32_t first = p.segments[s].a_column, last = first + p.segments[s].blocks * BSMI_K_STEP;
            for (int32_t column = first; column < last; column += BSMI_K_STEP, ring.next())
                load_rows<CONFIG>(p, shared, ring, cta, tile, column);
        }
    }
    griddepcontrol_launch_dependents();
}

template <class CONFIG>
__device__ static inline void produce_codes(const bsmi_fused_parameters &p, uint32_t shared, gemm_cta cta)
{
    gemm_ring<typename CONFIG::codes_ring> ring = { 0, 1 };
    const int64_t tiles = gemm_tiles(p), step = gridDim.x / CONFIG::CLUSTER;
    for (int64_t number = blockIdx.x / CONFIG::CLUSTER; number < tiles; number += step) {
        const gemm_tile tile = gemm_tile_of<CONFIG>(p, number, cta);
        for (int32_t s = 0; s < p.segment_count; s++)
            for (int32_t block = 0; block < p.segments[s].blocks; block += CONFIG::CODE_STEPS, ring.next())
                load_codes<CONFIG>(p, shared, ring, tile, block, p.segments[s].blocks - block);
    }
}
