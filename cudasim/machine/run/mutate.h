/* Mutations: a module with one synchronising instruction taken away, to learn whether anything notices. */
#ifndef CUDASIM_MACHINE_RUN_MUTATE_H
#define CUDASIM_MACHINE_RUN_MUTATE_H

#include "ptx/ptx.h"

/* Whether the instruction is a fence, a wait, an arrive, a commit, an expect_tx or a barrier.  Barriers that reduce are
 * not: nothing neutral can stand for their result. */
bool mutation_possible(const struct module *module, uint32_t pc);
/* The instruction does nothing from now on: its predicates become true, its other results 0. */
void mutation_apply(struct module *module, uint32_t pc);
/* Whether a thread came to an instruction that was taken away, in this process. */
bool mutation_reached(void);

/* "FUNCTION:LINE", or "FUNCTION:LINE.N" for the Nth instruction of a line that has several. */
char *mutation_name(const struct module *module, uint32_t pc);   /* malloc'ed; NULL: no memory */
bool mutation_find(const struct module *module, const char *name, uint32_t *pc);

#endif
