/* Codes and scales again of prepacked weights: the reverse of prepack.cu, for kernels that read B as it is stored. */
#include "cuda/params/kernels.h"
#include "cuda/ptx/arithmetic.cuh"
#include "cuda/scales/scale_places.cuh"
#include "cuda/sm90/operand/prepacked_bits.cuh"
#include "cuda/sm90/operand/prepacked_layout.h"

/* The least code of e8m0 in prepacked weights: blocks of zeros with less have it, too. */
enum { UNPACK_LEAST_SCALE = 62 };

/* 384 columns of 64 rows. */
struct unpacked_slice {
    const unsigned char *from;
    unsigned char *codes, *scales;        /* of the matrix */
    const int32_t *exponents;             /* of the matrix's rows */
    int32_t first_row, number;
};

/* Two codes of a pair as a byte, the low half first. */
__device__ static inline uint32_t code_byte_of(uint32_t pair)
{
    const uint32_t halves = (pair >> 6 & 0x00070007) | (pair >> 12 & 0x00080008);
    return (halves | halves >> 12) & 0xff;
}

/* 32 bytes of a row by four lanes, eight each, which lie together once the lanes have changed them: a lane has every
 * fourth byte. */
__device__ static inline void store_codes(const bsmi_unpack_parameters &p, const unpacked_slice &s, int32_t row,
                                          int step, uint32_t first, uint32_t second)
{
    const int32_t lane = (int32_t)threadIdx.x % 4;
    uint32_t pairs[8], own[2] = { 0, 0 };
    unpack_pairs(first, second, pairs);
#pragma unroll
    for (int i = 0; i < 8; i++) {
        uint32_t word = code_byte_of(pairs[i]) << 8 * lane;
        word |= __shfl_xor_sync(0xffffffff, word, 1);
        word |= __shfl_xor_sync(0xffffffff, word, 2);
        if (i / 2 == lane) own[i % 2] = word;
    }
    if (row >= p.to.rows) return;
    const int64_t at = (int64_t)s.number * (BSMI_PREPACKED_COLUMNS / 2) + step * 32 + lane * 8,
                  left = (p.to.columns + 1) / 2 - at;
    unsigned char *to = s.codes + row * p.to.row_bytes + at;
    if (left >= 8 && (uintptr_t)to % 8 == 0) *(uint2 *)to = make_uint2(own[0], own[1]);
    else
#pragma unroll
        for (int i = 0; i < 8; i++)
            if (i < left) to[i] = (unsigned char)(own[i / 4] >> 8 * (i % 4));
}

/* Whether the 32 columns of a row and a step's half have magnitudes of zero alone. */
__device__ static bool is_block_of_zeros(const unpacked_slice &s, int32_t in_tile, int32_t step, int32_t half)
{
    const uint2 *words = (const uint2 *)(s.from + step * BSMI_PREPACKED_STEP_BYTES);
    uint32_t all = 0;
    for (int32_t lane = 0; lane < 4; lane++) {
        const int32_t thread = in_tile / 16 * 32 + in_tile % 16 / 2 * 4 + lane;
        const uint2 codes = words[thread * 2 + in_tile % 2];
        uint32_t pairs[8];
        unpack_pairs(codes.x, codes.y, pairs);
#pragma unroll
        for (int i = 0; i < 4; i++) all |= half == 0 ? pairs[i] : pairs[4 + i];
    }
    return (all & 0x7fff7fff) == 0;
}

/* A code of e8m0.  Blocks of zeros with the least scale or less have that which bsm_quantize gives them. */
__device__ static inline uint32_t power_of(const unpacked_slice &s, uint32_t packed, int32_t exponent, int32_t in_tile,
                                           int32_t column)
{
    const int32_t code = (int32_t)((packed & 0x80) != 0 ? (packed & 0x7f) + 2 : packed + 60);
    if (code == UNPACK_LEAST_SCALE && is_block_of_zeros(s, in_tile, column / 2, column % 2)) return 0;
    return (uint32_t)(code + exponent);
}

__device__ static void store_scales(const bsmi_unpack_parameters &p, const unpacked_slice &s)
{
    const scale_places places = make_places(p.to.layout);
    const bool micro = p.to.block == 16;
    const int32_t in_slice = BSMI_PREPACKED_COLUMNS / p.to.block,
                  columns = (int32_t)((p.to.columns + p.to.block - 1) / p.to.block);
    for (int32_t i = threadIdx.x; i < BSMI_PREPACKED_ROWS * in_slice; i += BSMI_UNPACK_THREADS) {
        const int32_t in_tile = i / in_slice, row = s.first_row + in_tile, column = i % in_slice,
                      of_matrix = s.number * in_slice + column;
        if (row >= p.to.rows || of_matrix >= columns) continue;
        const unsigned char *of_rows = s.from + BSMI_PREPACKED_CODE_BYTES + in_tile / 2 * 2 * in_slice;
        const int32_t block = column % 4, exponent = s.exponents[row];
        /* NVFP4: blocks 0, 2, 1, 3 of a step's row; MXFP4: blocks 0 and 1, each of both rows. */
        const int32_t at = micro ? column / 4 * 8 + in_tile % 2 * 4 + (block % 2 * 2 + block / 2)
                                 : column * 2 + in_tile % 2;
        const uint32_t packed = of_rows[at],
                       code = exponent == BSMI_ROW_FALLBACK ? (micro ? 0x7f : 0xff)
                              : micro                       ? packed
                                                            : power_of(s, packed, exponent, in_tile, column);
        s.scales[place_in(places.row, row) + place_in(places.column, of_matrix)] = (unsigned char)code;
    }
}

extern "C" __global__ void __launch_bounds__(BSMI_UNPACK_THREADS)
    bsmi_unpack(const __grid_constant__ bsmi_unpack_parameters p)
{
    const int64_t slices = p.matrix_tiles * p.to.batch * p.tile_slices;
    const int32_t thread = (int32_t)threadIdx.x, in_tile = thread / 32 * 16 + thread % 32 / 4 * 2;
    ptx_griddepcontrol_wait();
    for (int64_t i = blockIdx.x; i < slices; i += gridDim.x) {
        const int64_t tile = i / p.tile_slices, matrix = tile / p.matrix_tiles;
        const unpacked_slice s = { p.prepacked + i * BSMI_PREPACKED_SLICE_BYTES(p.to.block),
                                   p.to.data + matrix * p.to.batch_bytes,
                                   p.to.scales + matrix * p.to.scale_batch_bytes,
                                   p.exponents + matrix * p.to.rows,
                                   (int32_t)(tile % p.matrix_tiles) * BSMI_PREPACKED_ROWS,
                                   (int32_t)(i % p.tile_slices) };
        if ((int64_t)s.number * BSMI_PREPACKED_COLUMNS >= p.to.columns) continue;
        const int32_t row = s.first_row + in_tile;
#pragma unroll 2
        for (int step = 0; step < BSMI_PREPACKED_STEPS; step++) {
            const uint4 codes = ((const uint4 *)s.from)[step * BSMI_UNPACK_THREADS + thread];
            store_codes(p, s, row, step, codes.x, codes.y);
            store_codes(p, s, row + 1, step, codes.z, codes.w);
        }
        store_scales(p, s);
    }
}
