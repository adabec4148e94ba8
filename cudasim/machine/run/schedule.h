/* Which warp of a cluster runs next. */
#ifndef CUDASIM_MACHINE_RUN_SCHEDULE_H
#define CUDASIM_MACHINE_RUN_SCHEDULE_H

#include "machine/core/machine.h"

/* Runs a cluster for about `steps`; true when it has ended (or the grid stops). */
bool cluster_run(struct cluster *cluster, uint64_t steps);

#endif
