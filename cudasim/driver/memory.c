/* Memory: allocations on the device and of page-locked host memory, and what is known of a pointer. */
#include <stdlib.h>
#include <string.h>

#include "driver/capture.h"

CUDASIM_EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *pointer, size_t bytes);
CUDASIM_EXPORT CUresult cuMemAllocPitch_v2(CUdeviceptr *pointer, size_t *pitch, size_t width, size_t height, unsigned element);
CUDASIM_EXPORT CUresult cuMemFree_v2(CUdeviceptr pointer);
CUDASIM_EXPORT CUresult cuMemAllocAsync(CUdeviceptr *pointer, size_t bytes, CUstream stream);
CUDASIM_EXPORT CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream stream);
CUDASIM_EXPORT CUresult cuMemGetInfo_v2(size_t *available, size_t *total);
CUDASIM_EXPORT CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes, CUdeviceptr pointer);
CUDASIM_EXPORT CUresult cuPointerGetAttribute(void *value, int attribute, CUdeviceptr pointer);
CUDASIM_EXPORT CUresult cuMemHostAlloc(void **pointer, size_t bytes, unsigned flags);
CUDASIM_EXPORT CUresult cuMemAllocHost_v2(void **pointer, size_t bytes);
CUDASIM_EXPORT CUresult cuMemFreeHost(void *pointer);
CUDASIM_EXPORT CUresult cuMemHostRegister_v2(void *pointer, size_t bytes, unsigned flags);
CUDASIM_EXPORT CUresult cuMemHostUnregister(void *pointer);

enum { PITCH_ALIGNMENT = 512 };

