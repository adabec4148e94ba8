/* The library as a program meets it: through dlopen, by the names of HIP. */
#include "support/object.h"
#include "test.h"

#include <dlfcn.h>
#include <stdlib.h>

enum { THREADS = 128 };
static const struct { const char *name; uint32_t words; uint32_t word[64]; } kernels[] = {
#include "kernels/golden_checks.h"
};

typedef void *handle;
#define FUNCTIONS(X) \
    X(hipInit, (unsigned)) \
    X(hipRuntimeGetVersion, (int *)) X(hipGetDeviceCount, (int *)) X(hipDeviceGet, (int *, int)) \
        X(hipDeviceGetName, (char *, int, int)) X(hipDeviceTotalMem, (size_t *, int)) X( \
            hipDeviceGetAttribute, (int *, int, int)) X(hipGetDevicePropertiesR0600, \
                                                        (void *, int)) X(hipGetDevice, (int *)) X(hipSetDevice, (int)) \
            X(hipModuleLoadData, (handle *, const void *)) X(hipModuleUnload, (handle)) X( \
                hipModuleGetFunction, (handle *, handle, const char *)) X(hipFuncGetAttribute, (int *, int, handle)) \
                X(hipModuleLaunchKernel, \
                  (handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, handle, void **, \
                   void **)) X(hipMalloc, (void **, size_t)) X(hipFree, (void *)) \
                    X(hipMallocAsync, (void **, size_t, handle)) X(hipFreeAsync, (void *, handle)) X( \
                        hipHostMalloc, (void **, size_t, unsigned)) X(hipHostFree, (void *)) \
                        X(hipMemcpyAsync, (void *, const void *, size_t, int, handle)) X( \
                            hipMemcpyHtoDAsync, \
                            (void *, void *, size_t, handle)) X(hipMemcpyDtoHAsync, (void *, void *, size_t, handle)) \
                            X(hipMemcpyDtoDAsync, (void *, void *, size_t, handle)) \
                                X(hipMemsetD8Async, (void *, unsigned char, size_t, handle)) \
                                    X(hipMemsetD32Async, \
                                      (void *, int, size_t, handle)) X(hipStreamCreateWithFlags, (handle *, unsigned)) \
                                        X(hipStreamDestroy, (handle)) X(hipStreamSynchronize, (handle)) \
                                            X(hipStreamWaitEvent, (handle, handle, unsigned)) \
                                                X(hipStreamIsCapturing, (handle, int *)) X(hipStreamQuery, (handle)) \
                                                    X(hipEventCreateWithFlags, \
                                                      (handle *, unsigned)) X(hipEventRecord, (handle, handle)) \
                                                        X(hipEventSynchronize, (handle)) X(hipEventQuery, (handle)) \
                                                            X(hipEventElapsedTime, (float *, handle, handle)) \
                                                                X(hipEventDestroy, (handle)) X(hipStreamBeginCapture, \
                                                                                               (handle, int)) \
                                                                    X(hipStreamEndCapture, (handle, handle *)) \
                                                                        X(hipGraphInstantiate, \
                                                                          (handle *, handle, handle, char *, size_t)) \
                                                                            X(hipGraphLaunch, (handle, handle)) \
                                                                                X(hipGraphExecDestroy, (handle)) \
                                                                                    X(hipGraphDestroy, (handle)) \
                                                                                        X(hipPointerGetAttributes, \
                                                                                          (void *, const void *))
struct hip {
#define X(name, parameters) int (*name) parameters;
    FUNCTIONS(X)
#undef X
    const char *(*hipGetErrorName)(int), *(*hipGetErrorString)(int);
};

static void *library;
static struct hip hip;

