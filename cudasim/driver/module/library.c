/* Libraries: modules without a context, which each context that uses them gets of its own. */
#include <stdlib.h>
#include <string.h>

#include "driver/core/driver.h"

CUDASIM_EXPORT CUresult cuLibraryLoadData(CUlibrary *library, const void *image, CUjit_option *options, void **values,
                                          unsigned count, int *library_options, void **library_values,
                                          unsigned library_count);
CUDASIM_EXPORT CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *file, CUjit_option *options,
                                              void **values, unsigned count, int *library_options,
                                              void **library_values, unsigned library_count);
CUDASIM_EXPORT CUresult cuLibraryUnload(CUlibrary library);
CUDASIM_EXPORT CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name);
CUDASIM_EXPORT CUresult cuLibraryGetKernelCount(unsigned *count, CUlibrary library);
CUDASIM_EXPORT CUresult cuLibraryEnumerateKernels(CUkernel *kernels, unsigned count, CUlibrary library);
CUDASIM_EXPORT CUresult cuLibraryGetModule(CUmodule *module, CUlibrary library);
CUDASIM_EXPORT CUresult cuLibraryGetGlobal(CUdeviceptr *pointer, size_t *bytes, CUlibrary library, const char *name);
CUDASIM_EXPORT CUresult cuLibraryGetManaged(CUdeviceptr *pointer, size_t *bytes, CUlibrary library, const char *name);
CUDASIM_EXPORT CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel);
CUDASIM_EXPORT CUresult cuKernelGetLibrary(CUlibrary *library, CUkernel kernel);
CUDASIM_EXPORT CUresult cuKernelGetAttribute(int *value, CUfunction_attribute attribute, CUkernel kernel,
                                             CUdevice device);
CUDASIM_EXPORT CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel,
                                             CUdevice device);
CUDASIM_EXPORT CUresult cuKernelSetCacheConfig(CUkernel kernel, int config, CUdevice device);
CUDASIM_EXPORT CUresult cuKernelGetName(const char **name, CUkernel kernel);
CUDASIM_EXPORT CUresult cuKernelGetParamInfo(CUkernel kernel, size_t index, size_t *offset, size_t *size);

struct CUkern_st {
    struct CUlib_st *library;
    const struct function *function;
    struct function_settings settings[MOST_DEVICES];      /* by device: for contexts that do not have it yet */
};
struct CUlib_st { struct module *module; struct CUkern_st *kernel; };  /* one per function of the module */

/* ---- libraries in contexts ---- */

/* The library's module in the context; loaded when it is first asked for. */
static CUresult module_in(struct CUctx_st *context, struct CUlib_st *library, struct CUmod_st **module)
{
    for (*module = context->modules; *module != NULL; *module = (*module)->next)
        if ((*module)->library == library) return CUDA_SUCCESS;
    const struct log nowhere = { NULL, NULL, 0, 0 };
    if (!module_runs(library->module, context->machine.device, &nowhere)) return CUDA_ERROR_NO_BINARY_FOR_GPU;
    const CUresult result = module_open(context, library->module, library, module);
    for (uint32_t i = 0; result == CUDA_SUCCESS && i < library->module->function_count; i++)
        (*module)->function[i].settings = library->kernel[i].settings[context->device];
    return result;
}

struct CUfunc_st *function_find(struct CUctx_st *context, CUfunction handle)
{
    if (handle_is(handle, HANDLE_FUNCTION)) return handle->module->context == context ? handle : NULL;
    if (!handle_is(handle, HANDLE_KERNEL)) return NULL;
    const struct CUkern_st *kernel = (const struct CUkern_st *)(const void *)handle;
    struct CUmod_st *module;
    return module_in(context, kernel->library, &module) == CUDA_SUCCESS ? &module->function[kernel->function->index]
                                                                        : NULL;
}

/* ---- libraries ---- */

static bool is_kernel(const struct function *f) { return f->entry && f->defined; }

static void close_library(struct CUlib_st *library)
{
    for (struct CUctx_st *c = driver.contexts; c != NULL; c = c->next)
        for (struct CUmod_st *m = c->modules, *next; m != NULL; m = next) {
            next = m->next;
            if (m->library == library) module_close(m);
        }
    for (uint32_t i = 0; library->kernel != NULL && i < library->module->function_count; i++)
        handle_remove(&library->kernel[i]);
    handle_remove(library);
    ptx_release(library->module);
    free(library->kernel);
    free(library);
}

