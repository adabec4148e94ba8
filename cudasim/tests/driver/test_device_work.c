/* Streams, events, faults, libraries, graphs, mappings, pools and programmatic launches of several devices. */
#include <stdlib.h>

#include "tests/support/two_devices.h"

typedef const CUmemAllocationProp *allocation_properties;
typedef const CUmemAccessDesc *access_list;
typedef const CUDA_MEMSET_NODE_PARAMS *fill_parameters_pointer;
typedef const CUDA_MEMCPY3D *copy_pointer;
typedef const CUDA_MEMCPY3D_PEER *peer_copy;
typedef const CUDA_KERNEL_NODE_PARAMS *kernel_parameters_pointer;

#define CALLS(X) \
    X(cuDevicePrimaryCtxReset_v2, (CUdevice)) X(cuCtxSynchronize, (void)) \
    X(cuCtxEnablePeerAccess, (CUcontext, unsigned)) X(cuMemGetInfo_v2, (size_t *, size_t *)) \
    X(cuPointerGetAttribute, (void *, CUpointer_attribute, CUdeviceptr)) \
    X(cuMemcpyDtoDAsync_v2, (CUdeviceptr, CUdeviceptr, size_t, CUstream)) \
    X(cuMemcpyPeer, (CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, size_t)) \
    X(cuMemcpyPeerAsync, (CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, size_t, CUstream)) \
    X(cuMemcpy3DPeerAsync, (peer_copy, CUstream)) X(cuMemsetD32_v2, (CUdeviceptr, unsigned, size_t)) \
    X(cuLibraryLoadData, (CUlibrary *, const void *, void *, void *, unsigned, void *, void *, unsigned)) \
    X(cuLibraryGetKernel, (CUkernel *, CUlibrary, const char *)) X(cuLibraryUnload, (CUlibrary)) \
    X(cuKernelGetAttribute, (int *, int, CUkernel, CUdevice)) \
    X(cuKernelSetAttribute, (int, int, CUkernel, CUdevice)) \
    X(cuLaunchKernel, (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, \
                       void **, void **)) \
    X(cuStreamDestroy_v2, (CUstream)) X(cuStreamSynchronize, (CUstream)) \
    X(cuStreamWaitEvent, (CUstream, CUevent, unsigned)) X(cuEventCreate, (CUevent *, unsigned)) \
    X(cuEventRecord, (CUevent, CUstream)) X(cuEventSynchronize, (CUevent)) X(cuEventDestroy_v2, (CUevent)) \
    X(cuEventElapsedTime_v2, (float *, CUevent, CUevent)) \
    X(cuStreamBeginCapture_v2, (CUstream, CUstreamCaptureMode)) X(cuStreamEndCapture, (CUstream, CUgraph *)) \
    X(cuGraphInstantiateWithFlags, (CUgraphExec *, CUgraph, unsigned long long)) \
    X(cuGraphLaunch, (CUgraphExec, CUstream)) X(cuGraphExecDestroy, (CUgraphExec)) X(cuGraphDestroy, (CUgraph)) \
    X(cuGraphCreate, (CUgraph *, unsigned)) \
    X(cuGraphAddMemsetNode, (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, fill_parameters_pointer, CUcontext)) \
    X(cuGraphAddMemcpyNode, (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, copy_pointer, CUcontext)) \
    X(cuGraphAddKernelNode_v2, (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, kernel_parameters_pointer)) \
    X(cuModuleLoadData, (CUmodule *, const void *)) X(cuModuleGetFunction, (CUfunction *, CUmodule, const char *)) \
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

