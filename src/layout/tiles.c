/* Contiguous tiles [rows/tile_rows, columns/tile_columns, tile_rows, tile_columns], each row-major. */
#include "layouts.h"

static int64_t offset(const bsm_scale_layout *layout, int64_t rows, int64_t columns, int64_t row, int64_t column)
{
    (void)rows;
    const int64_t height = layout->tile_rows, width = layout->tile_columns;
    const int64_t tile = (row / height) * bsmi_ceil_div(columns, width) + column / width;
    return tile * height * width + (row % height) * width + column % width;
}

const struct bsmi_layout bsmi_layout_tiles = {
    .name = "tiles",
    .about = "contiguous row-major tiles of TR rows x TC columns, tiles in row-major order (written tiles:TRxTC)",
    .formula = "((r/TR)*ceil(S/TC) + s/TC)*TR*TC + (r%TR)*TC + s%TC",
    .offset = offset,
};
