/* A layout as nested loops, the way CuTe writes layouts: an axis is a number in mixed radix, each digit of which moves
 * the byte by a stride of its own. */
#ifndef BSMI_LAYOUT_MODES_H
#define BSMI_LAYOUT_MODES_H

#include "core/core.h"
#include "layout.h"

enum bsmi_axis { BSMI_ROWS, BSMI_COLUMNS };

struct bsmi_mode { int64_t extent, stride; };

enum { BSMI_MODES = 8 };
/* From the fastest digit to the slowest; extents of 1 are left out. */
struct bsmi_modes { int count; struct bsmi_mode mode[BSMI_MODES]; };

/* Of the padded rows or columns of a map. */
struct bsmi_modes bsmi_scale_modes(const struct bsmi_scale_map *map, enum bsmi_axis axis);

/* offset(r, 0) or offset(0, s). */
static inline int64_t bsmi_axis_offset(const struct bsmi_scale_map *map, enum bsmi_axis axis, int64_t index)
{
    return axis == BSMI_ROWS ? bsmi_scale_at(map, index, 0) : bsmi_scale_at(map, 0, index);
}

/* A map of a shape that has scales; arguments of public functions. */
bsm_status bsmi_scale_map_of(const bsm_scale_layout *layout, int64_t rows, int64_t columns,
                             struct bsmi_scale_map *map);

#endif
