/* Functions that a module declares and the device provides: vprintf, __assertfail. */
#ifndef CUDASIM_INSTRUCTIONS_BUILTIN_H
#define CUDASIM_INSTRUCTIONS_BUILTIN_H

#include "machine/machine.h"

trap builtin_call(struct warp *w, const struct insn *in, uint32_t lanes, const struct function *f);

#endif
