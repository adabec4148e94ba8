/* Rows of MXFP4 as rows of 8-bit integers, and which rows can be: number = integer * 2^(exponent of the row).
 *
 * Doubled e2m1 codes are integers up to 12, times 2^0 .. 2^3 at most 96: so the scales of a row's blocks, those of
 * zeros aside, may span three powers of two.  The squares of its integers may add up to 2^24: then no sum of products
 * of two such rows, of any of their columns, is larger than 2^24 (Cauchy and Schwarz), and fp32 holds it.  So the sum
 * of bf16 products that the tensor cores make of them in fp32 is the exact one in any order, and is the one of
 * integers: which path a row takes changes no bit.  A row that has neither, or a NaN, sets a flag, and then
 * all rows go as bf16.
 *
 * A warp takes a row, 4096 columns at a time: 16 codes a lane and step, and in front of them the scales, four a
 * lane. */
#include "cuda/params/int8.h"
#include "cuda/ptx/arithmetic.cuh"
#include "cuda/ptx/threads.cuh"
#include "octets.cuh"
#include "row_walk.cuh"
#include "cuda/scales/scale_places.cuh"

enum { MOST_SHIFT = 3, MOST_SQUARES = 1 << 24, NAN_SCALE = 255 };
enum { STEP_COLUMNS = 32 * 16, STEPS_AT_ONCE = 8, STRETCH_BLOCKS = STEP_COLUMNS * STEPS_AT_ONCE / 32 };

struct integer_row {
    const unsigned char *codes, *scales;
    int blocks;                           /* of 32 columns */
    bool words;                           /* four neighbouring scales, from a multiple of four on, are a word in
                                             memory */
};

/* Four scales, from column `first` on; behind the last of the row, copies of that one. */
__device__ static inline uint32_t load_scales(const integer_row &row, const scale_part &columns, int first)
{
    if (row.words && first + 4 <= row.blocks) return __ldg((const uint32_t *)(row.scales + place_in(columns, first)));
    uint32_t four = 0;
#pragma unroll
    for (int i = 0; i < 4; i++)
        four |= (uint32_t)__ldg(row.scales + place_in(columns, min(first + i, row.blocks - 1))) << 8 * i;
    return four;
}

struct scale_range { int least, most; };

__device__ static inline scale_range over_warp(scale_range of)
{
    return { __reduce_min_sync(0xffffffff, of.least), __reduce_max_sync(0xffffffff, of.most) };
}

__device__ static inline scale_range range_of_all(const integer_row &row, const scale_part &columns)
{
    scale_range range = { NAN_SCALE, 0 };
    for (int first = (int)(threadIdx.x % 32) * 4; first < row.blocks; first += 128) {
        const uint32_t four = load_scales(row, columns, first);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int scale = (int)(four >> 8 * i & 0xff);
            range.least = min(range.least, scale), range.most = max(range.most, scale);
        }
    }
    return over_warp(range);
}

__device__ static inline bool block_is_nonzero(const integer_row &row, int block)
{
    const uint2 *codes = (const uint2 *)(row.codes + (int64_t)block * 16);
    const uint2 first = __ldg(codes), second = __ldg(codes + 1);
    return ((first.x | first.y | second.x | second.y) & 0x77777777) != 0;
}

/* Whether a block at either end of the range is not zeros, by a look at one for each. */
__device__ static inline bool spans_at_a_glance(const integer_row &row, const scale_part &columns, scale_range all)
{
    int block_of_least = -1, block_of_most = -1;
    for (int block = (int)(threadIdx.x % 32); block < row.blocks; block += 32) {
        const int scale = __ldg(row.scales + place_in(columns, block));
        if (scale == all.least) block_of_least = block;
        if (scale == all.most) block_of_most = block;
    }
    const int least = __reduce_max_sync(0xffffffff, block_of_least),
              most = __reduce_max_sync(0xffffffff, block_of_most);
    return __all_sync(0xffffffff, block_is_nonzero(row, threadIdx.x % 2 == 0 ? least : most));
}

/* Without those of blocks of zeros; least > most if there are no others.  all: range_of_all, which spans too much.
 * Where a block at either end of it is not zeros, which is the rule, the rest is not looked at. */
