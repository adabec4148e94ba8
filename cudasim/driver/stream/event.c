/* Events. */
#include <stdlib.h>
#include <time.h>

#include "driver/graph/capture.h"

CUDASIM_EXPORT CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags);
CUDASIM_EXPORT CUresult cuEventCreate(CUevent *event, unsigned flags);
CUDASIM_EXPORT CUresult cuEventDestroy_v2(CUevent event);
CUDASIM_EXPORT CUresult cuEventRecord(CUevent event, CUstream stream);
CUDASIM_EXPORT CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned flags);
CUDASIM_EXPORT CUresult cuEventSynchronize(CUevent event);
CUDASIM_EXPORT CUresult cuEventQuery(CUevent event);
CUDASIM_EXPORT CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end);
CUDASIM_EXPORT CUresult cuEventElapsedTime_v2(float *milliseconds, CUevent start, CUevent end);

enum { EVENT_DISABLE_TIMING = 2, EVENT_INTERPROCESS = 4, EVENT_FLAGS = 7, EVENT_EXTERNAL = 1 };

void event_free(struct CUevent_st *event)
{
    handle_remove(event);
    free(event->tail);
    free(event);
}

void event_stamp(struct CUevent_st *event)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    event->recorded = true;
    event->capture = 0;
    event->nanoseconds = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Enters with a context and an event, which may be another one's. */
static CUresult begin(struct CUctx_st **context, CUevent event)
{
    const CUresult result = driver_enter_context(context);
    if (result != CUDA_SUCCESS) return result;
    return handle_is(event, HANDLE_EVENT) ? event->context->fault : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuEventCreate(CUevent *event, unsigned flags)
{
    struct CUctx_st *context;
    CUresult result = driver_enter_context(&context);
    if (result == CUDA_SUCCESS && (event == NULL || (flags & ~(unsigned)EVENT_FLAGS) != 0))
        result = CUDA_ERROR_INVALID_VALUE;
    /* An event for other processes cannot measure time. */
    if (result == CUDA_SUCCESS && (flags & EVENT_INTERPROCESS) != 0 && (flags & EVENT_DISABLE_TIMING) == 0)
        result = CUDA_ERROR_INVALID_VALUE;
    struct CUevent_st *made = result == CUDA_SUCCESS ? calloc(1, sizeof *made) : NULL;
    if (result == CUDA_SUCCESS && (made == NULL || !handle_add(made, HANDLE_EVENT))) {
        free(made);
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (result == CUDA_SUCCESS) {
        *made = (struct CUevent_st){ .next = context->events, .context = context, .flags = flags };
        context->events = *event = made;
    }
    return driver_leave(result);
}

CUresult cuEventDestroy_v2(CUevent event)
{
    struct CUctx_st *context;
    const CUresult result = begin(&context, event);
    if (result == CUDA_SUCCESS) {
        struct CUevent_st **link = &event->context->events;
        while (*link != event) link = &(*link)->next;
        *link = event->next;
        event_free(event);
    }
    return driver_leave(result);
}

/* An event that is recorded or waited for from outside the capture is a node of its own. */
static CUresult submit_node(struct CUctx_st *context, CUstream stream, CUevent event, CUgraphNodeType type)
{
    struct work work = { .type = type, .event = event };
    return work_submit(context, stream, &work);
}

CUresult cuEventRecordWithFlags(CUevent event, CUstream handle, unsigned flags)
{
    struct CUctx_st *context;
    CUresult result = begin(&context, event);
    if (result == CUDA_SUCCESS && flags > EVENT_EXTERNAL) result = CUDA_ERROR_INVALID_VALUE;
    struct CUstream_st *stream = result == CUDA_SUCCESS ? stream_find(context, handle) : NULL;
    if (result == CUDA_SUCCESS && stream == NULL) result = CUDA_ERROR_INVALID_HANDLE;
    if (result == CUDA_SUCCESS && stream->context != event->context) {
        driver_say("cudasim: cuEventRecord: the event was created in a context of device %d, and the stream in another "
                   "one, of device %d\n", (int)event->context->device, (int)stream->context->device);
        result = CUDA_ERROR_INVALID_HANDLE;
    }
    if (result == CUDA_SUCCESS) result = capture_enter(stream);
    if (result == CUDA_SUCCESS) {
        if (stream->capture == NULL) event_stamp(event), stream->flight.count = 0;
        else if (flags == EVENT_EXTERNAL) result = submit_node(context, handle, event, CU_GRAPH_NODE_TYPE_EVENT_RECORD);
        else if (!capture_record(event, stream)) result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    return driver_leave(result);
}

CUresult cuEventRecord(CUevent event, CUstream stream) { return cuEventRecordWithFlags(event, stream, 0); }

/* The stream and the event may be of different contexts: so one device waits for another. */
CUresult cuStreamWaitEvent(CUstream handle, CUevent event, unsigned flags)
{
    struct CUctx_st *context;
    CUresult result = begin(&context, event);
    if (result == CUDA_SUCCESS && flags > EVENT_EXTERNAL) result = CUDA_ERROR_INVALID_VALUE;
    struct CUstream_st *stream = result == CUDA_SUCCESS ? stream_find(context, handle) : NULL;
    if (result == CUDA_SUCCESS) result = stream == NULL ? CUDA_ERROR_INVALID_HANDLE : stream->context->fault;
    if (result == CUDA_SUCCESS) result = capture_enter(stream);
    if (result == CUDA_SUCCESS) {
        if (flags == EVENT_EXTERNAL && stream->capture != NULL)
            result = submit_node(context, handle, event, CU_GRAPH_NODE_TYPE_WAIT_EVENT);
        else
            result = capture_wait(stream, event), stream->flight.count = 0;
    }
    return driver_leave(result);
}

CUresult cuEventSynchronize(CUevent event)
{
    struct CUctx_st *context;
    CUresult result = begin(&context, event);
    if (result == CUDA_SUCCESS && capture_has_event(event)) result = CUDA_ERROR_CAPTURED_EVENT;
    if (result == CUDA_SUCCESS) result = capture_forbids(context);
    if (result == CUDA_SUCCESS) streams_land(event->context);
    return driver_leave(result);
}

CUresult cuEventQuery(CUevent event) { return cuEventSynchronize(event); }

/* The host's time: of the simulation, not of a device. */
CUresult cuEventElapsedTime_v2(float *milliseconds, CUevent start, CUevent end)
{
    struct CUctx_st *context;
    CUresult result = begin(&context, start);
    if (result == CUDA_SUCCESS && (!handle_is(end, HANDLE_EVENT) || end->context != start->context))
        result = CUDA_ERROR_INVALID_HANDLE;
    if (result == CUDA_SUCCESS && milliseconds == NULL) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS && (capture_has_event(start) || capture_has_event(end)))
        result = CUDA_ERROR_CAPTURED_EVENT;
    if (result == CUDA_SUCCESS &&
        (!start->recorded || !end->recorded || ((start->flags | end->flags) & EVENT_DISABLE_TIMING) != 0))
        result = CUDA_ERROR_INVALID_HANDLE;
    if (result == CUDA_SUCCESS)
        *milliseconds = (float)(((double)end->nanoseconds - (double)start->nanoseconds) * 1e-6);
    return driver_leave(result);
}

CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end)
{
    return cuEventElapsedTime_v2(milliseconds, start, end);
}
