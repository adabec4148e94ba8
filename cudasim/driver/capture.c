/* Capturing: what is given to a stream becomes nodes of a graph. */
#include "driver/capture.h"

#include <stdlib.h>
#include <string.h>

#include "driver/graph.h"

CUDASIM_EXPORT CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode);
CUDASIM_EXPORT CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode *after, const void *edges,
                                                    size_t count, CUstreamCaptureMode mode);
CUDASIM_EXPORT CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph);
CUDASIM_EXPORT CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status);
CUDASIM_EXPORT CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *identity, CUgraph *graph,
                                                  const CUgraphNode **after, size_t *count);
CUDASIM_EXPORT CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode);

static _Thread_local CUstreamCaptureMode thread_mode;

bool tail_add(struct tail *tail, const struct tail *more)
{
    for (size_t i = 0; i < more->count; i++) {
        bool known = false;
        for (size_t j = 0; j < tail->count; j++) known = known || tail->node[j] == more->node[i];
        if (known) continue;
        if (tail->count == tail->capacity) {
            const size_t capacity = tail->capacity == 0 ? 8 : 2 * tail->capacity;
            CUgraphNode *larger = realloc(tail->node, capacity * sizeof *larger);
            if (larger == NULL) return false;
            tail->node = larger;
            tail->capacity = capacity;
        }
        tail->node[tail->count++] = more->node[i];
    }
    return true;
}

void tail_clear(struct tail *tail)
{
    free(tail->node);
    *tail = (struct tail){ NULL, 0, 0 };
}

static bool tail_set(struct tail *tail, CUgraphNode node)
{
    tail->count = 0;
    return tail_add(tail, &(struct tail){ .node = &node, .count = 1 });
}

struct capture *stream_capture(const struct CUctx_st *context, CUstream stream)
{
    (void)context;
    return (uintptr_t)stream <= 2 ? NULL : stream->capture;
}

/* ---- what a capture forbids ---- */

static CUresult spoil(struct capture *capture, CUresult code)
{
    capture->invalid = true;
    return code;
}

