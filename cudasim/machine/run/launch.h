/* Machines, the variables of a module on them, and one run of a grid. */
#ifndef CUDASIM_MACHINE_RUN_LAUNCH_H
#define CUDASIM_MACHINE_RUN_LAUNCH_H

#include "machine/core/machine.h"

void machine_open(struct machine *machine, const struct device_limits *device, const struct machine_options *options);
void machine_close(struct machine *machine);
struct machine_options machine_default_options(void);
/* Places a module's variables; false: no memory. */
bool image_open(struct image *image, struct machine *machine, const struct module *module);
void image_close(struct image *image, struct machine *machine);
/* Takes the next cluster that has not started, so that it never will: its coordinates.  False: all have. */
bool grid_cancel_cluster(struct grid *grid, uint32_t id[3]);
/* Runs grids once to their end, whatever options.schedules says.  Each but the first is a programmatic launch behind
 * the one before it: it may begin when all CTAs of that one have executed griddepcontrol.launch_dependents or ended.
 * Where options.overlap is not set, or somebody watches, one runs behind the other.  Returns false and fills *report if
 * one of them faulted. */
enum { MOST_TOGETHER = 16 };
bool grids_run(struct machine *machine, const struct launch *launches, uint32_t count, struct report *report);

#endif