static bool load(struct test *t)
{
    if (library != NULL) return true;
    library = dlopen(GFXSIM_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        FAIL(t, "%s", dlerror());
        return false;
    }
    bool all = true;
#define GET(name) \
    do { \
        void *f = dlsym(library, #name); \
        memcpy(&hip.name, &f, sizeof f); \
        if (f == NULL) all = false, FAIL(t, "no " #name); \
    } while (0);
#define X(name, parameters) GET(name)
    FUNCTIONS(X)
#undef X
    GET(hipGetErrorName)
    GET(hipGetErrorString)
    return all && hip.hipInit(0) == 0;
}

static handle module_of(struct test *t, const char *name, handle *function)
{
    static uint8_t file[OBJECT_MOST];
    handle module = NULL;
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++)
        if (strcmp(kernels[i].name, name) == 0) object_build(file, kernels[i].word, kernels[i].words);
    if (hip.hipModuleLoadData(&module, file) != 0 || hip.hipModuleGetFunction(function, module, "k") != 0)
        FAIL(t, "%s is not loaded", name);
    return module;
}

static void the_device_is_a_gfx950(struct test *t)
{
    int value;
    size_t bytes;
    char name[256];
    uint8_t properties[1472 + 8];
    if (!load(t)) return;
    memset(properties, 0x77, sizeof properties);
    CHECK(t, hip.hipGetDeviceCount(&value) == 0 && value == 1);
    CHECK(t, hip.hipDeviceGet(&value, 0) == 0 && value == 0 && hip.hipDeviceGet(&value, 1) == 101);
    CHECK(t, hip.hipSetDevice(0) == 0 && hip.hipSetDevice(1) == 101 && hip.hipGetDevice(&value) == 0 && value == 0);
    CHECK(t, hip.hipRuntimeGetVersion(&value) == 0 && value >= 60000000);
    CHECK(t, hip.hipDeviceGetName(name, sizeof name, 0) == 0 && strstr(name, "gfxsim") != NULL);
    CHECK(t, hip.hipDeviceTotalMem(&bytes, 0) == 0 && bytes == (size_t)288 << 30);
    static const struct { int attribute, value; } attributes[] = { { 23, 9 }, { 61, 5 }, { 63, 256 }, { 74, 163840 },
                                                                   { 87, 64 }, { 56, 1024 }, { 10002, 163840 } };
    for (size_t i = 0; i < sizeof attributes / sizeof attributes[0]; i++)
        CHECK(t, hip.hipDeviceGetAttribute(&value, attributes[i].attribute, 0) == 0 && value == attributes[i].value);
    CHECK(t, hip.hipDeviceGetAttribute(&value, -1, 0) == 1 && hip.hipDeviceGetAttribute(NULL, 23, 0) == 1);
    CHECK(t, hip.hipGetDevicePropertiesR0600(properties, 0) == 0);
    CHECK(t, strncmp((char *)properties + 1160, "gfx950:", 7) == 0 && properties[1472] == 0x77);
}

/* out[i] = in[i], through memory, streams, events. */
static void a_kernel_runs(struct test *t)
{
    if (!load(t)) return;
    handle f, stream, event[2], module = module_of(t, "load_waited", &f);
    uint32_t in[THREADS + 1], out[THREADS];
    void *a, *b;
    int value;
    float ms = -1;
    for (uint32_t i = 0; i <= THREADS; i++) in[i] = i * i;
    CHECK(t, hip.hipStreamCreateWithFlags(&stream, 1) == 0);
    CHECK(t, hip.hipEventCreateWithFlags(&event[0], 0) == 0 && hip.hipEventCreateWithFlags(&event[1], 0) == 0);
    CHECK(t, hip.hipMalloc(&a, sizeof in) == 0 && hip.hipMallocAsync(&b, sizeof out, stream) == 0);
    CHECK(t, hip.hipMemcpyHtoDAsync(a, in, sizeof in, stream) == 0);
    CHECK(t, hip.hipEventRecord(event[0], stream) == 0);
    void *parameters[] = { &a, &b };
    CHECK(t, hip.hipModuleLaunchKernel(f, 1, 1, 1, THREADS, 1, 1, 0, stream, parameters, NULL) == 0);
    CHECK(t, hip.hipEventRecord(event[1], stream) == 0 && hip.hipStreamWaitEvent(stream, event[1], 0) == 0);
    CHECK(t, hip.hipEventSynchronize(event[1]) == 0 && hip.hipEventQuery(event[0]) == 0);
    CHECK(t, hip.hipEventElapsedTime(&ms, event[0], event[1]) == 0 && ms >= 0);
    CHECK(t, hip.hipMemcpyDtoHAsync(out, b, sizeof out, stream) == 0 && hip.hipStreamSynchronize(stream) == 0);
    CHECK(t, memcmp(in, out, sizeof out) == 0);
    CHECK(t, hip.hipFuncGetAttribute(&value, 0, f) == 0 && value == 256);
    CHECK(t, hip.hipFuncGetAttribute(&value, 1, f) == 0 && value == 4096);
    CHECK(t, hip.hipFreeAsync(b, stream) == 0 && hip.hipFree(a) == 0 && hip.hipFree(a) == 1);
    CHECK(t, hip.hipEventDestroy(event[0]) == 0 && hip.hipEventDestroy(event[1]) == 0
                 && hip.hipEventDestroy(event[1]) == 400);
    CHECK(t, hip.hipStreamDestroy(stream) == 0 && hip.hipStreamQuery(stream) == 400);
    CHECK(t, hip.hipModuleUnload(module) == 0 && hip.hipModuleUnload(module) == 400);
    CHECK(t, hip.hipModuleLaunchKernel(f, 1, 1, 1, THREADS, 1, 1, 0, NULL, parameters, NULL) == 400);
}

static void memory_is_filled_and_copied(struct test *t)
{
    if (!load(t)) return;
    uint8_t *host, out[64];
    void *a, *b;
    struct { int type, device; void *device_pointer, *host_pointer; int managed; unsigned flags; } attributes;
    CHECK(t, hip.hipMalloc(&a, 64) == 0 && hip.hipMalloc(&b, 64) == 0 && hip.hipHostMalloc((void **)&host, 64, 0) == 0);
    CHECK(t, hip.hipMemsetD8Async(a, 0x5a, 64, NULL) == 0 && hip.hipMemsetD32Async(a, 0x01020304, 2, NULL) == 0);
    CHECK(t, hip.hipMemcpyDtoDAsync(b, a, 64, NULL) == 0 && hip.hipMemcpyAsync(host, b, 64, 2, NULL) == 0);
    memset(out, 0x5a, sizeof out);
    for (int i = 0; i < 8; i++) out[i] = (uint8_t)(4 - i % 4);
    CHECK(t, memcmp(host, out, 64) == 0);
    CHECK(t, hip.hipMemcpyAsync(b, a, 65, 3, NULL) == 1 && hip.hipMemcpyAsync(b, a, 64, 7, NULL) == 1);
    CHECK(t, hip.hipMemsetD32Async(a, 0, 17, NULL) == 1);
    CHECK(t, hip.hipPointerGetAttributes(&attributes, (uint8_t *)a + 63) == 0 && attributes.type == 2);
    CHECK(t, hip.hipPointerGetAttributes(&attributes, host) == 0 && attributes.type == 1);
    CHECK(t, hip.hipPointerGetAttributes(&attributes, out) == 1);
    CHECK(t, hip.hipFree(a) == 0 && hip.hipFree(b) == 0 && hip.hipFree(host) == 1 && hip.hipHostFree(host) == 0);
}

static void a_capture_is_replayed(struct test *t)
{
    if (!load(t)) return;
    handle f, stream, graph = NULL, exec = NULL, module = module_of(t, "load_waited", &f);
    uint32_t out[THREADS];
    void *a, *b;
    int status;
    CHECK(t, hip.hipMalloc(&a, 4 * THREADS + 4) == 0 && hip.hipMalloc(&b, 4 * THREADS) == 0);
    CHECK(t, hip.hipStreamCreateWithFlags(&stream, 1) == 0 && hip.hipStreamBeginCapture(NULL, 2) == 401);
    CHECK(t, hip.hipMemsetD32Async(a, 1, THREADS + 1, NULL) == 0);
    CHECK(t, hip.hipStreamBeginCapture(stream, 2) == 0);
    CHECK(t, hip.hipStreamIsCapturing(stream, &status) == 0 && status == 1 && hip.hipStreamSynchronize(stream) == 900);
    void *parameters[] = { &a, &b };
    CHECK(t, hip.hipModuleLaunchKernel(f, 1, 1, 1, THREADS, 1, 1, 0, stream, parameters, NULL) == 0);
    CHECK(t, hip.hipStreamEndCapture(stream, &graph) == 0 && hip.hipStreamEndCapture(stream, &graph) == 903);
    CHECK(t, hip.hipGraphInstantiate(&exec, graph, NULL, NULL, 0) == 0 && hip.hipGraphDestroy(graph) == 0);
    for (uint32_t n = 5; n < 7; n++) {
        CHECK(t, hip.hipMemsetD32Async(a, (int)n, THREADS + 1, NULL) == 0 && hip.hipGraphLaunch(exec, stream) == 0);
        CHECK(t, hip.hipMemcpyAsync(out, b, sizeof out, 4, stream) == 0 && out[0] == n && out[THREADS - 1] == n);
    }
    CHECK(t, hip.hipGraphExecDestroy(exec) == 0 && hip.hipGraphExecDestroy(exec) == 1);
    CHECK(t, hip.hipStreamDestroy(stream) == 0 && hip.hipFree(a) == 0 && hip.hipFree(b) == 0);
    CHECK(t, hip.hipModuleUnload(module) == 0);
}

static void what_cannot_be_launched_is_refused(struct test *t)
{
    if (!load(t)) return;
    handle f, none, module = module_of(t, "load_waited", &f);
    void *a = NULL, *parameters[] = { &a, &a };
    static const struct { unsigned g[3], b[3], lds; int code; } launches[] = {
        { { 0, 1, 1 }, { 64, 1, 1 }, 0, 1 },       { { 1, 0, 1 }, { 64, 1, 1 }, 0, 1 },
        { { 1, 65537, 1 }, { 64, 1, 1 }, 0, 1 },   { { 1, 1, 1 }, { 0, 1, 1 }, 0, 9 },
        { { 1u << 31, 1, 1 }, { 64, 1, 1 }, 0, 1 }, { { 1u << 30, 1, 1 }, { 64, 1, 1 }, 0, 9 },
        { { 1, 1, 1 }, { 1024, 2, 1 }, 0, 1 },     { { 1, 1, 1 }, { 257, 1, 1 }, 0, 719 },
        { { 1, 1, 1 }, { 64, 1, 1 }, 163840, 1 } };
    for (size_t i = 0; i < sizeof launches / sizeof launches[0]; i++) {
        const int code =
            hip.hipModuleLaunchKernel(f, launches[i].g[0], launches[i].g[1], launches[i].g[2], launches[i].b[0],
                                      launches[i].b[1], launches[i].b[2], launches[i].lds, NULL, parameters, NULL);
        if (code != launches[i].code) FAIL(t, "launch %zu gives %d, not %d", i, code, launches[i].code);
    }
    CHECK(t, hip.hipModuleLaunchKernel(f, 1, 1, 1, 64, 1, 1, 0, NULL, parameters, parameters) == 1);
    CHECK(t, hip.hipModuleLaunchKernel(NULL, 1, 1, 1, 64, 1, 1, 0, NULL, parameters, NULL) == 200);
    CHECK(t, hip.hipModuleGetFunction(&none, module, "j") == 500);
    CHECK(t, hip.hipModuleLoadData(&none, "no code object, and long enough for an ELF header to be read from it..")
                 == 200);
    static uint8_t other[OBJECT_MOST];
    object_build(other, kernels[0].word, kernels[0].words);
    other[48] = 0x4c;                                                     /* gfx942 */
    CHECK(t, hip.hipModuleLoadData(&none, other) == 209);
    CHECK(t, hip.hipModuleUnload(module) == 0);
    CHECK(t, strcmp(hip.hipGetErrorName(209), "hipErrorNoBinaryForGpu") == 0 && hip.hipGetErrorString(-5) != NULL);
}

/* Last: a fault stays. */
static void a_fault_is_given_by_later_calls(struct test *t)
{
    if (!load(t)) return;
    handle f, module = module_of(t, "outside_of_memory", &f);
    void *a, *b;
    CHECK(t, module != NULL && hip.hipMalloc(&a, 4 * THREADS) == 0 && hip.hipMalloc(&b, 4 * THREADS) == 0);
    void *parameters[] = { &a, &b };
    CHECK(t, hip.hipModuleLaunchKernel(f, 1, 1, 1, THREADS, 1, 1, 0, NULL, parameters, NULL) == 0);
    CHECK(t, hip.hipStreamSynchronize(NULL) == 700 && hip.hipMalloc(&a, 4) == 700);
}

/* 2^31 - 1 workgroups: a sentence instead of days. */
static void too_many_workgroups_end_with_a_sentence(struct test *t)
{
    if (!load(t)) return;
    handle f, module = module_of(t, "load_waited", &f);
    void *a, *parameters[] = { &a, &a };
    CHECK(t, module != NULL && hip.hipMalloc(&a, 4 * THREADS) == 0);
    CHECK(t, hip.hipModuleLaunchKernel(f, INT32_MAX, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL) == 0);
    CHECK(t, hip.hipStreamSynchronize(NULL) == 702);
}

int main(int argc, char **argv)
{
    setenv("GFXSIM_QUIET", "1", 1);
    static const struct test_case cases[] = { TEST(the_device_is_a_gfx950),
                                              TEST(a_kernel_runs),
                                              TEST(memory_is_filled_and_copied),
                                              TEST(a_capture_is_replayed),
                                              TEST(what_cannot_be_launched_is_refused),
                                              TEST(a_fault_is_given_by_later_calls) };
    static const struct test_case endless[] = { TEST(too_many_workgroups_end_with_a_sentence) };
    if (argc > 1 && strcmp(argv[1], "--endless") == 0) return TEST_MAIN(1, argv, endless);
    return TEST_MAIN(argc, argv, cases);
}