static void begin(struct test *t)
{
    two_devices_begin(t);
    find_calls(t);
}

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
    listen_begin(t);
    GIVES(t, CUDA_ERROR_INVALID_HANDLE, cuEventRecord(event[0], on[1].stream));
    GIVES(t, CUDA_ERROR_INVALID_HANDLE,
          cuLaunchKernel(on[0].add, 1, 1, 1, 1, 1, 1, 0, on[1].stream, (void *[]){ &on[0].words }, NULL));
    listen_end();
    SAYS(t, "the event was created in a context of device 0, and the stream in another one, of device 1");
    SAYS(t, "while a context of device 0 is current, into a stream of another one, of device 1");
    GIVES(t, CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime_v2(&time, event[0], event[1]));
    GIVES(t, CUDA_ERROR_INVALID_HANDLE,
          cuLaunchKernel(on[1].add, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){ &on[0].words }, NULL));
    OK(t, cuEventDestroy_v2(event[1]));
    if (driver_is_simulated()) GIVES(t, CUDA_ERROR_INVALID_HANDLE, cuEventSynchronize(event[1]));
    OK(t, cuStreamDestroy_v2(on[1].stream));
    if (driver_is_simulated()) GIVES(t, CUDA_ERROR_INVALID_HANDLE, cuStreamSynchronize(on[1].stream));
}

