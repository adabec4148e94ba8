/* gfx950, scaled MFMA with non-K dimension 16: 256-byte blocks of 32 rows and 8 columns, in which one lane's four bytes
 * are two row halves of two column halves. */
#include "layouts.h"

int64_t bsmi_cdna4_16_offset(const bsm_scale_layout *layout, int64_t rows, int64_t columns, int64_t row, int64_t column)
{
    (void)layout, (void)rows;
    const int64_t block = (row / 32) * bsmi_ceil_div(columns, 8) + column / 8;
    return block * 256 + (column % 4) * 64 + (row % 16) * 4 + column % 8 / 4 * 2 + row % 32 / 16;
}

const struct bsmi_layout bsmi_layout_cdna4_16 = {
    .name = "cdna4_16",
    .about = "gfx950, MFMA with non-K dimension 16: 256-byte blocks of 32 rows x 8 columns (Triton)",
    .formula = "((r/32)*ceil(S/8) + s/8)*256 + (s%4)*64 + (r%16)*4 + ((s%8)/4)*2 + (r%32)/16",
    .pad_rows = 32, .pad_columns = 8,
    .offset = bsmi_cdna4_16_offset,
};
