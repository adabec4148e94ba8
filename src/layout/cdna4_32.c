/* gfx950, scaled MFMA with non-K dimension 32: 256-byte blocks of 32 rows and 8 columns, in which one lane's four bytes
 * are every other column. */
#include "layouts.h"

static int64_t offset(const bsm_scale_layout *layout, int64_t rows, int64_t columns, int64_t row, int64_t column)
{
    (void)layout, (void)rows;
    const int64_t block = (row / 32) * bsmi_ceil_div(columns, 8) + column / 8;
    return block * 256 + (column % 2) * 128 + (row % 32) * 4 + column % 8 / 2;
}

const struct bsmi_layout bsmi_layout_cdna4_32 = {
    .name = "cdna4_32",
    .about = "gfx950, MFMA with non-K dimension 32: 256-byte blocks of 32 rows x 8 columns (Triton)",
    .formula = "((r/32)*ceil(S/8) + s/8)*256 + (s%2)*128 + (r%32)*4 + (s%8)/2",
    .pad_rows = 32, .pad_columns = 8,
    .offset = offset,
};
