/* Reductions by TMA, of plain bytes (the type is the instruction's) and of tensors (the type is the map's). */
#ifndef CUDASIM_INSTRUCTIONS_ASYNC_BULK_REDUCTION_H
#define CUDASIM_INSTRUCTIONS_ASYNC_BULK_REDUCTION_H

#include "machine/async/tma.h"

/* insn.detail: BULK_COPY, or 1 + operation << 8 | type. */
enum { BULK_COPY = 0 };

/* What a reduction of this operation and type is, to be kept in insn.detail or a plan's kind. */
uint64_t bulk_reduction_kind(uint32_t operation, enum ptx_type type);
void bulk_prepare_reduction(struct insn *in);
/* NULL for a copy. */
tma_combine *bulk_combine_of(const struct insn *in, uint64_t *kind);
tma_combine bulk_combine;

#endif
