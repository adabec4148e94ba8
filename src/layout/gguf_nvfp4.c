/* Inside GGUF blocks of type 40: four scale bytes, then 32 bytes of nibbles for 64 elements. */
#include "layouts.h"

static int64_t offset(const bsm_scale_layout *layout, int64_t rows, int64_t columns, int64_t row, int64_t column)
{
    (void)rows, (void)columns;
    return row * layout->pitch + column / 4 * 36 + column % 4;
}

const struct bsmi_layout bsmi_layout_gguf_nvfp4 = {
    .name = "gguf_nvfp4",
    .about = "inside GGUF blocks of type 40: 36 bytes per 64 elements, four scales first",
    .formula = "r*pitch + (s/4)*36 + s%4, where pitch 0 is ceil(S/4)*36",
    .pad_rows = 1, .pad_columns = 4, .row_block_bytes = 36,
    .offset = offset,
};
