/* Every form of the wrappers of src/cuda/ptx for sm_100a and sm_103a, for the assembler and the simulator's reader to
 * judge; nothing runs.  test_ptx_forms.py holds them to the list ptx_forms.txt.
 *
 * FORMS_OF_SM_100A, FORMS_OF_SM_103A: those that the other has not; FORMS_NOT_SIMULATED: also what the simulator
 * refuses. */
#include "cuda/ptx/async_copy.cuh"
#include "cuda/ptx/bulk_copy.cuh"
#include "cuda/ptx/cluster_launch.cuh"
#include "cuda/ptx/mbarrier.cuh"
#include "cuda/ptx/tensor_mma.cuh"
#include "cuda/ptx/tensor_registers.cuh"
#include "cuda/ptx/threads.cuh"

struct alignas(64) tensor_map {
    unsigned char bytes[128];
};

struct operands {
    uint32_t d, a_tensor, shape, sfa, sfb, metadata;
    uint64_t a, b, mask;
    uint32_t kept4[4], kept8[8];
    bool adds;
};

/* ---- products ---- */

template <int CTAS, mma_collector C> __device__ void scaled_products(const operands &x)
{
    tcgen05_mma_block_scale<MMA_MXF8F6F4, SCALE_VEC_1X, CTAS, C>(x.d, x.a, x.b, x.shape, x.sfa, x.sfb, x.adds);
    tcgen05_mma_block_scale<MMA_MXF8F6F4, BLOCK_32, CTAS, C>(x.d, x.a, x.b, x.shape, x.sfa, x.sfb, x.adds);
    tcgen05_mma_block_scale<MMA_MXF4, SCALE_VEC_2X, CTAS, C>(x.d, x.a, x.b, x.shape, x.sfa, x.sfb, x.adds);
    tcgen05_mma_block_scale<MMA_MXF4, BLOCK_32, CTAS, C>(x.d, x.a, x.b, x.shape, x.sfa, x.sfb, x.adds);
    tcgen05_mma_block_scale<MMA_MXF4NVF4, SCALE_VEC_2X, CTAS, C>(x.d, x.a, x.b, x.shape, x.sfa, x.sfb, x.adds);
    tcgen05_mma_block_scale<MMA_MXF4NVF4, SCALE_VEC_4X, CTAS, C>(x.d, x.a, x.b, x.shape, x.sfa, x.sfb, x.adds);
    tcgen05_mma_block_scale<MMA_MXF4NVF4, BLOCK_16, CTAS, C>(x.d, x.a, x.b, x.shape, x.sfa, x.sfb, x.adds);
    tcgen05_mma_block_scale<MMA_MXF4NVF4, BLOCK_32, CTAS, C>(x.d, x.a, x.b, x.shape, x.sfa, x.sfb, x.adds);
    tcgen05_mma_block_scale_a_tensor<MMA_MXF8F6F4, SCALE_VEC_1X, CTAS, C>(x.d, x.a_tensor, x.b, x.shape, x.sfa, x.sfb,
                                                                          x.adds);
    tcgen05_mma_block_scale_a_tensor<MMA_MXF4NVF4, SCALE_VEC_4X, CTAS, C>(x.d, x.a_tensor, x.b, x.shape, x.sfa, x.sfb,
                                                                          x.adds);
    tcgen05_mma_sp_block_scale<MMA_MXF4, SCALE_VEC_2X, CTAS, C>(x.d, x.a, x.b, x.metadata, x.shape, x.sfa, x.sfb,
                                                                x.adds);
    tcgen05_mma_sp_block_scale<MMA_MXF4NVF4, SCALE_VEC_4X, CTAS, C>(x.d, x.a, x.b, x.metadata, x.shape, x.sfa, x.sfb,
                                                                    x.adds);
    tcgen05_mma_sp_block_scale<MMA_MXF4NVF4, BLOCK_16, CTAS, C>(x.d, x.a, x.b, x.metadata, x.shape, x.sfa, x.sfb,
                                                                x.adds);
    tcgen05_mma_sp_block_scale<MMA_MXF4NVF4, BLOCK_32, CTAS, C>(x.d, x.a, x.b, x.metadata, x.shape, x.sfa, x.sfb,
                                                                x.adds);
    tcgen05_mma_sp_block_scale<MMA_MXF4, BLOCK_32, CTAS, C>(x.d, x.a, x.b, x.metadata, x.shape, x.sfa, x.sfb, x.adds);
    tcgen05_mma_sp_block_scale<MMA_MXF8F6F4, BLOCK_32, CTAS, C>(x.d, x.a, x.b, x.metadata, x.shape, x.sfa, x.sfb,
                                                                x.adds);
    tcgen05_mma_sp_block_scale_a_tensor<MMA_MXF8F6F4, SCALE_VEC_1X, CTAS, C>(x.d, x.a_tensor, x.b, x.metadata, x.shape,
                                                                             x.sfa, x.sfb, x.adds);
    tcgen05_mma_sp_block_scale_a_tensor<MMA_MXF4NVF4, SCALE_VEC_2X, CTAS, C>(x.d, x.a_tensor, x.b, x.metadata, x.shape,
                                                                             x.sfa, x.sfb, x.adds);
}

