/* Allocation in the order of streams, and its pools.  Memory is taken and given back at once, and a pool keeps none. */
#include <stdlib.h>
#include <string.h>

#include "driver/graph/capture.h"
#include "machine/core/global_memory.h"

CUDASIM_EXPORT CUresult cuMemAllocAsync(CUdeviceptr *pointer, size_t bytes, CUstream stream);
CUDASIM_EXPORT CUresult cuMemAllocFromPoolAsync(CUdeviceptr *pointer, size_t bytes, CUmemoryPool pool, CUstream stream);
CUDASIM_EXPORT CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream stream);
CUDASIM_EXPORT CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *properties);
CUDASIM_EXPORT CUresult cuMemPoolDestroy(CUmemoryPool pool);
CUDASIM_EXPORT CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t bytes);
CUDASIM_EXPORT CUresult cuMemPoolGetAttribute(CUmemoryPool pool, int attribute, void *value);
CUDASIM_EXPORT CUresult cuMemPoolSetAttribute(CUmemoryPool pool, int attribute, void *value);
CUDASIM_EXPORT CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *access, size_t count);
CUDASIM_EXPORT CUresult cuMemPoolGetAccess(int *flags, CUmemoryPool pool, CUmemLocation *location);
CUDASIM_EXPORT CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device);
CUDASIM_EXPORT CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device);
CUDASIM_EXPORT CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool);

enum {
    ATTRIBUTE_FIRST = 1,
    ATTRIBUTE_LAST_SWITCH = 3,
    ATTRIBUTE_THRESHOLD = 4,
    ATTRIBUTE_RESERVED_HIGH = 6,
    ATTRIBUTE_USED_HIGH = 8,
    ATTRIBUTES = 9
};
struct CUmemPoolHandle_st {
    uint64_t attribute[ATTRIBUTES];
    CUdevice device;
    unsigned devices;                     /* a bit for each that has access; peer access of contexts does not count */
};

static const uint64_t first_attributes[ATTRIBUTES] = { 0, 1, 1, 1 };

static void pool_make(struct CUmemPoolHandle_st *pool, CUdevice device)
{
    *pool = (struct CUmemPoolHandle_st){ .device = device, .devices = 1u << device };
    memcpy(pool->attribute, first_attributes, sizeof first_attributes);
}

static struct CUmemPoolHandle_st *default_pool(CUdevice device)
{
    static struct CUmemPoolHandle_st pool[MOST_DEVICES];
    if (pool[device].devices == 0) pool_make(&pool[device], device);
    return &pool[device];
}

static bool is_default(CUmemoryPool pool)
{
    for (uint32_t d = 0; d < driver.devices; d++)
        if (pool == default_pool((CUdevice)d)) return true;
    return false;
}

static bool pool_lives(CUmemoryPool pool) { return is_default(pool) || handle_is(pool, HANDLE_POOL); }

static CUmemoryPool pool_now(CUdevice device)
{
    return driver.device[device].pool != NULL ? driver.device[device].pool : default_pool(device);
}

/* The context whose memory an allocation of the device becomes: `wish`, if it is the device's; NULL: it has none. */
static struct CUctx_st *context_of(CUdevice device, struct CUctx_st *wish)
{
    if (wish->device == device) return wish;
    struct CUctx_st *c = driver.device[device].primary != NULL ? driver.device[device].primary : driver.contexts;
    while (c != NULL && c->device != device) c = c->next;
    return c;
}

