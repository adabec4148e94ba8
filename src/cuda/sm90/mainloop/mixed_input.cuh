/* D = finish(A B^T) on Hopper where A is bf16 and B e2m1 with scales: B is decoded into registers, which are wgmma's
 * first operand.
 *
 * wgmma computes D^T = B A^T, so that its columns are as few as the rows of A, and B's bf16 never lies in shared
 * memory.  The numbers that are multiplied, and the order of sums, are those of the kernels that read decoded rows: so
 * are the bits of D.
 *
 *     global memory        shared memory                 registers            tensor cores        D
 *     rows of A   -- TMA -> ring of A's rows ------------------------------> second operand
 *     codes of B  -- TMA -> ring of codes -- decoded --> first operand ----> sums ------------> finished, stored
 *     scales of B --------> of a tile, or of a stage --^
 *
 * A persistent grid of CTAs.  Roles: the first warpgroups consume, the warps behind them load, a thread each.
 *
 *     source         stored: codes, and scales wherever and in whichever layout the caller has them (tile_scales.cuh)
 *                    stored, 128x4: codes, and scales in that layout
 *                    prepacked: both in the order in which threads read them (prepacked_layout.h)
 *     schedule       one warpgroup (mixed_input_one.cuh), two warpgroups (mixed_input_two.cuh),
 *                    K-interleaved warpgroups (mixed_input_interleaved.cuh)
 *
 * Barriers of each stage, and how often who arrives in a phase:
 *
 *     full           each thread that loads a part of it once, with the bytes of its part
 *     empty          A's rows: each warp that reads the stage; of two warpgroups one thread each, behind wait_group
 *                    codes: each warp that reads the stage
 *     scales         full: each warp that loads some
 *                    empty: each warp of the consumers, when it has decoded its last slice of the tile */
#pragma once

#include "mixed_input_interleaved.cuh"
#include "mixed_input_one.cuh"
#include "mixed_input_two.cuh"

template <class CONFIG> __device__ static inline void initialize_mixed_input_barriers(uint32_t shared)
{
    initialize_ring<CONFIG>(shared, CONFIG::ROW_LOADERS, CONFIG::TWO_WARPGROUPS ? CONFIG::GROUPS : 4);
    if (!CONFIG::ONE_WARPGROUP)
        initialize_ring<typename CONFIG::codes_ring>(shared, 1, CONFIG::TWO_WARPGROUPS ? CONFIG::WARPS : 4);
    if (CONFIG::STORED && CONFIG::INTERLEAVED)
        initialize_ring<typename CONFIG::scales_ring>(shared, CONFIG::SCALE_LOADERS, CONFIG::WARPS);
    fence_mbarrier_init();
}

/* What may be done before the kernels in front of this one have ended, and how long they are waited for.  Prepacked
 * weights are loaded, and the first slices decoded, before; the next kernel's CTAs may begin wherever these end.  Of
 * stored weights those that follow another kernel of the same call are, too: nothing in front writes them.  Tables of
 * groups are made in front of this kernel. */
template <class CONFIG>
__device__ static inline void begin_mixed_input(const bsmi_mixed_input_parameters &p, int32_t loader)
{
    if (CONFIG::STORED && loader == 0 && p.first_of_call && blockIdx.x < p.tiles && elect_sync()) {
        const int32_t stages = (p.segments[0].blocks + 3) / 4,
                      most = CONFIG::ONE_WARPGROUP ? CONFIG::STAGES : CONFIG::codes_ring::STAGES;
        prefetch_stored<CONFIG>(p, mixed_input_tile<CONFIG>(p, blockIdx.x), min(stages, most));
    }
    if (CONFIG::STORED && CONFIG::INTERLEAVED && loader > 0 && loader <= CONFIG::ROW_LOADERS && elect_sync())
        prefetch_rows<CONFIG>(p, loader - 1);
    __syncwarp();
    if (CONFIG::PREPACKED) griddepcontrol_launch_dependents();
    else if (CONFIG::ONE_WARPGROUP || p.epilogue.grouped || p.first_of_call) griddepcontrol_wait();
    if (CONFIG::ONE_WARPGROUP) griddepcontrol_launch_dependents();
}

template <class CONFIG> __device__ static inline void begin_mixed_input(const bsmi_fused_parameters &, int32_t)
{
    griddepcontrol_wait();
}

