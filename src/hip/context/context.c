/* The device of a context: its stream, device memory for the caller, the cached workspace. */
#include "hip/driver/device.h"
#include "hip/quantize/quantize.h"
#include "self_test.h"

/* Memory ----------------------------------------------------------------------------------------------------------- */

static bsm_status allocate(bsm_context *context, size_t bytes, void **memory)
{
    const struct bsmi_hip_gpu *gpu = bsmi_hip_device_of(context)->gpu;
    void *found = NULL;
    int before;
    bsm_status status = bsmi_hip_enter(gpu, &before);
    if (status != BSM_OK) return status;
    status = BSMI_HIP_CALL(gpu->driver, hipMalloc, (&found, bytes), "%zu bytes of device memory", bytes);
    status = bsmi_hip_leave(gpu, before, status);
    if (status != BSM_OK && found != NULL) (void)gpu->driver->hipFree(found);
    if (status == BSM_OK) *memory = found;
    return status;
}

static bsm_status release(bsm_context *context, void *memory)
{
    const struct bsmi_hip_gpu *gpu = bsmi_hip_device_of(context)->gpu;
    int before;
    const bsm_status status = bsmi_hip_enter(gpu, &before);
    if (status != BSM_OK) return status;
    return bsmi_hip_leave(gpu, before,
                          BSMI_HIP_CALL(gpu->driver, hipFree, (memory), "device memory at %p", memory));
}

static bsm_status wait(const struct bsmi_hip_device *device, bsm_status status, const char *what)
{
    if (status != BSM_OK) return status;
    return BSMI_HIP_CALL(device->gpu->driver, hipStreamSynchronize, (device->stream), "waiting for %s", what);
}

static bsm_status write(bsm_context *context, void *to, const void *from, size_t bytes)
{
    const struct bsmi_hip_device *device = bsmi_hip_device_of(context);
    int before;
    bsm_status status = bsmi_hip_enter(device->gpu, &before);
    if (status != BSM_OK) return status;
    status = BSMI_HIP_CALL(device->gpu->driver, hipMemcpyHtoDAsync,
                           (to, (void *)(uintptr_t)from, bytes, device->stream), "%zu bytes to device memory at %p",
                           bytes, to);
    return bsmi_hip_leave(device->gpu, before, wait(device, status, "a copy to the device"));
}

static bsm_status read(bsm_context *context, void *to, const void *from, size_t bytes)
{
    const struct bsmi_hip_device *device = bsmi_hip_device_of(context);
    int before;
    bsm_status status = bsmi_hip_enter(device->gpu, &before);
    if (status != BSM_OK) return status;
    status = BSMI_HIP_CALL(device->gpu->driver, hipMemcpyDtoHAsync,
                           (to, (void *)(uintptr_t)from, bytes, device->stream), "%zu bytes from device memory at %p",
                           bytes, from);
    return bsmi_hip_leave(device->gpu, before, wait(device, status, "a copy from the device"));
}

static bsm_status synchronize(bsm_context *context)
{
    const struct bsmi_hip_device *device = bsmi_hip_device_of(context);
    int before;
    const bsm_status status = bsmi_hip_enter(device->gpu, &before);
    return status != BSM_OK ? status
                            : bsmi_hip_leave(device->gpu, before, wait(device, BSM_OK, "the stream's work"));
}

/* The cached workspace --------------------------------------------------------------------------------------------- */

/* A stream that is being captured must not depend on work outside its graph, nor may memory be had while it is. */
static bsm_status refuse_capture(const struct bsmi_hip_device *device, hipStream_t stream)
{
    int capturing = 0;
    const bsm_status status =
        BSMI_HIP_CALL(device->gpu->driver, hipStreamIsCapturing, (stream, &capturing), "the stream's state");
    if (status == BSM_OK && capturing != 0)
        return bsmi_fail(BSM_EINVAL,
                         "the stream is being captured: this call uses a workspace that the context keeps; "
                         "capture bsm_plan_run with a workspace of your own");
    return status;
}

