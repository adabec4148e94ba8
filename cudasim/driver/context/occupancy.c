/* Occupancy: how many CTAs one SM holds by its threads, its shared memory, its registers and its number of CTAs (CUDA
 * C++ Programming Guide, "Hardware Multithreading" and "Technical Specifications per Compute Capability"). */
#include "driver/core/driver.h"

typedef size_t CUoccupancyB2DSize(int block_size);

CUDASIM_EXPORT CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function, int block_size,
                                                                    size_t dynamic_shared);
CUDASIM_EXPORT CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, CUfunction function,
                                                                             int block_size, size_t dynamic_shared,
                                                                             unsigned flags);
CUDASIM_EXPORT CUresult cuOccupancyMaxPotentialBlockSize(int *grid_size, int *block_size, CUfunction function,
                                                         CUoccupancyB2DSize *dynamic_of, size_t dynamic_shared,
                                                         int limit);
CUDASIM_EXPORT CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int *grid_size, int *block_size, CUfunction function,
                                                                  CUoccupancyB2DSize *dynamic_of, size_t dynamic_shared,
                                                                  int limit, unsigned flags);
CUDASIM_EXPORT CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, CUfunction function, int blocks,
                                                                int block_size);
CUDASIM_EXPORT CUresult cuOccupancyMaxActiveClusters(int *clusters, CUfunction function, const CUlaunchConfig *config);
CUDASIM_EXPORT CUresult cuOccupancyMaxPotentialClusterSize(int *size, CUfunction function,
                                                           const CUlaunchConfig *config);

enum { SHARED_UNIT = 128, REGISTER_UNIT = 256, PARTITIONS = 4 };

static uint64_t round_up(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

/* Registers are given to warps in units, and each quarter of the SM has its own. */
static uint32_t ctas_by_registers(const struct device_limits *d, const struct function *f, uint32_t warps)
{
    const uint64_t per_warp = round_up((uint64_t)function_registers(f) * LANES, REGISTER_UNIT);
    if (per_warp * round_up(warps, PARTITIONS) > d->registers_per_block) return 0;
    return (uint32_t)(d->registers_per_sm / PARTITIONS / per_warp * PARTITIONS / warps);
}

static uint32_t ctas_by_shared(const struct device_limits *d, const struct function *f, uint64_t dynamic_shared)
{
    const uint64_t bytes = f->static_shared_bytes + dynamic_shared;
    if (bytes > d->shared_per_block_optin) return 0;
    return (uint32_t)(d->shared_per_sm / round_up(bytes + d->shared_reserved, SHARED_UNIT));
}

uint32_t occupancy_ctas(const struct device_limits *d, const struct function *f, uint32_t threads,
                        uint64_t dynamic_shared)
{
    const uint32_t warps = (threads + LANES - 1) / LANES;
    const uint64_t most =
        f->maxntid.given ? (uint64_t)f->maxntid.x * f->maxntid.y * f->maxntid.z : d->threads_per_block;
    if (threads == 0 || threads > d->threads_per_block || threads > most) return 0;
    uint32_t ctas = d->blocks_per_sm;
    const uint32_t others[3] = { d->threads_per_sm / LANES / warps, ctas_by_registers(d, f, warps),
                                 ctas_by_shared(d, f, dynamic_shared) };
    for (int i = 0; i < 3; i++)
        if (others[i] < ctas) ctas = others[i];
    return ctas;
}

static CUresult begin(CUfunction handle, bool arguments, struct CUfunc_st **function)
{
    struct CUctx_st *context;
    const CUresult result = driver_enter_context(&context);
    if (result != CUDA_SUCCESS) return result;
    *function = function_find(context, handle);
    if (*function == NULL) return CUDA_ERROR_INVALID_HANDLE;
    return arguments ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, CUfunction handle, int block_size,
                                                              size_t dynamic_shared, unsigned flags)
{
    struct CUfunc_st *f;
    const CUresult result = begin(handle, blocks != NULL && block_size > 0 && flags <= 1, &f);
    if (result == CUDA_SUCCESS)
        *blocks = (int)occupancy_ctas(function_device(f), f->function, (uint32_t)block_size, dynamic_shared);
    return driver_leave(result);
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function, int block_size,
                                                     size_t dynamic_shared)
{
    return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, block_size, dynamic_shared, 0);
}

