/* The arithmetic of one CTA's rows of a tcgen05.mma. */
#ifndef CUDASIM_MACHINE_MMA_TCGEN05_MULTIPLY_H
#define CUDASIM_MACHINE_MMA_TCGEN05_MULTIPLY_H

#include "tcgen05_product.h"

/* workspace->d += A * B, of what the workspace holds. */
void tcgen05_multiply(const struct tcgen05_product *p, enum tensor_mode mode, uint32_t sm,
                      struct tcgen05_workspace *workspace);

#endif
