/* The consumer: a warpgroup that decodes 64 rows of B in its registers, multiplies them with the rows of A, and finishes 64 columns of D. */
#pragma once

#include "cuda/ptx/wgmma_registers.cuh"
#include "cuda/sm90/epilogue/decoding_epilogue.cuh"
#include "cuda/sm90/operand/register_decoder.cuh"
#include "cuda/sm90/epilogue/fallback_rows.cuh"
#include "cuda/sm90/pipeline/register_producer.cuh"
#include "cuda/sm90/operand/register_scales.cuh"

/* What a thread keeps from stage to stage. */
template <class CONFIG> struct register_place {
    register_reader reader;
    gemm_ring<CONFIG> ring;
    uint32_t a;                           /* low half of the descriptor of stage 0 */
    uint32_t full, empty;                 /* barriers of stage 0; the second one where this thread tells that a stage is read */
    bool tells;
};

/* shared and thread come by way of shfl, so that ptxas does not read special registers again wherever they are wanted. */
template <class CONFIG> __device__ static inline register_place<CONFIG> register_place_of(uint32_t shared)
{
    const uint32_t lane = __shfl_sync(0xffffffff, threadIdx.x % 32, threadIdx.x % 32), empty = shared + CONFIG::AT_EMPTY;
    return { register_reader_of<CONFIG>(shared), { 0, 0 }, (uint32_t)wgmma_descriptor(shared + CONFIG::AT_A), shared + CONFIG::AT_FULL,
             CONFIG::CLUSTER == 1 ? empty : mapa_shared_cluster(empty, lane % CONFIG::CLUSTER), lane < CONFIG::CLUSTER };
}

template <class CONFIG> __device__ static inline void await_stage(const register_place<CONFIG> &at)
{
    mbarrier_wait_parity(at.full + at.ring.stage * 8, at.ring.parity);
}

/* This warp reads nothing of the stage any more: says so to every CTA whose part of A's rows it holds. */
template <class CONFIG> __device__ static inline void release_stage(const register_place<CONFIG> &at, uint32_t stage)
{
    fence_proxy_async_shared();           /* behind the reads of the stage, before the copy engine fills it again */
    __syncwarp();
    if (!at.tells) return;
    if (CONFIG::CLUSTER == 1) mbarrier_arrive(at.empty + stage * 8);
    else mbarrier_arrive_cluster(at.empty + stage * 8);
}

/* Four products of 16 columns.  a: of the step's rows of A.  Those of the step before are made when it ends. */
template <class CONFIG>
__device__ static inline void multiply_step(float (&sums)[CONFIG::PRODUCT_SUMS], const uint32_t (&operand)[16], uint32_t a)
{
    wgmma_fence();
#pragma unroll
    for (int k = 0; k < 4; k++) wgmma_bf16_registers<CONFIG::ROWS>::multiply(sums, operand + 4 * k, a + 2 * k);
    wgmma_commit_group();
    wgmma_wait_group<1>();
}

/* What a pair of steps begins with. */
template <class CONFIG> struct register_pair {
    register_codes codes;
    register_scales<typename CONFIG::CODES> scales;
};

template <class CONFIG, int NUMBER>
__device__ static inline register_pair<CONFIG> read_pair(const register_place<CONFIG> &at, int32_t step)
{
    return { read_step<CONFIG, NUMBER>(at.reader, at.ring.stage), read_scales<CONFIG>(at.reader, step) };
}

/* Steps NUMBER and NUMBER + 1 of the stage; `pair` becomes the next one, if there is one.  The codes of a step are read while the one before is
 * decoded; the products of one are made while the next is decoded, into registers of its own.
 * The result of redux is in a uniform register, where wgmma wants its descriptors. */
