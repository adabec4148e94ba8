/* Occupancy: how many blocks the device's limits let an SM hold. */
#include "driver/module.h"

typedef size_t CUoccupancyB2DSize(int block_size);

CUDASIM_EXPORT CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function, int block_size, size_t dynamic_shared);
CUDASIM_EXPORT CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, CUfunction function, int block_size,
                                                                             size_t dynamic_shared, unsigned flags);
CUDASIM_EXPORT CUresult cuOccupancyMaxPotentialBlockSize(int *grid_size, int *block_size, CUfunction function, CUoccupancyB2DSize *shared_of,
                                                         size_t dynamic_shared, int limit);
CUDASIM_EXPORT CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int *grid_size, int *block_size, CUfunction function,
                                                                  CUoccupancyB2DSize *shared_of, size_t dynamic_shared, int limit,
                                                                  unsigned flags);
CUDASIM_EXPORT CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, CUfunction function, int blocks, int block_size);
CUDASIM_EXPORT CUresult cuOccupancyMaxPotentialClusterSize(int *cluster_size, CUfunction function, const CUlaunchConfig *config);
CUDASIM_EXPORT CUresult cuOccupancyMaxActiveClusters(int *clusters, CUfunction function, const CUlaunchConfig *config);

enum { REGISTERS_PER_WARP_UNIT = 256 };

/* Registers of a thread: .maxnreg, or what the launch bounds leave; the simulator allocates none. */
static uint32_t registers_of(const struct function *f)
{
    const struct dimensions *most = f->reqntid.given ? &f->reqntid : &f->maxntid;
    if (f->maxnreg != 0) return f->maxnreg;
    if (!most->given) return 32;
    const uint64_t threads = (uint64_t)most->x * most->y * most->z * (f->minnctapersm != 0 ? f->minnctapersm : 1);
    const uint64_t fit = driver.device->registers_per_sm / (threads == 0 ? 1 : threads) / 8 * 8;
    return fit > 255 ? 255 : fit < 24 ? 24 : (uint32_t)fit;
}

static uint32_t least(uint32_t a, uint64_t b) { return a < b ? a : (uint32_t)b; }

static uint32_t active_blocks(const struct CUfunc_st *function, uint32_t threads, uint64_t dynamic_shared)
{
    const struct device_limits *d = driver.device;
    const struct function *f = function->function;
    const uint64_t shared = f->static_shared_bytes + dynamic_shared + d->shared_reserved;
    const uint32_t warps = (threads + LANES - 1) / LANES;
    if (threads == 0 || threads > d->threads_per_block || f->static_shared_bytes + dynamic_shared > d->shared_per_block_optin) return 0;
    const uint32_t per_warp = (registers_of(f) * LANES + REGISTERS_PER_WARP_UNIT - 1) / REGISTERS_PER_WARP_UNIT * REGISTERS_PER_WARP_UNIT;
    uint32_t blocks = least(d->blocks_per_sm, d->threads_per_sm / (warps * LANES));
    blocks = least(blocks, d->shared_per_sm / shared);
    return least(blocks, d->registers_per_sm / ((uint64_t)per_warp * warps));
}

static CUresult begin(struct CUctx_st **context, struct CUfunc_st **function)
{
    const CUresult result = driver_enter_context(context);
    return result == CUDA_SUCCESS && !function_lives(*context, function) ? CUDA_ERROR_INVALID_HANDLE : result;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, CUfunction function, int block_size, size_t dynamic_shared,
                                                              unsigned flags)
{
    struct CUctx_st *context;
    CUresult result = begin(&context, &function);
    if (result == CUDA_SUCCESS && (blocks == NULL || block_size <= 0 || flags > 1)) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) *blocks = (int)active_blocks(function, (uint32_t)block_size, dynamic_shared);
    return driver_leave(result);
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function, int block_size, size_t dynamic_shared)
{
    return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, block_size, dynamic_shared, 0);
}

