/* Peers: devices whose kernels reach one another's memory, once a context has enabled it. */
#include "driver/core/driver.h"

CUDASIM_EXPORT CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer);
CUDASIM_EXPORT CUresult cuDeviceGetP2PAttribute(int *value, int attribute, CUdevice source, CUdevice target);
CUDASIM_EXPORT CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags);
CUDASIM_EXPORT CUresult cuCtxDisablePeerAccess(CUcontext peer);

bool devices_are_peers(CUdevice device, CUdevice peer)
{
    return device != peer && driver.device[device].limits->major == driver.device[peer].limits->major;
}

static CUresult begin(const int *value, CUdevice device, CUdevice peer)
{
    CUresult result = driver_enter();
    if (result == CUDA_SUCCESS && value == NULL) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) result = device_check(device);
    return result == CUDA_SUCCESS ? device_check(peer) : result;
}

CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer)
{
    const CUresult result = begin(can, device, peer);
    if (result == CUDA_SUCCESS) *can = devices_are_peers(device, peer);
    return driver_leave(result);
}

CUresult cuDeviceGetP2PAttribute(int *value, int attribute, CUdevice source, CUdevice target)
{
    enum { PERFORMANCE_RANK = 1, ACCESS_SUPPORTED = 2, NATIVE_ATOMIC_SUPPORTED = 3, ARRAY_ACCESS_SUPPORTED = 4 };
    CUresult result = begin(value, source, target);
    if (result == CUDA_SUCCESS && source == target) result = CUDA_ERROR_INVALID_DEVICE;
    if (result == CUDA_SUCCESS && (attribute < PERFORMANCE_RANK || attribute > ARRAY_ACCESS_SUPPORTED))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        *value = (attribute == ACCESS_SUPPORTED || attribute == NATIVE_ATOMIC_SUPPORTED)
                 && devices_are_peers(source, target);
    return driver_leave(result);
}

/* What the peer's context allocates, before or afterwards, is reached by kernels of the current one; not the other way
 * round. */
CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags)
{
    struct CUctx_st *context;
    CUresult result = driver_enter_context(&context);
    if (result == CUDA_SUCCESS && flags != 0) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS && (peer == context || !context_lives(peer))) result = CUDA_ERROR_INVALID_CONTEXT;
    if (result == CUDA_SUCCESS && !devices_are_peers(context->device, peer->device))
        result = CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    if (result == CUDA_SUCCESS && space_is_peer(&context->machine.memory, &peer->machine.memory))
        result = CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
    if (result == CUDA_SUCCESS && !space_add_peer(&context->machine.memory, &peer->machine.memory))
        result = CUDA_ERROR_OUT_OF_MEMORY;
    return driver_leave(result);
}

CUresult cuCtxDisablePeerAccess(CUcontext peer)
{
    struct CUctx_st *context;
    CUresult result = driver_enter_context(&context);
    if (result == CUDA_SUCCESS && !context_lives(peer)) result = CUDA_ERROR_INVALID_CONTEXT;
    if (result == CUDA_SUCCESS && !space_remove_peer(&context->machine.memory, &peer->machine.memory))
        result = CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
    return driver_leave(result);
}
