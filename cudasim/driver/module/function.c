/* Functions: attributes, parameters, names. */
#include "driver/core/driver.h"

CUDASIM_EXPORT CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function);
CUDASIM_EXPORT CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value);
CUDASIM_EXPORT CUresult cuFuncSetCacheConfig(CUfunction function, int config);
CUDASIM_EXPORT CUresult cuFuncSetSharedMemConfig(CUfunction function, int config);
CUDASIM_EXPORT CUresult cuFuncGetModule(CUmodule *module, CUfunction function);
CUDASIM_EXPORT CUresult cuFuncGetName(const char **name, CUfunction function);
CUDASIM_EXPORT CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t *offset, size_t *size);
CUDASIM_EXPORT CUresult cuFuncIsLoaded(int *state, CUfunction function);
CUDASIM_EXPORT CUresult cuFuncLoad(CUfunction function);

struct function_settings function_default_settings(void)
{
    return (struct function_settings){ .maximum_dynamic_shared = -1, .carveout = -1 };
}

uint64_t function_dynamic_shared(const struct device_limits *device, const struct function *f,
                                 const struct function_settings *settings)
{
    if (settings->maximum_dynamic_shared >= 0) return (uint64_t)settings->maximum_dynamic_shared;
    return f->static_shared_bytes < device->shared_per_block ? device->shared_per_block - f->static_shared_bytes : 0;
}

const struct device_limits *function_device(const struct CUfunc_st *function)
{
    return function->module->context->machine.device;
}

/* ptxas gives out registers, and there is none here: .maxnreg where a kernel has one, otherwise so few that they limit
 * nothing. */
uint32_t function_registers(const struct function *f)
{
    enum { ANY_NUMBER = 32 };
    return f->maxnreg != 0 ? f->maxnreg : ANY_NUMBER;
}

static uint32_t most_threads(const struct device_limits *device, const struct function *f)
{
    const struct dimensions *most = f->reqntid.given ? &f->reqntid : &f->maxntid;
    const uint64_t threads = most->given ? (uint64_t)most->x * most->y * most->z : device->threads_per_block;
    return threads < device->threads_per_block ? (uint32_t)threads : device->threads_per_block;
}

CUresult function_attribute(int *value, int attribute, const struct device_limits *device, const struct module *module,
                            const struct function *f, const struct function_settings *settings)
{
    const struct dimensions *fixed = &f->reqnctapercluster;
    switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = (int)most_threads(device, f); break;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: *value = (int)f->static_shared_bytes; break;
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES: case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA: *value = 0; break;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES: *value = (int)f->local_bytes; break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS: *value = (int)function_registers(f); break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION: *value = (int)module->sm; break;
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION: *value = (int)device->sm; break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        *value = (int)function_dynamic_shared(device, f, settings);
        break;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: *value = settings->carveout; break;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET: *value = f->explicitcluster && !fixed->given; break;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH: *value = fixed->given ? (int)fixed->x : settings->cluster[0]; break;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT: *value = fixed->given ? (int)fixed->y : settings->cluster[1]; break;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH: *value = fixed->given ? (int)fixed->z : settings->cluster[2]; break;
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED: *value = settings->non_portable_cluster; break;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE: *value = settings->cluster_policy; break;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

static CUresult set_within(int *field, int value, int64_t low, int64_t high)
{
    if (value < low || value > high) return CUDA_ERROR_INVALID_VALUE;
    *field = value;
    return CUDA_SUCCESS;
}

/* A cluster that the kernel's text fixes cannot be set to another. */
static CUresult set_cluster(struct function_settings *settings, const struct dimensions *fixed, int axis, int value)
{
    const uint32_t extent[3] = { fixed->x, fixed->y, fixed->z };
    if (fixed->given && value != (int)extent[axis]) return CUDA_ERROR_INVALID_VALUE;
    return set_within(&settings->cluster[axis], value, 0, INT32_MAX);
}

CUresult function_set_attribute(struct function_settings *settings, const struct device_limits *device,
                                const struct function *f, int attribute, int value)
{
    const int64_t room = (int64_t)device->shared_per_block_optin - (int64_t)f->static_shared_bytes;
    switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        return set_within(&settings->maximum_dynamic_shared, value, 0, room);
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: return set_within(&settings->carveout, value, -1, 100);
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        return set_within(&settings->cluster_policy, value, 0, 2);
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH: case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
        return set_cluster(settings, &f->reqnctapercluster, attribute - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH,
                           value);
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
        settings->non_portable_cluster = value != 0;
        return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
}

/* Enters with a context and one of its functions. */
static CUresult begin(CUfunction handle, bool pointers, struct CUfunc_st **function)
{
    struct CUctx_st *context;
    const CUresult result = driver_enter_context(&context);
    if (result != CUDA_SUCCESS) return result;
    *function = function_find(context, handle);
    if (*function == NULL) return CUDA_ERROR_INVALID_HANDLE;
    return pointers ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction handle)
{
    struct CUfunc_st *f;
    CUresult result = begin(handle, value != NULL, &f);
    if (result == CUDA_SUCCESS)
        result = function_attribute(value, (int)attribute, function_device(f), f->module->module, f->function,
                                    &f->settings);
    return driver_leave(result);
}

CUresult cuFuncSetAttribute(CUfunction handle, CUfunction_attribute attribute, int value)
{
    struct CUfunc_st *f;
    CUresult result = begin(handle, true, &f);
    if (result == CUDA_SUCCESS)
        result = function_set_attribute(&f->settings, function_device(f), f->function, (int)attribute, value);
    return driver_leave(result);
}

/* Preferences of caches and banks change nothing here. */
CUresult cuFuncSetCacheConfig(CUfunction handle, int config)
{
    struct CUfunc_st *f;
    return driver_leave(begin(handle, config >= 0 && config <= 3, &f));
}

CUresult cuFuncSetSharedMemConfig(CUfunction handle, int config)
{
    struct CUfunc_st *f;
    return driver_leave(begin(handle, config >= 0 && config <= 2, &f));
}

CUresult cuFuncGetModule(CUmodule *module, CUfunction handle)
{
    struct CUfunc_st *f;
    const CUresult result = begin(handle, module != NULL, &f);
    if (result == CUDA_SUCCESS) *module = f->module;
    return driver_leave(result);
}

CUresult cuFuncGetName(const char **name, CUfunction handle)
{
    struct CUfunc_st *f;
    const CUresult result = begin(handle, name != NULL, &f);
    if (result == CUDA_SUCCESS) *name = f->function->name;
    return driver_leave(result);
}

CUresult cuFuncGetParamInfo(CUfunction handle, size_t index, size_t *offset, size_t *size)
{
    struct CUfunc_st *f;
    CUresult result = begin(handle, offset != NULL, &f);
    if (result == CUDA_SUCCESS && index >= f->function->parameter_count) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) *offset = f->function->parameters[index]->offset;
    if (result == CUDA_SUCCESS && size != NULL) *size = f->function->parameters[index]->bytes;
    return driver_leave(result);
}

CUresult cuFuncIsLoaded(int *state, CUfunction handle)
{
    enum { LOADED = 1 };
    struct CUfunc_st *f;
    const CUresult result = begin(handle, state != NULL, &f);
    if (result == CUDA_SUCCESS) *state = LOADED;
    return driver_leave(result);
}

CUresult cuFuncLoad(CUfunction handle)
{
    struct CUfunc_st *f;
    return driver_leave(begin(handle, true, &f));
}
