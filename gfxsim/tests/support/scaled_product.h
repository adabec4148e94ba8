/* Block-scaled products: random codes and scales, packed as kernels want them, and the product by its definition. */
#ifndef GFXSIM_TESTS_SCALED_PRODUCT_H
#define GFXSIM_TESTS_SCALED_PRODUCT_H

#include "matrix/elements.h"
#include "test.h"

struct side {
    enum element element;
    int rows, k;
    uint8_t *code;                        /* [rows][k] */
    uint8_t *scale;                       /* [rows][k / 32], e8m0 */
    double *value;                        /* [rows][k]: code times scale */
};

/* Codes without NaN and infinity; `exact`: so few and scales so near that a sum in fp32 is exact in any order. */
bool side_open(struct side *s, struct test *t, enum element element, int rows, int k, bool exact);
void side_close(struct side *s);
/* Packed along K, 4 bits with the low nibble first; or along the rows of the transposed matrix. */
uint8_t *side_packed(const struct side *s, bool transposed, size_t *bytes);
/* Scales with four of them in a dword of a lane: [rows/32][k/256][4][16][2][2]. */
uint8_t *side_shuffled_scales(const struct side *s, size_t *bytes);
/* The product's element, and the sum of magnitudes that bounds its rounding. */
double product_element(const struct side *a, const struct side *b, int m, int n, double *magnitudes);

#endif
