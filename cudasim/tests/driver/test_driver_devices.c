/* Several devices: how many there are, what belongs to which, and whose memory copies, fills and kernels reach. */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/two_devices.h"

typedef const CUDA_MEMCPY3D_PEER *peer_copy;

#define CALLS(X) \
    X(cuInit, (unsigned)) X(cuDeviceGetCount, (int *)) X(cuDeviceGet, (CUdevice *, int)) \
    X(cuDeviceGetUuid_v2, (CUuuid *, CUdevice)) X(cuDeviceGetPCIBusId, (char *, int, CUdevice)) \
    X(cuDeviceGetByPCIBusId, (CUdevice *, const char *)) \
    X(cuDeviceCanAccessPeer, (int *, CUdevice, CUdevice)) X(cuDeviceComputeCapability, (int *, int *, CUdevice)) \
    X(cuDeviceGetP2PAttribute, (int *, int, CUdevice, CUdevice)) \
    X(cuDevicePrimaryCtxRetain, (CUcontext *, CUdevice)) X(cuDevicePrimaryCtxReset_v2, (CUdevice)) \
    X(cuDevicePrimaryCtxGetState, (CUdevice, unsigned *, int *)) \
    X(cuDevicePrimaryCtxSetFlags_v2, (CUdevice, unsigned)) X(cuCtxCreate_v2, (CUcontext *, unsigned, CUdevice)) \
    X(cuCtxDestroy_v2, (CUcontext)) X(cuCtxPushCurrent_v2, (CUcontext)) X(cuCtxPopCurrent_v2, (CUcontext *)) \
    X(cuCtxGetDevice, (CUdevice *)) X(cuCtxEnablePeerAccess, (CUcontext, unsigned)) \
    X(cuCtxDisablePeerAccess, (CUcontext)) X(cuMemAlloc_v2, (CUdeviceptr *, size_t)) X(cuMemFree_v2, (CUdeviceptr)) \
    X(cuMemGetInfo_v2, (size_t *, size_t *)) X(cuMemAllocManaged, (CUdeviceptr *, size_t, unsigned)) \
    X(cuMemHostAlloc, (void **, size_t, unsigned)) X(cuMemFreeHost, (void *)) \
    X(cuMemGetAddressRange_v2, (CUdeviceptr *, size_t *, CUdeviceptr)) \
    X(cuMemPrefetchAsync, (CUdeviceptr, size_t, CUdevice, CUstream)) \
    X(cuPointerGetAttribute, (void *, CUpointer_attribute, CUdeviceptr)) \
    X(cuMemcpy, (CUdeviceptr, CUdeviceptr, size_t)) X(cuMemcpyDtoH_v2, (void *, CUdeviceptr, size_t)) \
    X(cuMemcpyPeer, (CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, size_t)) \
    X(cuMemcpyPeerAsync, (CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, size_t, CUstream)) \
    X(cuMemcpy3DPeer, (peer_copy)) X(cuMemsetD32_v2, (CUdeviceptr, unsigned, size_t)) \
    X(cuLaunchKernel, (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, \
                       void **, void **)) \
    X(cuStreamSynchronize, (CUstream)) X(cuStreamGetDevice, (CUstream, CUdevice *))
DRIVER_CALLS(CALLS)

