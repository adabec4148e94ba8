/* Launching kernels. */
#include "launch.h"
#include "hip/params/kernels.h"

static bsm_status launch(const struct bsmi_hip_queue *queue, hipFunction_t function, const char *name, int64_t groups,
                         int threads, const void *parameters)
{
    uint32_t group_count = (uint32_t)groups;
    /* The runtime reads through them alone; kernels of gfx950/ take the first. */
    void *arguments[] = { (void *)(uintptr_t)parameters, &group_count };
    return BSMI_HIP_CALL(queue->gpu->driver, hipModuleLaunchKernel,
                         (function, (unsigned)groups, 1, 1, (unsigned)threads, 1, 1, 0, queue->stream, arguments, NULL),
                         "kernel %s, %lld workgroups of %d threads", name, (long long)groups, threads);
}

bsm_status bsmi_hip_launch(const struct bsmi_hip_queue *queue, enum bsmi_hip_kernel_id id, int64_t pieces,
                           const void *parameters)
{
    const struct bsmi_hip_kernel *kernel = &bsmi_hip_kernels[id];
    if (pieces <= 0) return BSM_OK;
    if (queue->gpu->kernels[id] == NULL)
        return bsmi_fail(BSM_EUNSUPPORTED, "kernel %s is not in this build", kernel->function);
    return launch(queue, queue->gpu->kernels[id], kernel->function,
                  kernel->most == 0 ? pieces : BSMI_MIN(pieces, (int64_t)queue->gpu->cu_count * kernel->most),
                  BSMI_HIP_THREADS, parameters);
}

bsm_status bsmi_hip_launch_gemm(const struct bsmi_hip_queue *queue, int gemm, int pair,
                                const struct bsmi_hip_gemm_parameters *parameters, int64_t tiles)
{
    const struct bsmi_hip_instance *instance = &bsmi_hip_instances[gemm];
    if (tiles <= 0) return BSM_OK;
    return launch(queue, queue->gpu->gemms[gemm][pair], instance->name, tiles, instance->threads, parameters);
}

bsm_status bsmi_hip_fill_word(const struct bsmi_hip_queue *queue, void *to, uint32_t word, const char *what)
{
    return BSMI_HIP_CALL(queue->gpu->driver, hipMemsetD32Async, (to, (int)word, 1, queue->stream), "%s at %p", what,
                         to);
}

bsm_status bsmi_hip_fill_bytes(const struct bsmi_hip_queue *queue, void *to, unsigned char value, int64_t bytes,
                               const char *what)
{
    return BSMI_HIP_CALL(queue->gpu->driver, hipMemsetD8Async, (to, value, (size_t)bytes, queue->stream),
                         "%lld bytes of %s", (long long)bytes, what);
}
