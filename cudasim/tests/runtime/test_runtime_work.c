/* The runtime library: memory, copies, fills, streams, events, graphs. */
#include <stdlib.h>

#include "tests/support/runtime_api.h"

static int word(struct test *t, const int *device, size_t at)
{
    int value = -1;
    OK(t, cudaMemcpy(&value, device + at, sizeof value, cudaMemcpyDeviceToHost));
    return value;
}

static int *zeros(struct test *t, size_t count)
{
    int *device = NULL;
    OK(t, cudaMalloc((void **)&device, count * sizeof *device));
    OK(t, cudaMemset(device, 0, count * sizeof *device));
    return device;
}

/* ---- memory ---- */

static void memory_comes_and_goes(struct test *t)
{
    int *device = (int *)1, *host = NULL, *managed = NULL;
    size_t available = 0, total = 0, later = 0;
    OK(t, cudaMalloc((void **)&device, 0));
    CHECK(t, device == NULL);
    OK(t, cudaFree(NULL));
    OK(t, cudaMemGetInfo(&available, &total));
    OK(t, cudaMalloc((void **)&device, 1 << 20));
    OK(t, cudaMemGetInfo(&later, &total));
    CHECK(t, later <= available - (1 << 20));
    GIVES(t, cudaErrorInvalidValue, cudaFree(device + 1));
    OK(t, cudaFree(device));
    GIVES(t, cudaErrorInvalidValue, cudaFree(device));
    OK(t, cudaHostAlloc((void **)&host, 400, 0));
    OK(t, cudaMallocManaged((void **)&managed, 400, CU_MEM_ATTACH_GLOBAL));
    for (int i = 0; i < 100; i++) host[i] = managed[i] = i;
    OK(t, run_kernel(add_stub, host, 100, NULL));
    OK(t, run_kernel(add_stub, managed, 100, NULL));
    OK(t, cudaDeviceSynchronize());
    CHECK(t, host[99] == 100 && managed[99] == 100);
    OK(t, cudaFree(managed));
    OK(t, cudaFreeHost(host));
    OK(t, cudaFreeHost(NULL));
    GIVES(t, cudaErrorInvalidValue, cudaFreeHost(host));
    cudaGetLastError();
}

static void pointers_are_known(struct test *t)
{
    cudaPointerAttributes a;
    int *device = zeros(t, 4), *host = NULL, *mapped = NULL;
    static int own[1024];
    OK(t, cudaMallocHost((void **)&host, 16));
    OK(t, cudaPointerGetAttributes(&a, device + 1));
    CHECK(t, a.type == cudaMemoryTypeDevice && a.device == 0 && a.devicePointer == device + 1 && a.hostPointer == NULL);
    OK(t, cudaPointerGetAttributes(&a, host));
    CHECK(t, a.type == cudaMemoryTypeHost && a.hostPointer == host);
    OK(t, cudaPointerGetAttributes(&a, own));
    CHECK(t, a.type == cudaMemoryTypeUnregistered && a.device == -2 && a.devicePointer == NULL);
    OK(t, cudaHostRegister(own, sizeof own, 0));
    OK(t, cudaHostGetDevicePointer((void **)&mapped, own, 0));
    OK(t, run_kernel(add_stub, mapped, 1024, NULL));
    OK(t, cudaDeviceSynchronize());
    CHECK(t, own[1023] == 1);
    GIVES(t, cudaErrorHostMemoryAlreadyRegistered, cudaHostRegister(own, sizeof own, 0));
    OK(t, cudaHostUnregister(own));
    OK(t, cudaFreeHost(host));
    OK(t, cudaFree(device));
    cudaGetLastError();
}

static void planes_and_boxes_are_copied(struct test *t)
{
    cudaPitchedPtr box;
    const cudaExtent extent = { 12, 5, 3 };
    unsigned char from[3][5][12], to[3][5][12], byte = 0;
    for (unsigned i = 0; i < sizeof from; i++) from[i / 60][i / 12 % 5][i % 12] = (unsigned char)rnd(t);
    OK(t, cudaMalloc3D(&box, extent));
    CHECK(t, box.pitch % 512 == 0 && box.xsize == 12 && box.ysize == 5);
    cudaMemcpy3DParms up = { .srcPtr = { from, 12, 12, 5 }, .dstPtr = box, .extent = extent,
                             .kind = cudaMemcpyHostToDevice };
    OK(t, cudaMemcpy3D(&up));
    cudaMemcpy3DParms down = { .srcPtr = box, .dstPtr = { to, 12, 12, 5 }, .extent = extent,
                               .kind = cudaMemcpyDeviceToHost };
    OK(t, cudaMemcpy3D(&down));
    CHECK(t, memcmp(from, to, sizeof from) == 0);
    memset(to, 0, sizeof to);
    OK(t, cudaMemcpy2D(to, 12, (char *)box.ptr + box.pitch, box.pitch, 12, 4, cudaMemcpyDeviceToHost));
    CHECK(t, memcmp(from[0][1], to, 48) == 0 && to[0][4][0] == 0);
    OK(t, cudaMemset3D(box, 0x5a, (cudaExtent){ 7, 2, 3 }));
    OK(t, cudaMemcpy(&byte, (char *)box.ptr + 10 * box.pitch + box.pitch + 6, 1, cudaMemcpyDeviceToHost));
    CHECK(t, byte == 0x5a);               /* plane 2, row 1 */
    OK(t, cudaMemcpy(&byte, (char *)box.ptr + 10 * box.pitch + 2 * box.pitch, 1, cudaMemcpyDeviceToHost));
    CHECK(t, byte == from[2][2][0]);
    down.srcPtr.pitch = 8;
    GIVES(t, cudaErrorInvalidValue, cudaMemcpy3D(&down));
    cudaGetLastError();
    OK(t, cudaFree(box.ptr));
}

