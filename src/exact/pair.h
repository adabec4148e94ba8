/* How the products of two operands are summed: decided once for a pair of formats. */
#ifndef BSMI_EXACT_PAIR_H
#define BSMI_EXACT_PAIR_H

#include "operand.h"

enum bsmi_sum_kind {
    BSMI_SUM_32,                          /* 16-bit integers, an exact block summed in 32 bits */
    BSMI_SUM_64,                          /* 64-bit integers, an exact block summed in 64 bits */
    BSMI_SUM_128,                         /* 64-bit integers, an exact block summed in 128 bits */
    BSMI_SUM_FLOATS                       /* one term per product */
};

struct bsmi_exact_pair {
    struct bsmi_exact_operand a, b;
    enum bsmi_sum_kind sum_kind;
    int exact_block;                              /* elements that share both scales */
    bool narrow;                          /* terms have at most BSMI_NARROW_BITS bits */
    int limbs, lowest;                    /* of an accumulator */
};

void bsmi_exact_pair_make(const struct bsmi_matrix *a, const struct bsmi_matrix *b, bool magnitude,
                          struct bsmi_exact_pair *pair);

/* Adds the products of the first `count` elements of slot i of a and slot j of b, all finite, to an accumulator: at
 * most BSMI_EXACT_CHUNK terms. */
void bsmi_exact_add(const struct bsmi_exact_pair *pair, const struct bsmi_exact_rows *a, int i,
                    const struct bsmi_exact_rows *b, int j, int count, int64_t *limbs);

#endif
