/* Streams and events.  Work is done when it is given to a stream, so waiting is checking for faults. */
#include <stdlib.h>
#include <time.h>

#include "driver/driver.h"

CUDASIM_EXPORT CUresult cuStreamCreate(CUstream *stream, unsigned flags);
CUDASIM_EXPORT CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority);
CUDASIM_EXPORT CUresult cuStreamDestroy_v2(CUstream stream);
CUDASIM_EXPORT CUresult cuStreamSynchronize(CUstream stream);
CUDASIM_EXPORT CUresult cuStreamQuery(CUstream stream);
CUDASIM_EXPORT CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags);
CUDASIM_EXPORT CUresult cuEventCreate(CUevent *event, unsigned flags);
CUDASIM_EXPORT CUresult cuEventDestroy_v2(CUevent event);
CUDASIM_EXPORT CUresult cuEventRecord(CUevent event, CUstream stream);
CUDASIM_EXPORT CUresult cuEventSynchronize(CUevent event);
CUDASIM_EXPORT CUresult cuEventQuery(CUevent event);
CUDASIM_EXPORT CUresult cuEventElapsedTime_v2(float *milliseconds, CUevent start, CUevent end);

bool stream_lives(const struct CUctx_st *context, const struct CUstream_st *stream)
{
    if ((uintptr_t)stream <= 2) return true;
    for (const struct CUstream_st *s = context->streams; s != NULL; s = s->next)
        if (s == stream) return true;
    return false;
}

static bool event_lives(const struct CUctx_st *context, const struct CUevent_st *event)
{
    for (const struct CUevent_st *e = context->events; e != NULL; e = e->next)
        if (e == event) return true;
    return false;
}

CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority)
{
    (void)priority;
    struct CUctx_st *context;
    CUresult result = driver_enter_context(&context);
    if (result == CUDA_SUCCESS && (stream == NULL || flags > CU_STREAM_NON_BLOCKING)) result = CUDA_ERROR_INVALID_VALUE;
    struct CUstream_st *made = result == CUDA_SUCCESS ? calloc(1, sizeof *made) : NULL;
    if (result == CUDA_SUCCESS && made == NULL) result = CUDA_ERROR_OUT_OF_MEMORY;
    if (result == CUDA_SUCCESS) {
        *made = (struct CUstream_st){ .next = context->streams, .context = context, .flags = flags };
        context->streams = *stream = made;
    }
    return driver_leave(result);
}

CUresult cuStreamCreate(CUstream *stream, unsigned flags) { return cuStreamCreateWithPriority(stream, flags, 0); }

CUresult cuStreamDestroy_v2(CUstream stream)
{
    struct CUctx_st *context;
    CUresult result = driver_enter_context(&context);
    struct CUstream_st **link = context == NULL ? NULL : &context->streams;
    while (link != NULL && *link != NULL && *link != stream) link = &(*link)->next;
    if (result == CUDA_SUCCESS && *link == NULL) result = CUDA_ERROR_INVALID_HANDLE;
    if (result == CUDA_SUCCESS) {
        *link = stream->next;
        free(stream);
    }
    return driver_leave(result);
}

CUresult cuStreamSynchronize(CUstream stream)
{
    struct CUctx_st *context;
    CUresult result = driver_enter_context(&context);
    if (result == CUDA_SUCCESS && !stream_lives(context, stream)) result = CUDA_ERROR_INVALID_HANDLE;
    return driver_leave(result);
}

CUresult cuStreamQuery(CUstream stream) { return cuStreamSynchronize(stream); }

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags)
{
    struct CUctx_st *context;
    CUresult result = driver_enter_context(&context);
    if (result == CUDA_SUCCESS && (!stream_lives(context, stream) || !event_lives(context, event)))
        result = CUDA_ERROR_INVALID_HANDLE;
    if (result == CUDA_SUCCESS && flags > 1) result = CUDA_ERROR_INVALID_VALUE;
    return driver_leave(result);
}

CUresult cuEventCreate(CUevent *event, unsigned flags)
{
    struct CUctx_st *context;
    CUresult result = driver_enter_context(&context);
    if (result == CUDA_SUCCESS && (event == NULL || flags > 7)) result = CUDA_ERROR_INVALID_VALUE;
    struct CUevent_st *made = result == CUDA_SUCCESS ? calloc(1, sizeof *made) : NULL;
    if (result == CUDA_SUCCESS && made == NULL) result = CUDA_ERROR_OUT_OF_MEMORY;
    if (result == CUDA_SUCCESS) {
        *made = (struct CUevent_st){ .next = context->events, .context = context };
        context->events = *event = made;
    }
    return driver_leave(result);
}

CUresult cuEventDestroy_v2(CUevent event)
{
    struct CUctx_st *context;
    CUresult result = driver_enter_context(&context);
    struct CUevent_st **link = context == NULL ? NULL : &context->events;
    while (link != NULL && *link != NULL && *link != event) link = &(*link)->next;
    if (result == CUDA_SUCCESS && *link == NULL) result = CUDA_ERROR_INVALID_HANDLE;
    if (result == CUDA_SUCCESS) {
        *link = event->next;
        free(event);
    }
    return driver_leave(result);
}

CUresult cuEventRecord(CUevent event, CUstream stream)
{
    struct CUctx_st *context;
    CUresult result = driver_enter_context(&context);
    if (result == CUDA_SUCCESS && (!stream_lives(context, stream) || !event_lives(context, event)))
        result = CUDA_ERROR_INVALID_HANDLE;
    if (result == CUDA_SUCCESS) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        event->recorded = true;
        event->nanoseconds = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    }
    return driver_leave(result);
}

CUresult cuEventSynchronize(CUevent event)
{
    struct CUctx_st *context;
    CUresult result = driver_enter_context(&context);
    if (result == CUDA_SUCCESS && !event_lives(context, event)) result = CUDA_ERROR_INVALID_HANDLE;
    return driver_leave(result);
}

CUresult cuEventQuery(CUevent event) { return cuEventSynchronize(event); }

/* The host's time: of the simulation, not of a device. */
CUresult cuEventElapsedTime_v2(float *milliseconds, CUevent start, CUevent end)
{
    struct CUctx_st *context;
    CUresult result = driver_enter_context(&context);
    if (result == CUDA_SUCCESS && milliseconds == NULL) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS &&
        (!event_lives(context, start) || !event_lives(context, end) || !start->recorded || !end->recorded))
        result = CUDA_ERROR_INVALID_HANDLE;
    if (result == CUDA_SUCCESS) *milliseconds = (float)((double)(end->nanoseconds - start->nanoseconds) * 1e-6);
    return driver_leave(result);
}
