/* The forms of calls for which the default stream is the calling thread's own: _ptsz for those with a stream, _ptds for
 * those that wait. A program gets them when it is compiled with CUDA_API_PER_THREAD_DEFAULT_STREAM, or by
 * cuGetProcAddress's flag. */
#include "driver.h"

_Thread_local bool stream_null_is_own;

#define OWN(name, suffix, parameters, ...) \
    CUresult name parameters; \
    CUDASIM_EXPORT CUresult name##suffix parameters; \
    CUresult name##suffix parameters \
    { \
        stream_null_is_own = true; \
        const CUresult result = name(__VA_ARGS__); \
        stream_null_is_own = false; \
        return result; \
    }

OWN(cuStreamGetPriority, _ptsz, (CUstream stream, int *priority), stream, priority)
OWN(cuStreamGetId, _ptsz, (CUstream stream, unsigned long long *id), stream, id)
OWN(cuStreamGetFlags, _ptsz, (CUstream stream, unsigned *flags), stream, flags)
OWN(cuStreamGetDevice, _ptsz, (CUstream stream, CUdevice *device), stream, device)
OWN(cuStreamGetCtx, _ptsz, (CUstream stream, CUcontext *context), stream, context)
OWN(cuStreamWaitEvent, _ptsz, (CUstream stream, CUevent event, unsigned flags), stream, event, flags)
OWN(cuStreamEndCapture, _ptsz, (CUstream stream, CUgraph *graph), stream, graph)
OWN(cuStreamIsCapturing, _ptsz, (CUstream stream, CUstreamCaptureStatus *status), stream, status)
OWN(cuStreamAddCallback, _ptsz,
    (CUstream stream, void (*callback)(CUstream, CUresult, void *), void *user, unsigned flags), stream, callback, user,
    flags)
OWN(cuStreamAttachMemAsync, _ptsz, (CUstream stream, CUdeviceptr pointer, size_t bytes, unsigned flags), stream,
    pointer, bytes, flags)
OWN(cuStreamQuery, _ptsz, (CUstream stream), stream)
OWN(cuStreamSynchronize, _ptsz, (CUstream stream), stream)
OWN(cuEventRecord, _ptsz, (CUevent event, CUstream stream), event, stream)
OWN(cuEventRecordWithFlags, _ptsz, (CUevent event, CUstream stream, unsigned flags), event, stream, flags)
OWN(cuLaunchKernel, _ptsz,
    (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
     unsigned block_z, unsigned shared_bytes, CUstream stream, void **parameters, void **extra),
    function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream, parameters, extra)
OWN(cuLaunchKernelEx, _ptsz, (const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra),
    config, function, parameters, extra)
OWN(cuLaunchHostFunc, _ptsz, (CUstream stream, CUhostFn *function, void *user), stream, function, user)
OWN(cuLaunchCooperativeKernel, _ptsz,
    (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
     unsigned block_z, unsigned shared_bytes, CUstream stream, void **parameters),
    function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream, parameters)
OWN(cuGraphInstantiateWithParams, _ptsz, (CUgraphExec * exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *parameters),
    exec, graph, parameters)
OWN(cuGraphUpload, _ptsz, (CUgraphExec exec, CUstream stream), exec, stream)
OWN(cuGraphLaunch, _ptsz, (CUgraphExec exec, CUstream stream), exec, stream)
OWN(cuMemFreeAsync, _ptsz, (CUdeviceptr pointer, CUstream stream), pointer, stream)
OWN(cuMemAllocAsync, _ptsz, (CUdeviceptr *pointer, size_t bytes, CUstream stream), pointer, bytes, stream)
OWN(cuMemAllocFromPoolAsync, _ptsz, (CUdeviceptr * pointer, size_t bytes, CUmemoryPool pool, CUstream stream), pointer,
    bytes, pool, stream)
OWN(cuStreamBeginCaptureToGraph, _ptsz,
    (CUstream stream, CUgraph graph, const CUgraphNode *dependency, const CUgraphEdgeData *edges, size_t count,
     CUstreamCaptureMode mode),
    stream, graph, dependency, edges, count, mode)
OWN(cuMemcpyAsync, _ptsz, (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream), to, from, bytes, stream)
OWN(cuMemsetD8Async, _ptsz, (CUdeviceptr to, unsigned char value, size_t count, CUstream stream), to, value, count,
    stream)
OWN(cuMemsetD16Async, _ptsz, (CUdeviceptr to, unsigned short value, size_t count, CUstream stream), to, value, count,
    stream)
OWN(cuMemsetD32Async, _ptsz, (CUdeviceptr to, unsigned value, size_t count, CUstream stream), to, value, count, stream)
OWN(cuMemsetD2D8Async, _ptsz, (CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height,
    CUstream stream), to, pitch, value, width, height, stream)
