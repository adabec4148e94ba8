/* What the kernels whose warpgroups take turns at a tile share, whether they read B as it is stored or panels of it: turns, loads of A's rows,
 * sums that are handed on, products.
 *
 * at: where a warpgroup is, a place with shared, group, warp, lane and the ring of A's rows. */
#pragma once

#include "cuda/ptx/bulk_copy.cuh"
#include "cuda/ptx/wgmma_registers.cuh"
#include "cuda/sm90/kernels/decoding_config.cuh"

/* Turns of a tile of B as it is stored, which are its steps four by four.  Each warpgroup has one at least: those behind K are zeros. */
template <class CONFIG> __device__ static inline int32_t turns_of(const bsmi_mixed_input_parameters &p)
{
    return max((p.segments[0].blocks + CONFIG::STEPS - 1) / CONFIG::STEPS, CONFIG::GROUPS);
}

/* The same as gemm_tile_of, without its divisions for what few rows mostly are: loads wait for them. */
template <class CONFIG> __device__ static inline gemm_tile turn_tile_of(const bsmi_mixed_input_parameters &p, int64_t number)
{
    if (p.epilogue.grouped || p.tiles != p.column_tiles) return gemm_tile_of<CONFIG>(p, number, { 0, 0 });
    return { 0, (int32_t)number * CONFIG::COLUMNS, 0, (int32_t)p.epilogue.m, 0 };
}

/* Of the ring of A's rows, where boxes have fewer of them than a stage: wgmma reads them all.  What becomes of the others is not stored. */
template <class CONFIG> __device__ static inline void clear_rows(const bsmi_mixed_input_parameters &p, uint32_t shared)
{
    if (p.a_box_rows == CONFIG::ROWS) return;
    for (uint32_t at = threadIdx.x * 16; at < CONFIG::STAGES * CONFIG::STEPS * CONFIG::A_BYTES; at += CONFIG::WARPS * 32 * 16)
        store_shared_v4(shared + CONFIG::AT_A + at, make_uint4(0, 0, 0, 0));
    fence_proxy_async_shared();           /* before the copy engine and wgmma come to them */
}

/* Rows of A that the caller gave, of the CTA's first tile, into L2: of the steps of K each CTA asks for its share, before it has waited for the
 * kernel in front, which may write them: they are not read. */
template <class CONFIG> __device__ static inline void prefetch_rows(const bsmi_mixed_input_parameters &p, int32_t loader)
{
    if (p.epilogue.a_exponents != nullptr || p.epilogue.grouped || blockIdx.x >= p.tiles) return; /* decoded by another kernel; not known yet */
    const gemm_tile tile = turn_tile_of<CONFIG>(p, blockIdx.x);
#pragma unroll 1
    for (int32_t step = (int32_t)blockIdx.x * CONFIG::ROW_LOADERS + loader; step < p.segments[0].blocks; step += (int32_t)gridDim.x * CONFIG::ROW_LOADERS) {
        const int32_t place[3] = { step * BSMI_K_STEP, tile.row, tile.matrix * p.a_batch_step };
        cp_async_bulk_prefetch_tensor(&p.a, place);
    }
}

/* Rows of A of a tile, of each turn a share of the steps. */
template <class CONFIG>
__device__ static inline void load_turn_rows(const bsmi_mixed_input_parameters &p, uint32_t shared, const gemm_tile &tile, int32_t turns, int32_t loader,
                                             gemm_ring<CONFIG> &ring)
{
    constexpr int STEPS = CONFIG::STEPS / CONFIG::ROW_LOADERS;
    const int32_t step = loader * STEPS;
    const int32_t matrix = p.epilogue.grouped ? 0 : tile.matrix * p.a_batch_step;
#pragma unroll 1
    for (int32_t turn = 0; turn < turns; turn++, ring.next()) {
        const uint32_t full = full_barrier<CONFIG>(shared, ring.stage);
        const uint32_t to = shared + CONFIG::AT_A + (ring.stage * CONFIG::STEPS + step) * CONFIG::A_BYTES;
        mbarrier_wait_parity(empty_barrier<CONFIG>(shared, ring.stage), ring.parity);
        mbarrier_arrive_expect_tx(full, STEPS * p.a_box_rows * CONFIG::K_BYTES);
#pragma unroll
        for (int32_t i = 0; i < STEPS; i++)
            tensor_load(to + i * CONFIG::A_BYTES, &p.a, (turn * CONFIG::STEPS + step + i) * BSMI_K_STEP, tile.row, matrix, full);
    }
}

template <class CONFIG> using turn_sums = float[CONFIG::PRODUCT_SUMS];

/* Each thread has 16 bytes beside those of its neighbours. */
template <class CONFIG, class PLACE> __device__ static inline uint32_t place_of_sums(const PLACE &at)
{
    return at.shared + CONFIG::AT_SUMS + (at.warp * 32 + at.lane) * 16;
}

template <class CONFIG, class PLACE> __device__ static inline uint32_t barrier_of_turn(const PLACE &at, uint32_t group)
{
    return at.shared + CONFIG::AT_TURNS + (group * 4 + at.warp) * 8;
}

/* By one of the threads that load rows of A.  turns: of a tile. */
template <class CONFIG> __device__ static inline void produce_turn_rows(const bsmi_mixed_input_parameters &p, uint32_t shared, int32_t turns, int32_t loader)
{
    gemm_ring<CONFIG> ring = { 0, 1 };
    const int64_t tiles = gemm_tiles(p);
    if (blockIdx.x >= tiles) return;
    gemm_tile tile = turn_tile_of<CONFIG>(p, blockIdx.x);
    griddepcontrol_wait();
    for (int64_t number = blockIdx.x;;) {
        load_turn_rows<CONFIG>(p, shared, tile, turns, loader, ring);
        number += gridDim.x;
        if (number >= tiles) break;
        tile = turn_tile_of<CONFIG>(p, number);
    }
}

/* The first operand of a turn: of each step four products. */
template <class CONFIG> using turn_operand = uint32_t[CONFIG::STEPS][16];

/* They are in their registers here. */
template <class CONFIG> __device__ static inline void hold(turn_sums<CONFIG> &sums)
{
#pragma unroll
    for (int i = 0; i < CONFIG::PRODUCT_SUMS; i++) asm volatile("" : "+f"(sums[i])::"memory");
}

/* Of its rows of A the low half of a descriptor.  The result of redux is in a uniform register, where wgmma wants it: 16 descriptors out of others
 * take two instructions each, while everybody waits. */
template <class CONFIG, class PLACE> __device__ static inline uint32_t rows_of_turn(const PLACE &at)
{
    const uint32_t first = (uint32_t)wgmma_descriptor(at.shared + CONFIG::AT_A);
    return __reduce_or_sync(0xffffffff, first + at.ring.stage * (CONFIG::STEPS * CONFIG::A_BYTES / 16));
}

template <class CONFIG>
__device__ static inline void multiply_turn(uint32_t a, const turn_operand<CONFIG> &operand, turn_sums<CONFIG> &sums)
{
    hold<CONFIG>(sums);
    wgmma_fence();
#pragma unroll
    for (int step = 0; step < CONFIG::STEPS; step++)
#pragma unroll
        for (int k = 0; k < 4; k++) wgmma_bf16_registers<CONFIG::ROWS>::multiply(sums, operand[step] + 4 * k, a + step * (CONFIG::A_BYTES / 16) + 2 * k);
    wgmma_commit_group();
    wgmma_wait_group<0>();
    hold<CONFIG>(sums);
}
