/* Loads, launches and reads back through the driver API. */
#include "gpu.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool find(void *handle, const char *name, void *function)
{
    void *symbol = dlsym(handle, name);
    memcpy(function, &symbol, sizeof symbol);
    return symbol != NULL;
}

const char *gpu_open(struct gpu *g, const char *library)
{
    *g = (struct gpu){ .input_size = 0 };
    void *h = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (h == NULL) return dlerror();
    const struct { const char *name; void *function; } wanted[] = {
        { "cuInit", &g->init },                       { "cuDriverGetVersion", &g->driver_version },
        { "cuDeviceGet", &g->device_get },            { "cuDeviceGetName", &g->device_name },
        { "cuDevicePrimaryCtxRetain", &g->primary_retain }, { "cuCtxSetCurrent", &g->set_current },
        { "cuCtxSynchronize", &g->synchronize },      { "cuMemAlloc_v2", &g->allocate },
        { "cuMemFree_v2", &g->release },              { "cuMemcpyHtoD_v2", &g->to_device },
        { "cuMemcpyDtoH_v2", &g->to_host },           { "cuMemsetD8_v2", &g->fill8 },
        { "cuModuleLoadDataEx", &g->load },           { "cuModuleUnload", &g->unload },
        { "cuModuleGetFunction", &g->get_function },  { "cuFuncSetAttribute", &g->set_attribute },
        { "cuLaunchKernel", &g->launch },             { "cuLaunchKernelEx", &g->launch_with },
        { "cuGetErrorName", &g->error_name },
    };
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
        if (!find(h, wanted[i].name, wanted[i].function)) return wanted[i].name;
    find(h, "cuTensorMapEncodeTiled", &g->encode_tiled);
    CUdevice device;
    CUcontext context;
    CUresult result = g->init(0);
    if (result == CUDA_SUCCESS) result = g->device_get(&device, 0);
    if (result == CUDA_SUCCESS) result = g->primary_retain(&context, device);
    if (result == CUDA_SUCCESS) result = g->set_current(context);
    return result == CUDA_SUCCESS ? NULL : gpu_error(g, result);
}

const char *gpu_error(const struct gpu *g, CUresult result)
{
    const char *name = NULL;
    if (g->error_name == NULL || g->error_name(result, &name) != CUDA_SUCCESS || name == NULL)
        return "an unknown error";
    return name;
}

CUmodule gpu_load(const struct gpu *g, const struct calibration_case *cases, uint32_t count, char *log, size_t size)
{
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    if (out == NULL) abort();
    fprintf(out, ".version %u.%u\n.target %s\n.address_size 64\n", cases[0].version / 10, cases[0].version % 10,
            cases[0].target);
    for (uint32_t i = 0; i < count; i++) {
        char *entry = calibration_entry(&cases[i], i);
        fputs(entry, out);
        free(entry);
    }
    if (fclose(out) != 0) abort();
    CUjit_option options[] = { CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES };
    void *values[] = { log, (void *)(uintptr_t)size };
    CUmodule module = NULL;
    log[0] = '\0';
    const CUresult result = g->load(&module, text, 2, options, values);
    if (result != CUDA_SUCCESS && log[0] == '\0') snprintf(log, size, "%s", gpu_error(g, result));
    free(text);
    return result == CUDA_SUCCESS ? module : NULL;
}

static CUresult reserve(struct gpu *g, CUdeviceptr *buffer, size_t *size, size_t wanted)
{
    if (*size >= wanted) return CUDA_SUCCESS;
    if (*buffer != 0) g->release(*buffer);
    *buffer = 0, *size = 0;
    const CUresult result = g->allocate(buffer, wanted);
    if (result == CUDA_SUCCESS) *size = wanted;
    return result;
}

static CUresult encode(const struct gpu *g, const struct calibration_map *m, void *map)
{
    if (g->encode_tiled == NULL) return CUDA_ERROR_NOT_SUPPORTED;
    const CUdeviceptr base = (m->in_output ? g->output : g->input) + m->offset;
    return g->encode_tiled(map, m->data_type, m->rank, (void *)(uintptr_t)base, m->size, m->stride, m->box,
                           m->element_stride, m->interleave, m->swizzle, m->promotion, m->fill);
}

static CUresult prepare(struct gpu *g, const struct calibration_case *one)
{
    CUresult result = reserve(g, &g->input, &g->input_size, one->input_bytes + 256);
    if (result == CUDA_SUCCESS) result = reserve(g, &g->output, &g->output_size, one->output_bytes + 256);
    uint8_t *input = malloc(one->input_bytes + 1);
    if (input == NULL) abort();
    calibration_fill(one, input);
    if (result == CUDA_SUCCESS && one->input_bytes != 0) result = g->to_device(g->input, input, one->input_bytes);
    free(input);
    if (result == CUDA_SUCCESS) result = g->fill8(g->output, 0xa5, one->output_bytes);
    return result;
}

/* Behind the launch before it, whose end it need not await. */
static CUresult launch_dependent(const struct gpu *g, CUfunction function, const struct calibration_case *one,
                                 void **parameters)
{
    CUlaunchAttribute attribute = { .id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION };
    attribute.value.programmaticStreamSerializationAllowed = 1;
    const CUlaunchConfig config = { .gridDimX = one->grid[0], .gridDimY = one->grid[1], .gridDimZ = one->grid[2],
                                    .blockDimX = one->block[0], .blockDimY = one->block[1],
                                    .blockDimZ = one->block[2], .sharedMemBytes = one->dynamic_shared,
                                    .attrs = &attribute, .numAttrs = 1 };
    return g->launch_with(&config, function, parameters, NULL);
}

CUresult gpu_run(struct gpu *g, CUmodule module, const struct calibration_case *one, uint32_t number, uint8_t *bytes)
{
    char name[16];
    CUfunction function;
    _Alignas(64) uint8_t maps[CALIBRATION_MAPS][128];
    void *parameters[2 + CALIBRATION_MAPS] = { &g->input, &g->output };
    snprintf(name, sizeof name, "c%u", number);
    CUresult result = g->get_function(&function, module, name);
    if (result == CUDA_SUCCESS) result = prepare(g, one);
    for (int i = 0; i < one->maps && result == CUDA_SUCCESS; i++) {
        result = encode(g, &one->map[i], maps[i]);
        parameters[2 + i] = maps[i];
    }
    if (result == CUDA_SUCCESS && one->dynamic_shared > 48 * 1024)
        result = g->set_attribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)one->dynamic_shared);
    if (result == CUDA_SUCCESS)
        result = g->launch(function, one->grid[0], one->grid[1], one->grid[2], one->block[0], one->block[1],
                           one->block[2], one->dynamic_shared, NULL, parameters, NULL);
    for (uint32_t i = 1; i < one->launches && result == CUDA_SUCCESS; i++)
        result = launch_dependent(g, function, one, parameters);
    if (result == CUDA_SUCCESS) result = g->synchronize();
    if (result == CUDA_SUCCESS) result = g->to_host(bytes, g->output, one->output_bytes);
    return result;
}
