/* GPUs of AMD: what the contexts of one GPU share (the loaded kernels), and the device of one bsm_context. */
#ifndef BSMI_HIP_DEVICE_CONTEXT_H
#define BSMI_HIP_DEVICE_CONTEXT_H

#include "driver.h"
#include "device/gpus.h"
#include "hip/tables/instances.h"
#include "hip/tables/kernels.h"

#include <pthread.h>
#include <stdatomic.h>

enum { BSMI_MOST_CODE_OBJECTS = 128 };

/* Shared by all contexts of one GPU; lives while there is one. */
struct bsmi_hip_gpu {
    const struct bsmi_hip_driver *driver;
    int number;
    atomic_bool tested;                   /* its self-test passed */
    int cu_count, most_shared_bytes;
    hipFunction_t kernels[BSMI_HIP_KERNEL_COUNT];   /* NULL: not of this build */
    pthread_mutex_t lock;                 /* of what is below, loaded when a plan wants it first */
    hipModule_t modules[BSMI_MOST_CODE_OBJECTS];    /* as bsmi_hip_code_objects */
    hipFunction_t gemms[BSMI_HIP_MOST_INSTANCES][BSMI_HIP_PAIRS];
};

/* The device of one context. */
struct bsmi_hip_device {
    struct bsmi_device base;
    struct bsmi_hip_gpu *gpu;
    hipStream_t stream;
    struct bsmi_workspace workspace;
};
static inline struct bsmi_hip_device *bsmi_hip_device_of(const bsm_context *context)
{
    return (struct bsmi_hip_device *)(void *)context->device;
}

/* Makes a CPU context one of GPU number `number`; on failure it still is one of the CPU. */
bsm_status bsmi_hip_open(bsm_context *context, int number, void *stream);

bsm_status bsmi_hip_count(int *count);
bsm_status bsmi_hip_describe(int number, bsm_device_info *info);

/* Between them the GPU is the thread's current one; *before: which one was.  leave keeps the first failure. */
bsm_status bsmi_hip_enter(const struct bsmi_hip_gpu *gpu, int *before);
bsm_status bsmi_hip_leave(const struct bsmi_hip_gpu *gpu, int before, bsm_status status);

/* gpu.c */
bsm_status bsmi_hip_gpu_acquire(int number, struct bsmi_hip_gpu **gpu);
void bsmi_hip_gpu_release(struct bsmi_hip_gpu *gpu);

/* Whether this build has the GEMM instance for the pair of elements. */
bool bsmi_hip_has_gemm(int gemm, int pair);
/* Loads it, if it is not yet. */
bsm_status bsmi_hip_load_gemm(struct bsmi_hip_gpu *gpu, int gemm, int pair);

#endif
