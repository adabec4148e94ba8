/* Devices: how many, which one a thread uses, their attributes and settings. */
#include "runtime/core/runtime.h"

static CUresult check_device(int device)
{
    int count;
    const CUresult result = cuDeviceGetCount(&count);
    if (result != CUDA_SUCCESS) return result;
    return device >= 0 && device < count ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

API(cudaGetDeviceCount, (int *count))
{
    if (count == NULL) return runtime_fail(cudaErrorInvalidValue);
    *count = 0;
    return WITHOUT_CONTEXT(cuDeviceGetCount(count));
}

API(cudaGetDevice, (int *device))
{
    if (device == NULL) return runtime_fail(cudaErrorInvalidValue);
    *device = runtime_device();
    return WITHOUT_CONTEXT(CUDA_SUCCESS);
}

/* Since CUDA 12 the device's context is made here. */
API(cudaSetDevice, (int device))
{
    const CUresult result = runtime_initialised() ? check_device(device) : runtime_why();
    if (result != CUDA_SUCCESS) return runtime_end(result);
    runtime_use_device(device);
    return IN_CONTEXT(CUDA_SUCCESS);
}

API(cudaInitDevice, (int device, unsigned flags, unsigned which))
{
    enum { FLAGS_ARE_VALID = 1 };
    CUcontext context;
    CUresult result = runtime_initialised() ? check_device(device) : runtime_why();
    if (result == CUDA_SUCCESS && (which & ~(unsigned)FLAGS_ARE_VALID) != 0) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS && which != 0) result = cuDevicePrimaryCtxSetFlags_v2(device, flags);
    if (result == CUDA_SUCCESS) result = cuDevicePrimaryCtxRetain(&context, device);
    return runtime_end(result);
}

/* All devices are of one kind: the first of them will do. */
API(cudaSetValidDevices, (int *devices, int count))
{
    CUresult result = runtime_initialised() ? CUDA_SUCCESS : runtime_why();
    if (result == CUDA_SUCCESS && (count < 0 || (count > 0 && devices == NULL))) result = CUDA_ERROR_INVALID_VALUE;
    for (int i = 0; result == CUDA_SUCCESS && i < count; i++) result = check_device(devices[i]);
    if (result == CUDA_SUCCESS && count > 0) runtime_use_device(devices[0]);
    return runtime_end(result);
}

API(cudaSetDeviceFlags, (unsigned flags))
{
    return WITHOUT_CONTEXT(cuDevicePrimaryCtxSetFlags_v2(runtime_device(), flags));
}

API(cudaGetDeviceFlags, (unsigned *flags))
{
    int active;
    return WITHOUT_CONTEXT(cuDevicePrimaryCtxGetState(runtime_device(), flags, &active));
}

API(cudaDeviceSynchronize, (void)) { return IN_CONTEXT(cuCtxSynchronize()); }

API(cudaDeviceReset, (void))
{
    const int device = runtime_device();
    const CUresult result = runtime_initialised() ? cuDevicePrimaryCtxReset_v2(device) : runtime_why();
    if (result != CUDA_SUCCESS) return runtime_end(result);
    runtime_forget(device);
    runtime_use_device(device);
    return cudaSuccess;
}

API(cudaDeviceGetAttribute, (int *value, int attribute, int device))
{
    return WITHOUT_CONTEXT(cuDeviceGetAttribute(value, (CUdevice_attribute)attribute, device));
}

API(cudaDeviceGetPCIBusId, (char *name, int length, int device))
{
    return WITHOUT_CONTEXT(cuDeviceGetPCIBusId(name, length, device));
}

API(cudaDeviceGetByPCIBusId, (int *device, const char *name))
{
    return WITHOUT_CONTEXT(cuDeviceGetByPCIBusId(device, name));
}

API(cudaDeviceGetLimit, (size_t *value, int limit)) { return IN_CONTEXT(cuCtxGetLimit(value, limit)); }
API(cudaDeviceSetLimit, (int limit, size_t value)) { return IN_CONTEXT(cuCtxSetLimit(limit, value)); }
API(cudaDeviceGetCacheConfig, (int *config)) { return IN_CONTEXT(cuCtxGetCacheConfig(config)); }
API(cudaDeviceSetCacheConfig, (int config)) { return IN_CONTEXT(cuCtxSetCacheConfig(config)); }
API(cudaDeviceGetSharedMemConfig, (int *config)) { return IN_CONTEXT(cuCtxGetSharedMemConfig(config)); }
API(cudaDeviceSetSharedMemConfig, (int config)) { return IN_CONTEXT(cuCtxSetSharedMemConfig(config)); }
API(cudaCtxResetPersistingL2Cache, (void)) { return IN_CONTEXT(cuCtxResetPersistingL2Cache()); }
API(cudaDeviceGetStreamPriorityRange, (int *least, int *greatest))
{
    return IN_CONTEXT(cuCtxGetStreamPriorityRange(least, greatest));
}

/* ---- peers ---- */

API(cudaDeviceCanAccessPeer, (int *can, int device, int peer))
{
    return WITHOUT_CONTEXT(cuDeviceCanAccessPeer(can, device, peer));
}

/* The primary context of a peer; a driver of one device has no call that takes it. */
static CUresult peer_context(int peer, bool can, CUcontext *context)
{
    const CUresult result = check_device(peer);
    if (result != CUDA_SUCCESS) return result;
    return can ? cuDevicePrimaryCtxRetain(context, peer) : (CUresult)cudaErrorPeerAccessUnsupported;
}

static CUresult enable_peer(int peer)
{
    CUresult (*enable)(CUcontext, unsigned) = NULL;
    CUcontext context;
    const CUresult result = peer_context(peer, runtime_driver_call("cuCtxEnablePeerAccess", &enable), &context);
    return result == CUDA_SUCCESS ? enable(context, 0) : result;
}

static CUresult disable_peer(int peer)
{
    CUresult (*disable)(CUcontext) = NULL;
    CUcontext context;
    const CUresult result = peer_context(peer, runtime_driver_call("cuCtxDisablePeerAccess", &disable), &context);
    return result == CUDA_SUCCESS ? disable(context) : result;
}

API(cudaDeviceEnablePeerAccess, (int peer, unsigned flags))
{
    if (flags != 0) return runtime_fail(cudaErrorInvalidValue);
    return IN_CONTEXT(enable_peer(peer));
}

API(cudaDeviceDisablePeerAccess, (int peer)) { return IN_CONTEXT(disable_peer(peer)); }
