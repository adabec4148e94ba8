/* Modules of a context: loading, functions and globals in them. */
#include <stdlib.h>

#include "driver/graph/capture.h"
#include "image/fatbin.h"
#include "machine/run/launch.h"

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

static bool is_kernel(const struct function *f) { return f->entry && f->defined; }

CUresult module_open(struct CUctx_st *context, struct module *module, struct CUlib_st *library, struct CUmod_st **made)
{
    struct CUmod_st *m = calloc(1, sizeof *m);
    struct CUfunc_st *functions = calloc(module->function_count + 1, sizeof *functions);
    if (m == NULL || functions == NULL || !image_open(&m->image, &context->machine, module)) {
        free(functions), free(m);
        if (library == NULL) ptx_release(module);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    m->context = context, m->module = module, m->library = library, m->function = functions;
    m->next = context->modules;
    context->modules = m;
    bool known = handle_add(m, HANDLE_MODULE);
    for (uint32_t i = 0; i < module->function_count; i++) {
        functions[i] = (struct CUfunc_st){ .module = m, .function = module->functions[i],
                                           .settings = function_default_settings() };
        if (is_kernel(module->functions[i])) known = known && handle_add(&functions[i], HANDLE_FUNCTION);
    }
    *made = m;
    if (known) return CUDA_SUCCESS;
    module_close(m);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

void module_close(struct CUmod_st *module)
{
    struct CUmod_st **link = &module->context->modules;
    while (*link != module) link = &(*link)->next;
    *link = module->next;
    for (uint32_t i = 0; i < module->module->function_count; i++) handle_remove(&module->function[i]);
    handle_remove(module);
    image_close(&module->image, &module->context->machine);
    if (module->library == NULL) ptx_release(module->module);
    free(module->function);
    free(module);
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned count, CUjit_option *options, void **values)
{
    struct CUctx_st *context;
    CUresult result = driver_enter_context(&context);
    if (result == CUDA_SUCCESS) result = capture_forbids(context);
    if (result == CUDA_SUCCESS
        && (module == NULL || image == NULL || (count != 0 && (options == NULL || values == NULL))))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) {
        const struct log log = log_of(count, options, values);
        struct module *read;
        result = module_read(image, context->machine.device, &log, &read);
        if (result == CUDA_SUCCESS) result = module_open(context, read, NULL, module);
        log_end(&log, count, options, values);
    }
    return driver_leave(result);
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    return cuModuleLoadDataEx(module, image, 0, NULL, NULL);
}

CUresult cuModuleLoadFatBinary(CUmodule *module, const void *fatbin)
{
    if (fatbin != NULL && image_kind(fatbin) != IMAGE_FATBIN) return CUDA_ERROR_INVALID_IMAGE;
    return cuModuleLoadDataEx(module, fatbin, 0, NULL, NULL);
}

CUresult cuModuleLoad(CUmodule *module, const char *file)
{
    if (file == NULL) return CUDA_ERROR_INVALID_VALUE;
    char *text = file_read(file);
    if (text == NULL) return CUDA_ERROR_FILE_NOT_FOUND;
    const CUresult result = cuModuleLoadData(module, text);
    free(text);
    return result;
}

/* Enters with a context and one of its modules. */
static CUresult begin(struct CUctx_st **context, CUmodule module, bool pointers)
{
    const CUresult result = driver_enter_context(context);
    if (result != CUDA_SUCCESS) return result;
    if (!handle_is(module, HANDLE_MODULE) || module->context != *context) return CUDA_ERROR_INVALID_HANDLE;
    return pointers ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuModuleUnload(CUmodule module)
{
    struct CUctx_st *context;
    CUresult result = begin(&context, module, true);
    if (result == CUDA_SUCCESS && module->library != NULL) result = CUDA_ERROR_NOT_PERMITTED;
    if (result == CUDA_SUCCESS) result = capture_forbids(context);
    if (result == CUDA_SUCCESS) module_close(module);
    return driver_leave(result);
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    struct CUctx_st *context;
    CUresult result = begin(&context, module, function != NULL && name != NULL);
    if (result == CUDA_SUCCESS) {
        const struct function *f = ptx_function(module->module, name);
        if (f == NULL || !is_kernel(f)) result = CUDA_ERROR_NOT_FOUND;
        else *function = &module->function[f->index];
    }
    return driver_leave(result);
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr *pointer, size_t *bytes, CUmodule module, const char *name)
{
    struct CUctx_st *context;
    CUresult result = begin(&context, module, name != NULL && (pointer != NULL || bytes != NULL));
    if (result == CUDA_SUCCESS) {
        const struct variable *v = ptx_variable(module->module, name);
        if (v == NULL || v->space == SPACE_SHARED) result = CUDA_ERROR_NOT_FOUND;
        else if (pointer != NULL) *pointer = module->image.address[v->index];
        if (result == CUDA_SUCCESS && bytes != NULL) *bytes = v->bytes;
    }
    return driver_leave(result);
}

CUresult cuModuleGetFunctionCount(unsigned *count, CUmodule module)
{
    struct CUctx_st *context;
    const CUresult result = begin(&context, module, count != NULL);
    if (result == CUDA_SUCCESS) {
        *count = 0;
        for (uint32_t i = 0; i < module->module->function_count; i++) *count += is_kernel(module->module->functions[i]);
    }
    return driver_leave(result);
}

CUresult cuModuleEnumerateFunctions(CUfunction *functions, unsigned count, CUmodule module)
{
    struct CUctx_st *context;
    const CUresult result = begin(&context, module, functions != NULL || count == 0);
    unsigned used = 0;
    for (uint32_t i = 0; result == CUDA_SUCCESS && i < module->module->function_count && used < count; i++)
        if (is_kernel(module->module->functions[i])) functions[used++] = &module->function[i];
    return driver_leave(result);
}

CUresult cuModuleGetLoadingMode(int *mode)
{
    enum { EAGER = 1 };
    CUresult result = driver_enter();
    if (result == CUDA_SUCCESS && mode == NULL) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) *mode = EAGER;
    return driver_leave(result);
}
