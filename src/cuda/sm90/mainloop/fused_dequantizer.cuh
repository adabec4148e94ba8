/* The warpgroups that dequantize B's codes to rows of bf16, in the stages that the producer fills with rows of A. */
#pragma once

#include "cuda/sm90/operand/codes_to_shared_memory.cuh"
#include "shared_memory_consumer.cuh"

/* Where a warpgroup is in both rings: at its next step. */
template <class CONFIG> struct dequantizer_place {
    gemm_ring<CONFIG> ring;
    gemm_ring<typename CONFIG::codes_ring> codes;
    uint32_t step;                        /* of the segment: the next to take codes for */
    uint32_t stage;                       /* of codes, counted from the segment's beginning: where codes is */
};

template <class CONFIG> __device__ static inline void go_to_stage(dequantizer_place<CONFIG> &place, uint32_t stage)
{
    place.codes.advance(stage - place.stage);
    place.stage = stage;
}

/* What it needs for its next step, out of the stage of codes. */
template <class CONFIG>
__device__ static inline raw_codes<typename CONFIG::CODES> take_codes(const code_reader &reader,
                                                                      dequantizer_place<CONFIG> &place, uint32_t shared)
{
    using RING = typename CONFIG::codes_ring;
    go_to_stage<CONFIG>(place, place.step / CONFIG::CODE_STEPS);
    mbarrier_wait_parity(full_barrier<RING>(shared, place.codes.stage), place.codes.parity);
    return read_codes<CONFIG>(reader, shared, place.codes.stage, place.step % CONFIG::CODE_STEPS);
}

/* Behind a proxy fence of the whole warp: without it, TMA overwrites codes of which reads are under way.  The step that
 * ends a segment may leave others of the stage unused. */
template <class CONFIG>
__device__ static inline void release_codes(const code_reader &reader, const dequantizer_place<CONFIG> &place,
                                            uint32_t shared, uint32_t steps)
{
    if (!reader.notifies) return;
    const uint32_t number = place.step % CONFIG::CODE_STEPS,
                   count = place.step + 1 == steps ? CONFIG::CODE_STEPS - number : 1;
    mbarrier_arrive_count(empty_barrier<typename CONFIG::codes_ring>(shared, place.codes.stage), count);
}

/* Its steps of one segment: the codes of the next one are on their way while one is decoded, and it is decoded before
 * its stage is free. */
template <class CONFIG, int ELEMENT>
__device__ static inline void dequantize_segment(const code_reader &reader, dequantizer_place<CONFIG> &place,
                                                 uint32_t shared, uint32_t steps)
{
    raw_codes<typename CONFIG::CODES> raw;
    place.stage = 0;
    if (place.step < steps) {
        raw = take_codes<CONFIG>(reader, place, shared);
        fence_proxy_async_shared();
        __syncwarp();
        release_codes<CONFIG>(reader, place, shared, steps);
    }
    while (place.step < steps) {
        const decoded_codes decoded = decode_raw<typename CONFIG::CODES, ELEMENT>(raw);
        place.step += CONFIG::DECODERS;
        if (place.step < steps) raw = take_codes<CONFIG>(reader, place, shared);
        mbarrier_wait_parity(empty_barrier<CONFIG>(shared, place.ring.stage), place.ring.parity);
        write_decoded<CONFIG>(reader, decoded, shared, place.ring.stage);
        fence_proxy_async_shared();       /* behind what was written, and behind the codes that were read */
        __syncwarp();
        if (reader.notifies) mbarrier_arrive(full_barrier<CONFIG>(shared, place.ring.stage));
        if (place.step < steps) release_codes<CONFIG>(reader, place, shared, steps);
        place.ring.advance(CONFIG::DECODERS);
    }
    go_to_stage<CONFIG>(place, (steps + CONFIG::CODE_STEPS - 1) / CONFIG::CODE_STEPS);
    place.step -= steps;
}

template <class CONFIG, int ELEMENT>
__device__ static inline void dequantize(const bsmi_gemm_parameters &p, uint32_t shared, gemm_cta cta, uint32_t number)
{
    code_reader reader = code_reader_of<CONFIG>();
    dequantizer_place<CONFIG> place = { ring_of_producer<CONFIG>(), { 0, 0 }, number, 0 };
    place.ring.advance(number);
    for_each_tile<CONFIG>(p, cta, [&](const gemm_tile &tile, bool) {
        begin_tile(reader, tile.column);
        for (int32_t s = 0; s < p.segment_count; s++)
            dequantize_segment<CONFIG, ELEMENT>(reader, place, shared, (uint32_t)p.segments[s].blocks);
    });
}