/* What a faulty device has gives its fault, whichever context is current. */
static void a_fault_is_of_one_device(struct test *t)
{
    if (!driver_is_simulated()) {
        test_skip(t, "a GPU is lost to a process after a fault");
        return;
    }
    begin(t);
    CUevent event;
    use(t, 1);
    OK(t, cuEventCreate(&event, 0));
    refused(t, 1, add, 64, "at global address 0x40");
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
    OK_OR_RETURN(t, cuLibraryLoadData(&library, two_devices_text, NULL, NULL, 0, NULL, NULL, 0));
    OK_OR_RETURN(t, cuLibraryGetKernel(&kernel, library, "add"));
    OK(t, cuKernelSetAttribute(most, 100000, kernel, 1));
    OK(t, cuKernelGetAttribute(&value, most, kernel, 1));
    CHECK(t, value == 100000);
    OK(t, cuKernelGetAttribute(&value, most, kernel, 0));
    CHECK(t, value != 100000);
    GIVES(t, CUDA_ERROR_INVALID_DEVICE, cuKernelGetAttribute(&value, most, kernel, 99));
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
    OK(t, cuMemcpyDtoDAsync_v2(on[1].words, on[0].words, BYTES, on[1].stream));
    OK(t, add(1, on[1].words));
    OK(t, cuEventRecord(join_event, on[1].stream));
    use(t, 0);
    OK(t, cuStreamWaitEvent(on[0].stream, join_event, 0));
    OK(t, cuMemcpyDtoDAsync_v2(on[0].words, on[1].words, BYTES, on[0].stream));
    OK_OR_RETURN(t, cuStreamEndCapture(on[0].stream, &graph));
    CHECK(t, holds(t, on[0].words, 100) && holds(t, on[1].words, 200));
    OK_OR_RETURN(t, cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(t, cuGraphLaunch(exec, on[0].stream));
    CHECK(t, holds(t, on[0].words, 102) && holds(t, on[1].words, 102));
    use(t, 1);
    OK(t, cuGraphLaunch(exec, on[1].stream));
    CHECK(t, holds(t, on[0].words, 104) && holds(t, on[1].words, 104));
    /* Without the other device's context, or with another one, its nodes cannot run. */
    if (driver_is_simulated()) {
        OK(t, cuDevicePrimaryCtxReset_v2(1));
        open_device(t, 1);
        use(t, 0);
        GIVES(t, CUDA_ERROR_CONTEXT_IS_DESTROYED, cuGraphLaunch(exec, on[0].stream));
        CHECK(t, holds(t, on[0].words, 104));
    }
    OK(t, cuGraphExecDestroy(exec));
    OK(t, cuGraphDestroy(graph));
}

/* A copy that names contexts is not captured, and the capture is lost; plain copies between devices are. */
static void captures_take_no_peer_copies(struct test *t)
{
    begin(t);
    const CUDA_MEMCPY3D_PEER box = {
        .srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = on[0].words, .srcContext = on[0].context,
        .dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = on[1].words, .dstContext = on[1].context,
        .WidthInBytes = BYTES, .Height = 1, .Depth = 1
    };
    use(t, 1);
    for (int boxes = 0; boxes < (driver_is_simulated() ? 2 : 1); boxes++) {
        CUgraph graph = NULL;
        OK(t, cuStreamBeginCapture_v2(on[1].stream, CU_STREAM_CAPTURE_MODE_RELAXED));
        listen_begin(t);
        for (int again = 0; again < 2; again++)
            GIVES(t, again ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                  boxes ? cuMemcpy3DPeerAsync(&box, on[1].stream)
                        : cuMemcpyPeerAsync(on[1].words, on[1].context, on[0].words, on[0].context, BYTES,
                                            on[1].stream));
        listen_end();
        SAYS(t, "cannot be captured; cuMemcpyAsync between the same addresses can");
        GIVES(t, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(on[1].stream, &graph));
        CHECK(t, graph == NULL && holds(t, on[1].words, 200));
    }
    OK(t, cuMemcpyPeerAsync(on[1].words, on[1].context, on[0].words, on[0].context, BYTES, on[1].stream));
    CHECK(t, holds(t, on[1].words, 100));
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
    OK_OR_RETURN(t, cuGraphCreate(&graph, 0));
    listen_begin(t);
    GIVES(t, CUDA_ERROR_INVALID_VALUE, cuGraphAddMemsetNode(&fill, graph, NULL, 0, &fill_parameters, on[0].context));
    listen_end();
    SAYS(t, "a fill on device 0 writes");
    OK(t, cuGraphAddMemsetNode(&fill, graph, NULL, 0, &fill_parameters, on[1].context));
    OK(t, cuGraphAddKernelNode_v2(&kernel, graph, &fill, 1, &launch));
    OK(t, cuGraphAddMemcpyNode(&copy, graph, &kernel, 1, &copy_parameters, on[0].context));
    OK_OR_RETURN(t, cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(t, cuGraphLaunch(exec, on[0].stream));
    CHECK(t, holds(t, on[0].words, 71));
    OK(t, cuGraphExecDestroy(exec));
    OK(t, cuGraphDestroy(graph));
}

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
    OK_OR_RETURN(t, cuMemCreate(&handle, GRANULE, &properties, 0));
    OK(t, cuMemAddressReserve(&range, GRANULE, 0, 0, 0));
    OK(t, cuMemMap(range, GRANULE, 0, handle, 0));
    OK(t, cuMemGetInfo_v2(&own_after, &total));
    use(t, 1);
    OK(t, cuMemGetInfo_v2(&after, &total));
    CHECK(t, !driver_is_simulated() || (after == before - GRANULE && own_after == own_before));
    access[1].flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    OK(t, cuMemSetAccess(range, GRANULE, &access[1], 1));
    OK(t, cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, range));
    CHECK(t, ordinal == 1);
    OK(t, cuMemsetD32_v2(range, 50, WORDS));
    OK(t, add(1, range));
    CHECK(t, holds(t, range, 51));
    refused(t, 0, add, range, "to which device 0 was not given access (cuMemSetAccess; peer access does not count)");
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
    OK(t, cuStreamSynchronize(on[1].stream));
    OK(t, cuLaunchKernel(on[0].copy, 1, 1, 1, WORDS, 1, 1, 0, NULL, (void *[]){ &on[0].words, &range }, NULL));
    CHECK(t, holds(t, on[0].words, 51));
    use(t, 1);
    OK(t, add(1, range));
    CHECK(t, holds(t, range, 52));
    refused(t, 0, add, range, "writes memory that its device may only read (cuMemSetAccess) at 0x");
    access[1].location.id = 99;
    GIVES(t, CUDA_ERROR_INVALID_VALUE, cuMemSetAccess(range, GRANULE, access, DEVICES));
    properties.location.id = 99;
    CUmemGenericAllocationHandle third;
    GIVES(t, CUDA_ERROR_INVALID_DEVICE, cuMemCreate(&third, GRANULE, &properties, 0));
    OK(t, cuMemRelease(handle));
}

/* What a grid may touch before it waits is watched on the peer's memory too, by device: the second one's first grid is
 * in flight when its next one reads, or has TMA overwrite, a word of the first one's memory, which that grid has
 * written or the first one's own first grid. */
