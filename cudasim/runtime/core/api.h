/* The CUDA runtime API as this library declares it: names, numbers and layouts of CUDA 13's cuda_runtime_api.h, written
 * anew, so that no toolkit is needed.  What the driver has in the same layout keeps the driver's type.
 * tests/runtime/test_runtime_numbers.c compares them with a cuda_runtime_api.h where there is one. */
#ifndef CUDASIM_RUNTIME_CORE_API_H
#define CUDASIM_RUNTIME_CORE_API_H

#include "driver/core/api.h"
#include "numbers.h"

typedef enum {
#define X(name, value) cuda##name = value,
    CUDA_ERRORS(X)
#undef X
} cudaError_t;

enum { CUDART_VERSION = 13000 };

typedef CUstream cudaStream_t;
typedef CUevent cudaEvent_t;
typedef CUgraph cudaGraph_t;
typedef CUgraphNode cudaGraphNode_t;
typedef CUgraphExec cudaGraphExec_t;
typedef CUmemoryPool cudaMemPool_t;
typedef CUlibrary cudaLibrary_t;
typedef CUkernel cudaKernel_t;
typedef CUfunction cudaFunction_t;
typedef CUmemPoolProps cudaMemPoolProps;

typedef struct { unsigned x, y, z; } dim3;
typedef struct {
    dim3 gridDim, blockDim;
    size_t dynamicSmemBytes;
    cudaStream_t stream;
    CUlaunchAttribute *attrs;
    unsigned numAttrs;
} cudaLaunchConfig_t;

enum { cudaMemcpyHostToHost, cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice,
       cudaMemcpyDefault };
typedef struct { size_t x, y, z; } cudaPos;
typedef struct { size_t width, height, depth; } cudaExtent;
typedef struct { void *ptr; size_t pitch, xsize, ysize; } cudaPitchedPtr;
typedef struct {
    void *srcArray;
    cudaPos srcPos;
    cudaPitchedPtr srcPtr;
    void *dstArray;
    cudaPos dstPos;
    cudaPitchedPtr dstPtr;
    cudaExtent extent;
    int kind;
} cudaMemcpy3DParms;

enum { cudaMemoryTypeUnregistered, cudaMemoryTypeHost, cudaMemoryTypeDevice, cudaMemoryTypeManaged };
typedef struct {
    int type, device;
    void *devicePointer, *hostPointer;
    long reserved[8];
} cudaPointerAttributes;

typedef struct {
    size_t sharedSizeBytes, constSizeBytes, localSizeBytes;
    int maxThreadsPerBlock, numRegs, ptxVersion, binaryVersion, cacheModeCA, maxDynamicSharedSizeBytes,
        preferredShmemCarveout, clusterDimMustBeSet, requiredClusterWidth, requiredClusterHeight, requiredClusterDepth,
        clusterSchedulingPolicyPreference, nonPortableClusterSizeAllowed, reserved[16];
} cudaFuncAttributes;

typedef struct {
    void *func;
    dim3 gridDim, blockDim;
    unsigned sharedMemBytes;
    void **kernelParams, **extra;
} cudaKernelNodeParams;

typedef struct {
    char name[256];
    CUuuid uuid;
    char luid[8];
    unsigned luidDeviceNodeMask;
    size_t totalGlobalMem, sharedMemPerBlock;
    int regsPerBlock, warpSize;
    size_t memPitch;
    int maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3];
    size_t totalConstMem;
    int major, minor;
    size_t textureAlignment, texturePitchAlignment;
    int multiProcessorCount, integrated, canMapHostMemory, maxTexture1D, maxTexture1DMipmap, maxTexture2D[2],
        maxTexture2DMipmap[2], maxTexture2DLinear[3], maxTexture2DGather[2], maxTexture3D[3], maxTexture3DAlt[3],
        maxTextureCubemap, maxTexture1DLayered[2], maxTexture2DLayered[3], maxTextureCubemapLayered[2], maxSurface1D,
        maxSurface2D[2], maxSurface3D[3], maxSurface1DLayered[2], maxSurface2DLayered[3], maxSurfaceCubemap,
        maxSurfaceCubemapLayered[2];
    size_t surfaceAlignment;
    int concurrentKernels, ECCEnabled, pciBusID, pciDeviceID, pciDomainID, tccDriver, asyncEngineCount,
        unifiedAddressing, memoryBusWidth, l2CacheSize, persistingL2CacheMaxSize, maxThreadsPerMultiProcessor,
        streamPrioritiesSupported, globalL1CacheSupported, localL1CacheSupported;
    size_t sharedMemPerMultiprocessor;
    int regsPerMultiprocessor, managedMemory, isMultiGpuBoard, multiGpuBoardGroupID, hostNativeAtomicSupported,
        pageableMemoryAccess, concurrentManagedAccess, computePreemptionSupported, canUseHostPointerForRegisteredMem,
        cooperativeLaunch;
    size_t sharedMemPerBlockOptin;
    int pageableMemoryAccessUsesHostPageTables, directManagedMemAccessFromHost, maxBlocksPerMultiProcessor,
        accessPolicyMaxWindowSize;
    size_t reservedSharedMemPerBlock;
    int hostRegisterSupported, sparseCudaArraySupported, hostRegisterReadOnlySupported,
        timelineSemaphoreInteropSupported, memoryPoolsSupported, gpuDirectRDMASupported;
    unsigned gpuDirectRDMAFlushWritesOptions;
    int gpuDirectRDMAWritesOrdering;
    unsigned memoryPoolSupportedHandleTypes;
    int deferredMappingCudaArraySupported, ipcEventSupported, clusterLaunch, unifiedFunctionPointers, deviceNumaConfig,
        deviceNumaId, mpsEnabled, hostNumaId;
    unsigned gpuPciDeviceID, gpuPciSubsystemID;
    int hostNumaMultinodeIpcSupported, reserved[56];
} cudaDeviceProp;

#define X(type, bytes) _Static_assert(sizeof(type) == (bytes), #type ": as in cuda_runtime_api.h");
CUDA_RUNTIME_SIZES(X)
#undef X
#define X(type, field, offset) _Static_assert(offsetof(type, field) == (offset), #field ": as in cuda_runtime_api.h");
CUDA_RUNTIME_OFFSETS(X)
#undef X

/* Declares an exported function and begins its definition. */
#define API(name, parameters) \
    CUDASIM_EXPORT cudaError_t name parameters; \
    cudaError_t name parameters

#endif
