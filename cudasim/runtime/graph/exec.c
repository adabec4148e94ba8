/* Graphs that can be launched, and changes to their nodes. */
#include "node.h"

#include "runtime/memory/copy.h"

API(cudaGraphInstantiateWithFlags, (cudaGraphExec_t * exec, cudaGraph_t graph, unsigned long long flags))
{
    return IN_CONTEXT(cuGraphInstantiateWithFlags(exec, graph, flags));
}

API(cudaGraphInstantiate, (cudaGraphExec_t * exec, cudaGraph_t graph, unsigned long long flags))
{
    return cudaGraphInstantiateWithFlags(exec, graph, flags);
}

API(cudaGraphInstantiateWithParams,
    (cudaGraphExec_t * exec, cudaGraph_t graph, CUDA_GRAPH_INSTANTIATE_PARAMS *parameters))
{
    return IN_CONTEXT(cuGraphInstantiateWithParams(exec, graph, parameters));
}

API(cudaGraphExecGetFlags, (cudaGraphExec_t exec, unsigned long long *flags))
{
    cuuint64_t found = 0;
    if (flags == NULL) return runtime_fail(cudaErrorInvalidValue);
    const cudaError_t error = IN_CONTEXT(cuGraphExecGetFlags(exec, &found));
    if (error == cudaSuccess) *flags = found;
    return error;
}

API(cudaGraphExecDestroy, (cudaGraphExec_t exec)) { return IN_CONTEXT(cuGraphExecDestroy(exec)); }

API(cudaGraphUpload, (cudaGraphExec_t exec, cudaStream_t stream))
{
    return IN_CONTEXT(cuGraphUpload(exec, runtime_stream(stream)));
}

API(cudaGraphLaunch, (cudaGraphExec_t exec, cudaStream_t stream))
{
    return IN_CONTEXT(cuGraphLaunch(exec, runtime_stream(stream)));
}

API(cudaGraphExecUpdate, (cudaGraphExec_t exec, cudaGraph_t graph, CUgraphExecUpdateResultInfo *info))
{
    return IN_CONTEXT(cuGraphExecUpdate_v2(exec, graph, info));
}

/* ---- nodes ---- */

static CUresult set_kernel(cudaGraphExec_t exec, cudaGraphNode_t node, const cudaKernelNodeParams *parameters)
{
    CUDA_KERNEL_NODE_PARAMS kernel;
    const CUresult result = node_kernel(parameters, &kernel);
    return result == CUDA_SUCCESS ? cuGraphExecKernelNodeSetParams_v2(exec, node, &kernel) : result;
}

API(cudaGraphExecKernelNodeSetParams,
    (cudaGraphExec_t exec, cudaGraphNode_t node, const cudaKernelNodeParams *parameters))
{
    return IN_CONTEXT(set_kernel(exec, node, parameters));
}

static CUresult set_copy(cudaGraphExec_t exec, cudaGraphNode_t node, const cudaMemcpy3DParms *parameters)
{
    CUDA_MEMCPY3D copy;
    if (parameters == NULL) return CUDA_ERROR_INVALID_VALUE;
    const CUresult result = copy_describe(parameters, &copy);
    return result == CUDA_SUCCESS ? cuGraphExecMemcpyNodeSetParams(exec, node, &copy, node_context()) : result;
}

API(cudaGraphExecMemcpyNodeSetParams, (cudaGraphExec_t exec, cudaGraphNode_t node, const cudaMemcpy3DParms *parameters))
{
    return IN_CONTEXT(set_copy(exec, node, parameters));
}

static CUresult set_line(cudaGraphExec_t exec, cudaGraphNode_t node, void *to, const void *from, size_t bytes, int kind)
{
    CUDA_MEMCPY3D copy;
    const CUresult result = copy_describe_line(to, from, bytes, kind, &copy);
    return result == CUDA_SUCCESS ? cuGraphExecMemcpyNodeSetParams(exec, node, &copy, node_context()) : result;
}

API(cudaGraphExecMemcpyNodeSetParams1D,
    (cudaGraphExec_t exec, cudaGraphNode_t node, void *to, const void *from, size_t bytes, int kind))
{
    return IN_CONTEXT(set_line(exec, node, to, from, bytes, kind));
}

API(cudaGraphExecMemsetNodeSetParams,
    (cudaGraphExec_t exec, cudaGraphNode_t node, const CUDA_MEMSET_NODE_PARAMS *parameters))
{
    return IN_CONTEXT(cuGraphExecMemsetNodeSetParams(exec, node, parameters, node_context()));
}

API(cudaGraphExecHostNodeSetParams,
    (cudaGraphExec_t exec, cudaGraphNode_t node, const CUDA_HOST_NODE_PARAMS *parameters))
{
    return IN_CONTEXT(cuGraphExecHostNodeSetParams(exec, node, parameters));
}

API(cudaGraphExecEventRecordNodeSetEvent, (cudaGraphExec_t exec, cudaGraphNode_t node, cudaEvent_t event))
{
    return IN_CONTEXT(cuGraphExecEventRecordNodeSetEvent(exec, node, event));
}

API(cudaGraphExecEventWaitNodeSetEvent, (cudaGraphExec_t exec, cudaGraphNode_t node, cudaEvent_t event))
{
    return IN_CONTEXT(cuGraphExecEventWaitNodeSetEvent(exec, node, event));
}

API(cudaGraphNodeSetEnabled, (cudaGraphExec_t exec, cudaGraphNode_t node, unsigned enabled))
{
    return IN_CONTEXT(cuGraphNodeSetEnabled(exec, node, enabled));
}

API(cudaGraphNodeGetEnabled, (cudaGraphExec_t exec, cudaGraphNode_t node, unsigned *enabled))
{
    return IN_CONTEXT(cuGraphNodeGetEnabled(exec, node, enabled));
}
