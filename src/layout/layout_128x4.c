/* Packed 512-byte blocks of 128 rows and 4 columns: four rows that are 32 apart share 16 bytes, so that one warp's lane
 * reads the scales of its four rows at once.  The tensor core reads scales in this order (tcgen05.mma, cuBLASLt). */
#include "layouts.h"

static int64_t offset(const bsm_scale_layout *layout, int64_t rows, int64_t columns, int64_t row, int64_t column)
{
    (void)layout, (void)rows;
    const int64_t block = (row / 128) * bsmi_ceil_div(columns, 4) + column / 4;
    return block * 512 + (row % 32) * 16 + (row % 128) / 32 * 4 + column % 4;
}

const struct bsmi_layout bsmi_layout_128x4 = {
    .name = "128x4",
    .about = "packed 512-byte blocks of 128 rows x 4 columns, \"32_4_4\": cuBLASLt, CUTLASS, Transformer Engine, "
             "tcgen05",
    .formula = "((r/128)*ceil(S/4) + s/4)*512 + (r%32)*16 + ((r%128)/32)*4 + s%4",
    .pad_rows = 128, .pad_columns = 4,
    .offset = offset,
};
