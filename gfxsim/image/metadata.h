/* The note with a code object's metadata: MessagePack. */
#ifndef GFXSIM_IMAGE_METADATA_H
#define GFXSIM_IMAGE_METADATA_H

#include "kernel.h"

#include <stdbool.h>

/* Fills in what the metadata says of the object's kernels.  False, with a sentence, for bytes that are none. */
bool metadata_read(struct code_object *o, const uint8_t *data, size_t bytes, char why[256]);

#endif
