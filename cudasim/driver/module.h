/* Modules: reading an image, loading it into a context. */
#ifndef CUDASIM_DRIVER_MODULE_H
#define CUDASIM_DRIVER_MODULE_H

#include "driver/driver.h"

/* Where the caller wants the error text. */
struct jit_log { char *buffer; size_t size; };
struct jit_log jit_error_log(unsigned count, const CUjit_option *options, void *const *values);

/* Text, fatbin or cubin; says why where it cannot be used.  read_file: a file with zero bytes behind it, or NULL. */
CUresult image_read(const void *image, const struct jit_log *log, struct module **module);
char *image_read_file(const char *name);

CUresult module_load(struct CUctx_st *context, CUmodule *result, const void *image, const struct jit_log *log);
void module_close(struct CUctx_st *context, struct CUmod_st *module);
CUresult module_function(struct CUmod_st *module, const char *name, CUfunction *function);
CUresult module_global(const struct CUmod_st *module, const char *name, CUdeviceptr *pointer, size_t *bytes);

/* library.c: where the handle is a CUkernel, its function in this context; else NULL. */
struct CUfunc_st *kernel_function(struct CUctx_st *context, const void *handle);

#endif