template <mma_kind KIND, int CTAS> __device__ void plain_products(const operands &x)
{
    tcgen05_mma<KIND, CTAS>(x.d, x.a, x.b, x.shape, x.adds);
    tcgen05_mma<KIND, CTAS, COLLECTOR_FILL>(x.d, x.a, x.b, x.shape, x.adds);
    tcgen05_mma_a_tensor<KIND, CTAS, COLLECTOR_LASTUSE>(x.d, x.a_tensor, x.b, x.shape, x.adds);
#ifdef FORMS_NOT_SIMULATED
    tcgen05_mma_ashift_a_tensor<KIND, CTAS>(x.d, x.a_tensor, x.b, x.shape, x.adds);
    tcgen05_mma_sp_ashift_a_tensor<KIND, CTAS>(x.d, x.a_tensor, x.b, x.metadata, x.shape, x.adds);
#endif
    tcgen05_mma_sp<KIND, CTAS, COLLECTOR_USE>(x.d, x.a, x.b, x.metadata, x.shape, x.adds);
    tcgen05_mma_sp_a_tensor<KIND, CTAS>(x.d, x.a_tensor, x.b, x.metadata, x.shape, x.adds);
    if constexpr (CTAS == 1) {
        tcgen05_mma_keep_lanes<KIND>(x.d, x.a, x.b, x.shape, x.kept4, x.adds);
        tcgen05_mma_keep_lanes_a_tensor<KIND>(x.d, x.a_tensor, x.b, x.shape, x.kept4, x.adds);
        tcgen05_mma_sp_keep_lanes<KIND>(x.d, x.a, x.b, x.metadata, x.shape, x.kept4, x.adds);
        tcgen05_mma_sp_keep_lanes_a_tensor<KIND>(x.d, x.a_tensor, x.b, x.metadata, x.shape, x.kept4, x.adds);
    } else {
        tcgen05_mma_keep_lanes<KIND>(x.d, x.a, x.b, x.shape, x.kept8, x.adds);
        tcgen05_mma_keep_lanes_a_tensor<KIND>(x.d, x.a_tensor, x.b, x.shape, x.kept8, x.adds);
        tcgen05_mma_sp_keep_lanes<KIND>(x.d, x.a, x.b, x.metadata, x.shape, x.kept8, x.adds);
        tcgen05_mma_sp_keep_lanes_a_tensor<KIND>(x.d, x.a_tensor, x.b, x.metadata, x.shape, x.kept8, x.adds);
    }
    if constexpr (KIND == MMA_TF32 || KIND == MMA_F16) {
        tcgen05_mma_scale_d<KIND, CTAS, 15>(x.d, x.a, x.b, x.shape, x.adds);
        tcgen05_mma_scale_d_a_tensor<KIND, CTAS, 1>(x.d, x.a_tensor, x.b, x.shape, x.adds);
        tcgen05_mma_sp_scale_d<KIND, CTAS, 3>(x.d, x.a, x.b, x.metadata, x.shape, x.adds);
        tcgen05_mma_sp_scale_d_a_tensor<KIND, CTAS, 2>(x.d, x.a_tensor, x.b, x.metadata, x.shape, x.adds);
    }
}

