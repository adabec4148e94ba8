/* Devices: CUDASIM_DEVICES of them, which differ in number and, if CUDASIM_DEVICE says so, in kind. */
#include <stdio.h>
#include <string.h>

#include "driver/core/current.h"

CUDASIM_EXPORT CUresult cuDeviceGet(CUdevice *device, int ordinal);
CUDASIM_EXPORT CUresult cuDeviceGetCount(int *count);
CUDASIM_EXPORT CUresult cuDeviceGetName(char *name, int length, CUdevice device);
CUDASIM_EXPORT CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device);
CUDASIM_EXPORT CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device);
CUDASIM_EXPORT CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice device);
CUDASIM_EXPORT CUresult cuDeviceGetPCIBusId(char *name, int length, CUdevice device);
CUDASIM_EXPORT CUresult cuDeviceGetByPCIBusId(CUdevice *device, const char *name);
CUDASIM_EXPORT CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device);
CUDASIM_EXPORT CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device);

CUresult device_check(CUdevice device)
{
    return device >= 0 && (uint32_t)device < driver.devices ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

const struct device_limits *limits_now(void)
{
    const struct CUctx_st *context = current_get();
    return context != NULL && context_lives(context) ? context->machine.device : driver.device[0].limits;
}

/* Enters; then pointer and device must be right. */
static CUresult begin(const void *pointer, CUdevice device)
{
    const CUresult result = driver_enter();
    if (result != CUDA_SUCCESS) return result;
    return pointer == NULL ? CUDA_ERROR_INVALID_VALUE : device_check(device);
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    const CUresult result = begin(device, ordinal);
    if (result == CUDA_SUCCESS) *device = ordinal;
    return driver_leave(result);
}

CUresult cuDeviceGetCount(int *count)
{
    const CUresult result = begin(count, 0);
    if (result == CUDA_SUCCESS) *count = (int)driver.devices;
    return driver_leave(result);
}

CUresult cuDeviceGetName(char *name, int length, CUdevice device)
{
    CUresult result = begin(name, device);
    if (result == CUDA_SUCCESS && length <= 0) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) snprintf(name, (size_t)length, "%s", driver.device[device].limits->title);
    return driver_leave(result);
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    const CUresult result = begin(bytes, device);
    if (result == CUDA_SUCCESS) *bytes = DEVICE_MEMORY;
    return driver_leave(result);
}

CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice device)
{
    const CUresult result = begin(major != NULL ? (void *)minor : NULL, device);
    if (result == CUDA_SUCCESS) {
        *major = (int)driver.device[device].limits->major;
        *minor = (int)driver.device[device].limits->minor;
    }
    return driver_leave(result);
}

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device)
{
    const CUresult result = begin(uuid, device);
    if (result == CUDA_SUCCESS) memcpy(uuid->bytes, "cudasim device 0", sizeof uuid->bytes);
    if (result == CUDA_SUCCESS) uuid->bytes[sizeof uuid->bytes - 1] = (char)('0' + device);
    return driver_leave(result);
}

CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device) { return cuDeviceGetUuid_v2(uuid, device); }

/* The bus has the device's number. */
enum { BUS_NAME_BYTES = sizeof "0000:00:00.0" };
static void bus_name(char name[BUS_NAME_BYTES], uint32_t device)
{
    snprintf(name, BUS_NAME_BYTES, "0000:%02x:00.0", device & 0xff);
}

CUresult cuDeviceGetPCIBusId(char *name, int length, CUdevice device)
{
    CUresult result = begin(name, device);
    if (result == CUDA_SUCCESS && length < BUS_NAME_BYTES) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) bus_name(name, (uint32_t)device);
    return driver_leave(result);
}

CUresult cuDeviceGetByPCIBusId(CUdevice *device, const char *name)
{
    CUresult result = begin(name == NULL ? NULL : (const void *)device, 0);
    uint32_t found = result == CUDA_SUCCESS ? 0 : driver.devices;
    for (char own[BUS_NAME_BYTES]; found < driver.devices; found++) {
        bus_name(own, found);
        if (strcmp(name, own) == 0) break;
    }
    if (result == CUDA_SUCCESS && found == driver.devices) result = CUDA_ERROR_INVALID_DEVICE;
    if (result == CUDA_SUCCESS) *device = (CUdevice)found;
    return driver_leave(result);
}

/* Attributes of the kind of device.  False: none of these. */
static bool limit_value(const struct device_limits *d, int attribute, uint32_t *value)
{
    switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = d->threads_per_block; break;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X: case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y: *value = 1024; break;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z: *value = 64; break;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X: *value = INT32_MAX; break;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y: case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z: *value = 65535; break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK: *value = d->shared_per_block; break;
    case CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY: *value = 65536; break;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE: *value = LANES; break;
    case CU_DEVICE_ATTRIBUTE_MAX_PITCH: *value = INT32_MAX; break;
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK: *value = d->registers_per_block; break;
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE: *value = d->clock_khz; break;
    case CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT: case CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT: *value = 512; break;
    case CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT: *value = 32; break;
    case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE: *value = d->memory_clock_khz; break;
    case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH: *value = d->bus_bits; break;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE: *value = d->l2_bytes; break;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR: *value = d->threads_per_sm; break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = d->major; break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *value = d->minor; break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR: *value = d->shared_per_sm; break;
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR: *value = d->registers_per_sm; break;
    case CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO: *value = d->sm < 120 ? 2 : 64; break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: *value = d->shared_per_block_optin; break;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR: *value = d->blocks_per_sm; break;
    case CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK: *value = d->shared_reserved; break;
    case CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH: *value = d->cluster_max > 1; break;
    case CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT: *value = 4; break;
    default: return false;
    }
    return true;
}

/* Attributes of this driver: what it can do is 1, everything else on CUDA's list (textures, sharing between processes,
 * ...) is 0. */
static bool ability_value(int attribute, CUdevice device, uint32_t *value)
{
    switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID: *value = (uint32_t)device; return true;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = driver.options.sms; return true;
    case CU_DEVICE_ATTRIBUTE_GPU_OVERLAP:
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS:
    case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT:
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING: case CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED: case CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY:
    case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
    case CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH:
    case CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED: case CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED: case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED: *value = 1; return true;
#define X(name, number) case number:
    default: switch (attribute) { CU_DEVICE_ATTRIBUTES(X) *value = 0; return true; default: return false; }
#undef X
    }
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    CUresult result = begin(value, device);
    uint32_t number = 0;
    if (result == CUDA_SUCCESS && !limit_value(driver.device[device].limits, (int)attribute, &number)
        && !ability_value((int)attribute, device, &number)) {
        driver_say("cudasim: device attribute %d is not known here\n", (int)attribute);
        result = CUDA_ERROR_INVALID_VALUE;
    }
    if (result == CUDA_SUCCESS) *value = (int)number;
    return driver_leave(result);
}
