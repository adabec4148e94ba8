/* Operands of a tcgen05.mma between the memories and the workspace, when the operation is done. */
#ifndef CUDASIM_MACHINE_MMA_TCGEN05_OPERANDS_H
#define CUDASIM_MACHINE_MMA_TCGEN05_OPERANDS_H

#include "tcgen05_product.h"

/* A, B, the scales, the metadata and (accumulates) D of one CTA's rows.  Reports scales that are not the same in the
 * four groups of lanes, and metadata that no row may have. */
trap product_fetch(const struct tcgen05_product *p, uint32_t cta, const struct tensor_operation *operation,
                   struct tcgen05_workspace *workspace);
void product_store(const struct tcgen05_product *p, uint32_t cta, const struct tcgen05_workspace *workspace);

#endif
