/* Functions that a module declares and the device provides: vprintf, __assertfail. */
#ifndef CUDASIM_INSTRUCTIONS_THREADS_BUILTIN_H
#define CUDASIM_INSTRUCTIONS_THREADS_BUILTIN_H

#include "machine/core/machine.h"

trap builtin_call(struct warp *w, const struct insn *in, uint32_t lanes, const struct function *f);

#endif
