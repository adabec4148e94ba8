/* Wrong calls give CUDA's codes. */
#include <stdlib.h>

#include "tests/support/driver_api.h"

typedef const CUlaunchConfig *config_pointer;

#define CALLS(X) \
    X(cuInit, (unsigned)) \
    X(cuDriverGetVersion, (int *)) \
    X(cuDeviceGet, (CUdevice *, int)) X(cuDeviceGetCount, (int *)) X(cuDeviceGetAttribute, (int *, int, CUdevice)) X( \
        cuDeviceGetName, (char *, int, CUdevice)) X(cuDeviceTotalMem_v2, (size_t *, CUdevice)) \
        X(cuCtxCreate_v2, (CUcontext *, unsigned, CUdevice)) X(cuCtxDestroy_v2, (CUcontext)) X( \
            cuCtxSetCurrent, (CUcontext)) X(cuCtxGetCurrent, (CUcontext *)) X(cuCtxPopCurrent_v2, (CUcontext *)) \
            X(cuCtxPushCurrent_v2, (CUcontext)) X(cuCtxSynchronize, (void)) X(cuCtxGetLimit, (size_t *, int)) X( \
                cuCtxSetFlags, (unsigned)) X(cuMemAlloc_v2, (CUdeviceptr *, size_t)) X(cuMemFree_v2, (CUdeviceptr)) \
                X(cuMemcpyHtoD_v2, (CUdeviceptr, const void *, size_t)) X(cuMemcpyDtoH_v2, \
                                                                          (void *, CUdeviceptr, size_t)) \
                    X(cuMemcpyDtoD_v2, (CUdeviceptr, CUdeviceptr, size_t)) X( \
                        cuMemsetD32_v2, \
                        (CUdeviceptr, unsigned, size_t)) X(cuMemsetD16_v2, (CUdeviceptr, unsigned short, size_t)) \
                        X(cuMemHostAlloc, (void **, size_t, unsigned)) X(cuMemFreeHost, (void *)) X( \
                            cuModuleLoadData, \
                            (CUmodule *, const void *)) X(cuModuleLoad, (CUmodule *, const char *)) \
                            X(cuModuleUnload, \
                              (CUmodule)) X(cuModuleGetFunction, (CUfunction *, CUmodule, const char *)) \
                                X(cuModuleGetGlobal_v2, (CUdeviceptr *, size_t *, CUmodule, const char *)) X( \
                                    cuFuncGetAttribute, \
                                    (int *, int, CUfunction)) X(cuFuncSetAttribute, (CUfunction, int, int)) \
                                    X(cuStreamCreate, (CUstream *, unsigned)) X(cuStreamDestroy_v2, (CUstream)) X( \
                                        cuStreamSynchronize, \
                                        (CUstream)) X(cuStreamWaitEvent, (CUstream, CUevent, unsigned)) \
                                        X(cuEventCreate, \
                                          (CUevent *, unsigned)) X(cuEventRecord, (CUevent, CUstream)) \
                                            X(cuEventSynchronize, (CUevent)) X(cuEventDestroy_v2, (CUevent)) \
                                                X(cuEventElapsedTime_v2, (float *, CUevent, CUevent)) X( \
                                                    cuGraphCreate, (CUgraph *, unsigned)) X(cuGraphDestroy, (CUgraph)) \
                                                    X(cuGraphLaunch, (CUgraphExec, CUstream)) \
                                                        X(cuGetErrorName, (CUresult, const char **)) \
                                                            X(cuLaunchHostFunc, (CUstream, CUhostFn *, void *)) \
                                                                X(cuLaunchKernelEx, \
                                                                  (config_pointer, CUfunction, void **, void **)) \
                                                                    X(cuLaunchKernel, \
                                                                      (CUfunction, unsigned, unsigned, unsigned, \
                                                                       unsigned, unsigned, unsigned, unsigned, \
                                                                       CUstream, void **, void **))
DRIVER_CALLS(CALLS)

