/* bsm_profile: whose context it is, and what is refused. */
#include "cuda/driver/profile.h"

static bsm_status check(const bsm_context *context)
{
    if (context == NULL) return bsmi_fail(BSM_EINVAL, "context is NULL");
    if (bsm_context_backend(context) != BSM_BACKEND_CUDA)
        return bsmi_fail(BSM_EUNSUPPORTED, "context is one of backend %s: kernels are timed on backend cuda alone",
                         bsm_backend_name((int)bsm_context_backend(context)));
    return BSM_OK;
}

bsm_status bsm_profile_begin(bsm_context *context)
{
    const bsm_status status = check(context);
    return status == BSM_OK ? bsmi_cuda_profile_begin(context) : status;
}

bsm_status bsm_profile_end(bsm_context *context, bsm_kernel_time *kernels, int most, int *count)
{
    if (count == NULL) return bsmi_fail(BSM_EINVAL, "count is NULL");
    *count = 0;
    if (most < 0) return bsmi_fail(BSM_EINVAL, "most=%d is negative", most);
    if (kernels == NULL && most > 0) return bsmi_fail(BSM_EINVAL, "kernels is NULL, and most=%d", most);
    const bsm_status status = check(context);
    return status == BSM_OK ? bsmi_cuda_profile_end(context, kernels, most, count) : status;
}
