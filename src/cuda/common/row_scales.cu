/* Scales of rows whose codes a GEMM kernel decodes itself: brought to the layout that it reads, less the exponents of their rows.
 *
 * What exponents are for, and which rows are left out, decode.cu says: the two give every row the same exponent.  Codes are read only
 * where a scale lies outside the range that needs no exponent: whether a block of zeros has it is what matters then.
 *
 * A warp takes four rows, 32 apart, whose scales of four columns are 16 neighbouring bytes of the layout 128x4. */
#include "cuda/ptx/arithmetic.cuh"
#include "cuda/ptx/threads.cuh"
#include "octets.cuh"
#include "row_exponents.cuh"
#include "scale_places.cuh"

/* words: four neighbouring scales, from a multiple of four on, are a word in memory. */
struct scale_row { const unsigned char *codes, *scales; bool exists, words; };

__device__ static inline uint32_t load_scale(const scale_row &row, const scale_part &columns, int64_t column, int64_t count)
{
    return row.exists && column < count ? __ldg(row.scales + place_in(columns, column)) : 0;
}

/* Four scales of neighbouring columns; those that the matrix does not have are 0. */
__device__ static inline uint32_t load_four(const scale_row &row, const scale_part &columns, int64_t column, int64_t count)
{
    uint32_t four = 0;
    if (row.words && row.exists && column + 4 <= count) return __ldg((const uint32_t *)(row.scales + place_in(columns, column)));
#pragma unroll
    for (int i = 0; i < 4; i++) four |= load_scale(row, columns, column + i, count) << 8 * i;
    return four;
}

/* Whether the block of 32 that the scale belongs to holds anything but zeros: 16 bytes or pairs of them. */
__device__ static bool block_is_nonzero(const bsmi_device_matrix &m, const scale_row &row, int64_t column)
{
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
__device__ static void scale_range(const bsmi_device_matrix &m, const scale_row &row, const scale_part &columns, int64_t count, int *range)
{
    int least = 255, most = -1;
    for (int64_t column = threadIdx.x % 32; column < count; column += 32) {
        const int code = (int)load_scale(row, columns, column, count);
        if (code == 255 || !block_is_nonzero(m, row, column)) continue;
        least = min(least, code), most = max(most, code);
    }
    range[0] = __reduce_min_sync(0xffffffff, least), range[1] = __reduce_max_sync(0xffffffff, most);
}

/* True if one of the four scales lies outside the range and belongs to a block that is not all zeros. */
__device__ static inline bool any_outside(const bsmi_device_matrix &m, const scale_row &row, const scale_bounds &bounds, uint32_t four,
                                          int64_t column, int64_t count)
{
    bool outside = false;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const uint32_t code = four >> 8 * i & 0xff;
        if (code - bounds.least > bounds.span && code != 255 && column + i < count) outside |= block_is_nonzero(m, row, column + i);
    }
    return outside;
}

/* The exponent of a row that holds numbers outside the middle of the range, or BSMI_ROW_LEFT_OUT. */
__device__ static int far_exponent(const bsmi_row_scales_parameters &p, const scale_row &row, const scale_part &columns, int64_t count)
{
    int range[2];
    scale_range(p.source, row, columns, count, range);
    return exponent_of_range(p.source.element, range[0], range[1], p.only_exponent_zero);
}

/* Exponents of four rows: all lanes know all of them. */
__device__ static void find_exponents(const bsmi_row_scales_parameters &p, const scale_row (&rows)[4], const scale_part &columns, int64_t count,
                                      int (&exponents)[4])
{
    const scale_bounds bounds = scale_bounds_of(p.source.element);
#pragma unroll
    for (int i = 0; i < 4; i++) {
        bool outside = false;
        exponents[i] = 0;
        if (!rows[i].exists) continue;
        for (int64_t column = threadIdx.x % 32 * 4; column < count; column += 128)
            outside |= any_outside(p.source, rows[i], bounds, load_four(rows[i], columns, column, count), column, count);
        if (__any_sync(0xffffffff, outside)) exponents[i] = far_exponent(p, rows[i], columns, count);
    }
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

extern "C" __global__ void __launch_bounds__(BSMI_ROW_SCALES_THREADS) bsmi_row_scales(const __grid_constant__ bsmi_row_scales_parameters p)
{
    ptx_griddepcontrol_wait();
    griddepcontrol_launch_dependents();
    const bsmi_device_matrix &m = p.source;
    const scale_places places = make_places(m.layout);
    const int64_t count = (m.columns + m.block - 1) / m.block, bands = (m.rows + 127) / 128, fours = bands * 32 * m.batch;
    const bool in_words = m.layout.kind == BSM_LAYOUT_LINEAR || m.layout.kind == BSM_LAYOUT_128X4;
    const int64_t warps = (int64_t)gridDim.x * BSMI_ROW_SCALES_THREADS / 32;
    bool left_out = false;
    for (int64_t four = ((int64_t)blockIdx.x * BSMI_ROW_SCALES_THREADS + threadIdx.x) / 32; four < fours; four += warps) {
        const int64_t matrix = four / (bands * 32), band = four / 32 - matrix * bands, in_band = four % 32;
        scale_row rows[4];
        int exponents[4] = { 0, 0, 0, 0 };
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int64_t row = band * 128 + in_band + 32 * i;
            const unsigned char *scales = m.scales + matrix * m.scale_batch_bytes + place_in(places.row, row);
            rows[i] = { m.data + matrix * m.batch_bytes + row * m.row_bytes, scales, row < m.rows, in_words && aligned_to(scales, 4) };
        }
        if (m.scale == BSM_E8M0) {
            find_exponents(p, rows, places.column, count, exponents);
#pragma unroll
            for (int i = 0; i < 4; i++) {
                left_out |= exponents[i] == BSMI_ROW_LEFT_OUT;
                if (rows[i].exists && threadIdx.x % 32 == 0) p.exponents[matrix * m.rows + band * 128 + in_band + 32 * i] = exponents[i];
            }
        }
        unsigned char *to = p.scales + matrix * p.batch_bytes + band * p.band_bytes + in_band * 16;
        for (int64_t column = threadIdx.x % 32 * 4; column < count; column += 128) {
            uint32_t words[4];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                words[i] = load_four(rows[i], places.column, column, count);
                if (m.scale == BSM_E8M0) words[i] = shift_four(words[i], exponents[i]);
            }
            *(uint4 *)(to + column / 4 * 512) = make_uint4(words[0], words[1], words[2], words[3]);
        }
    }
    if (m.scale != BSM_E8M0) return;
    left_out = __syncthreads_or(left_out) != 0;
    if (threadIdx.x == 0) p.left_out[blockIdx.x] = left_out;
}
