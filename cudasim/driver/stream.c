/* Streams and events.  Work is done when it is given to a stream, so waiting is checking for faults and captures. */
#include <stdlib.h>

#include "driver/capture.h"

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

CUDASIM_EXPORT CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end);
CUDASIM_EXPORT CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned flags);
CUDASIM_EXPORT CUresult cuStreamGetFlags(CUstream stream, unsigned *flags);
CUDASIM_EXPORT CUresult cuStreamGetPriority(CUstream stream, int *priority);
CUDASIM_EXPORT CUresult cuStreamGetCtx(CUstream stream, CUcontext *context);
CUDASIM_EXPORT CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest);

enum { EVENT_DISABLE_TIMING = 2, LEAST_PRIORITY = 0, GREATEST_PRIORITY = -5 };

bool stream_lives(const struct CUctx_st *context, const struct CUstream_st *stream)
{
    if ((uintptr_t)stream <= 2) return true;
    for (const struct CUstream_st *s = context->streams; s != NULL; s = s->next)
        if (s == stream) return true;
    return false;
}

bool event_lives(const struct CUctx_st *context, const struct CUevent_st *event)
{
    for (const struct CUevent_st *e = context->events; e != NULL; e = e->next)
        if (e == event) return true;
    return false;
}

CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority)
{
    struct CUctx_st *context;
    CUresult result = driver_enter_context(&context);
    if (result == CUDA_SUCCESS && (stream == NULL || flags > CU_STREAM_NON_BLOCKING)) result = CUDA_ERROR_INVALID_VALUE;
    struct CUstream_st *made = result == CUDA_SUCCESS ? calloc(1, sizeof *made) : NULL;
    if (result == CUDA_SUCCESS && made == NULL) result = CUDA_ERROR_OUT_OF_MEMORY;
    if (result == CUDA_SUCCESS) {
        *made = (struct CUstream_st){ .next = context->streams, .context = context, .flags = flags, .priority = priority };
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
        if (stream->capture != NULL) stream->capture->invalid = true;
        tail_clear(&stream->tail);
        free(stream);
    }
    return driver_leave(result);
}

CUresult cuStreamSynchronize(CUstream stream)
{
    struct CUctx_st *context;
    CUresult result = driver_enter_context(&context);
    if (result == CUDA_SUCCESS && !stream_lives(context, stream)) result = CUDA_ERROR_INVALID_HANDLE;
    if (result == CUDA_SUCCESS) result = capture_allows_waiting(context, stream);
    if (result == CUDA_SUCCESS && (uintptr_t)stream <= 1) result = capture_allows_legacy_stream(context);
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
    if (result == CUDA_SUCCESS) result = capture_wait_event(context, stream, event);
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
        *made = (struct CUevent_st){ .next = context->events, .context = context, .flags = flags };
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
        tail_clear(&event->tail);
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
    struct capture *capture = result == CUDA_SUCCESS ? stream_capture(context, stream) : NULL;
    if (capture != NULL) {
        result = capture_record_event(capture, stream, event);
    } else if (result == CUDA_SUCCESS) {
        struct work work = { .kind = WORK_EVENT_RECORD, .as.event = event };
        event->capture = NULL;
        tail_clear(&event->tail);
        result = stream_submit(context, stream, &work);
    }
    return driver_leave(result);
}

CUresult cuEventSynchronize(CUevent event)
{
    struct CUctx_st *context;
    CUresult result = driver_enter_context(&context);
    if (result == CUDA_SUCCESS && !event_lives(context, event)) result = CUDA_ERROR_INVALID_HANDLE;
    if (result == CUDA_SUCCESS && event->capture != NULL) result = CUDA_ERROR_CAPTURED_EVENT;
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
        (!event_lives(context, start) || !event_lives(context, end) || !start->recorded || !end->recorded ||
         ((start->flags | end->flags) & EVENT_DISABLE_TIMING) != 0))
        result = CUDA_ERROR_INVALID_HANDLE;
    if (result == CUDA_SUCCESS) *milliseconds = (float)((double)(end->nanoseconds - start->nanoseconds) * 1e-6);
    return driver_leave(result);
}

CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end) { return cuEventElapsedTime_v2(milliseconds, start, end); }

CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned flags)
{
    if (flags == 0) return cuEventRecord(event, stream);
    driver_say("cudasim: cuEventRecordWithFlags: external events in captures are not simulated\n");
    return flags == 1 ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
}

/* ---- questions ---- */

static CUresult begin(struct CUctx_st **context, CUstream stream, const void *answer)
{
    const CUresult result = driver_enter_context(context);
    if (result != CUDA_SUCCESS) return result;
    if (!stream_lives(*context, stream)) return CUDA_ERROR_INVALID_HANDLE;
    return answer == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuStreamGetFlags(CUstream stream, unsigned *flags)
{
    struct CUctx_st *context;
    const CUresult result = begin(&context, stream, flags);
    if (result == CUDA_SUCCESS) *flags = (uintptr_t)stream <= 2 ? CU_STREAM_DEFAULT : stream->flags;
    return driver_leave(result);
}

CUresult cuStreamGetPriority(CUstream stream, int *priority)
{
    struct CUctx_st *context;
    const CUresult result = begin(&context, stream, priority);
    if (result == CUDA_SUCCESS) *priority = (uintptr_t)stream <= 2 ? 0 : stream->priority;
    return driver_leave(result);
}

CUresult cuStreamGetCtx(CUstream stream, CUcontext *answer)
{
    struct CUctx_st *context;
    const CUresult result = begin(&context, stream, answer);
    if (result == CUDA_SUCCESS) *answer = context;
    return driver_leave(result);
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    struct CUctx_st *context;
    const CUresult result = driver_enter_context(&context);
    if (result == CUDA_SUCCESS && least != NULL) *least = LEAST_PRIORITY;
    if (result == CUDA_SUCCESS && greatest != NULL) *greatest = GREATEST_PRIORITY;
    return driver_leave(result);
}
