/* The consumers: warpgroups that multiply what the ring holds, then finish and store their part of the tile.
 *
 * Nothing but the ring ties the warpgroups of a CTA together: one of them soon runs ahead by a stage or two, and then
 * the tensor cores work for one warpgroup while the other finishes its tile. */
#pragma once

#include "cuda/epilogue/gemm_store.cuh"
#include "cuda/sm90/epilogue/fallback_rows.cuh"
#include "shared_memory_config.cuh"

/* This warpgroup reads nothing of the stage any more: it notifies every CTA that fills the stage, those of its row and
 * of its column of the cluster, by one thread for each. */
template <class CONFIG> __device__ static inline void release_stage(uint32_t shared, uint32_t stage, gemm_cta cta)
{
    const uint32_t thread = threadIdx.x % 128, empty = empty_barrier<CONFIG>(shared, stage);
    const gemm_cta to = gemm_cta_of<CONFIG>(thread);
    if (CONFIG::CLUSTER == 1) release_stage<CONFIG>(empty, thread == 0);
    else if (thread < CONFIG::CLUSTER && (to.row == cta.row || to.column == cta.column))
        release_stage<CONFIG>(mapa_shared_cluster(empty, thread), true);
}

/* One step of K: four products of 32 bytes of columns for each block of 64 rows.  PRODUCT: wgmma_bf16, or wgmma_s8,
 * whose sums are s32. */
template <class CONFIG, template <int> class PRODUCT, class SUM>
__device__ static inline void multiply_stage(SUM (&sums)[CONFIG::BLOCKS][CONFIG::SUMS], uint32_t a, uint32_t b,
                                             bool first)
{
    const uint64_t b_tile = wgmma_descriptor(b);
    wgmma_fence();
#pragma unroll
    for (int block = 0; block < CONFIG::BLOCKS; block++) {
        const uint64_t a_tile = wgmma_descriptor(a + block * 64 * CONFIG::K_BYTES);
#pragma unroll
        for (int k = 0; k < 4; k++)
            PRODUCT<CONFIG::COLUMNS>::multiply(sums[block], a_tile + 2 * k, b_tile + 2 * k, !first || k > 0);
    }
    wgmma_commit_group();
}

/* Keeps the compiler from moving uses of a sum to before this point. */
__device__ static inline void sum_is_complete(float &sum) { asm volatile("" : "+f"(sum)::"memory"); }
__device__ static inline void sum_is_complete(int32_t &sum) { asm volatile("" : "+r"(sum)::"memory"); }

template <class CONFIG, class SUM>
__device__ static inline void sums_are_complete(SUM (&sums)[CONFIG::BLOCKS][CONFIG::SUMS])
{
#pragma unroll
    for (int block = 0; block < CONFIG::BLOCKS; block++)
#pragma unroll
        for (int i = 0; i < CONFIG::SUMS; i++) sum_is_complete(sums[block][i]);
}

/* The products of step `step` of a tile, out of `stage`.  Those of the step before have ended then, and its stage is
 * released. */
template <class CONFIG, template <int> class PRODUCT, class SUM>
__device__ static inline void sum_step(SUM (&sums)[CONFIG::BLOCKS][CONFIG::SUMS], uint32_t shared, uint32_t stage,
                                       uint32_t parity, gemm_cta cta, uint32_t group, bool first)
{
    const uint32_t a = shared + CONFIG::AT_A + group * CONFIG::BLOCKS * 64 * CONFIG::K_BYTES, b = shared + CONFIG::AT_B;
    mbarrier_wait_parity(full_barrier<CONFIG>(shared, stage), parity);
    multiply_stage<CONFIG, PRODUCT>(sums, a + stage * CONFIG::A_BYTES, b + stage * CONFIG::B_BYTES, first);
    if (first) return;
    wgmma_wait_group<1>();
    release_stage<CONFIG>(shared, stage_before<CONFIG>(stage), cta);
}

