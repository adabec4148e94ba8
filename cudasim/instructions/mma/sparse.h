/* The metadata of mma.sp: which columns the elements of a sparse A have (see mma_sparse.c). */
#ifndef CUDASIM_INSTRUCTIONS_MMA_SPARSE_H
#define CUDASIM_INSTRUCTIONS_MMA_SPARSE_H

#include "fragment.h"

enum { SPARSE_MOST_K = 128 };

struct sparse_form {
    uint32_t length; /* K */
    uint32_t bits;   /* of an element, or of the byte in which it lies */
    uint32_t selector;
    bool single; /* one lane of the group has all metadata */
    bool ordered;
};

/* column[row][e] of the elements that A has; operands of the instruction: the metadata, the selector behind them. */
trap sparse_columns(struct warp *w, const struct insn *in, const struct sparse_form *f, int metadata,
                    uint8_t column[FRAGMENT_ROWS][SPARSE_MOST_K / 2]);

/* Fills length, bits, selector and single; NULL, or why the selector is refused. */
const char *sparse_prepare(struct sparse_form *f, const struct insn *in, uint32_t bits, int selector);

#endif
