/* Code objects, their functions, launches. */
#include "hip.h"

#include <stdlib.h>
#include <string.h>

static hipError_t open_module(struct hip_module *m, const void *data)
{
    char why[256];
    const enum code_object_result r = code_object_open(&m->object, data, 0, why);
    if (r != CODE_OBJECT_OK) {
        hip_say("gfxsim: hipModuleLoadData: %s\n", why);
        return r == CODE_OBJECT_NO_MEMORY ? hipErrorOutOfMemory
               : r == CODE_OBJECT_OTHER_GPU ? hipErrorNoBinaryForGpu
                                            : hipErrorInvalidImage;
    }
    return program_open(&m->program, &hip.machine, &m->object) ? hipSuccess : hipErrorOutOfMemory;
}

static void free_module(struct hip_module *m)
{
    while (m->functions != NULL) {
        struct hip_function *next = m->functions->next;
        free(m->functions);
        m->functions = next;
    }
    program_close(&m->program, &hip.machine);
    code_object_close(&m->object);
    free(m);
}

HIP_EXPORT hipError_t hipModuleLoadData(hipModule_t *module, const void *data);
hipError_t hipModuleLoadData(hipModule_t *module, const void *data)
{
    hipError_t r = hip_enter();
    if (r == hipSuccess && (module == NULL || data == NULL)) r = hipErrorInvalidValue;
    struct hip_module *m = r == hipSuccess ? calloc(1, sizeof *m) : NULL;
    if (r == hipSuccess) r = m == NULL ? hipErrorOutOfMemory : open_module(m, data);
    if (r != hipSuccess) {
        if (m != NULL) free_module(m);
        return hip_leave(r);
    }
    m->next = hip.modules;
    hip.modules = m;
    *module = m;
    return hip_leave(hipSuccess);
}

static struct hip_module **find(hipModule_t module)
{
    struct hip_module **at = &hip.modules;
    while (*at != NULL && *at != module) at = &(*at)->next;
    return at;
}

HIP_EXPORT hipError_t hipModuleUnload(hipModule_t module);
hipError_t hipModuleUnload(hipModule_t module)
{
    const hipError_t r = hip_enter();
    struct hip_module **at = find(module);
    if (r != hipSuccess || *at == NULL) return hip_leave(r != hipSuccess ? r : hipErrorInvalidHandle);
    *at = module->next;
    free_module(module);
    return hip_leave(hipSuccess);
}

HIP_EXPORT hipError_t hipModuleGetFunction(hipFunction_t *function, hipModule_t module, const char *name);
hipError_t hipModuleGetFunction(hipFunction_t *function, hipModule_t module, const char *name)
{
    const hipError_t r = hip_enter();
    if (r != hipSuccess || function == NULL || name == NULL)
        return hip_leave(r != hipSuccess ? r : hipErrorInvalidValue);
    if (*find(module) == NULL) return hip_leave(hipErrorInvalidHandle);
    const struct kernel *k = code_object_kernel(&module->object, name);
    if (k == NULL) return hip_leave(hipErrorNotFound);
    for (struct hip_function *f = module->functions; f != NULL; f = f->next)
        if (f->kernel == k) {
            *function = f;
            return hip_leave(hipSuccess);
        }
    struct hip_function *f = malloc(sizeof *f);
    if (f == NULL) return hip_leave(hipErrorOutOfMemory);
    *f = (struct hip_function){ module, k, module->functions };
    module->functions = f;
    *function = f;
    return hip_leave(hipSuccess);
}

HIP_EXPORT hipError_t hipFuncGetAttribute(int *value, int attribute, hipFunction_t f);
hipError_t hipFuncGetAttribute(int *value, int attribute, hipFunction_t f)
{
    const hipError_t r = hip_enter();
    if (r != hipSuccess || value == NULL) return hip_leave(r != hipSuccess ? r : hipErrorInvalidValue);
    if (!function_lives(f)) return hip_leave(hipErrorInvalidHandle);
    const struct kernel *k = f->kernel;
    switch (attribute) {
    case 0: *value = k->most_threads == 0 ? 1024 : (int)k->most_threads; break;
    case 1: *value = (int)k->lds_bytes; break;
    case 3: *value = (int)k->private_bytes; break;
    case 4: *value = (int)(k->vgprs + k->agprs); break;
    case 8: *value = LDS_BYTES - (int)k->lds_bytes; break;
    default: return hip_leave(hipErrorInvalidValue);
    }
    return hip_leave(hipSuccess);
}

/* ---- launches ---- */

