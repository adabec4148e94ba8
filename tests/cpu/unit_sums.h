/* Sums in the orders of matrix units (docs/guide/numerics.md), by a model of its own: exact doubles, rounded once.  It
 * shares nothing with the kernels, nor with the units in plain C (tests/cpu/units). */
#ifndef UNIT_SUMS_H
#define UNIT_SUMS_H

#include "blockscale.h"

enum unit_order {
    UNIT_NONE,                            /* the portable order */
    UNIT_AMX_BF16,
    UNIT_AVX512_BF16,
    UNIT_ARM_BF16,
    UNIT_ORDERS
};

/* The order that a plan says it has. */
enum unit_order unit_order_of_plan(const bsm_plan *plan);

/* The same of a product of `context`, which makes the plan. */
enum unit_order unit_order_of(bsm_context *context, const bsm_matmul *product);

/* Rows as a unit takes them: bf16 numbers, two for each fp16, times a power of two for the row. */
struct unit_rows {
    int64_t count, depth, padded;         /* padded: depth, up to a whole slice of 32 */
    int terms;
    float *numbers;                       /* [row][term][padded] */
    int *exponents;
    bool *fallback;                       /* bf16 does not hold the row: its sums have the portable order */
};

/* elements and scales: rows x columns of decoded numbers, scales 1 where there are none.  beside_bf16: the other
 * operand is bf16, whose numbers may be of any size. */
struct unit_rows unit_rows_make(bsm_format format, int64_t rows, int64_t columns, const double *elements,
                                const double *scales, bool beside_bf16);
void unit_rows_free(struct unit_rows *rows);

static inline bool unit_falls_back(const struct unit_rows *a, int64_t i, const struct unit_rows *b, int64_t j)
{
    return a->fallback[i] || b->fallback[j];
}

/* The n of gamma_n in a sum over K. */
int64_t unit_roundings(enum unit_order order, bsm_format a, bsm_format b, int64_t k);

/* S of rows that do not fall back. */
float unit_sum(enum unit_order order, const struct unit_rows *a, int64_t i, const struct unit_rows *b, int64_t j);

#endif
