/* Memory that kernels reach: allocations with exact ends in one reserved range of addresses, each given out once, so
 * that what has been freed, and what lies between, is noticed.  Addresses are the host's. */
#ifndef GFXSIM_MACHINE_MEMORY_H
#define GFXSIM_MACHINE_MEMORY_H

#include "machine.h"

bool memory_open(struct memory *m);
void memory_close(struct memory *m);
/* 0 if there is none; filled with a pattern that is NaN in every format. */
uint64_t memory_allocate(struct memory *m, uint64_t bytes, enum allocation_kind kind);
bool memory_free(struct memory *m, uint64_t base);
/* The allocation that has all of these bytes; NULL: none. */
const struct allocation *memory_find(const struct memory *m, uint64_t address, uint64_t bytes);
/* The last allocation that begins at or below the address, for sentences. */
const struct allocation *memory_below(const struct memory *m, uint64_t address);

#endif
