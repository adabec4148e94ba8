/* A warp: groups of lanes, branches, calls. */
#ifndef CUDASIM_MACHINE_RUN_WARP_H
#define CUDASIM_MACHINE_RUN_WARP_H

#include "machine/core/machine.h"

bool warp_open(struct warp *w, struct cta *cta, uint32_t index, uint32_t lanes);
void warp_close(struct warp *w);
/* Runs the warp for up to `steps` instructions. */
trap warp_run(struct warp *w, uint32_t steps);
bool warp_can_run(const struct warp *w);
/* Picks a group that can run, or false. */
bool warp_choose(struct warp *w);
/* The lanes go to target, the others of the group to the next instruction. */
trap warp_branch(struct warp *w, uint32_t lanes, uint32_t target);
/* Each lane to a place of its own: target[lane]. */
trap warp_branch_each(struct warp *w, uint32_t lanes, const uint32_t *target);
/* The lanes stay at this instruction, as a group of their own. */
void warp_leave_behind(struct warp *w, uint32_t lanes);
trap warp_call(struct warp *w, const struct insn *in, uint32_t lanes, const struct function *f);
trap warp_return(struct warp *w, uint32_t lanes);
trap warp_exit(struct warp *w, uint32_t lanes);

#endif
