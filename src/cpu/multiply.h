/* Products on the CPU: how a product is cut into tiles, and running it. */
#ifndef BSMI_MULTIPLY_H
#define BSMI_MULTIPLY_H

#include "table.h"
#include "product/product.h"

/* Made once for a product; a product that differs in pointers and group_rows alone can run with it. */
struct bsmi_cpu_multiply {
    const struct bsmi_kernel *kernel;
    int threads;
    int64_t tile_rows, tile_columns;      /* of S; columns are counted before gating */
    size_t shared_bytes, thread_bytes, workspace_bytes;
    int64_t sums_pitch;
    float a_values[256], b_values[256];   /* of the codes of elements of at most 8 bits */
    float a_scales[256], b_scales[256];   /* of the codes of scales */
};

/* Fails with BSM_EOVERFLOW if the workspace cannot be counted. */
bsm_status bsmi_cpu_prepare(const struct bsmi_product *product, const struct bsmi_kernel *kernel, int threads,
                            struct bsmi_cpu_multiply *multiply);

/* product was checked, its data too.  workspace: workspace_bytes, aligned to 64 bytes. */
void bsmi_cpu_run(const struct bsmi_cpu_multiply *multiply, const struct bsmi_product *product, void *workspace);

/* prepacked.c: B packed once, for many products: all panels of a kernel, behind a header that says whose they are (docs/design/prepacked.md). */

/* Bytes for B of this product; 0 if the kernel reads B as it is stored, or if they cannot be counted. */
size_t bsmi_prepacked_bytes(const struct bsmi_kernel *kernel, const struct bsmi_product *product);

/* Packs the product's B, in that many bytes, aligned to 64. */
void bsmi_prepacked_make(const struct bsmi_cpu_multiply *multiply, const struct bsmi_product *product, void *panels);

/* Fails unless product->b_panels is NULL or was made of a B of this shape and format. */
bsm_status bsmi_prepacked_check(const struct bsmi_product *product);

/* The first panel, and the bytes of a matrix of B; NULL if there are none, or those of another kernel. */
const unsigned char *bsmi_prepacked_for(const struct bsmi_kernel *kernel, const struct bsmi_product *product, size_t *matrix_bytes);

#endif
