/* GPUs: what the contexts of one GPU share (its primary context, the loaded kernels), and the device of one
 * bsm_context. */
#ifndef BSMI_CUDA_DEVICE_H
#define BSMI_CUDA_DEVICE_H

#include "driver.h"
#include "cuda/tables/instances.h"
#include "cuda/tables/kernels.h"
#include "device/gpus.h"

#include <stdatomic.h>

enum { BSMI_MOST_FATBINS = 64 };

/* Shared by all contexts of one GPU; lives while there is one. */
struct bsmi_cuda_gpu {
    const struct bsmi_driver *driver;
    int number;
    CUdevice device;
    CUcontext primary;
    atomic_bool tested;                   /* its self-test passed */
    int capability;                       /* 90: compute capability 9.0 */
    int sm_count, most_shared_bytes;
    CUmodule modules[BSMI_MOST_FATBINS];  /* as bsmi_cuda_fatbins; NULL: for other GPUs */
    CUfunction kernels[BSMI_KERNEL_COUNT], gemms[BSMI_MOST_GEMM_INSTANCES];   /* NULL: not of this build, or for other
                                                                                 GPUs */
    int gemm_clusters[BSMI_MOST_GEMM_INSTANCES];    /* that many clusters of the instance run at one time */
};

/* The device of one context. */
struct bsmi_cuda_device {
    struct bsmi_device base;
    struct bsmi_cuda_gpu *gpu;
    CUstream stream;
    struct bsmi_workspace workspace;
    struct bsmi_cuda_profile *profile;    /* NULL: kernels are not timed */
};
static inline struct bsmi_cuda_device *bsmi_cuda_device_of(const bsm_context *context)
{
    return (struct bsmi_cuda_device *)(void *)context->device;
}

/* Makes a CPU context one of GPU number `number`; on failure it still is one of the CPU. */
bsm_status bsmi_cuda_open(bsm_context *context, int number, void *stream);

bsm_status bsmi_cuda_count(int *count);
bsm_status bsmi_cuda_describe(int number, bsm_device_info *info);

/* Between them the GPU's primary context is the thread's current one.  leave keeps the first failure. */
bsm_status bsmi_cuda_enter(const struct bsmi_cuda_gpu *gpu);
bsm_status bsmi_cuda_leave(const struct bsmi_cuda_gpu *gpu, bsm_status status);

/* gpu.c */
bsm_status bsmi_cuda_gpu_acquire(int number, struct bsmi_cuda_gpu **gpu);
void bsmi_cuda_gpu_release(struct bsmi_cuda_gpu *gpu);

#endif
