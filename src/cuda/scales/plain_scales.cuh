/* Scales of one matrix in linear layout, brought to 128x4 for a GEMM kernel that decodes: what row_scales.cuh does,
 * with few instructions in front of the first load.  A launch waits for each 128 bytes of instructions to come, longer
 * than it copies. */
#ifndef BSMI_PLAIN_SCALES_CUH
#define BSMI_PLAIN_SCALES_CUH

#include "cuda/params/plain.h"
#include "row_scales.cuh"

enum { FOURS_AT_ONCE = 2 };

/* Four scales; those behind the row's end are 0. */
template <bool words> __device__ static inline uint32_t load_plain_four(const unsigned char *from, int32_t left)
{
    if (words) return __ldg((const uint32_t *)from);
    uint32_t four = 0;
#pragma unroll
    for (int i = 0; i < 4; i++)
        if (i < left) four |= (uint32_t)__ldg(from + i) << 8 * i;
    return four;
}

/* A lane's scales of the four rows `row`, `row` + 32, ...  True if one of the matrix lies outside the bounds. */
template <bool words>
__device__ static inline bool copy_four_rows(const bsmi_plain_scales &p, int32_t row, unsigned char *to)
{
    const scale_bounds bounds = { p.bounds.least, p.bounds.span };
    const unsigned char *from = p.from + row * p.pitch;
    const int32_t rows = p.rows - row, first = (int32_t)threadIdx.x % 32 * 4;
    uint32_t outside = 0;
    for (int32_t column = first; column < p.columns; column += 128 * FOURS_AT_ONCE) {
        uint32_t fours[FOURS_AT_ONCE][4];
#pragma unroll
        for (int n = 0; n < FOURS_AT_ONCE; n++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const int32_t at = column + 128 * n;
                fours[n][i] = 0x7f7f7f7f;             /* what no row has: of any value, but finite */
                if (at < p.columns && 32 * i < rows)
                    fours[n][i] = load_plain_four<words>(from + 32 * i * p.pitch + at, p.columns - at);
            }
#pragma unroll
        for (int n = 0; n < FOURS_AT_ONCE; n++) {
            const int32_t at = column + 128 * n;
            if (at >= p.columns) break;
            const uint32_t mine = words || p.columns - at >= 4 ? 0x80808080 : 0x80808080 >> 8 * (4 - (p.columns - at));
#pragma unroll
            for (int i = 0; i < 4; i++) outside |= bytes_outside(fours[n][i], bounds) & mine;
            ptx_store_16(to + (int64_t)at * 128, make_uint4(fours[n][0], fours[n][1], fours[n][2], fours[n][3]));
        }
    }
    return outside != 0;
}

/* By one of `ctas` CTAs: warps stride over four rows each.  Rows with a scale outside go the general path.  True if one
 * is a fallback row. */
template <bool words>
__device__ static inline bool load_plain(const bsmi_plain_scales &p, const bsmi_row_scales_parameters &general,
                                          int32_t cta, int32_t ctas)
{
    constexpr int32_t WARPS = BSMI_DECODE_PLAIN_THREADS / 32;
    const int32_t lane = (int32_t)threadIdx.x % 32, end = (p.rows + 127) / 128 * 32;
    bool fallback = false;
    for (int32_t four = cta * WARPS + (int32_t)threadIdx.x / 32; four < end; four += ctas * WARPS) {
        const int32_t row = four / 32 * 128 + four % 32;
        const bool outside = copy_four_rows<words>(p, row, p.to + four / 32 * p.band_bytes + four % 32 * 16);
        if (p.exponents == nullptr) continue;
        if (__any_sync(0xffffffff, outside)) fallback |= load_fours<true>(general, four, four + 1, 1);
        else if (lane < 4 && row + 32 * lane < p.rows) p.exponents[row + 32 * lane] = 0;
    }
    return fallback;
}

/* The CTA's part of kernel bsmi_decode_plain. */
__device__ static inline void load_plain_scales(const bsmi_plain_scales &p, const bsmi_row_scales_parameters &general,
                                                 int32_t cta, int32_t ctas)
{
    bool fallback = p.words != 0 ? load_plain<true>(p, general, cta, ctas) : load_plain<false>(p, general, cta, ctas);
    if (p.exponents == nullptr) return;
    fallback = __syncthreads_or(fallback) != 0;
    if (threadIdx.x == 0) p.fallback[cta] = fallback;
}

#endif
