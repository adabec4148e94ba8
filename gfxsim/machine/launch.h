/* Launches: a code object into memory, a grid's workgroups on host threads, the same launch under several schedules. */
#ifndef GFXSIM_MACHINE_LAUNCH_H
#define GFXSIM_MACHINE_LAUNCH_H

#include "machine.h"

struct machine_options machine_default_options(void);
bool machine_open(struct machine *m, const struct machine_options *options);
void machine_close(struct machine *m);

bool program_open(struct program *p, struct machine *m, const struct code_object *o);
void program_close(struct program *p, struct machine *m);

/* Runs it.  False: *report says what went wrong. */
bool launch_run(struct machine *m, const struct launch *l, struct report *report);

#endif
