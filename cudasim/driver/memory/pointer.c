/* What is known of a pointer. */
#include <string.h>

#include "driver/core/driver.h"

CUDASIM_EXPORT CUresult cuPointerGetAttribute(void *value, CUpointer_attribute attribute, CUdeviceptr pointer);
CUDASIM_EXPORT CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute *attributes, void **values,
                                               CUdeviceptr pointer);
CUDASIM_EXPORT CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute attribute, CUdeviceptr pointer);

static size_t width(int attribute)
{
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT: case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: case CU_POINTER_ATTRIBUTE_HOST_POINTER:
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES: case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE: return 8;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS: return 4;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_MAPPED: case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE: return 1;
    default: return 0;
    }
}

/* asks: the context whose thread asks; context: the one that has the allocation. */
static uint64_t value_of(int attribute, const struct allocation *a, const struct CUctx_st *asks,
                         const struct CUctx_st *context, CUdeviceptr pointer)
{
    const bool host = a->kind == ALLOCATION_HOST || a->kind == ALLOCATION_REGISTERED;
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT: return (uint64_t)(uintptr_t)context;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE: return host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: return pointer;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER: return (uint64_t)(uintptr_t)a->host + (pointer - a->base);
    case CU_POINTER_ATTRIBUTE_BUFFER_ID: return a->base;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED: return a->kind == ALLOCATION_MANAGED;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: return a->base;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE: return a->bytes;
    case CU_POINTER_ATTRIBUTE_MAPPED: return 1;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: return (uint64_t)virtual_device(context, pointer);
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE: return (uint64_t)(uintptr_t)a->pool;
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        return space_may_write(&asks->machine.memory, a) ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                                                         : CU_MEM_ACCESS_FLAGS_PROT_READ;
    default: return 0;
    }
}

/* Device memory has no address on the host, and none on a device whose kernels do not reach it. */
static bool has_value(int attribute, const struct allocation *a, const struct CUctx_st *asks,
                      const struct CUctx_st *context)
{
    if (attribute == CU_POINTER_ATTRIBUTE_HOST_POINTER)
        return a->kind != ALLOCATION_DEVICE && a->kind != ALLOCATION_VIRTUAL;
    return attribute != CU_POINTER_ATTRIBUTE_DEVICE_POINTER
           || space_reaches(&asks->machine.memory, &context->machine.memory, a);
}

CUresult cuPointerGetAttribute(void *value, CUpointer_attribute attribute, CUdeviceptr pointer)
{
    struct CUctx_st *context;
    CUresult result = driver_enter_context(&context);
    if (result == CUDA_SUCCESS && (value == NULL || width((int)attribute) == 0)) result = CUDA_ERROR_INVALID_VALUE;
    struct CUctx_st *const asks = context;
    const struct allocation *a = result == CUDA_SUCCESS ? memory_find(&context, pointer) : NULL;
    if (result == CUDA_SUCCESS && (a == NULL || !has_value((int)attribute, a, asks, context)))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) {
        const uint64_t found = value_of((int)attribute, a, asks, context, pointer);
        memcpy(value, &found, width((int)attribute));
    }
    return driver_leave(result);
}

/* Unlike the call for one attribute: of a pointer that nobody knows every value is 0 (device ordinal -2), and that is
 * no error. */
CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute *attributes, void **values, CUdeviceptr pointer)
{
    enum { NO_DEVICE = -2 };
    struct CUctx_st *context;
    CUresult result = driver_enter_context(&context);
    if (result == CUDA_SUCCESS && (count == 0 || attributes == NULL || values == NULL))
        result = CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; result == CUDA_SUCCESS && i < count; i++)
        if (values[i] == NULL || width((int)attributes[i]) == 0) result = CUDA_ERROR_INVALID_VALUE;
    struct CUctx_st *const asks = context;
    const struct allocation *a = result == CUDA_SUCCESS ? memory_find(&context, pointer) : NULL;
    for (unsigned i = 0; result == CUDA_SUCCESS && i < count; i++) {
        uint64_t found = 0;
        if (a != NULL && has_value((int)attributes[i], a, asks, context))
            found = value_of((int)attributes[i], a, asks, context, pointer);
        if (a == NULL && attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) found = (uint64_t)(int64_t)NO_DEVICE;
        memcpy(values[i], &found, width((int)attributes[i]));
    }
    return driver_leave(result);
}

CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute attribute, CUdeviceptr pointer)
{
    struct CUctx_st *context;
    CUresult result = driver_enter_context(&context);
    if (result == CUDA_SUCCESS &&
        (value == NULL || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS || memory_find(&context, pointer) == NULL))
        result = CUDA_ERROR_INVALID_VALUE;
    return driver_leave(result);
}