/* What the pool's allocations are from now on: reached by its devices, of `now`. */
static void show_all(const struct CUmemPoolHandle_st *pool, const struct CUmemPoolHandle_st *now)
{
    for (struct CUctx_st *c = driver.contexts; c != NULL; c = c->next)
        for (uint32_t i = 0; i < c->machine.memory.count; i++)
            if (c->machine.memory.allocation[i].pool == pool)
                memory_show(c, c->machine.memory.allocation[i].base, pool->devices, now);
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *pointer, size_t bytes, CUmemoryPool pool, CUstream handle)
{
    struct CUctx_st *context;
    CUresult result = driver_enter_context(&context);
    struct CUstream_st *stream = result == CUDA_SUCCESS ? stream_find(context, handle) : NULL;
    if (result == CUDA_SUCCESS && (pointer == NULL || (pool != NULL && !pool_lives(pool))))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS && stream == NULL) result = CUDA_ERROR_INVALID_HANDLE;
    if (result == CUDA_SUCCESS) result = capture_enter(stream);
    if (result == CUDA_SUCCESS && stream->capture != NULL) {
        driver_say("cudasim: graphs that allocate memory are not simulated: allocate before the capture\n");
        capture_invalidate(stream->capture);
        result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    if (result == CUDA_SUCCESS && pool == NULL) pool = pool_now(stream->context->device);
    if (result == CUDA_SUCCESS && (context = context_of(pool->device, stream->context)) == NULL) {
        driver_say("cudasim: memory of a pool of device %d is asked for, which has no context yet\n",
                   (int)pool->device);
        result = CUDA_ERROR_INVALID_CONTEXT;
    }
    if (result == CUDA_SUCCESS) {         /* 0 bytes: no error, on an H200 */
        const bool fits = bytes != 0 && bytes <= memory_left(pool->device);
        *pointer = fits ? global_allocate(&context->machine.memory, bytes, 0, NULL) : 0;
        if (bytes != 0 && *pointer == 0) result = CUDA_ERROR_OUT_OF_MEMORY;
        else if (bytes != 0) memory_show(context, *pointer, pool->devices, pool);
    }
    return driver_leave(result);
}

CUresult cuMemAllocAsync(CUdeviceptr *pointer, size_t bytes, CUstream stream)
{
    return cuMemAllocFromPoolAsync(pointer, bytes, NULL, stream);
}

CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream handle)
{
    struct CUctx_st *context;
    CUresult result = driver_enter_context(&context);
    struct CUstream_st *stream = result == CUDA_SUCCESS ? stream_find(context, handle) : NULL;
    if (result == CUDA_SUCCESS && stream == NULL) result = CUDA_ERROR_INVALID_HANDLE;
    if (result == CUDA_SUCCESS) result = capture_enter(stream);
    if (result == CUDA_SUCCESS && stream->capture != NULL) {
        driver_say("cudasim: graphs that free memory are not simulated: free after the capture\n");
        capture_invalidate(stream->capture);
        result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    if (result == CUDA_SUCCESS) {
        const struct allocation *a = memory_find(&context, pointer);
        if (a == NULL || a->base != pointer || a->name != NULL || a->kind != ALLOCATION_DEVICE ||
            !global_release(&context->machine.memory, pointer))
            result = CUDA_ERROR_INVALID_VALUE;
    }
    return driver_leave(result);
}

CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *properties)
{
    enum { PINNED = 1 };
    CUresult result = driver_enter();
    if (result == CUDA_SUCCESS &&
        (pool == NULL || properties == NULL || properties->allocType != PINNED || properties->handleTypes != 0))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS
        && (properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE
            || device_check(properties->location.id) != CUDA_SUCCESS))
        result = properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE ? CUDA_ERROR_INVALID_DEVICE
                                                                          : CUDA_ERROR_NOT_SUPPORTED;
    struct CUmemPoolHandle_st *made = result == CUDA_SUCCESS ? malloc(sizeof *made) : NULL;
    if (result == CUDA_SUCCESS && (made == NULL || !handle_add(made, HANDLE_POOL))) {
        free(made);
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (result == CUDA_SUCCESS) {
        pool_make(made, properties->location.id);
        *pool = made;
    }
    return driver_leave(result);
}

static CUresult begin(CUmemoryPool pool)
{
    const CUresult result = driver_enter();
    if (result != CUDA_SUCCESS) return result;
    return pool_lives(pool) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
    CUresult result = begin(pool);
    if (result == CUDA_SUCCESS && is_default(pool)) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) {
        if (driver.device[pool->device].pool == pool) driver.device[pool->device].pool = NULL;
        show_all(pool, NULL);
        handle_remove(pool);
        free(pool);
    }
    return driver_leave(result);
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t bytes)
{
    (void)bytes;
    return driver_leave(begin(pool));
}

