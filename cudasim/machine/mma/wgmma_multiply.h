/* The arithmetic of a warpgroup's product. */
#ifndef CUDASIM_MACHINE_MMA_WGMMA_MULTIPLY_H
#define CUDASIM_MACHINE_MMA_WGMMA_MULTIPLY_H

#include "wgmma_product.h"

struct wgmma_workspace;                   /* wgmma_multiply.c */
struct wgmma_workspace *wgmma_workspace(void);
/* D = A * B (+ D), from the warps' registers and the CTA's shared memory into the warps' registers. */
void wgmma_multiply(const struct wgmma_product *product, struct wgmma_workspace *workspace);
/* Where a sparse row's element stands: its index in k, or -1 where the metadata are illegal. */
int wgmma_sparse_index(const struct wgmma_form *form, const uint32_t metadata[LANES], uint32_t row, uint32_t element);

#endif