static void copies_go_where_they_say(struct test *t)
{
    int *device = zeros(t, 4), *other = zeros(t, 4), value = 7, back = 0;
    OK(t, cudaMemcpy(device, &value, 4, cudaMemcpyDefault));
    OK(t, cudaMemcpy(other, device, 16, cudaMemcpyDeviceToDevice));
    OK(t, cudaMemcpy(&back, other, 4, cudaMemcpyDefault));
    CHECK(t, back == 7);
    OK(t, cudaMemcpyPeer(device + 1, 0, other, 0, 4));
    CHECK(t, word(t, device, 1) == 7);
    OK(t, cudaMemcpy(&value, &back, 4, cudaMemcpyHostToHost));
    OK(t, cudaMemcpy(NULL, NULL, 0, cudaMemcpyHostToDevice));
    GIVES(t, cudaErrorInvalidValue, cudaMemcpy(&value, &back, 4, cudaMemcpyHostToDevice));
    GIVES(t, cudaErrorInvalidValue, cudaMemcpy(device, other, 20, cudaMemcpyDeviceToDevice));
    GIVES(t, cudaErrorInvalidValue, cudaMemset(device, 0, 20));
    cudaGetLastError();
    OK(t, cudaFree(device));
    OK(t, cudaFree(other));
}

/* ---- streams, events ---- */

static void set_true(void *user) { *(bool *)user = true; }
static void keep_result(CUstream stream, CUresult result, void *user)
{
    (void)stream;
    *(int *)user = (int)result + 100;
}

static void work_goes_through_streams(struct test *t)
{
    cudaStream_t a, b;
    cudaEvent_t begin, end;
    float milliseconds = -1;
    bool host_ran = false;
    int called = 0, value = 0, *device = NULL;
    OK(t, cudaStreamCreate(&a));
    OK(t, cudaStreamCreateWithFlags(&b, CU_STREAM_NON_BLOCKING));
    OK(t, cudaEventCreate(&begin));
    OK(t, cudaEventCreate(&end));
    OK(t, cudaMallocAsync((void **)&device, 400, a));
    OK(t, cudaMemsetAsync(device, 0, 400, a));
    OK(t, cudaEventRecord(begin, a));
    OK(t, run_kernel(add_stub, device, 100, a));
    OK(t, cudaEventRecord(end, a));
    OK(t, cudaStreamWaitEvent(b, end, 0));
    OK(t, run_kernel(double_stub, device, 100, b));
    OK(t, cudaMemcpyAsync(&value, device + 99, 4, cudaMemcpyDeviceToHost, b));
    OK(t, cudaLaunchHostFunc(b, set_true, &host_ran));
    OK(t, cudaStreamAddCallback(b, keep_result, &called, 0));
    OK(t, cudaStreamSynchronize(b));
    OK(t, cudaStreamQuery(a));
    OK(t, cudaEventSynchronize(end));
    OK(t, cudaEventQuery(end));
    OK(t, cudaEventElapsedTime(&milliseconds, begin, end));
    CHECK(t, value == 2 && host_ran && called == 100 && milliseconds >= 0);
    OK(t, cudaFreeAsync(device, a));
    OK(t, cudaEventDestroy(begin));
    OK(t, cudaEventDestroy(end));
    OK(t, cudaStreamDestroy(a));
    GIVES(t, cudaErrorInvalidResourceHandle, cudaStreamSynchronize(a));
    cudaGetLastError();
    OK(t, cudaStreamDestroy(b));
}

static void a_default_stream_can_be_the_threads_own(struct test *t)
{
    unsigned long long legacy = 0, own = 0, named = 0;
    OK(t, cudaStreamGetId(NULL, &legacy));
    OK(t, cudaStreamGetId_ptsz(NULL, &own));
    OK(t, cudaStreamGetId(CU_STREAM_PER_THREAD, &named));
    CHECK(t, own == named && own != legacy);
    OK(t, cudaStreamGetId_ptsz(CU_STREAM_LEGACY, &named));
    CHECK(t, named == legacy);
}

