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

static const struct bsmi_hip_driver *driver_of(const void *gpu)
{
    return ((const struct bsmi_hip_gpu *)gpu)->driver;
}

static bsm_status is_capturing(const void *gpu, void *stream, bool *capturing)
{
    int found = 0;
    const bsm_status status =
        BSMI_HIP_CALL(driver_of(gpu), hipStreamIsCapturing, (stream, &found), "the stream's state");
    *capturing = found != 0;
    return status;
}

static bsm_status allocate_workspace(const void *gpu, size_t bytes, void **memory)
{
    return BSMI_HIP_CALL(driver_of(gpu), hipMalloc, (memory, bytes), "a workspace of %zu bytes", bytes);
}

static bsm_status release_workspace(const void *gpu, void *memory)
{
    return BSMI_HIP_CALL(driver_of(gpu), hipFree, (memory), "the cached workspace");
}

static bsm_status wait_for_workspace(const void *gpu, void *stream, void *event)
{
    return BSMI_HIP_CALL(driver_of(gpu), hipStreamWaitEvent, (stream, event, 0), "waiting for the cached workspace");
}

static bsm_status record_workspace(const void *gpu, void *stream, void *event, bsm_status status)
{
    const hipError_t result = driver_of(gpu)->hipEventRecord(event, stream);
    return status != BSM_OK ? status
                            : bsmi_hip_check(driver_of(gpu), result, "hipEventRecord",
                                             "marking the cached workspace as in use");
}

static const struct bsmi_workspace_calls workspace_calls = { is_capturing, allocate_workspace, release_workspace,
                                                             wait_for_workspace, record_workspace };

/* Opening and closing ---------------------------------------------------------------------------------------------- */

static void close_device(bsm_context *context)
{
    struct bsmi_hip_device *device = bsmi_hip_device_of(context);
    const struct bsmi_hip_driver *d = device->gpu->driver;
    int before;
    if (bsmi_hip_enter(device->gpu, &before) == BSM_OK) {
        if (device->workspace.memory != NULL) (void)d->hipFree(device->workspace.memory);
        (void)d->hipEventDestroy(device->workspace.free);
        (void)bsmi_hip_leave(device->gpu, before, BSM_OK);
    }
    bsmi_hip_gpu_release(device->gpu);
    pthread_mutex_destroy(&device->workspace.lock);
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
    hipEvent_t event = NULL;
    bsm_status status = bsmi_hip_enter(device->gpu, &before);
    if (status != BSM_OK) return status;
    status = BSMI_HIP_CALL(device->gpu->driver, hipEventCreateWithFlags, (&event, hipEventDisableTiming),
                           "an event for the cached workspace");
    status = bsmi_hip_leave(device->gpu, before, status);
    if (status != BSM_OK && event != NULL) (void)device->gpu->driver->hipEventDestroy(event);
    device->workspace.gpu = device->gpu, device->workspace.free = event;
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
    *device = (struct bsmi_hip_device){ .base = { &calls }, .stream = stream,
                                         .workspace.calls = &workspace_calls };
    pthread_mutex_init(&device->workspace.lock, NULL);
    bsm_status status = start(device, number);
    if (status != BSM_OK) {
        pthread_mutex_destroy(&device->workspace.lock);
        bsmi_release(context, device, sizeof *device);
        return status;
    }
    context->device = &device->base;
    status = bsmi_hip_self_test(context);
    if (status != BSM_OK) close_device(context);
    return status;
}
