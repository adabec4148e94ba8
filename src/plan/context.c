/* bsm_context_create: which backend a context gets, and what the machine has. */
#include "core/core.h"
#include "cuda/driver/device.h"
#include "cuda/driver/embedded.h"
#include "hip/driver/device.h"
#include "hip/driver/embedded.h"

static bsm_status check_backend(int backend)
{
    if (bsm_backend_name(backend) == NULL)
        return bsmi_fail(BSM_EINVAL, "backend=%d is no backend: use one of enum bsm_backend", backend);
    return BSM_OK;
}

static bsm_status check_options(const bsm_context_options *options)
{
    const bsm_status status = check_backend((int)options->backend);
    if (status != BSM_OK) return status;
    if (options->device < 0) return bsmi_fail(BSM_EINVAL, "options->device=%d is negative", options->device);
    if (options->backend != BSM_BACKEND_CPU) return BSM_OK;
    if (options->device != 0)
        return bsmi_fail(BSM_EINVAL,
                         "options->device=%d: the CPU is one device, number 0; set options->backend for a GPU",
                         options->device);
    if (options->stream != NULL)
        return bsmi_fail(BSM_EINVAL, "options->stream=%p: the CPU has no streams; set options->backend for a GPU",
                         options->stream);
    return BSM_OK;
}

bsm_status bsm_context_create(const bsm_context_options *given, bsm_context **context)
{
    bsm_context_options options = { .struct_size = sizeof options };
    if (context == NULL) return bsmi_fail(BSM_EINVAL, "context is NULL");
    *context = NULL;
    bsm_status status = given == NULL ? BSM_OK : bsmi_read_struct("options", given, &options, sizeof options);
    if (status == BSM_OK) status = check_options(&options);
    if (status == BSM_OK) status = bsmi_context_make(&options, context);
    if (status != BSM_OK || options.backend == BSM_BACKEND_CPU) return status;
    const bool hip = options.backend == BSM_BACKEND_HIP || options.backend == BSM_BACKEND_HIP_OR_CPU,
               or_cpu = options.backend == BSM_BACKEND_CUDA_OR_CPU || options.backend == BSM_BACKEND_HIP_OR_CPU;
    status = hip ? bsmi_hip_open(*context, options.device, options.stream)
                 : bsmi_cuda_open(*context, options.device, options.stream);
    if (status == BSM_OK || (status == BSM_EDEVICE && or_cpu)) return BSM_OK;
    bsm_context_destroy(*context);
    *context = NULL;
    return status;
}

const char *bsm_backend_missing(int backend)
{
    if (bsm_backend_name(backend) == NULL) return NULL;
    return backend == BSM_BACKEND_CUDA  ? bsmi_cuda_not_built
           : backend == BSM_BACKEND_HIP ? bsmi_hip_not_built
                                        : "";
}

bsm_status bsm_device_count(bsm_backend backend, int *count)
{
    if (count == NULL) return bsmi_fail(BSM_EINVAL, "count is NULL");
    *count = 0;
    const bsm_status status = check_backend((int)backend);
    if (status != BSM_OK) return status;
    if (backend == BSM_BACKEND_CUDA) return bsmi_cuda_count(count);
    if (backend == BSM_BACKEND_HIP) return bsmi_hip_count(count);
    *count = 1;
    return BSM_OK;
}

bsm_status bsm_device_describe(bsm_backend backend, int device, bsm_device_info *info)
{
    bsm_device_info about = { .struct_size = sizeof about };
    size_t room;
    if (info == NULL) return bsmi_fail(BSM_EINVAL, "info is NULL");
    memcpy(&room, info, sizeof room);
    if (room < sizeof room || room > 65536)
        return bsmi_fail(BSM_EINVAL, "info->struct_size is %zu: set it to the sizeof of the struct", room);
    if (backend != BSM_BACKEND_CUDA && backend != BSM_BACKEND_HIP)
        return bsmi_fail(BSM_EINVAL, "backend=%d: devices of BSM_BACKEND_CUDA and BSM_BACKEND_HIP are described",
                         (int)backend);
    const bsm_status status =
        backend == BSM_BACKEND_CUDA ? bsmi_cuda_describe(device, &about) : bsmi_hip_describe(device, &about);
    if (status != BSM_OK) return status;
    about.struct_size = room;
    memset(info, 0, room);
    memcpy(info, &about, BSMI_MIN(room, sizeof about));
    return BSM_OK;
}