/* ---- graphs ---- */

static void captured_work_is_launched(struct test *t)
{
    cudaStream_t stream;
    cudaGraph_t graph = NULL;
    cudaGraphExec_t exec;
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    unsigned long long id = 0;
    size_t count = 0;
    int *device = zeros(t, 64);
    OK(t, cudaStreamCreate(&stream));
    OK(t, cudaStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(t, run_kernel(add_stub, device, 64, stream));
    OK(t, run_kernel(double_stub, device, 64, stream));
    OK(t, cudaStreamGetCaptureInfo(stream, &status, &id, NULL, NULL, NULL, NULL));
    CHECK(t, status == CU_STREAM_CAPTURE_STATUS_ACTIVE && id != 0);
    GIVES(t, cudaErrorStreamCaptureUnsupported, cudaStreamSynchronize(stream));
    cudaStreamEndCapture(stream, &graph);
    CHECK(t, graph == NULL);              /* the call that a capture forbids has ended it */
    cudaGetLastError();
    OK(t, cudaStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(t, run_kernel(add_stub, device, 64, stream));
    OK(t, run_kernel(double_stub, device, 64, stream));
    OK(t, cudaStreamEndCapture(stream, &graph));
    OK(t, cudaGraphGetNodes(graph, NULL, &count));
    CHECK(t, count == 2);
    OK(t, cudaGraphInstantiate(&exec, graph, 0));
    CHECK(t, word(t, device, 63) == 0);
    for (int i = 0; i < 3; i++) OK(t, cudaGraphLaunch(exec, stream));
    OK(t, cudaStreamSynchronize(stream));
    CHECK(t, word(t, device, 63) == 14);
    OK(t, cudaGraphExecDestroy(exec));
    OK(t, cudaGraphDestroy(graph));
    OK(t, cudaStreamDestroy(stream));
    OK(t, cudaFree(device));
}

static void graphs_are_built_of_nodes(struct test *t)
{
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaGraphNode_t fill, kernel, copy;
    int *device = zeros(t, 64), result[64] = { 0 };
    unsigned count = 64;
    void *arguments[] = { &device, &count };
    void (*const stub)(void) = add_stub;
    cudaKernelNodeParams node = { .gridDim = { 1, 1, 1 }, .blockDim = { 64, 1, 1 }, .kernelParams = arguments }, same;
    memcpy(&node.func, &stub, sizeof stub);
    const CUDA_MEMSET_NODE_PARAMS bytes = { .dst = (CUdeviceptr)(uintptr_t)device, .value = 1, .elementSize = 1,
                                            .width = 256, .height = 1, .pitch = 256 };
    OK(t, cudaGraphCreate(&graph, 0));
    OK(t, cudaGraphAddMemsetNode(&fill, graph, NULL, 0, &bytes));
    OK(t, cudaGraphAddKernelNode(&kernel, graph, &fill, 1, &node));
    OK(t, cudaGraphAddMemcpyNode1D(&copy, graph, &kernel, 1, result, device, sizeof result, cudaMemcpyDeviceToHost));
    OK(t, cudaGraphKernelNodeGetParams(kernel, &same));
    CHECK(t, same.func == node.func && same.blockDim.x == 64);
    OK(t, cudaGraphInstantiate(&exec, graph, 0));
    OK(t, cudaGraphLaunch(exec, NULL));
    OK(t, cudaDeviceSynchronize());
    CHECK(t, result[0] == 0x01010102 && result[63] == 0x01010102);
    count = 63;
    OK(t, cudaGraphExecKernelNodeSetParams(exec, kernel, &node));
    OK(t, cudaGraphLaunch(exec, NULL));
    OK(t, cudaDeviceSynchronize());
    CHECK(t, result[62] == 0x01010102 && result[63] == 0x01010101);
    node.func = result;
    GIVES(t, cudaErrorInvalidDeviceFunction, cudaGraphExecKernelNodeSetParams(exec, kernel, &node));
    cudaGetLastError();
    OK(t, cudaGraphExecDestroy(exec));
    OK(t, cudaGraphDestroy(graph));
    OK(t, cudaFree(device));
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        TEST(memory_comes_and_goes), TEST(pointers_are_known), TEST(planes_and_boxes_are_copied),
        TEST(copies_go_where_they_say), TEST(work_goes_through_streams), TEST(a_default_stream_can_be_the_threads_own),
        TEST(captured_work_is_launched), TEST(graphs_are_built_of_nodes),
    };
    void **handle = program_register();
    const int status = TEST_MAIN(argc, argv, cases);
    program_unregister(handle);
    return status;
}
