/* Accesses of a warp to memory. */
#ifndef CUDASIM_MACHINE_MEMORY_ACCESS_H
#define CUDASIM_MACHINE_MEMORY_ACCESS_H

#include "machine/core/machine.h"

/* address + offset of an OPERAND_ADDRESS, per lane. */
void address_lanes(struct warp *w, const struct operand *o, uint32_t lanes, uint64_t *address);
/* Where an address of a variable points, for this warp's running frame (in the variable's own space). */
uint64_t variable_address(const struct warp *w, const struct variable *v);
/* Checks bounds, alignment and shadow state, and finds the host bytes. */
trap memory_access(struct warp *w, const struct insn *in, uint32_t lanes, struct access *a);
/* The CTA of a shared address and the offset in it; NULL: no such CTA. */
struct cta *shared_target(struct warp *w, uint32_t address, uint32_t *offset);

#endif
