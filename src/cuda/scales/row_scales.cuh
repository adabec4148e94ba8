/* Scales of rows whose codes a GEMM kernel decodes itself: brought to the layout that it reads, less the exponents of
 * their rows.
 *
 * What exponents are for, and which rows are fallback rows, decode.cu says: the two give every row the same exponent.
 * Codes are read only where a scale lies outside the range that needs no exponent: whether a block of zeros has it is
 * what matters then.
 *
 * A warp takes four rows, 32 apart, whose scales of four columns are 16 neighbouring bytes of the layout 128x4.  They
 * are read once and written as if the rows' exponents were 0; a row where that is wrong, which is rare, is written
 * again. */
#ifndef BSMI_ROW_SCALES_CUH
#define BSMI_ROW_SCALES_CUH

#include "cuda/ptx/arithmetic.cuh"
#include "cuda/dequantize/octets.cuh"
#include "cuda/dequantize/row_exponents.cuh"
#include "scale_places.cuh"

/* words: four neighbouring scales, from a multiple of four on, are a word in memory. */
struct scale_row { const unsigned char *codes, *scales; bool exists, words; };

__device__ static inline uint32_t load_scale(const scale_row &row, const scale_part &columns, int64_t column,
                                             int64_t count)
{
    return row.exists && column < count ? __ldg(row.scales + place_in(columns, column)) : 0;
}

/* Four scales of neighbouring columns; those that the matrix does not have are 0. */
__device__ static inline uint32_t load_four(const scale_row &row, const scale_part &columns, int64_t column,
                                            int64_t count)
{
    uint32_t four = 0;
    if (row.words && row.exists && column + 4 <= count)
        return __ldg((const uint32_t *)(row.scales + place_in(columns, column)));
#pragma unroll
    for (int i = 0; i < 4; i++) four |= load_scale(row, columns, column + i, count) << 8 * i;
    return four;
}

/* The same of a stream of 6 bits, of 32 codes in 24 bytes: signs lie in the same places of every third word. */
__device__ static bool stream_is_nonzero(const unsigned char *codes)
{
    const uint2 first = __ldg((const uint2 *)codes), second = __ldg((const uint2 *)(codes + 8)),
                third = __ldg((const uint2 *)(codes + 16));
    return (((first.x | second.y) & 0xdf7df7df) | ((first.y | third.x) & 0xf7df7df7)
            | ((second.x | third.y) & 0x7df7df7d))
           != 0;
}

/* Whether the block of 32 that the scale belongs to holds anything but zeros: 16 bytes or pairs of them. */
__device__ static bool block_is_nonzero(const bsmi_device_matrix &m, const scale_row &row, int64_t column)
{
    if (m.packing == BSM_PACKING_BIT_STREAM) return stream_is_nonzero(row.codes + column * 24);
    const bool nibbles = m.bits == 4;
    const uint32_t mask = nibbles ? 0x77777777 : magnitude_mask(m.element);
    const int64_t bytes = nibbles ? m.columns / 2 : m.columns, first = column * (nibbles ? 16 : 32);
    uint32_t any = 0;
    for (int64_t at = first; at < first + (nibbles ? 16 : 32) && at < bytes; at += 16) {
        const uint4 v = ptx_load_16(row.codes + at);
        any |= v.x | v.y | v.z | v.w;
    }
    return (any & mask) != 0;
}

/* The least and the largest scale of the row's blocks that are not all zeros; least > largest if there are none. */
__device__ static void scale_range(const bsmi_device_matrix &m, const scale_row &row, const scale_part &columns,
                                   int64_t count, int *range)
{
    int least = 255, most = -1;
    for (int64_t column = threadIdx.x % 32; column < count; column += 32) {
        const int code = (int)load_scale(row, columns, column, count);
        if (code == 255 || !block_is_nonzero(m, row, column)) continue;
        least = min(least, code), most = max(most, code);
    }
    range[0] = __reduce_min_sync(0xffffffff, least), range[1] = __reduce_max_sync(0xffffffff, most);
}

/* Bytes that lie outside the bounds, as their highest bits; the bounds of every element lie on both sides of 128. */
__device__ static inline uint32_t bytes_outside(uint32_t four, const scale_bounds &bounds)
{
    const uint32_t with_highest = four | 0x80808080;
    const uint32_t not_below = with_highest - bounds.least * 0x01010101;
    const uint32_t above = with_highest - ((bounds.least + bounds.span + 1) & 0x7f) * 0x01010101;
    return ((~four & ~not_below) | (four & above)) & 0x80808080;
}

/* True if one of the four scales lies outside the range and belongs to a block that is not all zeros. */
__device__ static inline bool any_outside(const bsmi_device_matrix &m, const scale_row &row, const scale_bounds &bounds,
                                          uint32_t four, int64_t column, int64_t count)
{
    bool outside = false;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const uint32_t code = four >> 8 * i & 0xff;
        if (code - bounds.least > bounds.span && code != 255 && column + i < count)
            outside |= block_is_nonzero(m, row, column + i);
    }
    return outside;
}

/* The exponent of a row that holds numbers outside the middle of the range, or BSMI_ROW_FALLBACK. */
__device__ static int far_exponent(const bsmi_row_scales_parameters &p, const scale_row &row, const scale_part &columns,
                                   int64_t count)
{
    int range[2];
    scale_range(p.source, row, columns, count, range);
    return exponent_of_range(p.source.element, range[0], range[1], p.only_exponent_zero);
}

