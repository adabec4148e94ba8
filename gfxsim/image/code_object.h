/* Code objects: ELF files for amdgcn, their kernels' descriptors and metadata. */
#ifndef GFXSIM_IMAGE_CODE_OBJECT_H
#define GFXSIM_IMAGE_CODE_OBJECT_H

#include "kernel.h"

enum code_object_result { CODE_OBJECT_OK, CODE_OBJECT_INVALID, CODE_OBJECT_OTHER_GPU, CODE_OBJECT_NO_MEMORY };

/* `bytes`: 0 if it is not known, as hipModuleLoadData has it: then taken from the ELF header.  Says in `why` what is
 * wrong.  close frees what open has made, after a failure too. */
enum code_object_result code_object_open(struct code_object *o, const void *data, size_t bytes, char why[256]);
void code_object_close(struct code_object *o);
const struct kernel *code_object_kernel(const struct code_object *o, const char *name);

#endif
