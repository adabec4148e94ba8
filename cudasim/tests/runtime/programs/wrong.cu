/* A program whose kernel is wrong in the way that its argument says, or right.  Checks no call; at its end it prints
 * what cudaGetLastError gave behind the launch, cudaDeviceSynchronize then, and a copy after both. */
#include <cuda_runtime.h>
#include <cstdio>
#include <cstring>

__global__ void far(int *p, int n) { p[threadIdx.x + n] = 1; }
__global__ void racing(int *p, int n)
{
    __shared__ int words[64];
    words[threadIdx.x] = 0;
    __syncthreads();
    words[threadIdx.x] = n;               /* and no barrier behind it */
    p[threadIdx.x] = words[63 - threadIdx.x];
}
__global__ void ordered(int *p, int n)
{
    __shared__ int last;
    if (threadIdx.x == 0) last = n;
    __syncthreads();
    p[threadIdx.x] = last;
}

int main(int, char **argv)
{
    int *p, value = 0;
    cudaMalloc(&p, 64 * sizeof *p);
    if (strcmp(argv[1], "far") == 0) far<<<1, 64>>>(p, 1 << 20);
    else if (strcmp(argv[1], "racing") == 0) racing<<<1, 64>>>(p, 5);
    else if (strcmp(argv[1], "block") == 0) ordered<<<1, 4096>>>(p, 5);
    else ordered<<<1, 64>>>(p, 5);
    const cudaError_t last = cudaGetLastError(), waited = cudaDeviceSynchronize();
    const cudaError_t copied = cudaMemcpy(&value, p + 1, sizeof value, cudaMemcpyDeviceToHost);
    printf("%s %s %s %d\n", cudaGetErrorName(last), cudaGetErrorName(waited), cudaGetErrorName(copied), value);
    return 0;
}
