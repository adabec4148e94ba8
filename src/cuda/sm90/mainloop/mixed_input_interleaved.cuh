/* K-interleaved schedule: warpgroups have K slices of the same tile by turns, 64 rows of B and the rows of A.
 *
 *     warpgroup 0   decode slice 0 | multiply 0 | decode slice 3           | multiply 3 | ...
 *     warpgroup 1   decode slice 1              | multiply 1 | decode slice 4           | multiply 4 | ...
 *     warpgroup 2   decode slice 2                           | multiply 2 | decode slice 5           | ...
 *
 * The sums go on from one warpgroup to the next by way of shared memory: K stays one chain of sums.  Each warp has its own part of them, and
 * waits for no other warp than the one that had this part before it.  The warpgroup with the tile's last slice finishes and stores it, while
 * the others go on with the next tile. */
#pragma once

#include "cuda/ptx/named_barriers.cuh"
#include "cuda/sm90/epilogue/mixed_input_epilogue.cuh"
#include "cuda/sm90/operand/prepacked_registers.cuh"
#include "cuda/sm90/operand/tile_scales.cuh"
#include "cuda/sm90/pipeline/mixed_input_producer.cuh"
#include "mixed_input_multiply.cuh"

/* Where a warpgroup is. */
template <class CONFIG> struct slice_place {
    gemm_ring<CONFIG> ring;
    gemm_ring<typename CONFIG::codes_ring> codes_ring;
    uint32_t shared, group, warp, lane;   /* warp: of the warpgroup */
};

/* Numbers of threads come by way of shfl, so that ptxas does not read special registers again wherever they are wanted. */
template <class CONFIG> __device__ static inline slice_place<CONFIG> slice_place_of(uint32_t shared)
{
    const uint32_t lane = __shfl_sync(0xffffffff, threadIdx.x % 32, threadIdx.x % 32), number = __shfl_sync(0xffffffff, threadIdx.x / 32, 0);
    const uint32_t group = number / 4;
    return { { group, 0 }, { group, 0 }, shared, group, number % 4, lane };
}

/* Where a slice lies in its tile, and among all those of the CTA. */
struct slice_order { bool begins_tile, ends_tile, first, last; };

/* Sums -------------------------------------------------------------------------------------------------------------------------- */

/* Each thread has 16 bytes beside those of its neighbours. */
template <class CONFIG> __device__ static inline uint32_t place_of_sums(const slice_place<CONFIG> &at)
{
    return at.shared + CONFIG::AT_SUMS + (at.warp * 32 + at.lane) * 16;
}

/* The barrier at which a warp waits for the one that has the slice before: 64 threads come to it. */
template <class CONFIG> __device__ static inline uint32_t barrier_of_group(const slice_place<CONFIG> &at, uint32_t group)
{
    return 1 + CONFIG::GROUPS + group * 4 + at.warp;
}

/* The CTA's first slice waits for nobody. */
template <class CONFIG>
__device__ static inline void take_sums(const slice_place<CONFIG> &at, const slice_order &order, tile_sums<CONFIG> &sums)
{
    if (!order.first) barrier_sync(barrier_of_group<CONFIG>(at, at.group), 64);
#pragma unroll
    for (int i = 0; i < CONFIG::PRODUCT_SUMS; i += 4) {
        const uint4 v = order.begins_tile ? make_uint4(0, 0, 0, 0) : load_shared_v4(place_of_sums<CONFIG>(at) + i / 4 * 2048);
        sums[i] = __uint_as_float(v.x), sums[i + 1] = __uint_as_float(v.y), sums[i + 2] = __uint_as_float(v.z),
        sums[i + 3] = __uint_as_float(v.w);
    }
}

