/* Contexts: the primary one and others; which one is current; streams and events belong to them. */
#include <stdio.h>
#include <stdlib.h>

#include "driver/capture.h"
#include "driver/current.h"
#include "driver/module.h"

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

struct CUctx_st *context_open(bool primary)
{
    struct CUctx_st *context = calloc(1, sizeof *context);
    if (context == NULL) return NULL;
    machine_open(&context->machine, driver.device, &driver.options);
    context->machine.print = print;
    context->machine.watch = driver_watch();
    context->primary = primary;
    context->next = driver.contexts;
    driver.contexts = context;
    return context;
}

static void close_modules(struct CUctx_st *context)
{
    while (context->modules != NULL) {
        struct CUmod_st *module = context->modules;
        context->modules = module->next;
        module_close(context, module);
    }
}

void context_close(struct CUctx_st *context)
{
    struct CUctx_st **link = &driver.contexts;
    while (*link != context) link = &(*link)->next;
    *link = context->next;
    captures_drop(context);
    close_modules(context);
    while (context->streams != NULL) {
        struct CUstream_st *next = context->streams->next;
        tail_clear(&context->streams->tail);
        free(context->streams);
        context->streams = next;
    }
    while (context->events != NULL) {
        struct CUevent_st *next = context->events->next;
        tail_clear(&context->events->tail);
        free(context->events);
        context->events = next;
    }
    machine_close(&context->machine);
    free(context);
}

bool context_lives(const struct CUctx_st *context)
{
    for (const struct CUctx_st *c = driver.contexts; c != NULL; c = c->next)
        if (c == context) return true;
    return false;
}

static CUresult create(CUcontext *context, CUdevice device)
{
    CUresult result = driver_enter();
    if (result == CUDA_SUCCESS && context == NULL) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS && device != 0) result = CUDA_ERROR_INVALID_DEVICE;
    if (result == CUDA_SUCCESS) {
        *context = context_open(false);
        if (*context == NULL) result = CUDA_ERROR_OUT_OF_MEMORY;
        else if (!current_push(*context)) result = CUDA_ERROR_INVALID_VALUE;
    }
    return driver_leave(result);
}

CUresult cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device)
{
    (void)flags;
    return create(context, device);
}

CUresult cuCtxCreate_v4(CUcontext *context, void *parameters, unsigned flags, CUdevice device)
{
    (void)flags;
    return parameters == NULL ? create(context, device) : CUDA_ERROR_NOT_SUPPORTED;
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
    if (result == CUDA_SUCCESS) *device = 0;
    return driver_leave(result);
}

CUresult cuCtxSynchronize(void)
{
    struct CUctx_st *context;
    CUresult result = driver_enter_context(&context);
    if (result == CUDA_SUCCESS) result = capture_allows_unsafe_call(context);
    return driver_leave(result);
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    CUresult result = driver_enter();
    if (result == CUDA_SUCCESS && context == NULL) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS && device != 0) result = CUDA_ERROR_INVALID_DEVICE;
    if (result == CUDA_SUCCESS) {
        if (driver.primary == NULL) driver.primary = context_open(true);
        *context = driver.primary;
        if (driver.primary == NULL) result = CUDA_ERROR_OUT_OF_MEMORY;
        else driver.primary_users++;
    }
    return driver_leave(result);
}

static void close_primary(void)
{
    if (driver.primary != NULL) context_close(driver.primary);
    driver.primary = NULL;
    driver.primary_users = 0;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    CUresult result = driver_enter();
    if (result == CUDA_SUCCESS && device != 0) result = CUDA_ERROR_INVALID_DEVICE;
    if (result == CUDA_SUCCESS && driver.primary_users == 0) result = CUDA_ERROR_INVALID_CONTEXT;
    if (result == CUDA_SUCCESS && --driver.primary_users == 0) close_primary();
    return driver_leave(result);
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice device)
{
    CUresult result = driver_enter();
    if (result == CUDA_SUCCESS && device != 0) result = CUDA_ERROR_INVALID_DEVICE;
    if (result == CUDA_SUCCESS) close_primary();
    return driver_leave(result);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active)
{
    CUresult result = driver_enter();
    if (result == CUDA_SUCCESS && device != 0) result = CUDA_ERROR_INVALID_DEVICE;
    if (result == CUDA_SUCCESS && (flags == NULL || active == NULL)) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) *flags = 0, *active = driver.primary != NULL;
    return driver_leave(result);
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned flags)
{
    (void)flags;
    CUresult result = driver_enter();
    if (result == CUDA_SUCCESS && device != 0) result = CUDA_ERROR_INVALID_DEVICE;
    return driver_leave(result);
}
