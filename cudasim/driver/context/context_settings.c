/* What a context can be told: flags, limits, preferences. */
#include "driver/graph/capture.h"

CUDASIM_EXPORT CUresult cuCtxGetFlags(unsigned *flags);
CUDASIM_EXPORT CUresult cuCtxSetFlags(unsigned flags);
CUDASIM_EXPORT CUresult cuCtxGetId(CUcontext context, unsigned long long *id);
CUDASIM_EXPORT CUresult cuCtxGetApiVersion(CUcontext context, unsigned *version);
CUDASIM_EXPORT CUresult cuCtxGetLimit(size_t *value, int limit);
CUDASIM_EXPORT CUresult cuCtxSetLimit(int limit, size_t value);
CUDASIM_EXPORT CUresult cuCtxGetCacheConfig(int *config);
CUDASIM_EXPORT CUresult cuCtxSetCacheConfig(int config);
CUDASIM_EXPORT CUresult cuCtxGetSharedMemConfig(int *config);
CUDASIM_EXPORT CUresult cuCtxSetSharedMemConfig(int config);
CUDASIM_EXPORT CUresult cuCtxResetPersistingL2Cache(void);

enum { SCHEDULING_FLAGS = 7, BLOCKING_SYNC = 4, ALL_FLAGS = 0xff };

/* At most one way of waiting. */
bool context_flags_valid(unsigned flags)
{
    const unsigned way = flags & SCHEDULING_FLAGS;
    return (flags & ~(unsigned)ALL_FLAGS) == 0 && (way & (way - 1)) == 0;
}

static CUresult begin(struct CUctx_st **context, bool arguments)
{
    const CUresult result = driver_enter_context(context);
    return result == CUDA_SUCCESS && !arguments ? CUDA_ERROR_INVALID_VALUE : result;
}

CUresult cuCtxGetFlags(unsigned *flags)
{
    struct CUctx_st *context;
    const CUresult result = begin(&context, flags != NULL);
    if (result == CUDA_SUCCESS) *flags = context->flags;
    return driver_leave(result);
}

CUresult cuCtxSetFlags(unsigned flags)
{
    struct CUctx_st *context;
    const CUresult result = begin(&context, context_flags_valid(flags));
    if (result == CUDA_SUCCESS) context->flags = flags;
    return driver_leave(result);
}

CUresult cuCtxGetId(CUcontext named, unsigned long long *id)
{
    struct CUctx_st *context;
    CUresult result = driver_enter();
    if (result == CUDA_SUCCESS) result = context_or_current(named, &context);
    if (result == CUDA_SUCCESS && id == NULL) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) *id = context->id;
    return driver_leave(result);
}

CUresult cuCtxGetApiVersion(CUcontext named, unsigned *version)
{
    enum { API_VERSION = 3020 };
    struct CUctx_st *context;
    CUresult result = driver_enter();
    if (result == CUDA_SUCCESS) result = context_or_current(named, &context);
    if (result == CUDA_SUCCESS && version == NULL) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) *version = API_VERSION;
    return driver_leave(result);
}

/* Kept, and without effect: a thread's stack is as large as its kernel says, and prints are never lost. */
CUresult cuCtxGetLimit(size_t *value, int limit)
{
    struct CUctx_st *context;
    CUresult result = begin(&context, value != NULL);
    if (result == CUDA_SUCCESS && (limit < 0 || limit > LIMIT_HEAP)) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) *value = context->limit[limit];
    return driver_leave(result);
}

CUresult cuCtxSetLimit(int limit, size_t value)
{
    struct CUctx_st *context;
    CUresult result = begin(&context, true);
    if (result == CUDA_SUCCESS && (limit < 0 || limit > LIMIT_HEAP)) result = CUDA_ERROR_UNSUPPORTED_LIMIT;
    if (result == CUDA_SUCCESS) result = capture_forbids(context);
    if (result == CUDA_SUCCESS) context->limit[limit] = value;
    return driver_leave(result);
}

CUresult cuCtxGetCacheConfig(int *config)
{
    struct CUctx_st *context;
    const CUresult result = begin(&context, config != NULL);
    if (result == CUDA_SUCCESS) *config = 0;
    return driver_leave(result);
}

CUresult cuCtxSetCacheConfig(int config)
{
    struct CUctx_st *context;
    return driver_leave(begin(&context, config >= 0 && config <= 3));
}

CUresult cuCtxGetSharedMemConfig(int *config)
{
    enum { FOUR_BYTE_BANKS = 1 };
    struct CUctx_st *context;
    const CUresult result = begin(&context, config != NULL);
    if (result == CUDA_SUCCESS) *config = FOUR_BYTE_BANKS;
    return driver_leave(result);
}

CUresult cuCtxSetSharedMemConfig(int config)
{
    struct CUctx_st *context;
    return driver_leave(begin(&context, config >= 0 && config <= 2));
}

CUresult cuCtxResetPersistingL2Cache(void)
{
    struct CUctx_st *context;
    return driver_leave(begin(&context, true));
}