template <class CONFIG, int NUMBER, bool SPECIAL>
__device__ static inline void sum_pair(float (&sums)[CONFIG::PRODUCT_SUMS], register_place<CONFIG> &at, register_pair<CONFIG> &pair, int32_t step,
                                       int32_t steps)
{
    using CODES = typename CONFIG::CODES;
    constexpr uint32_t STEP = CONFIG::A_BYTES / 16;
    uint32_t even[16], odd[16];
    const uint32_t stage = at.ring.stage, a = __reduce_or_sync(0xffffffff, at.a + stage * CONFIG::STEPS * STEP) + NUMBER * STEP;
    const register_codes next = read_step<CONFIG, NUMBER + 1>(at.reader, stage);
    decode_step<CODES, 0, SPECIAL>(at.reader, pair.codes, pair.scales, even);
    multiply_step<CONFIG>(sums, even, a);
    if (NUMBER == 0 && step > 0) release_stage<CONFIG>(at, stage == 0 ? CONFIG::STAGES - 1 : stage - 1);
    const register_scales<CODES> scales = pair.scales;
    const bool last = step + 2 >= steps;
    if (NUMBER != 0 || last) at.ring.next();
    if (!last) {
        if (NUMBER != 0) await_stage<CONFIG>(at);
        pair = read_pair<CONFIG, NUMBER == 0 ? 2 : 0>(at, step + 2);
    }
    decode_step<CODES, 1, SPECIAL>(at.reader, next, scales, odd);
    multiply_step<CONFIG>(sums, odd, a + STEP);
}

/* The sums of a tile, K ascending, 16 columns at a time, as sum_tile of shared_memory_consumer.cuh makes them.  SPECIAL: for all four warps alike. */
template <class CONFIG, bool SPECIAL>
__device__ static inline void sum_registers(float (&sums)[CONFIG::PRODUCT_SUMS], register_place<CONFIG> &at, int32_t steps)
{
#pragma unroll
    for (int i = 0; i < CONFIG::PRODUCT_SUMS; i++) sums[i] = 0;
    await_stage<CONFIG>(at);
    register_pair<CONFIG> pair = read_pair<CONFIG, 0>(at, 0);
#pragma unroll 1
    for (int32_t step = 0; step < steps; step += CONFIG::STEPS) {
        sum_pair<CONFIG, 0, SPECIAL>(sums, at, pair, step, steps);
        if (step + 2 < steps) sum_pair<CONFIG, 2, SPECIAL>(sums, at, pair, step + 2, steps);
    }
    wgmma_wait_group<0>();
#pragma unroll
    for (int i = 0; i < CONFIG::PRODUCT_SUMS; i++) asm volatile("" : "+f"(sums[i])::"memory");
    release_stage<CONFIG>(at, at.ring.stage == 0 ? CONFIG::STAGES - 1 : at.ring.stage - 1);
}

/* memory: that of `shared`; what is left out is computed where scales were. */
template <class CONFIG>
__device__ static inline void consume_registers(const bsmi_mixed_input_parameters &p, unsigned char *memory, uint32_t shared, gemm_cta cta)
{
    constexpr uint32_t TABLES = CONFIG::AT_TABLES, EXPONENTS = TABLES + CONFIG::ROW_TABLE_BYTES;
    static_assert(sizeof(left_out_memory) <= CONFIG::SCALE_BYTES && CONFIG::AT_SCALES % 8 == 0, "lies where scales were");
    decoded_sums<CONFIG> sums;
    register_place<CONFIG> at = register_place_of<CONFIG>(shared);
    const int64_t tiles = gemm_tiles(p), step = gridDim.x / CONFIG::CLUSTER;
    const int32_t steps = paired_steps(p);
    for (int64_t number = blockIdx.x / CONFIG::CLUSTER; number < tiles; number += step) {
        const gemm_tile tile = gemm_tile_of<CONFIG>(p, number, cta);
        const register_source source = register_source_of<CONFIG>(p, tile, shared + CONFIG::AT_SCALES, brought_rows<CONFIG>());
        __syncwarp();                     /* those of the tile before are read */
        begin_scales<CONFIG>(p, tile, source);
        aim_at_scales<CONFIG>(p, source, at.reader);
        const gemm_finish finish = gemm_finish_of(p);
        const bool scaled = fill_tables<CONFIG>(p, finish, tile, shared, 0);
        const register_findings found = end_scales<CONFIG>(p, tile, source, shared + EXPONENTS + threadIdx.x / 32 * 64, steps);
        if (barrier_or(1, 128, found.special)) sum_registers<CONFIG, true>(sums[0], at, steps);
        else sum_registers<CONFIG, false>(sums[0], at, steps);
        finish_decoded_tile<CONFIG>(p, finish, tile, decoded_tile_of<CONFIG>(p, tile, shared, 0, scaled || found.exponents), sums);
        if ((!CONFIG::CODES::MICRO || p.epilogue.a_exponents != nullptr) && barrier_or(1, 128, scaled || found.exponents))
            compute_left_out(p, tile, (left_out_memory *)(memory + CONFIG::AT_SCALES), CONFIG::ROWS, 64, shared + TABLES, shared + EXPONENTS, 1);
    }
}
