/* Device memory: allocation, and what is known of an allocation. */
#include "driver/graph/capture.h"
#include "machine/core/global_memory.h"

CUDASIM_EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *pointer, size_t bytes);
CUDASIM_EXPORT CUresult cuMemAllocPitch_v2(CUdeviceptr *pointer, size_t *pitch, size_t width, size_t height,
                                           unsigned element);
CUDASIM_EXPORT CUresult cuMemAllocManaged(CUdeviceptr *pointer, size_t bytes, unsigned flags);
CUDASIM_EXPORT CUresult cuMemFree_v2(CUdeviceptr pointer);
CUDASIM_EXPORT CUresult cuMemGetInfo_v2(size_t *available, size_t *total);
CUDASIM_EXPORT CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr pointer);
CUDASIM_EXPORT CUresult cuMemPrefetchAsync(CUdeviceptr pointer, size_t bytes, CUdevice device, CUstream stream);
CUDASIM_EXPORT CUresult cuMemPrefetchAsync_v2(CUdeviceptr pointer, size_t bytes, CUmemLocation location, unsigned flags,
                                              CUstream stream);
CUDASIM_EXPORT CUresult cuMemAdvise(CUdeviceptr pointer, size_t bytes, int advice, CUdevice device);
CUDASIM_EXPORT CUresult cuMemAdvise_v2(CUdeviceptr pointer, size_t bytes, int advice, CUmemLocation location);
CUDASIM_EXPORT CUresult cuStreamAttachMemAsync(CUstream stream, CUdeviceptr pointer, size_t bytes, unsigned flags);

/* ---- memory of all contexts, whose addresses differ ---- */

const struct allocation *memory_find(struct CUctx_st **context, CUdeviceptr pointer)
{
    const struct allocation *a = *context == NULL ? NULL : global_find(&(*context)->machine.memory, pointer);
    for (struct CUctx_st *c = driver.contexts; a == NULL && c != NULL; c = c->next) {
        a = global_find(&c->machine.memory, pointer);
        if (a != NULL) *context = c;
    }
    return a;
}

uint8_t *memory_host(struct CUctx_st *context, CUdeviceptr pointer, uint64_t bytes)
{
    const struct allocation *a = memory_find(&context, pointer);
    return a == NULL || bytes > a->bytes - (pointer - a->base) ? NULL : a->host + (pointer - a->base);
}

uint64_t memory_left(CUdevice device)
{
    uint64_t used = virtual_bytes(device);
    for (const struct CUctx_st *c = driver.contexts; c != NULL; c = c->next)
        if (c->device == device) used += c->machine.memory.used;
    return used > DEVICE_MEMORY ? 0 : DEVICE_MEMORY - used;
}

void memory_show(struct CUctx_st *context, CUdeviceptr pointer, unsigned devices, const void *pool)
{
    struct allocation *first = context->machine.memory.allocation;
    const struct allocation *a = global_find(&context->machine.memory, pointer);
    first[a - first].devices = (uint8_t)devices;
    first[a - first].pool = pool;
}

/* Enters with a context in which memory may be allocated now. */
static CUresult begin(struct CUctx_st **context)
{
    const CUresult result = driver_enter_context(context);
    return result == CUDA_SUCCESS ? capture_forbids(*context) : result;
}

CUresult cuMemAlloc_v2(CUdeviceptr *pointer, size_t bytes)
{
    struct CUctx_st *context;
    CUresult result = begin(&context);
    if (result == CUDA_SUCCESS && (pointer == NULL || bytes == 0)) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) {
        *pointer = bytes > memory_left(context->device) ? 0 : global_allocate(&context->machine.memory, bytes, 0, NULL);
        if (*pointer == 0) result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    return driver_leave(result);
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *pointer, size_t *pitch, size_t width, size_t height, unsigned element)
{
    enum { PITCH_ALIGNMENT = 512 };
    if (pitch == NULL || width == 0 || height == 0 || (element != 4 && element != 8 && element != 16)
        || width > INT32_MAX)
        return cuMemAlloc_v2(NULL, 0);
    const size_t row = (width + PITCH_ALIGNMENT - 1) / PITCH_ALIGNMENT * PITCH_ALIGNMENT;
    const CUresult result = height > SIZE_MAX / row ? CUDA_ERROR_OUT_OF_MEMORY : cuMemAlloc_v2(pointer, row * height);
    if (result == CUDA_SUCCESS) *pitch = row;
    return result;
}

CUresult cuMemAllocManaged(CUdeviceptr *pointer, size_t bytes, unsigned flags)
{
    struct CUctx_st *context;
    CUresult result = begin(&context);
    if (result == CUDA_SUCCESS
        && (pointer == NULL || bytes == 0 || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST)))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) {
        *pointer = global_map(&context->machine.memory, bytes, ALLOCATION_MANAGED);
        if (*pointer == 0) result = CUDA_ERROR_OUT_OF_MEMORY;
        else memory_show(context, *pointer, ALL_DEVICES, NULL);
    }
    return driver_leave(result);
}

/* Whichever context has it. */
CUresult cuMemFree_v2(CUdeviceptr pointer)
{
    struct CUctx_st *context;
    CUresult result = begin(&context);
    if (result == CUDA_SUCCESS && pointer != 0) {
        const struct allocation *a = memory_find(&context, pointer);
        const bool wrong = a == NULL || a->base != pointer || a->name != NULL
                           || (a->kind != ALLOCATION_DEVICE && a->kind != ALLOCATION_MANAGED);
        if (wrong || !global_release(&context->machine.memory, pointer)) result = CUDA_ERROR_INVALID_VALUE;
    }
    return driver_leave(result);
}

