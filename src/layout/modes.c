/* The nested loops of a layout, found from its offsets alone. */
#include "modes.h"

#include "blockscale/scale_copy.h"

#include <inttypes.h>
#include <stdio.h>

/* How many steps of `step` go on at the stride of the first.  Every layout's digits but the last have few values, or as
 * many as its tiles: beyond those that are looked at, only the tile can end a digit. */
static int64_t digit_extent(const struct bsmi_scale_map *map, enum bsmi_axis axis, int64_t step, int64_t count)
{
    enum { LOOKED_AT = 1024 };
    const int64_t stride = bsmi_axis_offset(map, axis, step);
    for (int64_t k = 2; k < count && k < LOOKED_AT; k++)
        if (bsmi_axis_offset(map, axis, k * step) != k * stride) return k;
    const int64_t tile = axis == BSMI_ROWS ? map->layout.tile_rows : map->layout.tile_columns;
    if (tile > step && tile / step < count && bsmi_axis_offset(map, axis, tile) != tile / step * stride)
        return tile / step;
    return count;
}

struct bsmi_modes bsmi_scale_modes(const struct bsmi_scale_map *map, enum bsmi_axis axis)
{
    const int64_t extent = axis == BSMI_ROWS ? map->padded_rows : map->padded_columns;
    struct bsmi_modes modes = { .count = 0 };
    for (int64_t step = 1; step < extent && modes.count < BSMI_MODES; modes.count++) {
        struct bsmi_mode *mode = &modes.mode[modes.count];
        mode->stride = bsmi_axis_offset(map, axis, step);
        mode->extent = digit_extent(map, axis, step, extent / step);
        step *= mode->extent;
    }
    return modes;
}

bsm_status bsmi_scale_map_of(const bsm_scale_layout *layout, int64_t rows, int64_t columns,
                             struct bsmi_scale_map *map)
{
    const bsm_status status = bsmi_scale_map_make("layout", layout, rows, columns, map);
    if (status != BSM_OK) return status;
    if (rows == 0) return bsmi_fail(BSM_EINVAL, "rows=0 of scales: a layout is looked at where it has scales");
    if (columns == 0) return bsmi_fail(BSM_EINVAL, "columns=0 of scales: a layout is looked at where it has scales");
    return BSM_OK;
}

static size_t add_modes(char *text, size_t room, const char *name, const struct bsmi_modes *modes)
{
    size_t used = (size_t)snprintf(text, room, "%s (", name);
    if (modes->count == 0) return used + (size_t)snprintf(text + used, room - used, "1) : (0)");
    for (int i = 0; i < modes->count; i++)
        used += (size_t)snprintf(text + used, room - used, i > 0 ? ", %" PRId64 : "%" PRId64, modes->mode[i].extent);
    used += (size_t)snprintf(text + used, room - used, ") : (");
    for (int i = 0; i < modes->count; i++)
        used += (size_t)snprintf(text + used, room - used, i > 0 ? ", %" PRId64 : "%" PRId64, modes->mode[i].stride);
    return used + (size_t)snprintf(text + used, room - used, ")");
}

bsm_status bsm_scale_layout_modes(const bsm_scale_layout *layout, int64_t rows, int64_t columns, char *text,
                                  size_t bytes, size_t *length)
{
    struct bsmi_scale_map map;
    char whole[1024];                     /* two axes of BSMI_MODES numbers of at most 19 digits, twice */
    if (text == NULL && bytes > 0) return bsmi_fail(BSM_EINVAL, "text is NULL, and bytes=%zu", bytes);
    const bsm_status status = bsmi_scale_map_of(layout, rows, columns, &map);
    if (status != BSM_OK) return status;
    const struct bsmi_modes down = bsmi_scale_modes(&map, BSMI_ROWS), across = bsmi_scale_modes(&map, BSMI_COLUMNS);
    size_t used = add_modes(whole, sizeof whole, "rows", &down);
    used += (size_t)snprintf(whole + used, sizeof whole - used, ", ");
    used += add_modes(whole + used, sizeof whole - used, "columns", &across);
    if (bytes > 0) snprintf(text, bytes, "%s", whole);
    if (length != NULL) *length = used;
    return BSM_OK;
}
