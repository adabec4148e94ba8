/* libcuda, opened at run time: one table of its functions.  The types and numbers below are those of the CUDA driver
 * API (cuda.h of CUDA 12.0 and later); the library is built without it. */
#ifndef BSMI_DRIVER_H
#define BSMI_DRIVER_H

#include "core/core.h"

typedef int CUresult, CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;

enum {
    CUDA_SUCCESS = 0, CUDA_ERROR_OUT_OF_MEMORY = 2, CUDA_ERROR_NO_DEVICE = 100,
    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
    CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION = 4, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION = 6,
    CU_EVENT_DISABLE_TIMING = 2,
    CU_TENSOR_MAP_DATA_TYPE_UINT8 = 0, CU_TENSOR_MAP_DATA_TYPE_UINT16 = 1, CU_TENSOR_MAP_DATA_TYPE_UINT32 = 2,
    CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B = 14,
    CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B = 15, CU_TENSOR_MAP_DATA_TYPE_FLOAT16 = 6,
    CU_TENSOR_MAP_DATA_TYPE_FLOAT32 = 7, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 = 9,
    CU_TENSOR_MAP_INTERLEAVE_NONE = 0, CU_TENSOR_MAP_SWIZZLE_NONE = 0, CU_TENSOR_MAP_SWIZZLE_32B = 1,
    CU_TENSOR_MAP_SWIZZLE_64B = 2,
    CU_TENSOR_MAP_SWIZZLE_128B = 3,
    CU_TENSOR_MAP_L2_PROMOTION_L2_256B = 3, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE = 0
};

typedef struct CUlaunchAttribute {
    int id;
    char pad[4];
    union {
        char pad[64];
        struct { unsigned x, y, z; } clusterDim;
        int programmaticStreamSerializationAllowed;
    } value;
} CUlaunchAttribute;

typedef struct CUlaunchConfig {
    unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
    CUstream hStream;
    CUlaunchAttribute *attrs;
    unsigned numAttrs;
} CUlaunchConfig;

/* One row per function: its name, the name libcuda exports it by, its parameters. */
#define BSMI_DRIVER_FUNCTIONS(X) \
    X(cuGetErrorName, "cuGetErrorName", (CUresult error, const char **name)) \
    X(cuGetErrorString, "cuGetErrorString", (CUresult error, const char **sentence)) \
    X(cuInit, "cuInit", (unsigned flags)) \
    X(cuDriverGetVersion, "cuDriverGetVersion", (int *version)) \
    X(cuDeviceGetCount, "cuDeviceGetCount", (int *count)) \
    X(cuDeviceGet, "cuDeviceGet", (CUdevice * device, int number)) \
    X(cuDeviceGetName, "cuDeviceGetName", (char *name, int bytes, CUdevice device)) \
    X(cuDeviceGetAttribute, "cuDeviceGetAttribute", (int *value, int attribute, CUdevice device)) \
    X(cuDeviceTotalMem, "cuDeviceTotalMem_v2", (size_t * bytes, CUdevice device)) \
    X(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", (CUcontext * context, CUdevice device)) \
    X(cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2", (CUdevice device)) \
    X(cuCtxPushCurrent, "cuCtxPushCurrent_v2", (CUcontext context)) \
    X(cuCtxPopCurrent, "cuCtxPopCurrent_v2", (CUcontext * context)) \
    X(cuModuleLoadData, "cuModuleLoadData", (CUmodule * module, const void *image)) \
    X(cuModuleUnload, "cuModuleUnload", (CUmodule module)) \
    X(cuModuleGetFunction, "cuModuleGetFunction", (CUfunction * function, CUmodule module, const char *name)) \
    X(cuFuncSetAttribute, "cuFuncSetAttribute", (CUfunction function, int attribute, int value)) \
    X(cuMemAlloc, "cuMemAlloc_v2", (CUdeviceptr * memory, size_t bytes)) \
    X(cuMemFree, "cuMemFree_v2", (CUdeviceptr memory)) \
    X(cuMemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2", (CUdeviceptr to, const void *from, size_t bytes, CUstream stream)) \
    X(cuMemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2", (void *to, CUdeviceptr from, size_t bytes, CUstream stream)) \
    X(cuMemsetD8Async, "cuMemsetD8Async", (CUdeviceptr to, unsigned char value, size_t count, CUstream stream)) \
    X(cuMemsetD32Async, "cuMemsetD32Async", (CUdeviceptr to, unsigned value, size_t count, CUstream stream)) \
    X(cuStreamSynchronize, "cuStreamSynchronize", (CUstream stream)) \
    X(cuStreamIsCapturing, "cuStreamIsCapturing", (CUstream stream, int *capturing)) \
    X(cuStreamWaitEvent, "cuStreamWaitEvent", (CUstream stream, CUevent event, unsigned flags)) \
    X(cuEventCreate, "cuEventCreate", (CUevent * event, unsigned flags)) \
    X(cuEventRecord, "cuEventRecord", (CUevent event, CUstream stream)) \
    X(cuEventDestroy, "cuEventDestroy_v2", (CUevent event)) \
    X(cuEventSynchronize, "cuEventSynchronize", (CUevent event)) \
    X(cuEventElapsedTime, "cuEventElapsedTime", (float *milliseconds, CUevent from, CUevent to)) \
    X(cuLaunchKernelEx, "cuLaunchKernelEx", \
      (const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra)) \
    X(cuOccupancyMaxActiveClusters, "cuOccupancyMaxActiveClusters", \
      (int *clusters, CUfunction function, const CUlaunchConfig *config)) \
    X(cuTensorMapEncodeTiled, "cuTensorMapEncodeTiled", \
      (void *map, int type, unsigned rank, void *address, const uint64_t *sizes, const uint64_t *strides, \
       const uint32_t *box, const uint32_t *steps, int interleave, int swizzle, int promotion, int fill))

struct bsmi_driver {
    int version;                          /* as cuDriverGetVersion counts: 12040 is 12.4 */
#define X(name, symbol, parameters) CUresult (*name) parameters;
    BSMI_DRIVER_FUNCTIONS(X)
#undef X
};

/* Opens libcuda (or what BLOCKSCALE_LIBCUDA names) and starts it: once in a process, again after a failure.  The table
 * lives as long as the process.  Fails with BSM_EDEVICE and a sentence: no such library, a function that it lacks, a
 * driver too old. */
bsm_status bsmi_driver_open(const struct bsmi_driver **driver);

/* BSM_OK for CUDA_SUCCESS; else BSM_ENOMEM (out of device memory) or BSM_EDEVICE, with a sentence: "cuMemAlloc: out of
 * memory (CUDA_ERROR_OUT_OF_MEMORY); about".  about: what was being done, printf's way. */
__attribute__((format(printf, 4, 5))) bsm_status bsmi_driver_check(const struct bsmi_driver *driver, CUresult result,
                                                                   const char *function, const char *about, ...);

/* result of driver->function(...), checked. */
#define BSMI_DRIVER_CALL(driver, function, arguments, ...) \
    bsmi_driver_check(driver, (driver)->function arguments, #function, __VA_ARGS__)

#endif
