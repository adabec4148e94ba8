/* Captures of streams into graphs. */
#ifndef CUDASIM_DRIVER_CAPTURE_H
#define CUDASIM_DRIVER_CAPTURE_H

#include "driver/work.h"

struct capture {
    struct capture *next;                 /* of the context */
    struct CUgraph_st *graph;
    struct CUstream_st *origin;
    pthread_t thread;
    CUstreamCaptureMode mode;
    uint64_t identity;
    bool invalid, owns_graph;
};

/* stream.c: NULL for the default streams. */
struct capture *stream_capture(const struct CUctx_st *context, CUstream stream);
bool tail_add(struct tail *tail, const struct tail *more);
void tail_clear(struct tail *tail);

/* CUDA_SUCCESS where a call that may wait for all work, or allocates, is allowed now; else the capture is spoiled. */
CUresult capture_allows_unsafe_call(struct CUctx_st *context);
/* The same for work in the legacy default stream, which waits for all blocking streams. */
CUresult capture_allows_legacy_stream(struct CUctx_st *context);
/* A wait for this stream alone. */
CUresult capture_allows_waiting(struct CUctx_st *context, CUstream stream);
void captures_drop(struct CUctx_st *context);

CUresult capture_record_event(struct capture *capture, struct CUstream_st *stream, struct CUevent_st *event);
CUresult capture_wait_event(struct CUctx_st *context, struct CUstream_st *stream, struct CUevent_st *event);

#endif
