/* A libcuda that hands every call on to another one (SHIM_LIBCUDA), counts them, and fails the one it is told to fail:
 * it is made from the library's own table of driver functions.  Kernels of the PTX file that SHIM_KERNELS names take
 * the places of those of the same names. */
#include "cuda/driver/driver.h"
#include "shim.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

static struct shim state;
static struct bsmi_driver real;

EXPORT struct shim *shim_state(void) { return &state; }

__attribute__((constructor)) static void open_real(void)
{
    const char *path = getenv("SHIM_LIBCUDA");
    void *library = dlopen(path != NULL ? path : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        fprintf(stderr, "shim: %s\n", dlerror());
        exit(1);
    }
#define X(name, symbol, parameters) *(void **)&real.name = dlsym(library, symbol);
    BSMI_DRIVER_FUNCTIONS(X)
#undef X
}

/* What is had and given back, told by the names of the calls. */
static void count_live(const char *name, bool done)
{
    static const struct { const char *name; int change; } all[] = {
        { "cuMemAlloc", 1 }, { "cuMemFree", -1 }, { "cuModuleLoadData", 1 }, { "cuModuleUnload", -1 },
        { "cuEventCreate", 1 }, { "cuEventDestroy", -1 }, { "cuDevicePrimaryCtxRetain", 1 },
        { "cuDevicePrimaryCtxRelease", -1 }, { "cuCtxPushCurrent", 1 }, { "cuCtxPopCurrent", -1 } };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (strcmp(all[i].name, name) == 0 && (done || all[i].change < 0)) state.live += all[i].change;
}

static void count_kind(const char *name)
{
    if (strcmp(name, "cuLaunchKernelEx") == 0) state.launches++;
    if (strncmp(name, "cuMemcpy", 8) == 0) state.copies++;
    if (strcmp(name, "cuStreamSynchronize") == 0) state.waits++;
    if (strcmp(name, "cuMemAlloc") == 0) state.allocations++;
    if (strcmp(name, "cuMemFree") == 0) state.releases++;
}

/* true if this call fails.  Names and sentences of errors are no calls that anybody counts on. */
static bool fails(const char *name)
{
    if (strncmp(name, "cuGetError", 10) == 0) return false;
    count_kind(name);
    if (++state.calls != state.fail_at) return false;
    snprintf(state.failed, sizeof state.failed, "%s", name);
    return true;
}

static CUresult failure(const char *name)
{
    count_live(name, false);
    return strcmp(name, "cuMemAlloc") == 0 ? CUDA_ERROR_OUT_OF_MEMORY : 999;
}

static CUresult passed(const char *name, CUresult result)
{
    count_live(name, result == CUDA_SUCCESS);
    return result;
}

