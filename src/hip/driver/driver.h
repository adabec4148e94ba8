/* libamdhip64, opened at run time: one table of its functions.  The types and numbers below are those of the HIP
 * runtime API (hip_runtime_api.h of ROCm 6.3); the library is built without it. */
#ifndef BSMI_HIP_DRIVER_H
#define BSMI_HIP_DRIVER_H

#include "core/core.h"

typedef int hipError_t, hipDevice_t;
typedef struct ihipStream_t *hipStream_t;
typedef struct ihipEvent_t *hipEvent_t;
typedef struct ihipModule_t *hipModule_t;
typedef struct ihipModuleSymbol_t *hipFunction_t;

enum {
    hipSuccess = 0, hipErrorOutOfMemory = 2, hipEventDisableTiming = 2,
    hipDeviceAttributeMultiprocessorCount = 63, hipDeviceAttributeMaxSharedMemoryPerBlock = 74
};

/* hipGetDevicePropertiesR0600 writes a struct of so many bytes; where the name of the architecture lies in it. */
enum { BSMI_HIP_PROPERTIES_BYTES = 1472, BSMI_HIP_PROPERTIES_ARCHITECTURE = 1160, BSMI_HIP_ARCHITECTURE_BYTES = 256 };

/* One row per function that returns an error: its name, its parameters. */
#define BSMI_HIP_FUNCTIONS(X) \
    X(hipInit, (unsigned flags)) \
    X(hipRuntimeGetVersion, (int *version)) \
    X(hipGetDeviceCount, (int *count)) \
    X(hipDeviceGet, (hipDevice_t * device, int number)) \
    X(hipDeviceGetName, (char *name, int bytes, hipDevice_t device)) \
    X(hipDeviceTotalMem, (size_t * bytes, hipDevice_t device)) \
    X(hipDeviceGetAttribute, (int *value, int attribute, int device)) \
    X(hipGetDevicePropertiesR0600, (void *properties, int device)) \
    X(hipGetDevice, (int *device)) \
    X(hipSetDevice, (int device)) \
    X(hipModuleLoadData, (hipModule_t * module, const void *image)) \
    X(hipModuleUnload, (hipModule_t module)) \
    X(hipModuleGetFunction, (hipFunction_t * function, hipModule_t module, const char *name)) \
    X(hipModuleLaunchKernel, \
      (hipFunction_t function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, \
       unsigned block_z, unsigned shared_bytes, hipStream_t stream, void **parameters, void **extra)) \
    X(hipMalloc, (void **memory, size_t bytes)) \
    X(hipFree, (void *memory)) \
    X(hipMemcpyHtoDAsync, (void *to, void *from, size_t bytes, hipStream_t stream)) \
    X(hipMemcpyDtoHAsync, (void *to, void *from, size_t bytes, hipStream_t stream)) \
    X(hipMemsetD8Async, (void *to, unsigned char value, size_t count, hipStream_t stream)) \
    X(hipMemsetD32Async, (void *to, int value, size_t count, hipStream_t stream)) \
    X(hipStreamSynchronize, (hipStream_t stream)) \
    X(hipStreamIsCapturing, (hipStream_t stream, int *capturing)) \
    X(hipStreamWaitEvent, (hipStream_t stream, hipEvent_t event, unsigned flags)) \
    X(hipEventCreateWithFlags, (hipEvent_t * event, unsigned flags)) \
    X(hipEventRecord, (hipEvent_t event, hipStream_t stream)) \
    X(hipEventDestroy, (hipEvent_t event))

struct bsmi_hip_driver {
    int version;                          /* as hipRuntimeGetVersion counts: 60342131 is 6.3 */
    const char *(*hipGetErrorName)(hipError_t error), *(*hipGetErrorString)(hipError_t error);
#define X(name, parameters) hipError_t (*name) parameters;
    BSMI_HIP_FUNCTIONS(X)
#undef X
};

/* Opens libamdhip64 (or what BLOCKSCALE_LIBHIP names) and starts it: once in a process, again after a failure.  The
 * table lives as long as the process.  Fails with BSM_EDEVICE and a sentence: no such library, a function that it
 * lacks, a runtime too old. */
bsm_status bsmi_hip_driver_open(const struct bsmi_hip_driver **driver);

/* BSM_OK for hipSuccess; else BSM_ENOMEM (out of device memory) or BSM_EDEVICE, with a sentence: "hipMalloc gave
 * hipErrorOutOfMemory, 2 (out of memory): about".  about: what was being done, printf's way. */
__attribute__((format(printf, 4, 5))) bsm_status bsmi_hip_check(const struct bsmi_hip_driver *driver, hipError_t result,
                                                                const char *function, const char *about, ...);

/* result of driver->function(...), checked. */
#define BSMI_HIP_CALL(driver, function, arguments, ...) \
    bsmi_hip_check(driver, (driver)->function arguments, #function, __VA_ARGS__)

#endif
