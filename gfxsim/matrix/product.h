/* One matrix product of a wave: D = C + A B, with a scale for each block of 32 along K. */
#ifndef GFXSIM_MATRIX_PRODUCT_H
#define GFXSIM_MATRIX_PRODUCT_H

#include "elements.h"
#include "machine/options.h"

enum { MOST_DIM = 32, MOST_K = 128, BLOCK = 32 };

struct operand_matrix {
    enum element element;
    uint16_t code[MOST_DIM][MOST_K];
    uint8_t scale[MOST_DIM][MOST_K / BLOCK];              /* e8m0; used where the product is scaled */
};

struct product {
    int dim, k;
    bool scaled;
    struct operand_matrix a, b;                           /* rows of A; columns of B */
    float c[MOST_DIM][MOST_DIM], d[MOST_DIM][MOST_DIM];
};

void product_run(struct product *p, enum rounding rounding);

#endif
