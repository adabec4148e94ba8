/* Products on the CPU: how a product is cut into tiles, and running it. */
#ifndef BSMI_MULTIPLY_H
#define BSMI_MULTIPLY_H

#include "table.h"
#include "product/product.h"

/* Made once for a product; a product that differs in pointers, group_rows and group_columns alone can run with
 * it. */
struct bsmi_cpu_multiply {
    const struct bsmi_kernel *kernel;
    int threads;
    int64_t tile_rows, tile_columns;      /* of S; columns are counted before gating */
    size_t shared_bytes, thread_bytes, workspace_bytes;
    int64_t sums_columns, sums_pitch, sums_apart;    /* tile.h */
    float a_values[256], b_values[256];   /* of the codes of elements of at most 8 bits */
    float a_scales[256], b_scales[256];   /* of the codes of scales */
};

/* Fails with BSM_EOVERFLOW if the workspace cannot be counted. */
bsm_status bsmi_cpu_prepare(const struct bsmi_product *product, const struct bsmi_kernel *kernel, int threads,
                            struct bsmi_cpu_multiply *multiply);

/* product was checked, its data too.  workspace: workspace_bytes, aligned to 64 bytes. */
void bsmi_cpu_run(const struct bsmi_cpu_multiply *multiply, const struct bsmi_product *product, void *workspace);

/* Writes the product's B as bsmi_prepacked_for reads it (prepacked.h), in bsmi_prepacked_bytes bytes, aligned to 64. */
void bsmi_cpu_prepack(const struct bsmi_cpu_multiply *multiply, const struct bsmi_product *product, void *prepacked);

#endif
