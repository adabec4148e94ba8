/* The consumers: warpgroups that decode codes into registers, multiply them with what the other ring holds, and finish their columns.
 *
 * While the tensor cores multiply one step of 64 columns, the next is decoded, and the codes of the one behind it are on their way from
 * shared memory. */
#pragma once

#include "decoding_codes.cuh"
#include "decoding_epilogue.cuh"
#include "gemm_consumer.cuh"

/* Where the consumer is in the ring of codes. */
template <class CONFIG> struct codes_place {
    gemm_ring<typename CONFIG::codes_ring> ring;
    uint32_t number;                      /* of the step within the stage */
};

/* Reads the codes of the next step.  last: nothing else of this stage is wanted. */
template <class CONFIG>
__device__ static inline void next_codes(raw_codes<typename CONFIG::CODES> &raw, codes_place<CONFIG> &place, const code_reader &reader,
                                         uint32_t shared, bool last)
{
    using RING = typename CONFIG::codes_ring;
    if (place.number == 0)
        mbarrier_wait_parity(full_barrier<RING>(shared, place.ring.stage), place.ring.parity);
    read_codes<CONFIG>(raw, reader, shared, place.ring.stage, place.number);
    place.number++;
    if (last || place.number == CONFIG::CODE_STEPS) {
        __syncwarp();
        if (threadIdx.x % 32 == 0) mbarrier_arrive(empty_barrier<RING>(shared, place.ring.stage));
        place.ring.next();
        place.number = 0;
    }
}

/* What one segment of K is summed with. */
template <class CONFIG> struct decoding_job {
    uint32_t shared;
    gemm_cta cta;
    code_reader reader;
    gemm_ring<CONFIG> ring;
    codes_place<CONFIG> place;
    uint32_t before;                      /* the stage of the step before */
};

/* One step: decodes its codes while the products of the step before are under way, then begins with its own.  raw: its codes, then
 * those of the next step.  The compiler must not move what computes the operand behind the fence. */
template <class CONFIG>
__device__ static inline void sum_step(float (&sums)[CONFIG::SUMS], uint32_t (&a)[4][4], raw_codes<typename CONFIG::CODES> &raw,
                                       decoding_job<CONFIG> &job, bool adds, bool any_before, int32_t left)
{
    decode_raw<typename CONFIG::CODES>(a, raw, job.reader);
    if (left > 1) next_codes<CONFIG>(raw, job.place, job.reader, job.shared, left == 2);
    mbarrier_wait_parity(full_barrier<CONFIG>(job.shared, job.ring.stage), job.ring.parity);
#pragma unroll
    for (int i = 0; i < 16; i++) asm volatile("" : "+r"(a[i / 4][i % 4])::"memory");
    wgmma_wait_group<0>();
    if (any_before) release_stage<CONFIG>(job.shared, job.before, job.cta);
    const uint64_t rows = wgmma_descriptor(job.shared + CONFIG::AT_A + job.ring.stage * CONFIG::A_BYTES);
    wgmma_fence();
#pragma unroll
    for (int k = 0; k < 4; k++) wgmma_bf16_registers<CONFIG::ROWS>::multiply(sums, a[k], rows + 2 * k, adds || k > 0);
    wgmma_commit_group();
    job.before = job.ring.stage;
    job.ring.next();
}

/* The sums of one segment of K, ascending, 16 columns at a time.  The operand has two sets of registers: one is read by the tensor
 * cores while the other is written. */
template <class CONFIG>
__device__ static inline void sum_segment(float (&sums)[CONFIG::SUMS], decoding_job<CONFIG> &job, int32_t steps, bool adds)
{
    raw_codes<typename CONFIG::CODES> raw;
    uint32_t even[4][4], odd[4][4];
    next_codes<CONFIG>(raw, job.place, job.reader, job.shared, steps == 1);
    for (int32_t step = 0; step + 2 <= steps; step += 2) {
        sum_step<CONFIG>(sums, even, raw, job, adds || step > 0, step > 0, steps - step);
        sum_step<CONFIG>(sums, odd, raw, job, true, true, steps - step - 1);
    }
    if (steps % 2 != 0) sum_step<CONFIG>(sums, even, raw, job, adds || steps > 1, steps > 1, 1);
    wgmma_wait_group<0>();
#pragma unroll
    for (int i = 0; i < CONFIG::SUMS; i++) asm volatile("" : "+f"(sums[i])::"memory");
    release_stage<CONFIG>(job.shared, job.before, job.cta);
}

template <class CONFIG>
__device__ static inline void consume_decoding(const bsmi_gemm_parameters &p, uint32_t shared, gemm_cta cta, uint32_t group)
{
    float sums[CONFIG::SUMS];
    decoding_job<CONFIG> job = { shared, cta, code_reader_of<CONFIG>(p), { 0, 0 }, { { 0, 0 }, 0 }, 0 };
    const uint32_t table = shared + CONFIG::AT_TABLES + group * CONFIG::TABLE_BYTES;
    const gemm_finish finish = gemm_finish_of(p);
    const int64_t tiles = gemm_tiles(p), step = gridDim.x / CONFIG::CLUSTER;
    for (int64_t number = blockIdx.x / CONFIG::CLUSTER; number < tiles; number += step) {
        const gemm_tile tile = gemm_tile_of<CONFIG>(p, number, cta);
        aim<CONFIG>(job.reader, group, tile.column);
        for (int32_t s = 0; s < p.segment_count; s++) sum_segment<CONFIG>(sums, job, p.segments[s].blocks, s > 0);
        finish_columns<CONFIG>(p, finish, tile, group, table, sums);
    }
}
