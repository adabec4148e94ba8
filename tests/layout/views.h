/* Scale layouts stated a second time, not as formulas but as the reshape-and-permute that their makers write: an array
 * of rows and columns is split into dimensions, and the dimensions are walked in the order in which they lie in
 * memory. */
#ifndef LAYOUT_VIEWS_H
#define LAYOUT_VIEWS_H

#include "layout/layout.h"

enum { VIEW_DIMENSIONS = 6 };

/* Dimensions in memory order, outermost first. */
struct view {
    int count;
    struct {
        int64_t extent;
        int64_t row_step, column_step;    /* what one step along this dimension is worth */
        int64_t skip;                     /* bytes of other data behind a whole run of this dimension */
    } dimension[VIEW_DIMENSIONS];
};

/* A position of the walk. */
struct place {
    int64_t index[VIEW_DIMENSIONS];
    int64_t row, column, byte;
};

/* The view of a layout for a shape; its pitch may be 0.  false for a layout that nobody has stated here yet. */
bool view_make(const bsm_scale_layout *layout, int64_t rows, int64_t columns, struct view *view);

/* The first place is all zeros; false when the walk has seen every scale and padding once. */
bool view_next(const struct view *view, struct place *place);

/* The place of a byte, without walking; false when the byte belongs to no scale (gaps between rows, elements). */
bool view_find(const struct view *view, int64_t byte, struct place *place);

#endif