CUresult cuMemGetInfo_v2(size_t *available, size_t *total)
{
    struct CUctx_st *context;
    CUresult result = driver_enter_context(&context);
    if (result == CUDA_SUCCESS && (available == NULL || total == NULL)) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) {
        *total = DEVICE_MEMORY;
        *available = memory_left(context->device);
    }
    return driver_leave(result);
}

/* Memory of another device is not found, as two H100s have it. */
CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr pointer)
{
    struct CUctx_st *context;
    CUresult result = driver_enter_context(&context);
    struct CUctx_st *owner = context;
    const struct allocation *a = result == CUDA_SUCCESS ? memory_find(&owner, pointer) : NULL;
    if (result == CUDA_SUCCESS && (a == NULL || (owner->device != context->device && a->devices == 0)))
        result = CUDA_ERROR_NOT_FOUND;
    if (result == CUDA_SUCCESS && base != NULL) *base = a->base;
    if (result == CUDA_SUCCESS && size != NULL) *size = a->bytes;
    return driver_leave(result);
}

/* ---- managed memory lies where everybody reaches it: hints change nothing ---- */

static bool is_managed(struct CUctx_st *context, CUdeviceptr pointer, size_t bytes)
{
    const struct allocation *a = memory_find(&context, pointer);
    return bytes != 0 && a != NULL && a->kind == ALLOCATION_MANAGED && memory_host(context, pointer, bytes) != NULL;
}

static bool is_location(CUmemLocation l)
{
    return (l.type == CU_MEM_LOCATION_TYPE_DEVICE && device_check(l.id) == CUDA_SUCCESS) ||
           (l.type >= CU_MEM_LOCATION_TYPE_HOST && l.type <= CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT);
}

CUresult cuMemPrefetchAsync_v2(CUdeviceptr pointer, size_t bytes, CUmemLocation location, unsigned flags,
                               CUstream handle)
{
    struct CUctx_st *context;
    CUresult result = driver_enter_context(&context);
    struct CUstream_st *stream = result == CUDA_SUCCESS ? stream_find(context, handle) : NULL;
    if (result == CUDA_SUCCESS && stream == NULL) result = CUDA_ERROR_INVALID_HANDLE;
    if (result == CUDA_SUCCESS && !is_location(location)) result = CUDA_ERROR_INVALID_DEVICE;
    if (result == CUDA_SUCCESS && (flags != 0 || !is_managed(context, pointer, bytes)))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) result = capture_enter(stream);
    return driver_leave(result);
}

static CUmemLocation location_of(CUdevice device)
{
    enum { CPU = -1 };
    return device == CPU ? (CUmemLocation){ CU_MEM_LOCATION_TYPE_HOST, 0 }
                         : (CUmemLocation){ CU_MEM_LOCATION_TYPE_DEVICE, device };
}

CUresult cuMemPrefetchAsync(CUdeviceptr pointer, size_t bytes, CUdevice device, CUstream stream)
{
    return cuMemPrefetchAsync_v2(pointer, bytes, location_of(device), 0, stream);
}

CUresult cuMemAdvise_v2(CUdeviceptr pointer, size_t bytes, int advice, CUmemLocation location)
{
    enum { FIRST_ADVICE = 1, UNSET_READ_MOSTLY = 2, UNSET_PREFERRED_LOCATION = 4, LAST_ADVICE = 6 };
    struct CUctx_st *context;
    CUresult result = driver_enter_context(&context);
    if (result == CUDA_SUCCESS && (advice < FIRST_ADVICE || advice > LAST_ADVICE)) result = CUDA_ERROR_INVALID_VALUE;
    const bool needs_location = advice > UNSET_READ_MOSTLY && advice != UNSET_PREFERRED_LOCATION;
    if (result == CUDA_SUCCESS && needs_location && !is_location(location)) result = CUDA_ERROR_INVALID_DEVICE;
    if (result == CUDA_SUCCESS && !is_managed(context, pointer, bytes)) result = CUDA_ERROR_INVALID_VALUE;
    return driver_leave(result);
}

CUresult cuMemAdvise(CUdeviceptr pointer, size_t bytes, int advice, CUdevice device)
{
    return cuMemAdvise_v2(pointer, bytes, advice, location_of(device));
}

CUresult cuStreamAttachMemAsync(CUstream stream, CUdeviceptr pointer, size_t bytes, unsigned flags)
{
    struct CUctx_st *context;
    CUresult result = driver_enter_context(&context);
    if (result == CUDA_SUCCESS && stream_find(context, stream) == NULL) result = CUDA_ERROR_INVALID_HANDLE;
    if (result == CUDA_SUCCESS && flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST
        && flags != CU_MEM_ATTACH_SINGLE)
        result = CUDA_ERROR_INVALID_VALUE;
    const struct allocation *a = result == CUDA_SUCCESS ? memory_find(&context, pointer) : NULL;
    if (result == CUDA_SUCCESS &&
        (a == NULL || a->base != pointer || a->kind != ALLOCATION_MANAGED || (bytes != 0 && bytes != a->bytes)))
        result = CUDA_ERROR_INVALID_VALUE;
    return driver_leave(result);
}
