/* Stream capture and graphs. */
#include <stdlib.h>

#include "tests/support/driver_api.h"

#define CALLS(X) \
    X(cuStreamCreate, (CUstream *, unsigned)) \
    X(cuStreamDestroy_v2, (CUstream)) X(cuStreamSynchronize, (CUstream)) X(cuStreamQuery, (CUstream)) X( \
        cuStreamWaitEvent, (CUstream, CUevent, unsigned)) X(cuEventCreate, (CUevent *, unsigned)) \
        X(cuEventRecord, (CUevent, CUstream)) X(cuEventRecordWithFlags, (CUevent, CUstream, unsigned)) X( \
            cuEventQuery, (CUevent)) X(cuEventSynchronize, (CUevent)) X(cuEventDestroy_v2, (CUevent)) \
            X(cuCtxSynchronize, (void)) X(cuMemAlloc_v2, (CUdeviceptr *, size_t)) X(cuMemFree_v2, (CUdeviceptr)) X( \
                cuMemsetD32Async, \
                (CUdeviceptr, unsigned, size_t, CUstream)) X(cuMemsetD32_v2, (CUdeviceptr, unsigned, size_t)) \
                X(cuMemcpyDtoH_v2, (void *, CUdeviceptr, size_t)) X( \
                    cuMemcpyDtoDAsync_v2, \
                    (CUdeviceptr, CUdeviceptr, size_t, CUstream)) X(cuModuleLoadData, (CUmodule *, const void *)) \
                    X(cuModuleGetFunction, (CUfunction *, CUmodule, const char *)) X( \
                        cuLaunchKernel, \
                        (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, \
                         void **, void **)) X(cuLaunchHostFunc, (CUstream, CUhostFn *, void *)) \
                        X(cuStreamBeginCapture_v2, \
                          (CUstream, CUstreamCaptureMode)) X(cuStreamEndCapture, (CUstream, CUgraph *)) \
                            X(cuStreamIsCapturing, (CUstream, CUstreamCaptureStatus *)) X( \
                                cuStreamGetCaptureInfo_v2, \
                                (CUstream, CUstreamCaptureStatus *, cuuint64_t *, CUgraph *, const CUgraphNode **, \
                                 size_t *)) X(cuThreadExchangeStreamCaptureMode, (CUstreamCaptureMode *)) \
                                X(cuGraphCreate, \
                                  (CUgraph *, unsigned)) X(cuGraphDestroy, \
                                                           (CUgraph)) X(cuGraphClone, (CUgraph *, CUgraph)) \
                                    X(cuGraphNodeFindInClone, \
                                      (CUgraphNode *, CUgraphNode, \
                                       CUgraph)) X(cuGraphAddEmptyNode, \
                                                   (CUgraphNode *, CUgraph, const CUgraphNode *, \
                                                    size_t)) X(cuGraphAddKernelNode_v2, \
                                                               (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, \
                                                                const CUDA_KERNEL_NODE_PARAMS *)) \
                                        X( \
                                            cuGraphAddMemsetNode, \
                                            (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, \
                                             const CUDA_MEMSET_NODE_PARAMS *, \
                                             CUcontext)) X(cuGraphAddMemcpyNode, \
                                                           (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, \
                                                            const CUDA_MEMCPY3D *, CUcontext)) \
                                            X( \
                                                cuGraphAddHostNode, \
                                                (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, \
                                                 const CUDA_HOST_NODE_PARAMS \
                                                     *)) X(cuGraphAddEventRecordNode, \
                                                           (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, \
                                                            CUevent)) \
                                                X(cuGraphAddChildGraphNode, \
                                                  (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, \
                                                   CUgraph)) X(cuGraphGetNodes, (CUgraph, CUgraphNode *, size_t *)) \
                                                    X(cuGraphGetRootNodes, (CUgraph, CUgraphNode *, size_t *)) X( \
                                                        cuGraphGetEdges, \
                                                        (CUgraph, CUgraphNode *, CUgraphNode *, size_t *)) \
                                                        X(cuGraphNodeGetType, (CUgraphNode, CUgraphNodeType *)) X( \
                                                            cuGraphAddDependencies, \
                                                            (CUgraph, const CUgraphNode *, const CUgraphNode *, \
                                                             size_t)) \
                                                            X(cuGraphRemoveDependencies, \
                                                              (CUgraph, const CUgraphNode *, const CUgraphNode *, \
                                                               size_t)) X(cuGraphDestroyNode, (CUgraphNode)) \
                                                                X(cuGraphInstantiateWithFlags, \
                                                                  (CUgraphExec *, CUgraph, unsigned long long)) \
                                                                    X(cuGraphExecDestroy, (CUgraphExec)) X( \
                                                                        cuGraphLaunch, (CUgraphExec, CUstream)) \
                                                                        X(cuGraphUpload, (CUgraphExec, CUstream)) X( \
                                                                            cuGraphExecUpdate_v2, \
                                                                            (CUgraphExec, CUgraph, \
                                                                             CUgraphExecUpdateResultInfo *)) \
                                                                            X(cuGraphKernelNodeGetParams_v2, \
                                                                              (CUgraphNode, \
                                                                               CUDA_KERNEL_NODE_PARAMS *)) \
                                                                                X(cuGraphExecKernelNodeSetParams_v2, \
                                                                                  (CUgraphExec, CUgraphNode, \
                                                                                   const CUDA_KERNEL_NODE_PARAMS *)) \
                                                                                    X(cuGraphExecMemsetNodeSetParams, \
                                                                                      (CUgraphExec, CUgraphNode, \
                                                                                       const CUDA_MEMSET_NODE_PARAMS \
                                                                                           *, \
                                                                                       CUcontext)) \
                                                                                        X(cuGraphNodeSetEnabled, \
                                                                                          (CUgraphExec, CUgraphNode, \
                                                                                           unsigned)) \
                                                                                            X(cuCtxGetCurrent, \
                                                                                              (CUcontext *))
