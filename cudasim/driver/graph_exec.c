/* Executable graphs: the work of a graph in an order that its edges allow, to be run again and again. */
#include <stdlib.h>
#include <string.h>

#include "driver/capture.h"
#include "driver/graph.h"

struct CUgraphExec_st {
    struct CUgraphExec_st *next;
    struct work *work;
    CUgraphNode *node;                    /* which node of the graph each came from: names for updates, perhaps long gone */
    size_t count;
};

CUDASIM_EXPORT CUresult cuGraphInstantiateWithFlags(CUgraphExec *executable, CUgraph graph, unsigned long long flags);
CUDASIM_EXPORT CUresult cuGraphInstantiate_v2(CUgraphExec *executable, CUgraph graph, CUgraphNode *wrong, char *log, size_t size);
CUDASIM_EXPORT CUresult cuGraphLaunch(CUgraphExec executable, CUstream stream);
CUDASIM_EXPORT CUresult cuGraphUpload(CUgraphExec executable, CUstream stream);
CUDASIM_EXPORT CUresult cuGraphExecDestroy(CUgraphExec executable);
CUDASIM_EXPORT CUresult cuGraphExecUpdate_v2(CUgraphExec executable, CUgraph graph, CUgraphExecUpdateResultInfo *info);
CUDASIM_EXPORT CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *parameters);
CUDASIM_EXPORT CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *parameters);
CUDASIM_EXPORT CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec executable, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *parameters);
CUDASIM_EXPORT CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec executable, CUgraphNode node, const CUDA_MEMCPY3D *copy, CUcontext context);
CUDASIM_EXPORT CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec executable, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *fill,
                                                       CUcontext context);
CUDASIM_EXPORT CUresult cuGraphExecHostNodeSetParams(CUgraphExec executable, CUgraphNode node, const CUDA_HOST_NODE_PARAMS *host);

static struct CUgraphExec_st **find(const struct CUgraphExec_st *executable)
{
    struct CUgraphExec_st **link = &driver.executables;
    while (*link != NULL && *link != executable) link = &(*link)->next;
    return link;
}

static void close_executable(struct CUgraphExec_st *e)
{
    for (size_t i = 0; i < e->count; i++) work_release(&e->work[i]);
    free(e->work), free(e->node), free(e);
}

static CUresult instantiate(struct CUgraphExec_st **result, struct CUgraph_st *graph)
{
    bool circular;
    struct CUgraphExec_st *e = calloc(1, sizeof *e);
    if (e == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    e->work = calloc(graph->count + 1, sizeof *e->work);
    e->node = graph_order(graph, &circular);
    CUresult code = e->node == NULL && circular ? CUDA_ERROR_INVALID_VALUE
                    : e->node == NULL || e->work == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
    for (size_t i = 0; i < graph->count && code == CUDA_SUCCESS; i++) {
        if (work_clone(&e->work[i], &e->node[i]->work)) e->count++;
        else code = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (code != CUDA_SUCCESS) {
        close_executable(e);
        return code;
    }
    e->next = driver.executables;
    driver.executables = *result = e;
    return CUDA_SUCCESS;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *executable, CUgraph graph, unsigned long long flags)
{
    enum { AUTO_FREE = 1, UPLOAD = 2, DEVICE_LAUNCH = 4, USE_NODE_PRIORITY = 8 };
    CUresult result = driver_enter();
    if (result == CUDA_SUCCESS && (executable == NULL || !graph_lives(graph) || flags > 15)) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS && (flags & DEVICE_LAUNCH) != 0) result = CUDA_ERROR_NOT_SUPPORTED;
    if (result == CUDA_SUCCESS) result = instantiate(executable, graph);
    return driver_leave(result);
}

CUresult cuGraphInstantiate_v2(CUgraphExec *executable, CUgraph graph, CUgraphNode *wrong, char *log, size_t size)
{
    if (wrong != NULL) *wrong = NULL;
    if (log != NULL && size != 0) *log = '\0';
    return cuGraphInstantiateWithFlags(executable, graph, 0);
}

CUresult cuGraphExecDestroy(CUgraphExec executable)
{
    CUresult result = driver_enter();
    struct CUgraphExec_st **link = find(executable);
    if (result == CUDA_SUCCESS && *link == NULL) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) {
        *link = executable->next;
        close_executable(executable);
    }
    return driver_leave(result);
}