/* hipFree waits for the work that uses the old one. */
static bsm_status grow(struct bsmi_hip_device *device, size_t bytes)
{
    const struct bsmi_hip_driver *d = device->gpu->driver;
    if (device->workspace_bytes >= bytes) return BSM_OK;
    void *old = device->workspace;
    device->workspace = NULL, device->workspace_bytes = 0;
    bsm_status status = old == NULL ? BSM_OK : BSMI_HIP_CALL(d, hipFree, (old), "the cached workspace");
    if (status == BSM_OK)
        status = BSMI_HIP_CALL(d, hipMalloc, (&device->workspace, bytes), "a workspace of %zu bytes", bytes);
    if (status == BSM_OK) device->workspace_bytes = bytes;
    else device->workspace = NULL;
    return status;
}

bsm_status bsmi_hip_workspace_lock(struct bsmi_hip_device *device, hipStream_t stream, size_t bytes, void **workspace)
{
    pthread_mutex_lock(&device->lock);
    bsm_status status = refuse_capture(device, stream);
    if (status == BSM_OK) status = grow(device, bytes);
    if (status == BSM_OK)
        status = BSMI_HIP_CALL(device->gpu->driver, hipStreamWaitEvent, (stream, device->free, 0),
                               "waiting for the cached workspace");
    if (status != BSM_OK) pthread_mutex_unlock(&device->lock);
    else *workspace = device->workspace;
    return status;
}

bsm_status bsmi_hip_workspace_unlock(struct bsmi_hip_device *device, hipStream_t stream, bsm_status status)
{
    /* Also after a failure: what was launched before it uses the workspace. */
    const hipError_t result = device->gpu->driver->hipEventRecord(device->free, stream);
    if (status == BSM_OK)
        status = bsmi_hip_check(device->gpu->driver, result, "hipEventRecord",
                                "marking the cached workspace as in use");
    pthread_mutex_unlock(&device->lock);
    return status;
}

/* Opening and closing ---------------------------------------------------------------------------------------------- */

static void close_device(bsm_context *context)
{
    struct bsmi_hip_device *device = bsmi_hip_device_of(context);
    const struct bsmi_hip_driver *d = device->gpu->driver;
    int before;
    if (bsmi_hip_enter(device->gpu, &before) == BSM_OK) {
        if (device->workspace != NULL) (void)d->hipFree(device->workspace);
        (void)d->hipEventDestroy(device->free);
        (void)bsmi_hip_leave(device->gpu, before, BSM_OK);
    }
    bsmi_hip_gpu_release(device->gpu);
    pthread_mutex_destroy(&device->lock);
    bsmi_release(context, device, sizeof *device);
    context->device = NULL;
}

static const struct bsmi_device_calls calls = {
    .backend = BSM_BACKEND_HIP, .close = close_device,
    .quantize = bsmi_hip_quantize, .quantize_both = bsmi_hip_quantize_both, .dequantize = bsmi_hip_dequantize,
    .convert_scales = bsmi_hip_convert_scales,
    .allocate = allocate, .release = release, .write = write, .read = read, .synchronize = synchronize,
};

static bsm_status make_event(struct bsmi_hip_device *device)
{
    int before;
    bsm_status status = bsmi_hip_enter(device->gpu, &before);
    if (status != BSM_OK) return status;
    status = BSMI_HIP_CALL(device->gpu->driver, hipEventCreateWithFlags, (&device->free, hipEventDisableTiming),
                           "an event for the cached workspace");
    status = bsmi_hip_leave(device->gpu, before, status);
    if (status != BSM_OK && device->free != NULL) (void)device->gpu->driver->hipEventDestroy(device->free);
    return status;
}

static bsm_status start(struct bsmi_hip_device *device, int number)
{
    bsm_status status = bsmi_hip_gpu_acquire(number, &device->gpu);
    if (status != BSM_OK) return status;
    status = make_event(device);
    if (status != BSM_OK) bsmi_hip_gpu_release(device->gpu);
    return status;
}

bsm_status bsmi_hip_open(bsm_context *context, int number, void *stream)
{
    struct bsmi_hip_device *device = bsmi_allocate(context, sizeof *device);
    if (device == NULL) return bsmi_fail(BSM_ENOMEM, "no memory for a device (%zu bytes)", sizeof *device);
    *device = (struct bsmi_hip_device){ .base = { &calls }, .stream = stream };
    pthread_mutex_init(&device->lock, NULL);
    bsm_status status = start(device, number);
    if (status != BSM_OK) {
        pthread_mutex_destroy(&device->lock);
        bsmi_release(context, device, sizeof *device);
        return status;
    }
    context->device = &device->base;
    status = bsmi_hip_self_test(context);
    if (status != BSM_OK) close_device(context);
    return status;
}