static CUresult open_library(CUlibrary *made, struct module *module)
{
    struct CUlib_st *library = calloc(1, sizeof *library);
    if (library == NULL) {
        ptx_release(module);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    library->module = module;
    library->kernel = calloc(module->function_count + 1, sizeof *library->kernel);
    bool known = library->kernel != NULL && handle_add(library, HANDLE_LIBRARY);
    for (uint32_t i = 0; known && i < module->function_count; i++) {
        library->kernel[i] = (struct CUkern_st){ .library = library, .function = module->functions[i] };
        for (int d = 0; d < MOST_DEVICES; d++) library->kernel[i].settings[d] = function_default_settings();
        if (is_kernel(module->functions[i])) known = handle_add(&library->kernel[i], HANDLE_KERNEL);
    }
    if (!known) close_library(library);
    else *made = library;
    return known ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuLibraryLoadData(CUlibrary *library, const void *image, CUjit_option *options, void **values, unsigned count,
                           int *library_options, void **library_values, unsigned library_count)
{
    enum { LIBRARY_OPTIONS = 2 };
    CUresult result = driver_enter();
    if (result == CUDA_SUCCESS
        && (library == NULL || image == NULL || (count != 0 && (options == NULL || values == NULL))))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS && library_count != 0 && (library_options == NULL || library_values == NULL))
        result = CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; result == CUDA_SUCCESS && i < library_count; i++)
        if (library_options[i] < 0 || library_options[i] >= LIBRARY_OPTIONS) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) {
        const struct log log = log_of(count, options, values);
        struct module *module;
        result = module_read(image, limits_now(), &log, &module);
        if (result == CUDA_SUCCESS) result = open_library(library, module);
        log_end(&log, count, options, values);
    }
    return driver_leave(result);
}

CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *file, CUjit_option *options, void **values,
                               unsigned count, int *library_options, void **library_values, unsigned library_count)
{
    char *text = file == NULL ? NULL : file_read(file);
    CUresult result = file == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_FILE_NOT_FOUND;
    if (text != NULL)
        result =
            cuLibraryLoadData(library, text, options, values, count, library_options, library_values, library_count);
    free(text);
    return result;
}

static CUresult begin(CUlibrary library, bool pointers)
{
    const CUresult result = driver_enter();
    if (result != CUDA_SUCCESS) return result;
    if (!handle_is(library, HANDLE_LIBRARY)) return CUDA_ERROR_INVALID_HANDLE;
    return pointers ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuLibraryUnload(CUlibrary library)
{
    const CUresult result = begin(library, true);
    if (result == CUDA_SUCCESS) close_library(library);
    return driver_leave(result);
}

CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name)
{
    CUresult result = begin(library, kernel != NULL && name != NULL);
    const struct function *f = result == CUDA_SUCCESS ? ptx_function(library->module, name) : NULL;
    if (result == CUDA_SUCCESS && (f == NULL || !is_kernel(f))) result = CUDA_ERROR_NOT_FOUND;
    if (result == CUDA_SUCCESS) *kernel = &library->kernel[f->index];
    return driver_leave(result);
}

CUresult cuLibraryGetKernelCount(unsigned *count, CUlibrary library)
{
    const CUresult result = begin(library, count != NULL);
    if (result == CUDA_SUCCESS) {
        *count = 0;
        for (uint32_t i = 0; i < library->module->function_count; i++)
            *count += is_kernel(library->module->functions[i]);
    }
    return driver_leave(result);
}

CUresult cuLibraryEnumerateKernels(CUkernel *kernels, unsigned count, CUlibrary library)
{
    const CUresult result = begin(library, kernels != NULL || count == 0);
    unsigned used = 0;
    for (uint32_t i = 0; result == CUDA_SUCCESS && i < library->module->function_count && used < count; i++)
        if (is_kernel(library->module->functions[i])) kernels[used++] = &library->kernel[i];
    return driver_leave(result);
}

CUresult cuLibraryGetModule(CUmodule *module, CUlibrary library)
{
    struct CUctx_st *context = NULL;
    CUresult result = begin(library, module != NULL);
    if (result == CUDA_SUCCESS) result = context_or_current(NULL, &context);
    if (result == CUDA_SUCCESS) result = module_in(context, library, module);
    return driver_leave(result);
}

