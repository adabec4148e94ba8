/* Stream capture, after the CUDA driver API's section on streams: what each call does to a capture that is under
 * way. */
#include "capture.h"

#include <stdlib.h>
#include <string.h>

#include "graph.h"

CUDASIM_EXPORT CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode);
CUDASIM_EXPORT CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode *dependency,
                                                    const CUgraphEdgeData *edges, size_t count,
                                                    CUstreamCaptureMode mode);
CUDASIM_EXPORT CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph);
CUDASIM_EXPORT CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status);
CUDASIM_EXPORT CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id,
                                                  CUgraph *graph, const CUgraphNode **dependencies, size_t *count);
CUDASIM_EXPORT CUresult cuStreamGetCaptureInfo_v3(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id,
                                                  CUgraph *graph, const CUgraphNode **dependencies,
                                                  const CUgraphEdgeData **edges, size_t *count);
CUDASIM_EXPORT CUresult cuStreamUpdateCaptureDependencies_v2(CUstream stream, CUgraphNode *dependencies,
                                                             const CUgraphEdgeData *edges, size_t count,
                                                             unsigned flags);
CUDASIM_EXPORT CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode);

static struct capture *captures;          /* under way, valid or not */
static uint64_t numbers;
static _Thread_local CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

void capture_invalidate(struct capture *capture) { capture->invalid = true; }

static struct capture *find(uint64_t number)
{
    for (struct capture *c = captures; c != NULL; c = c->next)
        if (c->number == number) return c;
    return NULL;
}

/* ---- tails ---- */

static bool set_tail(struct CUgraphNode_st ***tail, size_t *count, struct CUgraphNode_st *const *from,
                     size_t from_count)
{
    struct CUgraphNode_st **copy = malloc((from_count + 1) * sizeof *copy);
    if (copy == NULL) return false;
    if (from_count != 0) memcpy(copy, from, from_count * sizeof *copy);
    free(*tail);
    *tail = copy;
    *count = from_count;
    return true;
}

static bool join_tail(struct CUstream_st *stream, struct CUgraphNode_st *const *from, size_t count)
{
    struct CUgraphNode_st **both = malloc((stream->tail_count + count + 1) * sizeof *both);
    if (both == NULL) return false;
    size_t used = 0;
    for (; used < stream->tail_count; used++) both[used] = stream->tail[used];
    for (size_t i = 0; i < count; i++) {
        size_t at = 0;
        while (at < used && both[at] != from[i]) at++;
        if (at == used) both[used++] = from[i];
    }
    free(stream->tail);
    stream->tail = both;
    stream->tail_count = used;
    return true;
}

/* ---- what other calls ask ---- */

CUresult capture_enter(struct CUstream_st *stream)
{
    if (stream->capture != NULL) return stream->capture->invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS;
    CUresult result = CUDA_SUCCESS;
    for (struct CUstream_st *s = stream->legacy ? stream->context->streams : NULL; s != NULL; s = s->next)
        if (s->capture != NULL && (s->flags & CU_STREAM_NON_BLOCKING) == 0) {
            capture_invalidate(s->capture);
            result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
        }
    return result;
}

