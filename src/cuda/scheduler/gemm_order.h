/* The order of tiles: one function for every role, the host and the tests. */
#ifndef BSMI_GEMM_ORDER_H
#define BSMI_GEMM_ORDER_H

#include "cuda/params/gemm.h"

/* A tile of one cluster, in units of such tiles. */
struct bsmi_gemm_place { int64_t matrix, row, column; };

/* number: 0 .. row_tiles * column_tiles - 1, of one matrix.  Tiles walk down a band of so many row tiles before they go
 * on to the next column of it. */
BSMI_HOST_DEVICE static inline struct bsmi_gemm_place bsmi_gemm_place_in_matrix(uint32_t number, uint32_t row_tiles,
                                                                                uint32_t column_tiles, uint32_t band)
{
    const uint32_t of_band = band * column_tiles, first = number / of_band * band, inside = number % of_band;
    const uint32_t rows = row_tiles - first < band ? row_tiles - first : band;
    struct bsmi_gemm_place place;
    place.matrix = 0;
    place.row = first + inside % rows;
    place.column = inside / rows;
    return place;
}

/* The row that the tiles of a group begin with: its first, or the multiple of `alignment` (0: 1) before it. */
BSMI_HOST_DEVICE static inline int64_t bsmi_gemm_first_row(int64_t row, int64_t alignment)
{
    return alignment == 0 ? row : row - row % alignment;
}

/* The group whose tiles hold `number`: the last that does not begin behind it and is not empty. */
BSMI_HOST_DEVICE static inline int64_t bsmi_gemm_group_of(int64_t number, const int64_t *group_tiles, int64_t groups)
{
    int64_t low = 0, high = groups;       /* group_tiles[low] <= number < group_tiles[high] */
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        if (group_tiles[middle] <= number) low = middle;
        else high = middle;
    }
    return low;
}

#endif
