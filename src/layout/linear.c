/* Row-major, any pitch: what every checkpoint stores. */
#include "layouts.h"

static int64_t offset(const bsm_scale_layout *layout, int64_t rows, int64_t columns, int64_t row, int64_t column)
{
    (void)rows, (void)columns;
    return row * layout->pitch + column;
}

const struct bsmi_layout bsmi_layout_linear = {
    .name = "linear",
    .about = "row-major, any pitch: what checkpoints store",
    .formula = "r*pitch + s, where pitch 0 is S",
    .pad_rows = 1, .pad_columns = 1, .row_block_bytes = 1,
    .offset = offset,
};
