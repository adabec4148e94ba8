/* K-interleaved schedule: each warpgroup has every GROUPS-th K slice of the same tile, 64 rows of B and the rows of A.
 *
 *     warpgroup 0   decode slice 0 | multiply 0 | decode slice 3           | multiply 3 | ...
 *     warpgroup 1   decode slice 1              | multiply 1 | decode slice 4           | multiply 4 | ...
 *     warpgroup 2   decode slice 2                           | multiply 2 | decode slice 5           | ...
 *
 * The sums go on from one warpgroup to the next by way of shared memory: K stays one chain of sums.  Each warp has its
 * own part of them, and waits for no other warp than the one that had this part before it.  The warpgroup with the
 * tile's last slice finishes and stores it, while the others go on with the next tile.
 *
 * The source of weights, stored_slices or prepacked_slices, has these functions:
 *
 *     begin_tile           before the warpgroup's first slice of a tile: what must be known of its weights
 *     decode               a slice into registers
 *     release_tile         behind the warp's last slice of the tile
 *     before_last_slice, after_first_slice
 *                          of the warpgroup that finishes the tile: they read what that takes, behind products
 *     begin_next           before the tile is finished: what others need for the next one
 *     end_tile             finishes and stores the tile */
#pragma once

#include "cuda/ptx/named_barriers.cuh"
#include "cuda/sm90/pipeline/mixed_input_producer.cuh"
#include "mixed_input_multiply.cuh"
#include "prepacked_slices.cuh"
#include "stored_slices.cuh"

/* Where a warpgroup is in both rings. */
template <class CONFIG> struct slice_place {
    gemm_ring<CONFIG> ring;
    gemm_ring<typename CONFIG::codes_ring> codes_ring;
};

/* Where a slice lies in its tile, and among all those of the CTA. */
struct slice_order { bool begins_tile, ends_tile, first, last, begins_part; };

/* Sums ------------------------------------------------------------------------------------------------------------- */

/* Each thread has 16 bytes beside those of its neighbours. */
template <class CONFIG> __device__ static inline uint32_t place_of_sums(const consumer_thread &at)
{
    return at.shared + CONFIG::AT_SUMS + (at.warp * 32 + at.lane) * 16;
}

/* The barrier at which a warp waits for the one that has the slice before: 64 threads come to it. */
template <class CONFIG> __device__ static inline uint32_t barrier_of_group(const consumer_thread &at, uint32_t group)
{
    return 1 + CONFIG::GROUPS + group * 4 + at.warp;
}

/* K in two parts: the sums of the first one, this thread's, which the second one begins without. */
template <class CONFIG> __device__ static inline uint32_t place_of_kept(const consumer_thread &at)
{
    return at.shared + CONFIG::AT_KEPT + (at.warp * 32 + at.lane) * 16;
}

template <class CONFIG>
__device__ static inline void keep_first_part(const consumer_thread &at, tile_sums<CONFIG> &sums)
{
#pragma unroll
    for (int i = 0; i < CONFIG::PRODUCT_SUMS; i += 4) {
        store_shared_v4(place_of_kept<CONFIG>(at) + i / 4 * 2048,
                        make_uint4(__float_as_uint(sums[i]), __float_as_uint(sums[i + 1]), __float_as_uint(sums[i + 2]),
                                   __float_as_uint(sums[i + 3])));
        sums[i] = 0, sums[i + 1] = 0, sums[i + 2] = 0, sums[i + 3] = 0;
    }
}

template <class CONFIG>
__device__ static inline void add_first_part(const consumer_thread &at, tile_sums<CONFIG> &sums)
{
#pragma unroll
    for (int i = 0; i < CONFIG::PRODUCT_SUMS; i += 4) {
        const uint4 v = load_shared_v4(place_of_kept<CONFIG>(at) + i / 4 * 2048);
        sums[i] += __uint_as_float(v.x), sums[i + 1] += __uint_as_float(v.y), sums[i + 2] += __uint_as_float(v.z),
            sums[i + 3] += __uint_as_float(v.w);
    }
}

/* The CTA's first slice waits for nobody. */
template <class CONFIG>
__device__ static inline void take_sums(const consumer_thread &at, const slice_order &order, tile_sums<CONFIG> &sums)
{
    if (!order.first) barrier_sync(barrier_of_group<CONFIG>(at, at.group), 64);
#pragma unroll
    for (int i = 0; i < CONFIG::PRODUCT_SUMS; i += 4) {
        const uint4 v =
            order.begins_tile ? make_uint4(0, 0, 0, 0) : load_shared_v4(place_of_sums<CONFIG>(at) + i / 4 * 2048);
        sums[i] = __uint_as_float(v.x), sums[i + 1] = __uint_as_float(v.y), sums[i + 2] = __uint_as_float(v.z),
        sums[i + 3] = __uint_as_float(v.w);
    }
}

