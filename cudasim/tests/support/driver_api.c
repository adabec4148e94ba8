#include "driver_api.h"

#include <dlfcn.h>
#include <stdlib.h>

static const char *library_name(void)
{
    const char *name = getenv("CUDASIM_TEST_LIBRARY");
    return name == NULL || *name == '\0' ? CUDASIM_LIBRARY : name;
}

bool driver_is_simulated(void) { return strcmp(library_name(), CUDASIM_LIBRARY) == 0; }

void *driver_symbol(struct test *t, const char *name)
{
    static void *library;
    if (library == NULL) library = dlopen(library_name(), RTLD_NOW | RTLD_LOCAL);
    void *found = library == NULL ? NULL : dlsym(library, name);
    if (found == NULL) FAIL(t, "%s: %s", name, dlerror());
    return found;
}

static void call(struct test *t, const char *name, void *function, size_t size)
{
    void *found = driver_symbol(t, name);
    memcpy(function, &found, size);
}

static CUcontext context;

void driver_begin(struct test *t)
{
    CUresult (*init)(unsigned), (*retain)(CUcontext *, CUdevice), (*set_current)(CUcontext);
    call(t, "cuInit", &init, sizeof init);
    call(t, "cuDevicePrimaryCtxRetain", &retain, sizeof retain);
    call(t, "cuCtxSetCurrent", &set_current, sizeof set_current);
    OK(t, init(0));
    if (context == NULL) OK(t, retain(&context, 0));
    OK(t, set_current(context));
}

void driver_reset(struct test *t)
{
    CUresult (*reset)(CUdevice), (*retain)(CUcontext *, CUdevice), (*set_current)(CUcontext);
    call(t, "cuDevicePrimaryCtxReset_v2", &reset, sizeof reset);
    call(t, "cuDevicePrimaryCtxRetain", &retain, sizeof retain);
    call(t, "cuCtxSetCurrent", &set_current, sizeof set_current);
    OK(t, reset(0));
    OK(t, retain(&context, 0));
    OK(t, set_current(context));
}
