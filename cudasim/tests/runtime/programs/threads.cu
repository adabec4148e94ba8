/* Host threads that launch beside each other, each on its own default stream (nvcc --default-stream per-thread).  Exits
 * with the number of threads that got wrong numbers. */
#include <cuda_runtime.h>
#include <thread>
#include <vector>

__global__ void add(int *p, int n, int by)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) p[i] += by;
}

static bool work(int number)
{
    const int n = 200;
    std::vector<int> host(n, number);
    bool good = true;
    for (int round = 0; round < 10 && good; round++) {
        int *device;
        good = cudaMalloc(&device, n * sizeof(int)) == cudaSuccess;
        cudaMemcpyAsync(device, host.data(), n * sizeof(int), cudaMemcpyHostToDevice);
        add<<<2, 128>>>(device, n, number + 1);
        good = good && cudaGetLastError() == cudaSuccess;
        cudaMemcpyAsync(host.data(), device, n * sizeof(int), cudaMemcpyDeviceToHost);
        good = good && cudaStreamSynchronize(0) == cudaSuccess && cudaFree(device) == cudaSuccess;
    }
    return good && host[0] == number + 10 * (number + 1) && host[n - 1] == host[0];
}

int main()
{
    enum { THREADS = 8 };
    bool good[THREADS];
    std::vector<std::thread> threads;
    for (int i = 0; i < THREADS; i++) threads.emplace_back([&good, i] { good[i] = work(i); });
    for (auto &thread : threads) thread.join();
    int failures = 0;
    for (bool one : good) failures += !one;
    return failures;
}
