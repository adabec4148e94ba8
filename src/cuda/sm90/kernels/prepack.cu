/* Prepacks weights of four bits: prepacked_layout.h says where what lies, prepacked_bits.cuh which bits. */
#include "cuda/dequantize/row_exponents.cuh"
#include "cuda/scales/scale_places.cuh"
#include "cuda/params/kernels.h"
#include "cuda/ptx/arithmetic.cuh"
#include "cuda/sm90/operand/prepacked_bits.cuh"
#include "cuda/sm90/operand/prepacked_layout.h"

/* Codes of e8m0 in prepacked weights: blocks of zeros alone have others, once a row's exponent is taken out. */
enum { PREPACKED_LEAST_SCALE = 62, PREPACKED_MOST_SCALE = 187 };

/* A matrix, and what a CTA makes of it. */
struct prepack_source {
    const unsigned char *codes, *scales;
    scale_places places;
    int64_t bytes;                        /* of a row */
    int32_t rows, scale_columns, block, first_row;   /* of the tile */
};

__device__ static inline prepack_source prepack_source_of(const bsmi_prepack_parameters &p, int64_t tile)
{
    const bsmi_device_matrix &m = p.source;
    const int64_t matrix = tile / p.matrix_tiles;
    return { m.data + matrix * m.batch_bytes,
             m.scales + matrix * m.scale_batch_bytes,
             make_places(m.layout),
             (m.columns + 1) / 2,
             (int32_t)m.rows,
             (int32_t)((m.columns + m.block - 1) / m.block),
             m.block,
             (int32_t)(tile % p.matrix_tiles) * BSMI_PREPACKED_ROWS };
}

/* Codes outside the matrix are 0. */
__device__ static inline uint32_t code_byte(const bsmi_prepack_parameters &p, const prepack_source &s, int32_t row,
                                            int64_t at)
{
    return row < s.rows && at < s.bytes ? s.codes[row * p.source.row_bytes + at] : 0;
}

__device__ static inline uint32_t scale_code(const prepack_source &s, int32_t row, int32_t column)
{
    return s.scales[place_in(s.places.row, row) + place_in(s.places.column, column)];
}

/* Exponents of rows ------------------------------------------------------------------------------------------------ */

__device__ static inline bool has_codes(const bsmi_prepack_parameters &p, const prepack_source &s, int32_t row,
                                        int32_t column)
{
    uint32_t all = 0;
    for (int32_t i = 0; i < s.block / 2; i++) all |= code_byte(p, s, row, (int64_t)column * (s.block / 2) + i);
    return (all & 0x77) != 0;
}

/* By a warp; the rules of decode.cu, and a row with NaN is a fallback row. */
__device__ static int32_t exponent_of_row(const bsmi_prepack_parameters &p, const prepack_source &s, int32_t row)
{
    const bool micro = s.block == 16;
    const scale_bounds bounds = scale_bounds_of(BSM_E2M1);
    int least = 255, most = -1;
    bool outside = false, nan = false;
    for (int32_t column = threadIdx.x % 32; column < s.scale_columns; column += 32) {
        const uint32_t code = scale_code(s, row, column);
        nan |= micro ? (code & 0x7f) == 0x7f : code == 255;
        if (micro || code == 255 || (code - bounds.least <= bounds.span && least <= (int)code && most >= (int)code))
            continue;
        if (!has_codes(p, s, row, column)) continue;
        outside |= code - bounds.least > bounds.span;
        least = min(least, (int)code), most = max(most, (int)code);
    }
    least = __reduce_min_sync(0xffffffff, least), most = __reduce_max_sync(0xffffffff, most);
    outside = __any_sync(0xffffffff, outside);
    if (__any_sync(0xffffffff, nan)) return BSMI_ROW_FALLBACK;
    return outside ? exponent_of_range(BSM_E2M1, least, most, p.only_exponent_zero) : 0;
}

/* Slices ----------------------------------------------------------------------------------------------------------- */

/* A byte of two codes as two numbers of 16 bits, the low one first. */
__device__ static inline uint32_t pair_of(uint32_t codes)
{
    const uint32_t halves = (codes & 0xf) | (codes & 0xf0) << 12;
    return (halves & 0x00080008) << 12 | (halves & 0x00070007) << 6;
}

/* A thread's codes of one of its rows and a step. */
__device__ static inline uint2 prepacked_codes(const bsmi_prepack_parameters &p, const prepack_source &s, int32_t row,
                                               bool is_fallback, int64_t at)
{
    uint32_t pairs[8];
#pragma unroll
    for (int i = 0; i < 8; i++) pairs[i] = is_fallback ? 0 : pair_of(code_byte(p, s, row, at + i * 4));
    return pack_pairs(pairs);
}

/* e8m0 less the row's exponent, in the range that bf16 rows have; ue4m3 without its sign. */
__device__ static inline int32_t prepacked_scale(const prepack_source &s, int32_t row, int32_t exponent, int32_t column)
{
    const bool micro = s.block == 16;
    if (row >= s.rows || column >= s.scale_columns || exponent == BSMI_ROW_FALLBACK) return micro ? 0x38 : 127;
    const int32_t code = (int32_t)scale_code(s, row, column);
    return micro ? code & 0x7f : min(max(code - exponent, PREPACKED_LEAST_SCALE), PREPACKED_MOST_SCALE);
}

