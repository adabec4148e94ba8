/* Storing 64 rows of a tile: through shared memory by the copy engine where D and the tile allow it, else from registers. */
#pragma once

#include "gemm_epilogue.cuh"

/* Two boxes in shared memory, which one warpgroup fills in turn. */
struct gemm_boxes {
    uint32_t address, next;               /* of the first; which one comes next */
    uint32_t barrier;                     /* number of the warpgroup's own barrier */
};

/* Before the CTA ends: the copy engine has read them. */
__device__ static inline void boxes_are_read(const gemm_boxes &) { if (threadIdx.x % 128 == 0) bulk_wait_group_read<0>(); }

/* Where the numbers go: D, or S. */
struct gemm_output { unsigned char *data; int64_t row_bytes; int32_t element; };

__device__ static inline gemm_output gemm_output_of(const bsmi_gemm_parameters &p, int32_t matrix)
{
    const bsmi_epilogue_parameters &e = p.epilogue;
    const int64_t of_batch = e.grouped ? 0 : matrix;
    if (p.direct) return { e.d.data + of_batch * e.d.batch_bytes, e.d.row_bytes, e.d.element };
    return { (unsigned char *)(e.sums + of_batch * e.sums_batch_pitch), e.sums_pitch * 4, BSM_FP32 };
}

/* NaN of the conversion, 0x7fff in either half, becomes the canonical one. */
__device__ static inline uint32_t canonical_pair(uint32_t pair, uint32_t nan)
{
    if ((pair & 0xffff) == 0x7fff) pair = (pair & 0xffff0000) | nan;
    if (pair >> 16 == 0x7fff) pair = (pair & 0xffff) | nan << 16;
    return pair;
}
template <int ELEMENT> __device__ static inline uint32_t to_halves(float low, float high)
{
    const uint32_t pair = ELEMENT == BSM_BF16 ? cvt_bf16x2(low, high) : cvt_f16x2(low, high);
    return isnan(low) | isnan(high) ? canonical_pair(pair, ELEMENT == BSM_BF16 ? 0x7fc0 : 0x7e00) : pair;
}

/* The place of a byte in a box whose rows are BYTES long, as a tensor map with a swizzle of BYTES has it. */
template <int BYTES> __device__ static inline uint32_t swizzled(uint32_t at)
{
    return at ^ ((at >> 7 & (BYTES / 16 - 1)) << 4);
}

/* One box: columns FIRST / 4 * 8 on of the warpgroup's sums, FIRST a number of registers. */
template <int ELEMENT, int BYTES, int FIRST, int SUMS> __device__ static inline void fill_box(uint32_t box, const float (&sums)[SUMS])
{
    const uint32_t thread = threadIdx.x % 128, lane = thread % 32, rows = thread / 32 * 16;
    if (ELEMENT == BSM_FP32) {
        const uint32_t at = (rows + lane / 4) * BYTES + lane % 4 * 8;
#pragma unroll
        for (int j = 0; j < BYTES / 32; j++) {
            store_shared_v2(box + swizzled<BYTES>(at + j * 32), sums[FIRST + 4 * j], sums[FIRST + 4 * j + 1]);
            store_shared_v2(box + swizzled<BYTES>(at + j * 32 + 8 * BYTES), sums[FIRST + 4 * j + 2], sums[FIRST + 4 * j + 3]);
        }
    } else {
        const uint32_t at = (rows + lane % 16) * BYTES + lane / 16 * 16;
#pragma unroll
        for (int j = 0; j < BYTES / 32; j++) {
            uint32_t pair[4];
#pragma unroll
            for (int i = 0; i < 4; i++) pair[i] = to_halves<ELEMENT>(sums[FIRST + 8 * j + 2 * i], sums[FIRST + 8 * j + 2 * i + 1]);
            stmatrix_x4(box + swizzled<BYTES>(at + j * 32), pair[0], pair[1], pair[2], pair[3]);
        }
    }
}

