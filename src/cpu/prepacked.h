/* B packed once, for many products: all panels of a kernel, behind a header that says whose they are (docs/cpu.md). */
#ifndef BSMI_PREPACKED_H
#define BSMI_PREPACKED_H

#include "multiply.h"

/* Bytes for B of this product; 0 if the kernel reads B as it is stored, or if they cannot be counted. */
size_t bsmi_prepacked_bytes(const struct bsmi_kernel *kernel, const struct bsmi_product *product);

/* Packs the product's B, in that many bytes, aligned to 64. */
void bsmi_prepacked_make(const struct bsmi_cpu_multiply *multiply, const struct bsmi_product *product, void *panels);

/* Fails unless product->b_panels is NULL or was made of a B of this shape and format. */
bsm_status bsmi_prepacked_check(const struct bsmi_product *product);

/* The first panel, and the bytes of a matrix of B; NULL if there are none, or those of another kernel. */
const unsigned char *bsmi_prepacked_for(const struct bsmi_kernel *kernel, const struct bsmi_product *product, size_t *matrix_bytes);

#endif
