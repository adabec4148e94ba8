/* Launching kernels. */
#include "launch.h"

#include "profile.h"

#include <stdio.h>

struct launch {
    CUfunction function;
    const char *name;
    int threads, shared_bytes, cluster;
    bool begins_early, multiplies;
    int64_t ctas;
};

static bsm_status note(const struct bsmi_cuda_queue *queue, const struct launch *l)
{
    if (queue->profile == NULL) return BSM_OK;
    bsm_kernel_time kernel = { .multiplies = l->multiplies, .threads = l->threads, .ctas = l->ctas };
    snprintf(kernel.kernel, sizeof kernel.kernel, "%s", l->name);
    return bsmi_cuda_profile_before(queue->gpu->driver, queue->profile, queue->stream, &kernel);
}

static bsm_status launch(struct bsmi_cuda_queue *queue, const struct launch *l, const void *parameters)
{
    void *arguments[] = { (void *)(uintptr_t)parameters };      /* the driver reads through it alone */
    CUlaunchAttribute attributes[2];
    CUlaunchConfig config = {
        .gridDimX = (unsigned)l->ctas,
        .gridDimY = 1,
        .gridDimZ = 1,
        .blockDimX = (unsigned)l->threads,
        .blockDimY = 1,
        .blockDimZ = 1,
        .sharedMemBytes = (unsigned)l->shared_bytes,
        .hStream = queue->stream,
        .attrs = attributes,
    };
    if (l->cluster > 1)
        attributes[config.numAttrs++] = (CUlaunchAttribute){ .id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                                                             .value.clusterDim = { (unsigned)l->cluster, 1, 1 } };
    if (queue->profile == NULL && (queue->behind > 0 || l->begins_early))
        attributes[config.numAttrs++] =
            (CUlaunchAttribute){ .id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
                                 .value.programmaticStreamSerializationAllowed = 1 };
    queue->behind++;
    bsm_status status = note(queue, l);
    if (status == BSM_OK)
        status = BSMI_DRIVER_CALL(queue->gpu->driver, cuLaunchKernelEx, (&config, l->function, arguments, NULL),
                                  "kernel %s, %lld CTAs of %d threads", l->name, (long long)l->ctas, l->threads);
    return status == BSM_OK ? bsmi_cuda_profile_behind(queue->gpu->driver, queue->profile, queue->stream) : status;
}

static bsm_status launch_pieces(struct bsmi_cuda_queue *queue, enum bsmi_cuda_kernel_id id, int64_t pieces,
                                bool begins_early, const void *parameters)
{
    const struct bsmi_cuda_kernel *kernel = &bsmi_cuda_kernels[id];
    if (pieces <= 0) return BSM_OK;
    if (queue->gpu->kernels[id] == NULL)
        return bsmi_fail(BSM_EUNSUPPORTED, "kernel %s is not in this build", kernel->function);
    const struct launch l = { .function = queue->gpu->kernels[id],
                              .name = kernel->function,
                              .threads = kernel->threads,
                              .cluster = 1,
                              .begins_early = begins_early,
                              .ctas = kernel->most == 0
                                          ? pieces
                                          : BSMI_MIN(pieces, (int64_t)queue->gpu->sm_count * kernel->most) };
    return launch(queue, &l, parameters);
}

bsm_status bsmi_cuda_launch(struct bsmi_cuda_queue *queue, enum bsmi_cuda_kernel_id id, int64_t pieces,
                            const void *parameters)
{
    return launch_pieces(queue, id, pieces, false, parameters);
}

bsm_status bsmi_cuda_launch_early(struct bsmi_cuda_queue *queue, enum bsmi_cuda_kernel_id id, int64_t pieces,
                                  const void *parameters)
{
    return launch_pieces(queue, id, pieces, true, parameters);
}

bsm_status bsmi_cuda_launch_gemm(struct bsmi_cuda_queue *queue, int gemm, int64_t tiles,
                                 const void *parameters)
{
    const struct bsmi_gemm_instance *instance = &bsmi_gemm_instances[gemm];
    const int cluster = bsmi_gemm_cluster(instance);
    const int64_t most = queue->gpu->gemm_clusters[gemm];
    const struct launch l = { .function = queue->gpu->gemms[gemm],
                              .name = instance->function,
                              .threads = instance->threads,
                              .shared_bytes = instance->shared_bytes,
                              .cluster = cluster,
                              .begins_early = bsmi_gemm_begins_early(instance),
                              .multiplies = true,
                              .ctas = BSMI_MIN(tiles, most) * cluster };
    return tiles <= 0 ? BSM_OK : launch(queue, &l, parameters);
}
