/* Who watches the steps of a grid: trace.c and profile.c.  Where nobody does, the loop over steps has nothing of it
 * (warp.c). */
#ifndef CUDASIM_MACHINE_PROFILE_WATCH_H
#define CUDASIM_MACHINE_PROFILE_WATCH_H

#include "machine/core/operation.h"

/* ---- for the machine ---- */

bool watch_open(struct grid *grid);
void watch_close(struct grid *grid);
bool watch_open_cluster(struct cluster *c);
void watch_close_cluster(struct cluster *c);
/* Whether lines must come in one order: one host thread runs the grid. */
bool watch_in_order(const struct grid *grid);
/* Around an instruction; before: the registers are those that it will read. */
void watch_before(struct warp *w, const struct insn *in, uint32_t lanes);
void watch_after(struct warp *w, const struct insn *in, uint32_t lanes, trap t);
void watch_started(const struct agent_operation *operation);
void watch_completed(const struct agent_operation *operation);

/* ---- for engines: an operation moves bytes (profile.c); nothing where nobody watches ---- */

void watch_moved(const struct agent_operation *operation, enum moved what, uint64_t bytes);

#endif