/* Global: any thread's unsafe call; thread-local: the same thread's; relaxed: none.  A thread that says relaxed is let through. */
CUresult capture_allows_unsafe_call(struct CUctx_st *context)
{
    if (thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_SUCCESS;
    CUresult result = CUDA_SUCCESS;
    for (struct capture *c = context->captures; c != NULL; c = c->next) {
        const bool own = pthread_equal(c->thread, pthread_self()) != 0;
        if (c->mode == CU_STREAM_CAPTURE_MODE_RELAXED) continue;
        if (c->mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL && !own) continue;
        if (c->mode == CU_STREAM_CAPTURE_MODE_GLOBAL && !own && thread_mode != CU_STREAM_CAPTURE_MODE_GLOBAL) continue;
        result = spoil(c, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }
    return result;
}

CUresult capture_allows_legacy_stream(struct CUctx_st *context)
{
    CUresult result = CUDA_SUCCESS;
    for (const struct CUstream_st *s = context->streams; s != NULL; s = s->next)
        if (s->capture != NULL && (s->flags & CU_STREAM_NON_BLOCKING) == 0)
            result = spoil(s->capture, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    return result;
}

CUresult capture_allows_waiting(struct CUctx_st *context, CUstream stream)
{
    struct capture *capture = stream_capture(context, stream);
    return capture == NULL ? CUDA_SUCCESS : spoil(capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

/* ---- submitting ---- */

static CUresult record(struct capture *capture, struct CUstream_st *stream, struct work *work)
{
    CUgraphNode node;
    if (capture->invalid) {
        work_release(work);
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    }
    const CUresult result = graph_add(capture->graph, work, stream->tail.node, stream->tail.count, &node);
    if (result != CUDA_SUCCESS) return spoil(capture, result);
    return tail_set(&stream->tail, node) ? CUDA_SUCCESS : spoil(capture, CUDA_ERROR_OUT_OF_MEMORY);
}

CUresult stream_submit(struct CUctx_st *context, CUstream stream, struct work *work)
{
    struct capture *capture = stream_capture(context, stream);
    CUresult result = work_check(context, work);
    if (result == CUDA_SUCCESS && (uintptr_t)stream <= 1) result = capture_allows_legacy_stream(context);
    if (result == CUDA_SUCCESS && capture != NULL) return record(capture, stream, work);
    if (result == CUDA_SUCCESS) result = work_run(context, work);
    work_release(work);
    return result;
}

CUresult stream_submit_blocking(struct CUctx_st *context, struct work *work)
{
    CUresult result = work_check(context, work);
    if (result == CUDA_SUCCESS) result = capture_allows_legacy_stream(context);
    if (result == CUDA_SUCCESS) result = capture_allows_unsafe_call(context);
    if (result == CUDA_SUCCESS) result = work_run(context, work);
    work_release(work);
    return result;
}

/* ---- events ---- */

CUresult capture_record_event(struct capture *capture, struct CUstream_st *stream, struct CUevent_st *event)
{
    if (capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    tail_clear(&event->tail);
    event->capture = capture;
    return tail_add(&event->tail, &stream->tail) ? CUDA_SUCCESS : spoil(capture, CUDA_ERROR_OUT_OF_MEMORY);
}

/* The stream joins the event's capture; one that captures already must be of the same. */
CUresult capture_wait_event(struct CUctx_st *context, struct CUstream_st *stream, struct CUevent_st *event)
{
    struct capture *capture = stream_capture(context, stream);
    if (event->capture == NULL) return capture == NULL ? CUDA_SUCCESS : spoil(capture, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    if ((uintptr_t)stream <= 2) return spoil(event->capture, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    if (event->capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (capture != NULL && capture != event->capture) {
        spoil(capture, CUDA_SUCCESS);
        return spoil(event->capture, CUDA_ERROR_STREAM_CAPTURE_MERGE);
    }
    stream->capture = event->capture;
    return tail_add(&stream->tail, &event->tail) ? CUDA_SUCCESS : spoil(event->capture, CUDA_ERROR_OUT_OF_MEMORY);
}

/* ---- begin and end ---- */

static CUresult begin(struct CUctx_st *context, CUstream stream, CUgraph graph, const struct tail *after, CUstreamCaptureMode mode)
{
    if ((uintptr_t)stream <= 2) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (stream->capture != NULL) return CUDA_ERROR_ILLEGAL_STATE;
    struct capture *capture = calloc(1, sizeof *capture);
    if (capture == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    *capture = (struct capture){ .next = context->captures, .graph = graph, .origin = stream, .thread = pthread_self(), .mode = mode,
                                 .identity = ++driver.captures, .owns_graph = graph == NULL };
    if (graph == NULL) capture->graph = graph_open(context);
    tail_clear(&stream->tail);
    if (capture->graph == NULL || !tail_add(&stream->tail, after)) {
        if (capture->owns_graph && capture->graph != NULL) graph_close(capture->graph);
        free(capture);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    context->captures = stream->capture = capture;
    return CUDA_SUCCESS;
}

CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode *after, const void *edges, size_t count,
                                     CUstreamCaptureMode mode)
{
    struct CUctx_st *context;
    CUresult result = driver_enter_context(&context);
    if (result == CUDA_SUCCESS && !stream_lives(context, stream)) result = CUDA_ERROR_INVALID_HANDLE;
    if (result == CUDA_SUCCESS && (mode > CU_STREAM_CAPTURE_MODE_RELAXED || !graph_lives(graph) || (count != 0 && after == NULL)))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS && edges != NULL) result = CUDA_ERROR_NOT_SUPPORTED;
    for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++)
        if (!graph_node_lives(after[i]) || after[i]->graph != graph) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        result = begin(context, stream, graph, &(struct tail){ .node = (CUgraphNode *)(uintptr_t)after, .count = count }, mode);
    return driver_leave(result);
}

CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode)
{
    struct CUctx_st *context;
    CUresult result = driver_enter_context(&context);
    if (result == CUDA_SUCCESS && !stream_lives(context, stream)) result = CUDA_ERROR_INVALID_HANDLE;
    if (result == CUDA_SUCCESS && mode > CU_STREAM_CAPTURE_MODE_RELAXED) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) result = begin(context, stream, NULL, &(struct tail){ NULL, 0, 0 }, mode);
    return driver_leave(result);
}

/* Streams and events forget the capture, which is freed. */
static void forget(struct CUctx_st *context, struct capture *capture)
{
    for (struct CUstream_st *s = context->streams; s != NULL; s = s->next)
        if (s->capture == capture) {
            s->capture = NULL;
            tail_clear(&s->tail);
        }
    for (struct CUevent_st *e = context->events; e != NULL; e = e->next)
        if (e->capture == capture) {
            e->capture = NULL;
            tail_clear(&e->tail);
        }
    struct capture **link = &context->captures;
    while (*link != capture) link = &(*link)->next;
    *link = capture->next;
    free(capture);
}

/* All that other streams captured must come before something in the origin. */
static bool all_joined(const struct CUctx_st *context, const struct capture *capture)
{
    for (const struct CUstream_st *s = context->streams; s != NULL; s = s->next) {
        if (s->capture != capture || s == capture->origin) continue;
        for (size_t i = 0; i < s->tail.count; i++)
            if (!graph_reaches(capture->graph, s->tail.node[i], &capture->origin->tail)) return false;
    }
    return true;
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
    struct CUctx_st *context;
    CUresult result = driver_enter_context(&context);
    if (result == CUDA_SUCCESS && !stream_lives(context, stream)) result = CUDA_ERROR_INVALID_HANDLE;
    if (result == CUDA_SUCCESS && graph == NULL) result = CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS) return driver_leave(result);
    *graph = NULL;
    struct capture *capture = stream_capture(context, stream);
    if (capture == NULL) return driver_leave(CUDA_ERROR_ILLEGAL_STATE);
    if (capture->origin != stream) return driver_leave(spoil(capture, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED));
    if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && !pthread_equal(capture->thread, pthread_self()))
        return driver_leave(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
    if (capture->invalid) result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    else if (!all_joined(context, capture)) result = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    if (result == CUDA_SUCCESS) *graph = capture->graph;
    else if (capture->owns_graph) graph_close(capture->graph);
    forget(context, capture);
    return driver_leave(result);
}

void captures_drop(struct CUctx_st *context)
{
    while (context->captures != NULL) {
        struct capture *capture = context->captures;
        if (capture->owns_graph) graph_close(capture->graph);
        forget(context, capture);
    }
}

/* ---- questions ---- */

CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *identity, CUgraph *graph,
                                   const CUgraphNode **after, size_t *count)
{
    struct CUctx_st *context;
    CUresult result = driver_enter_context(&context);
    if (result == CUDA_SUCCESS && !stream_lives(context, stream)) result = CUDA_ERROR_INVALID_HANDLE;
    if (result == CUDA_SUCCESS && status == NULL) result = CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS) return driver_leave(result);
    const struct capture *capture = stream_capture(context, stream);
    if ((uintptr_t)stream <= 1 && (result = capture_allows_legacy_stream(context)) != CUDA_SUCCESS) return driver_leave(result);
    *status = capture == NULL ? CU_STREAM_CAPTURE_STATUS_NONE : capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                                                                : CU_STREAM_CAPTURE_STATUS_ACTIVE;
    if (*status == CU_STREAM_CAPTURE_STATUS_ACTIVE) {
        if (identity != NULL) *identity = capture->identity;
        if (graph != NULL) *graph = capture->graph;
        if (after != NULL) *after = stream->tail.node;
        if (count != NULL) *count = stream->tail.count;
    }
    return driver_leave(CUDA_SUCCESS);
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status)
{
    return cuStreamGetCaptureInfo_v2(stream, status, NULL, NULL, NULL, NULL);
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    if (mode == NULL || *mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
    const CUstreamCaptureMode old = thread_mode;
    thread_mode = *mode;
    *mode = old;
    return CUDA_SUCCESS;
}
