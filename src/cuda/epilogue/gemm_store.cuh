/* Finishing and storing part of a tile through shared memory.  Two paths: the fast one, in registers and by TMA,
 * for what most products ask for; and by octets, one short loop for all the rest.  Code for each sum of what is rarely
 * asked for was two thirds of all kernels. */
#pragma once

#include "cuda/ptx/swizzle.cuh"
#include "cuda/ptx/tensor_copy.cuh"
#include "gemm_octet.cuh"

/* Each warp stores its 16 rows by itself, through two boxes in shared memory that it fills in turn: warps need not wait
 * for each other. */
struct gemm_boxes {
    uint32_t table, barrier;              /* of the warpgroup: the memory of its table of columns; the number of its
                                             barrier */
    uint32_t box, next;                   /* of the warp: the first of its boxes; which one comes next */
};

template <class CONFIG> __device__ static inline gemm_boxes gemm_boxes_of(uint32_t shared, uint32_t group)
{
    const uint32_t memory = shared + CONFIG::AT_D + group * 8 * CONFIG::D_BOX, warp = threadIdx.x % 128 / 32;
    return { memory, 1 + group, memory + warp * 2 * CONFIG::D_BOX, 0 };
}

/* TMA has read what this warp stored; known to the thread that stored it. */
__device__ static inline void boxes_are_read() { if (elect_sync()) bulk_wait_group_read<0>(); }

/* One box: this warp's 16 rows, and the columns of the sums from FIRST on. */
template <int ELEMENT, int BYTES, int FIRST, int SUMS>
__device__ static inline void fill_box(uint32_t box, const float (&sums)[SUMS])
{
    const uint32_t lane = threadIdx.x % 32;
    if constexpr (ELEMENT == BSM_FP32) {
        const uint32_t at = lane / 4 * BYTES + lane % 4 * 8;
#pragma unroll
        for (int j = 0; j < BYTES / 32; j++) {
            store_shared_v2(box + swizzled(at + j * 32, BYTES), sums[FIRST + 4 * j], sums[FIRST + 4 * j + 1]);
            store_shared_v2(box + swizzled(at + j * 32 + 8 * BYTES, BYTES), sums[FIRST + 4 * j + 2],
                            sums[FIRST + 4 * j + 3]);
        }
    } else {
        const uint32_t at = lane % 16 * BYTES + lane / 16 * 16;
        uint32_t pairs[BYTES / 8];
        convert_pairs<ELEMENT, BYTES / 8, FIRST>(pairs, sums, false);
#pragma unroll
        for (int j = 0; j < BYTES / 32; j++)
            stmatrix_x4(box + swizzled(at + j * 32, BYTES), pairs[4 * j], pairs[4 * j + 1], pairs[4 * j + 2],
                        pairs[4 * j + 3]);
    }
}

/* Box after box: the columns of each are BYTES of D's type. */
template <class CONFIG, int ELEMENT, int FIRST = 0>
__device__ static inline void store_boxes(const bsmi_gemm_parameters &p, const gemm_part &part, gemm_boxes &boxes,
                                          const float (&sums)[CONFIG::SUMS])
{
    constexpr int BYTES = CONFIG::D_BOX_BYTES, BOX_COLUMNS = BYTES / (ELEMENT == BSM_FP32 ? 4 : 2);
    const uint32_t box = boxes.box + boxes.next * CONFIG::D_BOX;
    const bool leads = elect_sync();
    if (leads) bulk_wait_group_read<1>();  /* of the store before the last, from this box */
    __syncwarp();
    fill_box<ELEMENT, BYTES, FIRST>(box, sums);
    fence_proxy_async_shared();
    __syncwarp();
    if (leads) {
        tensor_store(&p.d, box, part.box_column + FIRST * 2, part.box_row, p.epilogue.grouped ? 0 : part.matrix);
        bulk_commit_group();
    }
    boxes.next ^= 1;
    if constexpr (FIRST + BOX_COLUMNS / 2 < CONFIG::SUMS)
        store_boxes<CONFIG, ELEMENT, FIRST + BOX_COLUMNS / 2>(p, part, boxes, sums);
}

/* The rows of a group begin and end inside D, where TMA does not clip. */
__device__ static inline bool is_whole(const bsmi_gemm_parameters &p, const gemm_part &part)
{
    return !p.epilogue.grouped || (part.first_row >= part.row_begin && part.first_row + part.rows <= part.row_end);
}

/* Whether the fast path serves; the same for the whole warp. */
__device__ static inline bool stores_by_fast_path(const bsmi_gemm_parameters &p, const gemm_finish &finish,
                                             const gemm_part &part, const gemm_exponents &exponents)
{
    return p.has_d_map && finish.beta == 0 && exponents.columns.small && is_whole(p, part);
}

