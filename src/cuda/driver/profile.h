/* Events around each kernel of a context: blockscale/profile.h. */
#ifndef BSMI_CUDA_PROFILE_H
#define BSMI_CUDA_PROFILE_H

#include "device.h"
#include "blockscale/profile.h"

struct bsmi_cuda_profile {
    int count;                            /* kernels */
    bsm_kernel_time kernels[BSM_PROFILE_KERNELS];
    CUevent before[BSM_PROFILE_KERNELS], behind[BSM_PROFILE_KERNELS];
};

bsm_status bsmi_cuda_profile_begin(bsm_context *context);
bsm_status bsmi_cuda_profile_end(bsm_context *context, bsm_kernel_time *kernels, int most, int *count);
/* Takes back everything, after failures too. */
void bsmi_cuda_profile_free(bsm_context *context);

/* Around a launch; `before` notes the kernel.  profile NULL, or full: nothing. */
bsm_status bsmi_cuda_profile_before(const struct bsmi_driver *driver, struct bsmi_cuda_profile *profile,
                                    CUstream stream, const bsm_kernel_time *kernel);
bsm_status bsmi_cuda_profile_behind(const struct bsmi_driver *driver, struct bsmi_cuda_profile *profile,
                                    CUstream stream);

#endif
