/* Block-scaled matrix products with the warp's matrix instructions of sm_120a, compiled by nvcc: mma.sync of every
 * kind, ldmatrix that expands 4 bits and that transposes bytes, stmatrix of bytes.  block_scale.ptx beside it is what
 *     nvcc -arch=sm_120a -ptx block_scale.cu
 * of CUDA 13.0 gave; where nvcc is found the tests compile it anew as well. */
#include <cstdint>

__device__ static uint32_t shared_address(const void *p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

/* c is 64 x 32, row by row: four warps of 16 rows.  Rows of A (64) and of B (32, a row per column of c) come 128 bytes
 * at a time. */
enum { ROWS = 64, COLUMNS = 32, STEP = 128, PITCH = STEP + 16 };

__device__ static void load_rows(const char *from, int rows, int bytes, int at, char *tile)
{
    for (int i = threadIdx.x; i < rows * (STEP / 16); i += blockDim.x)
        *reinterpret_cast<uint4 *>(tile + i / (STEP / 16) * PITCH + i % (STEP / 16) * 16) =
            *reinterpret_cast<const uint4 *>(from + static_cast<size_t>(i / (STEP / 16)) * bytes + at
                                             + i % (STEP / 16) * 16);
}

/* 32 bytes of 16 rows of A, of 8 columns of B. */
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

/* Scales lie row by row.  A lane holds four of row 8 (lane % 4) + lane / 4 of 32: the tile of 16 rows t has thread
 * selector t, the tile of 8 columns u has u. */
__device__ static uint32_t load_scales(const char *scales, int row, int pitch, int at)
{
    const int lane = threadIdx.x % 32;
    return *reinterpret_cast<const uint32_t *>(scales + static_cast<size_t>(row + lane % 4 * 8 + lane / 4) * pitch
                                               + at);
}

__device__ static void store(const float (&sum)[4][4], float *c)
{
    const int lane = threadIdx.x % 32, row = threadIdx.x / 32 * 16 + lane / 4;
    for (int n = 0; n < 4; n++)
        for (int i = 0; i < 4; i++) c[(row + i / 2 * 8) * COLUMNS + 8 * n + lane % 4 * 2 + i % 2] = sum[n][i];
}

/* One instruction: byte and the selector of B are constants, the selector of A is a register. */
#define SCALED_MMA(name, words) \
    template <int BYTE, int TILE> \
    __device__ static void name(float(&c)[4], const uint32_t(&a)[4], const uint32_t(&b)[2], uint32_t scale_a, \
                                uint16_t thread_a, uint32_t scale_b) \
    { \
        asm volatile("mma.sync.aligned." words " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3}, " \
                     "{%10}, {%11, %12}, {%13}, {%11, %14};" \
                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(scale_a), "n"(BYTE), \
                       "h"(thread_a), "r"(scale_b), "n"(TILE)); \
    }
SCALED_MMA(mma_e4m3_e5m2, "m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e5m2.f32.ue8m0")
SCALED_MMA(mma_e3m2_e2m3, "kind::mxf8f6f4.block_scale.scale_vec::1X.m16n8k32.row.col.f32.e3m2.e2m3.f32.ue8m0")
SCALED_MMA(mma_e2m1_e4m3, "m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e2m1.e4m3.f32.ue8m0")
SCALED_MMA(mma_mxfp4, "m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0")
SCALED_MMA(mma_mxfp4_nv, "m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0")
SCALED_MMA(mma_nvfp4, "m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3")

/* A row of four tiles of 8 columns. */
#define ROW_OF_TILES(mma, byte) \
    load_b(tile_b, 0, at, fb), mma<byte, 0>(sum[0], fa, fb, sa, thread_a, sb); \
    load_b(tile_b, 8, at, fb), mma<byte, 1>(sum[1], fa, fb, sa, thread_a, sb); \
    load_b(tile_b, 16, at, fb), mma<byte, 2>(sum[2], fa, fb, sa, thread_a, sb); \
    load_b(tile_b, 24, at, fb), mma<byte, 3>(sum[3], fa, fb, sa, thread_a, sb);

/* bytes: of a row of A and B, a multiple of 128. */
#define BEGIN(name) \
    extern "C" __global__ void name(int bytes, const char *a, const char *b, const char *scale_a, const char *scale_b, \
                                    float *c) \
    { \
        __shared__ __align__(16) char tile_a[ROWS * PITCH], tile_b[COLUMNS * PITCH]; \
        float sum[4][4] = {}; \
        const int warp = threadIdx.x / 32; \
        const uint16_t thread_a = static_cast<uint16_t>(warp % 2); \
        for (int from = 0; from < bytes; from += STEP) { \
            load_rows(a, ROWS, bytes, from, tile_a); \
            load_rows(b, COLUMNS, bytes, from, tile_b); \
            __syncthreads();
#define END \
            __syncthreads(); \
        } \
        store(sum, c); \
    }

/* An element in each byte, a scale for 32: one word of scales for the step. */
#define BYTES(name, mma) \
    BEGIN(name) \
    const int pitch = bytes / 32; \
    const uint32_t sa = load_scales(scale_a, warp / 2 * 32, pitch, from / 32), \
                   sb = load_scales(scale_b, 0, pitch, from / 32); \
    uint32_t fa[4], fb[2]; \
    int at = 0; \
    load_a(tile_a, at, fa); \
    ROW_OF_TILES(mma, 0) \
    load_a(tile_a, at = 32, fa); \
    ROW_OF_TILES(mma, 1) \
    load_a(tile_a, at = 64, fa); \
    ROW_OF_TILES(mma, 2) \
    load_a(tile_a, at = 96, fa); \
    ROW_OF_TILES(mma, 3) \
    END
BYTES(product_e4m3_e5m2, mma_e4m3_e5m2)
BYTES(product_e3m2_e2m3, mma_e3m2_e2m3)

/* Two elements in each byte, a scale for 32: a word is enough for two instructions of 64. */
#define NIBBLES_2X(name, mma) \
    BEGIN(name) \
    const int pitch = bytes / 16; \
    for (int half = 0; half < 2; half++) { \
        const uint32_t sa = load_scales(scale_a, warp / 2 * 32, pitch, from / 16 + 4 * half); \
        const uint32_t sb = load_scales(scale_b, 0, pitch, from / 16 + 4 * half); \
        uint32_t fa[4], fb[2]; \
        int at = half * 64; \
        load_a(tile_a, at, fa); \
        ROW_OF_TILES(mma, 0) \
        load_a(tile_a, at += 32, fa); \
        ROW_OF_TILES(mma, 2) \
    } \
    END
NIBBLES_2X(product_mxfp4, mma_mxfp4)
NIBBLES_2X(product_mxfp4_nv, mma_mxfp4_nv)

/* A scale for 16: a word for each instruction. */
BEGIN(product_nvfp4)
    const int pitch = bytes / 8;
    for (int at = 0; at < STEP; at += 32) {
        const uint32_t sa = load_scales(scale_a, warp / 2 * 32, pitch, (from + at) / 8);
        const uint32_t sb = load_scales(scale_b, 0, pitch, (from + at) / 8);
        uint32_t fa[4], fb[2];
        load_a(tile_a, at, fa);
        ROW_OF_TILES(mma_nvfp4, 0)
    }
    END

        /* A of e2m1, two in a byte, expanded by ldmatrix: each 8 bytes get a place of 16.  B has a byte for each
           element. */
        extern "C" __global__ void
        product_e2m1_e4m3(int k, const char *a, const char *b, const char *scale_a, const char *scale_b, float *c)
    {
        __shared__ __align__(16) char tile_a[ROWS * PITCH], tile_b[COLUMNS * PITCH];
        float sum[4][4] = {};
        const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
        const uint16_t thread_a = static_cast<uint16_t>(warp % 2);
        for (int from = 0; from < k; from += STEP) {
            for (int i = threadIdx.x; i < ROWS * (STEP / 16); i += blockDim.x)
                *reinterpret_cast<uint2 *>(tile_a + i / (STEP / 16) * PITCH + i % (STEP / 16) * 16) =
                    *reinterpret_cast<const uint2 *>(a + static_cast<size_t>(i / (STEP / 16)) * (k / 2) + from / 2
                                                     + i % (STEP / 16) * 8);
            load_rows(b, COLUMNS, k, from, tile_b);
            __syncthreads();
            const uint32_t sa = load_scales(scale_a, warp / 2 * 32, k / 32, from / 32),
                           sb = load_scales(scale_b, 0, k / 32, from / 32);
            uint32_t fa[4], fb[2];
#define EXPANDED(byte) \
    { \
        const int at = byte * 32; \
        asm volatile("ldmatrix.sync.aligned.m8n16.x4.shared.b8x16.b4x16_p64 {%0, %1, %2, %3}, [%4];" \
                     : "=r"(fa[0]), "=r"(fa[1]), "=r"(fa[2]), "=r"(fa[3]) \
                     : "r"(shared_address(tile_a + (warp * 16 + lane % 16) * PITCH + at + lane / 16 * 16)) \
                     : "memory"); \
        for (int i = 0; i < 4; i++) fa[i] <<= 2; \
        ROW_OF_TILES(mma_e2m1_e4m3, byte) \
    }
            EXPANDED(0) EXPANDED(1) EXPANDED(2) EXPANDED(3) __syncthreads();
        }
        store(sum, c);
}

/* Without scales, summed in f16: c is f16. */
extern "C" __global__ void product_e5m2_e2m3(int bytes, const char *a, const char *b, uint16_t *c)
{
    __shared__ __align__(16) char tile_a[ROWS * PITCH], tile_b[COLUMNS * PITCH];
    uint32_t sum[4][2] = {};
    const int lane = threadIdx.x % 32, row = threadIdx.x / 32 * 16 + lane / 4;
    for (int from = 0; from < bytes; from += STEP) {
        load_rows(a, ROWS, bytes, from, tile_a);
        load_rows(b, COLUMNS, bytes, from, tile_b);
        __syncthreads();
        for (int at = 0; at < STEP; at += 32) {
            uint32_t fa[4], fb[2];
            load_a(tile_a, at, fa);
            for (int n = 0; n < 4; n++) {
                load_b(tile_b, 8 * n, at, fb);
                asm volatile("mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f16.e5m2.e2m3.f16 {%0, %1}, {%2, %3, %4, "
                             "%5}, {%6, %7}, {%0, %1};"
                             : "+r"(sum[n][0]), "+r"(sum[n][1])
                             : "r"(fa[0]), "r"(fa[1]), "r"(fa[2]), "r"(fa[3]), "r"(fb[0]), "r"(fb[1]));
            }
        }
        __syncthreads();
    }
    for (int n = 0; n < 4; n++)
        for (int i = 0; i < 4; i++)
            c[(row + i / 2 * 8) * COLUMNS + 8 * n + lane % 4 * 2 + i % 2] =
                static_cast<uint16_t>(sum[n][i / 2] >> 16 * (i % 2));
}

/* B lies k by k: rows of 32 columns, transposed by ldmatrix.  c is 32 x 64, the columns of the product, each element's
 * low 8 bits, by stmatrix. */
extern "C" __global__ void product_transposed(int k, const char *a, const char *b, uint8_t *c)
{
    __shared__ __align__(16) char tile_a[ROWS * PITCH], tile_b[STEP * COLUMNS], tile_c[COLUMNS * ROWS];
    float sum[4][4] = {};
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    for (int from = 0; from < k; from += STEP) {
        load_rows(a, ROWS, k, from, tile_a);
        for (int i = threadIdx.x; i < STEP * COLUMNS / 16; i += blockDim.x)
            reinterpret_cast<uint4 *>(tile_b)[i] =
                reinterpret_cast<const uint4 *>(b + static_cast<size_t>(from) * COLUMNS)[i];
        __syncthreads();
        for (int at = 0; at < STEP; at += 32) {
            uint32_t fa[4], r[4];
            load_a(tile_a, at, fa);
            for (int n = 0; n < 4; n += 2) {
                asm volatile("ldmatrix.sync.aligned.m16n16.x2.trans.shared.b8 {%0, %1, %2, %3}, [%4];"
                             : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                             : "r"(shared_address(tile_b + (at + lane) * COLUMNS + 8 * n)) : "memory");
                for (int i = 0; i < 2; i++)
                    asm volatile("mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e4m3.e4m3.f32 {%0, %1, %2, %3}, "
                                 "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                                 : "+f"(sum[n + i][0]), "+f"(sum[n + i][1]), "+f"(sum[n + i][2]), "+f"(sum[n + i][3])
                                 : "r"(fa[0]), "r"(fa[1]), "r"(fa[2]), "r"(fa[3]), "r"(r[i]), "r"(r[2 + i]));
            }
        }
        __syncthreads();
    }
    uint32_t packed[4] = {};
    for (int n = 0; n < 4; n++)
        for (int i = 0; i < 4; i++) packed[n] |= (static_cast<uint32_t>(static_cast<int>(sum[n][i])) & 255) << 8 * i;
    asm volatile("stmatrix.sync.aligned.m16n8.x4.trans.shared.b8 [%0], {%1, %2, %3, %4};" ::"r"(
                     shared_address(tile_c + lane * ROWS + warp * 16)),
                 "r"(packed[0]), "r"(packed[1]), "r"(packed[2]), "r"(packed[3])
                 : "memory");
    __syncthreads();
    for (int i = threadIdx.x; i < COLUMNS * ROWS; i += blockDim.x) c[i] = static_cast<uint8_t>(tile_c[i]);
}
