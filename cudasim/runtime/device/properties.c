/* What a device is: cudaDeviceProp, from the driver's attributes. */
#include "runtime/core/runtime.h"

#include <string.h>

static int value(CUdevice_attribute attribute, int device)
{
    int v = 0;
    return cuDeviceGetAttribute(&v, attribute, device) == CUDA_SUCCESS ? v : 0;
}
static size_t bytes(CUdevice_attribute attribute, int device) { return (size_t)value(attribute, device); }

#define INT(attribute) value(CU_DEVICE_ATTRIBUTE_##attribute, device)
#define BYTES(attribute) bytes(CU_DEVICE_ATTRIBUTE_##attribute, device)

static void limits(cudaDeviceProp *p, int device)
{
    p->major = INT(COMPUTE_CAPABILITY_MAJOR), p->minor = INT(COMPUTE_CAPABILITY_MINOR);
    p->multiProcessorCount = INT(MULTIPROCESSOR_COUNT);
    p->warpSize = INT(WARP_SIZE);
    p->maxThreadsPerBlock = INT(MAX_THREADS_PER_BLOCK);
    p->maxThreadsDim[0] = INT(MAX_BLOCK_DIM_X);
    p->maxThreadsDim[1] = INT(MAX_BLOCK_DIM_Y);
    p->maxThreadsDim[2] = INT(MAX_BLOCK_DIM_Z);
    p->maxGridSize[0] = INT(MAX_GRID_DIM_X);
    p->maxGridSize[1] = INT(MAX_GRID_DIM_Y);
    p->maxGridSize[2] = INT(MAX_GRID_DIM_Z);
    p->maxThreadsPerMultiProcessor = INT(MAX_THREADS_PER_MULTIPROCESSOR);
    p->maxBlocksPerMultiProcessor = INT(MAX_BLOCKS_PER_MULTIPROCESSOR);
    p->regsPerBlock = INT(MAX_REGISTERS_PER_BLOCK);
    p->regsPerMultiprocessor = INT(MAX_REGISTERS_PER_MULTIPROCESSOR);
    p->sharedMemPerBlock = BYTES(MAX_SHARED_MEMORY_PER_BLOCK);
    p->sharedMemPerBlockOptin = BYTES(MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
    p->sharedMemPerMultiprocessor = BYTES(MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
    p->reservedSharedMemPerBlock = BYTES(RESERVED_SHARED_MEMORY_PER_BLOCK);
    p->totalConstMem = BYTES(TOTAL_CONSTANT_MEMORY);
    p->memPitch = BYTES(MAX_PITCH);
    p->textureAlignment = BYTES(TEXTURE_ALIGNMENT);
    p->texturePitchAlignment = BYTES(TEXTURE_PITCH_ALIGNMENT);
    p->surfaceAlignment = BYTES(SURFACE_ALIGNMENT);
    p->memoryBusWidth = INT(GLOBAL_MEMORY_BUS_WIDTH);
    p->l2CacheSize = INT(L2_CACHE_SIZE);
    p->persistingL2CacheMaxSize = INT(MAX_PERSISTING_L2_CACHE_SIZE);
    p->accessPolicyMaxWindowSize = INT(MAX_ACCESS_POLICY_WINDOW_SIZE);
}

static void abilities(cudaDeviceProp *p, int device)
{
    p->integrated = INT(INTEGRATED);
    p->canMapHostMemory = INT(CAN_MAP_HOST_MEMORY);
    p->concurrentKernels = INT(CONCURRENT_KERNELS);
    p->ECCEnabled = INT(ECC_ENABLED);
    p->pciBusID = INT(PCI_BUS_ID), p->pciDeviceID = INT(PCI_DEVICE_ID), p->pciDomainID = INT(PCI_DOMAIN_ID);
    p->tccDriver = INT(TCC_DRIVER);
    p->asyncEngineCount = INT(ASYNC_ENGINE_COUNT);
    p->unifiedAddressing = INT(UNIFIED_ADDRESSING);
    p->streamPrioritiesSupported = INT(STREAM_PRIORITIES_SUPPORTED);
    p->globalL1CacheSupported = INT(GLOBAL_L1_CACHE_SUPPORTED);
    p->localL1CacheSupported = INT(LOCAL_L1_CACHE_SUPPORTED);
    p->managedMemory = INT(MANAGED_MEMORY);
    p->isMultiGpuBoard = INT(MULTI_GPU_BOARD), p->multiGpuBoardGroupID = INT(MULTI_GPU_BOARD_GROUP_ID);
    p->hostNativeAtomicSupported = INT(HOST_NATIVE_ATOMIC_SUPPORTED);
    p->pageableMemoryAccess = INT(PAGEABLE_MEMORY_ACCESS);
    p->pageableMemoryAccessUsesHostPageTables = INT(PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES);
    p->concurrentManagedAccess = INT(CONCURRENT_MANAGED_ACCESS);
    p->directManagedMemAccessFromHost = INT(DIRECT_MANAGED_MEM_ACCESS_FROM_HOST);
    p->computePreemptionSupported = INT(COMPUTE_PREEMPTION_SUPPORTED);
    p->canUseHostPointerForRegisteredMem = INT(CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM);
    p->cooperativeLaunch = INT(COOPERATIVE_LAUNCH);
    p->clusterLaunch = INT(CLUSTER_LAUNCH);
    p->hostRegisterSupported = INT(HOST_REGISTER_SUPPORTED);
    p->hostRegisterReadOnlySupported = INT(READ_ONLY_HOST_REGISTER_SUPPORTED);
    p->memoryPoolsSupported = INT(MEMORY_POOLS_SUPPORTED);
    p->memoryPoolSupportedHandleTypes = (unsigned)INT(MEMPOOL_SUPPORTED_HANDLE_TYPES);
    p->unifiedFunctionPointers = INT(UNIFIED_FUNCTION_POINTERS);
    p->deviceNumaConfig = INT(NUMA_CONFIG), p->deviceNumaId = INT(NUMA_ID), p->hostNumaId = INT(HOST_NUMA_ID);
}

/* What is not set here is 0: textures, other processes and devices' links, which the driver has not. */
static CUresult read_properties(cudaDeviceProp *p, int device)
{
    memset(p, 0, sizeof *p);
    CUresult result = cuDeviceGetName(p->name, sizeof p->name, device);
    if (result == CUDA_SUCCESS) result = cuDeviceGetUuid_v2(&p->uuid, device);
    if (result == CUDA_SUCCESS) result = cuDeviceTotalMem_v2(&p->totalGlobalMem, device);
    if (result == CUDA_SUCCESS) limits(p, device), abilities(p, device);
    return result;
}

API(cudaGetDeviceProperties, (cudaDeviceProp * properties, int device))
{
    if (properties == NULL) return runtime_fail(cudaErrorInvalidValue);
    return WITHOUT_CONTEXT(read_properties(properties, device));
}

/* All devices are of one kind, so that none matches better than the first. */
API(cudaChooseDevice, (int *device, const cudaDeviceProp *properties))
{
    if (device == NULL || properties == NULL) return runtime_fail(cudaErrorInvalidValue);
    *device = 0;
    return WITHOUT_CONTEXT(CUDA_SUCCESS);
}