/* Box after box: the columns of each are BYTES of D's type. */
template <class CONFIG, int ELEMENT, int FIRST = 0>
__device__ static inline void store_boxes(const bsmi_gemm_parameters &p, const gemm_part &part, gemm_boxes &boxes,
                                          const float (&sums)[CONFIG::SUMS])
{
    constexpr int BYTES = CONFIG::D_BOX_BYTES, BOX_COLUMNS = BYTES / (ELEMENT == BSM_FP32 ? 4 : 2);
    const uint32_t box = boxes.address + boxes.next * CONFIG::D_BOX;
    const bool leads = threadIdx.x % 128 == 0;
    if (leads) bulk_wait_group_read<1>();  /* of the store before the last, from this box */
    barrier_sync(boxes.barrier, 128);
    fill_box<ELEMENT, BYTES, FIRST>(box, sums);
    fence_proxy_async_shared();
    barrier_sync(boxes.barrier, 128);
    if (leads) {
        tensor_store(&p.d, box, part.first_column + FIRST * 2, part.first_row, p.epilogue.grouped ? 0 : part.matrix);
        bulk_commit_group();
    }
    boxes.next ^= 1;
    if constexpr (FIRST + BOX_COLUMNS / 2 < CONFIG::SUMS) store_boxes<CONFIG, ELEMENT, FIRST + BOX_COLUMNS / 2>(p, part, boxes, sums);
}

/* True if the columns of this part, or this thread's rows, hold one that is left out. */
template <int SUMS> __device__ static inline bool leaves_out(const bsmi_epilogue_parameters &e, const gemm_part &part)
{
    bool any = false;
    for (int half = 0; half < 2; half++)
        if (e.a_exponents != nullptr && part.row + 8 * half < part.row_end)
            any |= e.a_exponents[part.matrix * e.a_exponent_step + part.row + 8 * half] == BSMI_ROW_LEFT_OUT;
    if (e.b_exponents != nullptr)
        for (int32_t column = part.first_column + (int32_t)(threadIdx.x % 128); column < part.first_column + SUMS * 2; column += 128)
            any |= column < e.n && e.b_exponents[part.matrix * e.b_exponent_step + column] == BSMI_ROW_LEFT_OUT;
    return any;
}

__device__ static inline bool is_stored(const bsmi_epilogue_parameters &e, const gemm_part &part, int32_t row, int32_t column)
{
    if (row >= part.row_end || column >= e.n) return false;
    if (e.a_exponents != nullptr && e.a_exponents[part.matrix * e.a_exponent_step + row] == BSMI_ROW_LEFT_OUT) return false;
    return e.b_exponents == nullptr || e.b_exponents[part.matrix * e.b_exponent_step + column] != BSMI_ROW_LEFT_OUT;
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
    const uint32_t pair = element == BSM_BF16 ? to_halves<BSM_BF16>(first, second) : to_halves<BSM_FP16>(first, second);
    if (together && (uint64_t)to % 4 == 0) {
        *(uint32_t *)to = pair;
    } else {
        if (has_first) *(uint16_t *)to = (uint16_t)pair;
        if (has_second) *((uint16_t *)to + 1) = (uint16_t)(pair >> 16);
    }
}

template <int SUMS>
__device__ static inline void store_registers(const bsmi_gemm_parameters &p, const gemm_part &part, const float (&sums)[SUMS])
{
    const gemm_output output = gemm_output_of(p, part.matrix);
    const int32_t bytes = output.element == BSM_FP32 ? 4 : 2;
#pragma unroll
    for (int i = 0; i < SUMS; i += 2) {
        const int32_t row = part.row + i % 4 / 2 * 8, column = part.column + i / 4 * 8;
        const bool has_first = is_stored(p.epilogue, part, row, column), has_second = is_stored(p.epilogue, part, row, column + 1);
        if (has_first || has_second)
            store_pair(output.data + row * output.row_bytes + (int64_t)column * bytes, output.element, sums[i], sums[i + 1], has_first,
                       has_second);
    }
}

template <class CONFIG>
__device__ static inline void store_sums(const bsmi_gemm_parameters &p, const gemm_part &part, gemm_boxes &boxes,
                                         const float (&sums)[CONFIG::SUMS])
{
    const bsmi_epilogue_parameters &e = p.epilogue;
    /* The rows of a group end inside D, where the copy engine does not clip. */
    bool by_boxes = p.has_d_map && (!e.grouped || part.first_row + 64 <= part.row_end);
    if (by_boxes && (e.a_exponents != nullptr || e.b_exponents != nullptr))
        by_boxes = !barrier_or(boxes.barrier, 128, leaves_out<CONFIG::SUMS>(e, part));
    if (!by_boxes) {
        store_registers(p, part, sums);
        return;
    }
    const int32_t element = p.direct ? e.d.element : BSM_FP32;
    if (element == BSM_FP32) store_boxes<CONFIG, BSM_FP32>(p, part, boxes, sums);
    else if (element == BSM_BF16) store_boxes<CONFIG, BSM_BF16>(p, part, boxes, sums);
    else store_boxes<CONFIG, BSM_FP16>(p, part, boxes, sums);
}
