/* Matrix products with the warp's matrix instructions, compiled by nvcc: ldmatrix and mma.sync, stmatrix, and the wmma
 * classes. matrix.ptx beside it is what
 *     nvcc -arch=sm_90a -ptx matrix.cu
 * of CUDA 13.0 gave; where nvcc is found the tests compile it anew as well. */
#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

__device__ static uint32_t shared_address(const void *p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

/* A row of a tile has 64 bytes of operands and 16 that keep rows off each other's banks. */
enum { PITCH = 80 };

/* Four warps: rows of A (64 x bytes) and of B (32 x bytes, a row per column of the product), 64 bytes of each at a
 * time. */
__device__ static void load_tiles(const char *a, const char *b, int bytes, int from, char *tile_a, char *tile_b)
{
    for (int i = threadIdx.x; i < 64 * 4; i += blockDim.x)
        *reinterpret_cast<uint4 *>(tile_a + i / 4 * PITCH + i % 4 * 16) =
            *reinterpret_cast<const uint4 *>(a + static_cast<size_t>(i / 4) * bytes + from + i % 4 * 16);
    for (int i = threadIdx.x; i < 32 * 4; i += blockDim.x)
        *reinterpret_cast<uint4 *>(tile_b + i / 4 * PITCH + i % 4 * 16) =
            *reinterpret_cast<const uint4 *>(b + static_cast<size_t>(i / 4) * bytes + from + i % 4 * 16);
}

/* The fragment of A of a warp's 16 rows, and of B of 8 columns, 32 bytes of k from `at`. */
__device__ static void load_a(const char *tile, int at, uint32_t (&a)[4])
{
    const int lane = threadIdx.x % 32, row = threadIdx.x / 32 * 16 + lane % 16;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3])
                 : "r"(shared_address(tile + row * PITCH + at + lane / 16 * 16)) : "memory");
}
__device__ static void load_b(const char *tile, int column, int at, uint32_t (&b)[2])
{
    const int lane = threadIdx.x % 16;
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                 : "=r"(b[0]), "=r"(b[1])
                 : "r"(shared_address(tile + (column + lane % 8) * PITCH + at + lane / 8 * 16)) : "memory");
}

/* c (64 x 32, f32) = a (64 x k) b^T (32 x k); bf16 */
extern "C" __global__ void product_bf16(int k, const char *a, const char *b, float *c)
{
    __shared__ __align__(16) char tile_a[64 * PITCH], tile_b[32 * PITCH];
    float sum[4][4] = {};
    for (int from = 0; from < 2 * k; from += 64) {
        load_tiles(a, b, 2 * k, from, tile_a, tile_b);
        __syncthreads();
        for (int at = 0; at < 64; at += 32) {
            uint32_t fa[4], fb[2];
            load_a(tile_a, at, fa);
            for (int n = 0; n < 4; n++) {
                load_b(tile_b, 8 * n, at, fb);
                asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
                             "{%8, %9}, {%0, %1, %2, %3};"
                             : "+f"(sum[n][0]), "+f"(sum[n][1]), "+f"(sum[n][2]), "+f"(sum[n][3])
                             : "r"(fa[0]), "r"(fa[1]), "r"(fa[2]), "r"(fa[3]), "r"(fb[0]), "r"(fb[1]));
            }
        }
        __syncthreads();
    }
    const int lane = threadIdx.x % 32, row = threadIdx.x / 32 * 16 + lane / 4;
    for (int n = 0; n < 4; n++)
        for (int i = 0; i < 4; i++) c[(row + i / 2 * 8) * 32 + 8 * n + lane % 4 * 2 + i % 2] = sum[n][i];
}

/* The same for s8, sums in s32; the result goes through shared memory as 16-bit numbers, by stmatrix. */
extern "C" __global__ void product_s8(int k, const char *a, const char *b, short *c)
{
    __shared__ __align__(16) char tile_a[64 * PITCH], tile_b[32 * PITCH];
    int sum[4][4] = {};
    for (int from = 0; from < k; from += 64) {
        load_tiles(a, b, k, from, tile_a, tile_b);
        __syncthreads();
        for (int at = 0; at < 64; at += 32) {
            uint32_t fa[4], fb[2];
            load_a(tile_a, at, fa);
            for (int n = 0; n < 4; n++) {
                load_b(tile_b, 8 * n, at, fb);
                asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, "
                             "%9}, {%0, %1, %2, %3};"
                             : "+r"(sum[n][0]), "+r"(sum[n][1]), "+r"(sum[n][2]), "+r"(sum[n][3])
                             : "r"(fa[0]), "r"(fa[1]), "r"(fa[2]), "r"(fa[3]), "r"(fb[0]), "r"(fb[1]));
            }
        }
        __syncthreads();
    }
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int n = 0; n < 4; n += 2) {
        uint32_t r[4];
        for (int i = 0; i < 4; i++)
            r[i] = (sum[n + i / 2][i % 2 * 2] & 0xffff) | static_cast<uint32_t>(sum[n + i / 2][i % 2 * 2 + 1]) << 16;
        asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                         shared_address(tile_a + (warp * 16 + lane % 16) * PITCH + (n + lane / 16) * 16)),
                     "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
                     : "memory");
    }
    __syncwarp();
    for (int row = warp * 16; row < warp * 16 + 16; row++)
        c[row * 32 + lane] = *reinterpret_cast<const short *>(tile_a + row * PITCH + lane * 2);
}

/* c (n x n) = a b + c, row-major, f16 and f32: a warp makes a tile of 16 x 16, by the classes of mma.h */
extern "C" __global__ void product_wmma(int n, const __half *a, const __half *b, float *c)
{
    using namespace nvcuda;
    float *const tile = c + blockIdx.y * 16 * n + blockIdx.x * 16;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::load_matrix_sync(sum, tile, n, wmma::mem_row_major);
    for (int k = 0; k < n; k += 16) {
        wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> fa;
        wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> fb;
        wmma::load_matrix_sync(fa, a + blockIdx.y * 16 * n + k, n);
        wmma::load_matrix_sync(fb, b + k * n + blockIdx.x * 16, n);
        for (int i = 0; i < fa.num_elements; i++) fa.x[i] = __hmul(fa.x[i], __float2half(2.0f));
        wmma::mma_sync(sum, fa, fb, sum);
    }
    wmma::store_matrix_sync(tile, sum, n, wmma::mem_row_major);
}
