#include "naive_orders.h"

#include <stdlib.h>

struct unit_rows naive_unit_rows(const bsm_matrix *m, int64_t batch, int64_t first, int64_t count, bsm_format other)
{
    const bsm_format_info *info = bsm_format_get((int)m->format);
    double *elements = malloc((size_t)(count * m->columns + 1) * sizeof *elements);
    double *scales = malloc((size_t)(count * m->columns + 1) * sizeof *scales);
    uint8_t scale = 0;
    for (int64_t r = 0; r < count; r++)
        for (int64_t k = 0; k < m->columns; k++) {
            uint32_t code = 0;
            bsm_matrix_get_code(m, batch, first + r, k, &code);
            if (info->block != 0 && k % info->block == 0)
                bsm_matrix_get_scale(m, batch, first + r, k / info->block, &scale);
            elements[r * m->columns + k] = naive_element(info->element, code);
            scales[r * m->columns + k] = info->block != 0 ? naive_scale(info->scale, scale) : 1;
        }
    const struct unit_rows rows =
        unit_rows_make(m->format, count, m->columns, elements, scales, other == BSM_FORMAT_BF16);
    free(elements), free(scales);
    return rows;
}

float naive_sum_in(enum unit_order order, const bsm_matrix *a, int64_t a_batch, int64_t row, const bsm_matrix *b,
                   int64_t b_batch, int64_t column)
{
    if (order == UNIT_NONE) return naive_sum(a, a_batch, row, b, b_batch, column);
    struct unit_rows x = naive_unit_rows(a, a_batch, row, 1, b->format),
                     y = naive_unit_rows(b, b_batch, column, 1, a->format);
    const float sum = unit_falls_back(&x, 0, &y, 0) ? naive_sum(a, a_batch, row, b, b_batch, column)
                                                    : unit_sum(order, &x, 0, &y, 0);
    unit_rows_free(&x), unit_rows_free(&y);
    return sum;
}
