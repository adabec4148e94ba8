/* Where a scale lies: the formulas of src/layout, every one of them a part of the row plus a part of the column, and
 * each part a sum of three terms in which the index is shifted, masked and multiplied. */
#ifndef BSMI_SCALE_PLACES_CUH
#define BSMI_SCALE_PLACES_CUH

#include "blockscale/scale_layout.h"
#include "cuda/params/kernels.h"

/* (x >> shift) * stride + ((x >> shift1) & mask1) * stride1 + ((x >> shift2) & mask2) * stride2; of tiles, whose sizes
 * are no powers of two, x / tile * stride + x % tile * stride1. */
struct scale_part {
    int64_t stride, tile;                 /* tile 0: shifts */
    uint32_t shift, shift1, mask1, shift2, mask2, stride2;
    int64_t stride1;
};

struct scale_places { scale_part row, column; };

__device__ static inline scale_part shifted_part(uint32_t shift, int64_t stride, uint32_t shift1, uint32_t mask1,
                                                 int64_t stride1, uint32_t shift2, uint32_t mask2, uint32_t stride2)
{
    scale_part part = {};
    part.shift = shift, part.stride = stride;
    part.shift1 = shift1, part.mask1 = mask1, part.stride1 = stride1;
    part.shift2 = shift2, part.mask2 = mask2, part.stride2 = stride2;
    return part;
}

__device__ static inline scale_part plain_part(int64_t stride) { return shifted_part(0, stride, 0, 0, 0, 0, 0, 0); }

__device__ static inline scale_part tiled_part(int64_t tile, int64_t stride, int64_t stride_within)
{
    scale_part part = {};
    part.tile = tile, part.stride = stride, part.stride1 = stride_within;
    return part;
}

/* docs/guide/layouts.md has the formula of each. */
__device__ static inline scale_places make_places(const bsmi_device_layout &layout)
{
    const int64_t columns_4 = (layout.columns + 3) / 4, columns_8 = (layout.columns + 7) / 8,
                  rows_4 = (layout.rows + 3) / 4;
    switch (layout.kind) {
    case BSM_LAYOUT_128X4:
        return { shifted_part(7, columns_4 * 512, 0, 31, 16, 5, 3, 4), shifted_part(2, 512, 0, 3, 1, 0, 0, 0) };
    case BSM_LAYOUT_8X4:
        return { shifted_part(3, columns_4 * 32, 0, 7, 4, 0, 0, 0), shifted_part(2, 32, 0, 3, 1, 0, 0, 0) };
    case BSM_LAYOUT_TILES: {
        const int64_t tiles = (layout.columns + layout.tile_columns - 1) / layout.tile_columns;
        const int64_t bytes = layout.tile_rows * layout.tile_columns;
        return { tiled_part(layout.tile_rows, tiles * bytes, layout.tile_columns),
                 tiled_part(layout.tile_columns, bytes, 1) };
    }
    case BSM_LAYOUT_CDNA4_16:
    case BSM_LAYOUT_AITER:
        return { shifted_part(5, columns_8 * 256, 0, 15, 4, 4, 1, 1), shifted_part(3, 256, 0, 3, 64, 2, 1, 2) };
    case BSM_LAYOUT_CDNA4_32:
        return { shifted_part(5, columns_8 * 256, 0, 31, 4, 0, 0, 0), shifted_part(3, 256, 0, 1, 128, 1, 3, 1) };
    case BSM_LAYOUT_DEEPGEMM: return { plain_part(4), shifted_part(2, rows_4 * 16, 0, 3, 1, 0, 0, 0) };
    case BSM_LAYOUT_GGUF_MXFP4: return { plain_part(layout.pitch), plain_part(17) };
    case BSM_LAYOUT_GGUF_NVFP4: return { plain_part(layout.pitch), shifted_part(2, 36, 0, 3, 1, 0, 0, 0) };
    default: return { plain_part(layout.pitch), plain_part(1) };
    }
}

/* Out of line: a 64-bit division is long. */
__device__ __noinline__ static int64_t place_in_tiles(int64_t tile_size, int64_t stride, int64_t stride_within,
                                                      int64_t x)
{
    const int64_t tile = x / tile_size;
    return tile * stride + (x - tile * tile_size) * stride_within;
}

/* Of no tiles; the second for columns. */
__device__ static inline int64_t place_in_shifted(const scale_part &part, int64_t x)
{
    const uint32_t low = (uint32_t)x;
    return (x >> part.shift) * part.stride + ((low >> part.shift1) & part.mask1) * part.stride1
         + ((low >> part.shift2) & part.mask2) * part.stride2;
}

__device__ static inline int64_t column_place(const scale_part &part, uint32_t x)
{
    return (int64_t)(x >> part.shift) * part.stride + (int64_t)((x >> part.shift1) & part.mask1) * part.stride1
         + ((x >> part.shift2) & part.mask2) * part.stride2;
}

__device__ static inline int64_t place_in(const scale_part &part, int64_t x)
{
    return part.tile != 0 ? place_in_tiles(part.tile, part.stride, part.stride1, x) : place_in_shifted(part, x);
}

/* Places of the scales of a warp's octets.  A row's columns are the sum of three numbers without common bits: of the
 * warp's first octet, of the lane, and of the step; and so is the place, since its parts are shifts and masks. */
template <int steps>
struct fast_places { uint32_t step[steps]; };

/* false: tiles, or places beyond 32 bits. */
template <int steps>
__device__ static inline bool make_fast_places(const scale_part &columns, int octets_per_block_shift,
                                                fast_places<steps> *places)
{
    if (columns.tile != 0 || place_in(columns, 32 * steps) >= (int64_t)1 << 31) return false;
#pragma unroll
    for (int i = 0; i < steps; i++) places->step[i] = (uint32_t)place_in(columns, 32 * i >> octets_per_block_shift);
    return true;
}

#endif
