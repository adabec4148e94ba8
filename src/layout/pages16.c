/* Pages of 16 columns: a page holds all rows, 16 bytes apart, the least that a TMA box moves.  The last page is padded to 16
 * columns; rows are not padded. */
#include "layouts.h"

static int64_t offset(const bsm_scale_layout *layout, int64_t rows, int64_t columns, int64_t row, int64_t column)
{
    (void)layout, (void)columns;
    return (column / 16) * rows * 16 + row * 16 + column % 16;
}

const struct bsmi_layout bsmi_layout_pages16 = {
    .name = "pages16",
    .about = "pages of 16 columns, a page is all rows, rows 16 bytes apart: TMA loads on sm_120",
    .formula = "(s/16)*R*16 + r*16 + s%16",
    .pad_rows = 1, .pad_columns = 16,
    .offset = offset,
};
