/* Tensor maps as instructions see them. */
#ifndef CUDASIM_INSTRUCTIONS_ASYNC_TENSORMAP_H
#define CUDASIM_INSTRUCTIONS_ASYNC_TENSORMAP_H

#include "machine/async/tma.h"

/* Reads the map at a generic address through the tensormap proxy: it must lie in .param, .const or .global, have been
 * encoded, be legal on this device, and not have changed without a fence.proxy.tensormap. */
trap tensormap_fetch(struct warp *w, const struct insn *in, uint32_t lane, uint64_t address,
                     struct tensor_layout *layout);

#endif