/* k(p): writes a word; bounded: at most 64 threads; fixed: exactly 32; stop, far, odd: fault */
static const char text[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n.visible .global .u32 g[4];\n"
    ".visible .entry k(.param .u64 p)\n{\n.reg .b64 %a; .reg .b32 %v;\nld.param.u64 %a, [p]; mov.u32 %v, 7;\n"
    "st.relaxed.gpu.global.u32 [%a], %v; ret;\n}\n"
    ".visible .entry bounded() .maxntid 64, 1, 1\n{\nret;\n}\n.visible .entry fixed() .reqntid 32, 1, 1\n{\nret;\n}\n"
    ".visible .entry stop()\n{\ntrap;\n}\n.visible .entry far()\n{\n.reg .b64 %a; .reg .b32 %v;\nmov.u64 %a, 64; "
    "ld.global.u32 %v, [%a];\n"
    "st.global.u32 [%a], %v; ret;\n}\n.visible .entry odd(.param .u64 p)\n{\n.reg .b64 %a; .reg .b32 %v;\n"
    "ld.param.u64 %a, [p];\n"
    "mov.u32 %v, 7; st.global.u32 [%a+2], %v; ret;\n}\n";

static CUmodule module;
static CUfunction k;
static CUdeviceptr cell;

static void begin(struct test *t)
{
    driver_begin(t);
    if (cuInit == NULL) find_calls(t);
    if (module != NULL) return;
    OK(t, cuModuleLoadData(&module, text));
    OK(t, cuModuleGetFunction(&k, module, "k"));
    OK(t, cuMemAlloc_v2(&cell, 64));
}

/* Runs first. */
static void before_init(struct test *t)
{
    find_calls(t);
    int number;
    size_t size;
    CUdeviceptr p;
    CUstream s;
    OK(t, cuDriverGetVersion(&number));
    GIVES(t, CUDA_ERROR_INVALID_VALUE, cuDriverGetVersion(NULL));
    GIVES(t, CUDA_ERROR_NOT_INITIALIZED, cuDeviceGetCount(&number));
    GIVES(t, CUDA_ERROR_NOT_INITIALIZED, cuDeviceTotalMem_v2(&size, 0));
    GIVES(t, CUDA_ERROR_NOT_INITIALIZED, cuMemAlloc_v2(&p, 4));
    GIVES(t, CUDA_ERROR_NOT_INITIALIZED, cuStreamCreate(&s, 0));
    GIVES(t, CUDA_ERROR_NOT_INITIALIZED, cuCtxSynchronize());
    GIVES(t, CUDA_ERROR_INVALID_VALUE, cuInit(1));
    OK(t, cuInit(0));
    GIVES(t, CUDA_ERROR_INVALID_CONTEXT, cuMemAlloc_v2(&p, 4));
    GIVES(t, CUDA_ERROR_INVALID_CONTEXT, cuCtxSynchronize());
    GIVES(t, CUDA_ERROR_INVALID_CONTEXT, cuStreamCreate(&s, 0));
}

static void devices_and_contexts(struct test *t)
{
    begin(t);
    int number;
    char name[8];
    size_t size;
    CUcontext primary, own, popped;
    CUdevice device;
    OK(t, cuDeviceGetCount(&number));
    GIVES(t, CUDA_ERROR_INVALID_DEVICE, cuDeviceGet(&device, number));
    GIVES(t, CUDA_ERROR_INVALID_DEVICE, cuDeviceGet(&device, -1));
    GIVES(t, CUDA_ERROR_INVALID_VALUE, cuDeviceGet(NULL, 0));
    GIVES(t, CUDA_ERROR_INVALID_VALUE, cuDeviceGetCount(NULL));
    GIVES(t, CUDA_ERROR_INVALID_VALUE, cuDeviceGetAttribute(&number, 0, 0));
    GIVES(t, CUDA_ERROR_INVALID_VALUE, cuDeviceGetAttribute(&number, 100000, 0));
    GIVES(t, CUDA_ERROR_INVALID_VALUE, cuDeviceGetAttribute(NULL, 1, 0));
    GIVES(t, CUDA_ERROR_INVALID_DEVICE, cuDeviceGetAttribute(&number, 1, 99));
    GIVES(t, CUDA_ERROR_INVALID_VALUE, cuDeviceGetName(NULL, 4, 0));
    OK(t, cuDeviceGetName(name, sizeof name, 0));
    GIVES(t, CUDA_ERROR_INVALID_DEVICE, cuDeviceTotalMem_v2(&size, 99));
    OK(t, cuCtxGetCurrent(&primary));
    GIVES(t, CUDA_ERROR_INVALID_VALUE, cuCtxGetCurrent(NULL));
    GIVES(t, CUDA_ERROR_INVALID_DEVICE, cuCtxCreate_v2(&own, 0, 99));
    GIVES(t, CUDA_ERROR_INVALID_VALUE, cuCtxCreate_v2(NULL, 0, 0));
    GIVES(t, CUDA_ERROR_INVALID_VALUE, cuCtxCreate_v2(&own, 3, 0));
    OK(t, cuCtxCreate_v2(&own, 0, 0));
    /* What belongs to one context is not known in another. */
    GIVES(t, CUDA_ERROR_INVALID_HANDLE, cuLaunchKernel(k, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){ &cell }, NULL));
    OK(t, cuCtxPopCurrent_v2(&popped));
    CHECK(t, popped == own);
    OK(t, cuCtxPushCurrent_v2(own));
    OK(t, cuCtxDestroy_v2(own));
    OK(t, cuCtxSetCurrent(primary));
    GIVES(t, CUDA_ERROR_INVALID_VALUE, cuCtxGetLimit(&size, 999));
    GIVES(t, CUDA_ERROR_INVALID_VALUE, cuCtxSetFlags(0x10000));
    if (driver_is_simulated()) GIVES(t, CUDA_ERROR_INVALID_CONTEXT, cuCtxDestroy_v2(own));
    if (driver_is_simulated()) GIVES(t, CUDA_ERROR_INVALID_CONTEXT, cuCtxSetCurrent((CUcontext)(uintptr_t)0x1234));
}