/* No NaN is among them. */
template <class CONFIG>
__device__ static inline void store_finished(const bsmi_gemm_parameters &p, const gemm_part &part, gemm_boxes &boxes,
                                             const float (&sums)[CONFIG::SUMS])
{
    const int32_t element = p.direct ? p.epilogue.d.element : BSM_FP32;
    if (element == BSM_FP32) store_boxes<CONFIG, BSM_FP32>(p, part, boxes, sums);
    else if (element == BSM_BF16) store_boxes<CONFIG, BSM_BF16>(p, part, boxes, sums);
    else store_boxes<CONFIG, BSM_FP16>(p, part, boxes, sums);
}

/* What is left to do for numbers that are finished. */
__device__ static inline gemm_finish finished_already(gemm_finish finish)
{
    finish.changes = finish.column_factors = finish.column_biases = false;
    return finish;
}

/* One box after the other at `box`, rows of row_bytes; tables of its rows and columns behind it.  scaled: there may be
 * exponents. sums: of all boxes, a thread's. */
__device__ __forceinline__ static void finish_boxes(const bsmi_gemm_parameters &p, const gemm_finish &finish,
                                                    const gemm_part &part, bool scaled, uint32_t box,
                                                    uint32_t row_bytes, uint32_t boxes, const float *sums)
{
    constexpr uint32_t ROWS = 16;
    const uint32_t count = row_bytes / 4, octets = count / 8, lane = threadIdx.x % 32, rows = box + ROWS * row_bytes;
    const uint32_t columns = rows + 3 * 4 * ROWS, octet = lane & (octets - 1);
    const gemm_tile tile = { part.box_row, part.box_column, part.row_begin, part.row_end, part.matrix };
    boxes_are_read();
    __syncwarp();
    if (lane < ROWS) store_line(rows, ROWS, lane, row_of(p.epilogue, finish, tile, tile.row + (int32_t)lane));
#pragma unroll 1
    for (uint32_t number = 0; number < boxes; number++) {
        const int32_t first = tile.column + (int32_t)(number * count);
        if (lane < count) store_line(columns, count, lane, column_of(p.epilogue, finish, tile, first + (int32_t)lane));
#pragma unroll 1
        for (uint32_t at = lane / 4 * row_bytes + lane % 4 * 8, end = at + row_bytes; at < end; at += 32, sums += 4) {
            store_shared_v2(box + swizzled(at, row_bytes), sums[0], sums[1]);
            store_shared_v2(box + swizzled(at + 8 * row_bytes, row_bytes), sums[2], sums[3]);
        }
        __syncwarp();
        const gemm_octet_place place =
            octet_place_of(p, tile.matrix, first + (int32_t)(octet * 8), columns + octet * 32, scaled);
#pragma unroll 1
        for (uint32_t i = lane / octets; i < ROWS; i += 32 / octets) {
            const int32_t row = tile.row + (int32_t)i;
            const uint32_t at = i * row_bytes + octet * 32;
            if (has_row(part, row))
                finish_octet(p, finish, place, count, tile.matrix, row, load_line(rows, ROWS, i),
                             make_uint2(box + swizzled(at, row_bytes), box + swizzled(at + 16, row_bytes)));
        }
        __syncwarp();
    }
}

/* Once a file of kernels, for those that a call does not make slower. */
__device__ __noinline__ static void call_finish_boxes(const bsmi_gemm_parameters &p, gemm_finish finish, gemm_part part,
                                                      bool scaled, uint32_t box, uint32_t row_bytes, uint32_t boxes,
                                                      const float *sums)
{
    finish_boxes(p, finish, part, scaled, box, row_bytes, boxes, sums);
}

/* The general way: through the first of the warp's boxes, and with tables in the second. */
template <class CONFIG>
__device__ static inline void finish_octets(const bsmi_gemm_parameters &p, const gemm_finish &finish,
                                            const gemm_part &part, bool scaled, const gemm_boxes &boxes,
                                            const float (&sums)[CONFIG::SUMS])
{
    static_assert(3 * 4 * (16 + CONFIG::D_BOX_BYTES / 4) <= CONFIG::D_BOX, "tables in a box");
    float kept[CONFIG::SUMS];             /* in memory, and only here */
#pragma unroll
    for (int i = 0; i < CONFIG::SUMS; i++) kept[i] = sums[i];
    constexpr uint32_t BYTES = CONFIG::D_BOX_BYTES, COUNT = CONFIG::SUMS / (BYTES / 8);
    if constexpr (CONFIG::CALLS) call_finish_boxes(p, finish, part, scaled, boxes.box, BYTES, COUNT, kept);
    else finish_boxes(p, finish, part, scaled, boxes.box, BYTES, COUNT, kept);
}
