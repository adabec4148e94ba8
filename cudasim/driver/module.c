/* Modules of a context: loading, functions and globals in them. */
#include <stdlib.h>

#include "driver/capture.h"
#include "driver/fatbin.h"
#include "driver/module.h"

CUDASIM_EXPORT CUresult cuModuleLoadData(CUmodule *module, const void *image);
CUDASIM_EXPORT CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned count, CUjit_option *options,
                                           void **values);
CUDASIM_EXPORT CUresult cuModuleLoad(CUmodule *module, const char *file);
CUDASIM_EXPORT CUresult cuModuleLoadFatBinary(CUmodule *module, const void *fatbin);
CUDASIM_EXPORT CUresult cuModuleUnload(CUmodule module);
CUDASIM_EXPORT CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name);
CUDASIM_EXPORT CUresult cuModuleGetGlobal_v2(CUdeviceptr *pointer, size_t *bytes, CUmodule module, const char *name);
CUDASIM_EXPORT CUresult cuModuleGetFunctionCount(unsigned *count, CUmodule module);
CUDASIM_EXPORT CUresult cuModuleEnumerateFunctions(CUfunction *functions, unsigned count, CUmodule module);
CUDASIM_EXPORT CUresult cuModuleGetLoadingMode(int *mode);

CUresult module_load(struct CUctx_st *context, CUmodule *result, const void *image, const struct jit_log *log)
{
    struct CUmod_st *m = calloc(1, sizeof *m);
    if (m == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    const CUresult read = image_read(image, log, &m->module);
    if (read != CUDA_SUCCESS) {
        free(m);
        return read;
    }
    m->context = context;
    m->function = calloc(m->module->function_count + 1, sizeof *m->function);
    if (m->function == NULL || !image_open(&m->image, &context->machine, m->module)) {
        ptx_release(m->module);
        free(m->function), free(m);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    for (uint32_t i = 0; i < m->module->function_count; i++)
        m->function[i] = (struct CUfunc_st){ .module = m, .function = m->module->functions[i] };
    m->next = context->modules;
    context->modules = m;
    *result = m;
    return CUDA_SUCCESS;
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned count, CUjit_option *options, void **values)
{
    struct CUctx_st *context;
    CUresult result = driver_enter_context(&context);
    if (result == CUDA_SUCCESS && (module == NULL || image == NULL || (count != 0 && (options == NULL || values == NULL))))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) {
        const struct jit_log log = jit_error_log(count, options, values);
        result = module_load(context, module, image, &log);
    }
    return driver_leave(result);
}

CUresult cuModuleLoadData(CUmodule *module, const void *image) { return cuModuleLoadDataEx(module, image, 0, NULL, NULL); }

CUresult cuModuleLoadFatBinary(CUmodule *module, const void *fatbin)
{
    if (fatbin != NULL && image_kind(fatbin) != IMAGE_FATBIN) return CUDA_ERROR_INVALID_IMAGE;
    return cuModuleLoadDataEx(module, fatbin, 0, NULL, NULL);
}

CUresult cuModuleLoad(CUmodule *module, const char *file)
{
    if (file == NULL) return CUDA_ERROR_INVALID_VALUE;
    char *text = image_read_file(file);
    if (text == NULL) return CUDA_ERROR_FILE_NOT_FOUND;
    const CUresult result = cuModuleLoadData(module, text);
    free(text);
    return result;
}

void module_close(struct CUctx_st *context, struct CUmod_st *module)
{
    image_close(&module->image, &context->machine);
    ptx_release(module->module);
    free(module->function);
    free(module);
}

static struct CUmod_st **find(struct CUctx_st *context, const struct CUmod_st *module)
{
    struct CUmod_st **link = &context->modules;
    while (*link != NULL && *link != module) link = &(*link)->next;
    return link;
}

CUresult cuModuleUnload(CUmodule module)
{
    struct CUctx_st *context;
    CUresult result = driver_enter_context(&context);
    struct CUmod_st **link = result == CUDA_SUCCESS ? find(context, module) : NULL;
    if (result == CUDA_SUCCESS && *link == NULL) result = CUDA_ERROR_INVALID_HANDLE;
    if (result == CUDA_SUCCESS) {
        *link = module->next;
        module_close(context, module);
    }
    return driver_leave(result);
}

CUresult module_function(struct CUmod_st *module, const char *name, CUfunction *function)
{
    const struct function *f = ptx_function(module->module, name);
    if (f == NULL || !f->entry || !f->defined) return CUDA_ERROR_NOT_FOUND;
    *function = &module->function[f->index];
    return CUDA_SUCCESS;
}

CUresult module_global(const struct CUmod_st *module, const char *name, CUdeviceptr *pointer, size_t *bytes)
{
    const struct variable *v = ptx_variable(module->module, name);
    if (v == NULL || v->space == SPACE_SHARED) return CUDA_ERROR_NOT_FOUND;
    if (pointer != NULL) *pointer = module->image.address[v->index];
    if (bytes != NULL) *bytes = v->bytes;
    return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    struct CUctx_st *context;
    CUresult result = driver_enter_context(&context);
    if (result == CUDA_SUCCESS && (function == NULL || name == NULL)) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS && *find(context, module) == NULL) result = CUDA_ERROR_INVALID_HANDLE;
    if (result == CUDA_SUCCESS) result = module_function(module, name, function);
    return driver_leave(result);
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr *pointer, size_t *bytes, CUmodule module, const char *name)
{
    struct CUctx_st *context;
    CUresult result = driver_enter_context(&context);
    if (result == CUDA_SUCCESS && (name == NULL || (pointer == NULL && bytes == NULL))) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS && *find(context, module) == NULL) result = CUDA_ERROR_INVALID_HANDLE;
    if (result == CUDA_SUCCESS) result = module_global(module, name, pointer, bytes);
    return driver_leave(result);
}

static bool is_kernel(const struct CUfunc_st *f) { return f->function->entry && f->function->defined; }

CUresult cuModuleGetFunctionCount(unsigned *count, CUmodule module)
{
    struct CUctx_st *context;
    CUresult result = driver_enter_context(&context);
    if (result == CUDA_SUCCESS && count == NULL) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS && *find(context, module) == NULL) result = CUDA_ERROR_INVALID_HANDLE;
    if (result == CUDA_SUCCESS) *count = 0;
    for (uint32_t i = 0; result == CUDA_SUCCESS && i < module->module->function_count; i++) *count += is_kernel(&module->function[i]);
    return driver_leave(result);
}

CUresult cuModuleEnumerateFunctions(CUfunction *functions, unsigned count, CUmodule module)
{
    struct CUctx_st *context;
    CUresult result = driver_enter_context(&context);
    unsigned found = 0;
    if (result == CUDA_SUCCESS && functions == NULL) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS && *find(context, module) == NULL) result = CUDA_ERROR_INVALID_HANDLE;
    for (uint32_t i = 0; result == CUDA_SUCCESS && i < module->module->function_count; i++)
        if (is_kernel(&module->function[i]) && found < count) functions[found++] = &module->function[i];
    return driver_leave(result);
}

CUresult cuModuleGetLoadingMode(int *mode)
{
    enum { EAGER = 1 };
    if (mode == NULL) return CUDA_ERROR_INVALID_VALUE;
    *mode = EAGER;
    return CUDA_SUCCESS;
}
