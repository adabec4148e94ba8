/* The epilogue: four warps, each of which reads the 32 lanes (rows) of tensor memory that it can reach, 16 at a time,
 * finishes and stores them.
 *
 * Where two accumulators do not fit beside the scales, the last columns of the first are the first of the second.
 * These are read first, and then the multiplier may go on with the next tile: it writes nothing else that is still to
 * be read, since the tile before was read whole before this one was begun. */
#pragma once

#include "cuda/epilogue/gemm_amax.cuh"
#include "cuda/epilogue/gemm_quantized.cuh"
#include "cuda/epilogue/gemm_store.cuh"
#include "cuda/ptx/tensor_registers.cuh"
#include "gemm_parts.cuh"
#include "gemm_swapped.cuh"

/* Columns `chunk` of 16 rows: thread t has rows t / 4 and t / 4 + 8, columns 8 j + t % 4 * 2 and the one behind it. */
template <class CONFIG>
__device__ static inline void read_sums(float (&sums)[CONFIG::SUMS], uint32_t accumulator, int chunk, int half)
{
    uint32_t words[CONFIG::SUMS];
    const uint32_t lane = threadIdx.x % 128 / 32 * 32 + half * 16;
    tcgen05_ld<SHAPE_16X256B, CONFIG::SUMS / 4>(words, accumulator + (lane << 16) + chunk * CONFIG::CHUNK);
    tcgen05_wait_ld(words);
#pragma unroll
    for (int i = 0; i < CONFIG::SUMS; i++) sums[i] = __uint_as_float(words[i]);
}

template <class CONFIG>
__device__ static inline gemm_columns fill_table(const bsmi_blackwell_parameters &p, const gemm_finish &finish,
                                                 const gemm_part &part, const gemm_boxes &boxes)
{
    if (p.epilogue.b_exponents == nullptr && !finish.column_factors && !finish.column_biases) return { false, true };
    barrier_sync(boxes.barrier, 128); /* the tile before has been finished */
    const gemm_own_exponents<CONFIG::COLUMNS> own =
        own_exponents_of<CONFIG::COLUMNS>(p.epilogue, part.matrix, part.first_column);
    return fill_column_table<CONFIG::COLUMNS>(p.epilogue, finish, part, own, p.epilogue.b_exponents != nullptr,
                                              boxes.table, boxes.barrier);
}

template <class CONFIG>
__device__ static inline void finish_job(const bsmi_blackwell_parameters &p, const gemm_finish &finish,
                                         const gemm_job &job, gemm_boxes &boxes, const gemm_quantizer *quantizer,
                                         uint32_t tensor, uint32_t accumulator, uint32_t drained, uint32_t &amax)
{
    const gemm_tile &tile = job.tile;
    const int32_t first_row = tile.row + (int32_t)(threadIdx.x % 128 / 32 * 32);
    const gemm_columns columns =
        fill_table<CONFIG>(p, finish, gemm_part_of(tile, tile.row, CONFIG::ROWS, first_row, tile.column), boxes);
#pragma unroll 1
    for (int i = 0; i < CONFIG::CHUNKS * 2; i++) {
        const int chunk = accumulator == 0 ? CONFIG::CHUNKS - 1 - i / 2 : i / 2, half = i % 2;
        const gemm_part part =
            gemm_part_of(tile, tile.row, CONFIG::ROWS, first_row + half * 16, tile.column + chunk * CONFIG::CHUNK);
        float sums[CONFIG::SUMS];
        read_sums<CONFIG>(sums, accumulator_of<CONFIG>(tensor, accumulator), chunk, half);
        if (i == (CONFIG::SHARES ? 1 : CONFIG::CHUNKS * 2 - 1)) release_accumulator<CONFIG>(drained);
        if (!add_parts<CONFIG>(p, job, chunk * 2 + half, sums)) continue;
        const gemm_exponents exponents = exponents_of(row_exponents_of(p.epilogue, part), columns);
        const bool quantized = CONFIG::BLOCKS > 0 && quantizes(p), more = CONFIG::BLOCKS > 0 && goes_on(p),
                   all = quantized || more;
        const bool fast = all ? finish.beta == 0 : stores_by_fast_path(p, finish, part, exponents);
        bool any_nan =
            fast && p.direct && finish_sums<CONFIG::COLUMNS>(p.epilogue, finish, part, exponents, boxes.table, sums);
        if (all && !fast) any_nan = apply_all_terms<CONFIG::COLUMNS>(p.epilogue, finish, part, boxes.table, sums);
        if (all && any_nan) make_nan_canonical(sums);
        if (more) apply_relu_and_amax(p.epilogue, part, sums, amax);
        const bool finished = more || any_nan;
        if (quantized) store_rows_quantized(p, *quantizer, part, sums);
        else if ((more ? p.has_d_map && is_whole(p, part) : fast) && !any_nan)
            store_finished<CONFIG>(p, part, boxes, sums);
        else
            finish_octets<CONFIG>(p, finished ? finished_already(finish) : finish, part, exponents.any && !any_nan,
                                  boxes, sums);
    }
}

template <class CONFIG>
__device__ static inline void finish_jobs(const bsmi_blackwell_parameters &p, unsigned char *memory,
                                          uint32_t tensor, uint32_t rank)
{
    const uint32_t shared = shared_address(memory);
    gemm_quantizer *quantizer = (gemm_quantizer *)(memory + CONFIG::AT_QUANTIZER);
    gemm_ring<2> accumulator = { 0, 0 };
    gemm_ring<CONFIG::ACCUMULATORS> drained = { 0, 0 };
    gemm_boxes boxes = gemm_boxes_of<CONFIG>(shared, 0);
    boxes.table = shared + CONFIG::AT_TABLE;
    const gemm_finish finish = gemm_finish_of(p);
    uint32_t amax = 0;
    if (CONFIG::BLOCKS > 0 && quantizes(p)) make_gemm_quantizer(p, quantizer, boxes.barrier);
    for (gemm_jobs<CONFIG> jobs(p); jobs.more(); jobs.next(), accumulator.next(), drained.next()) {
        const gemm_job job = jobs.job(p, rank);
        mbarrier_wait_parity(filled_barrier<CONFIG>(shared, accumulator.at), accumulator.parity);
        tcgen05_fence_after_thread_sync();
        const uint32_t drained_at = drained_barrier<CONFIG>(shared, drained.at);
        if constexpr (CONFIG::SWAPPED)
            finish_swapped<CONFIG>(p, finish, job, quantizer, accumulator_of<CONFIG>(tensor, accumulator.at),
                                   drained_at, amax);
        else finish_job<CONFIG>(p, finish, job, boxes, quantizer, tensor, accumulator.at, drained_at, amax);
    }
    if (CONFIG::BLOCKS > 0) store_amax(p, amax);
    if (!CONFIG::SWAPPED) boxes_are_read();
}
