#include "kernel_api.h"

#include <dlfcn.h>
#include <stdlib.h>

static const struct { const char *name; size_t at;
} names[] = {
#define F(field, name) { name, offsetof(struct api, field) }
    F(init, "cuInit"),
    F(device_get, "cuDeviceGet"),
    F(primary_retain, "cuDevicePrimaryCtxRetain"),
    F(set_current, "cuCtxSetCurrent"),
    F(synchronize, "cuCtxSynchronize"),
    F(primary_reset, "cuDevicePrimaryCtxReset_v2"),
    F(mem_alloc, "cuMemAlloc_v2"),
    F(mem_free, "cuMemFree_v2"),
    F(to_device, "cuMemcpyHtoD_v2"),
    F(to_host, "cuMemcpyDtoH_v2"),
    F(memset8, "cuMemsetD8_v2"),
    F(module_load, "cuModuleLoad"),
    F(module_load_data, "cuModuleLoadData"),
    F(module_unload, "cuModuleUnload"),
    F(get_function, "cuModuleGetFunction"),
    F(get_global, "cuModuleGetGlobal_v2"),
    F(launch, "cuLaunchKernel"),
    F(error_name, "cuGetErrorName"),
    F(set_attribute, "cuFuncSetAttribute"),
    F(encode_tiled, "cuTensorMapEncodeTiled"),
#undef F
};

const struct api *api_get(struct test *t)
{
    static struct api api;
    static bool ready;
    if (ready) return &api;
    void *library = dlopen(CUDASIM_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        FAIL(t, "%s", dlerror());
        return NULL;
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        void *found = dlsym(library, names[i].name);
        if (found == NULL) FAIL(t, "%s is not exported", names[i].name);
        memcpy((char *)&api + names[i].at, &found, sizeof found);
    }
    CUcontext context;
    OK(t, api.init(0));
    OK(t, api.primary_retain(&context, 0));
    OK(t, api.set_current(context));
    ready = true;
    return &api;
}

CUdeviceptr api_buffer(struct test *t, const void *bytes, size_t size)
{
    const struct api *api = api_get(t);
    CUdeviceptr pointer = 0;
    OK(t, api->mem_alloc(&pointer, size));
    if (bytes != NULL) OK(t, api->to_device(pointer, bytes, size));
    else OK(t, api->memset8(pointer, 0, size));
    return pointer;
}

void api_read(struct test *t, CUdeviceptr from, void *bytes, size_t size)
{
    OK(t, api_get(t)->to_host(bytes, from, size));
}

void api_free(struct test *t, CUdeviceptr buffer)
{
    if (buffer != 0) OK(t, api_get(t)->mem_free(buffer));
}

struct api_map api_matrix_map(struct test *t, CUdeviceptr at, int type, int swizzle, const uint64_t extent[2],
                              uint64_t pitch, uint32_t box_columns, uint32_t box_rows)
{
    struct api_map map = { .bytes = { 0 } };
    OK(t, api_get(t)->encode_tiled(&map, type, 2, (void *)(uintptr_t)at, extent, &pitch,
                                   (uint32_t[]){ box_columns, box_rows }, (uint32_t[]){ 1, 1 }, 0, swizzle, 0, 0));
    return map;
}

CUfunction api_function(struct test *t, const char *file, const char *entry, uint32_t shared)
{
    enum { MODULES = 8, MAXIMUM_DYNAMIC_SHARED = 8 };
    static struct { char file[1024]; CUmodule module; } loaded[MODULES];
    const struct api *api = api_get(t);
    CUfunction f = NULL;
    int i = 0;
    while (i < MODULES - 1 && loaded[i].module != NULL && strcmp(loaded[i].file, file) != 0) i++;
    if (loaded[i].module == NULL) OK(t, api->module_load(&loaded[i].module, file));
    if (loaded[i].module == NULL) return NULL;
    snprintf(loaded[i].file, sizeof loaded[i].file, "%s", file);
    OK(t, api->get_function(&f, loaded[i].module, entry));
    if (f != NULL) OK(t, api->set_attribute(f, MAXIMUM_DYNAMIC_SHARED, (int)shared));
    return f;
}

int api_begin(int argc, char **argv, const char *device)
{
    int kept = 1;
    setenv("CUDASIM_DEVICE", device, 0);
    for (int i = 1; i < argc; i++) {
        if (i + 1 < argc && strcmp(argv[i], "--schedules") == 0) setenv("CUDASIM_SCHEDULES", argv[++i], 1);
        else argv[kept++] = argv[i];
    }
    return kept;
}
