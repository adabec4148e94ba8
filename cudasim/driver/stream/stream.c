/* Streams.  Work is done when it is given to a stream, so waiting is checking for faults. */
#include <stdlib.h>

#include "driver/graph/capture.h"

CUDASIM_EXPORT CUresult cuStreamCreate(CUstream *stream, unsigned flags);
CUDASIM_EXPORT CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority);
CUDASIM_EXPORT CUresult cuStreamDestroy_v2(CUstream stream);
CUDASIM_EXPORT CUresult cuStreamSynchronize(CUstream stream);
CUDASIM_EXPORT CUresult cuStreamQuery(CUstream stream);
CUDASIM_EXPORT CUresult cuStreamGetPriority(CUstream stream, int *priority);
CUDASIM_EXPORT CUresult cuStreamGetFlags(CUstream stream, unsigned *flags);
CUDASIM_EXPORT CUresult cuStreamGetId(CUstream stream, unsigned long long *id);
CUDASIM_EXPORT CUresult cuStreamGetCtx(CUstream stream, CUcontext *context);
CUDASIM_EXPORT CUresult cuStreamGetDevice(CUstream stream, CUdevice *device);
CUDASIM_EXPORT CUresult cuStreamAddCallback(CUstream stream, void (*callback)(CUstream, CUresult, void *), void *user,
                                            unsigned flags);
CUDASIM_EXPORT CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest);

enum { LEAST_PRIORITY = 0, GREATEST_PRIORITY = -5 };

static struct CUstream_st *make(struct CUctx_st *context, const struct CUstream_st *like)
{
    struct CUstream_st *made = calloc(1, sizeof *made);
    if (made == NULL || !handle_add(made, HANDLE_STREAM)) {
        free(made);
        return NULL;
    }
    *made = *like;
    made->context = context;
    made->id = ++driver.stream_ids;
    made->next = context->streams;
    context->streams = made;
    return made;
}

static struct CUstream_st *find_legacy(struct CUctx_st *context)
{
    for (struct CUstream_st *s = context->streams; s != NULL; s = s->next)
        if (s->legacy) return s;
    return make(context, &(struct CUstream_st){ .legacy = true });
}

static struct CUstream_st *find_per_thread(struct CUctx_st *context)
{
    const pthread_t self = pthread_self();
    for (struct CUstream_st *s = context->streams; s != NULL; s = s->next)
        if (s->per_thread && pthread_equal(s->thread, self)) return s;
    return make(context, &(struct CUstream_st){ .per_thread = true, .thread = self });
}

void streams_land(struct CUctx_st *context)
{
    for (struct CUstream_st *s = context->streams; s != NULL; s = s->next) s->flight.count = 0;
}

struct CUstream_st *stream_find(struct CUctx_st *context, CUstream handle)
{
    if (handle == CU_STREAM_PER_THREAD || (handle == NULL && stream_null_is_own)) return find_per_thread(context);
    if (handle == NULL || handle == CU_STREAM_LEGACY) return find_legacy(context);
    return handle_is(handle, HANDLE_STREAM) ? handle : NULL;
}

void stream_free(struct CUstream_st *stream)
{
    capture_leave(stream);
    handle_remove(stream);
    free(stream->tail);
    free(stream);
}

/* Enters with a context and a stream, which may be another one's. */
static CUresult begin(CUstream handle, struct CUstream_st **stream)
{
    struct CUctx_st *context;
    const CUresult result = driver_enter_context(&context);
    if (result != CUDA_SUCCESS) return result;
    *stream = stream_find(context, handle);
    return *stream == NULL ? CUDA_ERROR_INVALID_HANDLE : (*stream)->context->fault;
}

CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority)
{
    struct CUctx_st *context;
    CUresult result = driver_enter_context(&context);
    if (result == CUDA_SUCCESS && (stream == NULL || flags > CU_STREAM_NON_BLOCKING)) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) {
        if (priority > LEAST_PRIORITY) priority = LEAST_PRIORITY;
        if (priority < GREATEST_PRIORITY) priority = GREATEST_PRIORITY;
        *stream = make(context, &(struct CUstream_st){ .flags = flags, .priority = priority });
        if (*stream == NULL) result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    return driver_leave(result);
}

CUresult cuStreamCreate(CUstream *stream, unsigned flags) { return cuStreamCreateWithPriority(stream, flags, 0); }

CUresult cuStreamDestroy_v2(CUstream handle)
{
    struct CUstream_st *stream = NULL;
    CUresult result = begin(handle, &stream);
    if (result == CUDA_SUCCESS && stream != handle) result = CUDA_ERROR_INVALID_HANDLE;
    if (result == CUDA_SUCCESS) {
        struct CUstream_st **link = &stream->context->streams;
        while (*link != stream) link = &(*link)->next;
        *link = stream->next;
        stream_free(stream);
    }
    return driver_leave(result);
}

/* Waiting for a stream that captures would wait for work that does not run. */
CUresult cuStreamSynchronize(CUstream handle)
{
    struct CUstream_st *stream;
    CUresult result = begin(handle, &stream);
    if (result == CUDA_SUCCESS) result = capture_enter(stream);
    if (result == CUDA_SUCCESS && stream->capture != NULL) {
        capture_invalidate(stream->capture);
        result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    if (result == CUDA_SUCCESS) result = capture_forbids(stream->context);
    if (result == CUDA_SUCCESS) stream->flight.count = 0;
    return driver_leave(result);
}

CUresult cuStreamQuery(CUstream stream) { return cuStreamSynchronize(stream); }

CUresult cuStreamGetPriority(CUstream handle, int *priority)
{
    struct CUstream_st *stream;
    CUresult result = begin(handle, &stream);
    if (result == CUDA_SUCCESS && priority == NULL) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) *priority = stream->priority;
    return driver_leave(result);
}

CUresult cuStreamGetFlags(CUstream handle, unsigned *flags)
{
    struct CUstream_st *stream;
    CUresult result = begin(handle, &stream);
    if (result == CUDA_SUCCESS && flags == NULL) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) *flags = stream->flags;
    return driver_leave(result);
}

CUresult cuStreamGetId(CUstream handle, unsigned long long *id)
{
    struct CUstream_st *stream;
    CUresult result = begin(handle, &stream);
    if (result == CUDA_SUCCESS && id == NULL) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) *id = stream->id;
    return driver_leave(result);
}

CUresult cuStreamGetCtx(CUstream handle, CUcontext *context)
{
    struct CUstream_st *stream;
    CUresult result = begin(handle, &stream);
    if (result == CUDA_SUCCESS && context == NULL) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) *context = stream->context;
    return driver_leave(result);
}

CUresult cuStreamGetDevice(CUstream handle, CUdevice *device)
{
    struct CUstream_st *stream;
    CUresult result = begin(handle, &stream);
    if (result == CUDA_SUCCESS && device == NULL) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) *device = stream->context->device;
    return driver_leave(result);
}

struct callback { void (*function)(CUstream, CUresult, void *); CUstream stream; void *user; };

static void call_back(void *user)
{
    const struct callback *c = user;
    c->function(c->stream, CUDA_SUCCESS, c->user);
}

CUresult cuStreamAddCallback(CUstream handle, void (*callback)(CUstream, CUresult, void *), void *user, unsigned flags)
{
    struct CUstream_st *stream;
    CUresult result = begin(handle, &stream);
    if (result == CUDA_SUCCESS && (callback == NULL || flags != 0)) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) result = capture_enter(stream);
    if (result == CUDA_SUCCESS && stream->capture != NULL) {
        capture_invalidate(stream->capture);
        result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    if (result == CUDA_SUCCESS) driver_call_host(call_back, &(struct callback){ callback, handle, user });
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