/* Enters with a context, an executable graph and a stream that live. */
static CUresult begin(struct CUctx_st **context, CUgraphExec executable, CUstream stream)
{
    const CUresult result = driver_enter_context(context);
    if (result != CUDA_SUCCESS) return result;
    if (*find(executable) == NULL) return CUDA_ERROR_INVALID_VALUE;
    return stream_lives(*context, stream) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/* Into a stream that is capturing the nodes go one behind the other; a real driver makes one child-graph node of them. */
CUresult cuGraphLaunch(CUgraphExec executable, CUstream stream)
{
    struct CUctx_st *context;
    CUresult result = begin(&context, executable, stream);
    for (size_t i = 0; result == CUDA_SUCCESS && i < executable->count; i++) {
        if (stream_capture(context, stream) == NULL) {
            result = work_run(context, &executable->work[i]);
            if (context->fault != CUDA_SUCCESS) break;
            continue;
        }
        struct work work;
        result = work_clone(&work, &executable->work[i]) ? stream_submit(context, stream, &work) : CUDA_ERROR_OUT_OF_MEMORY;
    }
    return driver_leave(result);
}

CUresult cuGraphUpload(CUgraphExec executable, CUstream stream)
{
    struct CUctx_st *context;
    return driver_leave(begin(&context, executable, stream));
}

/* ---- changes ---- */

static struct work *work_of(struct CUgraphExec_st *e, const struct CUgraphNode_st *node, enum work_kind kind)
{
    for (size_t i = 0; i < e->count; i++)
        if (e->node[i] == node) return e->work[i].kind == kind ? &e->work[i] : NULL;
    return NULL;
}

/* Puts `made` in the place of the node's work, if making it went well and the kind stays. */
static CUresult replace(CUresult result, CUgraphExec executable, CUgraphNode node, struct work *made)
{
    struct work *old = result == CUDA_SUCCESS && *find(executable) != NULL ? work_of(executable, node, made->kind) : NULL;
    if (result == CUDA_SUCCESS && old == NULL) result = CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS) {
        work_release(made);
        return driver_leave(result);
    }
    work_release(old);
    *old = *made;
    return driver_leave(CUDA_SUCCESS);
}

CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec executable, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *parameters)
{
    struct work made = { .kind = WORK_EMPTY };
    CUresult result = driver_enter();
    if (result == CUDA_SUCCESS) result = work_from_kernel_node(parameters, &made);
    return replace(result, executable, node, &made);
}

CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec executable, CUgraphNode node, const CUDA_MEMCPY3D *copy, CUcontext context)
{
    struct work made = { .kind = WORK_EMPTY };
    CUresult result = driver_enter();
    if (result == CUDA_SUCCESS && (copy == NULL || !context_lives(context))) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) result = work_from_copy(copy, &made);
    return replace(result, executable, node, &made);
}

CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec executable, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *fill, CUcontext context)
{
    struct work made = { .kind = WORK_EMPTY };
    CUresult result = driver_enter();
    if (result == CUDA_SUCCESS && (fill == NULL || !context_lives(context))) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) result = work_from_fill(fill, &made);
    return replace(result, executable, node, &made);
}

CUresult cuGraphExecHostNodeSetParams(CUgraphExec executable, CUgraphNode node, const CUDA_HOST_NODE_PARAMS *host)
{
    struct work made = { .kind = WORK_HOST };
    CUresult result = driver_enter();
    if (result == CUDA_SUCCESS && (host == NULL || host->fn == NULL)) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) made.as.host.function = host->fn, made.as.host.user = host->userData;
    return replace(result, executable, node, &made);
}

CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *parameters)
{
    struct work made = { .kind = WORK_EMPTY };
    CUresult result = driver_enter();
    if (result == CUDA_SUCCESS && (!graph_node_lives(node) || node->work.kind != WORK_KERNEL)) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) result = work_from_kernel_node(parameters, &made);
    if (result == CUDA_SUCCESS) {
        work_release(&node->work);
        node->work = made;
    }
    return driver_leave(result);
}

/* The parameters' bytes stay inside: kernelParams is NULL, extra too. */
CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *parameters)
{
    CUresult result = driver_enter();
    if (result == CUDA_SUCCESS && (parameters == NULL || !graph_node_lives(node) || node->work.kind != WORK_KERNEL))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) {
        const struct work *w = &node->work;
        *parameters = (CUDA_KERNEL_NODE_PARAMS){
            .func = w->as.kernel.function, .gridDimX = w->as.kernel.grid[0], .gridDimY = w->as.kernel.grid[1],
            .gridDimZ = w->as.kernel.grid[2], .blockDimX = w->as.kernel.block[0], .blockDimY = w->as.kernel.block[1],
            .blockDimZ = w->as.kernel.block[2], .sharedMemBytes = w->as.kernel.dynamic_shared };
    }
    return driver_leave(result);
}

/* The same nodes in the same order, of the same kinds: their work is taken over.  Anything else is refused whole. */
CUresult cuGraphExecUpdate_v2(CUgraphExec executable, CUgraph graph, CUgraphExecUpdateResultInfo *info)
{
    enum { UPDATE_SUCCESS = 0, UPDATE_ERROR = 1, UPDATE_TOPOLOGY_CHANGED = 2, UPDATE_NODE_TYPE_CHANGED = 3 };
    int reason = UPDATE_SUCCESS;
    struct CUgraphExec_st *made = NULL;
    CUresult result = driver_enter();
    if (result == CUDA_SUCCESS && (info == NULL || *find(executable) == NULL || !graph_lives(graph))) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) result = instantiate(&made, graph);
    if (result != CUDA_SUCCESS) return driver_leave(result);
    if (made->count != executable->count) reason = UPDATE_TOPOLOGY_CHANGED;
    for (size_t i = 0; i < made->count && reason == UPDATE_SUCCESS; i++)
        if (made->work[i].kind != executable->work[i].kind) reason = UPDATE_NODE_TYPE_CHANGED;
    *info = (CUgraphExecUpdateResultInfo){ .result = reason };
    if (reason == UPDATE_SUCCESS) {
        struct work *old = executable->work;
        executable->work = made->work;
        made->work = old;
    }
    *find(made) = made->next;
    close_executable(made);
    return driver_leave(reason == UPDATE_SUCCESS ? CUDA_SUCCESS : CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
}
