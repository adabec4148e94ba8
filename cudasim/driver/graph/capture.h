/* Streams that capture: work given to them becomes a graph. */
#ifndef CUDASIM_DRIVER_GRAPH_CAPTURE_H
#define CUDASIM_DRIVER_GRAPH_CAPTURE_H

#include "work.h"

struct capture {
    struct capture *next;
    uint64_t number;                      /* never used twice; cuStreamGetCaptureInfo's id */
    CUgraph graph;
    bool owns_graph;                      /* false: cuStreamBeginCaptureToGraph */
    struct CUstream_st *origin;
    CUstreamCaptureMode mode;
    pthread_t thread;
    bool invalid;
};

/* Whether the stream may be given work: INVALIDATED where its capture is, IMPLICIT where the legacy stream would have
 * to wait for a blocking stream that captures. */
CUresult capture_enter(struct CUstream_st *stream);
/* Adds the work, which it takes over, behind the stream's tail. */
CUresult capture_add(struct CUstream_st *stream, struct work *work);
/* Calls that may wait for the device (allocation, waiting, loading): not while a capture forbids them to this thread;
 * the captures concerned become invalid. */
CUresult capture_forbids(struct CUctx_st *context);
/* The stream waits for the event (or the event is recorded) in terms of nodes. */
CUresult capture_wait(struct CUstream_st *stream, struct CUevent_st *event);
bool capture_record(struct CUevent_st *event, const struct CUstream_st *stream);
/* Whether the event was last recorded in a stream that captured; a capture that is still under way becomes invalid. */
bool capture_has_event(const struct CUevent_st *event);
/* The context has a stream that captures: its captures become invalid. */
bool capture_in_context(struct CUctx_st *context);
/* A capture under way writes to the graph. */
bool capture_fills(const struct CUgraph_st *graph);
void capture_invalidate(struct capture *capture);
/* The stream goes away. */
void capture_leave(struct CUstream_st *stream);

#endif