static void begin(struct test *t)
{
    two_devices_begin(t);
    find_calls(t);
}

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
    if (!driver_is_simulated()) {
        test_skip(t, "GPUs have no settings");
        return;
    }
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        listen_begin(t);
        const int status = in_child(t, rows[i].devices, rows[i].names, rows[i].code, rows[i].count);
        listen_end();
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
    int count = 0, value = 7;
    CUdevice device = 7;
    CUuuid uuid[DEVICES];
    char name[DEVICES][32];
    OK(t, cuDeviceGetCount(&count));
    CHECK(t, driver_is_simulated() ? count == DEVICES : count >= DEVICES);
    for (int i = 0; i < DEVICES; i++) {
        OK(t, cuDeviceGet(&device, i));
        CHECK(t, device == i);
        OK(t, cuDeviceGetUuid_v2(&uuid[i], i));
        OK(t, cuDeviceGetPCIBusId(name[i], sizeof name[i], i));
        OK(t, cuDeviceGetByPCIBusId(&device, name[i]));
        CHECK(t, device == i);
        OK(t, cuDeviceCanAccessPeer(&value, i, i));
        CHECK(t, value == 0);
        OK(t, cuDeviceCanAccessPeer(&value, i, 1 - i));
        CHECK(t, value == 1);
        OK(t, cuDeviceGetP2PAttribute(&value, 2, i, 1 - i));
        CHECK(t, value == 1);
    }
    CHECK(t, memcmp(&uuid[0], &uuid[1], sizeof uuid[0]) != 0 && strcmp(name[0], name[1]) != 0);
    GIVES(t, CUDA_ERROR_INVALID_DEVICE, cuDeviceGet(&device, count));
    if (driver_is_simulated()) GIVES(t, CUDA_ERROR_INVALID_DEVICE, cuDeviceGetByPCIBusId(&device, "0000:02:00.0"));
    GIVES(t, CUDA_ERROR_INVALID_DEVICE, cuDeviceCanAccessPeer(&value, 0, count));
    GIVES(t, CUDA_ERROR_INVALID_DEVICE, cuDeviceCanAccessPeer(&value, -1, 0));
    GIVES(t, CUDA_ERROR_INVALID_DEVICE, cuDeviceGetP2PAttribute(&value, 2, 1, 1));
    GIVES(t, CUDA_ERROR_INVALID_VALUE, cuDeviceGetP2PAttribute(&value, 9, 0, 1));
    GIVES(t, CUDA_ERROR_INVALID_DEVICE, cuDevicePrimaryCtxRetain(&on[0].context, count));
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
    /* Not so on two H100s, of which it is not known in which of the two they differ. */
    if (driver_is_simulated()) CHECK(t, flags == 4 && active == 0);
    else printf("  not checked: after a reset the primary context has flags %u, active %d\n", flags, active);
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
    CHECK(t, !driver_is_simulated() || (after[0] == before[0] && after[1] == before[1] - (1 << 20)));
    for (int i = 0; i < DEVICES; i++) {
        OK(t, cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, on[i].words + 4));
        CHECK(t, ordinal == i);
        GIVES(t, i == 1 ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND,
              cuMemGetAddressRange_v2(&base, &size, on[i].words + 4));
        CHECK(t, i == 0 || (base == on[i].words && size == BYTES));
        GIVES(t, i == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE,      /* no kernel of device 1 reaches it */
              cuPointerGetAttribute(&base, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, on[i].words));
    }
    use(t, 0);
    OK(t, cuMemGetAddressRange_v2(&base, &size, on[0].words + 4));
    CHECK(t, base == on[0].words && size == BYTES);
    GIVES(t, CUDA_ERROR_NOT_FOUND, cuMemGetAddressRange_v2(&base, &size, on[1].words));
    /* Everybody reaches page-locked and managed memory, and anybody frees. */
    OK_OR_RETURN(t, cuMemHostAlloc(&host, BYTES, 0));
    memset(host, 0, BYTES);
    OK(t, add(0, (CUdeviceptr)(uintptr_t)host));
    OK(t, cuStreamSynchronize(on[0].stream));
    CHECK(t, ((uint32_t *)host)[WORDS - 1] == 1);
    OK(t, cuMemFreeHost(host));
    OK(t, cuMemFree_v2(more));
    if (driver_is_simulated()) GIVES(t, CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(more));
    OK(t, cuMemAllocManaged(&more, BYTES, CU_MEM_ATTACH_GLOBAL));
    OK(t, cuMemPrefetchAsync(more, BYTES, 1, NULL));
    GIVES(t, CUDA_ERROR_INVALID_DEVICE, cuMemPrefetchAsync(more, BYTES, 99, NULL));
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
    listen_begin(t);
    GIVES(t, CUDA_ERROR_INVALID_VALUE,
          cuMemcpyPeer(on[1].words, on[0].context, on[0].words, on[1].context, BYTES));
    listen_end();
    SAYS(t, "source");
    SAYS(t, "is not memory of the context of device 1 that the call names, but of another one, of device 0");
    if (driver_is_simulated()) {
        GIVES(t, CUDA_ERROR_INVALID_VALUE,
              cuMemcpyPeer(on[1].words, on[1].context, on[0].words, on[0].context, BYTES + 1));
        GIVES(t, CUDA_ERROR_INVALID_CONTEXT,
              cuMemcpyPeer(on[1].words, (CUcontext)(void *)on, on[0].words, on[0].context, BYTES));
    }
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
    listen_begin(t);
    GIVES(t, CUDA_ERROR_INVALID_VALUE, cuMemcpy3DPeer(&box));
    listen_end();
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
    if (driver_is_simulated())
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
    OK(t, cuStreamSynchronize(on[1].stream));
    uint32_t words[5];
    OK(t, cuMemcpyDtoH_v2(words, later, sizeof words));
    CHECK(t, words[0] == 5 && words[3] == 5 && words[4] == 9);
    refused(t, 1, add, later + BYTES, "bytes behind the start of the");
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
    refused(t, 1, add, on[0].words, owner);
    SAYS(t, "out-of-bounds access");
    SAYS(t, "lane 0, device 1\n");
    CHECK(t, holds(t, on[0].words, 100));
    open_device(t, 1);
    refused(t, 1, bulk, on[0].words, "in memory of device 0; peer access of this context of device 1 to it");
    open_device(t, 1);
    use(t, 1);
    OK(t, cuCtxEnablePeerAccess(on[0].context, 0));
    OK(t, add(1, on[0].words));
    OK(t, cuStreamSynchronize(on[1].stream));
    OK(t, cuCtxDisablePeerAccess(on[0].context));
    refused(t, 1, add, on[0].words, "is not enabled");
    /* A fill is the current context's work. */
    begin(t);
    listen_begin(t);
    GIVES(t, CUDA_ERROR_INVALID_VALUE, cuMemsetD32_v2(on[1].words, 0, WORDS));
    listen_end();
    SAYS(t, "a fill on device 0 writes");
    OK(t, cuCtxEnablePeerAccess(on[1].context, 0));
    OK(t, cuMemsetD32_v2(on[1].words, 3, WORDS));
    CHECK(t, holds(t, on[1].words, 3));
    /* Nor do two contexts of one device share. */
    CUcontext second;
    CUdeviceptr theirs;
    OK(t, cuCtxCreate_v2(&second, 0, 0));
    OK(t, cuMemAlloc_v2(&theirs, BYTES));
    refused(t, 0, add, theirs, "in another context of device 0");
    OK(t, cuCtxDestroy_v2(second));
}

int main(int argc, char **argv)
{
    two_devices_set();
    static const struct test_case cases[] = {
        TEST(settings),
        TEST(devices_differ),
        TEST(contexts_have_a_device),
        TEST(memory_has_a_device),
        TEST(copies_between_devices),
        TEST(peer_access_is_enabled_once),
        TEST(kernels_reach_peers),
        TEST(other_memory_is_out_of_bounds),
    };
    return TEST_MAIN(argc, argv, cases);
}
