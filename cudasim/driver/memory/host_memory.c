/* Page-locked host memory.  What is allocated here has the same address on the device; what is registered has an
 * address of its own there (cuMemHostGetDevicePointer), as the attribute CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM
 * says. */
#include <stdlib.h>

#include "driver/graph/capture.h"
#include "machine/core/global_memory.h"

CUDASIM_EXPORT CUresult cuMemHostAlloc(void **pointer, size_t bytes, unsigned flags);
CUDASIM_EXPORT CUresult cuMemAllocHost_v2(void **pointer, size_t bytes);
CUDASIM_EXPORT CUresult cuMemFreeHost(void *pointer);
CUDASIM_EXPORT CUresult cuMemHostRegister_v2(void *pointer, size_t bytes, unsigned flags);
CUDASIM_EXPORT CUresult cuMemHostUnregister(void *pointer);
CUDASIM_EXPORT CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *device, void *pointer, unsigned flags);
CUDASIM_EXPORT CUresult cuMemHostGetFlags(unsigned *flags, void *pointer);

struct host_range { struct host_range *next; uint64_t host, device; size_t bytes; unsigned flags; bool registered; };

enum { ALLOC_FLAGS = 7, REGISTER_FLAGS = 15, REGISTER_IO = 4, REGISTER_READ_ONLY = 8 };

/* Page-locked memory is every context's, whichever made it: that one takes the place of `context`. */
static struct host_range **find(struct CUctx_st **context, const void *pointer)
{
    const uint64_t address = (uint64_t)(uintptr_t)pointer;
    for (struct CUctx_st *c = driver.contexts; c != NULL; c = c->next)
        for (struct host_range **link = &c->host_ranges; *link != NULL; link = &(*link)->next)
            if (address - (*link)->host < (*link)->bytes) {
                *context = c;
                return link;
            }
    return NULL;
}

void host_ranges_close(struct CUctx_st *context)
{
    for (struct host_range *r = context->host_ranges, *next; r != NULL; r = next) {
        next = r->next;
        free(r);
    }
    context->host_ranges = NULL;
}

static bool add_range(struct CUctx_st *context, const struct host_range *range)
{
    struct host_range *r = malloc(sizeof *r);
    if (r == NULL) return false;
    *r = *range;
    r->next = context->host_ranges;
    context->host_ranges = r;
    return true;
}

static void remove_range(struct CUctx_st *context, struct host_range **link)
{
    struct host_range *r = *link;
    global_release(&context->machine.memory, r->device);
    *link = r->next;
    free(r);
}

static CUresult begin(struct CUctx_st **context)
{
    const CUresult result = driver_enter_context(context);
    return result == CUDA_SUCCESS ? capture_forbids(*context) : result;
}

CUresult cuMemHostAlloc(void **pointer, size_t bytes, unsigned flags)
{
    struct CUctx_st *context;
    CUresult result = begin(&context);
    if (result == CUDA_SUCCESS && (pointer == NULL || bytes == 0 || (flags & ~(unsigned)ALLOC_FLAGS) != 0))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) {
        const uint64_t base = global_map(&context->machine.memory, bytes, ALLOCATION_HOST);
        const struct host_range range = {
            .host = base, .device = base, .bytes = bytes, .flags = flags | CU_MEMHOSTALLOC_DEVICEMAP
        };
        if (base == 0 || !add_range(context, &range)) {
            if (base != 0) global_release(&context->machine.memory, base);
            result = CUDA_ERROR_OUT_OF_MEMORY;
        } else {
            *pointer = (void *)(uintptr_t)base;
            memory_show(context, base, ALL_DEVICES, NULL);
        }
    }
    return driver_leave(result);
}

CUresult cuMemAllocHost_v2(void **pointer, size_t bytes) { return cuMemHostAlloc(pointer, bytes, 0); }

CUresult cuMemFreeHost(void *pointer)
{
    struct CUctx_st *context;
    CUresult result = begin(&context);
    struct host_range **link = result == CUDA_SUCCESS ? find(&context, pointer) : NULL;
    if (result == CUDA_SUCCESS
        && (link == NULL || (*link)->registered || (*link)->host != (uint64_t)(uintptr_t)pointer))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) remove_range(context, link);
    return driver_leave(result);
}

static bool overlaps(uint64_t address, size_t bytes)
{
    for (const struct CUctx_st *c = driver.contexts; c != NULL; c = c->next)
        for (const struct host_range *r = c->host_ranges; r != NULL; r = r->next)
            if (address < r->host + r->bytes && r->host < address + bytes) return true;
    return false;
}

CUresult cuMemHostRegister_v2(void *pointer, size_t bytes, unsigned flags)
{
    struct CUctx_st *context;
    const uint64_t address = (uint64_t)(uintptr_t)pointer;
    CUresult result = begin(&context);
    if (result == CUDA_SUCCESS && (pointer == NULL || bytes == 0 || (flags & ~(unsigned)REGISTER_FLAGS) != 0))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS && (flags & REGISTER_IO) != 0) result = CUDA_ERROR_NOT_SUPPORTED;
    if (result == CUDA_SUCCESS && overlaps(address, bytes)) result = CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    if (result == CUDA_SUCCESS) {
        const uint64_t base = global_reserve(&context->machine.memory, bytes, 0);
        const struct allocation alias = { .base = base, .bytes = bytes, .host = pointer, .kind = ALLOCATION_REGISTERED,
                                          .read_only = (flags & REGISTER_READ_ONLY) != 0, .devices = ALL_DEVICES };
        const struct host_range range = { .host = address, .device = base, .bytes = bytes, .registered = true,
                                          .flags = flags | CU_MEMHOSTALLOC_DEVICEMAP };
        if (base == 0 || !global_insert(&context->machine.memory, &alias)) result = CUDA_ERROR_OUT_OF_MEMORY;
        else if (!add_range(context, &range))
            global_release(&context->machine.memory, base), result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    return driver_leave(result);
}

CUresult cuMemHostUnregister(void *pointer)
{
    struct CUctx_st *context;
    CUresult result = begin(&context);
    if (result == CUDA_SUCCESS && pointer == NULL) result = CUDA_ERROR_INVALID_VALUE;
    struct host_range **link = result == CUDA_SUCCESS ? find(&context, pointer) : NULL;
    if (result == CUDA_SUCCESS
        && (link == NULL || !(*link)->registered || (*link)->host != (uint64_t)(uintptr_t)pointer))
        result = CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    if (result == CUDA_SUCCESS) remove_range(context, link);
    return driver_leave(result);
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *device, void *pointer, unsigned flags)
{
    struct CUctx_st *context;
    CUresult result = driver_enter_context(&context);
    if (result == CUDA_SUCCESS && (device == NULL || flags != 0)) result = CUDA_ERROR_INVALID_VALUE;
    struct host_range **link = result == CUDA_SUCCESS ? find(&context, pointer) : NULL;
    if (result == CUDA_SUCCESS && link == NULL) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) *device = (*link)->device + ((uint64_t)(uintptr_t)pointer - (*link)->host);
    return driver_leave(result);
}

CUresult cuMemHostGetFlags(unsigned *flags, void *pointer)
{
    struct CUctx_st *context;
    CUresult result = driver_enter_context(&context);
    struct host_range **link = result == CUDA_SUCCESS ? find(&context, pointer) : NULL;
    if (result == CUDA_SUCCESS && (flags == NULL || link == NULL || (*link)->registered))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) *flags = (*link)->flags;
    return driver_leave(result);
}
