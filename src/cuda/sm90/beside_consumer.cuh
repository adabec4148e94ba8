/* The consumers: those of the kernels for bf16 rows, but that the exponents of B's rows are found in this kernel, which also computes what
 * bf16 leaves out. */
#pragma once

#include "beside_decoder.cuh"
#include "cuda/sm90/mainloop/gemm_consumer.cuh"
#include "cuda/sm90/epilogue/fallback_rows.cuh"

static_assert(sizeof(left_out_memory) + 64 * 4 == BSMI_BESIDE_LEFT_OUT_BYTES, "memory of a warpgroup");

/* Exponents of the tile's columns that a thread brings to the table of its warpgroup. */
template <class CONFIG> __device__ static inline gemm_own_exponents<CONFIG::COLUMNS> found_exponents(uint32_t shared)
{
    const uint32_t thread = threadIdx.x % 128;
    static_assert(CONFIG::COLUMNS <= 128, "a thread has one at most");
    return { { thread < CONFIG::COLUMNS ? (int32_t)load_shared(shared + CONFIG::AT_EXPONENTS + 4 * thread) : 0 } };
}

/* Of a warpgroup's 64 rows. */
template <class CONFIG>
__device__ static inline void compute_beside_left_out(const bsmi_gemm_parameters &p, gemm_tile tile, unsigned char *memory, uint32_t shared,
                                                      uint32_t group, uint32_t barrier)
{
    const uint32_t at = CONFIG::AT_LEFT_OUT + group * BSMI_BESIDE_LEFT_OUT_BYTES, rows = shared + at + (uint32_t)sizeof(left_out_memory);
    const bsmi_epilogue_parameters &e = p.epilogue;
    const int32_t thread = (int32_t)threadIdx.x % 128;
    tile.row += (int32_t)group * 64;
    const bool has_exponent = e.a_exponents != nullptr && tile.row + thread < tile.row_end;
    if (thread < 64) store_shared(rows + 4 * thread, has_exponent ? (uint32_t)e.a_exponents[tile.row + thread] : 0);
    barrier_sync(barrier, 128);
    compute_left_out(p, tile, (left_out_memory *)(memory + at), 64, CONFIG::COLUMNS, rows, shared + CONFIG::AT_EXPONENTS, barrier);
}

template <class CONFIG>
__device__ static inline void consume_beside(const bsmi_gemm_parameters &p, unsigned char *memory, uint32_t shared, const gemm_tile &tile, uint32_t group)
{
    float sums[1][CONFIG::SUMS];
    gemm_ring<CONFIG> ring = { 0, 0 };
    gemm_boxes boxes = gemm_boxes_of<CONFIG>(shared, group);
    const gemm_cta alone = { 0, 0 };
    griddepcontrol_wait();                /* A's exponents are another kernel's, and factors may be */
    const gemm_finish finish = gemm_finish_of(p);
    tile_exponents<CONFIG> exponents = tile_exponents_of<CONFIG>(p, tile, group);
    sum_tile<CONFIG, wgmma_bf16>(sums, shared, ring, alone, group, p.segments[0].blocks);
    exponents.own = found_exponents<CONFIG>(shared);          /* were there before the first chunk was */
    const bool any = any_exponent(exponents.own) || (exponents.rows[0].rows[0] | exponents.rows[0].rows[1]) != 0;
    finish_part<CONFIG>(p, finish, part_of<CONFIG>(tile, group, 0), exponents, 0, boxes, sums[0], shared + CONFIG::AT_EXPONENTS);
    if ((!CONFIG::CODES::MICRO || p.epilogue.a_exponents != nullptr) && barrier_or(boxes.barrier, 128, any))
        compute_beside_left_out<CONFIG>(p, tile, memory, shared, group, boxes.barrier);
    boxes_are_read();
}
