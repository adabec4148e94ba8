/* The report of a cluster in which nothing can go on. */
#ifndef CUDASIM_MACHINE_RUN_DEADLOCK_H
#define CUDASIM_MACHINE_RUN_DEADLOCK_H

#include "machine/core/machine.h"

void report_deadlock(struct cluster *cluster);
/* The cluster, or (of_grid) the grid with its clusters together, has taken more steps than the options allow. */
void report_steps(struct cluster *c, bool of_grid);

#endif
