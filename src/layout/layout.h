/* Scale layouts, for the other rooms: one table row per layout, and a map for fast addressing.
 *
 * A layout is one file with one formula.  To add one: an enumerator in scale_layout.h, a file here that defines its
 * struct bsmi_layout, its line in layouts.h and one row in layout.c's table, its formula with the source in
 * docs/guide/layouts.md; the layout tests cover it by themselves, all but an independent statement of its formula,
 * which tests/layout/views.c wants (the build of that test fails until it is there).
 *
 * The offset of every layout is a sum of a part that the row alone gives and one that the column alone gives:
 *     offset(r, s) = offset(r, 0) + offset(0, s),   offset(0, 0) = 0.
 * The converter relies on it, others may; the tests hold every layout to it. */
#ifndef BSMI_LAYOUT_H
#define BSMI_LAYOUT_H

#include "row.h"

const struct bsmi_layout *bsmi_layout_get(int kind);

/* A layout that was checked for a shape. */
struct bsmi_scale_map {
    bsm_scale_layout layout;              /* pitch filled in */
    int64_t rows, columns, padded_rows, padded_columns, bytes;
    bsmi_scale_offset *offset;
};

/* Checks the layout and its shape; name is the argument's, for the sentence ("a->scale_layout"). */
bsm_status bsmi_scale_map_make(const char *name, const bsm_scale_layout *layout, int64_t rows, int64_t columns,
                               struct bsmi_scale_map *map);

static inline int64_t bsmi_scale_at(const struct bsmi_scale_map *map, int64_t row, int64_t column)
{
    return map->offset(&map->layout, map->rows, map->columns, row, column);
}

/* Writes zeros into all padding of one buffer (scales of the matrix itself, and bytes between pitched rows, are left
 * alone). */
void bsmi_scale_clear_padding(const struct bsmi_scale_map *map, unsigned char *scales);

#endif
