/* What contexts of one GPU share: found and loaded for the first of them, given back with the last. */
#include "device.h"
#include "embedded.h"

static struct bsmi_hip_gpu gpus[BSMI_MOST_GPUS];

bsm_status bsmi_hip_enter(const struct bsmi_hip_gpu *gpu, int *before)
{
    const bsm_status status = BSMI_HIP_CALL(gpu->driver, hipGetDevice, (before), "the thread's current GPU");
    if (status != BSM_OK || *before == gpu->number) return status;
    return BSMI_HIP_CALL(gpu->driver, hipSetDevice, (gpu->number), "making GPU %d current", gpu->number);
}

bsm_status bsmi_hip_leave(const struct bsmi_hip_gpu *gpu, int before, bsm_status status)
{
    if (before == gpu->number) return status;
    const hipError_t result = gpu->driver->hipSetDevice(before);
    return status != BSM_OK ? status
                            : bsmi_hip_check(gpu->driver, result, "hipSetDevice", "leaving GPU %d", gpu->number);
}

bsm_status bsmi_hip_count(int *count)
{
    const struct bsmi_hip_driver *driver;
    bsm_status status = bsmi_hip_driver_open(&driver);
    if (status == BSM_OK) status = BSMI_HIP_CALL(driver, hipGetDeviceCount, (count), "counting GPUs");
    if (status == BSM_OK && *count == 0) return bsmi_fail(BSM_EDEVICE, "the HIP runtime finds no GPU");
    return status;
}

static bsm_status check_number(const struct bsmi_hip_driver *driver, int number)
{
    int count = 0;
    const bsm_status status = BSMI_HIP_CALL(driver, hipGetDeviceCount, (&count), "counting GPUs");
    if (status == BSM_OK && (number < 0 || number >= BSMI_MIN(count, BSMI_MOST_GPUS)))
        return bsmi_fail(BSM_EDEVICE, "device=%d: the HIP runtime finds %d GPU%s, numbered from 0", number, count,
                         count == 1 ? "" : "s");
    return status;
}

/* "gfx950" of "gfx950:sramecc+:xnack-". */
static bsm_status find_architecture(const struct bsmi_hip_driver *driver, int number, char *architecture)
{
    char properties[BSMI_HIP_PROPERTIES_BYTES] = { 0 };
    const bsm_status status =
        BSMI_HIP_CALL(driver, hipGetDevicePropertiesR0600, (properties, number), "properties of GPU %d", number);
    memcpy(architecture, properties + BSMI_HIP_PROPERTIES_ARCHITECTURE, BSMI_HIP_ARCHITECTURE_BYTES);
    architecture[BSMI_HIP_ARCHITECTURE_BYTES - 1] = '\0';
    architecture[strcspn(architecture, ":")] = '\0';
    return status;
}

/* gfx950 is 9.5, the last two digits being the version's minor and its stepping. */
static void read_version(const char *architecture, bsm_device_info *info)
{
    const size_t length = strlen(architecture);
    if (length < 6 || strncmp(architecture, "gfx", 3) != 0) return;
    for (size_t i = 3; i < length - 2; i++) info->major = info->major * 10 + (architecture[i] - '0');
    info->minor = architecture[length - 2] - '0';
}

bsm_status bsmi_hip_describe(int number, bsm_device_info *info)
{
    const struct bsmi_hip_driver *driver;
    char architecture[BSMI_HIP_ARCHITECTURE_BYTES];
    hipDevice_t device = 0;
    size_t bytes = 0;
    bsm_status status = bsmi_hip_driver_open(&driver);
    if (status == BSM_OK) status = check_number(driver, number);
    if (status == BSM_OK) status = BSMI_HIP_CALL(driver, hipDeviceGet, (&device, number), "GPU %d", number);
    if (status == BSM_OK)
        status = BSMI_HIP_CALL(driver, hipDeviceGetName, (info->name, (int)sizeof info->name, device), "name of GPU %d",
                               number);
    if (status == BSM_OK)
        status = BSMI_HIP_CALL(driver, hipDeviceTotalMem, (&bytes, device), "memory of GPU %d", number);
    if (status == BSM_OK) status = find_architecture(driver, number, architecture);
    if (status == BSM_OK)
        status = BSMI_HIP_CALL(driver, hipDeviceGetAttribute,
                               (&info->multiprocessors, hipDeviceAttributeMultiprocessorCount, number),
                               "compute units of GPU %d", number);
    if (status != BSM_OK) return status;
    read_version(architecture, info);
    info->memory_bytes = (int64_t)bytes;
    info->driver_version = driver->version;
    return BSM_OK;
}

/* Loading ---------------------------------------------------------------------------------------------------------- */

/* The number of a code object; -1: this build lacks it. */
static int number_of(const char *file)
{
    for (int i = 0; i < BSMI_MOST_CODE_OBJECTS && bsmi_hip_code_objects[i].file != NULL; i++)
        if (strcmp(bsmi_hip_code_objects[i].file, file) == 0) return i;
    return -1;
}

