/* One address space for the memories of several devices (unified addressing): no address means two things, and kernels
 * of one device reach what they were given access to of the others'. */
#ifndef CUDASIM_MACHINE_CORE_ADDRESS_SPACE_H
#define CUDASIM_MACHINE_CORE_ADDRESS_SPACE_H

#include "global_memory.h"

/* The memory, in which nothing is allocated yet, is one of the space's; or is one no longer, and nobody's peer. */
void space_enter(struct address_space *space, struct global_memory *memory, uint32_t device);
void space_leave(struct global_memory *memory);

/* Kernels of the first memory's machine reach what is allocated in the second.  add: no host memory; remove: it was no
 * peer. */
bool space_is_peer(const struct global_memory *memory, const struct global_memory *peer);
bool space_add_peer(struct global_memory *memory, const struct global_memory *peer);
bool space_remove_peer(struct global_memory *memory, const struct global_memory *peer);

/* The memory in which the address is allocated, whoever reaches it; NULL: none of the space. */
struct global_memory *space_owner(struct global_memory *memory, uint64_t address);
/* The memories of the space, the given one first; NULL behind the last. */
struct global_memory *space_next(struct global_memory *first, const struct global_memory *memory);

bool space_reaches(const struct global_memory *memory, const struct global_memory *owner, const struct allocation *a);
/* The allocation of the address, if kernels of the memory's machine reach it. */
const struct allocation *space_find(const struct global_memory *memory, uint64_t address);
uint8_t *space_host(const struct global_memory *memory, uint64_t address, uint64_t bytes);
static inline bool space_may_write(const struct global_memory *memory, const struct allocation *a)
{
    return !a->read_only && (a->read_only_devices == 0 || (a->read_only_devices >> memory->device & 1) == 0);
}
/* What a kernel does that writes where it may not. */
#define SPACE_READ_ONLY "writes %s at 0x%llx"
static inline const char *space_read_only(const struct allocation *a)
{
    return a->read_only ? "constant memory" : "memory that its device may only read (cuMemSetAccess)";
}

/* The rest of a sentence about an address that is allocated and not reached.  False: it is not allocated, or it is
 * reached. */
bool space_explain(const struct global_memory *memory, uint64_t address, char *text, size_t size);

#endif