/* Those of a tile's last slice stay; for the CTA's last one nobody waits. */
template <class CONFIG>
__device__ static inline void give_sums(const slice_place<CONFIG> &at, const slice_order &order, const tile_sums<CONFIG> &sums)
{
#pragma unroll
    for (int i = 0; i < CONFIG::PRODUCT_SUMS && !order.ends_tile; i += 4)
        store_shared_v4(place_of_sums<CONFIG>(at) + i / 4 * 2048,
                        make_uint4(__float_as_uint(sums[i]), __float_as_uint(sums[i + 1]), __float_as_uint(sums[i + 2]),
                                   __float_as_uint(sums[i + 3])));
    if (!order.last) barrier_arrive(barrier_of_group<CONFIG>(at, at.group + 1 == CONFIG::GROUPS ? 0 : at.group + 1), 64);
}

/* Stored weights ---------------------------------------------------------------------------------------------------------------- */

/* What a warpgroup knows of stored weights of its tile. */
template <class CONFIG> struct stored_weights {
    e2m1_reader codes;
    scale_reader scales;
    scale_findings found;
    uint32_t exponent;                    /* of the tile's column whose number is this thread's in the warpgroup */
    gemm_finish finish;
    bool scaled;
};

template <class CONFIG> __device__ static inline stored_weights<CONFIG> stored_weights_of(const slice_place<CONFIG> &at)
{
    return { e2m1_reader_of(at.shared + CONFIG::AT_CODES), { 0, { 0x3210, 0x3210 } }, {}, 0, {}, false };
}

/* Scales of this CTA's n-th tile, once nobody reads those of the one before. */
template <class CONFIG>
__device__ static inline void load_scales(const bsmi_mixed_input_parameters &p, uint32_t shared, const gemm_tile &tile, uint32_t n, int32_t slices)
{
    using RING = typename CONFIG::scales_ring;
    const uint32_t warp = threadIdx.x / 32;
    if (warp >= CONFIG::SCALE_LOADERS) return;
    const scale_rows rows = own_scale_rows<CONFIG>(p, tile, shared);
    mbarrier_wait_parity(empty_barrier<RING>(shared, 0), n % 2 ^ 1);
    begin_scales<CONFIG>(p, tile, rows);
    const uint32_t exponents = shared + CONFIG::AT_EXPONENTS + warp * CONFIG::WARP_ROWS * 4;
    const scale_findings found = end_scales<CONFIG>(p, tile, rows, exponents, slices * CONFIG::STEPS);
    if (threadIdx.x % 32 == 0) store_shared(shared + CONFIG::AT_FOUND + warp * 4, (found.special ? 1 : 0) | (found.exponents ? 2 : 0));
    __syncwarp();
    if (threadIdx.x % 32 == 0) mbarrier_arrive(full_barrier<RING>(shared, 0));
}

/* What all warps have found.  The exponent is read while this tile's scales are: the next one's lies there as soon as all are decoded. */
template <class CONFIG>
__device__ static inline void begin_weights(const bsmi_mixed_input_parameters &p, const slice_place<CONFIG> &at, const gemm_tile &tile, uint32_t n,
                                            int32_t slices, bool, stored_weights<CONFIG> &weights)
{
    if (n == 0) load_scales<CONFIG>(p, at.shared, tile, n, slices);
    mbarrier_wait_parity(full_barrier<typename CONFIG::scales_ring>(at.shared, 0), n % 2);
    const uint32_t found = load_shared(at.shared + CONFIG::AT_FOUND + at.lane % CONFIG::SCALE_LOADERS * 4);
    const scale_rows rows = scale_rows_of<CONFIG>(p, tile, at.shared + CONFIG::AT_SCALES, (int32_t)at.warp * 16);
    set_scale_reader<CONFIG>(p, rows, weights.scales);
    weights.found = { __any_sync(0xffffffff, found & 1) != 0, __any_sync(0xffffffff, found & 2) != 0 };
    weights.exponent = load_shared(at.shared + CONFIG::AT_EXPONENTS + threadIdx.x % CONFIG::COLUMNS * 4);
}

