/* Issuing a tcgen05.mma (PTX ISA 9.7.16.10). */
#ifndef CUDASIM_MACHINE_MMA_TCGEN05_MMA_H
#define CUDASIM_MACHINE_MMA_TCGEN05_MMA_H

#include "tcgen05_product.h"

/* What the lane's thread issues, checked, and under way. */
trap tcgen05_issue(struct warp *w, const struct insn *in, uint32_t lane, const struct tcgen05_instruction *instruction);

#endif
