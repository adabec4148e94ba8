/* Libraries: images that belong to no context; each context loads them when it first needs them. */
#include <stdlib.h>
#include <string.h>

#include "driver/fatbin.h"
#include "driver/module.h"

typedef struct CUlib_st *CUlibrary;
typedef struct CUkern_st *CUkernel;

struct CUkern_st { struct CUlib_st *library; const char *name; };
struct CUlib_st {
    struct CUlib_st *next;
    char *text;                           /* PTX, zero behind it */
    struct module *module;                /* read once, for names */
    struct CUkern_st *kernel;
    unsigned kernels;
};

CUDASIM_EXPORT CUresult cuLibraryLoadData(CUlibrary *library, const void *image, CUjit_option *options, void **values, unsigned count,
                                          const int *library_options, void **library_values, unsigned library_count);
CUDASIM_EXPORT CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *file, CUjit_option *options, void **values, unsigned count,
                                              const int *library_options, void **library_values, unsigned library_count);
CUDASIM_EXPORT CUresult cuLibraryUnload(CUlibrary library);
CUDASIM_EXPORT CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name);
CUDASIM_EXPORT CUresult cuLibraryGetKernelCount(unsigned *count, CUlibrary library);
CUDASIM_EXPORT CUresult cuLibraryEnumerateKernels(CUkernel *kernels, unsigned count, CUlibrary library);
CUDASIM_EXPORT CUresult cuLibraryGetModule(CUmodule *module, CUlibrary library);
CUDASIM_EXPORT CUresult cuLibraryGetGlobal(CUdeviceptr *pointer, size_t *bytes, CUlibrary library, const char *name);
CUDASIM_EXPORT CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel);
CUDASIM_EXPORT CUresult cuKernelGetLibrary(CUlibrary *library, CUkernel kernel);
CUDASIM_EXPORT CUresult cuKernelGetName(const char **name, CUkernel kernel);
CUDASIM_EXPORT CUresult cuKernelGetAttribute(int *value, CUfunction_attribute attribute, CUkernel kernel, CUdevice device);
CUDASIM_EXPORT CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel, CUdevice device);
CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function);
CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value);

static struct CUlib_st **find(const struct CUlib_st *library)
{
    struct CUlib_st **link = &driver.libraries;
    while (*link != NULL && *link != library) link = &(*link)->next;
    return link;
}

static struct CUkern_st *find_kernel(const void *handle)
{
    for (const struct CUlib_st *l = driver.libraries; l != NULL; l = l->next)
        for (unsigned i = 0; i < l->kernels; i++)
            if (&l->kernel[i] == handle) return &l->kernel[i];
    return NULL;
}

static void close_library(struct CUlib_st *l)
{
    if (l->module != NULL) ptx_release(l->module);
    free(l->text), free(l->kernel), free(l);
}

/* The text alone, so that the caller's image may go. */
static char *copy_text(const void *image)
{
    char sentence[256];
    size_t length = 0;
    const char *text = image_kind(image) == IMAGE_TEXT ? image : fatbin_text(image, driver.device, &length, sentence, sizeof sentence);
    if (image_kind(image) == IMAGE_TEXT) length = strlen(text);
    char *copy = text == NULL ? NULL : malloc(length + 8);
    if (copy == NULL) return NULL;
    memcpy(copy, text, length);
    memset(copy + length, 0, 8);
    return copy;
}

static CUresult load(CUlibrary *result, const void *image, const struct jit_log *log)
{
    struct CUlib_st *l = calloc(1, sizeof *l);
    if (l == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult code = image_read(image, log, &l->module);
    if (code == CUDA_SUCCESS) {
        l->text = copy_text(image);
        l->kernel = calloc(l->module->function_count + 1, sizeof *l->kernel);
        if (l->text == NULL || l->kernel == NULL) code = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (code != CUDA_SUCCESS) {
        close_library(l);
        return code;
    }
    for (uint32_t i = 0; i < l->module->function_count; i++) {
        const struct function *f = l->module->functions[i];
        if (f->entry && f->defined) l->kernel[l->kernels++] = (struct CUkern_st){ .library = l, .name = f->name };
    }
    l->next = driver.libraries;
    driver.libraries = *result = l;
    return CUDA_SUCCESS;
}

/* Library options say when to load and whether the image stays: here it is copied. */
CUresult cuLibraryLoadData(CUlibrary *library, const void *image, CUjit_option *options, void **values, unsigned count,
                           const int *library_options, void **library_values, unsigned library_count)
{
    (void)library_values;
    CUresult result = driver_enter();
    if (result == CUDA_SUCCESS && (library == NULL || image == NULL || (count != 0 && (options == NULL || values == NULL)) ||
                                   (library_count != 0 && library_options == NULL)))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) {
        const struct jit_log log = jit_error_log(count, options, values);
        result = load(library, image, &log);
    }
    return driver_leave(result);
}

CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *file, CUjit_option *options, void **values, unsigned count,
                               const int *library_options, void **library_values, unsigned library_count)
{
    if (file == NULL) return CUDA_ERROR_INVALID_VALUE;
    char *text = image_read_file(file);
    if (text == NULL) return CUDA_ERROR_FILE_NOT_FOUND;
    const CUresult result = cuLibraryLoadData(library, text, options, values, count, library_options, library_values, library_count);
    free(text);
    return result;
}

