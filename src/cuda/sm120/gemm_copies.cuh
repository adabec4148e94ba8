/* Rows that TMA cannot describe, because they do not begin at multiples of 16 bytes: a warp copies a step of a tile's
 * by cp.async, 4 or 8 bytes a lane, to where TMA's swizzle would have put them.  Zeros behind K and behind the last
 * row. */
#pragma once

#include "cuda/ptx/async_copy.cuh"
#include "cuda/ptx/swizzle.cuh"
#include "gemm_config.cuh"

template <class CONFIG> __device__ static inline bool copies_rows(const bsmi_blackwell_parameters &p)
{
    return CONFIG::COPIES && (p.a_copied.size | p.b_copied.size) != 0;
}

/* The lane's number, read anew: what is made of it would else be kept through all steps, in registers that this warp
 * does not have. */
__device__ static inline uint32_t lane_anew()
{
    uint32_t lane;
    asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
    return lane;
}

/* Of the tile's rows, bytes `first` on.  Lanes that follow each other copy what does: a turn of all has whole rows. */
template <int ROWS, int STEP, int SIZE>
__device__ static inline void copy_rows_by(const bsmi_copied_rows &rows, const gemm_side &side, uint32_t to,
                                           int32_t first)
{
    constexpr uint32_t PIECES = STEP / SIZE, TURN_ROWS = 32 / PIECES, TURN_BYTES = TURN_ROWS * STEP;
    const uint32_t lane = lane_anew(), row = lane / PIECES, inside = lane % PIECES * SIZE;
    const int32_t column = first + (int32_t)inside;
    const uint32_t valid = (uint32_t)min(max(rows.row_bytes - column, 0), SIZE);
    const int32_t end = min(rows.rows - side.row, ROWS) * STEP; /* of the rows that there are */
    const unsigned char *from = rows.data + side.matrix * rows.batch_bytes + (side.row + row) * rows.pitch + column;
#pragma unroll 4
    for (uint32_t at = row * STEP + inside; at < ROWS * STEP; at += TURN_BYTES, from += TURN_ROWS * rows.pitch)
        cp_async<SIZE>(to + swizzled(at, STEP), from, (int32_t)at < end ? valid : 0);
}

template <int ROWS, int STEP>
__device__ static inline void copy_rows(const bsmi_copied_rows &rows, const gemm_side &side, uint32_t to, int32_t first)
{
    if (rows.size == 8) copy_rows_by<ROWS, STEP, 8>(rows, side, to, first);
    else if (rows.size == 4) copy_rows_by<ROWS, STEP, 4>(rows, side, to, first);
}
