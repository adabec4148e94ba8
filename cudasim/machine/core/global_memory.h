/* Global memory: its allocations, by address. */
#ifndef CUDASIM_MACHINE_CORE_GLOBAL_MEMORY_H
#define CUDASIM_MACHINE_CORE_GLOBAL_MEMORY_H

#include "machine.h"

void global_open(struct global_memory *memory, uint64_t limit);
void global_close(struct global_memory *memory);
/* 0: no memory. */
uint64_t global_allocate(struct global_memory *memory, uint64_t bytes, uint64_t alignment, const char *name);
/* Memory that has the same address on the host.  0: no memory. */
uint64_t global_map(struct global_memory *memory, uint64_t bytes, enum allocation_kind kind);
/* Addresses without memory; and memory of somebody's at such addresses.  0, false: no room. */
uint64_t global_reserve(struct global_memory *memory, uint64_t bytes, uint64_t alignment);
bool global_insert(struct global_memory *memory, const struct allocation *allocation);
bool global_release(struct global_memory *memory, uint64_t base);
const struct allocation *global_find(const struct global_memory *memory, uint64_t address);
/* Host pointer of bytes [address, address+bytes), or NULL. */
uint8_t *global_host(const struct global_memory *memory, uint64_t address, uint64_t bytes);
/* The last allocation that begins at the address or below it, whether or not it reaches so far; NULL: there is none. */
const struct allocation *global_last_below(const struct global_memory *memory, uint64_t address);

#endif
