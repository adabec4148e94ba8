/* Scales from one layout into another, and the padding of a layout, a byte a thread. */
#include "functions.h"
#include "hip/params/kernels.h"
#include "numbers.h"

KERNEL(BSMI_HIP_THREADS) bsmi_convert_scales(struct bsmi_convert_scales_parameters p, uint32_t groups)
{
    const struct bsmi_device_layout *to = &p.to_layout;
    const int64_t repeat = p.repeat == 0 ? 1 : p.repeat, batch = p.batch == 0 ? 1 : p.batch;
    for (int64_t i = (int64_t)group_number() * BSMI_HIP_THREADS + thread_number();
         i < batch * to->padded_rows * to->padded_columns; i += (int64_t)groups * BSMI_HIP_THREADS) {
        const int64_t line = quotient(i, to->padded_columns), matrix = quotient(line, to->padded_rows),
                      row = line - matrix * to->padded_rows, column = i - line * to->padded_columns;
        unsigned char scale = 0;
        if (row < p.from_layout.rows && column < to->columns)
            scale = p.from[matrix * p.from_batch_bytes + scale_place(&p.from_layout, row, column >> (repeat - 1))];
        p.to[matrix * p.to_batch_bytes + scale_place(to, row, column)] = scale;
    }
}

/* Behind the columns of each row, then the rows behind the last. */
KERNEL(BSMI_HIP_THREADS) bsmi_clear_padding(struct bsmi_clear_padding_parameters p, uint32_t groups)
{
    const struct bsmi_device_layout *l = &p.layout;
    const int64_t behind = l->padded_columns - l->columns, first = l->rows * behind,
                  all = first + (l->padded_rows - l->rows) * l->padded_columns;
    for (int64_t i = (int64_t)group_number() * BSMI_HIP_THREADS + thread_number(); i < all * p.batch;
         i += (int64_t)groups * BSMI_HIP_THREADS) {
        const int64_t matrix = quotient(i, all), n = i - matrix * all;
        int64_t row, column;
        if (n < first) row = quotient(n, behind), column = l->columns + (n - row * behind);
        else {
            row = quotient(n - first, l->padded_columns);
            column = n - first - row * l->padded_columns;
            row += l->rows;
        }
        p.scales[matrix * p.batch_bytes + scale_place(l, row, column)] = 0;
    }
}
