/* What contexts of one GPU share: found and loaded for the first of them, given back with the last. */
#include "device.h"
#include "embedded.h"

static struct bsmi_cuda_gpu gpus[BSMI_MOST_GPUS];

bsm_status bsmi_cuda_enter(const struct bsmi_cuda_gpu *gpu)
{
    return BSMI_DRIVER_CALL(gpu->driver, cuCtxPushCurrent, (gpu->primary), "making GPU %d current", gpu->number);
}

bsm_status bsmi_cuda_leave(const struct bsmi_cuda_gpu *gpu, bsm_status status)
{
    CUcontext popped;
    const CUresult result = gpu->driver->cuCtxPopCurrent(&popped);
    if (status != BSM_OK) return status;
    return bsmi_driver_check(gpu->driver, result, "cuCtxPopCurrent", "leaving GPU %d", gpu->number);
}

bsm_status bsmi_cuda_count(int *count)
{
    const struct bsmi_driver *driver;
    bsm_status status = bsmi_driver_open(&driver);
    if (status == BSM_OK) status = BSMI_DRIVER_CALL(driver, cuDeviceGetCount, (count), "counting GPUs");
    if (status == BSM_OK && *count == 0) return bsmi_fail(BSM_EDEVICE, "the CUDA driver finds no GPU");
    return status;
}

static bsm_status find_device(const struct bsmi_driver *driver, int number, CUdevice *device)
{
    int count = 0;
    const bsm_status status = BSMI_DRIVER_CALL(driver, cuDeviceGetCount, (&count), "counting GPUs");
    if (status != BSM_OK) return status;
    if (number < 0 || number >= BSMI_MIN(count, BSMI_MOST_GPUS))
        return bsmi_fail(BSM_EDEVICE, "device=%d: this machine has %d GPU%s, numbered from 0", number, count,
                         count == 1 ? "" : "s");
    return BSMI_DRIVER_CALL(driver, cuDeviceGet, (device, number), "GPU %d", number);
}

static bsm_status attribute(const struct bsmi_driver *driver, CUdevice device, int which, int *value)
{
    return BSMI_DRIVER_CALL(driver, cuDeviceGetAttribute, (value, which, device), "attribute %d of the GPU", which);
}

bsm_status bsmi_cuda_describe(int number, bsm_device_info *info)
{
    const struct bsmi_driver *driver;
    CUdevice device = 0;
    size_t bytes = 0;
    bsm_status status = bsmi_driver_open(&driver);
    if (status == BSM_OK) status = find_device(driver, number, &device);
    if (status == BSM_OK)
        status =
            BSMI_DRIVER_CALL(driver, cuDeviceGetName, (info->name, (int)sizeof info->name, device), "GPU %d", number);
    if (status == BSM_OK)
        status = BSMI_DRIVER_CALL(driver, cuDeviceTotalMem, (&bytes, device), "memory of GPU %d", number);
    if (status == BSM_OK)
        status = attribute(driver, device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &info->major);
    if (status == BSM_OK)
        status = attribute(driver, device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &info->minor);
    if (status == BSM_OK)
        status = attribute(driver, device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &info->multiprocessors);
    if (status != BSM_OK) return status;
    info->memory_bytes = (int64_t)bytes;
    info->driver_version = driver->version;
    return BSM_OK;
}

/* Loading ---------------------------------------------------------------------------------------------------------- */

static bsm_status load_modules(struct bsmi_cuda_gpu *gpu)
{
    const struct bsmi_driver *d = gpu->driver;
    int loaded = 0;
    for (int i = 0; bsmi_cuda_fatbins[i].file != NULL; i++) {
        const struct bsmi_cuda_fatbin *fatbin = &bsmi_cuda_fatbins[i];
        if (i >= BSMI_MOST_FATBINS) return bsmi_fail(BSM_EDEVICE, "more than %d kernel files", BSMI_MOST_FATBINS);
        if (!bsmi_cuda_runs_on(fatbin, gpu->capability)) continue;
        const bsm_status status =
            BSMI_DRIVER_CALL(d, cuModuleLoadData, (&gpu->modules[i], fatbin->start),
                             "kernels %s were built by CUDA %s, the driver is for CUDA %d.%d", fatbin->file,
                             bsmi_cuda_compiler, d->version / 1000, d->version % 1000 / 10);
        if (status != BSM_OK) return status;
        loaded++;
    }
    if (loaded == 0)
        return bsmi_fail(BSM_EDEVICE,
                         "GPU %d has compute capability %d.%d: the kernels of this build need 9.0 at least",
                         gpu->number, gpu->capability / 10, gpu->capability % 10);
    return BSM_OK;
}

/* NULL, and no failure, for a kernel whose file this build lacks or this GPU does not run. */
static bsm_status find_function(const struct bsmi_cuda_gpu *gpu, const char *file, const char *function,
                                CUfunction *found)
{
    for (int i = 0; bsmi_cuda_fatbins[i].file != NULL; i++)
        if (strcmp(bsmi_cuda_fatbins[i].file, file) == 0 && gpu->modules[i] != NULL)
            return BSMI_DRIVER_CALL(gpu->driver, cuModuleGetFunction, (found, gpu->modules[i], function),
                                    "kernel %s of %s", function, file);
    return BSM_OK;
}

