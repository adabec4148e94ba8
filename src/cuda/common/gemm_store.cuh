/* Storing part of a tile: through shared memory by the copy engine where D and the tile allow it, else from registers. */
#pragma once

#include "cuda/ptx/tensor_copy.cuh"
#include "gemm_epilogue.cuh"

/* Each warp stores its 16 rows by itself, through two boxes in shared memory that it fills in turn: warps need not wait for each other. */
struct gemm_boxes {
    uint32_t table, barrier;              /* of the warpgroup: the memory of its table of columns; the number of its barrier */
    uint32_t box, next;                   /* of the warp: the first of its boxes; which one comes next */
};

template <class CONFIG> __device__ static inline gemm_boxes gemm_boxes_of(uint32_t shared, uint32_t group)
{
    const uint32_t memory = shared + CONFIG::AT_D + group * 8 * CONFIG::D_BOX, warp = threadIdx.x % 128 / 32;
    return { memory, 1 + group, memory + warp * 2 * CONFIG::D_BOX, 0 };
}

/* The copy engine has read what this warp stored; known to the thread that stored it. */
__device__ static inline void boxes_are_read() { if (threadIdx.x % 32 == 0) bulk_wait_group_read<0>(); }

/* Where the numbers go: D, or S. */
struct gemm_output { unsigned char *data; int64_t row_bytes; int32_t element; };

__device__ static inline gemm_output gemm_output_of(const bsmi_gemm_parameters &p, int32_t matrix)
{
    const bsmi_epilogue_parameters &e = p.epilogue;
    const int64_t of_batch = e.grouped ? 0 : matrix;
    if (p.direct) return { e.d.data + of_batch * e.d.batch_bytes, e.d.row_bytes, e.d.element };
    return { (unsigned char *)(e.sums + of_batch * e.sums_batch_pitch), e.sums_pitch * 4, BSM_FP32 };
}

/* Two numbers to bf16 or fp16; the conversion turns NaN into 0x7fff. */
template <int ELEMENT> __device__ static inline uint32_t to_halves(float low, float high)
{
    return ELEMENT == BSM_BF16 ? cvt_bf16x2(low, high) : cvt_f16x2(low, high);
}
template <int ELEMENT> __device__ static inline uint32_t canonical_halves(uint32_t pair)
{
    constexpr uint32_t NAN_CODE = ELEMENT == BSM_BF16 ? 0x7fc0 : 0x7e00;
    if ((pair & 0xffff) == 0x7fff) pair = (pair & 0xffff0000) | NAN_CODE;
    if (pair >> 16 == 0x7fff) pair = (pair & 0xffff) | NAN_CODE << 16;
    return pair;
}

/* Pairs of columns, in the order of the registers. */
template <int ELEMENT, int COUNT, int FIRST, int SUMS>
__device__ static inline void convert_pairs(uint32_t (&pairs)[COUNT], const float (&sums)[SUMS], bool any_nan)
{
#pragma unroll
    for (int i = 0; i < COUNT; i++) pairs[i] = to_halves<ELEMENT>(sums[FIRST + 2 * i], sums[FIRST + 2 * i + 1]);
    if (!any_nan) return;
#pragma unroll
    for (int i = 0; i < COUNT; i++) pairs[i] = canonical_halves<ELEMENT>(pairs[i]);
}

/* The place of a byte in a box whose rows are BYTES long, as a tensor map with a swizzle of BYTES has it. */
template <int BYTES> __device__ static inline uint32_t swizzled(uint32_t at)
{
    return at ^ ((at >> 7 & (BYTES / 16 - 1)) << 4);
}

/* One box: this warp's 16 rows, and the columns of the sums from FIRST on. */
template <int ELEMENT, int BYTES, int FIRST, int SUMS>
__device__ static inline void fill_box(uint32_t box, const float (&sums)[SUMS], bool any_nan)
{
    const uint32_t lane = threadIdx.x % 32;
    if constexpr (ELEMENT == BSM_FP32) {
        const uint32_t at = lane / 4 * BYTES + lane % 4 * 8;
#pragma unroll
        for (int j = 0; j < BYTES / 32; j++) {
            store_shared_v2(box + swizzled<BYTES>(at + j * 32), sums[FIRST + 4 * j], sums[FIRST + 4 * j + 1]);
            store_shared_v2(box + swizzled<BYTES>(at + j * 32 + 8 * BYTES), sums[FIRST + 4 * j + 2], sums[FIRST + 4 * j + 3]);
        }
    } else {
        const uint32_t at = lane % 16 * BYTES + lane / 16 * 16;
        uint32_t pairs[BYTES / 8];
        convert_pairs<ELEMENT, BYTES / 8, FIRST>(pairs, sums, any_nan);
#pragma unroll
        for (int j = 0; j < BYTES / 32; j++)
            stmatrix_x4(box + swizzled<BYTES>(at + j * 32), pairs[4 * j], pairs[4 * j + 1], pairs[4 * j + 2], pairs[4 * j + 3]);
    }
}