/* The codes of a step are read while those of the one before are decoded. */
template <class CONFIG, bool SPECIAL>
__device__ static inline void decode_stored(const stored_weights<CONFIG> &w, uint32_t stage, int32_t slice, slice_operand<CONFIG> &operand)
{
    using CODES = typename CONFIG::CODES;
    const step_scales<CODES> first = read_scales<CONFIG>(w.scales, slice * CONFIG::STEPS);
    const e2m1_rows c0 = read_rows<CONFIG>(w.codes, 0, stage), c1 = read_rows<CONFIG>(w.codes, 1, stage);
    decode_step<CODES>(w.codes, c0, halves_of<CODES, 0, SPECIAL>(first), operand[0]);
    const step_scales<CODES> second = read_scales<CONFIG>(w.scales, slice * CONFIG::STEPS + 2);
    const e2m1_rows c2 = read_rows<CONFIG>(w.codes, 2, stage);
    decode_step<CODES>(w.codes, c1, halves_of<CODES, 1, SPECIAL>(first), operand[1]);
    const e2m1_rows c3 = read_rows<CONFIG>(w.codes, 3, stage);
    decode_step<CODES>(w.codes, c2, halves_of<CODES, 0, SPECIAL>(second), operand[2]);
    decode_step<CODES>(w.codes, c3, halves_of<CODES, 1, SPECIAL>(second), operand[3]);
}

template <bool SPECIAL, class CONFIG>
__device__ static inline void decode_slice(const stored_weights<CONFIG> &w, uint32_t stage, int32_t slice, slice_operand<CONFIG> &operand)
{
    decode_stored<CONFIG, SPECIAL>(w, stage, slice, operand);
}

template <class CONFIG> __device__ static inline bool is_special(const stored_weights<CONFIG> &w) { return w.found.special; }

/* Once a warp has decoded its last slice of the tile, the next tile's scales may come for its part. */
template <class CONFIG>
__device__ static inline void release_scales(const slice_place<CONFIG> &at, const stored_weights<CONFIG> &, bool last_of_warp)
{
    release_stage<CONFIG>(empty_barrier<typename CONFIG::scales_ring>(at.shared, 0), at.lane == 0 && last_of_warp);
}

template <class CONFIG>
__device__ static inline void before_last_slice(const bsmi_mixed_input_parameters &, const gemm_tile &, stored_weights<CONFIG> &) {}

/* Tables are filled behind the warpgroup's first slice, so that nobody waits for it. */
template <class CONFIG>
__device__ static inline void after_first_slice(const bsmi_mixed_input_parameters &p, const slice_place<CONFIG> &at, const gemm_tile &tile,
                                                stored_weights<CONFIG> &w)
{
    griddepcontrol_wait();
    w.finish = gemm_finish_of(p);
    w.scaled = fill_all_tables<CONFIG>(p, w.finish, tile, at.shared, at.group, w.found.exponents, w.exponent);
}

/* Before the warpgroup finishes its tile: the others wait for these scales. */
template <class CONFIG>
__device__ static inline void load_next(const bsmi_mixed_input_parameters &p, const slice_place<CONFIG> &at, const gemm_tile &tile, uint32_t n,
                                        int32_t slices, const stored_weights<CONFIG> &)
{
    load_scales<CONFIG>(p, at.shared, tile, n, slices);
}

template <class CONFIG>
__device__ static inline void finish_tile(const bsmi_mixed_input_parameters &p, const gemm_tile &tile,
                                          const slice_place<CONFIG> &at, const stored_weights<CONFIG> &w, const decoded_sums<CONFIG> &sums)
{
    finish_stored_tile<CONFIG>(p, w.finish, tile, at.shared, at.group, w.scaled, sums);
}

/* Prepacked weights ------------------------------------------------------------------------------------------------------------- */

