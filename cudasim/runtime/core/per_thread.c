/* The forms of calls for which the default stream is the calling thread's own: _ptsz for those with a stream, _ptds for
 * those that wait.  A program gets them when it is compiled by nvcc --default-stream per-thread. */
#include "runtime.h"

#define OWN(name, suffix, parameters, ...) \
    cudaError_t name parameters; \
    API(name##suffix, parameters) \
    { \
        runtime_null_is_own = true; \
        const cudaError_t error = name(__VA_ARGS__); \
        runtime_null_is_own = false; \
        return error; \
    }

OWN(__cudaLaunchKernel, _ptsz,
    (cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments, size_t shared_bytes, cudaStream_t stream),
    kernel, grid, block, arguments, shared_bytes, stream)
OWN(cudaEventRecordWithFlags, _ptsz, (cudaEvent_t event, cudaStream_t stream, unsigned flags), event, stream, flags)
OWN(cudaEventRecord, _ptsz, (cudaEvent_t event, cudaStream_t stream), event, stream)
OWN(cudaFreeAsync, _ptsz, (void *pointer, cudaStream_t stream), pointer, stream)
OWN(cudaGetDriverEntryPointByVersion, _ptsz,
    (const char *symbol, void **function, unsigned version, unsigned long long flags, int *status),
    symbol, function, version, flags, status)
OWN(cudaGetDriverEntryPoint, _ptsz,
    (const char *symbol, void **function, unsigned long long flags, int *status),
    symbol, function, flags, status)
OWN(cudaGraphInstantiateWithParams, _ptsz,
    (cudaGraphExec_t *exec, cudaGraph_t graph, CUDA_GRAPH_INSTANTIATE_PARAMS *parameters),
    exec, graph, parameters)
OWN(cudaGraphLaunch, _ptsz, (cudaGraphExec_t exec, cudaStream_t stream), exec, stream)
OWN(cudaGraphUpload, _ptsz, (cudaGraphExec_t exec, cudaStream_t stream), exec, stream)
OWN(cudaLaunchCooperativeKernel, _ptsz,
    (const void *symbol, dim3 grid, dim3 block, void **arguments, size_t shared_bytes, cudaStream_t stream),
    symbol, grid, block, arguments, shared_bytes, stream)
OWN(cudaLaunchHostFunc, _ptsz, (cudaStream_t stream, CUhostFn *function, void *user), stream, function, user)
OWN(cudaLaunchKernelExC, _ptsz,
    (const cudaLaunchConfig_t *config, const void *symbol, void **arguments),
    config, symbol, arguments)
OWN(cudaLaunchKernel, _ptsz,
    (const void *symbol, dim3 grid, dim3 block, void **arguments, size_t shared_bytes, cudaStream_t stream),
    symbol, grid, block, arguments, shared_bytes, stream)
OWN(cudaMallocAsync, _ptsz, (void **pointer, size_t bytes, cudaStream_t stream), pointer, bytes, stream)
OWN(cudaMallocFromPoolAsync, _ptsz,
    (void **pointer, size_t bytes, cudaMemPool_t pool, cudaStream_t stream),
    pointer, bytes, pool, stream)
OWN(cudaMemPrefetchAsync, _ptsz,
    (const void *pointer, size_t bytes, CUmemLocation location, unsigned flags, cudaStream_t stream),
    pointer, bytes, location, flags, stream)
OWN(cudaMemcpy2DAsync, _ptsz,
    (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height, int kind,
     cudaStream_t stream),
    to, to_pitch, from, from_pitch, width, height, kind, stream)
OWN(cudaMemcpy2D, _ptds,
    (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height, int kind),
    to, to_pitch, from, from_pitch, width, height, kind)
OWN(cudaMemcpy3DAsync, _ptsz, (const cudaMemcpy3DParms *parameters, cudaStream_t stream), parameters, stream)
OWN(cudaMemcpy3D, _ptds, (const cudaMemcpy3DParms *parameters), parameters)
OWN(cudaMemcpyAsync, _ptsz,
    (void *to, const void *from, size_t bytes, int kind, cudaStream_t stream),
    to, from, bytes, kind, stream)
OWN(cudaMemcpyFromSymbolAsync, _ptsz,
    (void *to, const void *symbol, size_t count, size_t offset, int kind, cudaStream_t stream),
    to, symbol, count, offset, kind, stream)
OWN(cudaMemcpyFromSymbol, _ptds,
    (void *to, const void *symbol, size_t count, size_t offset, int kind),
    to, symbol, count, offset, kind)
OWN(cudaMemcpyToSymbolAsync, _ptsz,
    (const void *symbol, const void *from, size_t count, size_t offset, int kind, cudaStream_t stream),
    symbol, from, count, offset, kind, stream)
OWN(cudaMemcpyToSymbol, _ptds,
    (const void *symbol, const void *from, size_t count, size_t offset, int kind),
    symbol, from, count, offset, kind)
OWN(cudaMemcpy, _ptds, (void *to, const void *from, size_t bytes, int kind), to, from, bytes, kind)
OWN(cudaMemset2DAsync, _ptsz,
    (void *to, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream),
    to, pitch, value, width, height, stream)
OWN(cudaMemset2D, _ptds,
    (void *to, size_t pitch, int value, size_t width, size_t height),
    to, pitch, value, width, height)
OWN(cudaMemset3DAsync, _ptsz,
    (cudaPitchedPtr to, int value, cudaExtent extent, cudaStream_t stream),
    to, value, extent, stream)
OWN(cudaMemset3D, _ptds, (cudaPitchedPtr to, int value, cudaExtent extent), to, value, extent)
OWN(cudaMemsetAsync, _ptsz, (void *to, int value, size_t bytes, cudaStream_t stream), to, value, bytes, stream)
OWN(cudaMemset, _ptds, (void *to, int value, size_t bytes), to, value, bytes)
OWN(cudaStreamAddCallback, _ptsz,
    (cudaStream_t stream, void (*callback)(CUstream, CUresult, void *), void *user, unsigned flags),
    stream, callback, user, flags)
OWN(cudaStreamAttachMemAsync, _ptsz,
    (cudaStream_t stream, void *pointer, size_t bytes, unsigned flags),
    stream, pointer, bytes, flags)
OWN(cudaStreamBeginCaptureToGraph, _ptsz,
    (cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t *dependencies, const CUgraphEdgeData *edges,
     size_t count, CUstreamCaptureMode mode),
    stream, graph, dependencies, edges, count, mode)
OWN(cudaStreamBeginCapture, _ptsz, (cudaStream_t stream, CUstreamCaptureMode mode), stream, mode)
OWN(cudaStreamEndCapture, _ptsz, (cudaStream_t stream, cudaGraph_t *graph), stream, graph)
OWN(cudaStreamGetCaptureInfo, _ptsz,
    (cudaStream_t stream, CUstreamCaptureStatus *status, unsigned long long *id, cudaGraph_t *graph,
     const cudaGraphNode_t **dependencies, const CUgraphEdgeData **edges, size_t *count),
    stream, status, id, graph, dependencies, edges, count)
OWN(cudaStreamGetDevice, _ptsz, (cudaStream_t stream, int *device), stream, device)
OWN(cudaStreamGetFlags, _ptsz, (cudaStream_t stream, unsigned *flags), stream, flags)
OWN(cudaStreamGetId, _ptsz, (cudaStream_t stream, unsigned long long *id), stream, id)
OWN(cudaStreamGetPriority, _ptsz, (cudaStream_t stream, int *priority), stream, priority)
OWN(cudaStreamIsCapturing, _ptsz, (cudaStream_t stream, CUstreamCaptureStatus *status), stream, status)
OWN(cudaStreamQuery, _ptsz, (cudaStream_t stream), stream)
OWN(cudaStreamSynchronize, _ptsz, (cudaStream_t stream), stream)
OWN(cudaStreamUpdateCaptureDependencies, _ptsz,
    (cudaStream_t stream, cudaGraphNode_t *dependencies, const CUgraphEdgeData *edges, size_t count, unsigned flags),
    stream, dependencies, edges, count, flags)
OWN(cudaStreamWaitEvent, _ptsz, (cudaStream_t stream, cudaEvent_t event, unsigned flags), stream, event, flags)
