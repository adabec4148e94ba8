/* Sums of parts of K, brought together: of the warpgroups of a CTA by one of them, then of two CTAs by one.  Each warp has
 * its own part of the sums, and waits for no other warp than those that have the same part. */
#pragma once

#include "split_config.cuh"

template <class CONFIG> using split_sums = float[CONFIG::PRODUCT_SUMS];

/* Whose: warp of its warpgroup.  Each thread has 16 bytes beside those of its neighbours. */
struct split_lane {
    uint32_t shared, warp, lane;
};

template <class CONFIG> __device__ static inline uint32_t place_of_sums(const split_lane &at, uint32_t from)
{
    return from + (at.warp * 32 + at.lane) * 16;
}

template <class CONFIG> __device__ static inline void add_sums(const split_lane &at, uint32_t from, split_sums<CONFIG> &sums)
{
#pragma unroll
    for (int i = 0; i < CONFIG::PRODUCT_SUMS; i += 4) {
        const uint4 v = load_shared_v4(place_of_sums<CONFIG>(at, from) + i / 4 * 2048);
        sums[i] += __uint_as_float(v.x), sums[i + 1] += __uint_as_float(v.y), sums[i + 2] += __uint_as_float(v.z),
            sums[i + 3] += __uint_as_float(v.w);
    }
}

__device__ static inline uint4 four_of(const float *sums)
{
    return make_uint4(__float_as_uint(sums[0]), __float_as_uint(sums[1]), __float_as_uint(sums[2]), __float_as_uint(sums[3]));
}

/* Of the CTA's n-th tile.  To the warpgroup that adds; `slot`: how many other warpgroups' are added before. */
template <class CONFIG>
__device__ static inline void give_sums(const split_lane &at, uint32_t n, uint32_t slot, const split_sums<CONFIG> &sums)
{
    mbarrier_wait_parity(at.shared + CONFIG::AT_GIVEN_EMPTY + at.warp * 8, n % 2 ^ 1);
#pragma unroll
    for (int i = 0; i < CONFIG::PRODUCT_SUMS; i += 4)
        store_shared_v4(place_of_sums<CONFIG>(at, at.shared + CONFIG::AT_GIVEN + slot * CONFIG::SUM_BYTES) + i / 4 * 2048,
                        four_of(sums + i));
    __syncwarp();
    if (at.lane == 0) mbarrier_arrive(at.shared + CONFIG::AT_GIVEN_FULL + at.warp * 8);
}

template <class CONFIG> __device__ static inline void take_given(const split_lane &at, uint32_t n, split_sums<CONFIG> &sums)
{
    mbarrier_wait_parity(at.shared + CONFIG::AT_GIVEN_FULL + at.warp * 8, n % 2);
#pragma unroll
    for (int slot = 0; slot < CONFIG::GROUPS - 1; slot++)
        add_sums<CONFIG>(at, at.shared + CONFIG::AT_GIVEN + slot * CONFIG::SUM_BYTES, sums);
    __syncwarp();
    if (at.lane == 0) mbarrier_arrive(at.shared + CONFIG::AT_GIVEN_EMPTY + at.warp * 8);
}

/* The CTAs of a cluster send each other the sums of every other tile. */
template <class CONFIG>
__device__ static inline void send_sums(const split_lane &at, uint32_t n, uint32_t to, const split_sums<CONFIG> &sums)
{
    const uint32_t full = mapa_shared_cluster(at.shared + CONFIG::AT_SENT_FULL + at.warp * 8, to);
    const uint32_t place = mapa_shared_cluster(place_of_sums<CONFIG>(at, at.shared + CONFIG::AT_SENT), to);
    mbarrier_wait_parity(at.shared + CONFIG::AT_SENT_EMPTY + at.warp * 8, n / 2 % 2 ^ 1);
#pragma unroll
    for (int i = 0; i < CONFIG::PRODUCT_SUMS; i += 4) st_async_v4(place + i / 4 * 2048, four_of(sums + i), full);
}

template <class CONFIG>
__device__ static inline void take_sent(const split_lane &at, uint32_t n, uint32_t from, split_sums<CONFIG> &sums)
{
    const uint32_t full = at.shared + CONFIG::AT_SENT_FULL + at.warp * 8, empty = at.shared + CONFIG::AT_SENT_EMPTY + at.warp * 8;
    if (at.lane == 0) mbarrier_arrive_expect_tx(full, CONFIG::SUM_BYTES / 4);
    mbarrier_wait_parity(full, n / 2 % 2);
    add_sums<CONFIG>(at, at.shared + CONFIG::AT_SENT, sums);
    __syncwarp();
    if (at.lane == 0) mbarrier_arrive_cluster(mapa_shared_cluster(empty, from));
}