static void memory(struct test *t)
{
    begin(t);
    CUdeviceptr p;
    char bytes[64] = { 0 };
    void *host;
    GIVES(t, CUDA_ERROR_INVALID_VALUE, cuMemAlloc_v2(NULL, 4));
    GIVES(t, CUDA_ERROR_INVALID_VALUE, cuMemAlloc_v2(&p, 0));
    GIVES(t, CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc_v2(&p, (size_t)1 << 50));
    OK(t, cuMemFree_v2(0));
    GIVES(t, CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(0x1234));
    GIVES(t, CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD_v2(0, bytes, 4));
    GIVES(t, CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD_v2(cell, NULL, 4));
    GIVES(t, CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH_v2(NULL, cell, 4));
    OK(t, cuMemcpyDtoH_v2(bytes, cell, 0));
    GIVES(t, CUDA_ERROR_INVALID_VALUE, cuMemsetD32_v2(cell + 2, 0, 1));
    GIVES(t, CUDA_ERROR_INVALID_VALUE, cuMemsetD16_v2(cell + 1, 0, 1));
    GIVES(t, CUDA_ERROR_INVALID_VALUE, cuMemHostAlloc(NULL, 4, 0));
    GIVES(t, CUDA_ERROR_INVALID_VALUE, cuMemHostAlloc(&host, 4, 0x100));
    GIVES(t, CUDA_ERROR_INVALID_VALUE, cuMemFreeHost(bytes));
    if (!driver_is_simulated()) return;   /* there an allocation has room behind it */
    GIVES(t, CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(cell + 4));
    GIVES(t, CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD_v2(cell, bytes, 65));
    GIVES(t, CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoD_v2(cell + 60, cell, 8));
    GIVES(t, CUDA_ERROR_INVALID_VALUE, cuMemsetD32_v2(cell, 0, 17));
}