CUresult capture_add(struct CUstream_st *stream, struct work *work)
{
    struct CUgraphNode_st *node = graph_add(stream->capture->graph, stream->tail, stream->tail_count, work);
    return node != NULL && set_tail(&stream->tail, &stream->tail_count, &node, 1) ? CUDA_SUCCESS
                                                                                  : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult capture_forbids(struct CUctx_st *context)
{
    (void)context;
    CUresult result = CUDA_SUCCESS;
    for (struct capture *c = captures; c != NULL && thread_mode != CU_STREAM_CAPTURE_MODE_RELAXED; c = c->next) {
        const bool own = pthread_equal(c->thread, pthread_self()) != 0;
        if (own ? c->mode == CU_STREAM_CAPTURE_MODE_RELAXED
                : c->mode != CU_STREAM_CAPTURE_MODE_GLOBAL || thread_mode != CU_STREAM_CAPTURE_MODE_GLOBAL)
            continue;
        capture_invalidate(c);
        result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    return result;
}

CUresult capture_wait(struct CUstream_st *stream, struct CUevent_st *event)
{
    struct capture *of_event = event->capture == 0 ? NULL : find(event->capture);
    if (event->capture != 0 && of_event == NULL) return CUDA_ERROR_CAPTURED_EVENT;
    if (of_event == NULL) {
        if (stream->capture == NULL || !event->recorded) return CUDA_SUCCESS;
        capture_invalidate(stream->capture);
        return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    }
    if (of_event->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (stream->legacy) {
        capture_invalidate(of_event);
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
    if (stream->capture != NULL && stream->capture != of_event) {
        capture_invalidate(stream->capture), capture_invalidate(of_event);
        return CUDA_ERROR_STREAM_CAPTURE_MERGE;
    }
    if (stream->capture == NULL) stream->tail_count = 0;
    if (!join_tail(stream, event->tail, event->tail_count)) return CUDA_ERROR_OUT_OF_MEMORY;
    stream->capture = of_event;
    return CUDA_SUCCESS;
}

bool capture_record(struct CUevent_st *event, const struct CUstream_st *stream)
{
    if (!set_tail(&event->tail, &event->tail_count, stream->tail, stream->tail_count)) return false;
    event->capture = stream->capture->number;
    return true;
}

bool capture_has_event(const struct CUevent_st *event)
{
    struct capture *capture = event->capture == 0 ? NULL : find(event->capture);
    if (capture != NULL) capture_invalidate(capture);
    return event->capture != 0;
}

bool capture_in_context(struct CUctx_st *context)
{
    bool any = false;
    for (struct CUstream_st *s = context->streams; s != NULL; s = s->next)
        if (s->capture != NULL) capture_invalidate(s->capture), any = true;
    return any;
}

bool capture_fills(const struct CUgraph_st *graph)
{
    for (const struct capture *c = captures; c != NULL; c = c->next)
        if (c->graph == graph) return true;
    return false;
}

/* ---- beginning and end ---- */

static void close_capture(struct capture *capture)
{
    struct capture **link = &captures;
    while (*link != capture) link = &(*link)->next;
    *link = capture->next;
    for (struct CUctx_st *c = driver.contexts; c != NULL; c = c->next)
        for (struct CUstream_st *s = c->streams; s != NULL; s = s->next)
            if (s->capture == capture) s->capture = NULL, s->tail_count = 0;
    free(capture);
}

void capture_leave(struct CUstream_st *stream)
{
    struct capture *capture = stream->capture;
    stream->capture = NULL;
    if (capture == NULL) return;
    capture_invalidate(capture);
    if (capture->origin != stream) return;
    if (capture->owns_graph) graph_free(capture->graph);
    close_capture(capture);
}

static CUresult begin(struct CUctx_st **context, CUstream handle, struct CUstream_st **stream)
{
    const CUresult result = driver_enter_context(context);
    if (result != CUDA_SUCCESS) return result;
    *stream = stream_find(*context, handle);
    return *stream == NULL ? CUDA_ERROR_INVALID_HANDLE : (*stream)->context->fault;
}

static CUresult start(struct CUstream_st *stream, struct CUgraph_st *graph, const CUgraphNode *dependency, size_t count,
                      CUstreamCaptureMode mode)
{
    if ((unsigned)mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
    if (stream->legacy) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (stream->capture != NULL) return CUDA_ERROR_ILLEGAL_STATE;
    struct capture *capture = malloc(sizeof *capture);
    struct CUgraph_st *into = graph != NULL ? graph : graph_new();
    if (capture == NULL || into == NULL || !set_tail(&stream->tail, &stream->tail_count, dependency, count)) {
        if (graph == NULL) graph_free(into);
        free(capture);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *capture = (struct capture){
        .next = captures, .number = ++numbers, .graph = into, .owns_graph = graph == NULL, .origin = stream,
        .mode = mode
    };
    capture->thread = pthread_self();
    captures = stream->capture = capture;
    return CUDA_SUCCESS;
}

CUresult cuStreamBeginCapture_v2(CUstream handle, CUstreamCaptureMode mode)
{
    struct CUctx_st *context;
    struct CUstream_st *stream;
    CUresult result = begin(&context, handle, &stream);
    if (result == CUDA_SUCCESS) result = start(stream, NULL, NULL, 0, mode);
    return driver_leave(result);
}

CUresult cuStreamBeginCaptureToGraph(CUstream handle, CUgraph graph, const CUgraphNode *dependency,
                                     const CUgraphEdgeData *edges, size_t count, CUstreamCaptureMode mode)
{
    struct CUctx_st *context;
    struct CUstream_st *stream;
    CUresult result = begin(&context, handle, &stream);
    if (result == CUDA_SUCCESS && !handle_is(graph, HANDLE_GRAPH)) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS && edges != NULL) result = CUDA_ERROR_NOT_SUPPORTED;
    if (result == CUDA_SUCCESS) result = graph_check_nodes(graph, dependency, count);
    if (result == CUDA_SUCCESS) result = start(stream, graph, dependency, count, mode);
    return driver_leave(result);
}

/* Work of other streams that the origin does not wait for: nodes that nothing depends on and that are not in its
 * tail. */
static bool all_joined(const struct CUstream_st *origin)
{
    const struct CUgraph_st *graph = origin->capture->graph;
    bool *waited_for = calloc(graph->nodes + 1, sizeof *waited_for);
    if (waited_for == NULL) return false;
    size_t number = 0;
    for (struct CUgraphNode_st *n = graph->first; n != NULL; n = n->next) n->index = number++;
    for (struct CUgraphNode_st *n = graph->first; n != NULL; n = n->next)
        for (size_t i = 0; i < n->dependencies; i++) waited_for[n->dependency[i]->index] = true;
    for (size_t i = 0; i < origin->tail_count; i++) waited_for[origin->tail[i]->index] = true;
    bool joined = true;
    for (const struct CUctx_st *c = driver.contexts; c != NULL; c = c->next)
        for (const struct CUstream_st *s = c->streams; s != NULL; s = s->next)
            for (size_t i = 0; s->capture == origin->capture && i < s->tail_count; i++)
                joined = joined && waited_for[s->tail[i]->index];
    free(waited_for);
    return joined;
}

static CUresult end(struct CUstream_st *stream, CUgraph *graph)
{
    struct capture *capture = stream->capture;
    *graph = NULL;
    if (capture == NULL) return CUDA_ERROR_ILLEGAL_STATE;
    if (capture->origin != stream) {
        capture_invalidate(capture);
        return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    }
    if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && !pthread_equal(capture->thread, pthread_self()))
        return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    CUresult result = capture->invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS;
    if (result == CUDA_SUCCESS && !all_joined(stream)) result = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    if (result == CUDA_SUCCESS) *graph = capture->graph;
    else if (capture->owns_graph) graph_free(capture->graph);
    close_capture(capture);
    return result;
}

CUresult cuStreamEndCapture(CUstream handle, CUgraph *graph)
{
    struct CUctx_st *context;
    struct CUstream_st *stream;
    CUresult result = begin(&context, handle, &stream);
    if (result == CUDA_SUCCESS && graph == NULL) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) result = end(stream, graph);
    return driver_leave(result);
}

/* ---- questions ---- */

static CUstreamCaptureStatus status_of(const struct CUstream_st *stream)
{
    if (stream->capture == NULL) return CU_STREAM_CAPTURE_STATUS_NONE;
    return stream->capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

/* The legacy stream cannot be asked while a blocking stream captures; asking does no harm to the capture. */
static CUresult may_ask(const struct CUstream_st *stream)
{
    for (const struct CUstream_st *s = stream->legacy ? stream->context->streams : NULL; s != NULL; s = s->next)
        if (s->capture != NULL && (s->flags & CU_STREAM_NON_BLOCKING) == 0) return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetCaptureInfo_v3(CUstream handle, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
                                   const CUgraphNode **dependencies, const CUgraphEdgeData **edges, size_t *count)
{
    struct CUctx_st *context;
    struct CUstream_st *stream;
    CUresult result = begin(&context, handle, &stream);
    if (result == CUDA_SUCCESS && status == NULL) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) result = may_ask(stream);
    if (result == CUDA_SUCCESS) *status = status_of(stream);
    if (result == CUDA_SUCCESS && edges != NULL) *edges = NULL;
    if (result == CUDA_SUCCESS && *status == CU_STREAM_CAPTURE_STATUS_ACTIVE) {
        if (id != NULL) *id = stream->capture->number;
        if (graph != NULL) *graph = stream->capture->graph;
        if (dependencies != NULL) *dependencies = stream->tail;
        if (count != NULL) *count = stream->tail_count;
    }
    return driver_leave(result);
}

CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
                                   const CUgraphNode **dependencies, size_t *count)
{
    return cuStreamGetCaptureInfo_v3(stream, status, id, graph, dependencies, NULL, count);
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status)
{
    return cuStreamGetCaptureInfo_v3(stream, status, NULL, NULL, NULL, NULL, NULL);
}

CUresult cuStreamUpdateCaptureDependencies_v2(CUstream handle, CUgraphNode *dependencies, const CUgraphEdgeData *edges,
                                              size_t count, unsigned flags)
{
    enum { ADD = 0, SET = 1 };
    struct CUctx_st *context;
    struct CUstream_st *stream;
    CUresult result = begin(&context, handle, &stream);
    if (result == CUDA_SUCCESS && (flags > SET || (count != 0 && dependencies == NULL)))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS && edges != NULL) result = CUDA_ERROR_NOT_SUPPORTED;
    if (result == CUDA_SUCCESS && stream->capture == NULL) result = CUDA_ERROR_ILLEGAL_STATE;
    if (result == CUDA_SUCCESS) result = capture_enter(stream);
    if (result == CUDA_SUCCESS) result = graph_check_nodes(stream->capture->graph, dependencies, count);
    if (result == CUDA_SUCCESS) {
        const bool done = flags == SET ? set_tail(&stream->tail, &stream->tail_count, dependencies, count)
                                       : join_tail(stream, dependencies, count);
        if (!done) result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    return driver_leave(result);
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    CUresult result = driver_enter();
    if (result == CUDA_SUCCESS && (mode == NULL || (unsigned)*mode > CU_STREAM_CAPTURE_MODE_RELAXED))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) {
        const CUstreamCaptureMode old = thread_mode;
        thread_mode = *mode;
        *mode = old;
    }
    return driver_leave(result);
}
