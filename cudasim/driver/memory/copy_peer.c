/* Copies between contexts.  Addresses are unique, so each is a copy like any other; the contexts that a call names must
 * be those whose memory it gives.  They need no peer access. */
#include "driver/graph/capture.h"

CUDASIM_EXPORT CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                                     size_t bytes);
CUDASIM_EXPORT CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                                          CUcontext from_context, size_t bytes, CUstream stream);
CUDASIM_EXPORT CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER *copy);
CUDASIM_EXPORT CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER *copy, CUstream stream);

/* One end of the copy: what lies on devices must lie on the context's. */
static CUresult check_end(CUmemorytype type, CUdeviceptr pointer, struct CUctx_st *named, const char *end)
{
    struct CUctx_st *context, *owner;
    if (type != CU_MEMORYTYPE_DEVICE) return CUDA_SUCCESS;
    const CUresult result = context_or_current(named, &context);
    owner = context;
    const struct allocation *a = result == CUDA_SUCCESS ? memory_find(&owner, pointer) : NULL;
    if (a == NULL || owner == context || a->devices != 0) return result;
    driver_say("cudasim: a copy's %s, global address 0x%llx, is not memory of the context of device %d that the call "
               "names, but of another one, of device %d\n",
               end, pointer, (int)context->device, (int)owner->device);
    return CUDA_ERROR_INVALID_VALUE;
}

/* A capture does not take copies between contexts, and is lost, as two H100s have it; it takes copies of addresses. */
static CUresult leave_captures(struct CUctx_st *context, CUstream handle)
{
    struct CUstream_st *stream = stream_find(context, handle);
    if (stream == NULL) return CUDA_ERROR_INVALID_HANDLE;
    const CUresult result = capture_enter(stream);
    if (result != CUDA_SUCCESS || stream->capture == NULL) return result;
    capture_invalidate(stream->capture);
    driver_say("cudasim: cuMemcpyPeerAsync and cuMemcpy3DPeerAsync cannot be captured; cuMemcpyAsync between the same "
               "addresses can\n");
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

static CUresult submit(const CUDA_MEMCPY3D_PEER *c, CUstream stream, bool waits)
{
    struct CUctx_st *context;
    CUresult result = driver_enter_context(&context);
    if (result == CUDA_SUCCESS && c == NULL) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) result = check_end(c->srcMemoryType, c->srcDevice, c->srcContext, "source");
    if (result == CUDA_SUCCESS) result = check_end(c->dstMemoryType, c->dstDevice, c->dstContext, "target");
    if (result == CUDA_SUCCESS && !waits) result = leave_captures(context, stream);
    if (result == CUDA_SUCCESS) {
        const CUDA_MEMCPY3D copy = {
            .srcXInBytes = c->srcXInBytes, .srcY = c->srcY, .srcZ = c->srcZ, .srcMemoryType = c->srcMemoryType,
            .srcHost = c->srcHost, .srcDevice = c->srcDevice, .srcPitch = c->srcPitch, .srcHeight = c->srcHeight,
            .dstXInBytes = c->dstXInBytes, .dstY = c->dstY, .dstZ = c->dstZ, .dstMemoryType = c->dstMemoryType,
            .dstHost = c->dstHost, .dstDevice = c->dstDevice, .dstPitch = c->dstPitch, .dstHeight = c->dstHeight,
            .WidthInBytes = c->WidthInBytes, .Height = c->Height, .Depth = c->Depth
        };
        result = copy_submit(context, &copy, stream, waits);
    }
    return driver_leave(result);
}

static CUDA_MEMCPY3D_PEER line(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                               size_t bytes)
{
    return (CUDA_MEMCPY3D_PEER){ .srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = from, .srcContext = from_context,
                                 .dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = to, .dstContext = to_context,
                                 .WidthInBytes = bytes, .Height = 1, .Depth = 1 };
}

CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes)
{
    const CUDA_MEMCPY3D_PEER copy = line(to, to_context, from, from_context, bytes);
    return submit(&copy, NULL, true);
}

CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes,
                           CUstream stream)
{
    const CUDA_MEMCPY3D_PEER copy = line(to, to_context, from, from_context, bytes);
    return submit(&copy, stream, false);
}

CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER *copy) { return submit(copy, NULL, true); }
CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER *copy, CUstream stream) { return submit(copy, stream, false); }
