/* Memory: allocation, copies, fills; the asynchronous ones are done when the call returns. */
#include <string.h>
#include <stdlib.h>

#include "driver/driver.h"

CUDASIM_EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *pointer, size_t bytes);
CUDASIM_EXPORT CUresult cuMemFree_v2(CUdeviceptr pointer);
CUDASIM_EXPORT CUresult cuMemAllocAsync(CUdeviceptr *pointer, size_t bytes, CUstream stream);
CUDASIM_EXPORT CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream stream);
CUDASIM_EXPORT CUresult cuMemGetInfo_v2(size_t *available, size_t *total);
CUDASIM_EXPORT CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes);
CUDASIM_EXPORT CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes);
CUDASIM_EXPORT CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes);
CUDASIM_EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream);
CUDASIM_EXPORT CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream);
CUDASIM_EXPORT CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream);
CUDASIM_EXPORT CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t count);
CUDASIM_EXPORT CUresult cuMemsetD16_v2(CUdeviceptr to, unsigned short value, size_t count);
CUDASIM_EXPORT CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned value, size_t count);
CUDASIM_EXPORT CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream);
CUDASIM_EXPORT CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count, CUstream stream);
CUDASIM_EXPORT CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count, CUstream stream);
CUDASIM_EXPORT CUresult cuMemHostAlloc(void **pointer, size_t bytes, unsigned flags);
CUDASIM_EXPORT CUresult cuMemAllocHost_v2(void **pointer, size_t bytes);
CUDASIM_EXPORT CUresult cuMemFreeHost(void *pointer);

/* Enters with a context and a stream that lives. */
static CUresult begin(struct CUctx_st **context, CUstream stream)
{
    const CUresult result = driver_enter_context(context);
    if (result != CUDA_SUCCESS) return result;
    return stream_lives(*context, stream) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuMemAllocAsync(CUdeviceptr *pointer, size_t bytes, CUstream stream)
{
    struct CUctx_st *context;
    CUresult result = begin(&context, stream);
    if (result == CUDA_SUCCESS && (pointer == NULL || bytes == 0)) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) {
        *pointer = global_allocate(&context->machine.memory, bytes, 0, NULL);
        if (*pointer == 0) result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    return driver_leave(result);
}

CUresult cuMemAlloc_v2(CUdeviceptr *pointer, size_t bytes) { return cuMemAllocAsync(pointer, bytes, NULL); }

CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream stream)
{
    struct CUctx_st *context;
    CUresult result = begin(&context, stream);
    if (result == CUDA_SUCCESS && pointer != 0) {
        const struct allocation *a = global_find(&context->machine.memory, pointer);
        if (a == NULL || a->base != pointer || a->name != NULL || !global_release(&context->machine.memory, pointer))
            result = CUDA_ERROR_INVALID_VALUE;
    }
    return driver_leave(result);
}

CUresult cuMemFree_v2(CUdeviceptr pointer) { return cuMemFreeAsync(pointer, NULL); }

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

/* Copies between host memory and device memory; a device address goes by its allocation. */
static CUresult copy(struct CUctx_st *context, void *to, CUdeviceptr to_device, const void *from, CUdeviceptr from_device,
                     size_t bytes)
{
    if (bytes == 0) return CUDA_SUCCESS;
    if (to == NULL) to = global_host(&context->machine.memory, to_device, bytes);
    if (from == NULL) from = global_host(&context->machine.memory, from_device, bytes);
    if (to == NULL || from == NULL) return CUDA_ERROR_INVALID_VALUE;
    memmove(to, from, bytes);
    return CUDA_SUCCESS;
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    struct CUctx_st *context;
    CUresult result = begin(&context, stream);
    if (result == CUDA_SUCCESS)
        result = from == NULL && bytes != 0 ? CUDA_ERROR_INVALID_VALUE : copy(context, NULL, to, from, 0, bytes);
    return driver_leave(result);
}

CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    struct CUctx_st *context;
    CUresult result = begin(&context, stream);
    if (result == CUDA_SUCCESS)
        result = to == NULL && bytes != 0 ? CUDA_ERROR_INVALID_VALUE : copy(context, to, 0, NULL, from, bytes);
    return driver_leave(result);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    struct CUctx_st *context;
    CUresult result = begin(&context, stream);
    if (result == CUDA_SUCCESS) result = copy(context, NULL, to, NULL, from, bytes);
    return driver_leave(result);
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes) { return cuMemcpyHtoDAsync_v2(to, from, bytes, NULL); }
CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes) { return cuMemcpyDtoHAsync_v2(to, from, bytes, NULL); }
CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes) { return cuMemcpyDtoDAsync_v2(to, from, bytes, NULL); }

static CUresult fill(CUdeviceptr to, unsigned value, size_t count, size_t width, CUstream stream)
{
    struct CUctx_st *context;
    CUresult result = begin(&context, stream);
    if (result == CUDA_SUCCESS && count != 0) {
        uint8_t *host = count > SIZE_MAX / width || to % width != 0 ? NULL
                                                                    : global_host(&context->machine.memory, to, count * width);
        if (host == NULL) result = CUDA_ERROR_INVALID_VALUE;
        for (size_t i = 0; host != NULL && i < count; i++) memcpy(host + i * width, &value, width);
    }
    return driver_leave(result);
}

CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t count) { return fill(to, value, count, 1, NULL); }
CUresult cuMemsetD16_v2(CUdeviceptr to, unsigned short value, size_t count) { return fill(to, value, count, 2, NULL); }
CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned value, size_t count) { return fill(to, value, count, 4, NULL); }
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream)
{
    return fill(to, value, count, 1, stream);
}
CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count, CUstream stream)
{
    return fill(to, value, count, 2, stream);
}
CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count, CUstream stream)
{
    return fill(to, value, count, 4, stream);
}

/* Page-locked host memory is host memory; kernels do not reach it. */
CUresult cuMemHostAlloc(void **pointer, size_t bytes, unsigned flags)
{
    struct CUctx_st *context;
    CUresult result = driver_enter_context(&context);
    if (result == CUDA_SUCCESS && (pointer == NULL || bytes == 0)) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS && (flags & 2) != 0) result = CUDA_ERROR_NOT_SUPPORTED;
    if (result == CUDA_SUCCESS && posix_memalign(pointer, 4096, bytes) != 0) result = CUDA_ERROR_OUT_OF_MEMORY;
    return driver_leave(result);
}

CUresult cuMemAllocHost_v2(void **pointer, size_t bytes) { return cuMemHostAlloc(pointer, bytes, 0); }

CUresult cuMemFreeHost(void *pointer)
{
    struct CUctx_st *context;
    CUresult result = driver_enter_context(&context);
    if (result == CUDA_SUCCESS && pointer == NULL) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) free(pointer);
    return driver_leave(result);
}
