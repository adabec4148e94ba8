/* Scale layouts: any kind, parameters and shape.  What has a size can be addressed and converted there and back. */
#include "input.h"

static void convert(const bsm_scales *from, const bsm_scale_layout *layout)
{
    int64_t bytes;
    if (bsm_scale_bytes(layout, from->rows, from->columns, &bytes) != BSM_OK || bytes > 65536) return;
    bsm_scales to = { buffer_of(bytes, 7), from->rows, from->columns, *layout };
    if (bsm_scales_convert(from, &to) == BSM_OK) {
        for (int64_t row = 0; bytes > 0 && row < from->rows; row++)
            for (int64_t column = 0; column < from->columns; column++) {
                int64_t a, b;
                REQUIRE(bsm_scale_offset(&from->layout, from->rows, from->columns, row, column, &a) == BSM_OK);
                REQUIRE(bsm_scale_offset(layout, from->rows, from->columns, row, column, &b) == BSM_OK && b >= 0
                        && b < bytes);
                REQUIRE(((unsigned char *)from->data)[a] == ((unsigned char *)to.data)[b]);
            }
        REQUIRE(bsm_scales_convert(&to, &to) == BSM_EINVAL);
    }
    free(to.data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = { data, size };
    bsm_scale_layout layout = take_layout(&in);
    if (pick(&in, 4) == 0) {                        /* layouts by name */
        char text[80] = { 0 };
        memcpy(text, in.data, in.size < sizeof text - 1 ? in.size : sizeof text - 1);
        if (bsm_scale_layout_parse(text, &layout) != BSM_OK) return 0;
        REQUIRE(bsm_layout_name((int)layout.kind) != NULL);
    }
    const int64_t rows = take_size(&in, 150), columns = take_size(&in, 30);
    int64_t bytes, padded_rows, padded_columns, offset;
    const bsm_status status = bsm_scale_bytes(&layout, rows, columns, &bytes);
    REQUIRE((bsm_scale_padded(&layout, rows, columns, &padded_rows, &padded_columns) == BSM_OK) || status != BSM_OK);
    if (status != BSM_OK) return 0;
    REQUIRE(bytes >= 0 && padded_rows >= rows && padded_columns >= columns);
    const int64_t row = (int64_t)take(&in, 8), column = (int64_t)take(&in, 8);
    if (bytes > 0 && bsm_scale_offset(&layout, rows, columns, row, column, &offset) == BSM_OK)
        REQUIRE(offset >= 0 && offset < bytes);
    if (bytes > 65536) return 0;
    const bsm_scales scales = { buffer_of(bytes, size), rows, columns, layout };
    const bsm_scale_layout other = take_layout(&in);
    convert(&scales, &other);
    free(scales.data);
    return 0;
}
