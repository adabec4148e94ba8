/* Copies between host and device, of lines, planes and boxes. */
#include "copy.h"

/* Where the ends lie, as the kind says it; the driver finds out itself for cudaMemcpyDefault. */
static CUresult set_kind(CUDA_MEMCPY3D *copy, int kind)
{
    static const struct { CUmemorytype from, to; } ends[] = {
        [cudaMemcpyHostToHost] = { CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_HOST },
        [cudaMemcpyHostToDevice] = { CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_DEVICE },
        [cudaMemcpyDeviceToHost] = { CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_HOST },
        [cudaMemcpyDeviceToDevice] = { CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_DEVICE },
        [cudaMemcpyDefault] = { CU_MEMORYTYPE_UNIFIED, CU_MEMORYTYPE_UNIFIED },
    };
    if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault) return (CUresult)cudaErrorInvalidMemcpyDirection;
    copy->srcMemoryType = ends[kind].from, copy->dstMemoryType = ends[kind].to;
    return CUDA_SUCCESS;
}

static void set_ends(CUDA_MEMCPY3D *copy, void *to, const void *from)
{
    copy->srcHost = from, copy->srcDevice = (CUdeviceptr)(uintptr_t)from;
    copy->dstHost = to, copy->dstDevice = (CUdeviceptr)(uintptr_t)to;
}

static CUresult run(const CUDA_MEMCPY3D *copy, struct copy_way way)
{
    if (way.in_stream) return cuMemcpy3DAsync_v2(copy, runtime_stream(way.stream));
    return runtime_null_is_own ? cuMemcpy3D_v2_ptds(copy) : cuMemcpy3D_v2(copy);
}

/* ---- lines ---- */

CUresult copy_describe_line(void *to, const void *from, size_t bytes, int kind, CUDA_MEMCPY3D *copy)
{
    *copy = (CUDA_MEMCPY3D){ .WidthInBytes = bytes, .Height = 1, .Depth = 1 };
    set_ends(copy, to, from);
    return set_kind(copy, kind);
}

CUresult copy_line(void *to, const void *from, size_t bytes, int kind, struct copy_way way)
{
    CUDA_MEMCPY3D copy;
    const CUresult result = copy_describe_line(to, from, bytes, kind, &copy);
    return result == CUDA_SUCCESS && bytes != 0 ? run(&copy, way) : result;
}

API(cudaMemcpy, (void *to, const void *from, size_t bytes, int kind))
{
    return IN_CONTEXT(copy_line(to, from, bytes, kind, COPY_NOW));
}

API(cudaMemcpyAsync, (void *to, const void *from, size_t bytes, int kind, cudaStream_t stream))
{
    return IN_CONTEXT(copy_line(to, from, bytes, kind, COPY_IN(stream)));
}

/* ---- planes ---- */

static CUresult copy_plane(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                           int kind, struct copy_way way)
{
    CUDA_MEMCPY3D copy = { .srcPitch = from_pitch, .dstPitch = to_pitch, .WidthInBytes = width, .Height = height,
                           .Depth = 1 };
    if (width > to_pitch || width > from_pitch) return (CUresult)cudaErrorInvalidPitchValue;
    set_ends(&copy, to, from);
    const CUresult result = set_kind(&copy, kind);
    return result == CUDA_SUCCESS && width != 0 && height != 0 ? run(&copy, way) : result;
}

API(cudaMemcpy2D,
    (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height, int kind))
{
    return IN_CONTEXT(copy_plane(to, to_pitch, from, from_pitch, width, height, kind, COPY_NOW));
}

API(cudaMemcpy2DAsync, (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                        int kind, cudaStream_t stream))
{
    return IN_CONTEXT(copy_plane(to, to_pitch, from, from_pitch, width, height, kind, COPY_IN(stream)));
}

/* ---- boxes ---- */

CUresult copy_describe(const cudaMemcpy3DParms *p, CUDA_MEMCPY3D *copy)
{
    *copy = (CUDA_MEMCPY3D){ .srcXInBytes = p->srcPos.x, .srcY = p->srcPos.y, .srcZ = p->srcPos.z,
                             .srcPitch = p->srcPtr.pitch, .srcHeight = p->srcPtr.ysize,
                             .dstXInBytes = p->dstPos.x, .dstY = p->dstPos.y, .dstZ = p->dstPos.z,
                             .dstPitch = p->dstPtr.pitch, .dstHeight = p->dstPtr.ysize,
                             .WidthInBytes = p->extent.width, .Height = p->extent.height, .Depth = p->extent.depth };
    set_ends(copy, p->dstPtr.ptr, p->srcPtr.ptr);
    const CUresult result = set_kind(copy, p->kind);
    if (p->srcArray != NULL) copy->srcMemoryType = CU_MEMORYTYPE_ARRAY;
    if (p->dstArray != NULL) copy->dstMemoryType = CU_MEMORYTYPE_ARRAY;
    return result;
}

static CUresult copy_box(const cudaMemcpy3DParms *parameters, struct copy_way way)
{
    CUDA_MEMCPY3D copy;
    if (parameters == NULL) return CUDA_ERROR_INVALID_VALUE;
    const CUresult result = copy_describe(parameters, &copy);
    return result == CUDA_SUCCESS ? run(&copy, way) : result;
}

API(cudaMemcpy3D, (const cudaMemcpy3DParms *parameters)) { return IN_CONTEXT(copy_box(parameters, COPY_NOW)); }

API(cudaMemcpy3DAsync, (const cudaMemcpy3DParms *parameters, cudaStream_t stream))
{
    return IN_CONTEXT(copy_box(parameters, COPY_IN(stream)));
}

/* ---- between devices ---- */

/* All memory has one address space, so that a driver without a call for peers finds both ends itself. */
static CUresult copy_peer(void *to, int to_device, const void *from, int from_device, size_t bytes,
                          struct copy_way way)
{
    CUresult (*now)(CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, size_t) = NULL;
    CUresult (*in_stream)(CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, size_t, CUstream) = NULL;
    const bool known =
        runtime_driver_call("cuMemcpyPeer", &now) && runtime_driver_call("cuMemcpyPeerAsync", &in_stream);
    const CUdeviceptr t = (CUdeviceptr)(uintptr_t)to, f = (CUdeviceptr)(uintptr_t)from;
    CUcontext source, target;
    CUresult result = cuDevicePrimaryCtxRetain(&target, to_device);
    if (result == CUDA_SUCCESS) result = cuDevicePrimaryCtxRetain(&source, from_device);
    if (result != CUDA_SUCCESS || bytes == 0) return result;
    if (!known) return copy_line(to, from, bytes, cudaMemcpyDefault, way);
    return way.in_stream ? in_stream(t, target, f, source, bytes, runtime_stream(way.stream))
                         : now(t, target, f, source, bytes);
}

API(cudaMemcpyPeer, (void *to, int to_device, const void *from, int from_device, size_t bytes))
{
    return IN_CONTEXT(copy_peer(to, to_device, from, from_device, bytes, COPY_NOW));
}

API(cudaMemcpyPeerAsync,
    (void *to, int to_device, const void *from, int from_device, size_t bytes, cudaStream_t stream))
{
    return IN_CONTEXT(copy_peer(to, to_device, from, from_device, bytes, COPY_IN(stream)));
}