template <class CONFIG>
__device__ static inline void consume_mixed_input(const typename CONFIG::PARAMETERS &p, uint32_t shared, uint32_t group)
{
    if constexpr (!CONFIG::ONE_WARPGROUP) setmaxnreg_inc<CONFIG::CONSUMER>();
    if constexpr (CONFIG::ONE_WARPGROUP) consume_one<CONFIG>(p, shared);
    else if constexpr (CONFIG::TWO_WARPGROUPS) consume_two<CONFIG>(p, shared, group);
    else consume_interleaved<CONFIG>(p, shared);
}

template <class CONFIG>
__device__ static inline void produce_mixed_input(const typename CONFIG::PARAMETERS &p, uint32_t shared, int32_t loader,
                                                  code_loader<CONFIG> &codes)
{
    if constexpr (!CONFIG::ONE_WARPGROUP) setmaxnreg_dec<CONFIG::PRODUCER>();
    if (loader > CONFIG::ROW_LOADERS || !elect_sync()) return;
    if constexpr (CONFIG::ONE_WARPGROUP) {
        produce_steps<CONFIG>(p, shared);
    } else if constexpr (CONFIG::TWO_WARPGROUPS) {
        if (loader == 0) produce_codes<CONFIG>(p, shared, { 0, 0 });
        else produce_rows<CONFIG>(p, shared, { 0, 0 });
    } else if (loader == 0) {
        if (CONFIG::STORED) codes = code_loader_of<CONFIG>(p);
        load_codes<CONFIG>(p, shared, -1, codes);
    } else {
        if (CONFIG::PREPACKED) prefetch_rows<CONFIG>(p, loader - 1);    /* the next kernel does not wait for it */
        produce_slice_rows<CONFIG>(p, shared, loader - 1);
        if (CONFIG::STORED) griddepcontrol_launch_dependents();
    }
}

template <class CONFIG> __device__ static inline void mixed_input_gemm(const typename CONFIG::PARAMETERS &p)
{
    extern __shared__ __align__(1024) unsigned char memory[];
    const uint32_t shared = __shfl_sync(0xffffffff, shared_address(memory), 0), warp = warp_of_cta();
    const int32_t loader = (int32_t)warp - CONFIG::WARPS;
    code_loader<CONFIG> codes;
    if (CONFIG::PREPACKED && p.epilogue.grouped) griddepcontrol_wait();
    if (loader == 0 && elect_sync()) {
        initialize_mixed_input_barriers<CONFIG>(shared);
        if constexpr (CONFIG::PREPACKED) {
            codes = code_loader_of<CONFIG>(p);
            load_codes<CONFIG>(p, shared, CONFIG::codes_ring::STAGES, codes);
        }
        if (!CONFIG::PREPACKED) prefetch_tensormap(&p.a), prefetch_tensormap(&p.b);
    }
    if (CONFIG::PREPACKED && loader == 1 && elect_sync()) prefetch_tensormap(&p.a);
    if constexpr (CONFIG::INTERLEAVED)
        if (loader < 0) clear_rows<CONFIG>(p, shared);
    __syncthreads();
    begin_mixed_input<CONFIG>(p, loader);
    if (loader < 0) consume_mixed_input<CONFIG>(p, shared, warp / 4);
    else produce_mixed_input<CONFIG>(p, shared, loader, codes);
}

/* The same, K in two parts. */
#define MIXED_INPUT_PARTS_KERNEL(codes, tile, source, schedule, rows, groups, ctas, ...)                               \
    extern "C" __global__ void __launch_bounds__(BSMI_MIXED_INPUT_THREADS(groups), ctas)                               \
        bsmi_gemm_##codes##_##tile(const __grid_constant__ mixed_input_parameters<source> p)                           \
    {                                                                                                                  \
        using one_chain = mixed_input_config<codes_##codes, source, schedule, rows, groups, ctas, __VA_ARGS__>;        \
        mixed_input_gemm<mixed_input_parts_config<one_chain>>(p);                                                      \
    }

/* The arguments behind `tile` are the table's columns. */
#define MIXED_INPUT_KERNEL(codes, tile, source, schedule, rows, groups, ctas, ...)                                     \
    extern "C" __global__ void __launch_bounds__(BSMI_MIXED_INPUT_THREADS(groups), ctas)                               \
        bsmi_gemm_##codes##_##tile(const __grid_constant__ mixed_input_parameters<source> p)                           \
    {                                                                                                                  \
        mixed_input_gemm<mixed_input_config<codes_##codes, source, schedule, rows, groups, ctas, __VA_ARGS__>>(p);     \
    }
