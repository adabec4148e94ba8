/* D = finish(A B^T) on GeForce RTX 50, RTX PRO and GB10 where A is bf16 and B e2m1 with scales: B is decoded into
 * registers, which are mma.sync's first operand, as on Hopper they are wgmma's (cuda/sm90/mainloop/mixed_input.cuh).
 *
 *     global memory        shared memory                  registers           tensor cores        D
 *     rows of A   -- TMA -> ring of A's rows -- ldmatrix -> second operand
 *     codes of B  -- TMA -> ring of codes ---- decoded --> first operand ---> sums ------------> finished, stored
 *     scales of B --------> of a tile, or of a stage --^
 *
 * mma.sync computes D^T = B A^T: weights are rows of the instruction, of which each is decoded by one warp once, and
 * the rows of A, few of them mostly, are columns, eight at a time.  The numbers that are multiplied, the order of sums,
 * and with them the bits of D are those of gemm_bf16.cu with decoded rows.
 *
 * A persistent grid of CTAs.  Groups of four warps consume; behind them a warp loads codes, and one rows of A.  Each
 * stage's full barrier has one arrival, of the thread that loads it, and its bytes; its empty barrier one of each warp
 * of the consumers. */
#pragma once

#include "mixed_input_consumer.cuh"

/* By one thread: rows of A, of each segment of K stages of A_STEPS, the last of which may have fewer. */
template <class CONFIG>
__device__ static inline void produce_mixed_input_rows(const bsmi_gemm_parameters &p, uint32_t shared)
{
    gemm_ring<CONFIG> ring = ring_of_producer<CONFIG>();
    const int64_t tiles = gemm_tiles(p);
    for (int64_t number = blockIdx.x; number < tiles; number += gridDim.x) {
        const gemm_tile tile = mixed_input_tile<CONFIG>(p, number);
        const int32_t matrix = matrix_of_a(p, tile);
        for (int32_t s = 0; s < p.segment_count; s++)
            for (int32_t step = 0; step < p.segments[s].blocks; step += CONFIG::A_STEPS, ring.next()) {
                const int32_t steps = min(CONFIG::A_STEPS, p.segments[s].blocks - step);
                const uint32_t full = full_barrier<CONFIG>(shared, ring.stage);
                mbarrier_wait_parity(empty_barrier<CONFIG>(shared, ring.stage), ring.parity);
                mbarrier_arrive_expect_tx(full, steps * CONFIG::A_BYTES);
                for (int32_t i = 0; i < steps; i++)
                    tensor_load(shared + CONFIG::AT_A + (ring.stage * CONFIG::A_STEPS + i) * CONFIG::A_BYTES, &p.a,
                                p.segments[s].a_column + (step + i) * BSMI_K_STEP, tile.row, matrix, full);
            }
    }
    griddepcontrol_launch_dependents();
}

/* Prepacked weights are loaded before the kernels in front of this one have ended: none of them writes any. */
template <class CONFIG>
__device__ static inline void mixed_input_by_mma_sync(const typename CONFIG::PARAMETERS &p)
{
    extern __shared__ __align__(1024) unsigned char memory[];
    const uint32_t shared = __shfl_sync(0xffffffff, shared_address(memory), 0), warp = warp_of_cta();
    const int32_t loader = (int32_t)warp - CONFIG::WARPS;
    [[maybe_unused]] code_loader<CONFIG> codes;
    if (!CONFIG::PREPACKED || p.epilogue.grouped) griddepcontrol_wait();
    if (loader == 0 && elect_sync()) {
        initialize_ring<CONFIG>(shared, 1, CONFIG::WARPS);
        initialize_ring<typename CONFIG::codes_ring>(shared, 1, CONFIG::WARPS);
        fence_mbarrier_init();
        if constexpr (CONFIG::PREPACKED) {
            codes = code_loader_of<CONFIG>(p);
            load_codes<CONFIG>(p, shared, CONFIG::codes_ring::STAGES, codes);
        } else {
            prefetch_tensormap(&p.b);
        }
    }
    if (loader == 1 && elect_sync()) prefetch_tensormap(&p.a);
    __syncthreads();
    if (loader < 0) {
        consume_weights<CONFIG>(p, shared);
    } else if (loader == 0 && elect_sync()) {
        if constexpr (CONFIG::STORED) codes = code_loader_of<CONFIG>(p);
        if constexpr (CONFIG::STORED || CONFIG::PREPACKED) load_codes<CONFIG>(p, shared, -1, codes);
        else produce_codes<CONFIG>(p, shared, { 0, 0 });
    } else if (loader == 1 && elect_sync()) {
        if (CONFIG::PREPACKED) griddepcontrol_wait();
        produce_mixed_input_rows<CONFIG>(p, shared);
    }
}

/* The arguments behind `tile` are the table's columns. */
#define MIXED_INPUT_BY_MMA_SYNC(codes, tile, source, rows, groups, ...) \
    extern "C" __global__ void __launch_bounds__(BSMI_SM120_MIXED_INPUT_THREADS(groups), 1) \
        bsmi_gemm_sm120_##codes##_##tile(const __grid_constant__ mixed_input_parameters<source> p) \
    { \
        mixed_input_by_mma_sync<mma_sync_mixed_input_config<codes_##codes, source, rows, groups, __VA_ARGS__>>(p); \
    }
