/* What instructions on LDS share (lds_access.c). */
#ifndef GFXSIM_INSTRUCTIONS_LDS_ACCESS_H
#define GFXSIM_INSTRUCTIONS_LDS_ACCESS_H

#include "machine/machine.h"

/* Fills `address` with those of the lanes; false after a report. */
bool lds_addresses(struct wave *w, const struct insn *in, const struct operand *o, uint32_t address[LANES]);
/* Alignment, bounds and races of all lanes, and bank conflicts; false after a report. */
bool lds_touch(struct wave *w, const struct insn *in, const uint32_t address[LANES], uint32_t offset, uint32_t bytes,
               bool writes, uint32_t serial);
/* A lane's bytes into the event's data, from `dword` on, with what of them is defined. */
void lds_take(const struct lds *l, struct event *e, uint32_t lane, uint32_t at, uint32_t bytes, uint32_t dword);
/* Bytes of a lane's registers into LDS, from byte `skipped` of the row on. */
void lds_put(struct wave *w, uint32_t row, uint32_t lane, uint32_t at, uint32_t bytes, uint32_t skipped);

#endif