DRIVER_CALLS(CALLS)

/* add(p, n): *p = *p * 3 + n */
static const char text[] = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry add(.param .u64 p, .param "
                           ".u32 n)\n{\n"
                           ".reg .b64 %a; .reg .b32 %v, %n;\nld.param.u64 %a, [p]; ld.param.u32 %n, [n];\n"
                           "ld.global.u32 %v, [%a]; mad.lo.u32 %v, %v, 3, %n; st.global.u32 [%a], %v; ret;\n}\n";
static CUfunction add;
static CUdeviceptr cell;
static CUcontext context;

static void begin(struct test *t)
{
    CUmodule module;
    driver_begin(t);
    if (add != NULL) return;
    find_calls(t);
    OK(t, cuModuleLoadData(&module, text));
    OK(t, cuModuleGetFunction(&add, module, "add"));
    OK(t, cuMemAlloc_v2(&cell, 256));
    OK(t, cuCtxGetCurrent(&context));
}

static void launch(struct test *t, CUstream stream, unsigned n)
{
    OK(t, cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, stream, (void *[]){ &cell, &n }, NULL));
}

static unsigned value(struct test *t, CUdeviceptr at)
{
    unsigned v = 0;
    OK(t, cuCtxSynchronize());
    OK(t, cuMemcpyDtoH_v2(&v, at, sizeof v));
    return v;
}

