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

static const struct bsmi_driver *driver_of(const void *gpu) { return ((const struct bsmi_cuda_gpu *)gpu)->driver; }

static bsm_status is_capturing(const void *gpu, void *stream, bool *capturing)
{
    int found = 0;
    const bsm_status status =
        BSMI_DRIVER_CALL(driver_of(gpu), cuStreamIsCapturing, (stream, &found), "the stream's state");
    *capturing = found != 0;
    return status;
}

static bsm_status allocate_workspace(const void *gpu, size_t bytes, void **memory)
{
    CUdeviceptr found = 0;
    const bsm_status status =
        BSMI_DRIVER_CALL(driver_of(gpu), cuMemAlloc, (&found, bytes), "a workspace of %zu bytes", bytes);
    *memory = (void *)(uintptr_t)found;
    return status;
}

static bsm_status release_workspace(const void *gpu, void *memory)
{
    return BSMI_DRIVER_CALL(driver_of(gpu), cuMemFree, ((CUdeviceptr)(uintptr_t)memory), "the cached workspace");
}

static bsm_status wait_for_workspace(const void *gpu, void *stream, void *event)
{
    return BSMI_DRIVER_CALL(driver_of(gpu), cuStreamWaitEvent, (stream, event, 0), "waiting for the cached workspace");
}

static bsm_status record_workspace(const void *gpu, void *stream, void *event, bsm_status status)
{
    const CUresult result = driver_of(gpu)->cuEventRecord(event, stream);
    return status != BSM_OK ? status
                            : bsmi_driver_check(driver_of(gpu), result, "cuEventRecord",
                                                "marking the cached workspace as in use");
}

static const struct bsmi_workspace_calls workspace_calls = { is_capturing, allocate_workspace, release_workspace,
                                                             wait_for_workspace, record_workspace };

/* Opening and closing ---------------------------------------------------------------------------------------------- */

static void close_device(bsm_context *context)
{
    struct bsmi_cuda_device *device = bsmi_cuda_device_of(context);
    const struct bsmi_driver *d = device->gpu->driver;
    CUcontext popped;
    if (d->cuCtxPushCurrent(device->gpu->primary) == CUDA_SUCCESS) {
        bsmi_cuda_profile_free(context);
        if (device->workspace.memory != NULL)
            (void)d->cuMemFree((CUdeviceptr)(uintptr_t)device->workspace.memory);
        (void)d->cuEventDestroy(device->workspace.free);
        (void)d->cuCtxPopCurrent(&popped);
    }
    bsmi_cuda_gpu_release(device->gpu);
    pthread_mutex_destroy(&device->workspace.lock);
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
    CUevent event = NULL;
    bsm_status status = bsmi_cuda_enter(device->gpu);
    if (status != BSM_OK) return status;
    status = BSMI_DRIVER_CALL(device->gpu->driver, cuEventCreate, (&event, CU_EVENT_DISABLE_TIMING),
                              "an event for the cached workspace");
    status = bsmi_cuda_leave(device->gpu, status);
    if (status != BSM_OK && event != NULL) (void)device->gpu->driver->cuEventDestroy(event);
    device->workspace.gpu = device->gpu, device->workspace.free = event;
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
    *device = (struct bsmi_cuda_device){ .base = { &calls }, .stream = stream,
                                          .workspace.calls = &workspace_calls };
    pthread_mutex_init(&device->workspace.lock, NULL);
    bsm_status status = start(device, number);
    if (status != BSM_OK) {
        pthread_mutex_destroy(&device->workspace.lock);
        bsmi_release(context, device, sizeof *device);
        return status;
    }
    context->device = &device->base;
    status = bsmi_cuda_self_test(context);
    if (status != BSM_OK) close_device(context);
    return status;
}