OWN(cuMemsetD2D16Async, _ptsz, (CUdeviceptr to, size_t pitch, unsigned short value, size_t width, size_t height,
    CUstream stream), to, pitch, value, width, height, stream)
OWN(cuMemsetD2D32Async, _ptsz,
    (CUdeviceptr to, size_t pitch, unsigned value, size_t width, size_t height, CUstream stream), to, pitch, value,
    width, height, stream)
OWN(cuMemcpyHtoDAsync_v2, _ptsz, (CUdeviceptr to, const void *from, size_t bytes, CUstream stream), to, from, bytes,
    stream)
OWN(cuMemcpyDtoHAsync_v2, _ptsz, (void *to, CUdeviceptr from, size_t bytes, CUstream stream), to, from, bytes, stream)
OWN(cuMemcpyDtoDAsync_v2, _ptsz, (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream), to, from, bytes,
    stream)
OWN(cuMemcpyPeerAsync, _ptsz,
    (CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes, CUstream stream), to,
    to_context, from, from_context, bytes, stream)
OWN(cuMemcpy3DPeerAsync, _ptsz, (const CUDA_MEMCPY3D_PEER *copy, CUstream stream), copy, stream)
OWN(cuMemcpy2DAsync_v2, _ptsz, (const CUDA_MEMCPY2D *copy, CUstream stream), copy, stream)
OWN(cuMemcpy3DAsync_v2, _ptsz, (const CUDA_MEMCPY3D *copy, CUstream stream), copy, stream)
OWN(cuStreamBeginCapture_v2, _ptsz, (CUstream stream, CUstreamCaptureMode mode), stream, mode)
OWN(cuStreamGetCaptureInfo_v2, _ptsz, (CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
    const CUgraphNode **dependencies, size_t *count), stream, status, id, graph, dependencies, count)
OWN(cuStreamGetCaptureInfo_v3, _ptsz,
    (CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph, const CUgraphNode **dependencies,
     const CUgraphEdgeData **edges, size_t *count),
    stream, status, id, graph, dependencies, edges, count)
OWN(cuStreamUpdateCaptureDependencies_v2, _ptsz,
    (CUstream stream, CUgraphNode *dependencies, const CUgraphEdgeData *edges, size_t count, unsigned flags), stream,
    dependencies, edges, count, flags)
OWN(cuMemPrefetchAsync, _ptsz, (CUdeviceptr pointer, size_t bytes, CUdevice device, CUstream stream), pointer, bytes,
    device, stream)
OWN(cuMemPrefetchAsync_v2, _ptsz,
    (CUdeviceptr pointer, size_t bytes, CUmemLocation location, unsigned flags, CUstream stream), pointer, bytes,
    location, flags, stream)
OWN(cuMemcpy, _ptds, (CUdeviceptr to, CUdeviceptr from, size_t bytes), to, from, bytes)
OWN(cuMemcpyHtoD_v2, _ptds, (CUdeviceptr to, const void *from, size_t bytes), to, from, bytes)
OWN(cuMemcpyDtoH_v2, _ptds, (void *to, CUdeviceptr from, size_t bytes), to, from, bytes)
OWN(cuMemcpyDtoD_v2, _ptds, (CUdeviceptr to, CUdeviceptr from, size_t bytes), to, from, bytes)
OWN(cuMemcpyPeer, _ptds,
    (CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes), to, to_context,
    from, from_context, bytes)
OWN(cuMemcpy3DPeer, _ptds, (const CUDA_MEMCPY3D_PEER *copy), copy)
OWN(cuMemcpy2D_v2, _ptds, (const CUDA_MEMCPY2D *copy), copy)
OWN(cuMemcpy2DUnaligned_v2, _ptds, (const CUDA_MEMCPY2D *copy), copy)
OWN(cuMemcpy3D_v2, _ptds, (const CUDA_MEMCPY3D *copy), copy)
OWN(cuMemsetD8_v2, _ptds, (CUdeviceptr to, unsigned char value, size_t count), to, value, count)
OWN(cuMemsetD16_v2, _ptds, (CUdeviceptr to, unsigned short value, size_t count), to, value, count)
OWN(cuMemsetD32_v2, _ptds, (CUdeviceptr to, unsigned value, size_t count), to, value, count)
OWN(cuMemsetD2D8_v2, _ptds, (CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height), to, pitch,
    value, width, height)
OWN(cuMemsetD2D16_v2, _ptds, (CUdeviceptr to, size_t pitch, unsigned short value, size_t width, size_t height), to,
    pitch, value, width, height)
OWN(cuMemsetD2D32_v2, _ptds, (CUdeviceptr to, size_t pitch, unsigned value, size_t width, size_t height), to, pitch,
    value, width, height)
