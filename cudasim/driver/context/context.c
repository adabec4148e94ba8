/* Contexts: the primary one and others; which one is current; streams and events belong to them. */
#include <stdio.h>
#include <stdlib.h>

#include "driver/graph/capture.h"
#include "driver/core/current.h"
#include "machine/run/launch.h"

CUDASIM_EXPORT CUresult cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device);
CUDASIM_EXPORT CUresult cuCtxCreate_v4(CUcontext *context, void *parameters, unsigned flags, CUdevice device);
CUDASIM_EXPORT CUresult cuCtxDestroy_v2(CUcontext context);
CUDASIM_EXPORT CUresult cuCtxPushCurrent_v2(CUcontext context);
CUDASIM_EXPORT CUresult cuCtxPopCurrent_v2(CUcontext *context);
CUDASIM_EXPORT CUresult cuCtxSetCurrent(CUcontext context);
CUDASIM_EXPORT CUresult cuCtxGetCurrent(CUcontext *context);
CUDASIM_EXPORT CUresult cuCtxGetDevice(CUdevice *device);
CUDASIM_EXPORT CUresult cuCtxSynchronize(void);
CUDASIM_EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device);
CUDASIM_EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device);
CUDASIM_EXPORT CUresult cuDevicePrimaryCtxReset_v2(CUdevice device);
CUDASIM_EXPORT CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active);
CUDASIM_EXPORT CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned flags);

static void print(void *user, const char *text, size_t length)
{
    (void)user;
    fwrite(text, 1, length, stdout);
}

struct CUctx_st *context_open(CUdevice device, bool primary)
{
    struct CUctx_st *context = calloc(1, sizeof *context);
    if (context == NULL) return NULL;
    enum { GRIDS_SHIFT = 25 };            /* what memory remembers of grids tells those of all devices apart */
    machine_open(&context->machine, driver.device[device].limits, &driver.options);
    space_enter(&driver.space, &context->machine.memory, (uint32_t)device);
    context->machine.grids = (uint64_t)device << GRIDS_SHIFT;
    context->device = device;
    context->machine.print = print;
    context->machine.rule_book = &driver.rule_book;
    context->machine.watch = driver_watch();
    context->primary = primary;
    context->id = ++driver.context_ids;
    context->limit[LIMIT_STACK] = 1024, context->limit[LIMIT_PRINTF] = 1 << 20, context->limit[LIMIT_HEAP] = 8 << 20;
    context->next = driver.contexts;
    driver.contexts = context;
    return context;
}

/* Streams go first: a capture under way ends while the context is still found. */
static void close_objects(struct CUctx_st *context)
{
    for (struct CUstream_st *s = context->streams; s != NULL; s = s->next)
        if (s->capture != NULL) capture_leave(s);
    for (struct CUstream_st *s = context->streams, *next; s != NULL; s = next) {
        next = s->next;
        stream_free(s);
    }
    for (struct CUevent_st *e = context->events, *next; e != NULL; e = next) {
        next = e->next;
        event_free(e);
    }
    while (context->modules != NULL) module_close(context->modules);
}

void context_close(struct CUctx_st *context)
{
    struct CUctx_st **link = &driver.contexts;
    close_objects(context);
    context->streams = NULL;
    context->events = NULL;
    while (*link != context) link = &(*link)->next;
    *link = context->next;
    reservations_close(context);
    host_ranges_close(context);
    space_leave(&context->machine.memory);
    machine_close(&context->machine);
    free(context);
}

bool context_lives(const struct CUctx_st *context)
{
    for (const struct CUctx_st *c = driver.contexts; c != NULL; c = c->next)
        if (c == context) return true;
    return false;
}

CUresult context_or_current(struct CUctx_st *named, struct CUctx_st **context)
{
    *context = named != NULL ? named : current_get();
    if (*context == NULL) return CUDA_ERROR_INVALID_CONTEXT;
    if (!context_lives(*context)) return named != NULL ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_CONTEXT_IS_DESTROYED;
    return (*context)->fault;
}

static CUresult create(CUcontext *context, unsigned flags, CUdevice device)
{
    CUresult result = driver_enter();
    if (result == CUDA_SUCCESS && context == NULL) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) result = device_check(device);
    if (result == CUDA_SUCCESS && !context_flags_valid(flags)) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) {
        *context = context_open(device, false);
        if (*context == NULL) result = CUDA_ERROR_OUT_OF_MEMORY;
        else if (!current_push(*context)) result = CUDA_ERROR_INVALID_VALUE;
        else (*context)->flags = flags;
    }
    return driver_leave(result);
}

CUresult cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device)
{
    return create(context, flags, device);
}

