/* Work of streams and graphs: one kind after the other goes to the file that knows it. */
#include "work.h"

#include <stdlib.h>
#include <string.h>

#include "capture.h"
#include "graph.h"

void work_free(struct work *work)
{
    if (work->type == CU_GRAPH_NODE_TYPE_KERNEL) free(work->kernel.parameters), free(work->kernel.values);
    if (work->type == CU_GRAPH_NODE_TYPE_GRAPH) graph_free(work->graph);
    *work = (struct work){ .type = CU_GRAPH_NODE_TYPE_EMPTY };
}

struct CUctx_st *work_context(const struct work *work, struct CUctx_st *any)
{
    struct CUctx_st *c = work->context == 0 ? any : driver.contexts;
    while (c != NULL && work->context != 0 && c->id != work->context) c = c->next;
    return c;
}

static bool copy_kernel(struct kernel_work *to, const struct kernel_work *from, size_t values)
{
    to->parameters = malloc(from->parameter_bytes + 1);
    to->values = calloc(values + 1, sizeof *to->values);
    if (to->parameters == NULL || to->values == NULL) {
        free(to->parameters), free(to->values);
        to->parameters = NULL, to->values = NULL;
        return false;
    }
    memcpy(to->parameters, from->parameters, from->parameter_bytes);
    for (size_t i = 0; i < values; i++)
        to->values[i] = to->parameters + ((uint8_t *)from->values[i] - from->parameters);
    return true;
}

bool work_copy(struct work *to, const struct work *from)
{
    *to = *from;
    if (from->type == CU_GRAPH_NODE_TYPE_KERNEL) {
        size_t values = 0;
        while (from->kernel.values[values] != NULL) values++;
        return copy_kernel(&to->kernel, &from->kernel, values);
    }
    if (from->type == CU_GRAPH_NODE_TYPE_GRAPH) return (to->graph = graph_clone(from->graph)) != NULL;
    return true;
}

CUresult work_check(struct CUctx_st *context, const struct work *work)
{
    switch (work->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: return kernel_check(context, &work->kernel);
    case CU_GRAPH_NODE_TYPE_MEMCPY: return copy_check(context, &work->copy);
    case CU_GRAPH_NODE_TYPE_MEMSET: return fill_check(context, &work->fill);
    case CU_GRAPH_NODE_TYPE_HOST: return work->host.fn == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT: case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        return handle_is(work->event, HANDLE_EVENT) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
    default: return CUDA_SUCCESS;
    }
}

CUresult work_run(struct CUctx_st *context, const struct work *work, struct grids_in_flight *flight)
{
    const CUresult checked = work_check(context, work);
    if (checked != CUDA_SUCCESS) return checked;
    if (work->type != CU_GRAPH_NODE_TYPE_KERNEL) flight->count = 0;
    switch (work->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: return kernel_run(context, &work->kernel, flight);
    case CU_GRAPH_NODE_TYPE_MEMCPY: return copy_run(context, &work->copy);
    case CU_GRAPH_NODE_TYPE_MEMSET: return fill_run(context, &work->fill);
    case CU_GRAPH_NODE_TYPE_HOST: driver_call_host(work->host.fn, work->host.userData); return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD: event_stamp(work->event); return CUDA_SUCCESS;
    default: return CUDA_SUCCESS;
    }
}

CUresult work_submit(struct CUctx_st *context, CUstream handle, struct work *work)
{
    struct CUstream_st *stream = stream_find(context, handle);
    CUresult result = stream == NULL ? CUDA_ERROR_INVALID_HANDLE : stream->context->fault;
    if (result == CUDA_SUCCESS) {
        context = stream->context;
        work->context = context->id;
        result = capture_enter(stream);
    }
    if (result == CUDA_SUCCESS && stream->capture != NULL) {
        result = work_check(context, work);
        if (result == CUDA_SUCCESS) return capture_add(stream, work);
    } else if (result == CUDA_SUCCESS) {
        result = work->type == CU_GRAPH_NODE_TYPE_KERNEL ? kernel_submit(context, stream, &work->kernel)
                                                         : work_run(context, work, &stream->flight);
    }
    work_free(work);
    return result;
}