CUresult cuLibraryGetGlobal(CUdeviceptr *pointer, size_t *bytes, CUlibrary library, const char *name)
{
    struct CUctx_st *context = NULL;
    struct CUmod_st *module = NULL;
    CUresult result = begin(library, name != NULL && (pointer != NULL || bytes != NULL));
    if (result == CUDA_SUCCESS) result = context_or_current(NULL, &context);
    if (result == CUDA_SUCCESS) result = module_in(context, library, &module);
    const struct variable *v = result == CUDA_SUCCESS ? ptx_variable(library->module, name) : NULL;
    if (result == CUDA_SUCCESS && (v == NULL || v->space == SPACE_SHARED)) result = CUDA_ERROR_NOT_FOUND;
    if (result == CUDA_SUCCESS && pointer != NULL) *pointer = module->image.address[v->index];
    if (result == CUDA_SUCCESS && bytes != NULL) *bytes = v->bytes;
    return driver_leave(result);
}

/* A managed variable has one address, for the host and for kernels. */
CUresult cuLibraryGetManaged(CUdeviceptr *pointer, size_t *bytes, CUlibrary library, const char *name)
{
    const CUresult begun = begin(library, name != NULL);
    const struct variable *v = begun == CUDA_SUCCESS ? ptx_variable(library->module, name) : NULL;
    driver_leave(begun);
    if (begun != CUDA_SUCCESS) return begun;
    return v != NULL && v->managed ? cuLibraryGetGlobal(pointer, bytes, library, name) : CUDA_ERROR_NOT_FOUND;
}

/* ---- kernels ---- */

static CUresult begin_kernel(CUkernel kernel, bool pointers, CUdevice device)
{
    const CUresult result = driver_enter();
    if (result != CUDA_SUCCESS) return result;
    if (!handle_is(kernel, HANDLE_KERNEL)) return CUDA_ERROR_INVALID_HANDLE;
    if (!pointers) return CUDA_ERROR_INVALID_VALUE;
    return device_check(device);
}

CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel)
{
    struct CUctx_st *context = NULL;
    CUresult result = begin_kernel(kernel, function != NULL, 0);
    if (result == CUDA_SUCCESS) result = context_or_current(NULL, &context);
    if (result == CUDA_SUCCESS && (*function = function_find(context, (CUfunction)(void *)kernel)) == NULL)
        result = CUDA_ERROR_OUT_OF_MEMORY;
    return driver_leave(result);
}

CUresult cuKernelGetLibrary(CUlibrary *library, CUkernel kernel)
{
    const CUresult result = begin_kernel(kernel, library != NULL, 0);
    if (result == CUDA_SUCCESS) *library = kernel->library;
    return driver_leave(result);
}

CUresult cuKernelGetAttribute(int *value, CUfunction_attribute attribute, CUkernel kernel, CUdevice device)
{
    CUresult result = begin_kernel(kernel, value != NULL, device);
    if (result == CUDA_SUCCESS)
        result = function_attribute(value, (int)attribute, driver.device[device].limits, kernel->library->module,
                                    kernel->function, &kernel->settings[device]);
    return driver_leave(result);
}

/* Also where contexts of the device have the kernel already. */
CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel, CUdevice device)
{
    CUresult result = begin_kernel(kernel, true, device);
    if (result == CUDA_SUCCESS)
        result = function_set_attribute(&kernel->settings[device], driver.device[device].limits, kernel->function,
                                        (int)attribute, value);
    for (struct CUctx_st *c = driver.contexts; result == CUDA_SUCCESS && c != NULL; c = c->next)
        for (struct CUmod_st *m = c->device == device ? c->modules : NULL; m != NULL; m = m->next)
            if (m->library == kernel->library)
                function_set_attribute(&m->function[kernel->function->index].settings, c->machine.device,
                                       kernel->function, (int)attribute, value);
    return driver_leave(result);
}

CUresult cuKernelSetCacheConfig(CUkernel kernel, int config, CUdevice device)
{
    return driver_leave(begin_kernel(kernel, config >= 0 && config <= 3, device));
}

CUresult cuKernelGetName(const char **name, CUkernel kernel)
{
    const CUresult result = begin_kernel(kernel, name != NULL, 0);
    if (result == CUDA_SUCCESS) *name = kernel->function->name;
    return driver_leave(result);
}

CUresult cuKernelGetParamInfo(CUkernel kernel, size_t index, size_t *offset, size_t *size)
{
    CUresult result = begin_kernel(kernel, offset != NULL, 0);
    if (result == CUDA_SUCCESS && index >= kernel->function->parameter_count) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) *offset = kernel->function->parameters[index]->offset;
    if (result == CUDA_SUCCESS && size != NULL) *size = kernel->function->parameters[index]->bytes;
    return driver_leave(result);
}
