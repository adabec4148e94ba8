/* Prepacked weights: all panels of B of a kernel, made once for many products, behind a header that says which kernel
 * and which B they are of (docs/design/prepacked.md has the bytes). */
#ifndef BSMI_PREPACKED_H
#define BSMI_PREPACKED_H

#include "product/product.h"
#include "table.h"
#include "tile.h"

/* Bytes for B of this product; 0 if the kernel reads B as it is stored, or if they cannot be counted. */
size_t bsmi_prepacked_bytes(const struct bsmi_kernel *kernel, const struct bsmi_product *product);

/* Packs b, the product's B, into that many bytes, aligned to 64. */
void bsmi_prepacked_make(const struct bsmi_kernel *kernel, const struct bsmi_product *product,
                         const struct bsmi_operand *b, int threads, void *prepacked);

/* Fails unless product->b_panels is NULL or was made of a B of this shape and format. */
bsm_status bsmi_prepacked_check(const struct bsmi_product *product);

/* The first panel, and the bytes of a matrix of B; NULL if there are none, or those of another kernel. */
const unsigned char *bsmi_prepacked_for(const struct bsmi_kernel *kernel, const struct bsmi_product *product,
                                        size_t *matrix_bytes);

#endif
