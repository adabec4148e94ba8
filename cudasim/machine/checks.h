/* What is watched while a kernel runs.  memory.c, barriers and engines call these; each check is a file of its own. */
#ifndef CUDASIM_MACHINE_CHECKS_H
#define CUDASIM_MACHINE_CHECKS_H

#include "machine/machine.h"

/* A generic access to shared memory, after bounds and alignment: host[] is filled. */
trap checks_shared(struct warp *w, const struct insn *in, uint32_t lanes, const struct access *a);

/* Happens-before edges.  `object` names what is synchronised on (a barrier, an mbarrier, an atomic's address). */
void checks_release(struct warp *w, uint32_t lanes, uint64_t object);
void checks_acquire(struct warp *w, uint32_t lanes, uint64_t object);

bool shadow_open(struct shadow *shadow, uint32_t bytes);
void shadow_close(struct shadow *shadow);

#endif
