/* Streams whose work becomes a graph. */
#include "runtime/core/runtime.h"

API(cudaStreamIsCapturing, (cudaStream_t stream, CUstreamCaptureStatus *status))
{
    return IN_CONTEXT(cuStreamIsCapturing(runtime_stream(stream), status));
}

API(cudaStreamBeginCapture, (cudaStream_t stream, CUstreamCaptureMode mode))
{
    return IN_CONTEXT(cuStreamBeginCapture_v2(runtime_stream(stream), mode));
}

API(cudaStreamBeginCaptureToGraph,
    (cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t *dependencies, const CUgraphEdgeData *edges,
     size_t count, CUstreamCaptureMode mode))
{
    return IN_CONTEXT(
        cuStreamBeginCaptureToGraph(runtime_stream(stream), graph, dependencies, edges, count, mode));
}

API(cudaStreamEndCapture, (cudaStream_t stream, cudaGraph_t *graph))
{
    return IN_CONTEXT(cuStreamEndCapture(runtime_stream(stream), graph));
}

API(cudaStreamGetCaptureInfo,
    (cudaStream_t stream, CUstreamCaptureStatus *status, unsigned long long *id, cudaGraph_t *graph,
     const cudaGraphNode_t **dependencies, const CUgraphEdgeData **edges, size_t *count))
{
    cuuint64_t number = 0;
    const cudaError_t error =
        IN_CONTEXT(cuStreamGetCaptureInfo_v3(runtime_stream(stream), status, &number, graph, dependencies, edges,
                                             count));
    if (error == cudaSuccess && id != NULL) *id = number;
    return error;
}

API(cudaStreamUpdateCaptureDependencies,
    (cudaStream_t stream, cudaGraphNode_t *dependencies, const CUgraphEdgeData *edges, size_t count, unsigned flags))
{
    return IN_CONTEXT(
        cuStreamUpdateCaptureDependencies_v2(runtime_stream(stream), dependencies, edges, count, flags));
}

API(cudaThreadExchangeStreamCaptureMode, (CUstreamCaptureMode * mode))
{
    return IN_CONTEXT(cuThreadExchangeStreamCaptureMode(mode));
}
