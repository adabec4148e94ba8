/* The table of kernels that are no GEMMs. */
#include "kernels.h"

const struct bsmi_hip_kernel bsmi_hip_kernels[BSMI_HIP_KERNEL_COUNT] = {
#define X(id, function, file, most) [BSMI_HIP_KERNEL_##id] = { function, file, most },
    BSMI_HIP_KERNELS(X)
#undef X
};