/* The first three are int, the others 64 bits. */
CUresult cuMemPoolGetAttribute(CUmemoryPool pool, int attribute, void *value)
{
    CUresult result = begin(pool);
    if (result == CUDA_SUCCESS && (value == NULL || attribute < ATTRIBUTE_FIRST || attribute >= ATTRIBUTES))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS && attribute <= ATTRIBUTE_LAST_SWITCH) *(int *)value = (int)pool->attribute[attribute];
    else if (result == CUDA_SUCCESS) *(cuuint64_t *)value = pool->attribute[attribute];
    return driver_leave(result);
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, int attribute, void *value)
{
    CUresult result = begin(pool);
    const bool high_mark = attribute == ATTRIBUTE_RESERVED_HIGH || attribute == ATTRIBUTE_USED_HIGH;
    if (result == CUDA_SUCCESS
        && (value == NULL || attribute < ATTRIBUTE_FIRST || (attribute > ATTRIBUTE_THRESHOLD && !high_mark)))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS && high_mark && *(const cuuint64_t *)value != 0) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        pool->attribute[attribute] =
            attribute <= ATTRIBUTE_LAST_SWITCH ? *(const int *)value != 0 : *(const cuuint64_t *)value;
    return driver_leave(result);
}

/* Also of what has been allocated.  The pool's own device keeps its access. */
CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *access, size_t count)
{
    CUresult result = begin(pool);
    if (result == CUDA_SUCCESS && count != 0 && access == NULL) result = CUDA_ERROR_INVALID_VALUE;
    unsigned devices = result == CUDA_SUCCESS ? pool->devices : 0;
    for (size_t i = 0; result == CUDA_SUCCESS && i < count; i++) {
        const CUmemLocation l = access[i].location;
        const bool gives = access[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        if (l.type != CU_MEM_LOCATION_TYPE_DEVICE || device_check(l.id) != CUDA_SUCCESS)
            result = CUDA_ERROR_INVALID_DEVICE;
        else if (!gives && access[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE) result = CUDA_ERROR_INVALID_VALUE;
        else if (l.id == pool->device ? !gives : !devices_are_peers(l.id, pool->device))
            result = CUDA_ERROR_INVALID_DEVICE;
        else devices = gives ? devices | 1u << l.id : devices & ~(1u << l.id);
    }
    if (result == CUDA_SUCCESS) pool->devices = devices, show_all(pool, pool);
    return driver_leave(result);
}

CUresult cuMemPoolGetAccess(int *flags, CUmemoryPool pool, CUmemLocation *location)
{
    CUresult result = begin(pool);
    if (result == CUDA_SUCCESS && (flags == NULL || location == NULL)) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS
        && (location->type != CU_MEM_LOCATION_TYPE_DEVICE || device_check(location->id) != CUDA_SUCCESS))
        result = CUDA_ERROR_INVALID_DEVICE;
    if (result == CUDA_SUCCESS)
        *flags = (pool->devices >> location->id & 1) != 0 ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                                                          : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return driver_leave(result);
}

static CUresult give_pool(CUmemoryPool *pool, CUdevice device, CUmemoryPool (*of_device)(CUdevice))
{
    CUresult result = driver_enter();
    if (result == CUDA_SUCCESS && pool == NULL) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) result = device_check(device);
    if (result == CUDA_SUCCESS) *pool = of_device(device);
    return driver_leave(result);
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device)
{
    return give_pool(pool, device, default_pool);
}
CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device) { return give_pool(pool, device, pool_now); }

CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool)
{
    CUresult result = begin(pool);
    if (result == CUDA_SUCCESS) result = device_check(device);
    if (result == CUDA_SUCCESS && pool->device != device) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) driver.device[device].pool = pool;
    return driver_leave(result);
}
