/* Kernels of the tests: filling and comparing buffers that are too large, or compared too often, to leave the GPU. */
#include <stdint.h>

__device__ static inline uint32_t hash(uint64_t number)
{
    number = (number ^ number >> 31) * 0x9e3779b97f4a7c15;
    number = (number ^ number >> 29) * 0xbf58476d1ce4e5b9;
    return (uint32_t)(number >> 32);
}

/* Random words; bits that `mask` lacks are zeros. */
extern "C" __global__ void check_fill(uint32_t *to, uint64_t words, uint32_t seed, uint32_t mask)
{
    const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < words; i += step)
        to[i] = hash(i + ((uint64_t)seed << 40)) & mask;
}

/* Adds the number of words that differ to *count. */
extern "C" __global__ void check_differences(const uint32_t *a, const uint32_t *b, uint64_t words,
                                             unsigned long long *count)
{
    const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < words; i += step)
        if (a[i] != b[i]) atomicAdd(count, 1ull);
}

/* Whether fp32 bits are the product of one term: exact, rounded to nearest; or, below the normal numbers, cut toward
 * zero up to `cuts` times, by less than 2^-149 each time (docs/guide/numerics.md, sums on tensor cores). */
__device__ static inline bool is_product(uint32_t got, double product, int cuts)
{
    const float want = __double2float_rn(product + 0.0);
    if (isnan(want)) return got == 0x7fc00000;
    if (got == __float_as_uint(want)) return true;
    const double units = fabs(product) * 0x1p149;
    const uint32_t magnitude = got & 0x7fffffff;
    if (cuts == 0 || product == 0 || units >= 0x1p23 || (double)magnitude > floor(units)
        || (double)magnitude <= units - cuts)
        return false;
    return magnitude == 0 ? got == 0 : (got >> 31 != 0) == (product < 0);
}

/* d[i][j] against a[i] * b[j].  found: how many are wrong, and the place of one of them plus 1. */
extern "C" __global__ void check_products(const uint32_t *d, const double *a, const double *b, uint64_t rows,
                                          uint64_t columns, int cuts, unsigned long long *found)
{
    for (uint64_t i = blockIdx.x; i < rows; i += gridDim.x)
        for (uint64_t j = threadIdx.x; j < columns; j += blockDim.x)
            if (!is_product(d[i * columns + j], a[i] * b[j], cuts)) {
                atomicAdd(&found[0], 1ull);
                atomicMax(&found[1], (unsigned long long)(i * columns + j + 1));
            }
}