/* Every stage with instructions of its own: up to stage 0 without, for a tile that begins elsewhere. */
template <class CONFIG, template <int> class PRODUCT, class SUM>
__device__ static inline void sum_by_stages(SUM (&sums)[CONFIG::BLOCKS][CONFIG::SUMS], uint32_t shared,
                                            gemm_ring<CONFIG> &ring, gemm_cta cta, uint32_t group, int32_t steps)
{
    int32_t step = 0;
#pragma unroll 1
    for (; step < steps && ring.stage != 0; step++, ring.next())
        sum_step<CONFIG, PRODUCT>(sums, shared, ring.stage, ring.parity, cta, group, step == 0);
    while (step < steps) {
#pragma unroll
        for (uint32_t stage = 0; stage < CONFIG::STAGES && step < steps; stage++, step++, ring.next())
            sum_step<CONFIG, PRODUCT>(sums, shared, stage, ring.parity, cta, group, stage == 0 && step == 0);
    }
}

/* S of one tile, K ascending, 32 bytes of columns at a time.  The products of a step are under way while the next step
 * is waited for; a stage is released once those of the step behind it have begun. */
template <class CONFIG, template <int> class PRODUCT, class SUM>
__device__ static inline void sum_tile(SUM (&sums)[CONFIG::BLOCKS][CONFIG::SUMS], uint32_t shared,
                                       gemm_ring<CONFIG> &ring, gemm_cta cta, uint32_t group, int32_t steps)
{
    if constexpr (CONFIG::STAGES_ARE_CONSTANTS) sum_by_stages<CONFIG, PRODUCT>(sums, shared, ring, cta, group, steps);
    else
        for (int32_t step = 0; step < steps; step++, ring.next())
            sum_step<CONFIG, PRODUCT>(sums, shared, ring.stage, ring.parity, cta, group, step == 0);
    wgmma_wait_group<0>();
    sums_are_complete<CONFIG>(sums);
    release_stage<CONFIG>(shared, stage_before<CONFIG>(ring.stage), cta);
}

/* Four warps, each with 16 of 64 rows. */
template <class CONFIG> __device__ static inline gemm_part part_of(const gemm_tile &tile, uint32_t group, int block)
{
    const int32_t first = tile.row + ((int32_t)group * CONFIG::BLOCKS + block) * 64;
    return gemm_part_of(tile, first, 64, first + (int32_t)(threadIdx.x % 128 / 32 * 16), tile.column);
}

/* Exponents that a tile needs at its end: read before its sums are begun, so that nobody waits for them. */
template <class CONFIG> struct tile_exponents {
    gemm_own_exponents<CONFIG::COLUMNS> own;
    gemm_row_exponents rows[CONFIG::BLOCKS];
};

template <class CONFIG>
__device__ static inline tile_exponents<CONFIG> tile_exponents_of(const bsmi_gemm_parameters &p, const gemm_tile &tile,
                                                                  uint32_t group)
{
    tile_exponents<CONFIG> of;
    of.own = own_exponents_of<CONFIG::COLUMNS>(p.epilogue, tile.matrix, tile.column);
#pragma unroll
    for (int block = 0; block < CONFIG::BLOCKS; block++)
        of.rows[block] = row_exponents_of(p.epilogue, part_of<CONFIG>(tile, group, block));
    return of;
}

/* From sums to memory: 64 rows.  The table of columns lies where the boxes do, which are empty before and wait behind
 * it. */
template <class CONFIG>
__device__ static inline void finish_part(const bsmi_gemm_parameters &p, const gemm_finish &finish,
                                          const gemm_part &part, const tile_exponents<CONFIG> &of, int block,
                                          gemm_boxes &boxes, float (&sums)[CONFIG::SUMS])
{
    gemm_columns columns = { false, true };
    const bool exponents_by_column =
        p.epilogue.b_exponents != nullptr && barrier_or(boxes.barrier, 128, any_exponent(of.own));
    const bool by_columns = exponents_by_column || finish.column_factors || finish.column_biases;
    if (by_columns) {
        boxes_are_read();
        barrier_sync(boxes.barrier, 128);
        columns = fill_column_table<CONFIG::COLUMNS>(p.epilogue, finish, part, of.own,
                                                     p.epilogue.b_exponents != nullptr, boxes.table, boxes.barrier);
    }
    const gemm_exponents exponents = exponents_of(of.rows[block], columns);
    const bool fast =
        stores_by_fast_path(p, finish, part, exponents) && (p.direct || !p.epilogue.sums_are_scaled || !exponents.any);
    const bool any_nan =
        fast && p.direct && finish_sums<CONFIG::COLUMNS>(p.epilogue, finish, part, exponents, boxes.table, sums);
    if (by_columns) barrier_sync(boxes.barrier, 128);     /* the table is read */
    if (!has_rows(part)) return;
    if (fast && !any_nan) store_finished<CONFIG>(p, part, boxes, sums);
    else
        finish_octets<CONFIG>(p, any_nan ? finished_already(finish) : finish, part, exponents.any && !any_nan, boxes,
                              sums);
}