__device__ __noinline__ static scale_range range_of_nonzero(const integer_row row, const scale_part &columns,
                                                            scale_range all)
{
    if (spans_at_a_glance(row, columns, all)) return all;
    bool at_least = false, at_most = false;
    for (int block = (int)(threadIdx.x % 32); block < row.blocks; block += 32) {
        const int scale = __ldg(row.scales + place_in(columns, block));
        if (scale == all.least) at_least |= block_is_nonzero(row, block);
        if (scale == all.most) at_most |= block_is_nonzero(row, block);
    }
    if (__any_sync(0xffffffff, at_least) && __any_sync(0xffffffff, at_most)) return all;
    scale_range range = { NAN_SCALE, 0 };
    for (int block = (int)(threadIdx.x % 32); block < row.blocks; block += 32) {
        const int scale = __ldg(row.scales + place_in(columns, block));
        if (block_is_nonzero(row, block)) range.least = min(range.least, scale), range.most = max(range.most, scale);
    }
    return over_warp(range);
}

/* Bytes of doubled magnitudes times 2^shift, by code: 0, 1, 2, 3 and 4, 6, 8, 12; and their negatives. */
struct integer_table { uint32_t low, high, negative_low, negative_high; };

__device__ static inline uint32_t negated_bytes(uint32_t bytes)
{
    return (0x80808080 - bytes) ^ 0x80808080;
} /* each at most 0x80 */

__device__ static inline integer_table table_of(uint32_t shift)
{
    const uint32_t low = 0x03020100u << shift, high = 0x0c080604u << shift;
    return { low, high, negated_bytes(low), negated_bytes(high) };
}

/* Four codes; signs: bytes of 0xff for those that are negative. */
__device__ static inline uint32_t four_integers(const integer_table &table, uint32_t codes, uint32_t signs)
{
    const uint32_t positive = ptx_prmt(table.low, table.high, codes),
                   negative = ptx_prmt(table.negative_low, table.negative_high, codes);
    return (positive & ~signs) | (negative & signs);
}

/* Eight codes, the first in the lowest nibble. */
__device__ static inline uint2 eight_integers(const integer_table &table, uint32_t codes)
{
    const uint32_t magnitudes = codes & 0x77777777, even = codes << 4;
    return make_uint2(four_integers(table, magnitudes, ptx_prmt(even, codes, 0xd9c8)),
                      four_integers(table, magnitudes >> 16, ptx_prmt(even, codes, 0xfbea)));
}

__device__ static inline uint32_t swapped_nibbles(uint32_t bytes)
{
    return (bytes << 4 & 0xf0f0f0f0) | (bytes >> 4 & 0x0f0f0f0f);
}

__device__ static inline int squares_of(uint32_t integers, int sum)
{
    return __dp4a((int)integers, (int)integers, sum);
}

/* 16 codes of every lane, as often as STEPS_AT_ONCE, and zeros behind them up to the padding's end.  four: the scales
 * of the stretch, as load_scales gives them to the lanes. */
__device__ static inline int write_stretch(const integer_row &row, unsigned char *to, int first_sixteenth,
                                           int sixteenths, int padded, bool high_first, uint32_t four, int least)
{
    const int lane = (int)(threadIdx.x % 32);
    uint2 codes[STEPS_AT_ONCE];
    int squares = 0;
#pragma unroll
    for (int i = 0; i < STEPS_AT_ONCE; i++) {
        const int at = first_sixteenth + 32 * i + lane;
        codes[i] = at < sixteenths ? __ldg((const uint2 *)row.codes + at) : make_uint2(0, 0);
    }
#pragma unroll
    for (int i = 0; i < STEPS_AT_ONCE; i++) {
        const int at = first_sixteenth + 32 * i + lane;
        const uint32_t scales = __shfl_sync(0xffffffff, four, 4 * i + lane / 8);
        const int shift = (int)(scales >> lane / 2 % 4 * 8 & 0xff) - least;
        const integer_table table = table_of((uint32_t)min(max(shift, 0), (int)MOST_SHIFT));
        const uint2 low = eight_integers(table, high_first ? swapped_nibbles(codes[i].x) : codes[i].x);
        const uint2 high = eight_integers(table, high_first ? swapped_nibbles(codes[i].y) : codes[i].y);
        squares = squares_of(low.x, squares_of(low.y, squares_of(high.x, squares_of(high.y, squares))));
        if (at < padded) ptx_store_16(to + (int64_t)at * 16, make_uint4(low.x, low.y, high.x, high.y));
    }
    return squares;
}

/* What the row's scales span; more than MOST_SHIFT if it has a NaN. */
__device__ static inline scale_range range_of(const integer_row &row, const scale_part &columns)
{
    const scale_range all = range_of_all(row, columns);
    if (all.most == NAN_SCALE) return { 0, NAN_SCALE };
    return all.most - all.least <= MOST_SHIFT ? all : range_of_nonzero(row, columns, all);
}

__device__ static inline bool fits(const scale_range &range) { return range.most - range.least <= MOST_SHIFT; }

