/* The table of kernels that are no GEMMs. */
#include "kernels.h"

const struct bsmi_cuda_kernel bsmi_cuda_kernels[BSMI_KERNEL_COUNT] = {
#define X(id, function, file, threads, most) [BSMI_KERNEL_##id] = { function, file, threads, most },
    BSMI_CUDA_KERNELS(X)
#undef X
};
