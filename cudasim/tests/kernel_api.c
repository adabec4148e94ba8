#include "kernel_api.h"

#include <dlfcn.h>

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

void api_read(struct test *t, CUdeviceptr from, void *bytes, size_t size) { OK(t, api_get(t)->to_host(bytes, from, size)); }
