/* Where each group begins, and with which tile: a table in shared memory that every CTA makes for itself, which takes
 * less than waiting for a kernel in front that would make one for all. */
#pragma once

#include "tiles.cuh"

/* Numbers of the table: rows and tiles of all groups before each, and of all. */
enum { GROUP_TABLE_NUMBERS = BSMI_MOST_GROUPS_IN_KERNEL + 1 };

template <class CONFIG> __device__ static inline uint32_t group_start_at(uint32_t shared, int32_t group)
{
    return shared + CONFIG::AT_GROUP_TABLE + 4 * group;
}
template <class CONFIG> __device__ static inline uint32_t group_tiles_at(uint32_t shared, int32_t group)
{
    return shared + CONFIG::AT_GROUP_TABLE + 4 * (GROUP_TABLE_NUMBERS + group);
}

/* What lanes before this one have, together. */
__device__ static inline int64_t sum_before_lane(int64_t of_lane)
{
    int64_t upto = of_lane;
    for (int distance = 1; distance < 32; distance *= 2) {
        const int64_t lower = __shfl_up_sync(0xffffffff, upto, distance);
        if ((int)(threadIdx.x % 32) >= distance) upto += lower;
    }
    return upto - of_lane;
}

/* By a warp: each lane has some neighbouring groups, as bsmi_group_tables has them. */
template <class CONFIG>
__device__ static inline void make_group_table(const bsmi_mixed_input_parameters &p, uint32_t shared)
{
    const int32_t groups = (int32_t)p.epilogue.matrices, of_lane = (groups + 31) / 32,
                  first = min((int32_t)(threadIdx.x % 32) * of_lane, groups), end = min(first + of_lane, groups);
    const int64_t m = p.epilogue.m;
    int64_t rows = 0;
    for (int32_t g = first; g < end; g++) rows += max((int64_t)0, min(p.group_rows[g], m));
    int64_t given = sum_before_lane(rows);
    int32_t tiles = 0;
    for (int32_t g = first; g < end; g++) {
        const int32_t row = (int32_t)min(given, m);
        given += max((int64_t)0, min(p.group_rows[g], m));
        store_shared(group_start_at<CONFIG>(shared, g), (uint32_t)row);
        store_shared(group_tiles_at<CONFIG>(shared, g), (uint32_t)tiles);
        tiles += ((int32_t)min(given, m) - row + CONFIG::ROWS - 1) / CONFIG::ROWS * (int32_t)p.column_tiles;
    }
    const int32_t before = (int32_t)sum_before_lane(tiles);
    for (int32_t g = first; g < end; g++)
        store_shared(group_tiles_at<CONFIG>(shared, g), before + load_shared(group_tiles_at<CONFIG>(shared, g)));
    if (threadIdx.x % 32 == 31) {
        store_shared(group_start_at<CONFIG>(shared, groups), (uint32_t)min(given, m));
        store_shared(group_tiles_at<CONFIG>(shared, groups), (uint32_t)(before + tiles));
    }
}

/* The number of tiles, which D's size bounds, and a tile, of products with groups by the table, of others as all
 * kernels find them. */
template <class CONFIG>
__device__ static inline int32_t tiles_of_groups(const bsmi_mixed_input_parameters &p, uint32_t shared)
{
    return (int32_t)(p.epilogue.grouped ? load_shared(group_tiles_at<CONFIG>(shared, (int32_t)p.epilogue.matrices))
                                        : (uint32_t)p.tiles);
}

template <class CONFIG>
__device__ static inline gemm_tile tile_of_groups(const bsmi_mixed_input_parameters &p, uint32_t shared,
                                                  int32_t number)
{
    if (!p.epilogue.grouped) return gemm_tile_of<CONFIG>(p, number, { 0, 0 });
    int32_t group = 0, end = (int32_t)p.epilogue.matrices;        /* the last that does not begin behind the tile */
    while (end - group > 1) {
        const int32_t middle = (group + end) / 2;
        if (load_shared(group_tiles_at<CONFIG>(shared, middle)) <= (uint32_t)number) group = middle;
        else end = middle;
    }
    const uint32_t first = load_shared(group_tiles_at<CONFIG>(shared, group)),
                   tiles = load_shared(group_tiles_at<CONFIG>(shared, group + 1)) - first,
                   columns = (uint32_t)p.column_tiles;
    const bsmi_gemm_place place =
        bsmi_gemm_place_in_matrix((uint32_t)number - first, tiles / columns, columns, (uint32_t)p.band_rows);
    const int32_t begin = (int32_t)load_shared(group_start_at<CONFIG>(shared, group)),
                  row_end = (int32_t)load_shared(group_start_at<CONFIG>(shared, group + 1));
    return {
        begin + (int32_t)place.row * CONFIG::ROWS, (int32_t)place.column * CONFIG::COLUMNS, begin, row_end, group,
    };
}
