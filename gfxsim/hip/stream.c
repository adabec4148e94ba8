/* Streams, events, captures and graphs.  Work has ended when the call that gave it returns. */
#include "hip.h"

#include <stdlib.h>
#include <time.h>

#define NEW(list, result) \
    do { \
        const hipError_t entered = hip_enter(); \
        if (entered != hipSuccess || (result) == NULL) \
            return hip_leave(entered != hipSuccess ? entered : hipErrorInvalidValue); \
        *(result) = calloc(1, sizeof **(result)); \
        if (*(result) == NULL) return hip_leave(hipErrorOutOfMemory); \
        (*(result))->next = (list); \
        (list) = *(result); \
    } while (0)

/* Takes it out of its list; false: it is not there. */
#define REMOVE(list, handle, found) \
    do { \
        (found) = false; \
        for (__typeof__(handle) *at = &(list); *at != NULL; at = &(*at)->next) \
            if (*at == (handle)) { \
                *at = (handle)->next; \
                (found) = true; \
                break; \
            } \
    } while (0)

HIP_EXPORT hipError_t hipStreamCreateWithFlags(hipStream_t *stream, unsigned flags);
hipError_t hipStreamCreateWithFlags(hipStream_t *stream, unsigned flags)
{
    if (flags > 1) return hipErrorInvalidValue;
    NEW(hip.streams, stream);
    return hip_leave(hipSuccess);
}

static void free_graph(struct hip_graph *g)
{
    work_free(g->work, g->count);
    free(g);
}

HIP_EXPORT hipError_t hipStreamDestroy(hipStream_t stream);
hipError_t hipStreamDestroy(hipStream_t stream)
{
    bool found;
    (void)hip_enter();
    REMOVE(hip.streams, stream, found);
    if (!found) return hip_leave(hipErrorInvalidHandle);
    if (stream->capture != NULL) free_graph(stream->capture);
    free(stream);
    return hip_leave(hip.fault);
}

static hipError_t waits(hipStream_t stream)
{
    hipError_t r = hip_enter();
    if (r == hipSuccess && !stream_lives(stream)) r = hipErrorInvalidHandle;
    if (r == hipSuccess && stream_capture(stream) != NULL) r = hipErrorStreamCaptureUnsupported;
    return hip_leave(r);
}
HIP_EXPORT hipError_t hipStreamSynchronize(hipStream_t stream);
hipError_t hipStreamSynchronize(hipStream_t stream) { return waits(stream); }
HIP_EXPORT hipError_t hipStreamQuery(hipStream_t stream);
hipError_t hipStreamQuery(hipStream_t stream) { return waits(stream); }

/* ---- events ---- */

static bool event_lives(hipEvent_t event)
{
    for (const struct hip_event *e = hip.events; e != NULL; e = e->next)
        if (e == event) return true;
    return false;
}

HIP_EXPORT hipError_t hipEventCreateWithFlags(hipEvent_t *event, unsigned flags);
hipError_t hipEventCreateWithFlags(hipEvent_t *event, unsigned flags)
{
    (void)flags;
    NEW(hip.events, event);
    return hip_leave(hipSuccess);
}

HIP_EXPORT hipError_t hipEventDestroy(hipEvent_t event);
hipError_t hipEventDestroy(hipEvent_t event)
{
    bool found;
    (void)hip_enter();
    REMOVE(hip.events, event, found);
    if (found) free(event);
    return hip_leave(found ? hipSuccess : hipErrorInvalidHandle);
}

HIP_EXPORT hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream);
hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream)
{
    hipError_t r = hip_enter();
    if (r == hipSuccess && (!event_lives(event) || !stream_lives(stream))) r = hipErrorInvalidHandle;
    if (r != hipSuccess) return hip_leave(r);
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    event->recorded = true;
    event->milliseconds = (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
    return hip_leave(hipSuccess);
}

static hipError_t event_waits(hipEvent_t event)
{
    hipError_t r = hip_enter();
    if (r == hipSuccess && !event_lives(event)) r = hipErrorInvalidHandle;
    return hip_leave(r);
}
HIP_EXPORT hipError_t hipEventSynchronize(hipEvent_t event);
hipError_t hipEventSynchronize(hipEvent_t event) { return event_waits(event); }
HIP_EXPORT hipError_t hipEventQuery(hipEvent_t event);
hipError_t hipEventQuery(hipEvent_t event) { return event_waits(event); }

HIP_EXPORT hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned flags);
hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned flags)
{
    hipError_t r = hip_enter();
    if (r == hipSuccess && (!stream_lives(stream) || !event_lives(event))) r = hipErrorInvalidHandle;
    if (r == hipSuccess && flags != 0) r = hipErrorInvalidValue;
    return hip_leave(r);
}

HIP_EXPORT hipError_t hipEventElapsedTime(float *milliseconds, hipEvent_t from, hipEvent_t to);
hipError_t hipEventElapsedTime(float *milliseconds, hipEvent_t from, hipEvent_t to)
{
    hipError_t r = hip_enter();
    if (r == hipSuccess && milliseconds == NULL) r = hipErrorInvalidValue;
    if (r == hipSuccess && (!event_lives(from) || !event_lives(to) || !from->recorded || !to->recorded))
        r = hipErrorInvalidHandle;
    if (r == hipSuccess) *milliseconds = (float)(to->milliseconds - from->milliseconds);
    return hip_leave(r);
}

