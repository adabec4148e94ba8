/* The tables of kernels. */
#include "kernels.h"

#include <stddef.h>

const struct bsmi_cuda_kernel bsmi_cuda_kernels[BSMI_KERNEL_COUNT] = {
#define X(id, function, file, threads, waits) { function, file, threads, waits },
    BSMI_CUDA_KERNELS(X)
#undef X
};

/*    name             function           file          tile       cluster  threads  shared     boxes of A, B, D  waits */
const struct bsmi_gemm_instance bsmi_gemm_instances[] = {
    { NULL, NULL, NULL, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, false },
};
const int bsmi_gemm_instance_count = sizeof bsmi_gemm_instances / sizeof bsmi_gemm_instances[0] - 1;
_Static_assert(sizeof bsmi_gemm_instances / sizeof bsmi_gemm_instances[0] - 1 <= BSMI_MOST_GEMM_INSTANCES, "raise the limit");