/* Scales less the exponent.  Those that the matrix does not have become the least: their codes are zeros. */
__device__ static inline uint32_t shift_four(uint32_t four, int exponent)
{
    uint32_t shifted = 0;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const int code = (int)(four >> 8 * i & 0xff);
        shifted |= (uint32_t)(code == 255 ? 255 : min(max(code - exponent, 1), 254)) << 8 * i;
    }
    return shifted;
}

/* Writes a row's scales once more, less its exponent: those of its byte in each word of 128x4. */
__device__ static void write_row_again(const scale_row &row, const scale_part &columns, int64_t count, int exponent,
                                       unsigned char *to)
{
    for (int64_t column = threadIdx.x % 32 * 4; column < count; column += 128)
        *(uint32_t *)(to + column / 4 * 512) = shift_four(load_four(row, columns, column, count), exponent);
}

/* All scales of four rows, from a lane's first columns on; e8m0: *again gets a bit for each row that is to be written
 * again. */
template <bool e8m0>
__device__ static inline void write_four_rows(const bsmi_device_matrix &m, const scale_row (&rows)[4],
                                              const scale_part &columns, const scale_bounds &bounds, int64_t count,
                                              unsigned char *to, uint32_t *again)
{
    for (int64_t column = threadIdx.x % 32 * 4; column < count; column += 128) {
        uint32_t words[4];
#pragma unroll
        for (int i = 0; i < 4; i++) words[i] = load_four(rows[i], columns, column, count);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            if (!e8m0 || bytes_outside(words[i], bounds) == 0) continue;
            if (rows[i].exists && any_outside(m, rows[i], bounds, words[i], column, count)) *again |= 1u << i;
            words[i] = shift_four(words[i], 0);
        }
        ptx_store_16(to + column / 4 * 512, make_uint4(words[0], words[1], words[2], words[3]));
    }
}

__device__ static inline scale_row scale_row_of(const bsmi_device_matrix &m, const scale_places &places, int64_t matrix,
                                                int64_t row)
{
    const unsigned char *scales = m.scales + matrix * m.scale_batch_bytes + place_in(places.row, row);
    const bool in_words = m.layout.kind == BSM_LAYOUT_LINEAR || m.layout.kind == BSM_LAYOUT_128X4;
    return { m.data + matrix * m.batch_bytes + row * m.row_bytes, scales, row < m.rows,
             in_words && aligned_to(scales, 4) };
}

/* Rows that are to be written again, of the four from `row` on: lane i returns the exponent of the i-th. */
__device__ static int write_rows_again(const bsmi_row_scales_parameters &p, const scale_places &places, int64_t matrix,
                                       int64_t row, int64_t count, unsigned char *to, uint32_t again)
{
    int mine = 0;
#pragma unroll 1
    for (uint32_t i = 0; i < 4; i++) {
        if ((again >> i & 1) == 0) continue;
        const scale_row of = scale_row_of(p.source, places, matrix, row + 32 * i);
        const int exponent = far_exponent(p, of, places.column, count);
        write_row_again(of, places.column, count, exponent, to + 4 * i);
        if (threadIdx.x % 32 == i) mine = exponent;
    }
    return mine;
}

/* Fours of rows from `first` on, each `step`-th, in any layout.  True if a row of this thread is a fallback row. */
template <bool e8m0>
__device__ __noinline__ static bool load_fours(const bsmi_row_scales_parameters &p, int64_t first, int64_t end,
                                                int64_t step)
{
    const bsmi_device_matrix &m = p.source;
    const scale_places places = make_places(m.layout);
    const scale_bounds bounds = scale_bounds_of(m.element);
    const int64_t count = (m.columns + m.block - 1) / m.block, bands = (m.rows + 127) / 128;
    const int lane = (int)threadIdx.x % 32;
    bool fallback = false;
    for (int64_t four = first; four < end; four += step) {
        const int64_t matrix = m.batch == 1 ? 0 : four / (bands * 32), band = four / 32 - matrix * bands,
                      row = band * 128 + four % 32;
        unsigned char *to = p.scales + matrix * p.batch_bytes + band * p.band_bytes + four % 32 * 16;
        scale_row rows[4];
        uint32_t again = 0;
#pragma unroll
        for (int i = 0; i < 4; i++) rows[i] = scale_row_of(m, places, matrix, row + 32 * i);
        write_four_rows<e8m0>(m, rows, places.column, bounds, count, to, &again);
        if (!e8m0) continue;
        again = __reduce_or_sync(0xffffffff, again);
        const int exponent = again == 0 ? 0 : write_rows_again(p, places, matrix, row, count, to, again);
        fallback |= exponent == BSMI_ROW_FALLBACK;
        if (lane < 4 && row + 32 * lane < m.rows) p.exponents[matrix * m.rows + row + 32 * lane] = exponent;
    }
    return fallback;
}

/* By one of `ctas` CTAs of BSMI_DECODE_THREADS threads: warps stride over four rows each. */
template <bool e8m0> __device__ static inline bool load_rows(const bsmi_row_scales_parameters &p, int cta, int ctas)
{
    const uint32_t first = ((uint32_t)cta * BSMI_DECODE_THREADS + threadIdx.x) / 32,
                   step = (uint32_t)ctas * (BSMI_DECODE_THREADS / 32);
    return load_fours<e8m0>(p, first, (p.source.rows + 127) / 128 * 32 * p.source.batch, step);
}

/* The CTA's part of kernel bsmi_decode. */
__device__ static inline void load_scales(const bsmi_row_scales_parameters &p, int cta, int ctas)
{
    if (p.source.scale != BSM_E8M0) {
        load_rows<false>(p, cta, ctas);
        return;
    }
    const bool fallback = __syncthreads_or(load_rows<true>(p, cta, ctas)) != 0;
    if (threadIdx.x == 0) p.fallback[cta] = fallback;
}

#endif
