/* Several devices: what belongs to which, what reaches which, and what a program may not mix. */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/driver_api.h"

typedef const CUDA_MEMCPY3D_PEER *peer_copy;
typedef const CUDA_MEMSET_NODE_PARAMS *fill_parameters_pointer;
typedef const CUDA_MEMCPY3D *copy_pointer;
typedef const CUDA_KERNEL_NODE_PARAMS *kernel_parameters_pointer;
typedef const CUmemAllocationProp *allocation_properties;
typedef const CUmemAccessDesc *access_list;

#define CALLS(X) \
    X(cuInit, (unsigned)) X(cuDeviceGetCount, (int *)) X(cuDeviceGet, (CUdevice *, int)) \
    X(cuDeviceGetName, (char *, int, CUdevice)) X(cuDeviceGetUuid_v2, (CUuuid *, CUdevice)) \
    X(cuDeviceGetPCIBusId, (char *, int, CUdevice)) X(cuDeviceGetByPCIBusId, (CUdevice *, const char *)) \
    X(cuDeviceGetAttribute, (int *, int, CUdevice)) X(cuDeviceCanAccessPeer, (int *, CUdevice, CUdevice)) \
    X(cuDeviceComputeCapability, (int *, int *, CUdevice)) \
    X(cuDeviceGetP2PAttribute, (int *, int, CUdevice, CUdevice)) \
    X(cuDevicePrimaryCtxRetain, (CUcontext *, CUdevice)) X(cuDevicePrimaryCtxReset_v2, (CUdevice)) \
    X(cuDevicePrimaryCtxGetState, (CUdevice, unsigned *, int *)) \
    X(cuDevicePrimaryCtxSetFlags_v2, (CUdevice, unsigned)) \
    X(cuCtxCreate_v2, (CUcontext *, unsigned, CUdevice)) X(cuCtxDestroy_v2, (CUcontext)) \
    X(cuCtxSetCurrent, (CUcontext)) X(cuCtxPushCurrent_v2, (CUcontext)) X(cuCtxPopCurrent_v2, (CUcontext *)) \
    X(cuCtxGetDevice, (CUdevice *)) X(cuCtxSynchronize, (void)) \
    X(cuCtxEnablePeerAccess, (CUcontext, unsigned)) X(cuCtxDisablePeerAccess, (CUcontext)) \
    X(cuMemAlloc_v2, (CUdeviceptr *, size_t)) X(cuMemFree_v2, (CUdeviceptr)) X(cuMemGetInfo_v2, (size_t *, size_t *)) \
    X(cuMemAllocManaged, (CUdeviceptr *, size_t, unsigned)) X(cuMemHostAlloc, (void **, size_t, unsigned)) \
    X(cuMemFreeHost, (void *)) X(cuMemGetAddressRange_v2, (CUdeviceptr *, size_t *, CUdeviceptr)) \
    X(cuMemPrefetchAsync, (CUdeviceptr, size_t, CUdevice, CUstream)) \
    X(cuPointerGetAttribute, (void *, CUpointer_attribute, CUdeviceptr)) \
    X(cuMemcpy, (CUdeviceptr, CUdeviceptr, size_t)) X(cuMemcpyHtoD_v2, (CUdeviceptr, const void *, size_t)) \
    X(cuMemcpyDtoH_v2, (void *, CUdeviceptr, size_t)) \
    X(cuMemcpyDtoDAsync_v2, (CUdeviceptr, CUdeviceptr, size_t, CUstream)) \
    X(cuMemcpyPeer, (CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, size_t)) \
    X(cuMemcpyPeerAsync, (CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, size_t, CUstream)) \
    X(cuMemcpy3DPeer, (peer_copy)) X(cuMemsetD32_v2, (CUdeviceptr, unsigned, size_t)) \
    X(cuModuleLoadData, (CUmodule *, const void *)) X(cuModuleGetFunction, (CUfunction *, CUmodule, const char *)) \
    X(cuLibraryLoadData, (CUlibrary *, const void *, void *, void *, unsigned, void *, void *, unsigned)) \
    X(cuLibraryGetKernel, (CUkernel *, CUlibrary, const char *)) X(cuLibraryUnload, (CUlibrary)) \
    X(cuKernelGetAttribute, (int *, int, CUkernel, CUdevice)) X(cuKernelSetAttribute, (int, int, CUkernel, CUdevice)) \
    X(cuLaunchKernel, (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, \
                       void **, void **)) \
    X(cuStreamCreate, (CUstream *, unsigned)) X(cuStreamDestroy_v2, (CUstream)) X(cuStreamSynchronize, (CUstream)) \
    X(cuStreamGetDevice, (CUstream, CUdevice *)) X(cuStreamWaitEvent, (CUstream, CUevent, unsigned)) \
    X(cuEventCreate, (CUevent *, unsigned)) X(cuEventRecord, (CUevent, CUstream)) X(cuEventSynchronize, (CUevent)) \
    X(cuEventDestroy_v2, (CUevent)) X(cuEventElapsedTime_v2, (float *, CUevent, CUevent)) \
    X(cuStreamBeginCapture_v2, (CUstream, CUstreamCaptureMode)) X(cuStreamEndCapture, (CUstream, CUgraph *)) \
    X(cuGraphInstantiateWithFlags, (CUgraphExec *, CUgraph, unsigned long long)) \
    X(cuGraphLaunch, (CUgraphExec, CUstream)) X(cuGraphExecDestroy, (CUgraphExec)) X(cuGraphDestroy, (CUgraph)) \
    X(cuGraphCreate, (CUgraph *, unsigned)) \
    X(cuGraphAddMemsetNode, (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, fill_parameters_pointer, CUcontext)) \
    X(cuGraphAddMemcpyNode, (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, copy_pointer, CUcontext)) \
    X(cuGraphAddKernelNode_v2, (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, kernel_parameters_pointer)) \
    X(cuLaunchKernelEx, (const CUlaunchConfig *, CUfunction, void **, void **)) \
    X(cuMemCreate, (CUmemGenericAllocationHandle *, size_t, allocation_properties, unsigned long long)) \
    X(cuMemAddressReserve, (CUdeviceptr *, size_t, size_t, CUdeviceptr, unsigned long long)) \
    X(cuMemMap, (CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle, unsigned long long)) \
    X(cuMemSetAccess, (CUdeviceptr, size_t, access_list, size_t)) \
    X(cuMemGetAccess, (unsigned long long *, const CUmemLocation *, CUdeviceptr)) \
    X(cuMemUnmap, (CUdeviceptr, size_t)) X(cuMemAddressFree, (CUdeviceptr, size_t)) \
    X(cuMemRelease, (CUmemGenericAllocationHandle)) X(cuMemAllocAsync, (CUdeviceptr *, size_t, CUstream)) \
    X(cuMemFreeAsync, (CUdeviceptr, CUstream)) X(cuDeviceGetDefaultMemPool, (CUmemoryPool *, CUdevice)) \
    X(cuDeviceSetMemPool, (CUdevice, CUmemoryPool)) X(cuMemPoolSetAccess, (CUmemoryPool, access_list, size_t)) \
    X(cuMemAllocFromPoolAsync, (CUdeviceptr *, size_t, CUmemoryPool, CUstream))