/* ---- captures and graphs ---- */

HIP_EXPORT hipError_t hipStreamIsCapturing(hipStream_t stream, int *status);
hipError_t hipStreamIsCapturing(hipStream_t stream, int *status)
{
    hipError_t r = hip_enter();
    if (r == hipSuccess && (status == NULL || !stream_lives(stream)))
        r = status == NULL ? hipErrorInvalidValue : hipErrorInvalidHandle;
    if (r == hipSuccess) *status = stream_capture(stream) != NULL;
    return hip_leave(r);
}

HIP_EXPORT hipError_t hipStreamBeginCapture(hipStream_t stream, int mode);
hipError_t hipStreamBeginCapture(hipStream_t stream, int mode)
{
    hipError_t r = hip_enter();
    if (r == hipSuccess && (mode < 0 || mode > 2)) r = hipErrorInvalidValue;
    if (r == hipSuccess && !stream_lives(stream)) r = hipErrorInvalidHandle;
    if (r == hipSuccess && ((uintptr_t)stream <= 2 || stream->capture != NULL)) r = hipErrorIllegalState;
    if (r == hipSuccess && (stream->capture = calloc(1, sizeof *stream->capture)) == NULL) r = hipErrorOutOfMemory;
    return hip_leave(r);
}

HIP_EXPORT hipError_t hipStreamEndCapture(hipStream_t stream, hipGraph_t *graph);
hipError_t hipStreamEndCapture(hipStream_t stream, hipGraph_t *graph)
{
    hipError_t r = hip_enter();
    if (r == hipSuccess && graph == NULL) r = hipErrorInvalidValue;
    if (r == hipSuccess && !stream_lives(stream)) r = hipErrorInvalidHandle;
    if (r == hipSuccess && stream_capture(stream) == NULL) r = hipErrorStreamCaptureUnmatched;
    if (r != hipSuccess) return hip_leave(r);
    *graph = stream->capture;
    stream->capture = NULL;
    (*graph)->next = hip.graphs;
    hip.graphs = *graph;
    return hip_leave(hipSuccess);
}

HIP_EXPORT hipError_t hipGraphDestroy(hipGraph_t graph);
hipError_t hipGraphDestroy(hipGraph_t graph)
{
    bool found;
    (void)hip_enter();
    REMOVE(hip.graphs, graph, found);
    if (found) free_graph(graph);
    return hip_leave(found ? hipSuccess : hipErrorInvalidValue);
}

HIP_EXPORT hipError_t hipGraphInstantiate(hipGraphExec_t *exec, hipGraph_t graph, void *node, char *log, size_t bytes);
hipError_t hipGraphInstantiate(hipGraphExec_t *exec, hipGraph_t graph, void *node, char *log, size_t bytes)
{
    (void)node, (void)log, (void)bytes;
    NEW(hip.execs, exec);
    struct hip_graph_exec *made = *exec;
    const struct hip_graph *g = hip.graphs;
    while (g != NULL && g != graph) g = g->next;
    hipError_t r = g == NULL ? hipErrorInvalidValue : hipSuccess;
    if (g != NULL && (made->work = calloc(g->count + 1, sizeof *made->work)) == NULL) r = hipErrorOutOfMemory;
    for (; r == hipSuccess && made->count < g->count; made->count++)
        if (!work_copy(&made->work[made->count], &g->work[made->count])) {
            r = hipErrorOutOfMemory;
            break;
        }
    if (r == hipSuccess) return hip_leave(r);
    hip.execs = made->next;
    work_free(made->work, made->count);
    free(made);
    return hip_leave(r);
}

static bool exec_lives(hipGraphExec_t exec)
{
    for (const struct hip_graph_exec *e = hip.execs; e != NULL; e = e->next)
        if (e == exec) return true;
    return false;
}

HIP_EXPORT hipError_t hipGraphLaunch(hipGraphExec_t exec, hipStream_t stream);
hipError_t hipGraphLaunch(hipGraphExec_t exec, hipStream_t stream)
{
    hipError_t r = hip_enter();
    if (r == hipSuccess && (!exec_lives(exec) || !stream_lives(stream))) r = hipErrorInvalidHandle;
    if (r == hipSuccess && stream_capture(stream) != NULL) r = hipErrorStreamCaptureUnsupported;
    for (uint32_t i = 0; r == hipSuccess && i < exec->count && hip.fault == hipSuccess; i++)
        r = work_run(&exec->work[i]);
    return hip_leave(r);
}

HIP_EXPORT hipError_t hipGraphExecDestroy(hipGraphExec_t exec);
hipError_t hipGraphExecDestroy(hipGraphExec_t exec)
{
    bool found;
    (void)hip_enter();
    REMOVE(hip.execs, exec, found);
    if (found) {
        work_free(exec->work, exec->count);
        free(exec);
    }
    return hip_leave(found ? hipSuccess : hipErrorInvalidValue);
}
