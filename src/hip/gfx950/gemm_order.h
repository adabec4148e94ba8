/* Which tile a workgroup has. */
#ifndef BSMI_GFX950_GEMM_ORDER_H
#define BSMI_GFX950_GEMM_ORDER_H

#include "gemm_config.h"

/* Rows first_row .. end_row of A and D are stored; the tile begins at `row`. */
struct gemm_tile { int32_t matrix, row, column, first_row, end_row; };

/* Workgroups go to the 8 XCDs in turn; each gets tiles that follow each other. */
INLINE int64_t tile_number(int64_t workgroup, int64_t tiles)
{
    const uint32_t xcd = (uint32_t)workgroup % 8, of_each = (uint32_t)tiles / 8, more = (uint32_t)tiles % 8;
    return xcd * of_each + (xcd < more ? xcd : more) + (uint32_t)workgroup / 8;
}

/* Tiles of a matrix walk down a band of so many row tiles before they go on to the next column of it. */
INLINE void place_in_matrix(const struct bsmi_hip_gemm_parameters *p, uint32_t number, uint32_t row_tiles,
                            struct gemm_tile *tile)
{
    const uint32_t of_band = (uint32_t)p->band_rows * (uint32_t)p->column_tiles;
    const uint32_t first = number / of_band * (uint32_t)p->band_rows, inside = number % of_band;
    const uint32_t rows = row_tiles - first < (uint32_t)p->band_rows ? row_tiles - first : (uint32_t)p->band_rows;
    tile->row = (int32_t)(first + inside % rows) * ROWS;
    tile->column = (int32_t)(inside / rows) * COLUMNS;
}

/* The group whose tiles hold `number`: the last that does not begin behind it and is not empty. */
INLINE int32_t group_of(const int64_t *group_tiles, int32_t groups, int64_t number)
{
    int32_t low = 0, high = groups;
    while (high - low > 1) {
        const int32_t middle = (low + high) / 2;
        if (group_tiles[middle] <= number) low = middle;
        else high = middle;
    }
    return low;
}

/* False: there are fewer tiles. */
INLINE bool find_tile(const struct bsmi_hip_gemm_parameters *p, struct gemm_tile *tile)
{
    const int64_t workgroup = __builtin_amdgcn_workgroup_id_x();
    const bool grouped = p->group_starts != 0;
    const int64_t tiles = grouped ? p->group_tiles[p->matrices] : p->tiles;
    if (workgroup >= tiles) return false;
    /* The matrix begins with tile number `first` and has of_matrix tiles. */
    const int64_t number = tile_number(workgroup, tiles);
    int64_t first;
    uint32_t of_matrix = (uint32_t)(p->row_tiles * p->column_tiles);
    if (grouped) {
        tile->matrix = group_of(p->group_tiles, p->matrices, number);
        first = p->group_tiles[tile->matrix], of_matrix = (uint32_t)(p->group_tiles[tile->matrix + 1] - first);
        tile->first_row = (int32_t)p->group_starts[tile->matrix];
        tile->end_row = (int32_t)p->group_starts[tile->matrix + 1];
    } else {
        tile->matrix = (int32_t)((uint32_t)number / of_matrix);
        first = (int64_t)tile->matrix * of_matrix;
        tile->first_row = 0, tile->end_row = (int32_t)p->m;
    }
    place_in_matrix(p, (uint32_t)(number - first), of_matrix / (uint32_t)p->column_tiles, tile);
    tile->row += tile->first_row / 32 * 32;
    return true;
}

#endif