DRIVER_CALLS(CALLS)

/* add(p): each of 32 threads adds 1 to a word; copy(p, q): each copies a word from q to p; late(p): reads a
 * word before it waits for the grid in front; bulk(p): has TMA write 4 words. */
static const char text[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n"
    ".visible .entry add(.param .u64 p)\n{\n.reg .b64 %a; .reg .b32 %v;\nld.param.u64 %a, [p]; mov.u32 %v, %tid.x;\n"
    "mad.wide.u32 %a, %v, 4, %a; ld.global.u32 %v, [%a]; add.u32 %v, %v, 1; st.global.u32 [%a], %v; ret;\n}\n"
    ".visible .entry late(.param .u64 p)\n{\n.reg .b64 %a; .reg .b32 %v;\nld.param.u64 %a, [p];\n"
    "ld.global.u32 %v, [%a]; griddepcontrol.wait; ret;\n}\n"
    ".visible .entry bulk(.param .u64 p)\n{\n.reg .b64 %a; .shared .align 16 .b8 box[16];\n"
    "ld.param.u64 %a, [p]; st.shared.v4.u32 [box], {5, 5, 5, 5}; fence.proxy.async;\n"
    "cp.async.bulk.global.shared::cta.bulk_group [%a], [box], 16; cp.async.bulk.commit_group;\n"
    "cp.async.bulk.wait_group 0; ret;\n}\n"
    ".visible .entry copy(.param .u64 p, .param .u64 q)\n{\n.reg .b64 %a, %b, %o; .reg .b32 %v;\n"
    "ld.param.u64 %a, [p]; ld.param.u64 %b, [q]; mov.u32 %v, %tid.x; mul.wide.u32 %o, %v, 4;\n"
    "add.u64 %a, %a, %o; add.u64 %b, %b, %o; ld.global.u32 %v, [%b]; st.global.u32 [%a], %v; ret;\n}\n";

enum { DEVICES = 2, WORDS = 32, BYTES = 4 * WORDS };

/* What each device has, in its primary context. */
static struct {
    CUcontext context;
    CUfunction add, copy, late, bulk;
    CUstream stream;
    CUdeviceptr words;
} on[DEVICES];

static void open_device(struct test *t, int i)
{
    CUmodule module;
    OK(t, cuDevicePrimaryCtxReset_v2(i));
    OK(t, cuDevicePrimaryCtxRetain(&on[i].context, i));
    OK(t, cuCtxSetCurrent(on[i].context));
    OK(t, cuModuleLoadData(&module, text));
    OK(t, cuModuleGetFunction(&on[i].add, module, "add"));
    OK(t, cuModuleGetFunction(&on[i].copy, module, "copy"));
    OK(t, cuModuleGetFunction(&on[i].late, module, "late"));
    OK(t, cuModuleGetFunction(&on[i].bulk, module, "bulk"));
    OK(t, cuStreamCreate(&on[i].stream, 1));
    OK(t, cuMemAlloc_v2(&on[i].words, BYTES));
    OK(t, cuMemsetD32_v2(on[i].words, 100 * (unsigned)(i + 1), WORDS));
}

/* Both devices anew, the first one's context current. */
static void begin(struct test *t)
{
    find_calls(t);
    OK(t, cuInit(0));
    for (int i = DEVICES - 1; i >= 0; i--) open_device(t, i);
}

static void use(struct test *t, int i) { OK(t, cuCtxSetCurrent(on[i].context)); }

static CUresult bulk(int i, CUdeviceptr at)
{
    return cuLaunchKernel(on[i].bulk, 1, 1, 1, 1, 1, 1, 0, on[i].stream, (void *[]){ &at }, NULL);
}

static CUresult add(int i, CUdeviceptr at)
{
    return cuLaunchKernel(on[i].add, 1, 1, 1, WORDS, 1, 1, 0, on[i].stream, (void *[]){ &at }, NULL);
}

static bool holds(struct test *t, CUdeviceptr at, uint32_t want)
{
    uint32_t words[WORDS] = { 0 };
    OK(t, cuMemcpyDtoH_v2(words, at, sizeof words));
    for (int i = 0; i < WORDS; i++)
        if (words[i] != want) return false;
    return true;
}

/* ---- what is said on stderr ---- */

static char said[8192];
static int kept_stderr = -1;
static FILE *collected;

static void listen(struct test *t)
{
    collected = tmpfile();
    CHECK(t, collected != NULL);
    fflush(stderr);
    kept_stderr = dup(2);
    dup2(fileno(collected), 2);
}

static void listened(void)
{
    fflush(stderr);
    dup2(kept_stderr, 2);
    close(kept_stderr);
    rewind(collected);
    said[fread(said, 1, sizeof said - 1, collected)] = '\0';
    fclose(collected);
}

#define SAYS(t, sentence) \
    do { \
        if (strstr(said, sentence) == NULL) FAIL(t, "it does not say \"%s\" but:\n%s", sentence, said); \
    } while (0)

/* The kernel's access is refused, in words; the other device is none the worse for it. */
#define REFUSED(t, device, launch, sentence) \
    do { \
        use(t, device); \
        listen(t); \
        OK(t, launch); \
        listened(); \
        GIVES(t, CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize()); \
        SAYS(t, sentence); \
        use(t, 1 - (device)); \
        OK(t, cuCtxSynchronize()); \
    } while (0)

/* ---- settings; runs first, as a process reads them once ---- */

static CUresult start(struct test *t, const char *devices, const char *names)
{
    if (devices == NULL) unsetenv("CUDASIM_DEVICES");
    else setenv("CUDASIM_DEVICES", devices, 1);
    setenv("CUDASIM_DEVICE", names, 1);
    find_calls(t);
    return cuInit(0);
}

/* 0: as expected. */
static int in_child(struct test *t, const char *devices, const char *names, CUresult want, int count)
{
    fflush(NULL);
    const pid_t child = fork();
    int status = 1, found = 0, peers = 1;
    if (child == 0) {
        const CUresult got = start(t, devices, names);
        if (got != want) _exit(2);
        if (got != CUDA_SUCCESS) _exit(0);
        if (cuDeviceGetCount(&found) != CUDA_SUCCESS || found != count) _exit(3);
        if (strcmp(names, "sm_90a,sm_100a") != 0) _exit(0);
        int major[2], minor[2];
        for (int i = 0; i < 2; i++)
            if (cuDeviceComputeCapability(&major[i], &minor[i], i) != CUDA_SUCCESS) _exit(4);
        if (major[0] != 9 || major[1] != 10) _exit(5);
        if (cuDeviceCanAccessPeer(&peers, 0, 1) != CUDA_SUCCESS || peers != 0) _exit(6);
        CUcontext first, second;
        if (cuCtxCreate_v2(&first, 0, 0) != CUDA_SUCCESS || cuCtxCreate_v2(&second, 0, 1) != CUDA_SUCCESS) _exit(7);
        _exit(cuCtxEnablePeerAccess(first, 0) == CUDA_ERROR_PEER_ACCESS_UNSUPPORTED ? 0 : 8);
    }
    waitpid(child, &status, 0);
    return status;
}

static void settings(struct test *t)
{
    static const struct {
        const char *devices, *names;
        CUresult code;
        int count;
        const char *sentence;
    } rows[] = {
        { NULL, "sm_90a", CUDA_SUCCESS, 1, NULL },
        { "8", "", CUDA_SUCCESS, 8, NULL },
        { "2", "sm_90a,sm_100a", CUDA_SUCCESS, 2, NULL },
        { NULL, "sm_90a,sm_100a", CUDA_SUCCESS, 2, NULL },
        { "9", "sm_90a", CUDA_ERROR_INVALID_VALUE, 0, "CUDASIM_DEVICES=9 is no number from 1 to 8" },
        { "0", "sm_90a", CUDA_ERROR_INVALID_VALUE, 0, "CUDASIM_DEVICES=0 is no number from 1 to 8" },
        { "two", "sm_90a", CUDA_ERROR_INVALID_VALUE, 0, "CUDASIM_DEVICES=two is no number from 1 to 8" },
        { "3", "sm_90a,sm_100a", CUDA_ERROR_INVALID_VALUE, 0, "names 2 devices, and CUDASIM_DEVICES is 3" },
        { "2", "sm_90a,sm_80", CUDA_ERROR_NO_DEVICE, 0, "CUDASIM_DEVICE=sm_80 is none of sm_90a" },
        { "2", "sm_90a,", CUDA_ERROR_NO_DEVICE, 0, "CUDASIM_DEVICE= is none of sm_90a" },
        { NULL, "sm_90a,sm_90a,sm_90a,sm_90a,sm_90a,sm_90a,sm_90a,sm_90a,sm_90a", CUDA_ERROR_INVALID_VALUE, 0,
          "names more than 8 devices" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        listen(t);
        const int status = in_child(t, rows[i].devices, rows[i].names, rows[i].code, rows[i].count);
        listened();
        if (status != 0) FAIL(t, "row %zu: the child's status is %d", i, status);
        if (rows[i].sentence != NULL) SAYS(t, rows[i].sentence);
    }
    setenv("CUDASIM_DEVICES", "2", 1);
    unsetenv("CUDASIM_DEVICE");
}

/* ---- devices and contexts ---- */

static void devices_differ(struct test *t)
{
    begin(t);
    int count = 0, value = 7, bus[DEVICES];
    CUdevice device = 7;
    CUuuid uuid[DEVICES];
    char name[DEVICES][32];
    OK(t, cuDeviceGetCount(&count));
    CHECK(t, count == DEVICES);
    for (int i = 0; i < DEVICES; i++) {
        OK(t, cuDeviceGet(&device, i));
        CHECK(t, device == i);
        OK(t, cuDeviceGetUuid_v2(&uuid[i], i));
        OK(t, cuDeviceGetPCIBusId(name[i], sizeof name[i], i));
        OK(t, cuDeviceGetByPCIBusId(&device, name[i]));
        CHECK(t, device == i);
        OK(t, cuDeviceGetAttribute(&bus[i], CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, i));
        OK(t, cuDeviceCanAccessPeer(&value, i, i));
        CHECK(t, value == 0);
        OK(t, cuDeviceCanAccessPeer(&value, i, 1 - i));
        CHECK(t, value == 1);
        OK(t, cuDeviceGetP2PAttribute(&value, 2, i, 1 - i));
        CHECK(t, value == 1);
    }
    CHECK(t, memcmp(&uuid[0], &uuid[1], sizeof uuid[0]) != 0 && strcmp(name[0], name[1]) != 0 && bus[0] != bus[1]);
    GIVES(t, CUDA_ERROR_INVALID_DEVICE, cuDeviceGet(&device, DEVICES));
    GIVES(t, CUDA_ERROR_INVALID_DEVICE, cuDeviceGetByPCIBusId(&device, "0000:02:00.0"));
    GIVES(t, CUDA_ERROR_INVALID_DEVICE, cuDeviceCanAccessPeer(&value, 0, DEVICES));
    GIVES(t, CUDA_ERROR_INVALID_DEVICE, cuDeviceCanAccessPeer(&value, -1, 0));
    GIVES(t, CUDA_ERROR_INVALID_DEVICE, cuDeviceGetP2PAttribute(&value, 2, 1, 1));
    GIVES(t, CUDA_ERROR_INVALID_VALUE, cuDeviceGetP2PAttribute(&value, 9, 0, 1));
    GIVES(t, CUDA_ERROR_INVALID_DEVICE, cuDevicePrimaryCtxRetain(&on[0].context, DEVICES));
}

static void contexts_have_a_device(struct test *t)
{
    begin(t);
    CUdevice device = 7;
    CUcontext own, popped;
    unsigned flags;
    int active;
    CHECK(t, on[0].context != on[1].context);
    for (int i = 0; i < DEVICES; i++) {
        use(t, i);
        OK(t, cuCtxGetDevice(&device));
        CHECK(t, device == i);
        OK(t, cuStreamGetDevice(on[1 - i].stream, &device));
        CHECK(t, device == 1 - i);
    }
    OK(t, cuCtxPushCurrent_v2(on[0].context));
    OK(t, cuCtxGetDevice(&device));
    CHECK(t, device == 0);
    OK(t, cuCtxPopCurrent_v2(&popped));
    OK(t, cuCtxGetDevice(&device));
    CHECK(t, device == 1 && popped == on[0].context);
    OK(t, cuCtxCreate_v2(&own, 0, 1));
    OK(t, cuCtxGetDevice(&device));
    CHECK(t, device == 1);
    OK(t, cuCtxDestroy_v2(own));
    OK(t, cuDevicePrimaryCtxSetFlags_v2(1, 4));
    OK(t, cuDevicePrimaryCtxGetState(0, &flags, &active));
    CHECK(t, flags == 0 && active == 1);
    OK(t, cuDevicePrimaryCtxReset_v2(1));
    OK(t, cuDevicePrimaryCtxGetState(1, &flags, &active));
    CHECK(t, flags == 4 && active == 0);
    OK(t, cuDevicePrimaryCtxSetFlags_v2(1, 0));
    OK(t, cuDevicePrimaryCtxGetState(0, &flags, &active));
    CHECK(t, active == 1);
}

/* ---- memory ---- */

static void memory_has_a_device(struct test *t)
{
    begin(t);
    size_t before[DEVICES], after[DEVICES], total, size;
    CUdeviceptr more, base;
    void *host;
    int ordinal = 7;
    for (int i = 0; i < DEVICES; i++) use(t, i), cuMemGetInfo_v2(&before[i], &total);
    OK(t, cuMemAlloc_v2(&more, 1 << 20));
    for (int i = 0; i < DEVICES; i++) use(t, i), cuMemGetInfo_v2(&after[i], &total);
    CHECK(t, after[0] == before[0] && after[1] == before[1] - (1 << 20));
    for (int i = 0; i < DEVICES; i++) {
        OK(t, cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, on[i].words + 4));
        CHECK(t, ordinal == i);
        OK(t, cuMemGetAddressRange_v2(&base, &size, on[i].words + 4));
        CHECK(t, base == on[i].words && size == BYTES);
    }
    /* Everybody reaches page-locked and managed memory, and anybody frees. */
    OK(t, cuMemHostAlloc(&host, BYTES, 0));
    memset(host, 0, BYTES);
    use(t, 0);
    OK(t, add(0, (CUdeviceptr)(uintptr_t)host));
    OK(t, cuStreamSynchronize(on[0].stream));
    CHECK(t, ((uint32_t *)host)[WORDS - 1] == 1);
    OK(t, cuMemFreeHost(host));
    OK(t, cuMemFree_v2(more));
    GIVES(t, CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(more));
    OK(t, cuMemAllocManaged(&more, BYTES, CU_MEM_ATTACH_GLOBAL));
    OK(t, cuMemPrefetchAsync(more, BYTES, 1, NULL));
    GIVES(t, CUDA_ERROR_INVALID_DEVICE, cuMemPrefetchAsync(more, BYTES, DEVICES, NULL));
    OK(t, cuMemsetD32_v2(more, 5, WORDS));
    use(t, 1);
    OK(t, add(1, more));
    CHECK(t, holds(t, more, 6));
    OK(t, cuMemFree_v2(more));
}

/* Copies go from device to device without peer access; the contexts that a call names must be those of its memory. */
static void copies_between_devices(struct test *t)
{
    begin(t);
    OK(t, cuMemcpy(on[1].words, on[0].words, BYTES));
    CHECK(t, holds(t, on[1].words, 100));
    OK(t, cuMemsetD32_v2(on[0].words, 7, WORDS));
    OK(t, cuMemcpyPeer(on[1].words, on[1].context, on[0].words, on[0].context, BYTES));
    CHECK(t, holds(t, on[1].words, 7));
    OK(t, cuMemsetD32_v2(on[0].words, 8, WORDS));
    OK(t, cuMemcpyPeerAsync(on[1].words, on[1].context, on[0].words, on[0].context, BYTES, on[1].stream));
    OK(t, cuStreamSynchronize(on[1].stream));
    CHECK(t, holds(t, on[1].words, 8));
    listen(t);
    GIVES(t, CUDA_ERROR_INVALID_VALUE,
          cuMemcpyPeer(on[1].words, on[0].context, on[0].words, on[1].context, BYTES));
    listened();
    SAYS(t, "source");
    SAYS(t, "is not memory of the context of device 1 that the call names, but of another one, of device 0");
    GIVES(t, CUDA_ERROR_INVALID_VALUE,
          cuMemcpyPeer(on[1].words, on[1].context, on[0].words, on[0].context, BYTES + 1));
    GIVES(t, CUDA_ERROR_INVALID_CONTEXT,
          cuMemcpyPeer(on[1].words, (CUcontext)(void *)on, on[0].words, on[0].context, BYTES));
    CUDA_MEMCPY3D_PEER box = {
        .srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = on[1].words, .srcContext = on[1].context, .srcPitch = 16,
        .srcHeight = 2, .dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = on[0].words, .dstContext = on[0].context,
        .dstPitch = 16, .dstHeight = 4, .WidthInBytes = 8, .Height = 2, .Depth = 2
    };
    OK(t, cuMemsetD32_v2(on[0].words, 1, WORDS));
    OK(t, cuMemcpy3DPeer(&box));
    uint32_t got[WORDS];
    OK(t, cuMemcpyDtoH_v2(got, on[0].words, sizeof got));
    for (int i = 0; i < WORDS; i++) CHECK(t, got[i] == (i % 4 < 2 && i / 4 % 4 < 2 ? 8u : 1u));
    box.srcContext = on[0].context;
    listen(t);
    GIVES(t, CUDA_ERROR_INVALID_VALUE, cuMemcpy3DPeer(&box));
    listened();
    GIVES(t, CUDA_ERROR_INVALID_VALUE, cuMemcpy3DPeer(NULL));
}

/* ---- peer access ---- */

static void peer_access_is_enabled_once(struct test *t)
{
    begin(t);
    CUcontext second;
    GIVES(t, CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, cuCtxDisablePeerAccess(on[1].context));
    GIVES(t, CUDA_ERROR_INVALID_VALUE, cuCtxEnablePeerAccess(on[1].context, 1));
    GIVES(t, CUDA_ERROR_INVALID_CONTEXT, cuCtxEnablePeerAccess(on[0].context, 0));
    GIVES(t, CUDA_ERROR_INVALID_CONTEXT, cuCtxEnablePeerAccess((CUcontext)(void *)on, 0));
    OK(t, cuCtxEnablePeerAccess(on[1].context, 0));
    GIVES(t, CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, cuCtxEnablePeerAccess(on[1].context, 0));
    use(t, 1);
    GIVES(t, CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, cuCtxDisablePeerAccess(on[0].context));
    OK(t, cuCtxEnablePeerAccess(on[0].context, 0));
    use(t, 0);
    OK(t, cuCtxDisablePeerAccess(on[1].context));
    GIVES(t, CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, cuCtxDisablePeerAccess(on[1].context));
    /* Two contexts of one device are no peers. */
    OK(t, cuCtxCreate_v2(&second, 0, 0));
    GIVES(t, CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, cuCtxEnablePeerAccess(on[0].context, 0));
    OK(t, cuCtxEnablePeerAccess(on[1].context, 0));
    OK(t, cuCtxDestroy_v2(second));
    /* A context that goes takes its part along. */
    OK(t, cuDevicePrimaryCtxReset_v2(0));
    open_device(t, 0);
    use(t, 1);
    GIVES(t, CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, cuCtxDisablePeerAccess(on[0].context));
    for (int i = 0; i < 8; i++) {         /* a new one often has the old one's place */
        OK(t, cuCtxCreate_v2(&second, 0, 0));
        use(t, 1);
        OK(t, cuCtxEnablePeerAccess(second, 0));
        OK(t, cuCtxDestroy_v2(second));
    }
}

/* The program runs under several schedules: each begins with the memory that the launch found, the peer's too. */
static void kernels_reach_peers(struct test *t)
{
    begin(t);
    use(t, 1);
    OK(t, cuCtxEnablePeerAccess(on[0].context, 0));
    OK(t, add(1, on[0].words));
    CHECK(t, holds(t, on[0].words, 101));
    CUdeviceptr later;
    use(t, 0);
    OK(t, cuMemAlloc_v2(&later, BYTES));
    use(t, 1);
    OK(t, cuLaunchKernel(on[1].copy, 1, 1, 1, WORDS, 1, 1, 0, on[1].stream, (void *[]){ &later, &on[1].words }, NULL));
    CHECK(t, holds(t, later, 200));
    OK(t, cuMemsetD32_v2(later, 9, WORDS));
    CHECK(t, holds(t, later, 9));
    OK(t, bulk(1, later));
    uint32_t words[5];
    OK(t, cuMemcpyDtoH_v2(words, later, sizeof words));
    CHECK(t, words[0] == 5 && words[3] == 5 && words[4] == 9);
    REFUSED(t, 1, add(1, later + BYTES), "bytes behind the start of the");
}

static void other_memory_is_out_of_bounds(struct test *t)
{
    begin(t);
    use(t, 0);
    OK(t, cuCtxEnablePeerAccess(on[1].context, 0)); /* the other way round */
    char owner[320];
    snprintf(owner, sizeof owner,
             "reads 4 bytes at global address 0x%llx, which lies in the 128 bytes allocated at 0x%llx in memory of "
             "device 0; peer access of this context of device 1 to it is not enabled (cuCtxEnablePeerAccess)",
             on[0].words, on[0].words);
    REFUSED(t, 1, add(1, on[0].words), owner);
    SAYS(t, "out-of-bounds access");
    SAYS(t, "lane 0, device 1\n");
    CHECK(t, holds(t, on[0].words, 100));
    open_device(t, 1);
    REFUSED(t, 1, bulk(1, on[0].words), "in memory of device 0; peer access of this context of device 1 to it");
    open_device(t, 1);
    use(t, 1);
    OK(t, cuCtxEnablePeerAccess(on[0].context, 0));
    OK(t, add(1, on[0].words));
    OK(t, cuCtxDisablePeerAccess(on[0].context));
    REFUSED(t, 1, add(1, on[0].words), "is not enabled");
    /* A fill is the current context's work. */
    begin(t);
    listen(t);
    GIVES(t, CUDA_ERROR_INVALID_VALUE, cuMemsetD32_v2(on[1].words, 0, WORDS));
    listened();
    SAYS(t, "a fill on device 0 writes");
    OK(t, cuCtxEnablePeerAccess(on[1].context, 0));
    OK(t, cuMemsetD32_v2(on[1].words, 3, WORDS));
    CHECK(t, holds(t, on[1].words, 3));
    /* Nor do two contexts of one device share. */
    CUcontext second;
    CUdeviceptr theirs;
    OK(t, cuCtxCreate_v2(&second, 0, 0));
    OK(t, cuMemAlloc_v2(&theirs, BYTES));
    REFUSED(t, 0, add(0, theirs), "in another context of device 0");
    OK(t, cuCtxDestroy_v2(second));
}

/* ---- streams, events, functions ---- */

static void streams_wait_for_other_devices(struct test *t)
{
    begin(t);
    CUevent event[DEVICES];
    float time;
    for (int i = 0; i < DEVICES; i++) {
        use(t, i);
        OK(t, cuEventCreate(&event[i], 0));
    }
    use(t, 0);
    OK(t, add(0, on[0].words));
    OK(t, cuEventRecord(event[0], on[0].stream));
    use(t, 1);
    OK(t, cuStreamWaitEvent(on[1].stream, event[0], 0));
    OK(t, cuMemcpyDtoDAsync_v2(on[1].words, on[0].words, BYTES, on[1].stream));
    OK(t, cuEventRecord(event[1], on[1].stream));
    use(t, 0);
    OK(t, cuEventSynchronize(event[1]));
    OK(t, cuStreamSynchronize(on[1].stream));
    CHECK(t, holds(t, on[1].words, 101));
    /* A copy goes into any stream; a kernel and an event's record only into one of their own context. */
    OK(t, cuMemcpyDtoDAsync_v2(on[0].words, on[1].words, BYTES, on[1].stream));
    listen(t);
    GIVES(t, CUDA_ERROR_INVALID_HANDLE, cuEventRecord(event[0], on[1].stream));
    GIVES(t, CUDA_ERROR_INVALID_HANDLE,
          cuLaunchKernel(on[0].add, 1, 1, 1, 1, 1, 1, 0, on[1].stream, (void *[]){ &on[0].words }, NULL));
    listened();
    SAYS(t, "the event was created in a context of device 0, and the stream in another one, of device 1");
    SAYS(t, "while a context of device 0 is current, into a stream of another one, of device 1");
    GIVES(t, CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime_v2(&time, event[0], event[1]));
    GIVES(t, CUDA_ERROR_INVALID_HANDLE,
          cuLaunchKernel(on[1].add, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){ &on[0].words }, NULL));
    OK(t, cuEventDestroy_v2(event[1]));
    GIVES(t, CUDA_ERROR_INVALID_HANDLE, cuEventSynchronize(event[1]));
    OK(t, cuStreamDestroy_v2(on[1].stream));
    GIVES(t, CUDA_ERROR_INVALID_HANDLE, cuStreamSynchronize(on[1].stream));
}