/* The size of a block with which an SM holds the most threads; of those the largest. */
CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int *grid_size, int *block_size, CUfunction handle,
                                                   CUoccupancyB2DSize *dynamic_of, size_t dynamic_shared, int limit,
                                                   unsigned flags)
{
    struct CUfunc_st *f;
    const CUresult result = begin(handle, grid_size != NULL && block_size != NULL && limit >= 0 && flags <= 1, &f);
    if (result == CUDA_SUCCESS) {
        const struct device_limits *d = function_device(f);
        uint32_t largest = d->threads_per_block, best = 0, best_ctas = 0;
        if (limit != 0 && (uint32_t)limit < largest) largest = (uint32_t)limit;
        for (uint32_t threads = (largest + LANES - 1) / LANES * LANES; threads > 0; threads -= LANES) {
            const uint32_t size = threads < largest ? threads : largest;
            const uint32_t ctas =
                occupancy_ctas(d, f->function, size, dynamic_of != NULL ? dynamic_of((int)size) : dynamic_shared);
            if (ctas * size > best_ctas * best) best = size, best_ctas = ctas;
        }
        *block_size = (int)best;
        *grid_size = (int)(best_ctas * driver.options.sms);
    }
    return driver_leave(result);
}

CUresult cuOccupancyMaxPotentialBlockSize(int *grid_size, int *block_size, CUfunction function,
                                          CUoccupancyB2DSize *dynamic_of, size_t dynamic_shared, int limit)
{
    return cuOccupancyMaxPotentialBlockSizeWithFlags(grid_size, block_size, function, dynamic_of, dynamic_shared, limit,
                                                     0);
}

/* The most dynamic shared memory with which that many CTAs still fit. */
CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, CUfunction handle, int blocks, int block_size)
{
    struct CUfunc_st *f;
    CUresult result = begin(handle, bytes != NULL && blocks > 0 && block_size > 0, &f);
    if (result == CUDA_SUCCESS
        && (uint32_t)blocks > occupancy_ctas(function_device(f), f->function, (uint32_t)block_size, 0))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) {
        const struct device_limits *d = function_device(f);
        const uint64_t each = d->shared_per_sm / (uint32_t)blocks / SHARED_UNIT * SHARED_UNIT - d->shared_reserved;
        const uint64_t most = each < d->shared_per_block_optin ? each : d->shared_per_block_optin;
        *bytes = most - f->function->static_shared_bytes;
    }
    return driver_leave(result);
}

static uint32_t cluster_size(const CUlaunchConfig *config, const struct function *f)
{
    uint64_t size = f->reqnctapercluster.given
                        ? (uint64_t)f->reqnctapercluster.x * f->reqnctapercluster.y * f->reqnctapercluster.z
                        : 1;
    for (unsigned i = 0; i < config->numAttrs; i++)
        if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
            size = (uint64_t)config->attrs[i].value.clusterDim.x * config->attrs[i].value.clusterDim.y *
                   config->attrs[i].value.clusterDim.z;
    return size > UINT32_MAX ? UINT32_MAX : (uint32_t)size;
}

static uint32_t ctas_of_device(const struct CUfunc_st *f, const CUlaunchConfig *config)
{
    const uint64_t threads = (uint64_t)config->blockDimX * config->blockDimY * config->blockDimZ;
    if (threads > 1024) return 0;
    const uint32_t ctas = occupancy_ctas(function_device(f), f->function, (uint32_t)threads, config->sharedMemBytes);
    return ctas * driver.options.sms;
}

static uint32_t most_in_cluster(const struct CUfunc_st *f)
{
    const struct device_limits *d = function_device(f);
    return f->settings.non_portable_cluster ? d->cluster_max : d->cluster_portable;
}

static bool config_valid(const CUlaunchConfig *config)
{
    return config != NULL && (config->numAttrs == 0 || config->attrs != NULL);
}

/* A cluster that is larger than the simulated device runs all the same, one at a time. */
CUresult cuOccupancyMaxActiveClusters(int *clusters, CUfunction handle, const CUlaunchConfig *config)
{
    struct CUfunc_st *f;
    CUresult result = begin(handle, clusters != NULL && config_valid(config), &f);
    const uint32_t size = result == CUDA_SUCCESS ? cluster_size(config, f->function) : 1;
    const uint32_t most = result == CUDA_SUCCESS ? most_in_cluster(f) : 1;
    if (result == CUDA_SUCCESS && (size == 0 || size > most)) result = CUDA_ERROR_INVALID_CLUSTER_SIZE;
    if (result == CUDA_SUCCESS) {
        const uint32_t ctas = ctas_of_device(f, config);
        *clusters = ctas == 0 ? 0 : ctas < size ? 1 : (int)(ctas / size);
    }
    return driver_leave(result);
}

CUresult cuOccupancyMaxPotentialClusterSize(int *size, CUfunction handle, const CUlaunchConfig *config)
{
    struct CUfunc_st *f;
    const CUresult result = begin(handle, size != NULL && config_valid(config), &f);
    if (result == CUDA_SUCCESS) {
        *size = ctas_of_device(f, config) == 0 ? 0 : (int)most_in_cluster(f);
    }
    return driver_leave(result);
}
