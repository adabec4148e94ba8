/* What ordinary programs do: <<<>>>, managed memory and variables, constants, streams, events, a graph, occupancy,
 * clusters, printf.  Prints a line for each that comes out wrong, and exits with their number. */
#include <cuda_runtime.h>
#include <cooperative_groups.h>
#include <cstdio>
#include <vector>

static int failures;
#define CHECK(condition) \
    do { if (!(condition)) { printf("line %d: %s\n", __LINE__, #condition); failures++; } } while (0)
#define OK(call) CHECK((call) == cudaSuccess)

__managed__ int launches = 100;
__managed__ float table[3] = { 1, 2, 4 };
__device__ int counters[2];
__constant__ float offset;

__global__ void add(const float *a, const float *b, float *c, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i] + offset;
    if (i == 0) atomicAdd(&launches, 1), atomicAdd(&counters[1], 2);
}

template<typename T> __global__ void scale(T *p, T factor, int n)
{
    extern __shared__ double room[];
    T *tile = reinterpret_cast<T *>(room);
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    tile[threadIdx.x] = i < n ? p[i] : T(0);
    __syncthreads();
    if (i < n) p[i] = tile[threadIdx.x] * factor;
}

__global__ void rank_in_cluster(int *p)
{
    auto cluster = cooperative_groups::this_cluster();
    cluster.sync();
    if (threadIdx.x == 0) p[blockIdx.x] = int(cluster.block_rank() * 10 + cluster.num_blocks());
}

__global__ void greet(int n) { printf("block %d says %d\n", blockIdx.x, n); }

static void vectors()
{
    const int n = 1000;
    std::vector<float> a(n), b(n), c(n);
    float *da, *db, *dc, one = 1;
    for (int i = 0; i < n; i++) a[i] = float(i), b[i] = float(2 * i);
    OK(cudaMalloc(&da, n * sizeof(float)));
    OK(cudaMalloc(&db, n * sizeof(float)));
    OK(cudaMallocManaged(&dc, n * sizeof(float)));
    OK(cudaMemcpy(da, a.data(), n * sizeof(float), cudaMemcpyHostToDevice));
    OK(cudaMemcpy(db, b.data(), n * sizeof(float), cudaMemcpyHostToDevice));
    OK(cudaMemcpyToSymbol(offset, &one, sizeof one));
    launches = 7;
    add<<<(n + 255) / 256, 256>>>(da, db, dc, n);
    OK(cudaGetLastError());
    OK(cudaDeviceSynchronize());
    CHECK(dc[0] == 1 && dc[999] == 2998);
    CHECK(launches == 8 && table[2] == 4);
    int *where, read[2];
    OK(cudaGetSymbolAddress((void **)&where, launches));
    CHECK(where == &launches);
    OK(cudaMemcpyFromSymbol(read, counters, sizeof read));
    CHECK(read[0] == 0 && read[1] == 2);
    OK(cudaFree(da));
    OK(cudaFree(db));
    OK(cudaFree(dc));
}

static void streams_and_a_graph()
{
    const int n = 512;
    double *host, *device;
    cudaStream_t stream, other;
    cudaEvent_t before, after;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    float milliseconds = -1;
    OK(cudaHostAlloc(&host, n * sizeof *host, cudaHostAllocDefault));
    OK(cudaMalloc(&device, n * sizeof *device));
    for (int i = 0; i < n; i++) host[i] = i;
    OK(cudaStreamCreate(&stream));
    OK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    OK(cudaEventCreate(&before));
    OK(cudaEventCreateWithFlags(&after, cudaEventBlockingSync));
    OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    OK(cudaMemcpyAsync(device, host, n * sizeof *host, cudaMemcpyHostToDevice, stream));
    scale<<<2, 256, 256 * sizeof(double), stream>>>(device, 3.0, n);
    OK(cudaMemsetAsync(device, 0, sizeof *device, stream));
    OK(cudaMemcpyAsync(host, device, n * sizeof *host, cudaMemcpyDeviceToHost, stream));
    OK(cudaStreamEndCapture(stream, &graph));
    OK(cudaGraphInstantiate(&exec, graph, 0));
    OK(cudaEventRecord(before, stream));
    OK(cudaGraphLaunch(exec, stream));
    OK(cudaGraphLaunch(exec, stream));
    OK(cudaEventRecord(after, stream));
    OK(cudaStreamWaitEvent(other, after));
    OK(cudaStreamSynchronize(other));
    OK(cudaEventElapsedTime(&milliseconds, before, after));
    CHECK(milliseconds >= 0 && host[0] == 0 && host[1] == 9 && host[511] == 511 * 9);
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphDestroy(graph));
    OK(cudaEventDestroy(before));
    OK(cudaEventDestroy(after));
    OK(cudaStreamDestroy(stream));
    OK(cudaStreamDestroy(other));
    OK(cudaFreeHost(host));
    OK(cudaFree(device));
}

static void occupancy_and_clusters()
{
    int blocks = 0, grid = 0, block = 0, *p;
    cudaFuncAttributes attributes;
    OK(cudaFuncSetAttribute(scale<float>, cudaFuncAttributeMaxDynamicSharedMemorySize, 64 << 10));
    OK(cudaFuncGetAttributes(&attributes, scale<float>));
    CHECK(attributes.maxDynamicSharedSizeBytes == 64 << 10);
    OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, scale<float>, 256, 64 << 10));
    CHECK(blocks == 3);
    OK(cudaOccupancyMaxPotentialBlockSize(&grid, &block, add));
    CHECK(grid > 0 && block > 0);
    cudaLaunchConfig_t config = {};
    cudaLaunchAttribute cluster[1];
    cluster[0].id = cudaLaunchAttributeClusterDimension;
    cluster[0].val.clusterDim.x = 4, cluster[0].val.clusterDim.y = 1, cluster[0].val.clusterDim.z = 1;
    config.gridDim = 8, config.blockDim = 32, config.attrs = cluster, config.numAttrs = 1;
    OK(cudaMallocManaged(&p, 8 * sizeof *p));
    OK(cudaLaunchKernelEx(&config, rank_in_cluster, p));
    OK(cudaDeviceSynchronize());
    CHECK(p[0] == 4 && p[3] == 34 && p[7] == 34);
    OK(cudaFree(p));
}

int main()
{
    cudaDeviceProp properties;
    OK(cudaGetDeviceProperties(&properties, 0));
    printf("device %s\n", properties.name);
    vectors();
    streams_and_a_graph();
    occupancy_and_clusters();
    greet<<<2, 1>>>(5);
    OK(cudaDeviceSynchronize());
    OK(cudaGetLastError());
    return failures;
}
