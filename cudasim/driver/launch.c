/* Launches. */
#include <stdlib.h>
#include <string.h>

#include "driver/current.h"
#include "driver/work.h"

CUDASIM_EXPORT CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                                       unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream stream,
                                       void **parameters, void **extra);
CUDASIM_EXPORT CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                                  unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                                                  CUstream stream, void **parameters);
CUDASIM_EXPORT CUresult cuLaunchHostFunc(CUstream stream, CUhostFn *function, void *user);
CUDASIM_EXPORT CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra);

/* CU_LAUNCH_PARAM_BUFFER_POINTER, _SIZE, _END of cuLaunchKernel's extra */
enum { EXTRA_END = 0, EXTRA_POINTER = 1, EXTRA_SIZE = 2 };

static CUresult gather(const struct function *f, void **parameters, void **extra, uint8_t *buffer)
{
    if (parameters != NULL) {
        if (extra != NULL) return CUDA_ERROR_INVALID_VALUE;
        for (uint32_t i = 0; i < f->parameter_count; i++) {
            if (parameters[i] == NULL) return CUDA_ERROR_INVALID_VALUE;
            memcpy(buffer + f->parameters[i]->offset, parameters[i], f->parameters[i]->bytes);
        }
        return CUDA_SUCCESS;
    }
    const void *from = NULL;
    size_t size = 0;
    for (; extra != NULL && (uintptr_t)extra[0] != EXTRA_END; extra += 2) {
        if ((uintptr_t)extra[0] == EXTRA_POINTER) from = extra[1];
        else if ((uintptr_t)extra[0] == EXTRA_SIZE) size = *(const size_t *)extra[1];
        else return CUDA_ERROR_INVALID_VALUE;
    }
    if (f->parameter_count == 0) return CUDA_SUCCESS;
    if (from == NULL || size > f->parameter_bytes) return CUDA_ERROR_INVALID_VALUE;
    memcpy(buffer, from, size);
    return CUDA_SUCCESS;
}

static bool product_exceeds(const uint32_t *extent, uint64_t most)
{
    return extent[0] == 0 || extent[1] == 0 || extent[2] == 0 || (uint64_t)extent[0] * extent[1] * extent[2] > most;
}

static CUresult check_block(const struct function *f, const struct launch *l)
{
    const uint32_t *b = l->block;
    if (b[0] > 1024 || b[1] > 1024 || b[2] > 64 || product_exceeds(b, driver.device->threads_per_block))
        return CUDA_ERROR_INVALID_VALUE;
    if (f->reqntid.given && (b[0] != f->reqntid.x || b[1] != f->reqntid.y || b[2] != f->reqntid.z)) return CUDA_ERROR_INVALID_VALUE;
    if (f->maxntid.given && (uint64_t)b[0] * b[1] * b[2] > (uint64_t)f->maxntid.x * f->maxntid.y * f->maxntid.z)
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

static CUresult check(const struct CUfunc_st *function, const struct launch *l)
{
    const struct function *f = function->function;
    if (product_exceeds(l->grid, UINT64_MAX) || l->grid[0] > INT32_MAX || l->grid[1] > 65535 || l->grid[2] > 65535)
        return CUDA_ERROR_INVALID_VALUE;
    const CUresult block = check_block(f, l);
    if (block != CUDA_SUCCESS) return block;
    const uint64_t allowed = function->maximum_dynamic_shared != 0 ? (uint64_t)function->maximum_dynamic_shared
                                                                   : driver.device->shared_per_block - f->static_shared_bytes;
    if (l->dynamic_shared > allowed) return CUDA_ERROR_INVALID_VALUE;
    uint64_t ctas = 1;
    for (int i = 0; i < 3; i++) {
        if (l->cluster[i] == 0 || l->grid[i] % l->cluster[i] != 0) return CUDA_ERROR_INVALID_CLUSTER_SIZE;
        ctas *= l->cluster[i];
    }
    const uint32_t most = function->non_portable_cluster ? driver.device->cluster_max : driver.device->cluster_portable;
    return ctas > most ? CUDA_ERROR_INVALID_CLUSTER_SIZE : CUDA_SUCCESS;
}

/* The attributes that change what runs; those that only change speed are read over. */
static CUresult apply(const CUlaunchAttribute *a, const struct function *f, struct launch *l)
{
    const struct dimensions *c = &f->reqnctapercluster;
    switch ((int)a->id) {
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
        if (c->given && (a->value.clusterDim.x != c->x || a->value.clusterDim.y != c->y || a->value.clusterDim.z != c->z))
            return CUDA_ERROR_INVALID_VALUE;
        l->cluster[0] = a->value.clusterDim.x, l->cluster[1] = a->value.clusterDim.y, l->cluster[2] = a->value.clusterDim.z;
        l->explicit_cluster = true;
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
        if (a->value.cooperative == 0) return CUDA_SUCCESS;
        driver_say("cudasim: cooperative launches (grid-wide barriers) are not simulated\n");
        return CUDA_ERROR_NOT_SUPPORTED;
    case CU_LAUNCH_ATTRIBUTE_IGNORE: case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW: case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE: case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
    case CU_LAUNCH_ATTRIBUTE_PRIORITY: case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN: case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: return CUDA_SUCCESS;
    default:
        driver_say("cudasim: launch attribute %d is not simulated\n", (int)a->id);
        return CUDA_ERROR_NOT_SUPPORTED;
    }
}

CUresult work_from_launch(const CUlaunchConfig *config, struct CUfunc_st *function, void **parameters, void **extra, struct work *work)
{
    const struct dimensions *c = &function->function->reqnctapercluster;
    struct launch l = { .image = &function->module->image,
                        .function = function->function,
                        .grid = { config->gridDimX, config->gridDimY, config->gridDimZ },
                        .block = { config->blockDimX, config->blockDimY, config->blockDimZ },
                        .dynamic_shared = config->sharedMemBytes,
                        .explicit_cluster = function->function->explicitcluster || c->given };
    l.cluster[0] = c->given ? c->x : 1, l.cluster[1] = c->given ? c->y : 1, l.cluster[2] = c->given ? c->z : 1;
    CUresult result = CUDA_SUCCESS;
    for (unsigned i = 0; i < config->numAttrs && result == CUDA_SUCCESS; i++) result = apply(&config->attrs[i], function->function, &l);
    if (result == CUDA_SUCCESS) result = check(function, &l);
    if (result != CUDA_SUCCESS) return result;
    *work = (struct work){ .kind = WORK_KERNEL, .as.kernel = { .function = function, .dynamic_shared = l.dynamic_shared,
                                                               .explicit_cluster = l.explicit_cluster } };
    memcpy(work->as.kernel.grid, l.grid, sizeof l.grid);
    memcpy(work->as.kernel.block, l.block, sizeof l.block);
    memcpy(work->as.kernel.cluster, l.cluster, sizeof l.cluster);
    work->as.kernel.parameters = calloc(1, function->function->parameter_bytes + 16);
    result = work->as.kernel.parameters == NULL ? CUDA_ERROR_OUT_OF_MEMORY
                                                : gather(function->function, parameters, extra, work->as.kernel.parameters);
    if (result != CUDA_SUCCESS) work_release(work);
    return result;
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra)
{
    struct CUctx_st *context;
    struct work work = { .kind = WORK_EMPTY };
    CUresult result = driver_enter_context(&context);
    if (result == CUDA_SUCCESS && (config == NULL || (config->numAttrs != 0 && config->attrs == NULL))) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS && (!function_lives(context, &function) || !stream_lives(context, config->hStream)))
        result = CUDA_ERROR_INVALID_HANDLE;
    if (result == CUDA_SUCCESS) result = work_from_launch(config, function, parameters, extra, &work);
    if (result == CUDA_SUCCESS) result = stream_submit(context, config->hStream, &work);
    return driver_leave(result);
}

CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
                        unsigned block_z, unsigned shared_bytes, CUstream stream, void **parameters, void **extra)
{
    const CUlaunchConfig config = { .gridDimX = grid_x, .gridDimY = grid_y, .gridDimZ = grid_z, .blockDimX = block_x,
                                    .blockDimY = block_y, .blockDimZ = block_z, .sharedMemBytes = shared_bytes, .hStream = stream };
    return cuLaunchKernelEx(&config, function, parameters, extra);
}

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                                   unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream stream, void **parameters)
{
    CUlaunchAttribute cooperative = { .id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.cooperative = 1 };
    const CUlaunchConfig config = { .gridDimX = grid_x, .gridDimY = grid_y, .gridDimZ = grid_z, .blockDimX = block_x,
                                    .blockDimY = block_y, .blockDimZ = block_z, .sharedMemBytes = shared_bytes, .hStream = stream,
                                    .attrs = &cooperative, .numAttrs = 1 };
    return cuLaunchKernelEx(&config, function, parameters, NULL);
}

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn *function, void *user)
{
    struct CUctx_st *context;
    struct work work = { .kind = WORK_HOST, .as.host = { function, user } };
    CUresult result = driver_enter_context(&context);
    if (result == CUDA_SUCCESS && !stream_lives(context, stream)) result = CUDA_ERROR_INVALID_HANDLE;
    if (result == CUDA_SUCCESS) result = stream_submit(context, stream, &work);
    return driver_leave(result);
}

CUresult work_from_kernel_node(const CUDA_KERNEL_NODE_PARAMS *p, struct work *work)
{
    if (p == NULL) return CUDA_ERROR_INVALID_VALUE;
    struct CUfunc_st *function = p->func != NULL ? p->func : p->kern;
    const CUlaunchConfig config = { .gridDimX = p->gridDimX, .gridDimY = p->gridDimY, .gridDimZ = p->gridDimZ, .blockDimX = p->blockDimX,
                                    .blockDimY = p->blockDimY, .blockDimZ = p->blockDimZ, .sharedMemBytes = p->sharedMemBytes };
    struct CUctx_st *context = p->ctx != NULL ? p->ctx : current_get();
    if (!context_lives(context)) return CUDA_ERROR_INVALID_CONTEXT;
    if (!function_lives(context, &function)) return CUDA_ERROR_INVALID_HANDLE;
    return work_from_launch(&config, function, p->kernelParams, p->extra, work);
}