/* Between enter and leave.  NULL, and no failure, for a kernel whose code object this build lacks. */
static bsm_status find_function(struct bsmi_hip_gpu *gpu, const char *file, const char *function, hipFunction_t *found)
{
    const int i = number_of(file);
    bsm_status status = BSM_OK;
    if (i < 0) return BSM_OK;
    if (gpu->modules[i] == NULL)
        status = BSMI_HIP_CALL(gpu->driver, hipModuleLoadData, (&gpu->modules[i], bsmi_hip_code_objects[i].start),
                               "kernels %s, built by %s", file, bsmi_hip_compiler);
    if (status != BSM_OK) return status;
    return BSMI_HIP_CALL(gpu->driver, hipModuleGetFunction, (found, gpu->modules[i], function), "kernel %s of %s",
                         function, file);
}

static bsm_status find_functions(struct bsmi_hip_gpu *gpu)
{
    bsm_status status = BSM_OK;
    for (int i = 0; i < BSMI_HIP_KERNEL_COUNT && status == BSM_OK; i++)
        status = find_function(gpu, bsmi_hip_kernels[i].file, bsmi_hip_kernels[i].function, &gpu->kernels[i]);
    return status;
}

bool bsmi_hip_has_gemm(int gemm, int pair)
{
    char file[BSMI_HIP_NAME_BYTES], function[BSMI_HIP_NAME_BYTES];
    bsmi_hip_instance_names(gemm, pair, file, function);
    return number_of(file) >= 0;
}

static bsm_status load_gemm_entered(struct bsmi_hip_gpu *gpu, int gemm, int pair)
{
    char file[BSMI_HIP_NAME_BYTES], function[BSMI_HIP_NAME_BYTES];
    bsm_status status = BSM_OK;
    bsmi_hip_instance_names(gemm, pair, file, function);
    pthread_mutex_lock(&gpu->lock);
    if (gpu->gemms[gemm][pair] == NULL) status = find_function(gpu, file, function, &gpu->gemms[gemm][pair]);
    pthread_mutex_unlock(&gpu->lock);
    return status;
}

bsm_status bsmi_hip_load_gemm(struct bsmi_hip_gpu *gpu, int gemm, int pair)
{
    int before;
    const bsm_status status = bsmi_hip_enter(gpu, &before);
    return status != BSM_OK ? status : bsmi_hip_leave(gpu, before, load_gemm_entered(gpu, gemm, pair));
}

static void unload(struct bsmi_hip_gpu *gpu)
{
    int before;
    if (bsmi_hip_enter(gpu, &before) != BSM_OK) return;
    for (int i = 0; i < BSMI_MOST_CODE_OBJECTS; i++)
        if (gpu->modules[i] != NULL) (void)gpu->driver->hipModuleUnload(gpu->modules[i]);
    (void)bsmi_hip_leave(gpu, before, BSM_OK);
    pthread_mutex_destroy(&gpu->lock);
}

static bsm_status load_entered(struct bsmi_hip_gpu *gpu)
{
    int before;
    const bsm_status status = bsmi_hip_enter(gpu, &before);
    return status != BSM_OK ? status : bsmi_hip_leave(gpu, before, find_functions(gpu));
}

static bsm_status load(struct bsmi_hip_gpu *gpu, int number)
{
    char architecture[BSMI_HIP_ARCHITECTURE_BYTES];
    *gpu = (struct bsmi_hip_gpu){ .number = number };
    if (bsmi_hip_not_built[0] != '\0')
        return bsmi_fail(BSM_EDEVICE, "this build has no HIP kernels (%s)", bsmi_hip_not_built);
    bsm_status status = bsmi_hip_driver_open(&gpu->driver);
    if (status == BSM_OK) status = check_number(gpu->driver, number);
    if (status == BSM_OK) status = find_architecture(gpu->driver, number, architecture);
    if (status != BSM_OK) return status;
    if (strcmp(architecture, "gfx950") != 0)
        return bsmi_fail(BSM_EDEVICE, "GPU %d is a %s: the kernels of this build are for gfx950 (MI350X, MI355X)",
                         number, architecture);
    status = BSMI_HIP_CALL(gpu->driver, hipDeviceGetAttribute,
                           (&gpu->cu_count, hipDeviceAttributeMultiprocessorCount, number), "compute units of GPU %d",
                           number);
    if (status == BSM_OK)
        status = BSMI_HIP_CALL(gpu->driver, hipDeviceGetAttribute,
                               (&gpu->most_shared_bytes, hipDeviceAttributeMaxSharedMemoryPerBlock, number),
                               "LDS of GPU %d", number);
    if (status != BSM_OK) return status;
    pthread_mutex_init(&gpu->lock, NULL);
    status = load_entered(gpu);
    if (status != BSM_OK) unload(gpu);
    return status;
}

static bsm_status load_number(int number) { return load(&gpus[number], number); }
static void unload_number(int number) { unload(&gpus[number]); }

static struct bsmi_gpus users = { .lock = PTHREAD_MUTEX_INITIALIZER, .load = load_number, .unload = unload_number };

bsm_status bsmi_hip_gpu_acquire(int number, struct bsmi_hip_gpu **gpu)
{
    const bsm_status status = bsmi_gpus_acquire(&users, number);
    *gpu = status == BSM_OK ? &gpus[number] : NULL;
    return status;
}

void bsmi_hip_gpu_release(struct bsmi_hip_gpu *gpu) { bsmi_gpus_release(&users, gpu->number); }
