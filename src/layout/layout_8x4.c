/* Packed 32-byte blocks of 8 rows and 4 columns: the decode kernels of TensorRT-LLM, which waste less padding at small
 * M. */
#include "layouts.h"

static int64_t offset(const bsm_scale_layout *layout, int64_t rows, int64_t columns, int64_t row, int64_t column)
{
    (void)layout, (void)rows;
    return ((row / 8) * bsmi_ceil_div(columns, 4) + column / 4) * 32 + (row % 8) * 4 + column % 4;
}

const struct bsmi_layout bsmi_layout_8x4 = {
    .name = "8x4",
    .about = "packed 32-byte blocks of 8 rows x 4 columns: small-M decode kernels of TensorRT-LLM and FlashInfer",
    .formula = "((r/8)*ceil(S/4) + s/4)*32 + (r%8)*4 + s%4",
    .pad_rows = 8, .pad_columns = 4,
    .offset = offset,
};