template <class CONFIG> struct prepacked_weights {
    uint32_t codes, scales;               /* addresses of this thread's in stage 0 */
    prepacked_finish finish;
};

template <class CONFIG> __device__ static inline prepacked_weights<CONFIG> prepacked_weights_of(const slice_place<CONFIG> &at)
{
    constexpr uint32_t OF_TWO_ROWS = 2 * BSMI_PREPACKED_COLUMNS / CONFIG::BLOCK;
    const uint32_t first = at.shared + CONFIG::AT_CODES;
    return { first + (at.warp * 32 + at.lane) * 16, first + BSMI_PREPACKED_CODE_BYTES + (at.warp * 8 + at.lane / 4) * OF_TWO_ROWS, {} };
}

template <class CONFIG>
__device__ static inline void begin_weights(const bsmi_mixed_input_parameters &p, const slice_place<CONFIG> &at, const gemm_tile &tile, uint32_t,
                                            int32_t, bool finishes, prepacked_weights<CONFIG> &weights)
{
    if (finishes) weights.finish = begin_prepacked_finish<CONFIG>(p, tile, at.shared, at.group);
}

template <bool SPECIAL, class CONFIG>
__device__ static inline void decode_slice(const prepacked_weights<CONFIG> &w, uint32_t stage, int32_t, slice_operand<CONFIG> &operand)
{
    using CODES = typename CONFIG::CODES;
    const uint32_t of_stage = stage * CONFIG::CODE_BYTES;
    const prepacked_scales<CODES> scales = read_prepacked_scales<CODES>(w.scales + of_stage);
    uint4 codes[CONFIG::STEPS];
#pragma unroll
    for (int step = 0; step < CONFIG::STEPS; step++) codes[step] = load_shared_v4(w.codes + of_stage + step * 2048);
    if (are_large(scales)) decode_prepacked_steps<CODES, PREPACKED_LARGE>(codes, scales, operand);
    else decode_prepacked_steps<CODES, PREPACKED_SMALL>(codes, scales, operand);
}

template <class CONFIG> __device__ static inline bool is_special(const prepacked_weights<CONFIG> &) { return false; }

template <class CONFIG>
__device__ static inline void release_scales(const slice_place<CONFIG> &, const prepacked_weights<CONFIG> &, bool) {}

template <class CONFIG>
__device__ static inline void before_last_slice(const bsmi_mixed_input_parameters &p, const gemm_tile &tile, prepacked_weights<CONFIG> &w)
{
    read_row_exponents<CONFIG>(p, tile, w.finish);
}

template <class CONFIG>
__device__ static inline void after_first_slice(const bsmi_mixed_input_parameters &, const slice_place<CONFIG> &, const gemm_tile &,
                                                prepacked_weights<CONFIG> &) {}

template <class CONFIG>
__device__ static inline void load_next(const bsmi_mixed_input_parameters &, const slice_place<CONFIG> &, const gemm_tile &, uint32_t, int32_t,
                                        const prepacked_weights<CONFIG> &) {}

template <class CONFIG>
__device__ static inline void finish_tile(const bsmi_mixed_input_parameters &p, const gemm_tile &tile,
                                          const slice_place<CONFIG> &at, const prepacked_weights<CONFIG> &w, const decoded_sums<CONFIG> &sums)
{
    finish_prepacked_tile<CONFIG>(p, w.finish, tile, at.shared, at.group, sums);
}

/* Slices and tiles -------------------------------------------------------------------------------------------------------------- */

/* Of the ring's rows of A the low half of a descriptor.  The result of redux is in a uniform register, where wgmma wants it: 16 descriptors out of
 * others take two instructions each, while everybody waits. */
template <class CONFIG> __device__ static inline uint32_t rows_of_slice(const slice_place<CONFIG> &at)
{
    const uint32_t first = (uint32_t)wgmma_descriptor(at.shared + CONFIG::AT_A);
    return __reduce_or_sync(0xffffffff, first + at.ring.stage * (CONFIG::STEPS * CONFIG::A_BYTES / 16));
}

