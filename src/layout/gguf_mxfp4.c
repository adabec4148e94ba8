/* Inside GGUF blocks of type 39: one scale byte, then 16 bytes of nibbles for 32 elements. */
#include "layouts.h"

static int64_t offset(const bsm_scale_layout *layout, int64_t rows, int64_t columns, int64_t row, int64_t column)
{
    (void)rows, (void)columns;
    return row * layout->pitch + column * 17;
}

const struct bsmi_layout bsmi_layout_gguf_mxfp4 = {
    .name = "gguf_mxfp4",
    .about = "inside GGUF blocks of type 39: 17 bytes per 32 elements, scale first",
    .formula = "r*pitch + s*17, where pitch 0 is S*17",
    .pad_rows = 1, .pad_columns = 1, .row_block_bytes = 17,
    .offset = offset,
};
