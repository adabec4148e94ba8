/* A libamdhip64 that hands every call on to another one (SHIM_LIBHIP), counts them, and fails the one it is told to
 * fail.  A thread's current GPU is number 1 at first, which nobody uses: so the library has to come and to leave. */
#include "failing_libamdhip64.h"
#include "hip/driver/driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

static struct failing state = { .current = 1 };
static struct bsmi_hip_driver real;

EXPORT struct failing *failing_state(void) { return &state; }

__attribute__((constructor)) static void open_real(void)
{
    const char *path = getenv("SHIM_LIBHIP");
    void *library = dlopen(path != NULL ? path : "libamdhip64.so", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        fprintf(stderr, "failing_libamdhip64: %s\n", dlerror());
        exit(1);
    }
    *(void **)&real.hipGetErrorName = dlsym(library, "hipGetErrorName");
    *(void **)&real.hipGetErrorString = dlsym(library, "hipGetErrorString");
#define X(name, parameters) *(void **)&real.name = dlsym(library, #name);
    BSMI_HIP_FUNCTIONS(X)
#undef X
}

/* What is had and given back, told by the names of the calls; a call that fails has given its thing back, as far as
 * anybody can tell. */
static hipError_t done(const char *name, hipError_t result)
{
    static const struct { const char *name; int change; } all[] = {
        { "hipMalloc", 1 }, { "hipFree", -1 }, { "hipModuleLoadData", 1 }, { "hipModuleUnload", -1 },
        { "hipEventCreateWithFlags", 1 }, { "hipEventDestroy", -1 } };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (strcmp(all[i].name, name) == 0 && (result == hipSuccess || all[i].change < 0)) state.live += all[i].change;
    return result;
}

static bool fails(const char *name)
{
    if (++state.calls != state.fail_at) return false;
    snprintf(state.failed, sizeof state.failed, "%s", name);
    return true;
}

static hipError_t failure(const char *name)
{
    return done(name, strcmp(name, "hipMalloc") == 0 ? hipErrorOutOfMemory : 999);
}

EXPORT const char *hipGetErrorName(hipError_t error);
const char *hipGetErrorName(hipError_t error) { return real.hipGetErrorName(error); }
EXPORT const char *hipGetErrorString(hipError_t error);
const char *hipGetErrorString(hipError_t error) { return real.hipGetErrorString(error); }

#define FORWARD(name, parameters, arguments) \
    EXPORT hipError_t name parameters; \
    hipError_t name parameters { return fails(#name) ? failure(#name) : done(#name, real.name arguments); }

FORWARD(hipInit, (unsigned flags), (flags))
FORWARD(hipRuntimeGetVersion, (int *version), (version))
FORWARD(hipGetDeviceCount, (int *count), (count))
FORWARD(hipDeviceGet, (hipDevice_t * device, int number), (device, number))
FORWARD(hipDeviceGetName, (char *name, int bytes, hipDevice_t device), (name, bytes, device))
FORWARD(hipDeviceTotalMem, (size_t * bytes, hipDevice_t device), (bytes, device))
FORWARD(hipDeviceGetAttribute, (int *value, int attribute, int device), (value, attribute, device))
FORWARD(hipGetDevicePropertiesR0600, (void *properties, int device), (properties, device))

static hipError_t get_device(int *device) { return *device = state.current, hipSuccess; }
static hipError_t set_device(int device)
{
    const hipError_t result = device == 1 ? hipSuccess : real.hipSetDevice(device);
    if (result == hipSuccess) state.current = device;
    return result;
}
EXPORT hipError_t hipGetDevice(int *device);
hipError_t hipGetDevice(int *device) { return fails("hipGetDevice") ? failure("hipGetDevice") : get_device(device); }
EXPORT hipError_t hipSetDevice(int device);
hipError_t hipSetDevice(int device)
{
    if (!fails("hipSetDevice")) return set_device(device);
    state.leaving = device == 1;
    return failure("hipSetDevice");
}

FORWARD(hipModuleLoadData, (hipModule_t * module, const void *image), (module, image))
FORWARD(hipModuleUnload, (hipModule_t module), (module))
FORWARD(hipModuleGetFunction, (hipFunction_t * function, hipModule_t module, const char *name),
        (function, module, name))
FORWARD(hipModuleLaunchKernel,
        (hipFunction_t function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
         unsigned block_z, unsigned shared_bytes, hipStream_t stream, void **parameters, void **extra),
        (function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream, parameters, extra))
FORWARD(hipMalloc, (void **memory, size_t bytes), (memory, bytes))
FORWARD(hipFree, (void *memory), (memory))
FORWARD(hipMemcpyHtoDAsync, (void *to, void *from, size_t bytes, hipStream_t stream), (to, from, bytes, stream))
FORWARD(hipMemcpyDtoHAsync, (void *to, void *from, size_t bytes, hipStream_t stream), (to, from, bytes, stream))
FORWARD(hipMemsetD8Async, (void *to, unsigned char value, size_t count, hipStream_t stream), (to, value, count, stream))
FORWARD(hipMemsetD32Async, (void *to, int value, size_t count, hipStream_t stream), (to, value, count, stream))
FORWARD(hipStreamSynchronize, (hipStream_t stream), (stream))
FORWARD(hipStreamIsCapturing, (hipStream_t stream, int *capturing), (stream, capturing))
FORWARD(hipStreamWaitEvent, (hipStream_t stream, hipEvent_t event, unsigned flags), (stream, event, flags))
FORWARD(hipEventCreateWithFlags, (hipEvent_t * event, unsigned flags), (event, flags))
FORWARD(hipEventRecord, (hipEvent_t event, hipStream_t stream), (event, stream))
FORWARD(hipEventDestroy, (hipEvent_t event), (event))
