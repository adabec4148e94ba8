/* See calls.h. */
#include "calls.h"
#include "gpu.h"

#include <dlfcn.h>
#include <stdlib.h>

static const char *const symbols[] = { "cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRelease_v2",
                                       "cuCtxPushCurrent_v2", "cuCtxPopCurrent_v2", "cuStreamCreate",
                                       "cuStreamDestroy_v2", "cuStreamSynchronize", "cuStreamBeginCapture_v2",
                                       "cuStreamEndCapture", "cuGraphInstantiateWithFlags", "cuGraphLaunch",
                                       "cuGraphExecDestroy", "cuGraphDestroy", "cuMemsetD8Async",
                                       "cuMemcpyDtoDAsync_v2", "cuModuleLoad", "cuModuleUnload", "cuModuleGetFunction",
                                       "cuLaunchKernel" };

bool calls_open(struct test *t, struct calls *c, bool kernels)
{
    const char *path = getenv("BLOCKSCALE_LIBCUDA");
    void *library = dlopen(path != NULL ? path : "libcuda.so.1", RTLD_NOW);
    memset(c, 0, sizeof *c);
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
        void *found = library != NULL ? dlsym(library, symbols[i]) : NULL;
        if (found == NULL) {
            FAIL(t, "the driver lacks %s", symbols[i]);
            return false;
        }
        memcpy((char *)c + i * sizeof found, &found, sizeof found);
    }
    bool good = c->cuDevicePrimaryCtxRetain(&c->primary, 0) == 0 && c->cuCtxPushCurrent(c->primary) == 0;
    if (good && kernels)
        good = c->cuModuleLoad(&c->module, "tests/check.fatbin") == 0
               && c->cuModuleGetFunction(&c->fill, c->module, "check_fill") == 0
               && c->cuModuleGetFunction(&c->differences, c->module, "check_differences") == 0
               && c->cuModuleGetFunction(&c->products, c->module, "check_products") == 0;
    if (!good) FAIL(t, "no primary context, or no tests/check.fatbin in the build folder, where tests are run");
    return good;
}

void calls_close(struct calls *c)
{
    void *popped;
    if (c->module != NULL) c->cuModuleUnload(c->module);
    c->cuCtxPopCurrent(&popped);
    c->cuDevicePrimaryCtxRelease(0);
}

bool calls_launch(const struct calls *c, void *function, void *stream, void **parameters)
{
    return c->cuLaunchKernel(function, is_simulated() ? 4 : 528, 1, 1, 256, 1, 1, 0, stream, parameters, NULL) == 0;
}
