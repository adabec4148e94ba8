/* Plain CUDA C, compiled by nvcc: what the language's ordinary features become.  basic.ptx beside it is what
 *     nvcc -arch=sm_90a -ptx basic.cu
 * of CUDA 13.0 gave; where nvcc is found the tests compile it anew as well. */
#include <cstdio>
#include <cuda_fp16.h>
#include <cuda_bf16.h>

__device__ int table[4] = { 10, 20, 30, 40 };
__constant__ float factors[8] = { 1.5f, 2.0f, -1.0f, 0.25f, 3.0f, 1.0f, 0.0f, 8.0f };
__device__ const char *greeting = "hello";

struct parameters { int a; double b; char c[20]; };

/* y = a x + y */
extern "C" __global__ void saxpy(int n, float a, const float *x, float *y)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}

/* out[block] = sum of in of the block, by shuffles and shared memory */
extern "C" __global__ void block_sum(const int *in, int *out)
{
    __shared__ int partial[32];
    int v = in[blockIdx.x * blockDim.x + threadIdx.x];
    for (int o = 16; o != 0; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = v;
    __syncthreads();
    if (threadIdx.x < 32) {
        v = threadIdx.x < blockDim.x / 32 ? partial[threadIdx.x] : 0;
        for (int o = 16; o != 0; o >>= 1) v += __shfl_down_sync(0xffffffffu, v, o);
        if (threadIdx.x == 0) out[blockIdx.x] = v;
    }
}

/* c (n x n) = a b, tiles of 16 x 16 in shared memory */
extern "C" __global__ void matrix_product(int n, const float *a, const float *b, float *c)
{
    __shared__ float ta[16][16], tb[16][17];
    const int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < n; k += 16) {
        ta[threadIdx.y][threadIdx.x] = row < n && k + threadIdx.x < n ? a[row * n + k + threadIdx.x] : 0;
        tb[threadIdx.y][threadIdx.x] = k + threadIdx.y < n && column < n ? b[(k + threadIdx.y) * n + column] : 0;
        __syncthreads();
        for (int i = 0; i < 16; i++) sum += ta[threadIdx.y][i] * tb[i][threadIdx.x];
        __syncthreads();
    }
    if (row < n && column < n) c[row * n + column] = sum;
}

__device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
__device__ __noinline__ int twice(int n) { return 2 * n; }
typedef int (*function)(int);
__device__ function functions[2] = { fibonacci, twice };

/* recursion with diverged lanes, calls through pointers, local arrays, a switch, a struct by value */
extern "C" __global__ void calls(parameters p, int *out)
{
    const int i = threadIdx.x;
    int local[16];
    for (int j = 0; j < 16; j++) local[j] = j * i;
    int v =
        fibonacci(i % 9) + functions[i & 1](i % 7) + local[(i * 5) & 15] + p.a + (int)p.b + p.c[i % 20] + table[i & 3];
    switch (i % 6) {
    case 0: v += 1; break;
    case 1: v *= 3; break;
    case 2: v -= 7; break;
    case 3: v ^= 0x55; break;
    case 4: v = -v; break;
    default: v <<= 2; break;
    }
    out[i] = v;
}

/* a histogram by atomics in shared, then global memory; the size of the dynamic part is the caller's */
extern "C" __global__ void histogram(const unsigned char *in, int n, unsigned *out)
{
    extern __shared__ unsigned bins[];
    for (int i = threadIdx.x; i < 256; i += blockDim.x) bins[i] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&bins[in[i]], 1u);
    __syncthreads();
    for (int i = threadIdx.x; i < 256; i += blockDim.x) atomicAdd(&out[i], bins[i]);
}

/* a lock per thread of one warp: needs threads that go forward on their own */
extern "C" __global__ void locked(int *lock, volatile int *counter)
{
    bool done = false;
    while (!done) {
        if (atomicCAS(lock, 0, 1) == 0) {
            *counter = *counter + 1;
            __threadfence();
            atomicExch(lock, 0);
            done = true;
        }
    }
}

extern "C" __global__ void halves(const float *in, float *out, int n)
{
    const int i = threadIdx.x;
    if (i >= n) return;
    const __half h = __float2half(in[i]);
    const __nv_bfloat16 b = __float2bfloat16(in[i]);
    const __half2 two = __hfma2(__halves2half2(h, h), __floats2half2_rn(2.0f, 3.0f), __floats2half2_rn(0.5f, 0.25f));
    out[4 * i] = __half2float(h * h);
    out[4 * i + 1] = __bfloat162float(b * b);
    out[4 * i + 2] = __low2float(two);
    out[4 * i + 3] = __high2float(two);
}

extern "C" __global__ void say(int n)
{
    if (threadIdx.x == 0) printf("%s %d %5.2f %c %lld%%\n", greeting, n, (double)factors[n & 7], 'x', 1ll << 40);
}

extern "C" __global__ void doubles(const double *in, double *out, long long *integers)
{
    const int i = threadIdx.x;
    out[i] = in[i] * in[(i + 1) % blockDim.x] + 1.0 / in[i] + sqrt(in[i]);
    integers[i] = (long long)in[i] / 7 - (long long)(i + 3) * 0x123456789ll % 1000003;
}
