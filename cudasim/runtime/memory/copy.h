/* Copies: each becomes a CUDA_MEMCPY3D of the driver. */
#ifndef CUDASIM_RUNTIME_MEMORY_COPY_H
#define CUDASIM_RUNTIME_MEMORY_COPY_H

#include "runtime/core/runtime.h"

/* Before the call returns, or in a stream. */
struct copy_way { bool in_stream; cudaStream_t stream; };
#define COPY_NOW ((struct copy_way){ false, NULL })
#define COPY_IN(stream) ((struct copy_way){ true, (stream) })

CUresult copy_line(void *to, const void *from, size_t bytes, int kind, struct copy_way way);

/* The driver's description; cudaErrorInvalidMemcpyDirection: a kind that there is not. */
CUresult copy_describe_line(void *to, const void *from, size_t bytes, int kind, CUDA_MEMCPY3D *copy);
CUresult copy_describe(const cudaMemcpy3DParms *parameters, CUDA_MEMCPY3D *copy);

#endif