/* Fork and join: a; then b and c side by side on cells of their own; then d. */
static void a_capture_keeps_its_order_and_is_replayed(struct test *t)
{
    begin(t);
    CUstream main, side;
    CUevent fork, join;
    CUgraph graph;
    CUgraphExec exec;
    OK(t, cuStreamCreate(&main, CU_STREAM_NON_BLOCKING));
    OK(t, cuStreamCreate(&side, CU_STREAM_NON_BLOCKING));
    OK(t, cuEventCreate(&fork, 2));
    OK(t, cuEventCreate(&join, 2));
    OK(t, cuStreamBeginCapture_v2(main, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(t, cuMemsetD32Async(cell, 1, 1, main));
    launch(t, main, 1);
    OK(t, cuEventRecord(fork, main));
    OK(t, cuStreamWaitEvent(side, fork, 0));
    OK(t, cuMemcpyDtoDAsync_v2(cell + 4, cell, 4, side));
    OK(t, cuEventRecord(join, side));
    OK(t, cuStreamWaitEvent(main, join, 0));
    launch(t, main, 2);
    CUstreamCaptureStatus status;
    size_t count = 0;
    OK(t, cuStreamIsCapturing(side, &status));
    CHECK(t, status == CU_STREAM_CAPTURE_STATUS_ACTIVE);
    OK(t, cuStreamGetCaptureInfo_v2(main, &status, NULL, NULL, NULL, &count));
    CHECK(t, count == 1);
    OK(t, cuStreamEndCapture(main, &graph));
    OK(t, cuStreamIsCapturing(side, &status));
    CHECK(t, status == CU_STREAM_CAPTURE_STATUS_NONE);
    OK(t, cuGraphGetNodes(graph, NULL, &count));
    CHECK(t, count == 4);
    OK(t, cuGraphGetRootNodes(graph, NULL, &count));
    CHECK(t, count == 1);
    OK(t, cuGraphGetEdges(graph, NULL, NULL, &count));
    CHECK(t, count == 4);                 /* memset, kernel; kernel, copy; kernel, kernel; copy, kernel */
    OK(t, cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(t, cuGraphDestroy(graph));
    OK(t, cuMemsetD32_v2(cell, 77, 2));
    CHECK(t, value(t, cell) == 77);
    OK(t, cuGraphUpload(exec, main));
    for (int i = 0; i < 50; i++) {
        OK(t, cuGraphLaunch(exec, main));
        if (i % 7 == 0) CHECK(t, value(t, cell) == 14 && value(t, cell + 4) == 4);
    }
    OK(t, cuGraphExecDestroy(exec));
    OK(t, cuStreamDestroy_v2(side));
    OK(t, cuStreamDestroy_v2(main));
    OK(t, cuEventDestroy_v2(fork));
    OK(t, cuEventDestroy_v2(join));
}

static CUDA_KERNEL_NODE_PARAMS kernel_node(void **parameters)
{
    return (CUDA_KERNEL_NODE_PARAMS){ .func = add,
                                      .gridDimX = 1,
                                      .gridDimY = 1,
                                      .gridDimZ = 1,
                                      .blockDimX = 1,
                                      .blockDimY = 1,
                                      .blockDimZ = 1,
                                      .kernelParams = parameters };
}

static void nodes_are_made_changed_and_switched_off(struct test *t)
{
    begin(t);
    CUgraph graph, clone;
    CUgraphNode fill, kernel, found;
    CUgraphExec exec, other;
    unsigned n = 5;
    CUDA_KERNEL_NODE_PARAMS k = kernel_node((void *[]){ &cell, &n });
    CUDA_MEMSET_NODE_PARAMS f = { .dst = cell, .value = 10, .elementSize = 4, .width = 1, .height = 1 };
    OK(t, cuGraphCreate(&graph, 0));
    OK(t, cuGraphAddMemsetNode(&fill, graph, NULL, 0, &f, context));
    OK(t, cuGraphAddKernelNode_v2(&kernel, graph, &fill, 1, &k));
    n = 1000;                             /* the node has a copy */
    CUDA_KERNEL_NODE_PARAMS got;
    OK(t, cuGraphKernelNodeGetParams_v2(kernel, &got));
    CHECK(t, got.func == add && *(unsigned *)got.kernelParams[1] == 5);
    OK(t, cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(t, cuGraphLaunch(exec, NULL));
    CHECK(t, value(t, cell) == 35);
    n = 6;
    OK(t, cuGraphExecKernelNodeSetParams_v2(exec, kernel, &k));
    f.value = 20;
    OK(t, cuGraphExecMemsetNodeSetParams(exec, fill, &f, context));
    OK(t, cuGraphLaunch(exec, NULL));
    CHECK(t, value(t, cell) == 66);
    OK(t, cuGraphNodeSetEnabled(exec, kernel, 0));
    OK(t, cuGraphLaunch(exec, NULL));
    CHECK(t, value(t, cell) == 20);
    OK(t, cuGraphClone(&clone, graph));
    OK(t, cuGraphNodeFindInClone(&found, kernel, clone));
    OK(t, cuGraphInstantiateWithFlags(&other, clone, 0));
    CUgraphExecUpdateResultInfo info;
    OK(t, cuGraphExecUpdate_v2(exec, clone, &info));
    CHECK(t, info.result == CU_GRAPH_EXEC_UPDATE_SUCCESS);
    OK(t, cuGraphDestroyNode(found));
    GIVES(t, CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate_v2(exec, clone, &info));
    CHECK(t, info.result == CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
    OK(t, cuGraphLaunch(other, NULL));
    CHECK(t, value(t, cell) == 35);
    OK(t, cuGraphExecDestroy(exec));
    OK(t, cuGraphExecDestroy(other));
    OK(t, cuGraphDestroy(clone));
    OK(t, cuGraphDestroy(graph));
}

static void note(void *user) { ++*(int *)user; }

static void children_host_functions_and_events(struct test *t)
{
    begin(t);
    CUgraph inner, graph;
    CUgraphNode fill, kernel, child, host, event_node;
    CUgraphExec exec;
    CUevent event;
    int calls = 0;
    unsigned n = 1;
    const CUDA_KERNEL_NODE_PARAMS k = kernel_node((void *[]){ &cell, &n });
    const CUDA_MEMSET_NODE_PARAMS f = { .dst = cell, .value = 2, .elementSize = 4, .width = 1, .height = 1 };
    OK(t, cuEventCreate(&event, 0));
    OK(t, cuGraphCreate(&inner, 0));
    OK(t, cuGraphCreate(&graph, 0));
    OK(t, cuGraphAddKernelNode_v2(&kernel, inner, NULL, 0, &k));
    OK(t, cuGraphAddKernelNode_v2(&kernel, inner, &kernel, 1, &k));
    OK(t, cuGraphAddMemsetNode(&fill, graph, NULL, 0, &f, context));
    OK(t, cuGraphAddChildGraphNode(&child, graph, &fill, 1, inner));
    OK(t, cuGraphDestroy(inner));
    OK(t, cuGraphAddHostNode(&host, graph, &child, 1, &(CUDA_HOST_NODE_PARAMS){ note, &calls }));
    OK(t, cuGraphAddEventRecordNode(&event_node, graph, &host, 1, event));
    OK(t, cuGraphAddKernelNode_v2(&kernel, graph, &host, 1, &k));
    OK(t, cuGraphInstantiateWithFlags(&exec, graph, 0));
    for (int i = 0; i < 20; i++) OK(t, cuGraphLaunch(exec, NULL));
    CHECK(t, value(t, cell) == ((2 * 3 + 1) * 3 + 1) * 3 + 1 && calls == 20);
    OK(t, cuEventSynchronize(event));
    OK(t, cuGraphExecDestroy(exec));
    OK(t, cuGraphDestroy(graph));
    OK(t, cuEventDestroy_v2(event));
}

/* Two kernels that write the same cell: with the edge the result is one, without it both orders are seen. */
static void a_missing_edge_shows(struct test *t)
{
    begin(t);
    if (!driver_is_simulated()) {
        test_skip(t, "a real device may keep an order by chance");
        return;
    }
    for (int edge = 1; edge >= 0; edge--) {
        CUgraph graph;
        CUgraphNode fill, one, two;
        CUgraphExec exec;
        unsigned n = 1, m = 2, first = 0, second = 0;
        const CUDA_KERNEL_NODE_PARAMS a = kernel_node((void *[]){ &cell, &n }),
                                      b = kernel_node((void *[]){ &cell, &m });
        const CUDA_MEMSET_NODE_PARAMS f = { .dst = cell, .value = 0, .elementSize = 4, .width = 1, .height = 1 };
        OK(t, cuGraphCreate(&graph, 0));
        OK(t, cuGraphAddMemsetNode(&fill, graph, NULL, 0, &f, context));
        OK(t, cuGraphAddKernelNode_v2(&one, graph, &fill, 1, &a));
        OK(t, cuGraphAddKernelNode_v2(&two, graph, &fill, 1, &b));
        if (edge) OK(t, cuGraphAddDependencies(graph, &one, &two, 1));
        OK(t, cuGraphInstantiateWithFlags(&exec, graph, 0));
        for (int i = 0; i < 20; i++) {
            OK(t, cuGraphLaunch(exec, NULL));
            const unsigned got = value(t, cell);
            first += got == 5, second += got == 7;
        }
        CHECK(t, first + second == 20);
        CHECK(t, edge ? second == 0 : first != 0 && second != 0);
        OK(t, cuGraphExecDestroy(exec));
        OK(t, cuGraphDestroy(graph));
    }
}

static void edges_and_cycles(struct test *t)
{
    begin(t);
    CUgraph graph;
    CUgraphNode n[3];
    CUgraphExec exec;
    CUgraphNodeType type;
    OK(t, cuGraphCreate(&graph, 0));
    for (int i = 0; i < 3; i++) OK(t, cuGraphAddEmptyNode(&n[i], graph, i == 0 ? NULL : &n[i - 1], i != 0));
    OK(t, cuGraphNodeGetType(n[0], &type));
    CHECK(t, type == CU_GRAPH_NODE_TYPE_EMPTY);
    GIVES(t, CUDA_ERROR_INVALID_VALUE, cuGraphAddDependencies(graph, &n[0], &n[1], 1));
    GIVES(t, CUDA_ERROR_INVALID_VALUE, cuGraphRemoveDependencies(graph, &n[0], &n[2], 1));
    OK(t, cuGraphRemoveDependencies(graph, &n[1], &n[2], 1));
    OK(t, cuGraphDestroyNode(n[1]));
    OK(t, cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(t, cuGraphExecDestroy(exec));
    GIVES(t, CUDA_ERROR_INVALID_VALUE, cuGraphAddDependencies(graph, &n[0], &n[0], 1));
    OK(t, cuGraphDestroy(graph));
}

/* ---- what a capture forbids: each row begins a capture, makes the call, and ends the capture ---- */

static CUstream stream, blocking, second;
static CUevent event, other_event;

static CUresult call_synchronize(void) { return cuStreamSynchronize(stream); }
static CUresult call_query(void) { return cuStreamQuery(stream); }
static CUresult call_context(void) { return cuCtxSynchronize(); }
static CUresult call_allocate(void)
{
    CUdeviceptr p;
    return cuMemAlloc_v2(&p, 16);
}
static CUresult call_begin_again(void) { return cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL); }
static CUresult call_event_query(void)
{
    cuEventRecord(event, stream);
    return cuEventQuery(event);
}
static CUresult call_other_event_query(void) { return cuEventQuery(other_event); }
static CUresult call_isolation(void) { return cuStreamWaitEvent(stream, other_event, 0); }
static CUresult call_unmatched(void)
{
    CUgraph graph;
    cuEventRecord(event, stream);
    cuStreamWaitEvent(second, event, 0);
    return cuStreamEndCapture(second, &graph);
}
static CUresult call_relaxed_allocate(void)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    CUdeviceptr p;
    cuThreadExchangeStreamCaptureMode(&mode);
    const CUresult result = cuMemAlloc_v2(&p, 16);
    if (result == CUDA_SUCCESS) cuMemFree_v2(p);
    cuThreadExchangeStreamCaptureMode(&mode);
    return result;
}
static CUresult call_nothing(void) { return CUDA_SUCCESS; }
static CUresult call_fork_without_join(void)
{
    cuEventRecord(event, stream);
    cuStreamWaitEvent(second, event, 0);
    return cuMemsetD32Async(cell, 1, 1, second);
}
static CUresult call_legacy(void) { return cuMemsetD32Async(cell, 1, 1, NULL); }
static CUresult call_legacy_copy(void)
{
    unsigned v;
    return cuMemcpyDtoH_v2(&v, cell, 4);
}

static void calls_that_a_capture_forbids(struct test *t)
{
    begin(t);
    enum { STREAM, BLOCKING };
    static const struct { const char *name; CUresult (*call)(void), given, ended; int on;
    } rows[] = {
        { "nothing", call_nothing, CUDA_SUCCESS, CUDA_SUCCESS, STREAM },
        { "cuStreamSynchronize", call_synchronize, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
          CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
          STREAM },
        { "cuStreamQuery", call_query, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
          STREAM },
        { "cuCtxSynchronize", call_context, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
          CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, STREAM },
        { "cuMemAlloc", call_allocate, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
          STREAM },
        { "cuMemAlloc, thread relaxed", call_relaxed_allocate, CUDA_SUCCESS, CUDA_SUCCESS, STREAM },
        { "cuStreamBeginCapture", call_begin_again, CUDA_ERROR_ILLEGAL_STATE, CUDA_SUCCESS, STREAM },
        { "cuEventQuery, captured", call_event_query, CUDA_ERROR_CAPTURED_EVENT, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
          STREAM },
        { "cuEventQuery, not captured", call_other_event_query, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
          CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, STREAM },
        { "cuStreamWaitEvent, not captured", call_isolation, CUDA_ERROR_STREAM_CAPTURE_ISOLATION,
          CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, STREAM },
        { "cuStreamEndCapture, other stream", call_unmatched, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED,
          CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, STREAM },
        { "no join", call_fork_without_join, CUDA_SUCCESS, CUDA_ERROR_STREAM_CAPTURE_UNJOINED, STREAM },
        { "legacy stream, blocking", call_legacy, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
          CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
          BLOCKING },
        { "legacy stream, not blocking", call_legacy, CUDA_SUCCESS, CUDA_SUCCESS, STREAM },
        { "cuMemcpyDtoH, blocking", call_legacy_copy, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
          CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
          BLOCKING },
        { "cuMemcpyDtoH, not blocking", call_legacy_copy, CUDA_SUCCESS, CUDA_SUCCESS, STREAM },
    };
    OK(t, cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(t, cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
    OK(t, cuStreamCreate(&blocking, 0));
    OK(t, cuEventCreate(&other_event, 0));
    OK(t, cuEventRecord(other_event, NULL));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CUgraph graph = NULL;
        CUstream on = rows[i].on == STREAM ? stream : blocking;
        OK(t, cuEventCreate(&event, 0));
        OK(t, cuStreamBeginCapture_v2(on, CU_STREAM_CAPTURE_MODE_GLOBAL));
        OK(t, cuMemsetD32Async(cell, 1, 1, on));
        const CUresult given = rows[i].call();
        const CUresult ended = cuStreamEndCapture(on, &graph);
        if (given != rows[i].given) FAIL(t, "%s gives %d, not %d", rows[i].name, (int)given, (int)rows[i].given);
        if (ended != rows[i].ended)
            FAIL(t, "after %s cuStreamEndCapture gives %d, not %d", rows[i].name, (int)ended, (int)rows[i].ended);
        CHECK(t, (graph != NULL) == (ended == CUDA_SUCCESS));
        if (graph != NULL) OK(t, cuGraphDestroy(graph));
        OK(t, cuEventDestroy_v2(event));
    }
    GIVES(t, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamBeginCapture_v2(NULL, CU_STREAM_CAPTURE_MODE_GLOBAL));
    GIVES(t, CUDA_ERROR_INVALID_VALUE, cuStreamBeginCapture_v2(stream, (CUstreamCaptureMode)3));
    CUgraph graph;
    GIVES(t, CUDA_ERROR_ILLEGAL_STATE, cuStreamEndCapture(stream, &graph));
    OK(t, cuStreamDestroy_v2(stream));
    OK(t, cuStreamDestroy_v2(second));
    OK(t, cuStreamDestroy_v2(blocking));
    OK(t, cuEventDestroy_v2(other_event));
}

int main(int argc, char **argv)
{
    setenv("CUDASIM_QUIET", "1", 1);
    static const struct test_case cases[] = {
        TEST(a_capture_keeps_its_order_and_is_replayed), TEST(nodes_are_made_changed_and_switched_off),
        TEST(children_host_functions_and_events),        TEST(a_missing_edge_shows),
        TEST(edges_and_cycles),                          TEST(calls_that_a_capture_forbids),
    };
    return TEST_MAIN(argc, argv, cases);
}
