/* Forms of the wrappers of src/cuda/ptx/mma_sync.cuh, and of the copies that go with them, for sm_120a: as ptx_forms.cu
 * has those of tcgen05. */
#include "cuda/ptx/mma_sync.cuh"
#include "cuda/ptx/tensor_copy.cuh"
#include "cuda/ptx/threads.cuh"

struct alignas(64) tensor_map {
    unsigned char bytes[128];
};

struct fragments {
    float d[4];
    uint32_t a[4], b[2], a_scales, b_scales;
};

template <mma_sync_element A> __device__ void pairs_with(fragments &f)
{
    mma_sync_mxf8f6f4<A, MMA_SYNC_E4M3, 0, 0, 0>(f.d, f.a, f.b, f.a_scales, f.b_scales);
    mma_sync_mxf8f6f4<A, MMA_SYNC_E5M2, 1, 1, 1>(f.d, f.a, f.b, f.a_scales, f.b_scales);
    mma_sync_mxf8f6f4<A, MMA_SYNC_E3M2, 2, 0, 2>(f.d, f.a, f.b, f.a_scales, f.b_scales);
    mma_sync_mxf8f6f4<A, MMA_SYNC_E2M3, 3, 1, 3>(f.d, f.a, f.b, f.a_scales, f.b_scales);
    mma_sync_mxf8f6f4<A, MMA_SYNC_E2M1, 3, 0, 0>(f.d, f.a, f.b, f.a_scales, f.b_scales);
}

extern "C" __global__ void products(fragments *of)
{
    fragments &f = of[threadIdx.x];
    pairs_with<MMA_SYNC_E4M3>(f), pairs_with<MMA_SYNC_E5M2>(f), pairs_with<MMA_SYNC_E3M2>(f);
    pairs_with<MMA_SYNC_E2M3>(f), pairs_with<MMA_SYNC_E2M1>(f);
    mma_sync_mxf4<0, 0, 3>(f.d, f.a, f.b, f.a_scales, f.b_scales);
    mma_sync_mxf4<2, 1, 0>(f.d, f.a, f.b, f.a_scales, f.b_scales);
    mma_sync_mxf4nvf4<1, 2>(f.d, f.a, f.b, f.a_scales, f.b_scales);
    mma_sync_bf16(f.d, f.a, f.b);
}

extern "C" __global__ void loads(fragments *of, const __grid_constant__ tensor_map map, uint32_t shared)
{
    fragments &f = of[threadIdx.x];
    tensor_load_cta(shared, &map, 0, 1, 2, shared + 4096);
    ldmatrix_x4(f.a, shared);
    ldmatrix_x4_of_4_bits(f.a, f.a[0]);
    ldmatrix_x4_of_6_bits(f.a, f.a[0]);
    f.b[0] = load_shared_u16(shared);
}