/* Box after box: the columns of each are BYTES of D's type. */
template <class CONFIG, int ELEMENT, int FIRST = 0>
__device__ static inline void store_boxes(const bsmi_gemm_parameters &p, const gemm_part &part, gemm_boxes &boxes,
                                          const float (&sums)[CONFIG::SUMS], bool any_nan)
{
    constexpr int BYTES = CONFIG::D_BOX_BYTES, BOX_COLUMNS = BYTES / (ELEMENT == BSM_FP32 ? 4 : 2);
    const uint32_t box = boxes.box + boxes.next * CONFIG::D_BOX;
    const bool leads = threadIdx.x % 32 == 0;
    if (leads) bulk_wait_group_read<1>();  /* of the store before the last, from this box */
    __syncwarp();
    fill_box<ELEMENT, BYTES, FIRST>(box, sums, any_nan);
    fence_proxy_async_shared();
    __syncwarp();
    if (leads) {
        tensor_store(&p.d, box, part.box_column + FIRST * 2, part.box_row, p.epilogue.grouped ? 0 : part.matrix);
        bulk_commit_group();
    }
    boxes.next ^= 1;
    if constexpr (FIRST + BOX_COLUMNS / 2 < CONFIG::SUMS)
        store_boxes<CONFIG, ELEMENT, FIRST + BOX_COLUMNS / 2>(p, part, boxes, sums, any_nan);
}

/* Two neighbours at `to`, as one access where both are stored and lie so. */
__device__ static inline void store_pair(unsigned char *to, int32_t element, float first, float second, bool has_first, bool has_second)
{
    const bool together = has_first && has_second;
    if (element == BSM_FP32) {
        if (together && (uint64_t)to % 8 == 0) {
            *(float2 *)to = make_float2(first, second);
        } else {
            if (has_first) *(float *)to = first;
            if (has_second) *((float *)to + 1) = second;
        }
        return;
    }
    const uint32_t pair = element == BSM_BF16 ? canonical_halves<BSM_BF16>(to_halves<BSM_BF16>(first, second))
                                              : canonical_halves<BSM_FP16>(to_halves<BSM_FP16>(first, second));
    if (together && (uint64_t)to % 4 == 0) {
        *(uint32_t *)to = pair;
    } else {
        if (has_first) *(uint16_t *)to = (uint16_t)pair;
        if (has_second) *((uint16_t *)to + 1) = (uint16_t)(pair >> 16);
    }
}

template <int COLUMNS, int SUMS>
__device__ static inline void store_registers(const bsmi_gemm_parameters &p, const gemm_part &part, const gemm_exponents &exponents,
                                              uint32_t table, const float (&sums)[SUMS])
{
    const bsmi_epilogue_parameters &e = p.epilogue;
    const gemm_output output = gemm_output_of(p, part.matrix);
    const int32_t bytes = output.element == BSM_FP32 ? 4 : 2;
    bool stores[2];
#pragma unroll
    for (int half = 0; half < 2; half++)
        stores[half] = has_row(part, part.row + 8 * half) && exponents.rows[half] != BSMI_ROW_LEFT_OUT;
#pragma unroll
    for (int i = 0; i < SUMS; i += 2) {
        const int32_t half = i % 4 / 2, column = part.column + i / 4 * 8, in_tile = column - part.first_column;
        const bool has_first = stores[half] && column < e.n && column_exponent<COLUMNS>(exponents, table, in_tile) != BSMI_ROW_LEFT_OUT;
        const bool has_second = stores[half] && column + 1 < e.n && column_exponent<COLUMNS>(exponents, table, in_tile + 1) != BSMI_ROW_LEFT_OUT;
        unsigned char *to = output.data + (part.row + 8 * half) * output.row_bytes + (int64_t)column * bytes;
        if (has_first || has_second) store_pair(to, output.element, sums[i], sums[i + 1], has_first, has_second);
    }
}

/* exponents.columns.leaves_out: the same for all warps that share the memory of boxes with the table.  any_nan: as finish_sums says. */
template <class CONFIG>
__device__ static inline void store_sums(const bsmi_gemm_parameters &p, const gemm_part &part, const gemm_exponents &exponents,
                                         gemm_boxes &boxes, const float (&sums)[CONFIG::SUMS], bool any_nan)
{
    const bsmi_epilogue_parameters &e = p.epilogue;
    /* The rows of a group begin and end inside D, where the copy engine does not clip. */
    const bool whole = !e.grouped || (part.first_row >= part.row_begin && part.first_row + part.rows <= part.row_end);
    if (!p.has_d_map || !whole || exponents.columns.leaves_out) {
        store_registers<CONFIG::COLUMNS>(p, part, exponents, boxes.table, sums);
        return;
    }
    const int32_t element = p.direct ? e.d.element : BSM_FP32;
    if (element == BSM_FP32) store_boxes<CONFIG, BSM_FP32>(p, part, boxes, sums, any_nan);
    else if (element == BSM_BF16) store_boxes<CONFIG, BSM_BF16>(p, part, boxes, sums, any_nan);
    else store_boxes<CONFIG, BSM_FP16>(p, part, boxes, sums, any_nan);
}
