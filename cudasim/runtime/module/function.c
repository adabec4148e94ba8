/* Kernels: handles, attributes, occupancy. */
#include "launch.h"
#include "registry.h"

#include <string.h>

static CUresult function_by_symbol(cudaFunction_t *function, const void *symbol)
{
    CUfunction found;
    const CUresult result = registry_function(symbol, &found);
    if (result == CUDA_SUCCESS && cuKernelGetFunction(function, (CUkernel)(void *)found) != CUDA_SUCCESS)
        *function = found;
    return result;
}

API(cudaGetFuncBySymbol, (cudaFunction_t * function, const void *symbol))
{
    if (function == NULL) return runtime_fail(cudaErrorInvalidValue);
    return IN_CONTEXT(function_by_symbol(function, symbol));
}

static CUresult kernel_by_symbol(cudaKernel_t *kernel, const void *symbol)
{
    CUfunction found = NULL;
    const CUresult result = registry_function(symbol, &found);
    *kernel = result == CUDA_SUCCESS ? (cudaKernel_t)(void *)found : NULL;
    return result;
}

API(cudaGetKernel, (cudaKernel_t * kernel, const void *symbol))
{
    if (kernel == NULL) return runtime_fail(cudaErrorInvalidValue);
    return IN_CONTEXT(kernel_by_symbol(kernel, symbol));
}

/* For nvcc's host code, when a kernel is first launched. */
API(__cudaGetKernel, (cudaKernel_t * kernel, const void *symbol)) { return cudaGetKernel(kernel, symbol); }

static CUresult name_of(const char **name, const void *symbol)
{
    CUfunction function;
    CUresult result = registry_function(symbol, &function);
    if (result == CUDA_SUCCESS && cuKernelGetName(name, (CUkernel)(void *)function) != CUDA_SUCCESS)
        result = cuFuncGetName(name, function);
    return result;
}

API(cudaFuncGetName, (const char **name, const void *symbol))
{
    if (name == NULL) return runtime_fail(cudaErrorInvalidValue);
    return IN_CONTEXT(name_of(name, symbol));
}

static CUresult parameter_of(const void *symbol, size_t index, size_t *offset, size_t *bytes)
{
    CUfunction function;
    const CUresult result = registry_function(symbol, &function);
    return result == CUDA_SUCCESS ? cuFuncGetParamInfo(function, index, offset, bytes) : result;
}

API(cudaFuncGetParamInfo, (const void *symbol, size_t index, size_t *offset, size_t *bytes))
{
    return IN_CONTEXT(parameter_of(symbol, index, offset, bytes));
}

/* ---- attributes ---- */

static CUresult read_attributes(cudaFuncAttributes *a, const void *symbol)
{
    CUfunction function;
    int shared = 0, constant = 0, local = 0;
    const struct { CUfunction_attribute id; int *to; } row[] = {
        { CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, &shared },
        { CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES, &constant },
        { CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, &local },
        { CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &a->maxThreadsPerBlock },
        { CU_FUNC_ATTRIBUTE_NUM_REGS, &a->numRegs },
        { CU_FUNC_ATTRIBUTE_PTX_VERSION, &a->ptxVersion },
        { CU_FUNC_ATTRIBUTE_BINARY_VERSION, &a->binaryVersion },
        { CU_FUNC_ATTRIBUTE_CACHE_MODE_CA, &a->cacheModeCA },
        { CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, &a->maxDynamicSharedSizeBytes },
        { CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, &a->preferredShmemCarveout },
        { CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET, &a->clusterDimMustBeSet },
        { CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, &a->requiredClusterWidth },
        { CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT, &a->requiredClusterHeight },
        { CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH, &a->requiredClusterDepth },
        { CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE, &a->clusterSchedulingPolicyPreference },
        { CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, &a->nonPortableClusterSizeAllowed },
    };
    CUresult result = registry_function(symbol, &function);
    memset(a, 0, sizeof *a);
    for (size_t i = 0; result == CUDA_SUCCESS && i < sizeof row / sizeof *row; i++)
        result = cuFuncGetAttribute(row[i].to, row[i].id, function);
    a->sharedSizeBytes = (size_t)shared, a->constSizeBytes = (size_t)constant, a->localSizeBytes = (size_t)local;
    return result;
}