/* What a faulty device has gives its fault, whichever context is current. */
static void a_fault_is_of_one_device(struct test *t)
{
    begin(t);
    CUevent event;
    use(t, 1);
    OK(t, cuEventCreate(&event, 0));
    REFUSED(t, 1, add(1, 64), "at global address 0x40");
    OK(t, add(0, on[0].words));
    CHECK(t, holds(t, on[0].words, 101));
    GIVES(t, CUDA_ERROR_ILLEGAL_ADDRESS, cuStreamSynchronize(on[1].stream));
    GIVES(t, CUDA_ERROR_ILLEGAL_ADDRESS, cuEventSynchronize(event));
    GIVES(t, CUDA_ERROR_ILLEGAL_ADDRESS, cuStreamWaitEvent(on[0].stream, event, 0));
    GIVES(t, CUDA_ERROR_ILLEGAL_ADDRESS, cuMemcpyDtoDAsync_v2(on[0].words, on[0].words, 4, on[1].stream));
    GIVES(t, CUDA_ERROR_ILLEGAL_ADDRESS,
          cuMemcpyPeer(on[0].words, on[0].context, on[1].words, on[1].context, BYTES));
    OK(t, cuStreamSynchronize(on[0].stream));
}

static void libraries_serve_all_devices(struct test *t)
{
    begin(t);
    CUlibrary library;
    CUkernel kernel;
    int value = 0;
    const int most = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    OK(t, cuLibraryLoadData(&library, text, NULL, NULL, 0, NULL, NULL, 0));
    OK(t, cuLibraryGetKernel(&kernel, library, "add"));
    OK(t, cuKernelSetAttribute(most, 100000, kernel, 1));
    OK(t, cuKernelGetAttribute(&value, most, kernel, 1));
    CHECK(t, value == 100000);
    OK(t, cuKernelGetAttribute(&value, most, kernel, 0));
    CHECK(t, value != 100000);
    GIVES(t, CUDA_ERROR_INVALID_DEVICE, cuKernelGetAttribute(&value, most, kernel, DEVICES));
    const CUfunction function = (CUfunction)(void *)kernel;
    for (int i = 0; i < DEVICES; i++) {
        use(t, i);
        GIVES(t, i == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE,
              cuLaunchKernel(function, 1, 1, 1, WORDS, 1, 1, 100000, NULL, (void *[]){ &on[i].words }, NULL));
        OK(t, cuLaunchKernel(function, 1, 1, 1, WORDS, 1, 1, 0, NULL, (void *[]){ &on[i].words }, NULL));
    }
    CHECK(t, holds(t, on[0].words, 101) && holds(t, on[1].words, 202));
    OK(t, cuLibraryUnload(library));
}

