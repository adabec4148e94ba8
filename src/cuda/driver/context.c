/* The device of a context: its stream, device memory for the caller, the cached workspace. */
#include "device.h"
#include "profile.h"
#include "cuda/quantize/quantize_device.h"
#include "self_test.h"

/* Memory ----------------------------------------------------------------------------------------------------------- */

static bsm_status allocate(bsm_context *context, size_t bytes, void **memory)
{
    const struct bsmi_cuda_gpu *gpu = bsmi_cuda_device_of(context)->gpu;
    CUdeviceptr found = 0;
    bsm_status status = bsmi_cuda_enter(gpu);
    if (status != BSM_OK) return status;
    status = BSMI_DRIVER_CALL(gpu->driver, cuMemAlloc, (&found, bytes), "%zu bytes of device memory", bytes);
    status = bsmi_cuda_leave(gpu, status);
    /* leaving failed: the GPU still is current */
    if (status != BSM_OK && found != 0) (void)gpu->driver->cuMemFree(found);
    if (status == BSM_OK) *memory = (void *)(uintptr_t)found;
    return status;
}

static bsm_status release(bsm_context *context, void *memory)
{
    const struct bsmi_cuda_gpu *gpu = bsmi_cuda_device_of(context)->gpu;
    bsm_status status = bsmi_cuda_enter(gpu);
    if (status != BSM_OK) return status;
    status = BSMI_DRIVER_CALL(gpu->driver, cuMemFree, ((CUdeviceptr)(uintptr_t)memory), "device memory at %p", memory);
    return bsmi_cuda_leave(gpu, status);
}

static bsm_status wait(const struct bsmi_cuda_device *device, bsm_status status, const char *what)
{
    return status != BSM_OK
               ? status
               : BSMI_DRIVER_CALL(device->gpu->driver, cuStreamSynchronize, (device->stream), "waiting for %s", what);
}

static bsm_status write(bsm_context *context, void *to, const void *from, size_t bytes)
{
    const struct bsmi_cuda_device *device = bsmi_cuda_device_of(context);
    bsm_status status = bsmi_cuda_enter(device->gpu);
    if (status != BSM_OK) return status;
    status = BSMI_DRIVER_CALL(device->gpu->driver, cuMemcpyHtoDAsync,
                              ((CUdeviceptr)(uintptr_t)to, from, bytes, device->stream),
                              "%zu bytes to device memory at %p", bytes, to);
    return bsmi_cuda_leave(device->gpu, wait(device, status, "a copy to the device"));
}

static bsm_status read(bsm_context *context, void *to, const void *from, size_t bytes)
{
    const struct bsmi_cuda_device *device = bsmi_cuda_device_of(context);
    bsm_status status = bsmi_cuda_enter(device->gpu);
    if (status != BSM_OK) return status;
    status = BSMI_DRIVER_CALL(device->gpu->driver, cuMemcpyDtoHAsync,
                              (to, (CUdeviceptr)(uintptr_t)from, bytes, device->stream),
                              "%zu bytes from device memory at %p", bytes, from);
    return bsmi_cuda_leave(device->gpu, wait(device, status, "a copy from the device"));
}

static bsm_status synchronize(bsm_context *context)
{
    const struct bsmi_cuda_device *device = bsmi_cuda_device_of(context);
    const bsm_status status = bsmi_cuda_enter(device->gpu);
    return status != BSM_OK ? status : bsmi_cuda_leave(device->gpu, wait(device, BSM_OK, "the stream's work"));
}

/* The cached workspace --------------------------------------------------------------------------------------------- */

/* A stream that is being captured must not depend on work outside its graph, nor may memory be had while it is. */
static bsm_status refuse_capture(const struct bsmi_cuda_device *device, CUstream stream)
{
    int capturing = 0;
    const bsm_status status =
        BSMI_DRIVER_CALL(device->gpu->driver, cuStreamIsCapturing, (stream, &capturing), "the stream's state");
    if (status == BSM_OK && capturing != 0)
        return bsmi_fail(BSM_EINVAL,
                         "the stream is being captured: this call uses a workspace that the context keeps; "
                         "capture bsm_plan_run with a workspace of your own");
    return status;
}

