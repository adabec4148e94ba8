/* naive_sum in whichever order of sums a kernel has. */
#ifndef NAIVE_ORDERS_H
#define NAIVE_ORDERS_H

#include "naive.h"
#include "unit_sums.h"

/* Rows [first, first + count) of one matrix; other: the format that they are multiplied by. */
struct unit_rows naive_unit_rows(const bsm_matrix *m, int64_t batch, int64_t first, int64_t count, bsm_format other);

/* S as naive_sum gives it, in the order of a unit. */
float naive_sum_in(enum unit_order order, const bsm_matrix *a, int64_t a_batch, int64_t row, const bsm_matrix *b,
                   int64_t b_batch, int64_t column);

#endif