static void grids_beside_each_other_on_a_peer(struct test *t)
{
    if (!driver_is_simulated()) {
        test_skip(t, "a GPU reports nothing");
        return;
    }
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
        listen_begin(t);
        OK(t, cuLaunchKernelEx(&beside, rows[i].bulk ? on[1].bulk : on[1].late, (void *[]){ theirs }, NULL));
        listen_end();
        GIVES(t, rows[i].verb != NULL ? CUDA_ERROR_LAUNCH_FAILED : CUDA_SUCCESS, cuCtxSynchronize());
        if (rows[i].verb == NULL) continue;
        snprintf(sentence, sizeof sentence,
                 "%s the byte at global address 0x%llx, which is written by kernel add, launched before", rows[i].verb,
                 on[0].words);
        SAYS(t, sentence);
    }
}

/* ahead(p) lets the next grid begin, and writes a word later. */
static const char ahead_text[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n"
    ".visible .entry ahead(.param .u64 p)\n{\n.reg .b64 %a; .reg .b32 %v; .reg .pred %more;\nld.param.u64 %a, [p];\n"
    "griddepcontrol.launch_dependents; mov.u32 %v, 0;\nL: add.u32 %v, %v, 1; setp.lt.u32 %more, %v, 900;\n"
    "@%more bra L; st.global.u32 [%a], %v; ret;\n}\n";

/* The same of grids that overlap (CUDASIM_OVERLAP=0: that do not), which run when the host waits.  The first device has
 * launched more grids than the second one, and has written the words that these read and write. */
static void grids_overlap_on_a_peer(struct test *t)
{
    if (!driver_is_simulated()) {
        test_skip(t, "a GPU reports nothing");
        return;
    }
    const char *const setting = getenv("CUDASIM_OVERLAP");
    const bool overlap = setting == NULL || strcmp(setting, "0") != 0;
    CUlaunchAttribute early = { .id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION };
    early.value.programmaticStreamSerializationAllowed = 1;
    for (int same = 0; same < 2; same++) {
        begin(t);
        const CUlaunchConfig plain = { 1, 1, 1, 1, 1, 1, 0, on[1].stream, NULL, 0 };
        const CUlaunchConfig beside = { 1, 1, 1, 1, 1, 1, 0, on[1].stream, &early, 1 };
        CUdeviceptr written = on[0].words, read = on[0].words + (same ? 0 : 4);
        CUmodule module;
        CUfunction ahead;
        char sentence[160];
        for (int i = 0; i < 20; i++) OK(t, add(0, on[0].words));
        use(t, 1);
        OK(t, cuCtxEnablePeerAccess(on[0].context, 0));
        OK_OR_RETURN(t, cuModuleLoadData(&module, ahead_text));
        OK_OR_RETURN(t, cuModuleGetFunction(&ahead, module, "ahead"));
        listen_begin(t);
        OK(t, cuLaunchKernelEx(&plain, ahead, (void *[]){ &written }, NULL));
        OK(t, cuLaunchKernelEx(&beside, on[1].late, (void *[]){ &read }, NULL));
        GIVES(t, same ? CUDA_ERROR_LAUNCH_FAILED : CUDA_SUCCESS, cuCtxSynchronize());
        listen_end();
        if (!same) continue;
        snprintf(sentence, sizeof sentence, "%s the byte at global address 0x%llx, which %s",
                 overlap ? "overwrites" : "reads", on[0].words,
                 overlap ? "was read by kernel late, launched behind" : "is written by kernel ahead, launched before");
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
    refused(t, 1, add, p[0],
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
    refused(t, 1, add, p[0], "to which device 1 was not given access");
    access.location.id = 0;
    GIVES(t, CUDA_ERROR_INVALID_DEVICE, cuMemPoolSetAccess(pool[0], &access, 1));
    access.location.id = 99;
    GIVES(t, CUDA_ERROR_INVALID_DEVICE, cuMemPoolSetAccess(pool[0], &access, 1));
}

int main(int argc, char **argv)
{
    two_devices_set();
    static const struct test_case cases[] = {
        TEST(streams_wait_for_other_devices),
        TEST(a_fault_is_of_one_device),
        TEST(libraries_serve_all_devices),
        TEST(a_graph_spans_devices),
        TEST(captures_take_no_peer_copies),
        TEST(nodes_name_contexts),
        TEST(mappings_name_devices),
        TEST(grids_beside_each_other_on_a_peer),
        TEST(grids_overlap_on_a_peer),
        TEST(pools_name_devices),
    };
    return TEST_MAIN(argc, argv, cases);
}