static CUresult allocate(struct CUctx_st *context, CUdeviceptr *pointer, size_t bytes)
{
    if (pointer == NULL || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    *pointer = global_allocate(&context->machine.memory, bytes, 0, NULL);
    return *pointer == 0 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

/* Variables of modules are no allocations of the caller's. */
static CUresult release(struct CUctx_st *context, CUdeviceptr pointer)
{
    if (pointer == 0) return CUDA_SUCCESS;
    const struct allocation *a = global_find(&context->machine.memory, pointer);
    if (a == NULL || a->base != pointer || a->name != NULL) return CUDA_ERROR_INVALID_VALUE;
    return global_release(&context->machine.memory, pointer) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Enters with a context and a stream that lives and does not capture: memory nodes of graphs are not simulated. */
static CUresult begin(struct CUctx_st **context, CUstream stream)
{
    const CUresult result = driver_enter_context(context);
    if (result != CUDA_SUCCESS) return result;
    if (!stream_lives(*context, stream)) return CUDA_ERROR_INVALID_HANDLE;
    if (stream_capture(*context, stream) == NULL) return CUDA_SUCCESS;
    driver_say("cudasim: cuMemAllocAsync and cuMemFreeAsync in a stream that is capturing (memory nodes) are not simulated\n");
    stream_capture(*context, stream)->invalid = true;
    return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuMemAllocAsync(CUdeviceptr *pointer, size_t bytes, CUstream stream)
{
    struct CUctx_st *context;
    CUresult result = begin(&context, stream);
    if (result == CUDA_SUCCESS) result = allocate(context, pointer, bytes);
    return driver_leave(result);
}

CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream stream)
{
    struct CUctx_st *context;
    CUresult result = begin(&context, stream);
    if (result == CUDA_SUCCESS) result = pointer == 0 ? CUDA_ERROR_INVALID_VALUE : release(context, pointer);
    return driver_leave(result);
}

CUresult cuMemAlloc_v2(CUdeviceptr *pointer, size_t bytes)
{
    struct CUctx_st *context;
    CUresult result = driver_enter_context(&context);
    if (result == CUDA_SUCCESS) result = capture_allows_unsafe_call(context);
    if (result == CUDA_SUCCESS) result = allocate(context, pointer, bytes);
    return driver_leave(result);
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *pointer, size_t *pitch, size_t width, size_t height, unsigned element)
{
    const bool good = pitch != NULL && width != 0 && height != 0 && (element == 4 || element == 8 || element == 16) &&
                      width <= SIZE_MAX / 2 && height <= (SIZE_MAX / 2) / (width + PITCH_ALIGNMENT);
    if (!good) return driver_leave(driver_enter() == CUDA_SUCCESS ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_INITIALIZED);
    const size_t rows = (width + PITCH_ALIGNMENT - 1) / PITCH_ALIGNMENT * PITCH_ALIGNMENT;
    const CUresult result = cuMemAlloc_v2(pointer, rows * height);
    if (result == CUDA_SUCCESS) *pitch = rows;
    return result;
}

CUresult cuMemFree_v2(CUdeviceptr pointer)
{
    struct CUctx_st *context;
    CUresult result = driver_enter_context(&context);
    if (result == CUDA_SUCCESS) result = capture_allows_unsafe_call(context);
    if (result == CUDA_SUCCESS) result = release(context, pointer);
    return driver_leave(result);
}

CUresult cuMemGetInfo_v2(size_t *available, size_t *total)
{
    struct CUctx_st *context;
    CUresult result = driver_enter_context(&context);
    if (result == CUDA_SUCCESS && (available == NULL || total == NULL)) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) {
        *total = context->machine.memory.limit;
        *available = *total - context->machine.memory.used;
    }
    return driver_leave(result);
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes, CUdeviceptr pointer)
{
    struct CUctx_st *context;
    CUresult result = driver_enter_context(&context);
    const struct allocation *a = result == CUDA_SUCCESS ? global_find(&context->machine.memory, pointer) : NULL;
    if (result == CUDA_SUCCESS && a == NULL) result = CUDA_ERROR_NOT_FOUND;
    if (result == CUDA_SUCCESS && base != NULL) *base = a->base;
    if (result == CUDA_SUCCESS && bytes != NULL) *bytes = a->bytes;
    return driver_leave(result);
}

CUresult cuPointerGetAttribute(void *value, int attribute, CUdeviceptr pointer)
{
    enum { CONTEXT = 1, MEMORY_TYPE = 2, DEVICE_POINTER = 3, IS_MANAGED = 8, DEVICE_ORDINAL = 9, RANGE_START = 11, RANGE_SIZE = 12 };
    struct CUctx_st *context;
    CUresult result = driver_enter_context(&context);
    if (result == CUDA_SUCCESS && value == NULL) result = CUDA_ERROR_INVALID_VALUE;
    const struct allocation *a = result == CUDA_SUCCESS ? global_find(&context->machine.memory, pointer) : NULL;
    if (result == CUDA_SUCCESS && a == NULL) result = CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS) return driver_leave(result);
    switch (attribute) {
    case CONTEXT: *(CUcontext *)value = context; break;
    case MEMORY_TYPE: *(unsigned *)value = CU_MEMORYTYPE_DEVICE; break;
    case DEVICE_POINTER: *(CUdeviceptr *)value = pointer; break;
    case IS_MANAGED: case DEVICE_ORDINAL: *(unsigned *)value = 0; break;
    case RANGE_START: *(CUdeviceptr *)value = a->base; break;
    case RANGE_SIZE: *(size_t *)value = a->bytes; break;
    default: result = CUDA_ERROR_INVALID_VALUE; break;
    }
    return driver_leave(result);
}

/* ---- host memory: kernels do not reach it ---- */

enum { PORTABLE = 1, DEVICEMAP = 2, WRITECOMBINED = 4 };

CUresult cuMemHostAlloc(void **pointer, size_t bytes, unsigned flags)
{
    struct CUctx_st *context;
    CUresult result = driver_enter_context(&context);
    if (result == CUDA_SUCCESS && (pointer == NULL || bytes == 0 || flags > 7)) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS && (flags & DEVICEMAP) != 0) result = CUDA_ERROR_NOT_SUPPORTED;
    if (result == CUDA_SUCCESS) result = capture_allows_unsafe_call(context);
    if (result == CUDA_SUCCESS && posix_memalign(pointer, 4096, bytes) != 0) result = CUDA_ERROR_OUT_OF_MEMORY;
    return driver_leave(result);
}

CUresult cuMemAllocHost_v2(void **pointer, size_t bytes) { return cuMemHostAlloc(pointer, bytes, 0); }

CUresult cuMemFreeHost(void *pointer)
{
    struct CUctx_st *context;
    CUresult result = driver_enter_context(&context);
    if (result == CUDA_SUCCESS && pointer == NULL) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) result = capture_allows_unsafe_call(context);
    if (result == CUDA_SUCCESS) free(pointer);
    return driver_leave(result);
}

CUresult cuMemHostRegister_v2(void *pointer, size_t bytes, unsigned flags)
{
    struct CUctx_st *context;
    CUresult result = driver_enter_context(&context);
    if (result == CUDA_SUCCESS && (pointer == NULL || bytes == 0 || flags > 15)) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS && (flags & DEVICEMAP) != 0) result = CUDA_ERROR_NOT_SUPPORTED;
    return driver_leave(result);
}

CUresult cuMemHostUnregister(void *pointer)
{
    struct CUctx_st *context;
    CUresult result = driver_enter_context(&context);
    return driver_leave(result == CUDA_SUCCESS && pointer == NULL ? CUDA_ERROR_INVALID_VALUE : result);
}
