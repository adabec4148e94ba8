/* Launches of kernels and of the program's own functions. */
#include <stdlib.h>
#include <string.h>

#include "driver/graph/work.h"
#include "machine/run/launch.h"
#include "machine/run/schedules.h"

CUDASIM_EXPORT CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                       unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                                       CUstream stream, void **parameters, void **extra);
CUDASIM_EXPORT CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **parameters,
                                         void **extra);
CUDASIM_EXPORT CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned grid_x, unsigned grid_y,
                                                  unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z,
                                                  unsigned shared_bytes, CUstream stream, void **parameters);
CUDASIM_EXPORT CUresult cuLaunchHostFunc(CUstream stream, CUhostFn *function, void *user);

/* CU_LAUNCH_PARAM_BUFFER_POINTER, _SIZE, _END of cuLaunchKernel's extra */
enum { EXTRA_END = 0, EXTRA_POINTER = 1, EXTRA_SIZE = 2 };

/* ---- parameters ---- */

static CUresult from_buffer(const struct function *f, void **extra, uint8_t *buffer)
{
    const void *from = NULL;
    size_t size = 0;
    for (; extra != NULL && (uintptr_t)extra[0] != EXTRA_END; extra += 2) {
        if ((uintptr_t)extra[0] == EXTRA_POINTER) from = extra[1];
        else if ((uintptr_t)extra[0] == EXTRA_SIZE && extra[1] != NULL) size = *(const size_t *)extra[1];
        else return CUDA_ERROR_INVALID_VALUE;
    }
    if (f->parameter_count == 0) return CUDA_SUCCESS;
    const struct variable *last = f->parameters[f->parameter_count - 1];
    if (from == NULL || size < last->offset + last->bytes || size > (f->parameter_bytes + 15) / 16 * 16)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(buffer, from, size < f->parameter_bytes ? size : f->parameter_bytes);
    return CUDA_SUCCESS;
}

