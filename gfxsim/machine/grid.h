/* One launch under one schedule. */
#ifndef GFXSIM_MACHINE_GRID_H
#define GFXSIM_MACHINE_GRID_H

#include "machine.h"

bool grid_run(struct machine *m, const struct launch *l, const struct machine_options *options, struct report *report);

#endif
