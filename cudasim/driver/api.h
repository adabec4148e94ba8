/* The CUDA driver API as this library declares it: names, numbers and layouts of cuda.h, written anew, so that no toolkit is needed.
 * tests/test_driver_api.c compares them with a cuda.h where there is one. */
#ifndef CUDASIM_DRIVER_API_H
#define CUDASIM_DRIVER_API_H

#include <stddef.h>
#include <stdint.h>

#define CUDASIM_EXPORT __attribute__((visibility("default")))

typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUuuid_st { char bytes[16]; } CUuuid;

#define CU_RESULTS(X) \
    X(SUCCESS, 0, "no error") \
    X(ERROR_INVALID_VALUE, 1, "invalid argument") \
    X(ERROR_OUT_OF_MEMORY, 2, "out of memory") \
    X(ERROR_NOT_INITIALIZED, 3, "initialization error") \
    X(ERROR_DEINITIALIZED, 4, "driver shutting down") \
    X(ERROR_NO_DEVICE, 100, "no CUDA-capable device is detected") \
    X(ERROR_INVALID_DEVICE, 101, "invalid device ordinal") \
    X(ERROR_INVALID_IMAGE, 200, "device kernel image is invalid") \
    X(ERROR_INVALID_CONTEXT, 201, "invalid device context") \
    X(ERROR_NO_BINARY_FOR_GPU, 209, "no kernel image is available for execution on the device") \
    X(ERROR_UNSUPPORTED_LIMIT, 215, "limit is not supported on this architecture") \
    X(ERROR_INVALID_PTX, 218, "a PTX JIT compilation failed") \
    X(ERROR_UNSUPPORTED_PTX_VERSION, 222, "the provided PTX was compiled with an unsupported toolchain.") \
    X(ERROR_INVALID_SOURCE, 300, "device kernel image is invalid") \
    X(ERROR_FILE_NOT_FOUND, 301, "file not found") \
    X(ERROR_OPERATING_SYSTEM, 304, "OS call failed or operation not supported on this OS") \
    X(ERROR_INVALID_HANDLE, 400, "invalid resource handle") \
    X(ERROR_NOT_FOUND, 500, "named symbol not found") \
    X(ERROR_NOT_READY, 600, "device not ready") \
    X(ERROR_ILLEGAL_ADDRESS, 700, "an illegal memory access was encountered") \
    X(ERROR_LAUNCH_OUT_OF_RESOURCES, 701, "too many resources requested for launch") \
    X(ERROR_LAUNCH_TIMEOUT, 702, "the launch timed out and was terminated") \
    X(ERROR_PRIMARY_CONTEXT_ACTIVE, 708, "cannot set while device is active in this process") \
    X(ERROR_CONTEXT_IS_DESTROYED, 709, "context is destroyed") \
    X(ERROR_ASSERT, 710, "device-side assert triggered") \
    X(ERROR_HARDWARE_STACK_ERROR, 714, "hardware stack error") \
    X(ERROR_ILLEGAL_INSTRUCTION, 715, "an illegal instruction was encountered") \
    X(ERROR_MISALIGNED_ADDRESS, 716, "misaligned address") \
    X(ERROR_INVALID_ADDRESS_SPACE, 717, "operation not supported on global/shared address space") \
    X(ERROR_INVALID_PC, 718, "invalid program counter") \
    X(ERROR_LAUNCH_FAILED, 719, "unspecified launch failure") \
    X(ERROR_NOT_PERMITTED, 800, "operation not permitted") \
    X(ERROR_NOT_SUPPORTED, 801, "operation not supported") \
    X(ERROR_INVALID_CLUSTER_SIZE, 912, "cluster misconfiguration") \
    X(ERROR_UNKNOWN, 999, "unknown error")

typedef enum {
#define X(name, value, text) CUDA_##name = value,
    CU_RESULTS(X)
#undef X
} CUresult;

enum { CU_STREAM_DEFAULT = 0, CU_STREAM_NON_BLOCKING = 1 };
enum { CUDASIM_DRIVER_VERSION = 13000 };

#define CU_DEVICE_ATTRIBUTES(X) \
    X(MAX_THREADS_PER_BLOCK, 1) X(MAX_BLOCK_DIM_X, 2) X(MAX_BLOCK_DIM_Y, 3) X(MAX_BLOCK_DIM_Z, 4) X(MAX_GRID_DIM_X, 5) \
    X(MAX_GRID_DIM_Y, 6) X(MAX_GRID_DIM_Z, 7) X(MAX_SHARED_MEMORY_PER_BLOCK, 8) X(TOTAL_CONSTANT_MEMORY, 9) X(WARP_SIZE, 10) \
    X(MAX_PITCH, 11) X(MAX_REGISTERS_PER_BLOCK, 12) X(CLOCK_RATE, 13) X(TEXTURE_ALIGNMENT, 14) X(GPU_OVERLAP, 15) \
    X(MULTIPROCESSOR_COUNT, 16) X(KERNEL_EXEC_TIMEOUT, 17) X(INTEGRATED, 18) X(CAN_MAP_HOST_MEMORY, 19) X(COMPUTE_MODE, 20) \
    X(CONCURRENT_KERNELS, 31) X(ECC_ENABLED, 32) X(PCI_BUS_ID, 33) X(PCI_DEVICE_ID, 34) X(TCC_DRIVER, 35) \
    X(MEMORY_CLOCK_RATE, 36) X(GLOBAL_MEMORY_BUS_WIDTH, 37) X(L2_CACHE_SIZE, 38) X(MAX_THREADS_PER_MULTIPROCESSOR, 39) \
    X(ASYNC_ENGINE_COUNT, 40) X(UNIFIED_ADDRESSING, 41) X(PCI_DOMAIN_ID, 50) X(COMPUTE_CAPABILITY_MAJOR, 75) \
    X(COMPUTE_CAPABILITY_MINOR, 76) X(STREAM_PRIORITIES_SUPPORTED, 78) X(MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 81) \
    X(MAX_REGISTERS_PER_MULTIPROCESSOR, 82) X(MANAGED_MEMORY, 83) X(COOPERATIVE_LAUNCH, 95) X(MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 97) \
    X(MAX_BLOCKS_PER_MULTIPROCESSOR, 106) X(RESERVED_SHARED_MEMORY_PER_BLOCK, 111) X(MEMORY_POOLS_SUPPORTED, 115) \
    X(CLUSTER_LAUNCH, 120)

typedef enum {
#define X(name, value) CU_DEVICE_ATTRIBUTE_##name = value,
    CU_DEVICE_ATTRIBUTES(X)
#undef X
} CUdevice_attribute;

typedef enum {
    CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 0, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES = 1, CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES = 2,
    CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES = 3, CU_FUNC_ATTRIBUTE_NUM_REGS = 4, CU_FUNC_ATTRIBUTE_PTX_VERSION = 5,
    CU_FUNC_ATTRIBUTE_BINARY_VERSION = 6, CU_FUNC_ATTRIBUTE_CACHE_MODE_CA = 7, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
    CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT = 9, CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET = 10,
    CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH = 11, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT = 12,
    CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH = 13, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED = 14,
    CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE = 15,
} CUfunction_attribute;

typedef enum {
    CU_JIT_INFO_LOG_BUFFER = 3,
    CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES = 4,
    CU_JIT_ERROR_LOG_BUFFER = 5,
    CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6
} CUjit_option;

#endif
