/* Nodes of graphs: made from parameters, asked and changed. */
#include "graph.h"

CUDASIM_EXPORT CUresult cuGraphAddEmptyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                                            size_t count);
CUDASIM_EXPORT CUresult cuGraphAddKernelNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                                                size_t count, const CUDA_KERNEL_NODE_PARAMS *parameters);
CUDASIM_EXPORT CUresult cuGraphAddMemcpyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                                             size_t count, const CUDA_MEMCPY3D *parameters, CUcontext context);
CUDASIM_EXPORT CUresult cuGraphAddMemsetNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                                             size_t count, const CUDA_MEMSET_NODE_PARAMS *parameters,
                                             CUcontext context);
CUDASIM_EXPORT CUresult cuGraphAddHostNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                                           size_t count, const CUDA_HOST_NODE_PARAMS *parameters);
CUDASIM_EXPORT CUresult cuGraphAddEventRecordNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                                                  size_t count, CUevent event);
CUDASIM_EXPORT CUresult cuGraphAddEventWaitNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                                                size_t count, CUevent event);
CUDASIM_EXPORT CUresult cuGraphAddChildGraphNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                                                 size_t count, CUgraph child);
CUDASIM_EXPORT CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *parameters);
CUDASIM_EXPORT CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *parameters);
CUDASIM_EXPORT CUresult cuGraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D *parameters);
CUDASIM_EXPORT CUresult cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D *parameters);
CUDASIM_EXPORT CUresult cuGraphMemsetNodeGetParams(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS *parameters);
CUDASIM_EXPORT CUresult cuGraphMemsetNodeSetParams(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *parameters);
CUDASIM_EXPORT CUresult cuGraphHostNodeGetParams(CUgraphNode node, CUDA_HOST_NODE_PARAMS *parameters);
CUDASIM_EXPORT CUresult cuGraphHostNodeSetParams(CUgraphNode node, const CUDA_HOST_NODE_PARAMS *parameters);
CUDASIM_EXPORT CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph *graph);
CUDASIM_EXPORT CUresult cuGraphEventRecordNodeGetEvent(CUgraphNode node, CUevent *event);
CUDASIM_EXPORT CUresult cuGraphEventWaitNodeGetEvent(CUgraphNode node, CUevent *event);
CUDASIM_EXPORT CUresult cuGraphKernelNodeSetAttribute(CUgraphNode node, CUlaunchAttributeID id,
                                                      const CUlaunchAttributeValue *value);
CUDASIM_EXPORT CUresult cuGraphKernelNodeGetAttribute(CUgraphNode node, CUlaunchAttributeID id,
                                                      CUlaunchAttributeValue *value);

/* Enters; then what every call that adds a node needs. */
static CUresult begin(struct CUctx_st **context, CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                      size_t count, const void *parameters)
{
    const CUresult result = driver_enter_context(context);
    if (result != CUDA_SUCCESS) return result;
    if (node == NULL || parameters == NULL || !handle_is(graph, HANDLE_GRAPH)) return CUDA_ERROR_INVALID_VALUE;
    return graph_check_nodes(graph, dependencies, count);
}

static CUresult add(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count, struct work *work)
{
    *node = graph_add(graph, dependencies, count, work);
    return *node == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

CUresult cuGraphAddEmptyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count)
{
    struct CUctx_st *context;
    CUresult result = begin(&context, node, graph, dependencies, count, graph);
    struct work work = { .type = CU_GRAPH_NODE_TYPE_EMPTY };
    if (result == CUDA_SUCCESS) result = add(node, graph, dependencies, count, &work);
    return driver_leave(result);
}

CUresult cuGraphAddKernelNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                                 const CUDA_KERNEL_NODE_PARAMS *parameters)
{
    struct CUctx_st *context;
    struct work work;
    CUresult result = begin(&context, node, graph, dependencies, count, parameters);
    if (result == CUDA_SUCCESS) result = kernel_work_from_node(context, parameters, &work);
    if (result == CUDA_SUCCESS) result = add(node, graph, dependencies, count, &work);
    return driver_leave(result);
}