/* A capture that an event carries to the other device and back: its nodes run where they were captured. */
static void a_graph_spans_devices(struct test *t)
{
    begin(t);
    CUevent fork_event, join_event;
    CUgraph graph;
    CUgraphExec exec;
    OK(t, cuEventCreate(&fork_event, 2));
    OK(t, cuStreamBeginCapture_v2(on[0].stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(t, add(0, on[0].words));
    OK(t, cuEventRecord(fork_event, on[0].stream));
    use(t, 1);
    OK(t, cuEventCreate(&join_event, 2));
    OK(t, cuStreamWaitEvent(on[1].stream, fork_event, 0));
    OK(t, cuMemcpyPeerAsync(on[1].words, on[1].context, on[0].words, on[0].context, BYTES, on[1].stream));
    OK(t, add(1, on[1].words));
    OK(t, cuEventRecord(join_event, on[1].stream));
    use(t, 0);
    OK(t, cuStreamWaitEvent(on[0].stream, join_event, 0));
    OK(t, cuMemcpyDtoDAsync_v2(on[0].words, on[1].words, BYTES, on[0].stream));
    OK(t, cuStreamEndCapture(on[0].stream, &graph));
    CHECK(t, holds(t, on[0].words, 100) && holds(t, on[1].words, 200));
    OK(t, cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(t, cuGraphLaunch(exec, on[0].stream));
    CHECK(t, holds(t, on[0].words, 102) && holds(t, on[1].words, 102));
    use(t, 1);
    OK(t, cuGraphLaunch(exec, on[1].stream));
    CHECK(t, holds(t, on[0].words, 104) && holds(t, on[1].words, 104));
    /* Without the other device's context, or with another one, its nodes cannot run. */
    OK(t, cuDevicePrimaryCtxReset_v2(1));
    open_device(t, 1);
    use(t, 0);
    GIVES(t, CUDA_ERROR_CONTEXT_IS_DESTROYED, cuGraphLaunch(exec, on[0].stream));
    CHECK(t, holds(t, on[0].words, 104));
    OK(t, cuGraphExecDestroy(exec));
    OK(t, cuGraphDestroy(graph));
}

/* Nodes that are added name a context, or a function that has one. */
static void nodes_name_contexts(struct test *t)
{
    begin(t);
    CUgraph graph;
    CUgraphExec exec;
    CUgraphNode fill, kernel, copy;
    const CUDA_MEMSET_NODE_PARAMS fill_parameters = { .dst = on[1].words, .value = 70, .elementSize = 4,
                                                      .width = WORDS, .height = 1 };
    const CUDA_KERNEL_NODE_PARAMS launch = { .func = on[1].add, .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1,
                                             .blockDimX = WORDS, .blockDimY = 1, .blockDimZ = 1,
                                             .kernelParams = (void *[]){ &on[1].words } };
    const CUDA_MEMCPY3D copy_parameters = { .srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = on[1].words,
                                            .dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = on[0].words,
                                            .WidthInBytes = BYTES, .Height = 1, .Depth = 1 };
    OK(t, cuGraphCreate(&graph, 0));
    listen(t);
    GIVES(t, CUDA_ERROR_INVALID_VALUE, cuGraphAddMemsetNode(&fill, graph, NULL, 0, &fill_parameters, on[0].context));
    listened();
    SAYS(t, "a fill on device 0 writes");
    OK(t, cuGraphAddMemsetNode(&fill, graph, NULL, 0, &fill_parameters, on[1].context));
    OK(t, cuGraphAddKernelNode_v2(&kernel, graph, &fill, 1, &launch));
    OK(t, cuGraphAddMemcpyNode(&copy, graph, &kernel, 1, &copy_parameters, on[0].context));
    OK(t, cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(t, cuGraphLaunch(exec, on[0].stream));
    CHECK(t, holds(t, on[0].words, 71));
    OK(t, cuGraphExecDestroy(exec));
    OK(t, cuGraphDestroy(graph));
}

/* ---- mappings and pools: access by device, and peer access does not count ---- */

static void mappings_name_devices(struct test *t)
{
    begin(t);
    enum { GRANULE = 2 << 20 };
    CUmemAllocationProp properties = { .type = 1, .location = { CU_MEM_LOCATION_TYPE_DEVICE, 1 } };
    CUmemAccessDesc access[DEVICES] = { { .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } },
                                        { .location = { CU_MEM_LOCATION_TYPE_DEVICE, 1 } } };
    CUmemGenericAllocationHandle handle;
    CUdeviceptr range;
    size_t before, after, own_before, own_after, total;
    int ordinal = 7;
    unsigned long long flags;
    use(t, 1);
    OK(t, cuMemGetInfo_v2(&before, &total));
    use(t, 0);
    OK(t, cuMemGetInfo_v2(&own_before, &total));
    OK(t, cuCtxEnablePeerAccess(on[1].context, 0));
    OK(t, cuMemCreate(&handle, GRANULE, &properties, 0));
    OK(t, cuMemAddressReserve(&range, GRANULE, 0, 0, 0));
    OK(t, cuMemMap(range, GRANULE, 0, handle, 0));
    OK(t, cuMemGetInfo_v2(&own_after, &total));
    use(t, 1);
    OK(t, cuMemGetInfo_v2(&after, &total));
    CHECK(t, after == before - GRANULE && own_after == own_before);
    access[1].flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    OK(t, cuMemSetAccess(range, GRANULE, &access[1], 1));
    OK(t, cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, range));
    CHECK(t, ordinal == 1);
    OK(t, cuMemsetD32_v2(range, 50, WORDS));
    OK(t, add(1, range));
    CHECK(t, holds(t, range, 51));
    REFUSED(t, 0, add(0, range), "to which device 0 was not given access (cuMemSetAccess; peer access does not count)");
    OK(t, cuMemUnmap(range, GRANULE));
    OK(t, cuMemAddressFree(range, GRANULE));
    open_device(t, 0);
    OK(t, cuMemAddressReserve(&range, GRANULE, 0, 0, 0));
    OK(t, cuMemMap(range, GRANULE, 0, handle, 0));
    access[0].flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
    OK(t, cuMemSetAccess(range, GRANULE, access, DEVICES));
    OK(t, cuMemGetAccess(&flags, &access[0].location, range));
    CHECK(t, flags == CU_MEM_ACCESS_FLAGS_PROT_READ);
    OK(t, cuMemGetAccess(&flags, &access[1].location, range));
    CHECK(t, flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    OK(t, cuLaunchKernel(on[0].copy, 1, 1, 1, WORDS, 1, 1, 0, NULL, (void *[]){ &on[0].words, &range }, NULL));
    CHECK(t, holds(t, on[0].words, 51));
    use(t, 1);
    OK(t, add(1, range));
    CHECK(t, holds(t, range, 52));
    REFUSED(t, 0, add(0, range), "writes memory that its device may only read (cuMemSetAccess) at 0x");
    access[1].location.id = DEVICES;
    GIVES(t, CUDA_ERROR_INVALID_DEVICE, cuMemSetAccess(range, GRANULE, access, DEVICES));
    properties.location.id = DEVICES;
    CUmemGenericAllocationHandle third;
    GIVES(t, CUDA_ERROR_INVALID_VALUE, cuMemCreate(&third, GRANULE, &properties, 0));
    OK(t, cuMemRelease(handle));
}

/* What a grid may touch before it waits is watched on the peer's memory too, by device: the second one's first grid is
 * in flight when its next one reads, or has TMA overwrite, a word of the first one's memory, which that grid has
 * written or the first one's own first grid. */
static void grids_beside_each_other_on_a_peer(struct test *t)
{
    static const struct { int writer; bool bulk; const char *verb; } rows[] = {
        { 0, false, NULL }, { 0, true, NULL }, { 1, false, "reads" }, { 1, true, "overwrites" }
    };
    CUlaunchAttribute early = { .id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION };
    early.value.programmaticStreamSerializationAllowed = 1;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        begin(t);
        const CUlaunchConfig plain = { 1, 1, 1, WORDS, 1, 1, 0, on[1].stream, NULL, 0 };
        const CUlaunchConfig beside = { 1, 1, 1, 1, 1, 1, 0, on[1].stream, &early, 1 };
        CUdeviceptr *theirs = &on[0].words, *own = &on[1].words;
        char sentence[160];
        use(t, 1);
        OK(t, cuCtxEnablePeerAccess(on[0].context, 0));
        use(t, 0);
        if (rows[i].writer == 0) OK(t, add(0, *theirs));
        use(t, 1);
        OK(t, cuLaunchKernelEx(&plain, on[1].add, (void *[]){ rows[i].writer == 1 ? theirs : own }, NULL));
        listen(t);
        OK(t, cuLaunchKernelEx(&beside, rows[i].bulk ? on[1].bulk : on[1].late, (void *[]){ theirs }, NULL));
        listened();
        GIVES(t, rows[i].verb != NULL ? CUDA_ERROR_LAUNCH_FAILED : CUDA_SUCCESS, cuCtxSynchronize());
        if (rows[i].verb == NULL) continue;
        snprintf(sentence, sizeof sentence,
                 "%s the byte at global address 0x%llx, which is written by kernel add, launched before", rows[i].verb,
                 on[0].words);
        SAYS(t, sentence);
    }
}

static void pools_name_devices(struct test *t)
{
    begin(t);
    CUmemoryPool pool[DEVICES], found = NULL;
    CUdeviceptr p[DEVICES];
    CUmemAccessDesc access = { .location = { CU_MEM_LOCATION_TYPE_DEVICE, 1 },
                               .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
    int ordinal = 7;
    for (int i = 0; i < DEVICES; i++) {
        OK(t, cuDeviceGetDefaultMemPool(&pool[i], i));
        OK(t, cuMemAllocAsync(&p[i], BYTES, on[i].stream));     /* whichever context is current */
        OK(t, cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p[i]));
        CHECK(t, ordinal == i);
        OK(t, cuPointerGetAttribute(&found, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, p[i]));
        CHECK(t, found == pool[i]);
    }
    CHECK(t, pool[0] != pool[1]);
    GIVES(t, CUDA_ERROR_INVALID_VALUE, cuDeviceSetMemPool(1, pool[0]));
    OK(t, cuMemsetD32_v2(p[0], 10, WORDS));
    use(t, 1);
    OK(t, cuCtxEnablePeerAccess(on[0].context, 0));
    REFUSED(t, 1, add(1, p[0]),
            "to which device 1 was not given access (cuMemPoolSetAccess; peer access does not count)");
    open_device(t, 1);
    OK(t, cuMemPoolSetAccess(pool[0], &access, 1)); /* also of what there is */
    OK(t, add(1, p[0]));
    CHECK(t, holds(t, p[0], 11));
    OK(t, cuMemAllocFromPoolAsync(&p[1], BYTES, pool[0], on[1].stream));
    OK(t, cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p[1]));
    CHECK(t, ordinal == 0);
    OK(t, add(1, p[1]));
    CHECK(t, holds(t, p[1], 1));
    OK(t, cuMemFreeAsync(p[1], on[1].stream));
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    OK(t, cuMemPoolSetAccess(pool[0], &access, 1));
    REFUSED(t, 1, add(1, p[0]), "to which device 1 was not given access");
    access.location.id = 0;
    GIVES(t, CUDA_ERROR_INVALID_VALUE, cuMemPoolSetAccess(pool[0], &access, 1));
    access.location.id = DEVICES;
    GIVES(t, CUDA_ERROR_INVALID_DEVICE, cuMemPoolSetAccess(pool[0], &access, 1));
}

int main(int argc, char **argv)
{
    unsetenv("CUDASIM_QUIET");
    setenv("CUDASIM_SCHEDULES", "3", 1);
    setenv("CUDASIM_DEVICES", "2", 1);
    unsetenv("CUDASIM_DEVICE");
    static const struct test_case cases[] = {
        TEST(settings),
        TEST(devices_differ),
        TEST(contexts_have_a_device),
        TEST(memory_has_a_device),
        TEST(copies_between_devices),
        TEST(peer_access_is_enabled_once),
        TEST(kernels_reach_peers),
        TEST(other_memory_is_out_of_bounds),
        TEST(streams_wait_for_other_devices),
        TEST(a_fault_is_of_one_device),
        TEST(libraries_serve_all_devices),
        TEST(a_graph_spans_devices),
        TEST(nodes_name_contexts),
        TEST(mappings_name_devices),
        TEST(grids_beside_each_other_on_a_peer),
        TEST(pools_name_devices),
    };
    return TEST_MAIN(argc, argv, cases);
}