/* Of the warpgroup's 64 rows what bf16 leaves out, once the rest is stored; where its boxes were.  k is 0 where another
 * kernel does it. */
template <class CONFIG>
__device__ static inline void finish_fallback(const bsmi_shared_memory_parameters &p, gemm_tile tile, uint32_t group,
                                              const tile_exponents<CONFIG> &of, const gemm_boxes &boxes)
{
    const uint32_t thread = threadIdx.x % 128, rows = boxes.table + (uint32_t)sizeof(fallback_memory),
                   columns = rows + 64 * 4;
    static_assert(CONFIG::BLOCKS == 1 && CONFIG::COLUMNS <= 128, "a thread knows a column and two rows");
    static_assert(sizeof(fallback_memory) + 4 * (64 + CONFIG::COLUMNS) <= 8 * CONFIG::D_BOX && CONFIG::AT_D % 8 == 0,
                  "its memory");
    if (p.k == 0 || (p.epilogue.a_exponents == nullptr && p.epilogue.b_exponents == nullptr)) return;
    const int32_t column = of.own.columns[0], row = of.rows[0].rows[0], row_behind = of.rows[0].rows[1];
    if (!barrier_or(boxes.barrier, 128,
                    column == BSMI_ROW_FALLBACK || row == BSMI_ROW_FALLBACK || row_behind == BSMI_ROW_FALLBACK))
        return;
    boxes_are_read();
    barrier_sync(boxes.barrier, 128);
    if (thread < CONFIG::COLUMNS) store_shared(columns + 4 * thread, (uint32_t)column);
    if (thread % 4 == 0) {
        const uint32_t at = rows + 4 * (thread / 32 * 16 + thread % 32 / 4);
        store_shared(at, (uint32_t)row), store_shared(at + 4 * 8, (uint32_t)row_behind);
    }
    barrier_sync(boxes.barrier, 128);
    tile.row += (int32_t)group * 64;
    compute_fallback(p, tile, (fallback_memory *)__cvta_shared_to_generic(boxes.table), 64, CONFIG::COLUMNS, rows,
                     columns, boxes.barrier);
}

/* OPERAND: the type of A's and B's rows, which says how a tile is summed (operand/). */
template <class CONFIG, class OPERAND>
__device__ static inline void consume(const bsmi_shared_memory_parameters &p, uint32_t shared, gemm_cta cta,
                                      uint32_t group)
{
    gemm_ring<CONFIG> ring = { 0, 0 };
    gemm_boxes boxes = gemm_boxes_of<CONFIG>(shared, group);
    const gemm_finish finish = gemm_finish_of(p);
    const int32_t steps = steps_of_k(p);
    for_each_tile<CONFIG>(p, cta, [&](const gemm_tile &tile, bool is_first) {
        if (is_first) griddepcontrol_wait();                  /* exponents are another kernel's */
        const tile_exponents<CONFIG> exponents = tile_exponents_of<CONFIG>(p, tile, group);
        float sums[CONFIG::BLOCKS][CONFIG::SUMS];
        OPERAND::template sum<CONFIG>(sums, shared, ring, cta, group, steps);
#pragma unroll
        for (int block = 0; block < CONFIG::BLOCKS; block++)
            finish_part<CONFIG>(p, finish, part_of<CONFIG>(tile, group, block), exponents, block, boxes, sums[block]);
        if constexpr (CONFIG::COMPUTES_FALLBACK) finish_fallback<CONFIG>(p, tile, group, exponents, boxes);
    });
    boxes_are_read();
}