/* A step's word of two rows.  MXFP4: its blocks' scales in halves, the first row's in the low bytes.  NVFP4: a word for
 * either row, blocks 0 and 1 in the low bytes of halves, 2 and 3 in the high ones. */
__device__ static inline uint32_t scale_word(const prepack_source &s, int32_t row, const int32_t (&exponents)[2],
                                             int32_t column, int word)
{
    const bool micro = s.block == 16;
    uint32_t packed = 0;
#pragma unroll 1
    for (int i = 0; i < 4; i++) {
        const int32_t half = i / 2, high = i % 2, which = micro ? word : high;
        packed |= (uint32_t)prepacked_scale(s, row + which, exponents[which], column + (micro ? half + 2 * high : half))
                  << 8 * i;
    }
    return packed;
}

/* Of a warp's slice of MXFP4, codes of e8m0 as prepacked_registers.cuh has them. */
__device__ static inline void mark_large(uint32_t (&words)[BSMI_PREPACKED_STEPS])
{
    bool large = false;
#pragma unroll
    for (int i = 0; i < BSMI_PREPACKED_STEPS; i++) large |= __vcmpgtu4(words[i], 0x80808080) != 0;
    large = __any_sync(0xffffffff, large);
#pragma unroll
    for (int i = 0; i < BSMI_PREPACKED_STEPS; i++)
        words[i] = large ? __vsub4(words[i], 0x3c3c3c3c) : __vsub4(words[i], 0x02020202) | 0x80808080;
}

/* The scales of a thread's rows of a slice. */
__device__ static void prepack_scales(const prepack_source &s, int32_t row, const int32_t (&exponents)[2],
                                      int32_t column, uint32_t *to)
{
    const bool micro = s.block == 16;
#pragma unroll 1
    for (int word = 0; word < (micro ? 2 : 1); word++) {
        uint32_t words[BSMI_PREPACKED_STEPS];
#pragma unroll
        for (int step = 0; step < BSMI_PREPACKED_STEPS; step++)
            words[step] = scale_word(s, row, exponents, column + step * (64 / s.block), word);
        if (!micro) mark_large(words);
#pragma unroll
        for (int step = 0; step < BSMI_PREPACKED_STEPS; step++)
            if (threadIdx.x % 4 == 0) to[micro ? step * 2 + word : step] = words[step];
    }
}

/* By 128 threads, as they read it. */
__device__ static void prepack_slice(const bsmi_prepack_parameters &p, const prepack_source &s,
                                     const int32_t *exponents, int64_t slice, unsigned char *to)
{
    const int32_t thread = (int32_t)threadIdx.x % 128, lane = thread % 32, in_tile = thread / 32 * 16 + lane / 4 * 2,
                  row = s.first_row + in_tile;
    const int32_t of_rows[2] = { exponents[in_tile], exponents[in_tile + 1] };
    prepack_scales(s, row, of_rows, (int32_t)(slice * BSMI_PREPACKED_COLUMNS) / s.block,
                (uint32_t *)(to + BSMI_PREPACKED_CODE_BYTES + in_tile * BSMI_PREPACKED_COLUMNS / s.block));
#pragma unroll 1
    for (int step = 0; step < BSMI_PREPACKED_STEPS; step++) {
        const int64_t at = slice * (BSMI_PREPACKED_COLUMNS / 2) + step * 32 + lane % 4;
        const uint2 first = prepacked_codes(p, s, row, of_rows[0] == BSMI_ROW_FALLBACK, at),
                    second = prepacked_codes(p, s, row + 1, of_rows[1] == BSMI_ROW_FALLBACK, at);
        ((uint4 *)to)[step * 128 + thread] = make_uint4(first.x, first.y, second.x, second.y);
    }
}

extern "C" __global__ void __launch_bounds__(BSMI_PREPACK_THREADS)
    bsmi_prepack(const __grid_constant__ bsmi_prepack_parameters p)
{
    __shared__ int32_t exponents[BSMI_PREPACKED_ROWS];
    ptx_griddepcontrol_wait();
    const int64_t slice_bytes = BSMI_PREPACKED_SLICE_BYTES(p.source.block), tiles = p.matrix_tiles * p.source.batch;
    for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const prepack_source s = prepack_source_of(p, tile);
        __syncthreads();                  /* those of the tile before are read */
        for (int32_t i = threadIdx.x / 32; i < BSMI_PREPACKED_ROWS; i += BSMI_PREPACK_THREADS / 32) {
            const int32_t row = s.first_row + i, exponent = row < s.rows ? exponent_of_row(p, s, row) : 0;
            if (threadIdx.x % 32 == 0) exponents[i] = exponent;
            if (threadIdx.x % 32 == 0 && row < s.rows)
                p.exponents[tile / p.matrix_tiles * p.source.rows + row] = exponent;
        }
        __syncthreads();
        for (int64_t slice = threadIdx.x / 128; slice < p.tile_slices; slice += BSMI_PREPACK_THREADS / 128)
            prepack_slice(p, s, exponents, slice, p.prepacked + (tile * p.tile_slices + slice) * slice_bytes);
    }
}
