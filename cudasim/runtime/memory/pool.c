/* Memory in the order of a stream, and the pools that it comes from. */
#include "runtime/core/runtime.h"

static CUresult allocate(void **pointer, size_t bytes, CUmemoryPool pool, CUstream stream)
{
    CUdeviceptr *const address = (CUdeviceptr *)(void *)pointer;
    *pointer = NULL;
    if (bytes == 0) return CUDA_SUCCESS;
    return pool == NULL ? cuMemAllocAsync(address, bytes, stream)
                        : cuMemAllocFromPoolAsync(address, bytes, pool, stream);
}

API(cudaMallocAsync, (void **pointer, size_t bytes, cudaStream_t stream))
{
    if (pointer == NULL) return runtime_fail(cudaErrorInvalidValue);
    return IN_CONTEXT(allocate(pointer, bytes, NULL, runtime_stream(stream)));
}

API(cudaMallocFromPoolAsync, (void **pointer, size_t bytes, cudaMemPool_t pool, cudaStream_t stream))
{
    if (pointer == NULL || pool == NULL) return runtime_fail(cudaErrorInvalidValue);
    return IN_CONTEXT(allocate(pointer, bytes, pool, runtime_stream(stream)));
}

API(cudaFreeAsync, (void *pointer, cudaStream_t stream))
{
    return IN_CONTEXT(cuMemFreeAsync((CUdeviceptr)(uintptr_t)pointer, runtime_stream(stream)));
}

API(cudaMemPoolCreate, (cudaMemPool_t * pool, const cudaMemPoolProps *properties))
{
    return IN_CONTEXT(cuMemPoolCreate(pool, properties));
}

API(cudaMemPoolDestroy, (cudaMemPool_t pool)) { return IN_CONTEXT(cuMemPoolDestroy(pool)); }
API(cudaMemPoolTrimTo, (cudaMemPool_t pool, size_t keep)) { return IN_CONTEXT(cuMemPoolTrimTo(pool, keep)); }

API(cudaMemPoolSetAttribute, (cudaMemPool_t pool, int attribute, void *value))
{
    return IN_CONTEXT(cuMemPoolSetAttribute(pool, attribute, value));
}

API(cudaMemPoolGetAttribute, (cudaMemPool_t pool, int attribute, void *value))
{
    return IN_CONTEXT(cuMemPoolGetAttribute(pool, attribute, value));
}

API(cudaMemPoolSetAccess, (cudaMemPool_t pool, const CUmemAccessDesc *access, size_t count))
{
    return IN_CONTEXT(cuMemPoolSetAccess(pool, access, count));
}

API(cudaMemPoolGetAccess, (int *flags, cudaMemPool_t pool, CUmemLocation *location))
{
    return IN_CONTEXT(cuMemPoolGetAccess(flags, pool, location));
}

API(cudaDeviceGetDefaultMemPool, (cudaMemPool_t * pool, int device))
{
    return IN_CONTEXT(cuDeviceGetDefaultMemPool(pool, device));
}

API(cudaDeviceGetMemPool, (cudaMemPool_t * pool, int device)) { return IN_CONTEXT(cuDeviceGetMemPool(pool, device)); }
API(cudaDeviceSetMemPool, (int device, cudaMemPool_t pool)) { return IN_CONTEXT(cuDeviceSetMemPool(device, pool)); }