#define FORWARD(name, symbol, parameters, arguments) \
    EXPORT CUresult name parameters __asm__(symbol); \
    CUresult name parameters { return fails(#name) ? failure(#name) : passed(#name, real.name arguments); }

FORWARD(cuGetErrorName, "cuGetErrorName", (CUresult error, const char **name), (error, name))
FORWARD(cuGetErrorString, "cuGetErrorString", (CUresult error, const char **sentence), (error, sentence))
FORWARD(cuInit, "cuInit", (unsigned flags), (flags))
FORWARD(cuDeviceGetCount, "cuDeviceGetCount", (int *count), (count))
FORWARD(cuDeviceGet, "cuDeviceGet", (CUdevice *device, int number), (device, number))
FORWARD(cuDeviceGetName, "cuDeviceGetName", (char *name, int bytes, CUdevice device), (name, bytes, device))
FORWARD(cuDeviceGetAttribute, "cuDeviceGetAttribute", (int *value, int attribute, CUdevice device),
        (value, attribute, device))
FORWARD(cuDeviceTotalMem, "cuDeviceTotalMem_v2", (size_t *bytes, CUdevice device), (bytes, device))
FORWARD(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", (CUcontext *context, CUdevice device), (context, device))
FORWARD(cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2", (CUdevice device), (device))
FORWARD(cuCtxPushCurrent, "cuCtxPushCurrent_v2", (CUcontext context), (context))
FORWARD(cuCtxPopCurrent, "cuCtxPopCurrent_v2", (CUcontext *context), (context))
FORWARD(cuModuleLoadData, "cuModuleLoadData", (CUmodule *module, const void *image), (module, image))
FORWARD(cuModuleUnload, "cuModuleUnload", (CUmodule module), (module))
FORWARD(cuFuncSetAttribute, "cuFuncSetAttribute", (CUfunction function, int attribute, int value),
        (function, attribute, value))
FORWARD(cuMemAlloc, "cuMemAlloc_v2", (CUdeviceptr *memory, size_t bytes), (memory, bytes))
FORWARD(cuMemFree, "cuMemFree_v2", (CUdeviceptr memory), (memory))
FORWARD(cuMemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2", (CUdeviceptr to, const void *from, size_t bytes, CUstream stream),
        (to, from, bytes, stream))
FORWARD(cuMemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2", (void *to, CUdeviceptr from, size_t bytes, CUstream stream),
        (to, from, bytes, stream))
FORWARD(cuMemsetD8Async, "cuMemsetD8Async", (CUdeviceptr to, unsigned char value, size_t count, CUstream stream),
        (to, value, count, stream))
FORWARD(cuMemsetD32Async, "cuMemsetD32Async", (CUdeviceptr to, unsigned value, size_t count, CUstream stream),
        (to, value, count, stream))
FORWARD(cuStreamSynchronize, "cuStreamSynchronize", (CUstream stream), (stream))
FORWARD(cuStreamIsCapturing, "cuStreamIsCapturing", (CUstream stream, int *capturing), (stream, capturing))
FORWARD(cuStreamWaitEvent, "cuStreamWaitEvent", (CUstream stream, CUevent event, unsigned flags),
        (stream, event, flags))
FORWARD(cuEventCreate, "cuEventCreate", (CUevent *event, unsigned flags), (event, flags))
FORWARD(cuEventRecord, "cuEventRecord", (CUevent event, CUstream stream), (event, stream))
FORWARD(cuEventDestroy, "cuEventDestroy_v2", (CUevent event), (event))
FORWARD(cuEventSynchronize, "cuEventSynchronize", (CUevent event), (event))
FORWARD(cuEventElapsedTime, "cuEventElapsedTime", (float *milliseconds, CUevent from, CUevent to),
        (milliseconds, from, to))
FORWARD(cuOccupancyMaxActiveClusters, "cuOccupancyMaxActiveClusters",
        (int *clusters, CUfunction function, const CUlaunchConfig *config), (clusters, function, config))
FORWARD(cuTensorMapEncodeTiled, "cuTensorMapEncodeTiled",
        (void *map, int type, unsigned rank, void *address, const uint64_t *sizes, const uint64_t *strides,
         const uint32_t *box, const uint32_t *steps, int interleave, int swizzle, int promotion, int fill),
        (map, type, rank, address, sizes, strides, box, steps, interleave, swizzle, promotion, fill))

EXPORT CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra);
CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra)
{
    state.stream = config->hStream;
    if (fails("cuLaunchKernelEx")) return failure("cuLaunchKernelEx");
    return passed("cuLaunchKernelEx", real.cuLaunchKernelEx(config, function, parameters, extra));
}

/* The module of SHIM_KERNELS; NULL: there is none. */
static CUmodule other_kernels(void)
{
    static CUmodule module;
    static char text[1 << 22];
    const char *path = getenv("SHIM_KERNELS");
    if (path == NULL || module != NULL) return module;
    FILE *file = fopen(path, "r");
    const size_t length = file == NULL ? 0 : fread(text, 1, sizeof text - 1, file);
    if (length == 0 || length == sizeof text - 1 || real.cuModuleLoadData(&module, text) != CUDA_SUCCESS) {
        fprintf(stderr, "shim: %s: no kernels that can be loaded\n", path);
        exit(1);
    }
    fclose(file);
    return module;
}

EXPORT CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name);
CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    if (fails("cuModuleGetFunction")) return failure("cuModuleGetFunction");
    const CUmodule other = other_kernels();
    if (other != NULL && real.cuModuleGetFunction(function, other, name) == CUDA_SUCCESS) return CUDA_SUCCESS;
    return passed("cuModuleGetFunction", real.cuModuleGetFunction(function, module, name));
}

/* An old driver, if told to be one. */
EXPORT CUresult cuDriverGetVersion(int *version);
CUresult cuDriverGetVersion(int *version)
{
    if (fails("cuDriverGetVersion")) return 999;
    const CUresult result = real.cuDriverGetVersion(version);
    if (getenv("SHIM_VERSION") != NULL) *version = atoi(getenv("SHIM_VERSION"));
    return result;
}
