/* D = finish(A B^T) on Hopper where B is block-scaled and A has so few rows that all of them make one column of tiles: the kernel decodes B
 * itself while it multiplies, and no other kernel need look at B.
 *
 * A cluster has CTAs along M, with the same rows of B, and one tile each.  Roles:
 *
 *   warpgroup 0       one thread loads rows of A, 64 columns a stage, another one rows of B, which it waits for; a third one tells the
 *                     cluster of what the CTA has decoded
 *   GROUPS            multiply, finish and store 64 rows of the tile each, as in gemm.cuh
 *   12 warps          make bf16 rows of the codes of the CTA's share of B's rows, in the workspace; chunk by chunk along K, so that the first
 *                     steps are multiplied while the last are decoded
 *
 * From the workspace all CTAs of the cluster load them by way of the L2 cache.  What decoders write to shared memory instead stands in the way
 * of wgmma, which reads it all the time.  The numbers that are multiplied, and the order of sums, are those of the kernels that read decoded
 * rows: so are the bits of D.
 *
 * Behind another kernel of the same call, B is read before that one has ended: it has waited for all in front of the call before it let this one
 * begin, and does not write B.
 *
 * No CTA ends before all others of its cluster have told it of the last chunk, and nothing is sent to it behind that. */
#pragma once

#include "beside_consumer.cuh"
#include "cuda/sm90/pipeline/gemm_producer.cuh"

/* full: an arrival of either producer, and its bytes. */
template <class CONFIG> __device__ static inline void initialize_beside_barriers(uint32_t shared)
{
    for (uint32_t stage = 0; stage < CONFIG::STAGES; stage++) {
        mbarrier_init(full_barrier<CONFIG>(shared, stage), 2);
        mbarrier_init(empty_barrier<CONFIG>(shared, stage), CONFIG::GROUPS);
    }
    for (uint32_t chunk = 0; chunk < CONFIG::CHUNKS; chunk++) {
        mbarrier_init(decoded_barrier<CONFIG>(shared, chunk), CONFIG::CTAS);
        mbarrier_init(written_barrier<CONFIG>(shared, chunk), CONFIG::DECODERS);
    }
    fence_mbarrier_init();
}

/* One operand's part of each stage. */
template <class CONFIG, bool IS_B>
__device__ static inline void produce_beside(const bsmi_gemm_parameters &p, uint32_t shared, const gemm_tile &tile)
{
    constexpr int BYTES = IS_B ? CONFIG::B_BYTES : CONFIG::A_BYTES;
    gemm_ring<CONFIG> ring = { 0, 1 };    /* the phase before the first counts as complete: every stage begins empty */
    for (int32_t step = 0; step < p.segments[0].blocks; step++, ring.next()) {
        const uint32_t full = full_barrier<CONFIG>(shared, ring.stage);
        if (IS_B && step % CONFIG::CHUNK_STEPS == 0)
            while (!mbarrier_try_wait_parity_acquire_cluster(decoded_barrier<CONFIG>(shared, step / CONFIG::CHUNK_STEPS), 0)) {}
        mbarrier_wait_parity(empty_barrier<CONFIG>(shared, ring.stage), ring.parity);
        mbarrier_arrive_expect_tx(full, BYTES);
        tensor_load(shared + (IS_B ? CONFIG::AT_B : CONFIG::AT_A) + ring.stage * BYTES, IS_B ? &p.b : &p.a, step * BSMI_K_STEP,
                    IS_B ? tile.column : tile.row, 0, full);
    }
}

template <class CONFIG> __device__ static inline void beside_gemm(const bsmi_gemm_parameters &p)
{
    extern __shared__ __align__(1024) unsigned char memory[];
    const uint32_t shared = __shfl_sync(0xffffffff, shared_address(memory), 0), warp = warp_of_cta(), group = warp / 4, rank = cluster_ctarank();
    const uint32_t decoder = warp - 4 * (1 + CONFIG::GROUPS);
    gemm_tile tile = gemm_tile_at(p, blockIdx.x / CONFIG::CTAS, CONFIG::ROWS * CONFIG::CTAS, CONFIG::COLUMNS);
    tile.row += (int32_t)rank * CONFIG::ROWS;
    tile = gemm_tile_inside(p, tile);
    if (threadIdx.x == 0) {
        prefetch_tensormap(&p.a);
        prefetch_tensormap(&p.b);
        initialize_beside_barriers<CONFIG>(shared);
    }
    if (threadIdx.x < CONFIG::COLUMNS && threadIdx.x / CONFIG::SHARE != rank)       /* those of its share the decoders bring */
        store_shared(shared + CONFIG::AT_EXPONENTS + 4 * threadIdx.x, 0);
    __syncwarp();
    barrier_cluster_arrive();
    if (p.first_of_call) griddepcontrol_wait();
    if (group <= CONFIG::GROUPS) barrier_cluster_wait();      /* the others have something to do before */
    if (group == 0) {
        setmaxnreg_dec<CONFIG::PRODUCER>();
        if (warp == 0 && elect_sync()) {
            griddepcontrol_wait();        /* rows may be decoded by the kernel in front */
            produce_beside<CONFIG, false>(p, shared, tile);
        } else if (warp == 1 && elect_sync()) {
            produce_beside<CONFIG, true>(p, shared, tile);
            griddepcontrol_launch_dependents();
        } else if (warp == 2 && elect_sync()) {
            tell_of_chunks<CONFIG>(p, shared);
        }
    } else if (group <= CONFIG::GROUPS) {
        setmaxnreg_inc<CONFIG::CONSUMER>();
        consume_beside<CONFIG>(p, memory, shared, tile, group - 1);
    } else {
        setmaxnreg_dec<CONFIG::DECODER>();
        with_element<typename CONFIG::CODES>(p.code_element, [&](auto tag) {
            decode_share<CONFIG, decltype(tag)::ELEMENT>(p, shared, tile, rank, decoder);
        });
    }
}

#define BESIDE_KERNEL(codes, tile, rows, columns, groups, ctas, stages, d_box_bytes)                                     \
    extern "C" __global__ void __launch_bounds__(128 * (1 + groups) + 32 * BSMI_BESIDE_DECODERS, 1)                      \
        bsmi_gemm_##codes##_##tile(const __grid_constant__ bsmi_gemm_parameters p)                                       \
    {                                                                                                                    \
        beside_gemm<beside_config<codes_##codes, rows, columns, groups, ctas, stages, d_box_bytes>>(p);                  \
    }
