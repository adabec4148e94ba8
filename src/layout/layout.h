/* Scale layouts, for the other rooms: one table row per layout, and a map for fast addressing.
 *
 * A layout is one file with one formula.  To add one: an enumerator in scale_layout.h, a file here that defines its
 * struct bsmi_layout, one row in layout.c's table, its formula with the source in docs/layouts.md, and the layout tests
 * cover it by themselves. */
#ifndef BSMI_LAYOUT_H
#define BSMI_LAYOUT_H

#include "blockscale/scale_layout.h"

struct bsmi_layout {
    const char *name;                     /* "128x4" */
    const char *about;                    /* one line for a person */
    /* The layout's own parameters (pitch, tiles) for this shape; NULL where there are none.  name is the argument's. */
    bsm_status (*check)(const char *name, const bsm_scale_layout *layout, int64_t rows, int64_t columns);
    /* Rows and columns after padding.  rows, columns > 0, and small enough that nothing overflows. */
    void (*padded)(const bsm_scale_layout *layout, int64_t rows, int64_t columns, int64_t *padded_rows, int64_t *padded_columns);
    /* Bytes of the whole buffer; NULL: padded rows times padded columns.  Returns true on overflow. */
    bool (*bytes)(const bsm_scale_layout *layout, int64_t rows, int64_t columns, int64_t *bytes);
    /* The formula. */
    int64_t (*offset)(const bsm_scale_layout *layout, int64_t rows, int64_t columns, int64_t row, int64_t column);
};

const struct bsmi_layout *bsmi_layout_get(int kind);

/* A layout that was checked for a shape. */
struct bsmi_scale_map {
    bsm_scale_layout layout;
    int64_t rows, columns, bytes;
    int64_t (*offset)(const bsm_scale_layout *layout, int64_t rows, int64_t columns, int64_t row, int64_t column);
};

/* Checks the layout and its shape; name is the argument's, for the sentence ("a->scale_layout"). */
bsm_status bsmi_scale_map_make(const char *name, const bsm_scale_layout *layout, int64_t rows, int64_t columns,
                               struct bsmi_scale_map *map);

static inline int64_t bsmi_scale_at(const struct bsmi_scale_map *map, int64_t row, int64_t column)
{
    return map->offset(&map->layout, map->rows, map->columns, row, column);
}

/* Writes zeros into all padding of one buffer (scales of the matrix itself, and bytes between pitched rows, are left alone). */
void bsmi_scale_clear_padding(const struct bsmi_scale_map *map, unsigned char *scales);

#endif