/* A row whose scales fit.  True if it goes as integers; else what was written of it says nothing. */
__device__ static inline bool write_row(const bsmi_int8_rows_operand &p, const scale_part &columns,
                                        const integer_row &row, unsigned char *to, int32_t *exponent)
{
    const scale_range range = range_of(row, columns);
    const int lane = (int)(threadIdx.x % 32), sixteenths = row.blocks * 2, padded = (int)(p.padded_columns / 16);
    const bool high_first = p.source.packing == BSM_PACKING_HIGH_FIRST;
    int squares = 0;
    for (int first = 0; first < padded; first += 32 * STEPS_AT_ONCE) {
        const int of_lane = min(first / 2 + 4 * lane, (row.blocks - 1) & ~3);
        squares += write_stretch(row, to, first, sixteenths, padded, high_first, load_scales(row, columns, of_lane),
                                 range.least);
    }
    if (lane == 0) *exponent = range.least > range.most ? 0 : range.least - 127 - 1;
    return __reduce_add_sync(0xffffffff, (uint32_t)min(squares, MOST_SQUARES + 1)) <= MOST_SQUARES;
}

/* The rows of a warp: every warps-th of all matrices. */
struct warp_rows { int64_t first, warps, all; };

__device__ static inline integer_row row_at(const bsmi_device_matrix &m, const scale_places &places, const row_walk &w)
{
    const bool words = m.layout.kind == BSM_LAYOUT_LINEAR || m.layout.kind == BSM_LAYOUT_128X4;
    const unsigned char *scales = m.scales + w.matrix * m.scale_batch_bytes + place_in(places.row, w.r);
    return { m.data + w.matrix * m.batch_bytes + w.r * m.row_bytes, scales, (int)(m.columns / 32),
             words && aligned_to(scales, 4) };
}

/* Ends where any warp of the CTA has met a row that does not fit, which it says in *unfit: then nothing is written. */
__device__ static inline bool scales_fit(const bsmi_device_matrix &m, const scale_places &places, const warp_rows &rows,
                                         uint32_t *unfit)
{
    bool fit = true;
    for (row_walk w = walk_to(m.rows, rows.first);
         w.row < rows.all && fit && __all_sync(0xffffffff, atomicOr(unfit, 0) == 0);
         w = walk_to(m.rows, w.row + rows.warps))
        fit = fits(range_of(row_at(m, places, w), places.column));
    if (!fit && threadIdx.x % 32 == 0) atomicOr(unfit, 1);
    return fit;
}

__device__ static inline bool write_rows(const bsmi_int8_rows_operand &o, const scale_places &places,
                                         const warp_rows &rows)
{
    const bsmi_device_matrix &m = o.source;
    bool fit = true;
    for (row_walk w = walk_to(m.rows, rows.first); w.row < rows.all && fit; w = walk_to(m.rows, w.row + rows.warps))
        fit = write_row(o, places.column, row_at(m, places, w), o.integers + w.matrix * o.batch_pitch + w.r * o.pitch,
                        o.exponents + w.row);
    return fit;
}

/* Scales first: where one row of a CTA does not fit, and there are 32 of them in large products, the CTA writes
 * none. */
extern "C" __global__ void __launch_bounds__(BSMI_INT8_ROWS_THREADS, 4)
    bsmi_int8_rows(const __grid_constant__ bsmi_int8_rows_parameters p)
{
    __shared__ scale_places places;
    __shared__ uint32_t unfit;
    const bool second = blockIdx.x >= (uint32_t)p.first_ctas;
    const int64_t cta = second ? (int64_t)blockIdx.x - p.first_ctas : blockIdx.x,
                  ctas = second ? (int64_t)gridDim.x - p.first_ctas : p.first_ctas;
    const bsmi_int8_rows_operand &o = p.operands[second];
    const bsmi_device_matrix &m = o.source;
    if (threadIdx.x == 0) places = make_places(m.layout), unfit = 0;
    __syncthreads();
    ptx_griddepcontrol_wait();
    griddepcontrol_launch_dependents();
    const int64_t warps = ctas * (BSMI_INT8_ROWS_THREADS / 32);
    const warp_rows rows = { cta * (BSMI_INT8_ROWS_THREADS / 32) + threadIdx.x / 32, warps, m.rows * m.batch };
    bool any = __syncthreads_or(!scales_fit(m, places, rows, &unfit)) != 0;
    if (!any) any = __syncthreads_or(!write_rows(o, places, rows)) != 0;
    if (threadIdx.x == 0) p.unfit[blockIdx.x] = any;
}