static CUresult gather(const struct function *f, void **parameters, void **extra, struct kernel_work *k)
{
    k->parameter_bytes = f->parameter_bytes;
    k->parameters = calloc(1, f->parameter_bytes + 16);
    k->values = calloc(f->parameter_count + 1, sizeof *k->values);
    if (k->parameters == NULL || k->values == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    for (uint32_t i = 0; i < f->parameter_count; i++) k->values[i] = k->parameters + f->parameters[i]->offset;
    if (parameters == NULL) return from_buffer(f, extra, k->parameters);
    if (extra != NULL) return CUDA_ERROR_INVALID_VALUE;
    for (uint32_t i = 0; i < f->parameter_count; i++) {
        if (parameters[i] == NULL) return CUDA_ERROR_INVALID_VALUE;
        memcpy(k->values[i], parameters[i], f->parameters[i]->bytes);
    }
    return CUDA_SUCCESS;
}

/* ---- what a launch must keep to ---- */

static bool product_exceeds(const uint32_t *extent, uint64_t most)
{
    return extent[0] == 0 || extent[1] == 0 || extent[2] == 0 || (uint64_t)extent[0] * extent[1] * extent[2] > most;
}

static CUresult check_block(const struct CUfunc_st *function, const uint32_t *b)
{
    const struct function *f = function->function;
    if (b[0] > 1024 || b[1] > 1024 || b[2] > 64 || product_exceeds(b, function_device(function)->threads_per_block))
        return CUDA_ERROR_INVALID_VALUE;
    if (f->reqntid.given && (b[0] != f->reqntid.x || b[1] != f->reqntid.y || b[2] != f->reqntid.z))
        return CUDA_ERROR_INVALID_VALUE;
    if (f->maxntid.given && (uint64_t)b[0] * b[1] * b[2] > (uint64_t)f->maxntid.x * f->maxntid.y * f->maxntid.z)
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

static CUresult check_cluster(const struct CUfunc_st *function, const struct kernel_work *k)
{
    const struct function *f = function->function;
    const struct dimensions *fixed = &f->reqnctapercluster;
    if (f->explicitcluster && !k->explicit_cluster) return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    if (fixed->given && (k->cluster[0] != fixed->x || k->cluster[1] != fixed->y || k->cluster[2] != fixed->z))
        return CUDA_ERROR_INVALID_VALUE;
    uint64_t ctas = 1;
    for (int i = 0; i < 3; i++) {
        if (k->cluster[i] == 0 || k->grid[i] % k->cluster[i] != 0) return CUDA_ERROR_INVALID_CLUSTER_SIZE;
        ctas *= k->cluster[i];
    }
    for (int i = 0; i < 3 && k->preferred[0] != 0; i++)
        if (k->preferred[i] % k->cluster[i] != 0) return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    if (f->maxclusterrank != 0 && ctas > f->maxclusterrank) return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    const struct device_limits *device = function_device(function);
    const uint32_t most = function->settings.non_portable_cluster ? device->cluster_max : device->cluster_portable;
    return ctas > most ? CUDA_ERROR_INVALID_CLUSTER_SIZE : CUDA_SUCCESS;
}

/* Programs that divide the number of SMs by the CTAs of a cluster get 0 where SMs are too few. */
static void tell_empty_grid(const struct function *f, const struct kernel_work *k)
{
    const uint64_t ctas = (uint64_t)k->cluster[0] * k->cluster[1] * k->cluster[2];
    if (ctas > driver.options.sms)
        driver_say("cudasim: kernel %s is launched with a grid of %u x %u x %u CTAs; its clusters have %llu CTAs, and "
                   "the device has %u SMs: CUDASIM_SMS=%llu gives it more\n",
                   f->name, k->grid[0], k->grid[1], k->grid[2], (unsigned long long)ctas, driver.options.sms,
                   (unsigned long long)ctas);
}

/* All CTAs of a cooperative grid must be resident at once. */
static CUresult check_cooperative(const struct CUfunc_st *function, const struct kernel_work *k)
{
    const struct function *f = function->function;
    const uint64_t ctas = (uint64_t)k->grid[0] * k->grid[1] * k->grid[2];
    const uint32_t threads = k->block[0] * k->block[1] * k->block[2];
    const uint64_t room =
        (uint64_t)occupancy_ctas(function_device(function), f, threads, k->shared_bytes) * driver.options.sms;
    if (!k->cooperative || ctas <= room) return CUDA_SUCCESS;
    driver_say("cudasim: kernel %s is launched as a cooperative grid of %llu CTAs; %llu are resident at once on %u SMs "
               "(CUDASIM_SMS)\n",
               f->name, (unsigned long long)ctas, (unsigned long long)room, driver.options.sms);
    return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
}

CUresult kernel_check(struct CUctx_st *context, const struct kernel_work *k)
{
    const struct CUfunc_st *function = function_find(context, k->function);
    if (function == NULL || k->parameter_bytes != function->function->parameter_bytes) return CUDA_ERROR_INVALID_HANDLE;
    if (product_exceeds(k->grid, UINT64_MAX)) tell_empty_grid(function->function, k);
    if (product_exceeds(k->grid, UINT64_MAX) || k->grid[0] > INT32_MAX || k->grid[1] > 65535 || k->grid[2] > 65535)
        return CUDA_ERROR_INVALID_VALUE;
    const CUresult block = check_block(function, k->block);
    if (block != CUDA_SUCCESS) return block;
    if (k->shared_bytes > function_dynamic_shared(function_device(function), function->function, &function->settings))
        return CUDA_ERROR_INVALID_VALUE;
    const CUresult cluster = check_cluster(function, k);
    return cluster != CUDA_SUCCESS ? cluster : check_cooperative(function, k);
}

static struct launch launch_of(const struct CUfunc_st *function, const struct kernel_work *k,
                               const struct grids_in_flight *flight)
{
    struct launch l = { .image = &function->module->image, .function = function->function,
                        .explicit_cluster = k->explicit_cluster,
                        .dynamic_shared = k->shared_bytes, .parameters = k->parameters, .cooperative = k->cooperative,
                        .beside = k->programmatic && flight->count != 0 ? flight : NULL };
    memcpy(l.grid, k->grid, sizeof l.grid);
    memcpy(l.block, k->block, sizeof l.block);
    memcpy(l.cluster, k->cluster, sizeof l.cluster);
    return l;
}

static CUresult run_all(struct CUctx_st *context, const struct launch *launches, uint32_t count,
                        struct grids_in_flight *flight)
{
    struct report *report = calloc(1, sizeof *report);
    if (report == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    const bool good = machine_run_all(&context->machine, launches, count, report);
    driver_tell_mutation();
    if (!good) {
        driver_say("%s", report->text);
        context->fault = driver_fault_code(report->code);
    }
    free(report);
    *flight = context->machine.in_flight;
    return CUDA_SUCCESS;
}

CUresult kernel_run(struct CUctx_st *context, const struct kernel_work *k, struct grids_in_flight *flight)
{
    const struct launch l = launch_of(function_find(context, k->function), k, flight);
    return run_all(context, &l, 1, flight);
}

/* ---- kernels that the next one may run beside ---- */

/* A stream's last kernels.  They run when another call of the driver comes, since only a launch behind them may begin
 * before they have ended. */
static struct {
    struct CUctx_st *context;
    struct CUstream_st *stream;
    struct launch launch[MOST_TOGETHER];
    uint8_t *parameters[MOST_TOGETHER];
    uint32_t count;
} held;

void kernels_land(void)
{
    if (held.count == 0) return;
    if (run_all(held.context, held.launch, held.count, &held.stream->flight) != CUDA_SUCCESS)
        held.context->fault = CUDA_ERROR_OUT_OF_MEMORY;
    for (uint32_t i = 0; i < held.count; i++) free(held.parameters[i]);
    held.count = 0;
}

static CUresult hold(struct CUstream_st *stream, const struct CUfunc_st *function, struct kernel_work *k)
{
    uint8_t *parameters = malloc(k->parameter_bytes + 1);
    if (parameters == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    memcpy(parameters, k->parameters, k->parameter_bytes);
    held.context = stream->context, held.stream = stream;
    held.parameters[held.count] = parameters;
    held.launch[held.count] = launch_of(function, k, &stream->flight);
    held.launch[held.count++].parameters = parameters;
    return CUDA_SUCCESS;
}

CUresult kernel_submit(struct CUctx_st *context, struct CUstream_st *stream, struct kernel_work *k)
{
    if (held.count != 0 && (!k->programmatic || held.stream != stream)) kernels_land();
    if (context->fault != CUDA_SUCCESS) return context->fault;
    const CUresult checked = kernel_check(context, k);
    if (checked != CUDA_SUCCESS) return checked;
    const struct CUfunc_st *function = function_find(context, k->function);
    const bool lets_others_begin = function->module->image.module->launches_dependents && driver.options.overlap;
    if (held.count == 0 && !lets_others_begin) return kernel_run(context, k, &stream->flight);
    const CUresult result = hold(stream, function, k);
    if (!lets_others_begin || held.count == MOST_TOGETHER) kernels_land();
    return result;
}

/* ---- from calls to work ---- */

static CUresult set_cluster(struct kernel_work *k, unsigned x, unsigned y, unsigned z)
{
    k->cluster[0] = x, k->cluster[1] = y, k->cluster[2] = z;
    k->explicit_cluster = true;
    return CUDA_SUCCESS;
}

/* Where there is no room for the preferred clusters the device uses those of the cluster dimension, as it may: here it
 * always does. */
static CUresult set_preferred(struct kernel_work *k, unsigned x, unsigned y, unsigned z)
{
    if (x == 0 || y == 0 || z == 0) return CUDA_ERROR_INVALID_VALUE;
    k->preferred[0] = x, k->preferred[1] = y, k->preferred[2] = z;
    return CUDA_SUCCESS;
}

/* The attributes that change what runs; those that only change speed are read over.  A grid begins when the one before
 * it in its stream has ended, which programmatic serialization allows; what it does before it waits is checked as if
 * the other still ran. */
CUresult kernel_set_attribute(struct CUctx_st *context, struct kernel_work *k, const CUlaunchAttribute *a)
{
    (void)context;
    switch ((int)a->id) {
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
        return set_cluster(k, a->value.clusterDim.x, a->value.clusterDim.y, a->value.clusterDim.z);
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
        return set_preferred(k, a->value.clusterDim.x, a->value.clusterDim.y, a->value.clusterDim.z);
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
        k->programmatic = a->value.programmaticStreamSerializationAllowed != 0;
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE: k->cooperative = a->value.cooperative != 0; return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_PRIORITY: k->priority = a->value.priority; return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        return (unsigned)a->value.clusterSchedulingPolicyPreference > 2 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_IGNORE:
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: return CUDA_SUCCESS;
    default:
        driver_say("cudasim: launch attribute %d is not simulated\n", (int)a->id);
        return CUDA_ERROR_NOT_SUPPORTED;
    }
}

bool kernel_get_attribute(const struct kernel_work *k, CUlaunchAttributeID id, CUlaunchAttributeValue *value)
{
    *value = (CUlaunchAttributeValue){ .pad = { 0 } };
    switch ((int)id) {
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
        if (k->explicit_cluster)
            value->clusterDim.x = k->cluster[0], value->clusterDim.y = k->cluster[1],
            value->clusterDim.z = k->cluster[2];
        return true;
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
        value->clusterDim.x = k->preferred[0], value->clusterDim.y = k->preferred[1],
        value->clusterDim.z = k->preferred[2];
        return true;
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE: value->cooperative = k->cooperative; return true;
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
        value->programmaticStreamSerializationAllowed = k->programmatic;
        return true;
    case CU_LAUNCH_ATTRIBUTE_PRIORITY: value->priority = k->priority; return true;
    default: return false;
    }
}

/* The cluster that the kernel itself or cuFuncSetAttribute demands. */
static void demanded_cluster(const struct CUfunc_st *function, struct kernel_work *k)
{
    const struct dimensions *c = &function->function->reqnctapercluster;
    const int *set = function->settings.cluster;
    k->cluster[0] = k->cluster[1] = k->cluster[2] = 1;
    if (c->given) set_cluster(k, c->x, c->y, c->z);
    else if (set[0] > 0 && set[1] > 0 && set[2] > 0)
        set_cluster(k, (unsigned)set[0], (unsigned)set[1], (unsigned)set[2]);
}

CUresult kernel_work_make(struct CUctx_st *context, const CUlaunchConfig *config, CUfunction handle, void **parameters,
                          void **extra, struct work *work)
{
    const struct CUfunc_st *function = function_find(context, handle);
    *work = (struct work){ .type = CU_GRAPH_NODE_TYPE_KERNEL, .context = context->id };
    if (function == NULL) return CUDA_ERROR_INVALID_HANDLE;
    struct kernel_work *k = &work->kernel;
    k->function = handle;
    k->grid[0] = config->gridDimX, k->grid[1] = config->gridDimY, k->grid[2] = config->gridDimZ;
    k->block[0] = config->blockDimX, k->block[1] = config->blockDimY, k->block[2] = config->blockDimZ;
    k->shared_bytes = config->sharedMemBytes;
    demanded_cluster(function, k);
    CUresult result = CUDA_SUCCESS;
    for (unsigned i = 0; i < config->numAttrs && result == CUDA_SUCCESS; i++)
        result = kernel_set_attribute(context, k, &config->attrs[i]);
    if (result == CUDA_SUCCESS) result = gather(function->function, parameters, extra, k);
    if (result == CUDA_SUCCESS) result = kernel_check(context, k);
    if (result != CUDA_SUCCESS) work_free(work);
    return result;
}

CUresult kernel_work_from_node(struct CUctx_st *context, const CUDA_KERNEL_NODE_PARAMS *node, struct work *work)
{
    const CUlaunchConfig config = { .gridDimX = node->gridDimX,
                                    .gridDimY = node->gridDimY,
                                    .gridDimZ = node->gridDimZ,
                                    .blockDimX = node->blockDimX,
                                    .blockDimY = node->blockDimY,
                                    .blockDimZ = node->blockDimZ,
                                    .sharedMemBytes = node->sharedMemBytes };
    const CUfunction function = node->func != NULL ? node->func : (CUfunction)(void *)node->kern;
    CUcontext named = node->ctx;
    if (named == NULL && handle_is(function, HANDLE_FUNCTION)) named = function->module->context;
    const CUresult result = named == NULL ? CUDA_SUCCESS : context_or_current(named, &context);
    return result == CUDA_SUCCESS ? kernel_work_make(context, &config, function, node->kernelParams, node->extra, work)
                                  : result;
}

void kernel_work_replace(struct work *old, const struct work *with)
{
    const struct kernel_work attributes = old->kernel;
    work_free(old);
    *old = *with;
    if (attributes.function != with->kernel.function) return;
    memcpy(old->kernel.cluster, attributes.cluster, sizeof attributes.cluster);
    memcpy(old->kernel.preferred, attributes.preferred, sizeof attributes.preferred);
    old->kernel.explicit_cluster = attributes.explicit_cluster;
    old->kernel.cooperative = attributes.cooperative;
    old->kernel.programmatic = attributes.programmatic;
    old->kernel.priority = attributes.priority;
}

void kernel_work_to_node(const struct work *work, CUDA_KERNEL_NODE_PARAMS *node)
{
    const struct kernel_work *k = &work->kernel;
    const bool library = handle_is(k->function, HANDLE_KERNEL);
    *node = (CUDA_KERNEL_NODE_PARAMS){ .func = library ? NULL : k->function,
                                       .kern = library ? (CUkernel)(void *)k->function : NULL,
                                       .gridDimX = k->grid[0], .gridDimY = k->grid[1], .gridDimZ = k->grid[2],
                                       .blockDimX = k->block[0], .blockDimY = k->block[1], .blockDimZ = k->block[2],
                                       .sharedMemBytes = k->shared_bytes, .kernelParams = k->values };
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra)
{
    struct CUctx_st *context;
    struct work work;
    CUresult result = driver_enter_launch(&context);
    if (result == CUDA_SUCCESS && (config == NULL || (config->numAttrs != 0 && config->attrs == NULL)))
        result = CUDA_ERROR_INVALID_VALUE;
    const struct CUstream_st *stream = result == CUDA_SUCCESS ? stream_find(context, config->hStream) : NULL;
    if (result == CUDA_SUCCESS && stream == NULL) result = CUDA_ERROR_INVALID_HANDLE;
    if (result == CUDA_SUCCESS && stream->context != context) {
        driver_say("cudasim: a kernel is launched while a context of device %d is current, into a stream of another "
                   "one, of device %d\n", (int)context->device, (int)stream->context->device);
        result = CUDA_ERROR_INVALID_HANDLE;
    }
    if (result == CUDA_SUCCESS) result = kernel_work_make(context, config, function, parameters, extra, &work);
    if (result == CUDA_SUCCESS) result = work_submit(context, config->hStream, &work);
    return driver_leave(result);
}

CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                        unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream stream, void **parameters,
                        void **extra)
{
    const CUlaunchConfig config = { .gridDimX = grid_x,
                                    .gridDimY = grid_y,
                                    .gridDimZ = grid_z,
                                    .blockDimX = block_x,
                                    .blockDimY = block_y,
                                    .blockDimZ = block_z,
                                    .sharedMemBytes = shared_bytes,
                                    .hStream = stream };
    return cuLaunchKernelEx(&config, function, parameters, extra);
}

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                   unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                                   CUstream stream, void **parameters)
{
    CUlaunchAttribute cooperative = { .id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.cooperative = 1 };
    const CUlaunchConfig config = { .gridDimX = grid_x,
                                    .gridDimY = grid_y,
                                    .gridDimZ = grid_z,
                                    .blockDimX = block_x,
                                    .blockDimY = block_y,
                                    .blockDimZ = block_z,
                                    .sharedMemBytes = shared_bytes,
                                    .hStream = stream,
                                    .attrs = &cooperative,
                                    .numAttrs = 1 };
    return cuLaunchKernelEx(&config, function, parameters, NULL);
}

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn *function, void *user)
{
    struct CUctx_st *context;
    CUresult result = driver_enter_context(&context);
    struct work work = { .type = CU_GRAPH_NODE_TYPE_HOST, .host = { function, user } };
    if (result == CUDA_SUCCESS && function == NULL) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) result = work_submit(context, stream, &work);
    return driver_leave(result);
}