CUresult cuGraphAddMemcpyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                              const CUDA_MEMCPY3D *parameters, CUcontext named)
{
    struct CUctx_st *context;
    CUresult result = begin(&context, node, graph, dependencies, count, parameters);
    if (result == CUDA_SUCCESS) result = context_or_current(named, &context);
    if (result == CUDA_SUCCESS) result = copy_check(context, parameters);
    struct work work = { .type = CU_GRAPH_NODE_TYPE_MEMCPY };
    if (result == CUDA_SUCCESS) work.context = context->id, work.copy = *parameters;
    if (result == CUDA_SUCCESS) result = add(node, graph, dependencies, count, &work);
    return driver_leave(result);
}

CUresult cuGraphAddMemsetNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                              const CUDA_MEMSET_NODE_PARAMS *parameters, CUcontext named)
{
    struct CUctx_st *context;
    CUresult result = begin(&context, node, graph, dependencies, count, parameters);
    if (result == CUDA_SUCCESS) result = context_or_current(named, &context);
    if (result == CUDA_SUCCESS) result = fill_check(context, parameters);
    struct work work = { .type = CU_GRAPH_NODE_TYPE_MEMSET };
    if (result == CUDA_SUCCESS) work.context = context->id, work.fill = *parameters;
    if (result == CUDA_SUCCESS) result = add(node, graph, dependencies, count, &work);
    return driver_leave(result);
}

CUresult cuGraphAddHostNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                            const CUDA_HOST_NODE_PARAMS *parameters)
{
    struct CUctx_st *context;
    CUresult result = begin(&context, node, graph, dependencies, count, parameters);
    if (result == CUDA_SUCCESS && parameters->fn == NULL) result = CUDA_ERROR_INVALID_VALUE;
    struct work work = { .type = CU_GRAPH_NODE_TYPE_HOST };
    if (result == CUDA_SUCCESS) work.host = *parameters, result = add(node, graph, dependencies, count, &work);
    return driver_leave(result);
}

static CUresult add_event(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                          CUevent event, CUgraphNodeType type)
{
    struct CUctx_st *context;
    CUresult result = begin(&context, node, graph, dependencies, count, graph);
    if (result == CUDA_SUCCESS && !handle_is(event, HANDLE_EVENT)) result = CUDA_ERROR_INVALID_VALUE;
    struct work work = { .type = type, .event = event };
    if (result == CUDA_SUCCESS) result = add(node, graph, dependencies, count, &work);
    return driver_leave(result);
}

CUresult cuGraphAddEventRecordNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                                   CUevent event)
{
    return add_event(node, graph, dependencies, count, event, CU_GRAPH_NODE_TYPE_EVENT_RECORD);
}

CUresult cuGraphAddEventWaitNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                                 CUevent event)
{
    return add_event(node, graph, dependencies, count, event, CU_GRAPH_NODE_TYPE_WAIT_EVENT);
}

CUresult cuGraphAddChildGraphNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                                  CUgraph child)
{
    struct CUctx_st *context;
    CUresult result = begin(&context, node, graph, dependencies, count, graph);
    if (result == CUDA_SUCCESS && (!handle_is(child, HANDLE_GRAPH) || child == graph))
        result = CUDA_ERROR_INVALID_VALUE;
    struct work work = { .type = CU_GRAPH_NODE_TYPE_GRAPH };
    if (result == CUDA_SUCCESS && (work.graph = graph_clone(child)) == NULL) result = CUDA_ERROR_OUT_OF_MEMORY;
    if (result == CUDA_SUCCESS) result = add(node, graph, dependencies, count, &work);
    return driver_leave(result);
}

/* ---- parameters ---- */

static CUresult begin_node(CUgraphNode node, CUgraphNodeType type, const void *parameters)
{
    const CUresult result = driver_enter();
    if (result != CUDA_SUCCESS) return result;
    return parameters == NULL || !handle_is(node, HANDLE_NODE) || node->work.type != type ? CUDA_ERROR_INVALID_VALUE
                                                                                          : CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *parameters)
{
    const CUresult result = begin_node(node, CU_GRAPH_NODE_TYPE_KERNEL, parameters);
    if (result == CUDA_SUCCESS) kernel_work_to_node(&node->work, parameters);
    return driver_leave(result);
}

CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *parameters)
{
    CUresult result = begin_node(node, CU_GRAPH_NODE_TYPE_KERNEL, parameters);
    struct CUctx_st *context = NULL;
    struct work work;
    if (result == CUDA_SUCCESS) result = context_or_current(NULL, &context);
    if (result == CUDA_SUCCESS) result = kernel_work_from_node(context, parameters, &work);
    if (result == CUDA_SUCCESS) kernel_work_replace(&node->work, &work);
    return driver_leave(result);
}