CUresult cuCtxCreate_v4(CUcontext *context, void *parameters, unsigned flags, CUdevice device)
{
    return parameters == NULL ? create(context, flags, device) : CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuCtxDestroy_v2(CUcontext context)
{
    CUresult result = driver_enter();
    if (result == CUDA_SUCCESS && (context == NULL || !context_lives(context) || context->primary))
        result = context == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_CONTEXT;
    if (result == CUDA_SUCCESS) {
        struct CUctx_st *popped;
        if (current_get() == context) current_pop(&popped);
        context_close(context);
    }
    return driver_leave(result);
}

CUresult cuCtxPushCurrent_v2(CUcontext context)
{
    CUresult result = driver_enter();
    if (result == CUDA_SUCCESS && !context_lives(context)) result = CUDA_ERROR_INVALID_CONTEXT;
    if (result == CUDA_SUCCESS && !current_push(context)) result = CUDA_ERROR_INVALID_VALUE;
    return driver_leave(result);
}

CUresult cuCtxPopCurrent_v2(CUcontext *context)
{
    CUresult result = driver_enter();
    struct CUctx_st *popped = NULL;
    if (result == CUDA_SUCCESS && !current_pop(&popped)) result = CUDA_ERROR_INVALID_CONTEXT;
    if (result == CUDA_SUCCESS && context != NULL) *context = popped;
    return driver_leave(result);
}

CUresult cuCtxSetCurrent(CUcontext context)
{
    CUresult result = driver_enter();
    if (result == CUDA_SUCCESS && context != NULL && !context_lives(context)) result = CUDA_ERROR_INVALID_CONTEXT;
    if (result == CUDA_SUCCESS) current_set(context);
    return driver_leave(result);
}

CUresult cuCtxGetCurrent(CUcontext *context)
{
    CUresult result = driver_enter();
    if (result == CUDA_SUCCESS && context == NULL) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) *context = current_get();
    return driver_leave(result);
}

CUresult cuCtxGetDevice(CUdevice *device)
{
    CUresult result = driver_enter();
    if (result == CUDA_SUCCESS && current_get() == NULL) result = CUDA_ERROR_INVALID_CONTEXT;
    if (result == CUDA_SUCCESS && device == NULL) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS && !context_lives(current_get())) result = CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (result == CUDA_SUCCESS) *device = current_get()->device;
    return driver_leave(result);
}

CUresult cuCtxSynchronize(void)
{
    struct CUctx_st *context;
    CUresult result = driver_enter_context(&context);
    if (result == CUDA_SUCCESS && capture_in_context(context)) result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (result == CUDA_SUCCESS) result = capture_forbids(context);
    if (result == CUDA_SUCCESS) streams_land(context);
    return driver_leave(result);
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    CUresult result = driver_enter();
    if (result == CUDA_SUCCESS && context == NULL) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) result = device_check(device);
    if (result == CUDA_SUCCESS) {
        struct device *d = &driver.device[device];
        if (d->primary == NULL) d->primary = context_open(device, true);
        *context = d->primary;
        if (d->primary == NULL) result = CUDA_ERROR_OUT_OF_MEMORY;
        else d->primary->flags = d->primary_flags, d->primary_users++;
    }
    return driver_leave(result);
}

static void close_primary(struct device *d)
{
    if (d->primary != NULL) context_close(d->primary);
    d->primary = NULL;
    d->primary_users = 0;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    CUresult result = driver_enter();
    if (result == CUDA_SUCCESS) result = device_check(device);
    if (result == CUDA_SUCCESS && driver.device[device].primary_users == 0) result = CUDA_ERROR_INVALID_CONTEXT;
    if (result == CUDA_SUCCESS && --driver.device[device].primary_users == 0) close_primary(&driver.device[device]);
    return driver_leave(result);
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice device)
{
    CUresult result = driver_enter();
    if (result == CUDA_SUCCESS) result = device_check(device);
    if (result == CUDA_SUCCESS) close_primary(&driver.device[device]);
    return driver_leave(result);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active)
{
    CUresult result = driver_enter();
    if (result == CUDA_SUCCESS) result = device_check(device);
    if (result == CUDA_SUCCESS && (flags == NULL || active == NULL)) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        *flags = driver.device[device].primary_flags, *active = driver.device[device].primary != NULL;
    return driver_leave(result);
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned flags)
{
    CUresult result = driver_enter();
    if (result == CUDA_SUCCESS) result = device_check(device);
    if (result == CUDA_SUCCESS && !context_flags_valid(flags)) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) driver.device[device].primary_flags = flags;
    if (result == CUDA_SUCCESS && driver.device[device].primary != NULL) driver.device[device].primary->flags = flags;
    return driver_leave(result);
}
