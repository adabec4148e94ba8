/* Two CTAs of a cluster with a part of K each: both have sums of all rows of A in the tile, and each finishes half of
 * these rows, with the sums that the other one gives it.  A warpgroup gives to the same warpgroup of the other CTA, a
 * thread to the same thread: st.async into where sums go on their way to D afterwards.
 *
 *     given          one thread once, with the bytes
 *     taken          each warp of the other CTA's warpgroup, behind the tile: what it was given may be overwritten */
#pragma once

#include "cuda/ptx/cluster_store.cuh"
#include "cuda/sm90/epilogue/mixed_input_epilogue.cuh"

/* Half of a tile's rows. */
template <class CONFIG> struct half_config : CONFIG {
    static constexpr int ROWS = CONFIG::ROWS / 2, PRODUCT_SUMS = ROWS / 2;
};

template <class CONFIG> __device__ static inline gemm_tile half_of_tile(gemm_tile tile, uint32_t half)
{
    tile.row += (int32_t)half * (CONFIG::ROWS / 2);
    tile.row_end = min(tile.row_end, tile.row + CONFIG::ROWS / 2);
    return tile;
}

template <class CONFIG> __device__ static inline void initialize_exchange(uint32_t shared)
{
    for (int group = 0; group < CONFIG::GROUPS; group++) {
        mbarrier_init(shared + CONFIG::AT_GIVEN + group * 8, 1);
        mbarrier_init(shared + CONFIG::AT_TAKEN + group * 8, 4);
    }
}

template <class CONFIG> __device__ static inline uint32_t given_barrier(const consumer_thread &at)
{
    return at.shared + CONFIG::AT_GIVEN + at.group * 8;
}
template <class CONFIG> __device__ static inline uint32_t taken_barrier(const consumer_thread &at)
{
    return at.shared + CONFIG::AT_TAKEN + at.group * 8;
}

/* Of the next tile. */
template <class CONFIG> __device__ static inline void expect_sums(const consumer_thread &at)
{
    if (at.warp == 0 && at.lane == 0)
        mbarrier_arrive_expect_tx(given_barrier<CONFIG>(at), 128 * CONFIG::PRODUCT_SUMS / 2 * 4);
}

/* PART: this CTA's, of K.  Which sums are whose is written down for each part: wgmma's registers are not chosen
 * from. */
template <class CONFIG, int PART>
__device__ static inline void give_and_add(uint32_t memory, uint32_t given, uint32_t parity,
                                           const float (&sums)[CONFIG::PRODUCT_SUMS],
                                           float (&finished)[CONFIG::PRODUCT_SUMS / 2])
{
    constexpr int HALF = CONFIG::PRODUCT_SUMS / 2, OWN = PART * HALF, OTHERS = HALF - OWN;
    const uint32_t memory_there = mapa_shared_cluster(memory, 1 - PART),
                   given_there = mapa_shared_cluster(given, 1 - PART);
#pragma unroll
    for (int i = 0; i < HALF; i += 4) {
        const float v[4] = { sums[OTHERS + i], sums[OTHERS + i + 1], sums[OTHERS + i + 2], sums[OTHERS + i + 3] };
        st_async_v4(memory_there + i / 4 * 2048, v, given_there);
    }
    while (!mbarrier_try_wait_parity_acquire_cluster(given, parity)) {}
#pragma unroll
    for (int i = 0; i < HALF; i += 4) {
        const uint4 v = load_shared_v4(memory + i / 4 * 2048);
        finished[i] = sums[OWN + i] + __uint_as_float(v.x), finished[i + 1] = sums[OWN + i + 1] + __uint_as_float(v.y);
        finished[i + 2] = sums[OWN + i + 2] + __uint_as_float(v.z);
        finished[i + 3] = sums[OWN + i + 3] + __uint_as_float(v.w);
    }
}

/* Of the CTA's tile number n: sums of all rows, of this part of K; finished: those of its half of the rows, of all
 * of K. */
template <class CONFIG>
__device__ static inline void exchange_sums(const consumer_thread &at, uint32_t n,
                                            const float (&sums)[CONFIG::PRODUCT_SUMS],
                                            float (&finished)[CONFIG::PRODUCT_SUMS / 2])
{
    const uint32_t given = given_barrier<CONFIG>(at), memory = at.shared + CONFIG::AT_CHUNKS
                                                               + at.group * CONFIG::CHUNK_BYTES
                                                               + (at.warp * 32 + at.lane) * 16;
    if (n > 0)
        while (!mbarrier_try_wait_parity_acquire_cluster(taken_barrier<CONFIG>(at), (n - 1) & 1)) {}
    if (cluster_ctarank() == 0) give_and_add<CONFIG, 0>(memory, given, n & 1, sums, finished);
    else give_and_add<CONFIG, 1>(memory, given, n & 1, sums, finished);
    barrier_sync(1 + at.group, 128);      /* all are read: the chunks lie there */
}

/* Behind the tile. */
template <class CONFIG> __device__ static inline void release_sums(const consumer_thread &at)
{
    __syncwarp();
    if (at.lane == 0)
        mbarrier_arrive_release_cluster(mapa_shared_cluster(taken_barrier<CONFIG>(at), cluster_ctarank() ^ 1));
}
