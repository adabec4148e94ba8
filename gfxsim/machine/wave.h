/* Waves: their first state, and running to the next barrier. */
#ifndef GFXSIM_MACHINE_WAVE_H
#define GFXSIM_MACHINE_WAVE_H

#include "machine.h"

/* As a kernel begins (LLVM, "Initial Kernel Execution State"). */
void wave_start(struct wave *w, struct workgroup *g, uint32_t index);
/* Runs to the next s_barrier, the end or a fault. */
trap wave_run(struct wave *w);

#endif