static void modules_and_functions(struct test *t)
{
    begin(t);
    CUmodule m;
    CUfunction f;
    CUdeviceptr p;
    size_t size;
    int value;
    GIVES(t, CUDA_ERROR_INVALID_VALUE, cuModuleLoadData(NULL, text));
    GIVES(t, CUDA_ERROR_INVALID_VALUE, cuModuleLoadData(&m, NULL));
    GIVES(t, CUDA_ERROR_FILE_NOT_FOUND, cuModuleLoad(&m, "/there is no such file"));
    GIVES(t, CUDA_ERROR_INVALID_PTX,
          cuModuleLoadData(&m, ".version 8.0\n.target sm_90\n.address_size 64\n.entry k() { nonsense; }\n"));
    GIVES(t, CUDA_ERROR_NOT_FOUND, cuModuleGetFunction(&f, module, "nobody"));
    GIVES(t, CUDA_ERROR_INVALID_VALUE, cuModuleGetFunction(NULL, module, "k"));
    GIVES(t, CUDA_ERROR_INVALID_VALUE, cuModuleGetFunction(&f, module, NULL));
    GIVES(t, CUDA_ERROR_NOT_FOUND, cuModuleGetGlobal_v2(&p, &size, module, "nobody"));
    OK(t, cuModuleGetGlobal_v2(&p, &size, module, "g"));
    CHECK(t, size == 16);
    OK(t, cuModuleGetGlobal_v2(NULL, &size, module, "g"));
    GIVES(t, CUDA_ERROR_INVALID_VALUE, cuFuncGetAttribute(NULL, 0, k));
    GIVES(t, CUDA_ERROR_INVALID_VALUE, cuFuncGetAttribute(&value, 9999, k));
    GIVES(t, CUDA_ERROR_INVALID_VALUE, cuFuncSetAttribute(k, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 232449));
    GIVES(t, CUDA_ERROR_INVALID_VALUE, cuFuncSetAttribute(k, CU_FUNC_ATTRIBUTE_NUM_REGS, 1));
    GIVES(t, CUDA_ERROR_INVALID_VALUE, cuFuncSetAttribute(k, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 101));
    GIVES(t, CUDA_ERROR_INVALID_HANDLE, cuFuncGetAttribute(&value, 0, NULL));
    GIVES(t, CUDA_ERROR_INVALID_HANDLE, cuModuleUnload(NULL));
    if (!driver_is_simulated()) return;
    OK(t, cuModuleLoadData(&m, text));
    OK(t, cuModuleGetFunction(&f, m, "k"));
    OK(t, cuModuleUnload(m));
    GIVES(t, CUDA_ERROR_INVALID_HANDLE, cuModuleUnload(m));
    GIVES(t, CUDA_ERROR_INVALID_HANDLE, cuModuleGetFunction(&f, m, "k"));
    GIVES(t, CUDA_ERROR_INVALID_HANDLE, cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){ &cell }, NULL));
    GIVES(t, CUDA_ERROR_INVALID_HANDLE, cuFuncGetAttribute(&value, 0, (CUfunction)(void *)module));
    GIVES(t, CUDA_ERROR_NO_BINARY_FOR_GPU, cuModuleLoadData(&m, "\177ELF\2\1\1"));
}

static CUresult launch(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                       unsigned shared)
{
    return cuLaunchKernel(f, gx, gy, gz, bx, by, bz, shared, NULL, (void *[]){ &cell }, NULL);
}

static CUresult launch_cluster(CUfunction f, unsigned grid, unsigned cluster)
{
    CUlaunchAttribute a = { .id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, .value.clusterDim = { cluster, 1, 1 } };
    const CUlaunchConfig c = { .gridDimX = grid,
                               .gridDimY = 1,
                               .gridDimZ = 1,
                               .blockDimX = 32,
                               .blockDimY = 1,
                               .blockDimZ = 1,
                               .attrs = &a,
                               .numAttrs = 1 };
    return cuLaunchKernelEx(&c, f, (void *[]){ &cell }, NULL);
}

static CUresult launch_cooperative(CUfunction f, unsigned grid)
{
    CUlaunchAttribute a = { .id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.cooperative = 1 };
    const CUlaunchConfig c = { .gridDimX = grid,
                               .gridDimY = 1,
                               .gridDimZ = 1,
                               .blockDimX = 1024,
                               .blockDimY = 1,
                               .blockDimZ = 1,
                               .attrs = &a,
                               .numAttrs = 1 };
    return cuLaunchKernelEx(&c, f, (void *[]){ &cell }, NULL);
}