/* Clusters lie within a GPC, whose SMs they need not divide. */
static bsm_status count_clusters(struct bsmi_cuda_gpu *gpu, int i)
{
    const struct bsmi_gemm_instance *gemm = &bsmi_gemm_instances[i];
    const unsigned cluster = (unsigned)bsmi_gemm_cluster(gemm);
    CUlaunchAttribute attribute = { .id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                                    .value.clusterDim = { cluster, 1, 1 } };
    const CUlaunchConfig config = { .gridDimX = cluster * (unsigned)gpu->sm_count,
                                    .gridDimY = 1,
                                    .gridDimZ = 1,
                                    .blockDimX = (unsigned)gemm->threads,
                                    .blockDimY = 1,
                                    .blockDimZ = 1,
                                    .sharedMemBytes = (unsigned)gemm->shared_bytes,
                                    .attrs = &attribute,
                                    .numAttrs = 1 };
    return BSMI_DRIVER_CALL(gpu->driver, cuOccupancyMaxActiveClusters, (&gpu->gemm_clusters[i], gpu->gemms[i], &config),
                            "clusters of %u for %s", cluster, gemm->name);
}

static bsm_status find_functions(struct bsmi_cuda_gpu *gpu)
{
    bsm_status status = BSM_OK;
    for (int i = 0; i < BSMI_KERNEL_COUNT && status == BSM_OK; i++)
        status = find_function(gpu, bsmi_cuda_kernels[i].file, bsmi_cuda_kernels[i].function, &gpu->kernels[i]);
    for (int i = 0; i < bsmi_gemm_instance_count && status == BSM_OK; i++) {
        const struct bsmi_gemm_instance *gemm = &bsmi_gemm_instances[i];
        if (gemm->shared_bytes > gpu->most_shared_bytes) continue;
        status = find_function(gpu, gemm->file, gemm->function, &gpu->gemms[i]);
        if (status != BSM_OK || gpu->gemms[i] == NULL) continue;
        status = BSMI_DRIVER_CALL(gpu->driver, cuFuncSetAttribute,
                                  (gpu->gemms[i], CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, gemm->shared_bytes),
                                  "%d bytes of shared memory for %s", gemm->shared_bytes, gemm->name);
        if (status == BSM_OK) status = count_clusters(gpu, i);
        if (gpu->gemm_clusters[i] <= 0) gpu->gemms[i] = NULL;
    }
    return status;
}

static void unload(struct bsmi_cuda_gpu *gpu)
{
    const struct bsmi_driver *d = gpu->driver;
    CUcontext popped;
    if (gpu->primary == NULL) return;
    const bool current = d->cuCtxPushCurrent(gpu->primary) == CUDA_SUCCESS;
    for (int i = 0; i < BSMI_MOST_FATBINS; i++)
        if (gpu->modules[i] != NULL && current) (void)d->cuModuleUnload(gpu->modules[i]);
    if (current) (void)d->cuCtxPopCurrent(&popped);
    (void)d->cuDevicePrimaryCtxRelease(gpu->device);
}

static bsm_status load_entered(struct bsmi_cuda_gpu *gpu)
{
    bsm_status status = bsmi_cuda_enter(gpu);
    if (status != BSM_OK) return status;
    status = load_modules(gpu);
    if (status == BSM_OK) status = find_functions(gpu);
    return bsmi_cuda_leave(gpu, status);
}

static bsm_status load(struct bsmi_cuda_gpu *gpu, int number)
{
    int major = 0, minor = 0;
    *gpu = (struct bsmi_cuda_gpu){ .number = number };
    if (bsmi_cuda_not_built[0] != '\0')
        return bsmi_fail(BSM_EDEVICE, "this build has no CUDA kernels (%s)", bsmi_cuda_not_built);
    bsm_status status = bsmi_driver_open(&gpu->driver);
    if (status == BSM_OK) status = find_device(gpu->driver, number, &gpu->device);
    if (status == BSM_OK)
        status = attribute(gpu->driver, gpu->device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &major);
    if (status == BSM_OK)
        status = attribute(gpu->driver, gpu->device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &minor);
    if (status == BSM_OK)
        status = attribute(gpu->driver, gpu->device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &gpu->sm_count);
    if (status == BSM_OK)
        status = attribute(gpu->driver, gpu->device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
                           &gpu->most_shared_bytes);
    gpu->capability = major * 10 + minor;
    if (status == BSM_OK)
        status = BSMI_DRIVER_CALL(gpu->driver, cuDevicePrimaryCtxRetain, (&gpu->primary, gpu->device),
                                  "the primary context of GPU %d", number);
    if (status != BSM_OK) return status;
    status = load_entered(gpu);
    if (status != BSM_OK) unload(gpu);
    return status;
}

static bsm_status load_number(int number) { return load(&gpus[number], number); }
static void unload_number(int number) { unload(&gpus[number]); }

static struct bsmi_gpus users = { .lock = PTHREAD_MUTEX_INITIALIZER, .load = load_number, .unload = unload_number };

bsm_status bsmi_cuda_gpu_acquire(int number, struct bsmi_cuda_gpu **gpu)
{
    const bsm_status status = bsmi_gpus_acquire(&users, number);
    *gpu = status == BSM_OK ? &gpus[number] : NULL;
    return status;
}

void bsmi_cuda_gpu_release(struct bsmi_cuda_gpu *gpu) { bsmi_gpus_release(&users, gpu->number); }