CUresult cuGraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D *parameters)
{
    const CUresult result = begin_node(node, CU_GRAPH_NODE_TYPE_MEMCPY, parameters);
    if (result == CUDA_SUCCESS) *parameters = node->work.copy;
    return driver_leave(result);
}

CUresult cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D *parameters)
{
    CUresult result = begin_node(node, CU_GRAPH_NODE_TYPE_MEMCPY, parameters);
    struct CUctx_st *context = result == CUDA_SUCCESS ? work_context(&node->work, NULL) : NULL;
    if (result == CUDA_SUCCESS) result = context == NULL ? CUDA_ERROR_INVALID_CONTEXT : context->fault;
    if (result == CUDA_SUCCESS) result = copy_check(context, parameters);
    if (result == CUDA_SUCCESS) node->work.copy = *parameters;
    return driver_leave(result);
}

CUresult cuGraphMemsetNodeGetParams(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS *parameters)
{
    const CUresult result = begin_node(node, CU_GRAPH_NODE_TYPE_MEMSET, parameters);
    if (result == CUDA_SUCCESS) *parameters = node->work.fill;
    return driver_leave(result);
}

CUresult cuGraphMemsetNodeSetParams(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *parameters)
{
    CUresult result = begin_node(node, CU_GRAPH_NODE_TYPE_MEMSET, parameters);
    struct CUctx_st *context = result == CUDA_SUCCESS ? work_context(&node->work, NULL) : NULL;
    if (result == CUDA_SUCCESS) result = context == NULL ? CUDA_ERROR_INVALID_CONTEXT : context->fault;
    if (result == CUDA_SUCCESS) result = fill_check(context, parameters);
    if (result == CUDA_SUCCESS) node->work.fill = *parameters;
    return driver_leave(result);
}

CUresult cuGraphHostNodeGetParams(CUgraphNode node, CUDA_HOST_NODE_PARAMS *parameters)
{
    const CUresult result = begin_node(node, CU_GRAPH_NODE_TYPE_HOST, parameters);
    if (result == CUDA_SUCCESS) *parameters = node->work.host;
    return driver_leave(result);
}

CUresult cuGraphHostNodeSetParams(CUgraphNode node, const CUDA_HOST_NODE_PARAMS *parameters)
{
    CUresult result = begin_node(node, CU_GRAPH_NODE_TYPE_HOST, parameters);
    if (result == CUDA_SUCCESS && parameters->fn == NULL) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) node->work.host = *parameters;
    return driver_leave(result);
}

CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph *graph)
{
    const CUresult result = begin_node(node, CU_GRAPH_NODE_TYPE_GRAPH, graph);
    if (result == CUDA_SUCCESS) *graph = node->work.graph;
    return driver_leave(result);
}

CUresult cuGraphEventRecordNodeGetEvent(CUgraphNode node, CUevent *event)
{
    const CUresult result = begin_node(node, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
    if (result == CUDA_SUCCESS) *event = node->work.event;
    return driver_leave(result);
}

CUresult cuGraphEventWaitNodeGetEvent(CUgraphNode node, CUevent *event)
{
    const CUresult result = begin_node(node, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
    if (result == CUDA_SUCCESS) *event = node->work.event;
    return driver_leave(result);
}

CUresult cuGraphKernelNodeSetAttribute(CUgraphNode node, CUlaunchAttributeID id, const CUlaunchAttributeValue *value)
{
    CUresult result = begin_node(node, CU_GRAPH_NODE_TYPE_KERNEL, value);
    struct CUctx_st *context = NULL;
    if (result == CUDA_SUCCESS) result = context_or_current(NULL, &context);
    if (result == CUDA_SUCCESS)
        result = kernel_set_attribute(context, &node->work.kernel, &(CUlaunchAttribute){ .id = id, .value = *value });
    return driver_leave(result);
}

CUresult cuGraphKernelNodeGetAttribute(CUgraphNode node, CUlaunchAttributeID id, CUlaunchAttributeValue *value)
{
    CUresult result = begin_node(node, CU_GRAPH_NODE_TYPE_KERNEL, value);
    if (result == CUDA_SUCCESS && !kernel_get_attribute(&node->work.kernel, id, value))
        result = CUDA_ERROR_INVALID_VALUE;
    return driver_leave(result);
}