/* Those of a tile's last slice stay; for the CTA's last one nobody waits. */
template <class CONFIG>
__device__ static inline void give_sums(const consumer_thread &at, const slice_order &order,
                                        const tile_sums<CONFIG> &sums)
{
#pragma unroll
    for (int i = 0; i < CONFIG::PRODUCT_SUMS && !order.ends_tile; i += 4)
        store_shared_v4(place_of_sums<CONFIG>(at) + i / 4 * 2048,
                        make_uint4(__float_as_uint(sums[i]), __float_as_uint(sums[i + 1]), __float_as_uint(sums[i + 2]),
                                   __float_as_uint(sums[i + 3])));
    if (!order.last)
        barrier_arrive(barrier_of_group<CONFIG>(at, at.group + 1 == CONFIG::GROUPS ? 0 : at.group + 1), 64);
}

/* Slices and tiles ------------------------------------------------------------------------------------------------- */

/* Of the ring's rows of A the low half of a descriptor.  The result of redux is in a uniform register, where wgmma
 * wants it: 16 descriptors out of others take two instructions each, while everybody waits. */
template <class CONFIG> __device__ static inline uint32_t rows_of_slice(uint32_t shared, uint32_t stage)
{
    const uint32_t first = (uint32_t)wgmma_descriptor(shared + CONFIG::AT_A);
    return __reduce_or_sync(0xffffffff, first + stage * (CONFIG::STEPS * CONFIG::A_BYTES / 16));
}

template <class CONFIG, bool SPECIAL, class SLICES>
__device__ static inline void take_slice(const SLICES &slices, slice_place<CONFIG> &place, int32_t slice, int32_t count,
                                         const slice_order &order, tile_sums<CONFIG> &sums)
{
    using CODES_RING = typename CONFIG::codes_ring;
    const consumer_thread &at = slices.at;
    slice_operand<CONFIG> operand;
    mbarrier_wait_parity(full_barrier<CODES_RING>(at.shared, place.codes_ring.stage), place.codes_ring.parity);
    slices.template decode<SPECIAL>(place.codes_ring.stage, slice, operand);
    release_read_stage<CONFIG>(empty_barrier<CODES_RING>(at.shared, place.codes_ring.stage), at.lane == 0);
    if (slice + CONFIG::GROUPS >= count) slices.release_tile();
    const uint32_t a = rows_of_slice<CONFIG>(at.shared, place.ring.stage);
    mbarrier_wait_parity(full_barrier<CONFIG>(at.shared, place.ring.stage), place.ring.parity);
    take_sums<CONFIG>(at, order, sums);
    if constexpr (CONFIG::PARTS > 1)
        if (order.begins_part) keep_first_part<CONFIG>(at, sums);
    multiply_slice<CONFIG>(a, operand, sums);
    if constexpr (CONFIG::PARTS > 1)
        if (order.ends_tile) add_first_part<CONFIG>(at, sums);
    give_sums<CONFIG>(at, order, sums);
    release_stage<CONFIG>(empty_barrier<CONFIG>(at.shared, place.ring.stage), at.lane == 0);
    place.codes_ring.advance(CONFIG::GROUPS);
    place.ring.advance(CONFIG::GROUPS);
}

template <class CONFIG, class SLICES>
__device__ static inline void consume_slices(const bsmi_mixed_input_parameters &p, SLICES slices)
{
    transposed_sums<CONFIG> sums;
    slice_place<CONFIG> place = { { slices.at.group, 0 }, { slices.at.group, 0 } };
    const int64_t tiles = gemm_tiles(p);
    const int32_t count = slices_of<CONFIG>(p);
    int32_t slice = (int32_t)slices.at.group;
    int64_t number = blockIdx.x;
    if (number >= tiles) return;
    gemm_tile next = mixed_input_tile<CONFIG, true>(p, number);
    for (uint32_t n = 0; number < tiles; n++, slice -= count) {
        const gemm_tile tile = next;
        const bool finishes = (count - 1 - slice) % CONFIG::GROUPS == 0, is_last = number + gridDim.x >= tiles;
        slices.begin_tile(p, tile, n, count, finishes);
#pragma unroll 1
        for (bool first = true; slice < count; slice += CONFIG::GROUPS, first = false) {
            const bool begins = slice == 0, ends = slice + 1 == count;
            const slice_order order = { begins, ends, begins && n == 0, ends && is_last,
                                        CONFIG::PARTS > 1 && slice == BSMI_FIRST_PART_SLICES(count) };
            if (ends) slices.before_last_slice(p, tile);
            if (slices.is_special()) take_slice<CONFIG, true>(slices, place, slice, count, order, sums[0]);
            else take_slice<CONFIG, false>(slices, place, slice, count, order, sums[0]);
            if (first && finishes) slices.after_first_slice(p, tile);
        }
        number += gridDim.x;
        if (number < tiles) {
            next = mixed_input_tile<CONFIG, true>(p, number);
            slices.begin_next(p, next, n + 1, count);
        }
        if (finishes) slices.end_tile(p, tile, sums);
    }
}

template <class CONFIG>
__device__ static inline void consume_interleaved(const bsmi_mixed_input_parameters &p, uint32_t shared)
{
    const consumer_thread at = consumer_thread_of(shared);
    if constexpr (CONFIG::PREPACKED) consume_slices<CONFIG>(p, prepacked_slices<CONFIG>(at));
    else consume_slices<CONFIG>(p, stored_slices<CONFIG>(at));
}
