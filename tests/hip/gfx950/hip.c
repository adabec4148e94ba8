#include "hip.h"

#include <dlfcn.h>
#include <stdlib.h>

typedef void *handle;
#define FUNCTIONS(X) \
    X(hipInit, (unsigned)) \
    X(hipModuleLoadData, (handle *, const void *)) \
    X(hipModuleGetFunction, (handle *, handle, const char *)) \
    X(hipModuleLaunchKernel, \
      (handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, handle, void **, void **)) \
    X(hipDeviceSynchronize, (void)) \
    X(hipMalloc, (void **, size_t)) \
    X(hipFree, (void *)) \
    X(hipMemcpyHtoDAsync, (void *, void *, size_t, handle)) \
    X(hipMemcpyDtoHAsync, (void *, void *, size_t, handle))

static struct {
    bool open;
#define X(name, parameters) int(*name) parameters;
    FUNCTIONS(X)
#undef X
} hip;

static struct {
    void *of[64];
    int count;
} memory;
static struct {
    char file[256];
    handle module;
} modules[256];
static int module_count;

bool hip_open(struct test *t)
{
    if (hip.open) return true;
    void *library = dlopen(GFXSIM_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        FAIL(t, "%s", dlerror());
        return false;
    }
#define X(name, parameters) \
    void *name = dlsym(library, #name); \
    memcpy(&hip.name, &name, sizeof name); \
    if (name == NULL) { \
        FAIL(t, "%s has no " #name, GFXSIM_LIBRARY); \
        return false; \
    }
    FUNCTIONS(X)
#undef X
    hip.open = hip.hipInit(0) == 0;
    if (!hip.open) FAIL(t, "hipInit failed");
    return hip.open;
}

void *hip_memory(struct test *t, const void *bytes, size_t count)
{
    void *at = NULL;
    if (memory.count == 64 || hip.hipMalloc(&at, count) != 0) {
        FAIL(t, "no device memory of %zu bytes", count);
        return NULL;
    }
    memory.of[memory.count++] = at;
    if (bytes != NULL && hip.hipMemcpyHtoDAsync(at, (void *)bytes, count, NULL) != 0) FAIL(t, "a copy failed");
    return at;
}

bool hip_read(struct test *t, void *to, const void *from, size_t count)
{
    const bool copied = hip.hipMemcpyDtoHAsync(to, (void *)from, count, NULL) == 0;
    if (!copied) FAIL(t, "a copy failed");
    return copied;
}

void hip_free_all(void)
{
    while (memory.count > 0) hip.hipFree(memory.of[--memory.count]);
}

static void *contents(const char *file)
{
    FILE *f = fopen(file, "rb");
    if (f == NULL) return NULL;
    fseek(f, 0, SEEK_END);
    const long bytes = ftell(f);
    rewind(f);
    void *data = bytes > 0 ? malloc((size_t)bytes) : NULL;
    if (data != NULL && fread(data, 1, (size_t)bytes, f) != (size_t)bytes) {
        free(data);
        data = NULL;
    }
    fclose(f);
    return data;
}

static handle module_of(struct test *t, const char *file)
{
    for (int i = 0; i < module_count; i++)
        if (strcmp(modules[i].file, file) == 0) return modules[i].module;
    void *data = contents(file);
    handle module = NULL;
    if (data == NULL || hip.hipModuleLoadData(&module, data) != 0) FAIL(t, "%s cannot be loaded", file);
    free(data);
    if (module != NULL && module_count < 256) {
        snprintf(modules[module_count].file, sizeof modules[0].file, "%s", file);
        modules[module_count++].module = module;
    }
    return module;
}

bool hip_run(struct test *t, const char *file, const char *name, uint32_t groups, uint32_t threads, void *parameters)
{
    handle module = module_of(t, file), function = NULL;
    if (module == NULL) return false;
    if (hip.hipModuleGetFunction(&function, module, name) != 0) {
        FAIL(t, "%s has no kernel %s", file, name);
        return false;
    }
    void *arguments[] = { parameters, &groups };      /* GEMM kernels take the first alone */
    if (hip.hipModuleLaunchKernel(function, groups, 1, 1, threads, 1, 1, 0, NULL, arguments, NULL) != 0
        || hip.hipDeviceSynchronize() != 0) {
        FAIL(t, "%s failed: gfxsim's report says why", name);
        return false;
    }
    return true;
}