/* As AMD's runtime checks them. */
static hipError_t check(const struct kernel *k, const uint32_t g[3], const uint32_t b[3], uint32_t lds)
{
    const uint64_t threads = (uint64_t)b[0] * b[1] * b[2];
    if (g[0] == 0 || g[1] == 0 || g[2] == 0 || g[0] > INT32_MAX || g[1] > 65536 || g[2] > 65536)
        return hipErrorInvalidValue;
    if (b[0] == 0 || b[1] == 0 || b[2] == 0) return hipErrorInvalidConfiguration;
    if ((uint64_t)g[0] * b[0] > UINT32_MAX) return hipErrorInvalidConfiguration;
    if (b[0] > 1024 || b[1] > 1024 || b[2] > 1024 || threads > 1024) return hipErrorInvalidValue;
    if ((uint64_t)k->lds_bytes + lds > LDS_BYTES) return hipErrorInvalidValue;
    if (k->most_threads != 0 && threads > k->most_threads) return hipErrorLaunchFailure;
    return hipSuccess;
}

static uint32_t hidden(const struct argument *a, const uint32_t g[3], const uint32_t b[3])
{
    switch (a->kind) {
    case ARGUMENT_BLOCK_COUNT_X: case ARGUMENT_BLOCK_COUNT_Y: case ARGUMENT_BLOCK_COUNT_Z:
        return g[a->kind - ARGUMENT_BLOCK_COUNT_X];
    case ARGUMENT_GROUP_SIZE_X: case ARGUMENT_GROUP_SIZE_Y: case ARGUMENT_GROUP_SIZE_Z:
        return b[a->kind - ARGUMENT_GROUP_SIZE_X];
    case ARGUMENT_GRID_DIMS: return g[2] * b[2] > 1 ? 3 : g[1] * b[1] > 1 ? 2 : 1;
    default: return 0;
    }
}

/* From an array of pointers, by the metadata's offsets and sizes; what is hidden is filled in. */
static bool fill(struct work *w, void **parameters)
{
    const struct kernel *k = w->function->kernel;
    uint32_t next = 0;
    for (uint32_t i = 0; i < k->arguments; i++) {
        const struct argument *a = &k->argument[i];
        if (a->offset > w->argument_bytes || a->bytes > w->argument_bytes - a->offset) return false;
        if (a->kind != ARGUMENT_VALUE) {
            const uint32_t value = hidden(a, w->grid, w->block);
            memcpy(w->arguments + a->offset, &value, a->bytes < 4 ? a->bytes : 4);
        } else {
            if (parameters == NULL || parameters[next] == NULL) return false;
            memcpy(w->arguments + a->offset, parameters[next++], a->bytes);
        }
    }
    return true;
}

/* HIP_LAUNCH_PARAM_BUFFER_POINTER 1, _BUFFER_SIZE 2, _END 3. */
static bool fill_from_buffer(struct work *w, void **extra)
{
    const void *buffer = NULL;
    size_t bytes = 0;
    for (; (uintptr_t)extra[0] != 3; extra += 2) {
        if ((uintptr_t)extra[0] == 1) buffer = extra[1];
        else if ((uintptr_t)extra[0] == 2 && extra[1] != NULL) memcpy(&bytes, extra[1], sizeof bytes);
        else return false;
    }
    if (buffer == NULL || bytes > w->argument_bytes) return false;
    memcpy(w->arguments, buffer, bytes);
    return true;
}

HIP_EXPORT hipError_t hipModuleLaunchKernel(hipFunction_t f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                                            unsigned by, unsigned bz, unsigned lds, hipStream_t stream,
                                            void **parameters, void **extra);
hipError_t hipModuleLaunchKernel(hipFunction_t f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                                 unsigned bz, unsigned lds, hipStream_t stream, void **parameters, void **extra)
{
    hipError_t r = hip_enter();
    if (r != hipSuccess) return hip_leave(r);
    if (!function_lives(f)) return hip_leave(f == NULL ? hipErrorInvalidImage : hipErrorInvalidHandle);
    if (parameters != NULL && extra != NULL) return hip_leave(hipErrorInvalidValue);
    struct work w = { .kind = WORK_LAUNCH, .function = f, .grid = { gx, gy, gz }, .block = { bx, by, bz }, .lds = lds,
                      .argument_bytes = f->kernel->kernarg_bytes };
    r = check(f->kernel, w.grid, w.block, lds);
    if (r != hipSuccess) return hip_leave(r);
    w.arguments = calloc(1, (size_t)w.argument_bytes + 1);
    if (w.arguments == NULL) return hip_leave(hipErrorOutOfMemory);
    const bool filled = extra != NULL ? fill_from_buffer(&w, extra) : fill(&w, parameters);
    r = filled ? work_submit(stream, &w) : hipErrorInvalidValue;
    free(w.arguments);
    return hip_leave(r);
}