template <mma_kind KIND> __device__ void stationary_products(const operands &x)
{
    tcgen05_mma_ws<KIND>(x.d, x.a, x.b, x.shape, x.adds);
    tcgen05_mma_ws_a_tensor<KIND, 3, COLLECTOR_FILL>(x.d, x.a_tensor, x.b, x.shape, x.adds);
    tcgen05_mma_ws_zero_columns<KIND, 1, COLLECTOR_USE>(x.d, x.a, x.b, x.shape, x.mask, x.adds);
    tcgen05_mma_ws_zero_columns_a_tensor<KIND>(x.d, x.a_tensor, x.b, x.shape, x.mask, x.adds);
    tcgen05_mma_ws_sp<KIND>(x.d, x.a, x.b, x.metadata, x.shape, x.adds);
    tcgen05_mma_ws_sp_a_tensor<KIND, 2, COLLECTOR_LASTUSE>(x.d, x.a_tensor, x.b, x.metadata, x.shape, x.adds);
    tcgen05_mma_ws_sp_zero_columns<KIND, 1, COLLECTOR_FILL>(x.d, x.a, x.b, x.metadata, x.shape, x.mask, x.adds);
    tcgen05_mma_ws_sp_zero_columns_a_tensor<KIND>(x.d, x.a_tensor, x.b, x.metadata, x.shape, x.mask, x.adds);
}

template <int CTAS> __device__ void products(const operands &x)
{
    scaled_products<CTAS, COLLECTOR_DISCARD>(x);
    scaled_products<CTAS, COLLECTOR_FILL>(x);
    scaled_products<CTAS, COLLECTOR_USE>(x);
    scaled_products<CTAS, COLLECTOR_LASTUSE>(x);
    plain_products<MMA_TF32, CTAS>(x);
    plain_products<MMA_F16, CTAS>(x);
    plain_products<MMA_F8F6F4, CTAS>(x);
#ifdef FORMS_OF_SM_100A
    plain_products<MMA_I8, CTAS>(x);
#endif
    if constexpr (CTAS == 1) {
        stationary_products<MMA_TF32>(x);
        stationary_products<MMA_F16>(x);
        stationary_products<MMA_F8F6F4>(x);
#ifdef FORMS_OF_SM_100A
        stationary_products<MMA_I8>(x);
#endif
    }
}

extern "C" __global__ void products_of_one(const __grid_constant__ operands x) { products<1>(x); }
extern "C" __global__ void products_of_a_pair(const __grid_constant__ operands x) { products<2>(x); }

/* ---- tensor memory ---- */

template <int CTAS> __device__ void tensor_memory(uint32_t address, uint64_t from, uint16_t ctas)
{
    tcgen05_alloc<CTAS, 512>(address);
    tcgen05_relinquish_alloc_permit<CTAS>();
    tcgen05_cp<CTAS, CP_128X256B>(address, from);
    tcgen05_cp<CTAS, CP_128X128B>(address, from);
    tcgen05_cp<CTAS, CP_64X128B_02_13>(address, from);
    tcgen05_cp<CTAS, CP_64X128B_01_23>(address, from);
    tcgen05_cp<CTAS, CP_32X128B>(address, from);
    tcgen05_cp<CTAS, CP_4X256B>(address, from);
    tcgen05_cp<CTAS, CP_128X256B, CP_FP6>(address, from);
    tcgen05_cp<CTAS, CP_128X128B, CP_FP4>(address, from);
    tcgen05_cp<CTAS, CP_64X128B_02_13, CP_FP4>(address, from);
#ifdef FORMS_OF_SM_100A
    tcgen05_shift_down<CTAS>(address);
#endif
    tcgen05_commit<CTAS>(address);
    tcgen05_commit_multicast<CTAS>(address, ctas);
    tcgen05_fence_before_thread_sync();
    tcgen05_fence_after_thread_sync();
    tcgen05_dealloc<CTAS, 512>(address);
}
extern "C" __global__ void tensor_memory_of_one(uint32_t address, uint64_t from, uint16_t ctas)
{
    tensor_memory<1>(address, from, ctas);
}
extern "C" __global__ void tensor_memory_of_a_pair(uint32_t address, uint64_t from, uint16_t ctas)
{
    tensor_memory<2>(address, from, ctas);
}

