/* What test_sass_loop.py counts: a warp's products of NVFP4, two tiles of 16 rows by four of 8 columns, K = 64 a turn,
 * and a loop over tiles around it.  Nobody runs it; inner_loop.sass is what cuobjdump -sass printed of it, without
 * repeated spaces (nvcc 13.0, sm_120a). */
#include <cstdint>

__device__ void load(uint32_t (&r)[4], uint32_t at)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at));
}

__device__ uint32_t scales(uint32_t at)
{
    uint32_t word;
    asm volatile("ld.shared.b32 %0, [%1];" : "=r"(word) : "r"(at));
    return word;
}

template <int A_THREADS, int B_THREADS>
__device__ void multiply(float (&d)[4], const uint32_t (&a)[4], const uint32_t *b, uint32_t a_scales, uint32_t b_scales)
{
    asm volatile("mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3}, {%10}, {0, %12}, {%11}, {0, %13};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(a_scales), "r"(b_scales),
                   "n"(A_THREADS), "n"(B_THREADS));
}

extern "C" __global__ void __launch_bounds__(128) inner_loop(float *out, int tiles, int turns)
{
    extern __shared__ unsigned char memory[];
    const uint32_t base = (uint32_t)__cvta_generic_to_shared(memory) + 16 * threadIdx.x;
    for (int tile = 0; tile < tiles; tile++) {
        float d[2][4][4] = {};
        uint32_t a[2][4], b[2][4];
#pragma unroll 1
        for (int turn = 0; turn < turns; turn++) {
            const uint32_t stage = base + (turn & 3) * 4096;
            for (int i = 0; i < 2; i++) load(a[i], stage + 512 * i), load(b[i], stage + 1024 + 512 * i);
            const uint32_t a_scales = scales(stage + 2048), b_scales = scales(stage + 2560);
            multiply<0, 0>(d[0][0], a[0], b[0], a_scales, b_scales);
            multiply<0, 1>(d[0][1], a[0], b[0] + 2, a_scales, b_scales);
            multiply<0, 2>(d[0][2], a[0], b[1], a_scales, b_scales);
            multiply<0, 3>(d[0][3], a[0], b[1] + 2, a_scales, b_scales);
            multiply<1, 0>(d[1][0], a[1], b[0], a_scales, b_scales);
            multiply<1, 1>(d[1][1], a[1], b[0] + 2, a_scales, b_scales);
            multiply<1, 2>(d[1][2], a[1], b[1], a_scales, b_scales);
            multiply<1, 3>(d[1][3], a[1], b[1] + 2, a_scales, b_scales);
        }
        for (int i = 0; i < 32; i++) out[((int64_t)tile * 32 + i) * 128 + threadIdx.x] = d[i / 16][i / 4 % 4][i % 4];
    }
}
