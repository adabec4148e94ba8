/* The few calls of HIP that tests of kernels want, from gfxsim, without the library's own driver room. */
#ifndef BSM_TESTS_GFX950_HIP_H
#define BSM_TESTS_GFX950_HIP_H

#include "test.h"

/* Opens GFXSIM_LIBRARY once.  False after a failure that says why. */
bool hip_open(struct test *t);

/* Device memory with the given bytes (NULL: 0xff everywhere); NULL after a failure.  hip_free_all frees all of it. */
void *hip_memory(struct test *t, const void *bytes, size_t count);
bool hip_read(struct test *t, void *to, const void *from, size_t count);
void hip_free_all(void);

/* Runs kernel `name` of the code object in the file; parameters: its one argument.  Modules stay loaded. */
bool hip_run(struct test *t, const char *file, const char *name, uint32_t groups, uint32_t threads, void *parameters);

#endif