template <tcgen05_shape SHAPE, int REPEAT> __device__ void registers(uint32_t address)
{
    uint32_t r[REPEAT * tcgen05_shape_words<SHAPE>::registers];
    tcgen05_ld<SHAPE, REPEAT>(r, address);
    tcgen05_wait_ld(r);
    tcgen05_st<SHAPE, REPEAT>(address, r);
    tcgen05_ld<SHAPE, REPEAT, HALVES>(r, address);
    tcgen05_wait_ld(r);
    tcgen05_st<SHAPE, REPEAT, HALVES>(address, r);
    if constexpr (SHAPE == SHAPE_32X32B) {
        tcgen05_ld_16x32bx2<16>(r, address);
        tcgen05_wait_ld(r);
        tcgen05_st_16x32bx2<32>(address, r);
        tcgen05_ld_16x32bx2<64, HALVES>(r, address);
        tcgen05_wait_ld(r);
        tcgen05_st_16x32bx2<128, HALVES>(address, r);
    }
    tcgen05_wait_st();
}

template <tcgen05_shape SHAPE, int MOST> __device__ void registers_up_to(uint32_t address)
{
    registers<SHAPE, MOST>(address);
    if constexpr (MOST > 1) registers_up_to<SHAPE, MOST / 2>(address);
}

extern "C" __global__ void registers_of_all_shapes(uint32_t address)
{
    registers_up_to<SHAPE_32X32B, 128>(address);
    registers_up_to<SHAPE_16X64B, 128>(address);
    registers_up_to<SHAPE_16X128B, 64>(address);
    registers_up_to<SHAPE_16X256B, 32>(address);
}

#ifdef FORMS_OF_SM_103A
template <tcgen05_reduction R> __device__ void reduce(uint32_t address, uint32_t *to)
{
    uint32_t r[8], reduced[1];
    tcgen05_ld_red<R>(r, reduced, address);
    tcgen05_wait_ld(r);
    tcgen05_wait_ld(reduced);
    to[threadIdx.x] = reduced[0] + r[7];
}
extern "C" __global__ void reductions(uint32_t address, uint32_t *to)
{
    reduce<LD_MIN>(address, to);
    reduce<LD_MAX>(address, to);
    reduce<LD_MIN_ABS>(address, to);
    reduce<LD_MAX_ABS>(address, to);
    reduce<LD_MIN_NAN>(address, to);
    reduce<LD_MAX_NAN>(address, to);
    reduce<LD_MIN_ABS_NAN>(address, to);
    reduce<LD_MAX_ABS_NAN>(address, to);
}
#endif

/* ---- copies ---- */

template <int CTAS, int RANK>
__device__ void tensor_copies(const void *map, uint32_t shared, uint32_t barrier, uint64_t policy)
{
    int32_t at[RANK];
    for (int i = 0; i < RANK; i++) at[i] = i;
    cp_async_bulk_tensor_load<CTAS>(shared, map, at, barrier);
    cp_async_bulk_tensor_load_hint<CTAS>(shared, map, at, barrier, policy);
    cp_async_bulk_tensor_load_multicast<CTAS>(shared, map, at, barrier, 3);
    if constexpr (CTAS == 0) {
        cp_async_bulk_tensor_store(map, shared, at);
        cp_async_bulk_tensor_store_hint(map, shared, at, policy);
        cp_reduce_async_bulk_tensor<BULK_ADD>(map, shared, at);
        cp_async_bulk_prefetch_tensor(map, at);
    }
    if constexpr (RANK > 1) tensor_copies<CTAS, RANK - 1>(map, shared, barrier, policy);
}

