/* Nodes: what each kind does, and its parameters. */
#include "node.h"

#include "runtime/memory/copy.h"
#include "runtime/module/registry.h"

CUcontext node_context(void)
{
    CUcontext context = NULL;
    cuCtxGetCurrent(&context);
    return context;
}

API(cudaGraphAddEmptyNode,
    (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *dependencies, size_t count))
{
    return IN_CONTEXT(cuGraphAddEmptyNode(node, graph, dependencies, count));
}

/* ---- kernels ---- */

CUresult node_kernel(const cudaKernelNodeParams *p, CUDA_KERNEL_NODE_PARAMS *node)
{
    CUfunction function = NULL;
    if (p == NULL) return CUDA_ERROR_INVALID_VALUE;
    const CUresult result = registry_function(p->func, &function);
    *node = (CUDA_KERNEL_NODE_PARAMS){
        .func = function, .gridDimX = p->gridDim.x, .gridDimY = p->gridDim.y, .gridDimZ = p->gridDim.z,
        .blockDimX = p->blockDim.x, .blockDimY = p->blockDim.y, .blockDimZ = p->blockDim.z,
        .sharedMemBytes = p->sharedMemBytes, .kernelParams = p->kernelParams, .extra = p->extra
    };
    return result;
}

static CUresult add_kernel(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies, size_t count,
                           const cudaKernelNodeParams *parameters)
{
    CUDA_KERNEL_NODE_PARAMS kernel;
    const CUresult result = node_kernel(parameters, &kernel);
    return result == CUDA_SUCCESS ? cuGraphAddKernelNode_v2(node, graph, dependencies, count, &kernel) : result;
}

API(cudaGraphAddKernelNode, (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                             size_t count, const cudaKernelNodeParams *parameters))
{
    return IN_CONTEXT(add_kernel(node, graph, dependencies, count, parameters));
}

static CUresult get_kernel(cudaGraphNode_t node, cudaKernelNodeParams *parameters)
{
    CUDA_KERNEL_NODE_PARAMS k;
    if (parameters == NULL) return CUDA_ERROR_INVALID_VALUE;
    const CUresult result = cuGraphKernelNodeGetParams_v2(node, &k);
    if (result != CUDA_SUCCESS) return result;
    *parameters = (cudaKernelNodeParams){
        .func = k.kern != NULL ? registry_host_of(k.kern) : (void *)k.func,
        .gridDim = { k.gridDimX, k.gridDimY, k.gridDimZ }, .blockDim = { k.blockDimX, k.blockDimY, k.blockDimZ },
        .sharedMemBytes = k.sharedMemBytes, .kernelParams = k.kernelParams, .extra = k.extra
    };
    return CUDA_SUCCESS;
}

API(cudaGraphKernelNodeGetParams, (cudaGraphNode_t node, cudaKernelNodeParams *parameters))
{
    return IN_CONTEXT(get_kernel(node, parameters));
}

static CUresult set_kernel(cudaGraphNode_t node, const cudaKernelNodeParams *parameters)
{
    CUDA_KERNEL_NODE_PARAMS kernel;
    const CUresult result = node_kernel(parameters, &kernel);
    return result == CUDA_SUCCESS ? cuGraphKernelNodeSetParams_v2(node, &kernel) : result;
}

API(cudaGraphKernelNodeSetParams, (cudaGraphNode_t node, const cudaKernelNodeParams *parameters))
{
    return IN_CONTEXT(set_kernel(node, parameters));
}

API(cudaGraphKernelNodeGetAttribute,
    (cudaGraphNode_t node, CUlaunchAttributeID attribute, CUlaunchAttributeValue *value))
{
    return IN_CONTEXT(cuGraphKernelNodeGetAttribute(node, attribute, value));
}

API(cudaGraphKernelNodeSetAttribute,
    (cudaGraphNode_t node, CUlaunchAttributeID attribute, const CUlaunchAttributeValue *value))
{
    return IN_CONTEXT(cuGraphKernelNodeSetAttribute(node, attribute, value));
}

/* ---- copies ---- */

static CUresult add_copy(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies, size_t count,
                         const cudaMemcpy3DParms *parameters)
{
    CUDA_MEMCPY3D copy;
    if (parameters == NULL) return CUDA_ERROR_INVALID_VALUE;
    const CUresult result = copy_describe(parameters, &copy);
    return result == CUDA_SUCCESS ? cuGraphAddMemcpyNode(node, graph, dependencies, count, &copy, node_context())
                                  : result;
}

API(cudaGraphAddMemcpyNode, (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                             size_t count, const cudaMemcpy3DParms *parameters))
{
    return IN_CONTEXT(add_copy(node, graph, dependencies, count, parameters));
}

static CUresult add_line(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies, size_t count,
                         void *to, const void *from, size_t bytes, int kind)
{
    CUDA_MEMCPY3D copy;
    const CUresult result = copy_describe_line(to, from, bytes, kind, &copy);
    return result == CUDA_SUCCESS ? cuGraphAddMemcpyNode(node, graph, dependencies, count, &copy, node_context())
                                  : result;
}