static void launches(struct test *t)
{
    begin(t);
    CUfunction bounded, fixed;
    OK(t, cuModuleGetFunction(&bounded, module, "bounded"));
    OK(t, cuModuleGetFunction(&fixed, module, "fixed"));
    static const struct { unsigned grid[3], block[3], shared; CUresult code; } rows[] = {
        { { 1, 1, 1 }, { 1, 1, 1 }, 0, CUDA_SUCCESS },
          { { 0, 1, 1 }, { 1, 1, 1 }, 0, CUDA_ERROR_INVALID_VALUE },
        { { 1, 1, 1 }, { 0, 1, 1 }, 0, CUDA_ERROR_INVALID_VALUE },
          { { 1, 1, 1 }, { 1025, 1, 1 }, 0, CUDA_ERROR_INVALID_VALUE },
        { { 1, 1, 1 }, { 1, 1, 65 }, 0, CUDA_ERROR_INVALID_VALUE },
          { { 1, 1, 1 }, { 32, 33, 1 }, 0, CUDA_ERROR_INVALID_VALUE },
        { { 1, 1, 1 }, { 1024, 1, 1 }, 0, CUDA_SUCCESS },
          { { 1, 65536, 1 }, { 1, 1, 1 }, 0, CUDA_ERROR_INVALID_VALUE },
        { { 1, 1, 65536 }, { 1, 1, 1 }, 0, CUDA_ERROR_INVALID_VALUE },
        { { 0x80000000u, 1, 1 }, { 1, 1, 1 }, 0, CUDA_ERROR_INVALID_VALUE },
        { { 1, 1, 1 }, { 1, 1, 1 }, 49152, CUDA_SUCCESS },
          { { 1, 1, 1 }, { 1, 1, 1 }, 49153, CUDA_ERROR_INVALID_VALUE },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const unsigned *g = rows[i].grid, *b = rows[i].block;
        const CUresult got = launch(k, g[0], g[1], g[2], b[0], b[1], b[2], rows[i].shared);
        if (got != rows[i].code) FAIL(t, "launch %zu gives %d, not %d", i, (int)got, (int)rows[i].code);
    }
    OK(t, launch(bounded, 1, 1, 1, 64, 1, 1, 0));
    GIVES(t, CUDA_ERROR_INVALID_VALUE, launch(bounded, 1, 1, 1, 65, 1, 1, 0));
    OK(t, launch(fixed, 1, 1, 1, 32, 1, 1, 0));
    GIVES(t, CUDA_ERROR_INVALID_VALUE, launch(fixed, 1, 1, 1, 16, 1, 1, 0));
    OK(t, cuFuncSetAttribute(k, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 232448));
    OK(t, launch(k, 1, 1, 1, 1, 1, 1, 232448));
    OK(t, launch_cluster(k, 8, 8));
    GIVES(t, CUDA_ERROR_INVALID_CLUSTER_SIZE, launch_cluster(k, 9, 8));
    GIVES(t, CUDA_ERROR_INVALID_CLUSTER_SIZE, launch_cluster(k, 16, 16));
    OK(t, cuFuncSetAttribute(k, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
    OK(t, launch_cluster(k, 16, 16));
    GIVES(t, CUDA_ERROR_INVALID_CLUSTER_SIZE, launch_cluster(k, 32, 32));
    OK(t, launch_cooperative(k, 4));
    GIVES(t, CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, launch_cooperative(k, 100000));
    GIVES(t, CUDA_ERROR_INVALID_HANDLE, launch(NULL, 1, 1, 1, 1, 1, 1, 0));
    GIVES(t, CUDA_ERROR_INVALID_VALUE, cuLaunchKernelEx(NULL, k, NULL, NULL));
    size_t size = sizeof cell, small = 4;
    void *extra[] = { (void *)1, &cell, (void *)2, &size, NULL },
         *short_extra[] = { (void *)1, &cell, (void *)2, &small, NULL };
    OK(t, cuLaunchKernel(k, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra));
    GIVES(t, CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(k, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){ &cell }, extra));
    if (driver_is_simulated())
        GIVES(t, CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(k, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, short_extra));
    OK(t, cuCtxSynchronize());
}

static CUresult inner;
static void host_function(void *user)
{
    (void)user;
    inner = cuCtxSynchronize();
}

static void streams_events_and_graphs(struct test *t)
{
    begin(t);
    CUstream s;
    CUevent a, b, mute;
    CUgraph graph;
    float time;
    GIVES(t, CUDA_ERROR_INVALID_VALUE, cuStreamCreate(NULL, 0));
    GIVES(t, CUDA_ERROR_INVALID_VALUE, cuStreamCreate(&s, 2));
    GIVES(t, CUDA_ERROR_INVALID_VALUE, cuEventCreate(&a, 0x100));
    GIVES(t, CUDA_ERROR_INVALID_VALUE, cuEventCreate(NULL, 0));
    OK(t, cuStreamCreate(&s, 0));
    OK(t, cuEventCreate(&a, 0));
    OK(t, cuEventCreate(&b, 0));
    OK(t, cuEventCreate(&mute, 2));
    GIVES(t, CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime_v2(&time, a, b));
    OK(t, cuEventRecord(a, s));
    OK(t, cuEventRecord(b, s));
    OK(t, cuEventRecord(mute, s));
    OK(t, cuEventSynchronize(b));
    OK(t, cuEventElapsedTime_v2(&time, a, b));
    CHECK(t, time >= 0);
    GIVES(t, CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime_v2(&time, a, mute));
    GIVES(t, CUDA_ERROR_INVALID_VALUE, cuStreamWaitEvent(s, a, 2));
    GIVES(t, CUDA_ERROR_INVALID_HANDLE, cuEventRecord(NULL, s));
    OK(t, cuLaunchHostFunc(s, host_function, NULL));
    OK(t, cuStreamSynchronize(s));
    CHECK(t, inner == CUDA_ERROR_NOT_PERMITTED);
    GIVES(t, CUDA_ERROR_INVALID_VALUE, cuLaunchHostFunc(s, NULL, NULL));
    GIVES(t, CUDA_ERROR_INVALID_VALUE, cuGraphCreate(&graph, 1));
    GIVES(t, CUDA_ERROR_INVALID_VALUE, cuGraphLaunch(NULL, s));
    OK(t, cuEventDestroy_v2(a));
    OK(t, cuStreamDestroy_v2(s));
    const char *name;
    GIVES(t, CUDA_ERROR_INVALID_VALUE, cuGetErrorName((CUresult)12345, &name));
    if (!driver_is_simulated()) return;
    GIVES(t, CUDA_ERROR_INVALID_HANDLE, cuEventDestroy_v2(a));
    GIVES(t, CUDA_ERROR_INVALID_HANDLE, cuStreamDestroy_v2(s));
    GIVES(t, CUDA_ERROR_INVALID_HANDLE, cuStreamSynchronize((CUstream)(uintptr_t)0x123456));
    GIVES(t, CUDA_ERROR_INVALID_HANDLE, cuEventRecord(b, (CUstream)(void *)b));
    GIVES(t, CUDA_ERROR_INVALID_VALUE, cuGraphDestroy((CUgraph)(void *)b));
    GIVES(t, CUDA_ERROR_INVALID_VALUE, cuGraphLaunch((CUgraphExec)(uintptr_t)0x77, NULL));
}

/* A fault is kept: every later call gives it, until the context is made anew. */
static void a_fault_stays(struct test *t)
{
    static const struct { const char *kernel; CUresult code;
    } rows[] = {
        { "stop", CUDA_ERROR_LAUNCH_FAILED },
        { "far", CUDA_ERROR_ILLEGAL_ADDRESS },
        { "odd", CUDA_ERROR_MISALIGNED_ADDRESS },
    };
    if (!driver_is_simulated()) {
        test_skip(t, "a real device is lost to a process after a fault");
        return;
    }
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CUfunction f;
        CUdeviceptr p;
        CUstream s;
        unsigned v;
        begin(t);
        OK(t, cuModuleGetFunction(&f, module, rows[i].kernel));
        OK(t, launch(f, 1, 1, 1, 1, 1, 1, 0));
        GIVES(t, rows[i].code, cuCtxSynchronize());
        GIVES(t, rows[i].code, cuMemAlloc_v2(&p, 4));
        GIVES(t, rows[i].code, cuMemcpyDtoH_v2(&v, cell, 4));
        GIVES(t, rows[i].code, cuMemFree_v2(cell));
        GIVES(t, rows[i].code, cuStreamCreate(&s, 0));
        GIVES(t, rows[i].code, launch(k, 1, 1, 1, 1, 1, 1, 0));
        GIVES(t, rows[i].code, cuCtxSynchronize());
        driver_reset(t);
        module = NULL;
        begin(t);
        OK(t, launch(k, 1, 1, 1, 1, 1, 1, 0));
        OK(t, cuMemcpyDtoH_v2(&v, cell, 4));
        CHECK(t, v == 7);
    }
}

int main(int argc, char **argv)
{
    setenv("CUDASIM_QUIET", "1", 1);
    static const struct test_case cases[] = {
        TEST(before_init),           TEST(devices_and_contexts), TEST(memory),
        TEST(modules_and_functions), TEST(launches),             TEST(streams_events_and_graphs),
        TEST(a_fault_stays),
    };
    return TEST_MAIN(argc, argv, cases);
}
