/* What a group of lanes waits for. */
#ifndef CUDASIM_MACHINE_CORE_WAIT_H
#define CUDASIM_MACHINE_CORE_WAIT_H

#include "machine.h"

/* For handlers: blocks the running group; what they return. */
trap warp_wait(struct warp *w, enum wait_kind kind, uint64_t object, uint64_t detail);
const char *wait_name(enum wait_kind kind);

#endif
