/* Modules from PTX text; functions and globals in them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/driver.h"
#include "driver/fatbin.h"

CUDASIM_EXPORT CUresult cuModuleLoadData(CUmodule *module, const void *image);
CUDASIM_EXPORT CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned count, CUjit_option *options,
                                           void **values);
CUDASIM_EXPORT CUresult cuModuleLoad(CUmodule *module, const char *file);
CUDASIM_EXPORT CUresult cuModuleLoadFatBinary(CUmodule *module, const void *fatbin);
CUDASIM_EXPORT CUresult cuModuleUnload(CUmodule module);
CUDASIM_EXPORT CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name);
CUDASIM_EXPORT CUresult cuModuleGetGlobal_v2(CUdeviceptr *pointer, size_t *bytes, CUmodule module, const char *name);
CUDASIM_EXPORT CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function);
CUDASIM_EXPORT CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value);

/* Where the caller wants the error text. */
struct log { char *buffer; size_t size; };

static struct log error_log(unsigned count, const CUjit_option *options, void *const *values)
{
    struct log log = { NULL, 0 };
    for (unsigned i = 0; i < count; i++) {
        if (options[i] == CU_JIT_ERROR_LOG_BUFFER) log.buffer = values[i];
        if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) log.size = (size_t)(uintptr_t)values[i];
    }
    return log;
}

static void say_error(const struct log *log, const char *text)
{
    if (log->buffer != NULL && log->size != 0) snprintf(log->buffer, log->size, "%s", text);
    driver_say("cudasim: %s\n", text);
}

static CUresult read_text(const void *image, const struct log *log, struct module **module)
{
    char sentence[256] = "this image is a cubin, and PTX is what runs here";
    const enum image_kind kind = image_kind(image);
    const char *source = image;
    size_t length = 0;
    if (kind == IMAGE_TEXT) length = strlen(source);
    else source = kind == IMAGE_FATBIN ? fatbin_text(image, driver.device, &length, sentence, sizeof sentence) : NULL;
    if (source == NULL) {
        say_error(log, sentence);
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    }
    struct ptx_error error;
    *module = ptx_read("ptx", source, length, NULL, &error);
    if (*module == NULL) {
        say_error(log, error.text);
        return CUDA_ERROR_INVALID_PTX;
    }
    if (device_runs(driver.device, (*module)->sm, (*module)->suffix)) {
        driver_mutate(*module);
        return CUDA_SUCCESS;
    }
    char text[160];
    snprintf(text, sizeof text, "the module's target sm_%u%.1s does not run on %s (CUDASIM_DEVICE)", (*module)->sm,
             &(*module)->suffix, driver.device->name);
    say_error(log, text);
    ptx_release(*module);
    return CUDA_ERROR_INVALID_PTX;
}

static CUresult load(struct CUctx_st *context, CUmodule *result, const void *image, const struct log *log)
{
    struct CUmod_st *m = calloc(1, sizeof *m);
    if (m == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    const CUresult read = read_text(image, log, &m->module);
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
        const struct log log = error_log(count, options, values);
        result = load(context, module, image, &log);
    }
    return driver_leave(result);
}

CUresult cuModuleLoadData(CUmodule *module, const void *image) { return cuModuleLoadDataEx(module, image, 0, NULL, NULL); }

CUresult cuModuleLoadFatBinary(CUmodule *module, const void *fatbin)
{
    if (fatbin != NULL && image_kind(fatbin) != IMAGE_FATBIN) return CUDA_ERROR_INVALID_IMAGE;
    return cuModuleLoadDataEx(module, fatbin, 0, NULL, NULL);
}

static char *read_file(const char *name)
{
    FILE *file = fopen(name, "rb");
    if (file == NULL) return NULL;
    char *text = NULL;
    size_t used = 0, capacity = 0;
    for (;;) {
        if (capacity - used < 4096) {
            char *larger = realloc(text, capacity = capacity * 2 + 65536);
            if (larger == NULL) break;
            text = larger;
        }
        const size_t got = fread(text + used, 1, capacity - used - 8, file);
        used += got;
        if (got == 0) break;
    }
    if (text != NULL) memset(text + used, 0, 8);
    fclose(file);
    return text;
}

CUresult cuModuleLoad(CUmodule *module, const char *file)
{
    if (file == NULL) return CUDA_ERROR_INVALID_VALUE;
    char *text = read_file(file);
    if (text == NULL) return CUDA_ERROR_FILE_NOT_FOUND;
    const CUresult result = cuModuleLoadData(module, text);
    free(text);
    return result;
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
        image_close(&module->image, &context->machine);
        ptx_release(module->module);
        free(module->function);
        free(module);
    }
    return driver_leave(result);
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    struct CUctx_st *context;
    CUresult result = driver_enter_context(&context);
    if (result == CUDA_SUCCESS && (function == NULL || name == NULL)) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS && *find(context, module) == NULL) result = CUDA_ERROR_INVALID_HANDLE;
    if (result == CUDA_SUCCESS) {
        const struct function *f = ptx_function(module->module, name);
        if (f == NULL || !f->entry || !f->defined) result = CUDA_ERROR_NOT_FOUND;
        else *function = &module->function[f->index];
    }
    return driver_leave(result);
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr *pointer, size_t *bytes, CUmodule module, const char *name)
{
    struct CUctx_st *context;
    CUresult result = driver_enter_context(&context);
    if (result == CUDA_SUCCESS && (name == NULL || (pointer == NULL && bytes == NULL))) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS && *find(context, module) == NULL) result = CUDA_ERROR_INVALID_HANDLE;
    if (result == CUDA_SUCCESS) {
        const struct variable *v = ptx_variable(module->module, name);
        if (v == NULL || v->space == SPACE_SHARED) result = CUDA_ERROR_NOT_FOUND;
        if (v != NULL && pointer != NULL) *pointer = module->image.address[v->index];
        if (v != NULL && bytes != NULL) *bytes = v->bytes;
    }
    return driver_leave(result);
}

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function)
{
    CUresult result = driver_enter();
    if (result == CUDA_SUCCESS && value == NULL) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS && function == NULL) result = CUDA_ERROR_INVALID_HANDLE;
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
        *value = function->maximum_dynamic_shared != 0 ? function->maximum_dynamic_shared : (int)(driver.device->shared_per_block - f->static_shared_bytes);
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
    CUresult result = driver_enter();
    if (result == CUDA_SUCCESS && function == NULL) result = CUDA_ERROR_INVALID_HANDLE;
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