/* The block size with the most threads in an SM; of several the largest. */
CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int *grid_size, int *block_size, CUfunction function, CUoccupancyB2DSize *shared_of,
                                                   size_t dynamic_shared, int limit, unsigned flags)
{
    struct CUctx_st *context;
    CUresult result = begin(&context, &function);
    if (result == CUDA_SUCCESS && (grid_size == NULL || block_size == NULL || limit < 0 || flags > 1)) result = CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS) return driver_leave(result);
    const struct dimensions *most = function->function->reqntid.given ? &function->function->reqntid : &function->function->maxntid;
    uint32_t largest = most->given ? most->x * most->y * most->z : driver.device->threads_per_block;
    if (limit != 0 && (uint32_t)limit < largest) largest = (uint32_t)limit;
    uint32_t best = 0;
    for (uint32_t threads = (largest + LANES - 1) / LANES * LANES; threads != 0; threads -= LANES) {
        const uint32_t size = threads < largest ? threads : largest;
        const uint32_t blocks = active_blocks(function, size, shared_of != NULL ? shared_of((int)size) : dynamic_shared);
        if (blocks * size <= best) continue;
        best = blocks * size;
        *block_size = (int)size;
        *grid_size = (int)(blocks * driver.options.sms);
    }
    return driver_leave(best == 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS);
}

CUresult cuOccupancyMaxPotentialBlockSize(int *grid_size, int *block_size, CUfunction function, CUoccupancyB2DSize *shared_of,
                                          size_t dynamic_shared, int limit)
{
    return cuOccupancyMaxPotentialBlockSizeWithFlags(grid_size, block_size, function, shared_of, dynamic_shared, limit, 0);
}

CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, CUfunction function, int blocks, int block_size)
{
    struct CUctx_st *context;
    CUresult result = begin(&context, &function);
    if (result == CUDA_SUCCESS && (bytes == NULL || blocks <= 0 || block_size <= 0)) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) {
        const struct device_limits *d = driver.device;
        const uint64_t taken = function->function->static_shared_bytes + d->shared_reserved, share = d->shared_per_sm / (uint32_t)blocks;
        const uint64_t most = d->shared_per_block_optin - function->function->static_shared_bytes;
        if (active_blocks(function, (uint32_t)block_size, 0) < (uint32_t)blocks || share < taken) result = CUDA_ERROR_INVALID_VALUE;
        else *bytes = share - taken < most ? share - taken : most;
    }
    return driver_leave(result);
}

static uint32_t cluster_of(const struct function *f, const CUlaunchConfig *config)
{
    for (unsigned i = 0; i < config->numAttrs; i++)
        if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
            return config->attrs[i].value.clusterDim.x * config->attrs[i].value.clusterDim.y * config->attrs[i].value.clusterDim.z;
    const struct dimensions *c = &f->reqnctapercluster;
    return c->given ? c->x * c->y * c->z : 1;
}

static uint32_t resident(const struct CUfunc_st *function, const CUlaunchConfig *config)
{
    return driver.options.sms * active_blocks(function, config->blockDimX * config->blockDimY * config->blockDimZ, config->sharedMemBytes);
}

CUresult cuOccupancyMaxPotentialClusterSize(int *cluster_size, CUfunction function, const CUlaunchConfig *config)
{
    struct CUctx_st *context;
    CUresult result = begin(&context, &function);
    if (result == CUDA_SUCCESS && (cluster_size == NULL || config == NULL)) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) {
        uint32_t size = function->non_portable_cluster ? driver.device->cluster_max : driver.device->cluster_portable;
        while (size > 1 && size > resident(function, config)) size /= 2;
        *cluster_size = (int)size;
    }
    return driver_leave(result);
}

CUresult cuOccupancyMaxActiveClusters(int *clusters, CUfunction function, const CUlaunchConfig *config)
{
    struct CUctx_st *context;
    CUresult result = begin(&context, &function);
    if (result == CUDA_SUCCESS && (clusters == NULL || config == NULL || (config->numAttrs != 0 && config->attrs == NULL)))
        result = CUDA_ERROR_INVALID_VALUE;
    const uint32_t size = result == CUDA_SUCCESS ? cluster_of(function->function, config) : 0;
    const uint32_t most = result != CUDA_SUCCESS ? 0 : function->non_portable_cluster ? driver.device->cluster_max : driver.device->cluster_portable;
    if (result == CUDA_SUCCESS && (size == 0 || size > most)) result = CUDA_ERROR_INVALID_CLUSTER_SIZE;
    if (result == CUDA_SUCCESS) *clusters = (int)(resident(function, config) / size);
    return driver_leave(result);
}
