/* What programs have registered: the images, kernels and variables that nvcc's host code names when a program (or a
 * library) is loaded.  An image is loaded when something of it is first used. */
#ifndef CUDASIM_RUNTIME_MODULE_REGISTRY_H
#define CUDASIM_RUNTIME_MODULE_REGISTRY_H

#include "runtime/core/runtime.h"

/* The kernel of a host function's address, which may also be a cudaKernel_t or a cudaFunction_t itself.  Gives
 * cudaErrorInvalidDeviceFunction, or why its image cannot be loaded. */
CUresult registry_function(const void *host, CUfunction *function);
/* The host function of a kernel; the kernel itself where it has none. */
void *registry_host_of(CUkernel kernel);
/* Where a variable lies in the current context.  cudaErrorInvalidSymbol, or why its image cannot be loaded. */
CUresult registry_variable(const void *host, CUdeviceptr *address, size_t *bytes);


/* symbol.c: `count` bytes of a variable from `offset` on, which it must have. */
CUresult symbol_bytes(const void *symbol, size_t count, size_t offset, void **address);

#endif
