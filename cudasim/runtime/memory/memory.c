/* Memory of the device and of the host, and what is known of a pointer. */
#include "runtime/core/runtime.h"

#include <string.h>

/* Nothing is asked for: NULL, and no error. */
static CUresult allocate(void **pointer, size_t bytes)
{
    *pointer = NULL;
    return bytes == 0 ? CUDA_SUCCESS : cuMemAlloc_v2((CUdeviceptr *)(void *)pointer, bytes);
}

API(cudaMalloc, (void **pointer, size_t bytes))
{
    if (pointer == NULL) return runtime_fail(cudaErrorInvalidValue);
    return IN_CONTEXT(allocate(pointer, bytes));
}

API(cudaMallocPitch, (void **pointer, size_t *pitch, size_t width, size_t height))
{
    enum { WIDEST_ELEMENT = 16 };
    if (pointer == NULL || pitch == NULL) return runtime_fail(cudaErrorInvalidValue);
    return IN_CONTEXT(cuMemAllocPitch_v2((CUdeviceptr *)(void *)pointer, pitch, width, height, WIDEST_ELEMENT));
}

API(cudaMalloc3D, (cudaPitchedPtr * made, cudaExtent extent))
{
    if (made == NULL || (extent.depth != 0 && extent.height > SIZE_MAX / extent.depth))
        return runtime_fail(cudaErrorInvalidValue);
    *made = (cudaPitchedPtr){ .xsize = extent.width, .ysize = extent.height };
    return cudaMallocPitch(&made->ptr, &made->pitch, extent.width, extent.height * extent.depth);
}

API(cudaMallocManaged, (void **pointer, size_t bytes, unsigned flags))
{
    if (pointer == NULL || bytes == 0) return runtime_fail(cudaErrorInvalidValue);
    return IN_CONTEXT(cuMemAllocManaged((CUdeviceptr *)(void *)pointer, bytes, flags));
}

API(cudaFree, (void *pointer)) { return IN_CONTEXT(cuMemFree_v2((CUdeviceptr)(uintptr_t)pointer)); }

API(cudaMemGetInfo, (size_t * available, size_t *total)) { return IN_CONTEXT(cuMemGetInfo_v2(available, total)); }

/* ---- of the host ---- */

static CUresult allocate_host(void **pointer, size_t bytes, unsigned flags)
{
    *pointer = NULL;
    return bytes == 0 ? CUDA_SUCCESS : cuMemHostAlloc(pointer, bytes, flags);
}

API(cudaHostAlloc, (void **pointer, size_t bytes, unsigned flags))
{
    if (pointer == NULL) return runtime_fail(cudaErrorInvalidValue);
    return IN_CONTEXT(allocate_host(pointer, bytes, flags));
}

API(cudaMallocHost, (void **pointer, size_t bytes)) { return cudaHostAlloc(pointer, bytes, 0); }

API(cudaFreeHost, (void *pointer)) { return IN_CONTEXT(pointer == NULL ? CUDA_SUCCESS : cuMemFreeHost(pointer)); }

API(cudaHostRegister, (void *pointer, size_t bytes, unsigned flags))
{
    return IN_CONTEXT(cuMemHostRegister_v2(pointer, bytes, flags));
}

API(cudaHostUnregister, (void *pointer)) { return IN_CONTEXT(cuMemHostUnregister(pointer)); }

API(cudaHostGetDevicePointer, (void **device, void *host, unsigned flags))
{
    return IN_CONTEXT(cuMemHostGetDevicePointer_v2((CUdeviceptr *)(void *)device, host, flags));
}

API(cudaHostGetFlags, (unsigned *flags, void *host)) { return IN_CONTEXT(cuMemHostGetFlags(flags, host)); }

/* ---- managed ---- */

API(cudaMemPrefetchAsync,
    (const void *pointer, size_t bytes, CUmemLocation location, unsigned flags, cudaStream_t stream))
{
    return IN_CONTEXT(
        cuMemPrefetchAsync_v2((CUdeviceptr)(uintptr_t)pointer, bytes, location, flags, runtime_stream(stream)));
}

API(cudaMemAdvise, (const void *pointer, size_t bytes, int advice, CUmemLocation location))
{
    return IN_CONTEXT(cuMemAdvise_v2((CUdeviceptr)(uintptr_t)pointer, bytes, advice, location));
}

API(cudaStreamAttachMemAsync, (cudaStream_t stream, void *pointer, size_t bytes, unsigned flags))
{
    return IN_CONTEXT(
        cuStreamAttachMemAsync(runtime_stream(stream), (CUdeviceptr)(uintptr_t)pointer, bytes, flags));
}

/* ---- pointers ---- */

/* Of a pointer that the driver does not know the host may know more: that is no error. */
static CUresult read_pointer(cudaPointerAttributes *a, const void *pointer)
{
    CUpointer_attribute which[] = { CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                    CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
                                    CU_POINTER_ATTRIBUTE_HOST_POINTER };
    int type = 0;
    bool managed = false;
    memset(a, 0, sizeof *a);
    void *values[] = { &type, &managed, &a->device, &a->devicePointer, &a->hostPointer };
    const CUresult result =
        cuPointerGetAttributes(sizeof which / sizeof *which, which, values, (CUdeviceptr)(uintptr_t)pointer);
    a->type = managed ? cudaMemoryTypeManaged : type;
    if (a->type == cudaMemoryTypeUnregistered) a->hostPointer = (void *)(uintptr_t)pointer;
    return result;
}

API(cudaPointerGetAttributes, (cudaPointerAttributes * attributes, const void *pointer))
{
    if (attributes == NULL) return runtime_fail(cudaErrorInvalidValue);
    return IN_CONTEXT(read_pointer(attributes, pointer));
}
