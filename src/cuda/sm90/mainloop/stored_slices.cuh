/* K slices of stored weights, for the K-interleaved schedule: mixed_input_interleaved.cuh says what it asks of its
 * source of weights, and when.
 *
 * The scales of a tile lie in shared memory, all of them.  Some warps load those of the next tile as soon as all warps
 * have decoded their last slices of this one; what they find out about exponents and NaN all warps read. */
#pragma once

#include "cuda/sm90/epilogue/mixed_input_epilogue.cuh"
#include "cuda/sm90/operand/tile_scales.cuh"

/* Loads the scales of this CTA's n-th tile, once nobody reads those of the one before. */
template <class CONFIG>
__device__ static inline void load_scales(const bsmi_mixed_input_parameters &p, uint32_t shared, const gemm_tile &tile,
                                          uint32_t n, int32_t steps)
{
    using RING = typename CONFIG::scales_ring;
    const uint32_t warp = threadIdx.x / 32;
    if (warp >= CONFIG::SCALE_LOADERS) return;
    const scale_rows rows = own_scale_rows<CONFIG>(p, tile, shared);
    mbarrier_wait_parity(empty_barrier<RING>(shared, 0), n % 2 ^ 1);
    begin_scales<CONFIG>(p, tile, rows);
    const uint32_t exponents = shared + CONFIG::AT_EXPONENTS + warp * CONFIG::WARP_ROWS * 4;
    const scale_findings found = end_scales<CONFIG>(p, tile, rows, exponents, steps);
    if (threadIdx.x % 32 == 0)
        store_shared(shared + CONFIG::AT_FOUND + warp * 4, (found.special ? 1 : 0) | (found.exponents ? 2 : 0));
    __syncwarp();
    release_stage<CONFIG>(full_barrier<RING>(shared, 0), threadIdx.x % 32 == 0);
}

template <class CONFIG> struct stored_slices {
    using CODES = typename CONFIG::CODES;
    using PARAMETERS = typename CONFIG::PARAMETERS;
    consumer_thread at;
    e2m1_reader codes;
    scale_reader scales;
    scale_findings found;
    uint32_t exponent;                    /* of the tile's column whose number is this thread's in the warpgroup */
    gemm_finish finish;
    bool scaled;

    __device__ inline stored_slices(const consumer_thread &thread)
        : at(thread),
          codes(e2m1_reader_of(thread.shared + CONFIG::AT_CODES)), scales{ 0, { 0x3210, 0x3210 } }, finish{},
          scaled(false)
    {
    }

    /* The exponent is read while this tile's scales are: the next one's lies there as soon as all slices are
     * decoded. */
    __device__ inline void begin_tile(const PARAMETERS &p, const gemm_tile &tile, uint32_t n, int32_t slices, bool)
    {
        if (n == 0) load_scales<CONFIG>(p, at.shared, tile, n, slices * CONFIG::STEPS);
        mbarrier_wait_parity(full_barrier<typename CONFIG::scales_ring>(at.shared, 0), n % 2);
        const uint32_t flags = load_shared(at.shared + CONFIG::AT_FOUND + at.lane % CONFIG::SCALE_LOADERS * 4);
        const uint32_t warp_rows = at.warp * 16;
        set_scale_reader<CONFIG>(p, scale_rows_of<CONFIG>(p, tile, at.shared + CONFIG::AT_SCALES, (int32_t)warp_rows),
                                 scales);
        found = { __any_sync(0xffffffff, flags & 1) != 0, __any_sync(0xffffffff, flags & 2) != 0 };
        exponent = load_shared(at.shared + CONFIG::AT_EXPONENTS + threadIdx.x % CONFIG::COLUMNS * 4);
    }

    __device__ inline bool is_special() const { return found.special; }

    /* The codes of a step are read while those of the one before are decoded. */
    template <bool SPECIAL>
    __device__ inline void decode(uint32_t stage, int32_t slice, slice_operand<CONFIG> &operand) const
    {
        const step_scales<CODES> first = read_scales<CONFIG>(scales, slice * CONFIG::STEPS);
        const e2m1_rows c0 = read_rows<CONFIG>(codes, 0, stage), c1 = read_rows<CONFIG>(codes, 1, stage);
        decode_step<CODES>(codes, c0, halves_of<CODES, 0, SPECIAL>(first), operand[0]);
        const step_scales<CODES> second = read_scales<CONFIG>(scales, slice * CONFIG::STEPS + 2);
        const e2m1_rows c2 = read_rows<CONFIG>(codes, 2, stage);
        decode_step<CODES>(codes, c1, halves_of<CODES, 1, SPECIAL>(first), operand[1]);
        const e2m1_rows c3 = read_rows<CONFIG>(codes, 3, stage);
        decode_step<CODES>(codes, c2, halves_of<CODES, 0, SPECIAL>(second), operand[2]);
        decode_step<CODES>(codes, c3, halves_of<CODES, 1, SPECIAL>(second), operand[3]);
    }

    /* This warp has decoded its last slice of the tile. */
    __device__ inline void release_tile() const
    {
        release_stage<CONFIG>(empty_barrier<typename CONFIG::scales_ring>(at.shared, 0), at.lane == 0);
    }

    __device__ inline void before_last_slice(const PARAMETERS &, const gemm_tile &) {}

    /* Of the warpgroup that finishes the tile: others need not wait for its tables. */
    __device__ inline void after_first_slice(const PARAMETERS &p, const gemm_tile &tile)
    {
        griddepcontrol_wait();
        finish = gemm_finish_of(p);
        scaled = fill_all_tables<CONFIG>(p, finish, tile, at, found.exponents, exponent);
    }

    /* Before the tile is finished: others wait for the next one's scales. */
    __device__ inline void begin_next(const PARAMETERS &p, const gemm_tile &next, uint32_t n, int32_t slices) const
    {
        load_scales<CONFIG>(p, at.shared, next, n, slices * CONFIG::STEPS);
    }

    __device__ inline void end_tile(const PARAMETERS &p, const gemm_tile &tile,
                                    const transposed_sums<CONFIG> &sums) const
    {
        finish_stored_tile<CONFIG>(p, finish, tile, at, scaled, sums);
    }
};
