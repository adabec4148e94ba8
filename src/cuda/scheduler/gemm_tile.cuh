/* Tiles of D, and what a thread has of one when it finishes and stores it: what all GEMM kernels share. */
#pragma once

#include "gemm_order.h"

/* One CTA's tile: the first row of A and of D, the first row of B.  Rows before row_begin and from row_end on are
 * another group's, or outside. */
struct gemm_tile {
    int32_t row, column, row_begin, row_end, matrix;
};

/* What bsmi_gemm_group_of finds, by all lanes of a warp: each looks at a boundary of its own, so that two turns do for
 * a thousand groups, where a thread by itself waits for ten loads. */
__device__ static inline int64_t gemm_group_of_warp(int64_t number, const int64_t *group_tiles, int64_t groups)
{
    const int32_t lane = (int32_t)(threadIdx.x % 32);
    int32_t low = 0, high = (int32_t)groups;
    while (high - low > 1) {
        const int32_t each = (high - low + 31) / 32, at = low + lane * each;
        const bool begins_before = at < high && group_tiles[at] <= number;
        low += (__popc(__ballot_sync(0xffffffff, begins_before)) - 1) * each;
        high = min(high, low + each);
    }
    return low;
}

/* Tile number `number`, in units of what a cluster makes: `rows` x `columns`.  BY_WARP: all lanes of a warp ask for
 * it. */
template <bool BY_WARP = false>
__device__ static inline gemm_tile gemm_tile_at(const bsmi_gemm_parameters &p, int64_t number, int32_t rows,
                                                int32_t columns)
{
    const bsmi_epilogue_parameters &e = p.epilogue;
    const uint32_t column_tiles = (uint32_t)p.column_tiles;
    int64_t matrix, inside, row_tiles = p.row_tiles, row_begin = 0, row_end = e.m;
    if (e.grouped) {
        matrix = BY_WARP ? gemm_group_of_warp(number, p.group_tiles, e.matrices)
                         : bsmi_gemm_group_of(number, p.group_tiles, e.matrices);
        inside = number - p.group_tiles[matrix];
        row_tiles = (uint32_t)(p.group_tiles[matrix + 1] - p.group_tiles[matrix]) / column_tiles;
        row_begin = e.group_starts[matrix];
        row_end = e.group_starts[matrix + 1];
    } else {
        matrix = (uint32_t)number / ((uint32_t)row_tiles * column_tiles);
        inside = number - matrix * row_tiles * column_tiles;
    }
    const bsmi_gemm_place place =
        bsmi_gemm_place_in_matrix((uint32_t)inside, (uint32_t)row_tiles, column_tiles, (uint32_t)p.band_rows);
    gemm_tile tile;
    tile.row = (int32_t)(bsmi_gemm_first_row(row_begin, p.row_alignment) + place.row * rows);
    tile.column = (int32_t)(place.column * columns);
    tile.row_begin = (int32_t)row_begin;
    tile.row_end = (int32_t)row_end;
    tile.matrix = (int32_t)matrix;
    return tile;
}

/* A tile that would reach beyond the last row begins earlier instead, and leaves out what is others': TMA
 * takes three times as long for a row that is not there as for one that is. */
__device__ static inline gemm_tile gemm_tile_inside(const bsmi_gemm_parameters &p, gemm_tile tile)
{
    if (p.last_row == 0 || tile.row <= p.last_row) return tile;
    tile.row_begin = tile.row;
    tile.row = p.last_row;
    return tile;
}

__device__ static inline int64_t gemm_tiles(const bsmi_gemm_parameters &p)
{
    return p.epilogue.grouped ? p.group_tiles[p.epilogue.matrices] : p.tiles;
}

/* What a thread has of a tile at one time: rows `row` and row + 8, columns `column` + 8 j and the one behind it. */
struct gemm_part {
    int32_t first_row, rows;     /* what the four warps that finish together have */
    int32_t first_column;        /* of the tile: tables of columns begin with it */
    int32_t box_row, box_column; /* the warp's 16 rows and its columns begin there */
    int32_t row, column, row_begin, row_end, matrix;
};

__device__ static inline gemm_part gemm_part_of(const gemm_tile &tile, int32_t first_row, int32_t rows, int32_t box_row,
                                                int32_t box_column)
{
    const int32_t lane = (int32_t)(threadIdx.x % 32);
    gemm_part part;
    part.first_row = first_row;
    part.rows = rows;
    part.first_column = tile.column;
    part.box_row = box_row;
    part.box_column = box_column;
    part.row = box_row + lane / 4;
    part.column = box_column + lane % 4 * 2;
    part.row_begin = tile.row_begin;
    part.row_end = tile.row_end;
    part.matrix = tile.matrix;
    return part;
}

/* Whether the warp has any row to store. */
__device__ static inline bool has_rows(const gemm_part &part)
{
    return part.box_row + BSMI_GEMM_WARP_ROWS > part.row_begin && part.box_row < part.row_end;
}

template <class PART> __device__ static inline bool has_row(const PART &of, int32_t row)
{
    return row >= of.row_begin && row < of.row_end;
}