API(cudaGraphAddMemcpyNode1D, (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                               size_t count, void *to, const void *from, size_t bytes, int kind))
{
    return IN_CONTEXT(add_line(node, graph, dependencies, count, to, from, bytes, kind));
}

API(cudaGraphAddMemcpyNodeToSymbol,
    (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *dependencies, size_t count, const void *symbol,
     const void *from, size_t bytes, size_t offset, int kind))
{
    void *to;
    const cudaError_t error = IN_CONTEXT(symbol_bytes(symbol, bytes, offset, &to));
    return error == cudaSuccess ? cudaGraphAddMemcpyNode1D(node, graph, dependencies, count, to, from, bytes, kind)
                                : error;
}

API(cudaGraphAddMemcpyNodeFromSymbol,
    (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *dependencies, size_t count, void *to,
     const void *symbol, size_t bytes, size_t offset, int kind))
{
    void *from;
    const cudaError_t error = IN_CONTEXT(symbol_bytes(symbol, bytes, offset, &from));
    return error == cudaSuccess ? cudaGraphAddMemcpyNode1D(node, graph, dependencies, count, to, from, bytes, kind)
                                : error;
}

static CUresult set_copy(cudaGraphNode_t node, const cudaMemcpy3DParms *parameters)
{
    CUDA_MEMCPY3D copy;
    if (parameters == NULL) return CUDA_ERROR_INVALID_VALUE;
    const CUresult result = copy_describe(parameters, &copy);
    return result == CUDA_SUCCESS ? cuGraphMemcpyNodeSetParams(node, &copy) : result;
}

API(cudaGraphMemcpyNodeSetParams, (cudaGraphNode_t node, const cudaMemcpy3DParms *parameters))
{
    return IN_CONTEXT(set_copy(node, parameters));
}

static CUresult set_line(cudaGraphNode_t node, void *to, const void *from, size_t bytes, int kind)
{
    CUDA_MEMCPY3D copy;
    const CUresult result = copy_describe_line(to, from, bytes, kind, &copy);
    return result == CUDA_SUCCESS ? cuGraphMemcpyNodeSetParams(node, &copy) : result;
}

API(cudaGraphMemcpyNodeSetParams1D, (cudaGraphNode_t node, void *to, const void *from, size_t bytes, int kind))
{
    return IN_CONTEXT(set_line(node, to, from, bytes, kind));
}

/* ---- fills, host functions, events, graphs: the driver's structs ---- */

API(cudaGraphAddMemsetNode, (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                             size_t count, const CUDA_MEMSET_NODE_PARAMS *parameters))
{
    return IN_CONTEXT(cuGraphAddMemsetNode(node, graph, dependencies, count, parameters, node_context()));
}

API(cudaGraphMemsetNodeGetParams, (cudaGraphNode_t node, CUDA_MEMSET_NODE_PARAMS *parameters))
{
    return IN_CONTEXT(cuGraphMemsetNodeGetParams(node, parameters));
}

API(cudaGraphMemsetNodeSetParams, (cudaGraphNode_t node, const CUDA_MEMSET_NODE_PARAMS *parameters))
{
    return IN_CONTEXT(cuGraphMemsetNodeSetParams(node, parameters));
}

API(cudaGraphAddHostNode, (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                           size_t count, const CUDA_HOST_NODE_PARAMS *parameters))
{
    return IN_CONTEXT(cuGraphAddHostNode(node, graph, dependencies, count, parameters));
}

API(cudaGraphHostNodeGetParams, (cudaGraphNode_t node, CUDA_HOST_NODE_PARAMS *parameters))
{
    return IN_CONTEXT(cuGraphHostNodeGetParams(node, parameters));
}

API(cudaGraphHostNodeSetParams, (cudaGraphNode_t node, const CUDA_HOST_NODE_PARAMS *parameters))
{
    return IN_CONTEXT(cuGraphHostNodeSetParams(node, parameters));
}

API(cudaGraphAddEventRecordNode, (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                                  size_t count, cudaEvent_t event))
{
    return IN_CONTEXT(cuGraphAddEventRecordNode(node, graph, dependencies, count, event));
}

API(cudaGraphAddEventWaitNode, (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                                size_t count, cudaEvent_t event))
{
    return IN_CONTEXT(cuGraphAddEventWaitNode(node, graph, dependencies, count, event));
}

API(cudaGraphEventRecordNodeGetEvent, (cudaGraphNode_t node, cudaEvent_t *event))
{
    return IN_CONTEXT(cuGraphEventRecordNodeGetEvent(node, event));
}

API(cudaGraphEventWaitNodeGetEvent, (cudaGraphNode_t node, cudaEvent_t *event))
{
    return IN_CONTEXT(cuGraphEventWaitNodeGetEvent(node, event));
}

API(cudaGraphAddChildGraphNode, (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                                 size_t count, cudaGraph_t child))
{
    return IN_CONTEXT(cuGraphAddChildGraphNode(node, graph, dependencies, count, child));
}

API(cudaGraphChildGraphNodeGetGraph, (cudaGraphNode_t node, cudaGraph_t *graph))
{
    return IN_CONTEXT(cuGraphChildGraphNodeGetGraph(node, graph));
}
