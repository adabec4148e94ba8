/* DeepGEMM on sm_100: an int32 word holds four columns of one row, and words are column-major with rows padded to 4 (16
 * bytes, what TMA asks of a pitch). */
#include "layouts.h"

static int64_t offset(const bsm_scale_layout *layout, int64_t rows, int64_t columns, int64_t row, int64_t column)
{
    (void)layout, (void)columns;
    return ((column / 4) * bsmi_round_up(rows, 4) + row) * 4 + column % 4;
}

const struct bsmi_layout bsmi_layout_deepgemm = {
    .name = "deepgemm",
    .about = "little-endian int32 words of four columns, MN-major, rows padded to 4: DeepGEMM on sm_100",
    .formula = "((s/4)*4*ceil(R/4) + r)*4 + s%4",
    .pad_rows = 4, .pad_columns = 4,
    .offset = offset,
};
