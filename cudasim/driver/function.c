/* Kernels: what is known of them and what can be set. */
#include "driver/module.h"

CUDASIM_EXPORT CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function);
CUDASIM_EXPORT CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value);
CUDASIM_EXPORT CUresult cuFuncGetModule(CUmodule *module, CUfunction function);
CUDASIM_EXPORT CUresult cuFuncGetName(const char **name, CUfunction function);
CUDASIM_EXPORT CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t *offset, size_t *bytes);
CUDASIM_EXPORT CUresult cuFuncSetCacheConfig(CUfunction function, int config);
CUDASIM_EXPORT CUresult cuFuncIsLoaded(int *state, CUfunction function);
CUDASIM_EXPORT CUresult cuFuncLoad(CUfunction function);

bool function_lives(const struct CUctx_st *context, struct CUfunc_st **function)
{
    for (const struct CUmod_st *m = context->modules; m != NULL; m = m->next)
        if (*function >= m->function && *function < m->function + m->module->function_count) return true;
    struct CUfunc_st *found = kernel_function((struct CUctx_st *)(uintptr_t)context, *function);
    if (found == NULL) return false;
    *function = found;
    return true;
}

/* Enters with a context in which the function, or the kernel of a library, lives. */
static CUresult begin(struct CUfunc_st **function)
{
    struct CUctx_st *context;
    const CUresult result = driver_enter_context(&context);
    return result == CUDA_SUCCESS && !function_lives(context, function) ? CUDA_ERROR_INVALID_HANDLE : result;
}

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function)
{
    CUresult result = begin(&function);
    if (result == CUDA_SUCCESS && value == NULL) result = CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS) return driver_leave(result);
    const struct function *f = function->function;
    const struct dimensions *most = f->reqntid.given ? &f->reqntid : &f->maxntid;
    switch ((int)attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *value = most->given ? (int)(most->x * most->y * most->z) : (int)driver.device->threads_per_block;
        break;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: *value = (int)f->static_shared_bytes; break;
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES: case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA: *value = 0; break;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES: *value = (int)f->local_bytes; break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS: *value = f->maxnreg != 0 ? (int)f->maxnreg : 128; break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION: *value = (int)function->module->module->sm; break;
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION: *value = (int)driver.device->sm; break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        *value = function->maximum_dynamic_shared != 0 ? function->maximum_dynamic_shared
                                                       : (int)(driver.device->shared_per_block - f->static_shared_bytes);
        break;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: *value = -1; break;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET: *value = f->explicitcluster && !f->reqnctapercluster.given; break;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH: *value = f->reqnctapercluster.given ? (int)f->reqnctapercluster.x : 0; break;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT: *value = f->reqnctapercluster.given ? (int)f->reqnctapercluster.y : 0; break;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH: *value = f->reqnctapercluster.given ? (int)f->reqnctapercluster.z : 0; break;
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED: *value = function->non_portable_cluster; break;
    default: result = CUDA_ERROR_INVALID_VALUE; break;
    }
    return driver_leave(result);
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value)
{
    CUresult result = begin(&function);
    if (result != CUDA_SUCCESS) return driver_leave(result);
    const int64_t room = (int64_t)driver.device->shared_per_block_optin - (int64_t)function->function->static_shared_bytes;
    switch ((int)attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        if (value < 0 || value > room) result = CUDA_ERROR_INVALID_VALUE;
        else function->maximum_dynamic_shared = value;
        break;
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED: function->non_portable_cluster = value != 0; break;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: break;
    default: result = CUDA_ERROR_INVALID_VALUE; break;
    }
    return driver_leave(result);
}

CUresult cuFuncGetModule(CUmodule *module, CUfunction function)
{
    CUresult result = begin(&function);
    if (result == CUDA_SUCCESS && module == NULL) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) *module = function->module;
    return driver_leave(result);
}

CUresult cuFuncGetName(const char **name, CUfunction function)
{
    CUresult result = begin(&function);
    if (result == CUDA_SUCCESS && name == NULL) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) *name = function->function->name;
    return driver_leave(result);
}

CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t *offset, size_t *bytes)
{
    CUresult result = begin(&function);
    if (result == CUDA_SUCCESS && (offset == NULL || index >= function->function->parameter_count)) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) {
        *offset = function->function->parameters[index]->offset;
        if (bytes != NULL) *bytes = function->function->parameters[index]->bytes;
    }
    return driver_leave(result);
}

CUresult cuFuncSetCacheConfig(CUfunction function, int config)
{
    CUresult result = begin(&function);
    if (result == CUDA_SUCCESS && (config < 0 || config > 3)) result = CUDA_ERROR_INVALID_VALUE;
    return driver_leave(result);
}

CUresult cuFuncIsLoaded(int *state, CUfunction function)
{
    CUresult result = begin(&function);
    if (result == CUDA_SUCCESS && state == NULL) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) *state = 1;
    return driver_leave(result);
}

CUresult cuFuncLoad(CUfunction function) { return driver_leave(begin(&function)); }