template <class CONFIG, bool SPECIAL, class WEIGHTS>
__device__ static inline void take_slice(slice_place<CONFIG> &at, const WEIGHTS &weights, int32_t slice, int32_t slices,
                                         const slice_order &order, tile_sums<CONFIG> &sums)
{
    using CODES_RING = typename CONFIG::codes_ring;
    slice_operand<CONFIG> operand;
    mbarrier_wait_parity(full_barrier<CODES_RING>(at.shared, at.codes_ring.stage), at.codes_ring.parity);
    decode_slice<SPECIAL>(weights, at.codes_ring.stage, slice, operand);
    release_read_stage<CONFIG>(empty_barrier<CODES_RING>(at.shared, at.codes_ring.stage), at.lane == 0);
    release_scales<CONFIG>(at, weights, slice + CONFIG::GROUPS >= slices);
    const uint32_t a = rows_of_slice<CONFIG>(at);
    mbarrier_wait_parity(full_barrier<CONFIG>(at.shared, at.ring.stage), at.ring.parity);
    take_sums<CONFIG>(at, order, sums);
    multiply_slice<CONFIG>(a, operand, sums);
    give_sums<CONFIG>(at, order, sums);
    release_stage<CONFIG>(empty_barrier<CONFIG>(at.shared, at.ring.stage), at.lane == 0);
    at.codes_ring.advance(CONFIG::GROUPS);
    at.ring.advance(CONFIG::GROUPS);
}

template <class CONFIG, class WEIGHTS>
__device__ static inline void consume_slices(const bsmi_mixed_input_parameters &p, slice_place<CONFIG> at, WEIGHTS weights)
{
    decoded_sums<CONFIG> sums;
    const int64_t tiles = gemm_tiles(p);
    const int32_t slices = slices_of<CONFIG>(p);
    int32_t slice = (int32_t)at.group;
    int64_t number = blockIdx.x;
    if (number >= tiles) return;
    gemm_tile next = mixed_input_tile<CONFIG>(p, number);
    for (uint32_t n = 0; number < tiles; n++, slice -= slices) {
        const gemm_tile tile = next;
        const bool finishes = (slices - 1 - slice) % CONFIG::GROUPS == 0, is_last = number + gridDim.x >= tiles;
        begin_weights<CONFIG>(p, at, tile, n, slices, finishes, weights);
#pragma unroll 1
        for (bool first = true; slice < slices; slice += CONFIG::GROUPS, first = false) {
            const bool begins = slice == 0, ends = slice + 1 == slices;
            if (ends) before_last_slice<CONFIG>(p, tile, weights);
            const slice_order order = { begins, ends, begins && n == 0, ends && is_last };
            if (is_special(weights)) take_slice<CONFIG, true>(at, weights, slice, slices, order, sums[0]);
            else take_slice<CONFIG, false>(at, weights, slice, slices, order, sums[0]);
            if (first && finishes) after_first_slice<CONFIG>(p, at, tile, weights);
        }
        number += gridDim.x;
        if (number < tiles) {
            next = mixed_input_tile<CONFIG>(p, number);
            load_next<CONFIG>(p, at, next, n + 1, slices, weights);
        }
        if (finishes) finish_tile<CONFIG>(p, tile, at, weights, sums);
    }
}

template <class CONFIG>
__device__ static inline void consume_interleaved(const bsmi_mixed_input_parameters &p, uint32_t shared)
{
    const slice_place<CONFIG> at = slice_place_of<CONFIG>(shared);
    if constexpr (CONFIG::PREPACKED) consume_slices<CONFIG>(p, at, prepacked_weights_of<CONFIG>(at));
    else consume_slices<CONFIG>(p, at, stored_weights_of<CONFIG>(at));
}