/* cuMemFree waits for the work that uses the old one. */
static bsm_status grow(struct bsmi_cuda_device *device, size_t bytes)
{
    const struct bsmi_driver *d = device->gpu->driver;
    if (device->workspace_bytes >= bytes) return BSM_OK;
    if (device->workspace != 0) {
        const bsm_status status = BSMI_DRIVER_CALL(d, cuMemFree, (device->workspace), "the cached workspace");
        device->workspace = 0, device->workspace_bytes = 0;
        if (status != BSM_OK) return status;
    }
    const bsm_status status =
        BSMI_DRIVER_CALL(d, cuMemAlloc, (&device->workspace, bytes), "a workspace of %zu bytes", bytes);
    if (status == BSM_OK) device->workspace_bytes = bytes;
    else device->workspace = 0;
    return status;
}

bsm_status bsmi_cuda_workspace_lock(struct bsmi_cuda_device *device, CUstream stream, size_t bytes,
                                    CUdeviceptr *workspace)
{
    pthread_mutex_lock(&device->lock);
    bsm_status status = refuse_capture(device, stream);
    if (status == BSM_OK) status = grow(device, bytes);
    if (status == BSM_OK)
        status = BSMI_DRIVER_CALL(device->gpu->driver, cuStreamWaitEvent, (stream, device->free, 0),
                                  "waiting for the cached workspace");
    if (status != BSM_OK) pthread_mutex_unlock(&device->lock);
    else *workspace = device->workspace;
    return status;
}

bsm_status bsmi_cuda_workspace_unlock(struct bsmi_cuda_device *device, CUstream stream, bsm_status status)
{
    /* Also after a failure: what was launched before it uses the workspace. */
    const CUresult result = device->gpu->driver->cuEventRecord(device->free, stream);
    if (status == BSM_OK)
        status =
            bsmi_driver_check(device->gpu->driver, result, "cuEventRecord", "marking the cached workspace as in use");
    pthread_mutex_unlock(&device->lock);
    return status;
}

/* Opening and closing ---------------------------------------------------------------------------------------------- */

static void close_device(bsm_context *context)
{
    struct bsmi_cuda_device *device = bsmi_cuda_device_of(context);
    const struct bsmi_driver *d = device->gpu->driver;
    CUcontext popped;
    if (d->cuCtxPushCurrent(device->gpu->primary) == CUDA_SUCCESS) {
        bsmi_cuda_profile_free(context);
        if (device->workspace != 0) (void)d->cuMemFree(device->workspace);
        (void)d->cuEventDestroy(device->free);
        (void)d->cuCtxPopCurrent(&popped);
    }
    bsmi_cuda_gpu_release(device->gpu);
    pthread_mutex_destroy(&device->lock);
    bsmi_release(context, device, sizeof *device);
    context->device = NULL;
}

static const struct bsmi_device_calls calls = {
    .backend = BSM_BACKEND_CUDA, .close = close_device,
    .quantize = bsmi_cuda_quantize, .quantize_both = bsmi_cuda_quantize_both, .dequantize = bsmi_cuda_dequantize,
    .convert_scales = bsmi_cuda_convert_scales,
    .allocate = allocate, .release = release, .write = write, .read = read, .synchronize = synchronize,
};

static bsm_status make_event(struct bsmi_cuda_device *device)
{
    bsm_status status = bsmi_cuda_enter(device->gpu);
    if (status != BSM_OK) return status;
    status = BSMI_DRIVER_CALL(device->gpu->driver, cuEventCreate, (&device->free, CU_EVENT_DISABLE_TIMING),
                              "an event for the cached workspace");
    status = bsmi_cuda_leave(device->gpu, status);
    if (status != BSM_OK && device->free != NULL) (void)device->gpu->driver->cuEventDestroy(device->free);
    return status;
}

static bsm_status start(struct bsmi_cuda_device *device, int number)
{
    bsm_status status = bsmi_cuda_gpu_acquire(number, &device->gpu);
    if (status != BSM_OK) return status;
    status = make_event(device);
    if (status != BSM_OK) bsmi_cuda_gpu_release(device->gpu);
    return status;
}

bsm_status bsmi_cuda_open(bsm_context *context, int number, void *stream)
{
    struct bsmi_cuda_device *device = bsmi_allocate(context, sizeof *device);
    if (device == NULL) return bsmi_fail(BSM_ENOMEM, "no memory for a device (%zu bytes)", sizeof *device);
    *device = (struct bsmi_cuda_device){ .base = { &calls }, .stream = stream };
    pthread_mutex_init(&device->lock, NULL);
    bsm_status status = start(device, number);
    if (status != BSM_OK) {
        pthread_mutex_destroy(&device->lock);
        bsmi_release(context, device, sizeof *device);
        return status;
    }
    context->device = &device->base;
    status = bsmi_cuda_self_test(context);
    if (status != BSM_OK) close_device(context);
    return status;
}
