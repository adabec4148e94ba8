/* Where finished numbers go, and how they become those of D's type. */
#pragma once

#include "cuda/ptx/threads.cuh"
#include "cuda/scheduler/gemm_tile.cuh"
#include <blockscale/matmul.h>

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

/* Two neighbours at `to`, as one access where both are stored and lie so. */
__device__ static inline void store_pair(unsigned char *to, int32_t element, float first, float second, bool has_first,
                                         bool has_second)
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