static void close_modules_of(const struct CUlib_st *library)
{
    for (struct CUctx_st *c = driver.contexts; c != NULL; c = c->next)
        for (struct CUmod_st **link = &c->modules; *link != NULL;) {
            struct CUmod_st *m = *link;
            if (m->library != library) {
                link = &m->next;
                continue;
            }
            *link = m->next;
            module_close(c, m);
        }
}

CUresult cuLibraryUnload(CUlibrary library)
{
    CUresult result = driver_enter();
    struct CUlib_st **link = find(library);
    if (result == CUDA_SUCCESS && *link == NULL) result = CUDA_ERROR_INVALID_HANDLE;
    if (result == CUDA_SUCCESS) {
        *link = library->next;
        close_modules_of(library);
        close_library(library);
    }
    return driver_leave(result);
}

static CUresult module_of(struct CUctx_st *context, struct CUlib_st *library, CUmodule *module)
{
    for (struct CUmod_st *m = context->modules; m != NULL; m = m->next)
        if (m->library == library) {
            *module = m;
            return CUDA_SUCCESS;
        }
    const CUresult result = module_load(context, module, library->text, &(struct jit_log){ NULL, 0 });
    if (result == CUDA_SUCCESS) (*module)->library = library;
    return result;
}

struct CUfunc_st *kernel_function(struct CUctx_st *context, const void *handle)
{
    CUmodule module;
    CUfunction function;
    const struct CUkern_st *kernel = find_kernel(handle);
    if (kernel == NULL || module_of(context, kernel->library, &module) != CUDA_SUCCESS) return NULL;
    return module_function(module, kernel->name, &function) == CUDA_SUCCESS ? function : NULL;
}

/* Enters with a library that lives. */
static CUresult begin(const struct CUlib_st *library, const void *answer)
{
    const CUresult result = driver_enter();
    if (result != CUDA_SUCCESS) return result;
    if (*find(library) == NULL) return CUDA_ERROR_INVALID_HANDLE;
    return answer == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name)
{
    CUresult result = begin(library, kernel);
    if (result == CUDA_SUCCESS && name == NULL) result = CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS) return driver_leave(result);
    result = CUDA_ERROR_NOT_FOUND;
    for (unsigned i = 0; i < library->kernels; i++)
        if (strcmp(library->kernel[i].name, name) == 0) {
            *kernel = &library->kernel[i];
            result = CUDA_SUCCESS;
        }
    return driver_leave(result);
}

CUresult cuLibraryGetKernelCount(unsigned *count, CUlibrary library)
{
    const CUresult result = begin(library, count);
    if (result == CUDA_SUCCESS) *count = library->kernels;
    return driver_leave(result);
}

CUresult cuLibraryEnumerateKernels(CUkernel *kernels, unsigned count, CUlibrary library)
{
    const CUresult result = begin(library, kernels);
    for (unsigned i = 0; result == CUDA_SUCCESS && i < count && i < library->kernels; i++) kernels[i] = &library->kernel[i];
    return driver_leave(result);
}

/* Enters with a context and a library that live. */
static CUresult begin_loaded(struct CUlib_st *library, CUmodule *module)
{
    struct CUctx_st *context;
    const CUresult result = driver_enter_context(&context);
    if (result != CUDA_SUCCESS) return result;
    return *find(library) == NULL ? CUDA_ERROR_INVALID_HANDLE : module_of(context, library, module);
}

CUresult cuLibraryGetModule(CUmodule *module, CUlibrary library)
{
    if (module == NULL) return CUDA_ERROR_INVALID_VALUE;
    return driver_leave(begin_loaded(library, module));
}

CUresult cuLibraryGetGlobal(CUdeviceptr *pointer, size_t *bytes, CUlibrary library, const char *name)
{
    CUmodule module;
    CUresult result = begin_loaded(library, &module);
    if (result == CUDA_SUCCESS && (name == NULL || (pointer == NULL && bytes == NULL))) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) result = module_global(module, name, pointer, bytes);
    return driver_leave(result);
}

CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel)
{
    struct CUctx_st *context;
    CUresult result = driver_enter_context(&context);
    if (result == CUDA_SUCCESS && function == NULL) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS && (*function = kernel_function(context, kernel)) == NULL) result = CUDA_ERROR_INVALID_HANDLE;
    return driver_leave(result);
}

CUresult cuKernelGetLibrary(CUlibrary *library, CUkernel kernel)
{
    CUresult result = driver_enter();
    const struct CUkern_st *found = find_kernel(kernel);
    if (result == CUDA_SUCCESS && found == NULL) result = CUDA_ERROR_INVALID_HANDLE;
    if (result == CUDA_SUCCESS && library == NULL) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) *library = found->library;
    return driver_leave(result);
}

CUresult cuKernelGetName(const char **name, CUkernel kernel)
{
    CUresult result = driver_enter();
    const struct CUkern_st *found = find_kernel(kernel);
    if (result == CUDA_SUCCESS && found == NULL) result = CUDA_ERROR_INVALID_HANDLE;
    if (result == CUDA_SUCCESS && name == NULL) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) *name = found->name;
    return driver_leave(result);
}

CUresult cuKernelGetAttribute(int *value, CUfunction_attribute attribute, CUkernel kernel, CUdevice device)
{
    return device != 0 ? CUDA_ERROR_INVALID_DEVICE : cuFuncGetAttribute(value, attribute, (CUfunction)(void *)kernel);
}

CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel, CUdevice device)
{
    return device != 0 ? CUDA_ERROR_INVALID_DEVICE : cuFuncSetAttribute((CUfunction)(void *)kernel, attribute, value);
}
