/* The report of a cluster in which nothing can go on. */
#ifndef CUDASIM_MACHINE_RUN_DEADLOCK_H
#define CUDASIM_MACHINE_RUN_DEADLOCK_H

#include "machine/core/machine.h"

void report_deadlock(struct cluster *cluster);

#endif
