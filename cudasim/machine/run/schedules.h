/* A launch under one schedule or under many. */
#ifndef CUDASIM_MACHINE_RUN_SCHEDULES_H
#define CUDASIM_MACHINE_RUN_SCHEDULES_H

#include "machine/core/machine.h"

/* Runs grids to their end, as grids_run does (launch.h), under options.schedules schedules if those are more than one:
 * always-earliest, always-latest, then random ones.  Every one begins with the same memory and must leave the same
 * bytes.  Returns false and fills *report if it faulted. */
bool machine_run_all(struct machine *machine, const struct launch *launches, uint32_t count, struct report *report);
/* One grid. */
bool machine_run(struct machine *machine, const struct launch *launch, struct report *report);
const char *schedule_name(enum schedule schedule);

#endif
