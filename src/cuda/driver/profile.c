/* Times of kernels by events: two for each launch, read at the end. */
#include "profile.h"

void bsmi_cuda_profile_free(bsm_context *context)
{
    struct bsmi_cuda_device *device = bsmi_cuda_device_of(context);
    struct bsmi_cuda_profile *profile = device->profile;
    if (profile == NULL) return;
    for (int i = 0; i < BSM_PROFILE_KERNELS; i++) {
        if (profile->before[i] != NULL) (void)device->gpu->driver->cuEventDestroy(profile->before[i]);
        if (profile->behind[i] != NULL) (void)device->gpu->driver->cuEventDestroy(profile->behind[i]);
    }
    bsmi_release(context, profile, sizeof *profile);
    device->profile = NULL;
}

bsm_status bsmi_cuda_profile_begin(bsm_context *context)
{
    struct bsmi_cuda_device *device = bsmi_cuda_device_of(context);
    if (device->profile != NULL) return bsmi_fail(BSM_EINVAL, "the context's profile has begun already");
    device->profile = bsmi_allocate(context, sizeof *device->profile);
    if (device->profile == NULL)
        return bsmi_fail(BSM_ENOMEM, "no memory for a profile (%zu bytes)", sizeof *device->profile);
    memset(device->profile, 0, sizeof *device->profile);
    return BSM_OK;
}

bsm_status bsmi_cuda_profile_before(const struct bsmi_driver *driver, struct bsmi_cuda_profile *profile,
                                    CUstream stream, const bsm_kernel_time *kernel)
{
    if (profile == NULL || profile->count >= BSM_PROFILE_KERNELS) return BSM_OK;
    const int i = profile->count;
    profile->kernels[i] = *kernel;
    bsm_status status = BSM_OK;
    if (profile->before[i] == NULL)
        status = BSMI_DRIVER_CALL(driver, cuEventCreate, (&profile->before[i], 0), "of kernel %s", kernel->kernel);
    if (status == BSM_OK && profile->behind[i] == NULL)
        status = BSMI_DRIVER_CALL(driver, cuEventCreate, (&profile->behind[i], 0), "of kernel %s", kernel->kernel);
    if (status != BSM_OK) return status;
    return BSMI_DRIVER_CALL(driver, cuEventRecord, (profile->before[i], stream), "in front of kernel %s",
                            kernel->kernel);
}

bsm_status bsmi_cuda_profile_behind(const struct bsmi_driver *driver, struct bsmi_cuda_profile *profile,
                                    CUstream stream)
{
    if (profile == NULL || profile->count >= BSM_PROFILE_KERNELS) return BSM_OK;
    const int i = profile->count++;
    return BSMI_DRIVER_CALL(driver, cuEventRecord, (profile->behind[i], stream), "behind kernel %s",
                            profile->kernels[i].kernel);
}

static bsm_status read_time(const struct bsmi_driver *driver, struct bsmi_cuda_profile *profile, int i)
{
    float milliseconds = 0;
    bsm_status status = BSMI_DRIVER_CALL(driver, cuEventSynchronize, (profile->behind[i]), "waiting for kernel %s",
                                         profile->kernels[i].kernel);
    if (status == BSM_OK)
        status = BSMI_DRIVER_CALL(driver, cuEventElapsedTime,
                                  (&milliseconds, profile->before[i], profile->behind[i]), "of kernel %s",
                                  profile->kernels[i].kernel);
    profile->kernels[i].seconds = 1e-3 * (double)milliseconds;
    return status;
}

bsm_status bsmi_cuda_profile_end(bsm_context *context, bsm_kernel_time *kernels, int most, int *count)
{
    struct bsmi_cuda_device *device = bsmi_cuda_device_of(context);
    if (device->profile == NULL) return bsmi_fail(BSM_EINVAL, "the context's profile has not begun");
    bsm_status status = bsmi_cuda_enter(device->gpu);
    if (status != BSM_OK) return status;
    for (int i = 0; i < device->profile->count && status == BSM_OK; i++) {
        status = read_time(device->gpu->driver, device->profile, i);
        if (i < most) kernels[i] = device->profile->kernels[i];
    }
    *count = status == BSM_OK ? device->profile->count : 0;
    bsmi_cuda_profile_free(context);
    return bsmi_cuda_leave(device->gpu, status);
}
