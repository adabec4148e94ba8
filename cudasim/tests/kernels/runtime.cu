/* A program on the CUDA runtime library, which says what went wrong by its exit status. */
#include <cuda_runtime.h>

__global__ void one(int *p) { *p = 1; }

int main()
{
    int *p = nullptr;
    if (cudaMalloc(&p, sizeof *p) != cudaSuccess) return 3;
    one<<<1, 1>>>(p);
    return cudaDeviceSynchronize() == cudaSuccess ? 0 : 4;
}
