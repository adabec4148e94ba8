/* Calls that a context hands on to its device. */
#include "core.h"

bsm_backend bsm_context_backend(const bsm_context *context)
{
    return context == NULL || context->device == NULL ? BSM_BACKEND_CPU : context->device->calls->backend;
}

static const char *const names[BSM_BACKEND_COUNT] = { "cpu", "cuda", "cuda_or_cpu", "hip", "hip_or_cpu" };

const char *bsm_backend_name(int backend)
{
    return backend >= 0 && backend < BSM_BACKEND_COUNT ? names[backend] : NULL;
}

int bsm_backend_from_name(const char *name)
{
    for (int i = 0; name != NULL && i < BSM_BACKEND_COUNT; i++)
        if (strcmp(name, names[i]) == 0) return i;
    return -1;
}

static bsm_status find(const bsm_context *context, const struct bsmi_device_calls **calls)
{
    if (context == NULL) return bsmi_fail(BSM_EINVAL, "context is NULL");
    if (context->device == NULL)
        return bsmi_fail(BSM_EINVAL, "context is one of the CPU, which has no device memory: use host memory as it is");
    *calls = context->device->calls;
    return BSM_OK;
}

bsm_status bsm_device_allocate(bsm_context *context, size_t bytes, void **memory)
{
    const struct bsmi_device_calls *calls = NULL;
    if (memory == NULL) return bsmi_fail(BSM_EINVAL, "memory is NULL");
    *memory = NULL;
    const bsm_status status = find(context, &calls);
    return status == BSM_OK && bytes > 0 ? calls->allocate(context, bytes, memory) : status;
}

bsm_status bsm_device_release(bsm_context *context, void *memory)
{
    const struct bsmi_device_calls *calls = NULL;
    const bsm_status status = find(context, &calls);
    return status == BSM_OK && memory != NULL ? calls->release(context, memory) : status;
}

static bsm_status check_copy(const void *to, const void *from, size_t bytes)
{
    if (bytes > 0 && (to == NULL || from == NULL))
        return bsmi_fail(BSM_EINVAL, "%s is NULL", to == NULL ? "to" : "from");
    return BSM_OK;
}

bsm_status bsm_device_write(bsm_context *context, void *to, const void *from, size_t bytes)
{
    const struct bsmi_device_calls *calls = NULL;
    bsm_status status = find(context, &calls);
    if (status == BSM_OK) status = check_copy(to, from, bytes);
    return status == BSM_OK && bytes > 0 ? calls->write(context, to, from, bytes) : status;
}

bsm_status bsm_device_read(bsm_context *context, void *to, const void *from, size_t bytes)
{
    const struct bsmi_device_calls *calls = NULL;
    bsm_status status = find(context, &calls);
    if (status == BSM_OK) status = check_copy(to, from, bytes);
    return status == BSM_OK && bytes > 0 ? calls->read(context, to, from, bytes) : status;
}

bsm_status bsm_context_synchronize(bsm_context *context)
{
    if (context == NULL) return bsmi_fail(BSM_EINVAL, "context is NULL");
    return context->device == NULL ? BSM_OK : context->device->calls->synchronize(context);
}
