/* One scale layout: its row in the table. */
#ifndef BSMI_LAYOUT_ROW_H
#define BSMI_LAYOUT_ROW_H

#include "blockscale/scale_layout.h"

/* The layout that an offset function sees was checked, and its pitch filled in. */
typedef int64_t bsmi_scale_offset(const bsm_scale_layout *layout, int64_t rows, int64_t columns, int64_t row,
                                  int64_t column);

struct bsmi_layout {
    const char *name;                     /* "128x4" */
    const char *about;                    /* one line for a person */
    const char *formula;                  /* the offset of (r, s) in words, for R rows and S columns; / rounds down */
    int64_t pad_rows, pad_columns;        /* rows and columns are padded to multiples of these; tiles: 0, the layout's
                                             tile */
    int64_t row_block_bytes;              /* > 0: rows follow one another at a pitch, and pad_columns columns of a row
                                             take
                                             this many bytes; 0: no pitch, the buffer is padded rows x padded columns
                                             bytes */
    bsmi_scale_offset *offset;
};

#endif