API(cudaFuncGetAttributes, (cudaFuncAttributes * attributes, const void *symbol))
{
    if (attributes == NULL) return runtime_fail(cudaErrorInvalidValue);
    return IN_CONTEXT(read_attributes(attributes, symbol));
}

/* A kernel's settings hold in all contexts. */
static CUresult set_attribute(const void *symbol, int attribute, int value, int device)
{
    CUfunction function;
    const CUresult result = registry_function(symbol, &function);
    if (result != CUDA_SUCCESS) return result;
    const CUresult set =
        cuKernelSetAttribute((CUfunction_attribute)attribute, value, (CUkernel)(void *)function, device);
    return set != CUDA_ERROR_INVALID_HANDLE ? set
                                            : cuFuncSetAttribute(function, (CUfunction_attribute)attribute, value);
}

API(cudaFuncSetAttribute, (const void *symbol, int attribute, int value))
{
    return IN_CONTEXT(set_attribute(symbol, attribute, value, runtime_device()));
}

API(cudaKernelSetAttributeForDevice, (cudaKernel_t kernel, int attribute, int value, int device))
{
    return IN_CONTEXT(cuKernelSetAttribute((CUfunction_attribute)attribute, value, kernel, device));
}

static CUresult set_config(const void *symbol, int config, CUresult (*set)(CUfunction, int))
{
    CUfunction function;
    const CUresult result = registry_function(symbol, &function);
    return result == CUDA_SUCCESS ? set(function, config) : result;
}

API(cudaFuncSetCacheConfig, (const void *symbol, int config))
{
    return IN_CONTEXT(set_config(symbol, config, cuFuncSetCacheConfig));
}

API(cudaFuncSetSharedMemConfig, (const void *symbol, int config))
{
    return IN_CONTEXT(set_config(symbol, config, cuFuncSetSharedMemConfig));
}

/* ---- occupancy ---- */

static CUresult active_blocks(int *blocks, const void *symbol, int block_size, size_t dynamic_shared, unsigned flags)
{
    CUfunction function;
    const CUresult result = registry_function(symbol, &function);
    return result == CUDA_SUCCESS ? cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, block_size,
                                                                                         dynamic_shared, flags)
                                  : result;
}

API(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
    (int *blocks, const void *symbol, int block_size, size_t dynamic_shared, unsigned flags))
{
    return IN_CONTEXT(active_blocks(blocks, symbol, block_size, dynamic_shared, flags));
}

API(cudaOccupancyMaxActiveBlocksPerMultiprocessor,
    (int *blocks, const void *symbol, int block_size, size_t dynamic_shared))
{
    return IN_CONTEXT(active_blocks(blocks, symbol, block_size, dynamic_shared, 0));
}

static CUresult free_shared(size_t *bytes, const void *symbol, int blocks, int block_size)
{
    CUfunction function;
    const CUresult result = registry_function(symbol, &function);
    return result == CUDA_SUCCESS ? cuOccupancyAvailableDynamicSMemPerBlock(bytes, function, blocks, block_size)
                                  : result;
}

API(cudaOccupancyAvailableDynamicSMemPerBlock, (size_t * bytes, const void *symbol, int blocks, int block_size))
{
    return IN_CONTEXT(free_shared(bytes, symbol, blocks, block_size));
}

static CUresult of_clusters(int *value, const void *symbol, const cudaLaunchConfig_t *config,
                            CUresult (*ask)(int *, CUfunction, const CUlaunchConfig *))
{
    CUfunction function;
    if (config == NULL) return CUDA_ERROR_INVALID_VALUE;
    const CUlaunchConfig driver_config = launch_config(config);
    const CUresult result = registry_function(symbol, &function);
    return result == CUDA_SUCCESS ? ask(value, function, &driver_config) : result;
}

API(cudaOccupancyMaxActiveClusters, (int *clusters, const void *symbol, const cudaLaunchConfig_t *config))
{
    return IN_CONTEXT(of_clusters(clusters, symbol, config, cuOccupancyMaxActiveClusters));
}

API(cudaOccupancyMaxPotentialClusterSize, (int *size, const void *symbol, const cudaLaunchConfig_t *config))
{
    return IN_CONTEXT(of_clusters(size, symbol, config, cuOccupancyMaxPotentialClusterSize));
}