extern "C" __global__ void copies(const __grid_constant__ tensor_map map, uint32_t shared, uint32_t barrier,
                                  char *global)
{
    const int32_t rows[4] = { 1, 2, 3, 4 }, at[2] = { 0, 0 };
    prefetch_tensormap(&map);
    tensor_copies<0, 5>(&map, shared, barrier, createpolicy_evict_first());
    cp_reduce_async_bulk_tensor<BULK_MIN>(&map, shared, at);
    cp_reduce_async_bulk_tensor<BULK_MAX>(&map, shared, at);
    cp_reduce_async_bulk_tensor<BULK_AND>(&map, shared, at);
    cp_reduce_async_bulk_tensor<BULK_OR>(&map, shared, at);
    cp_reduce_async_bulk_tensor<BULK_XOR>(&map, shared, at);
    cp_reduce_async_bulk_tensor<BULK_INC>(&map, shared, at);
    cp_reduce_async_bulk_tensor<BULK_DEC>(&map, shared, at);
    cp_async_bulk_tensor_gather4(shared, &map, 0, rows, barrier);
    cp_async_bulk_tensor_scatter4(&map, shared, 0, rows);
    cp_async_bulk_load(shared, global, 16, barrier);
    cp_async_bulk_load_multicast(shared, global, 16, barrier, 3);
    cp_async_bulk_to_cta(mapa_shared_cluster(shared, 1), shared, 16, mapa_shared_cluster(barrier, 1));
    cp_async_bulk_store(global, shared, 16);
    cp_reduce_async_bulk_add_f32(global, shared, 16);
    cp_async_bulk_prefetch(global, 16);
    bulk_commit_group();
    bulk_wait_group<1>();
    bulk_wait_group_read<0>();
    cp_async_16(shared, global, 7);
    cp_async<4>(shared, global, 3);
    cp_async_commit_group();
    cp_async_wait_group<0>();
    cp_async_mbarrier_arrive_noinc(barrier);
}
extern "C" __global__ void copies_of_one(const __grid_constant__ tensor_map map, uint32_t shared, uint32_t barrier)
{
    tensor_copies<1, 5>(&map, shared, barrier, createpolicy_evict_last());
}
extern "C" __global__ void copies_of_a_pair(const __grid_constant__ tensor_map map, uint32_t shared, uint32_t barrier)
{
    const int32_t rows[4] = { 1, 2, 3, 4 };
    tensor_copies<2, 5>(&map, shared, ptx_even_cta(barrier), createpolicy_evict_last());
    cp_async_bulk_tensor_gather4<2>(shared, &map, 0, rows, ptx_even_cta(barrier));
}

/* ---- barriers, clusters, launches ---- */

extern "C" __global__ void barriers(uint32_t barrier, uint32_t *to)
{
    const uint32_t there = mapa_shared_cluster(barrier, cluster_ctarank() ^ 1);
    mbarrier_init(barrier, 1);
    fence_mbarrier_init();
    mbarrier_arrive(barrier);
    mbarrier_arrive_expect_tx(barrier, 16);
    mbarrier_expect_tx(barrier, 16);
    mbarrier_complete_tx(barrier, 16);
    mbarrier_arrive_count(barrier, 2);
    mbarrier_arrive_relaxed(barrier);
    mbarrier_arrive_cluster(there);
    mbarrier_arrive_release_cluster(there);
    mbarrier_arrive_relaxed_cluster(there);
    mbarrier_arrive_expect_tx_cluster(there, 16);
    mbarrier_arrive_drop(barrier);
    to[0] = mbarrier_test_wait_parity(barrier, 0) + mbarrier_try_wait_parity(barrier, 0)
            + mbarrier_try_wait_parity_acquire_cluster(barrier, 0) + mbarrier_try_wait_parity_relaxed(barrier, 0)
            + mbarrier_try_wait_parity_relaxed_cluster(barrier, 0) + elect_sync();
    mbarrier_inval(barrier);
    barrier_cluster_arrive();
    barrier_cluster_wait();
    barrier_cluster_arrive_relaxed();
    fence_acq_rel_cluster();
    fence_proxy_async();
    fence_proxy_async_shared();
    fence_proxy_tensormap_release_gpu();
    fence_proxy_tensormap_acquire_gpu(to);
}

extern "C" __global__ void __launch_bounds__(128, 1)
    launches(uint32_t shared, uint32_t barrier, uint64_t low, uint64_t high, uint3 *to)
{
    griddepcontrol_wait();
    clusterlaunchcontrol_try_cancel(shared, barrier);
    clusterlaunchcontrol_try_cancel_multicast(shared, barrier);
    if (clusterlaunchcontrol_is_canceled(low, high)) *to = clusterlaunchcontrol_first_ctaid(low, high);
    griddepcontrol_launch_dependents();
    setmaxnreg_dec<40>();
    setmaxnreg_inc<232>();
}
