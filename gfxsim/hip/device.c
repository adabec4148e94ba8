/* One device, as an MI355X. */
#include "hip.h"

#include <stdio.h>
#include <string.h>

enum { CUS = 256, CLOCK_KHZ = 2400000, MEMORY_KHZ = 4000000, BUS_BITS = 8192, L2_BYTES = 4 << 20, ATTRIBUTES = 92 };
static const size_t memory_bytes = (size_t)288 << 30;
static const char device_name[] = "gfxsim MI355X (simulated)";

HIP_EXPORT hipError_t hipInit(unsigned flags);
hipError_t hipInit(unsigned flags)
{
    if (flags != 0) return hipErrorInvalidValue;
    return hip_leave(hip_enter());
}

HIP_EXPORT hipError_t hipRuntimeGetVersion(int *version);
hipError_t hipRuntimeGetVersion(int *version)
{
    if (version == NULL) return hipErrorInvalidValue;
    *version = 60300000;
    return hipSuccess;
}

HIP_EXPORT hipError_t hipDriverGetVersion(int *version);
hipError_t hipDriverGetVersion(int *version) { return hipRuntimeGetVersion(version); }

HIP_EXPORT hipError_t hipGetDeviceCount(int *count);
hipError_t hipGetDeviceCount(int *count)
{
    if (count == NULL) return hipErrorInvalidValue;
    *count = 1;
    return hipSuccess;
}

HIP_EXPORT hipError_t hipDeviceGet(hipDevice_t *device, int ordinal);
hipError_t hipDeviceGet(hipDevice_t *device, int ordinal)
{
    if (device == NULL) return hipErrorInvalidValue;
    if (ordinal != 0) return hipErrorInvalidDevice;
    *device = 0;
    return hipSuccess;
}

HIP_EXPORT hipError_t hipGetDevice(int *device);
hipError_t hipGetDevice(int *device) { return hipDeviceGet(device, 0); }

HIP_EXPORT hipError_t hipSetDevice(int device);
hipError_t hipSetDevice(int device) { return device == 0 ? hipSuccess : hipErrorInvalidDevice; }

HIP_EXPORT hipError_t hipDeviceGetName(char *name, int bytes, hipDevice_t device);
hipError_t hipDeviceGetName(char *name, int bytes, hipDevice_t device)
{
    if (name == NULL || bytes <= 0) return hipErrorInvalidValue;
    if (device != 0) return hipErrorInvalidDevice;
    snprintf(name, (size_t)bytes, "%s", device_name);
    return hipSuccess;
}

HIP_EXPORT hipError_t hipDeviceTotalMem(size_t *bytes, hipDevice_t device);
hipError_t hipDeviceTotalMem(size_t *bytes, hipDevice_t device)
{
    if (bytes == NULL) return hipErrorInvalidValue;
    if (device != 0) return hipErrorInvalidDevice;
    *bytes = memory_bytes;
    return hipSuccess;
}

/* Numbers as HIP 6.3's header counts them. */
static const struct { int attribute, value; } attributes[] = {
    { 5, CLOCK_KHZ }, { 19, L2_BYTES }, { 23, 9 }, { 26, 1024 }, { 27, 1024 }, { 28, 1024 }, { 29, INT32_MAX },
    { 30, 65536 }, { 31, 65536 }, { 56, 1024 }, { 59, BUS_BITS }, { 60, MEMORY_KHZ }, { 61, 5 }, { 63, CUS },
    { 71, 131072 }, { 74, LDS_BYTES }, { 75, LDS_BYTES }, { 76, LDS_BYTES }, { 87, LANES }, { 88, 1 },
    { 10002, LDS_BYTES }, { 10017, 100000 },
};

HIP_EXPORT hipError_t hipDeviceGetAttribute(int *value, int attribute, int device);
hipError_t hipDeviceGetAttribute(int *value, int attribute, int device)
{
    if (value == NULL) return hipErrorInvalidValue;
    if (device != 0) return hipErrorInvalidDevice;
    for (size_t i = 0; i < sizeof attributes / sizeof attributes[0]; i++)
        if (attributes[i].attribute == attribute) {
            *value = attributes[i].value;
            return hipSuccess;
        }
    if (attribute < 0 || (attribute >= ATTRIBUTES && attribute < 10000)) return hipErrorInvalidValue;
    *value = 0;
    return hipSuccess;
}

/* hipDeviceProp_tR0600: the fields that are known here, by their offsets. */
enum { PROPERTIES_BYTES = 1472 };
static void put_number(uint8_t *p, size_t offset, int value) { memcpy(p + offset, &value, sizeof value); }
static void put_size(uint8_t *p, size_t offset, size_t value) { memcpy(p + offset, &value, sizeof value); }

HIP_EXPORT hipError_t hipGetDevicePropertiesR0600(void *properties, int device);
hipError_t hipGetDevicePropertiesR0600(void *properties, int device)
{
    if (properties == NULL) return hipErrorInvalidValue;
    if (device != 0) return hipErrorInvalidDevice;
    uint8_t *p = properties;
    memset(p, 0, PROPERTIES_BYTES);
    memcpy(p, device_name, sizeof device_name);
    put_size(p, 288, memory_bytes);
    put_size(p, 296, LDS_BYTES);
    put_number(p, 308, LANES);
    put_number(p, 388, CUS);
    put_size(p, 696, LDS_BYTES);
    snprintf((char *)p + 1160, 64, "gfx950:sramecc+:xnack-");
    return hipSuccess;
}

HIP_EXPORT hipError_t hipDeviceSynchronize(void);
hipError_t hipDeviceSynchronize(void) { return hip_leave(hip_enter()); }
