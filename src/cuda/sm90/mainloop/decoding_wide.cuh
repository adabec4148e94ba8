/* D = finish(A B^T) on Hopper where B is e2m1 and decoded by the warpgroups that multiply, in their registers.
 *
 * A persistent grid as in gemm.cuh, with two rings, and roles:
 *
 *   warpgroup 0       one thread loads rows of A, 64 columns a stage, another one codes and scales of B, 128 bytes of a row a stage
 *   warpgroups 1, 2   decode 64 rows of B each, multiply them with the rows of A, finish and store 64 columns of D
 *
 * As in decoding.cuh wgmma computes D^T = B A^T, but B's bf16 never lies in shared memory, whose data path limits the kernels there: wgmma
 * reads nothing but A's rows, and those for 128 columns of D.  While the products of one step are under way a warpgroup decodes the next one,
 * into other registers; the tensor cores have the other warpgroup's products when one waits.  The numbers that are multiplied, and the
 * order of sums, are those of the other kernels: so are the bits of D. */
#pragma once

#include "cuda/ptx/wgmma_fragments.cuh"
#include "cuda/sm90/epilogue/decoding_epilogue.cuh"
#include "cuda/sm90/operand/decoding_fragments.cuh"
#include "cuda/sm90/pipeline/decoding_producer.cuh"
#include "cuda/sm90/pipeline/persistent.cuh"

/* full: the producer's arrival and its bytes.  empty: each consumer warpgroup of each CTA of the cluster, all of which get this CTA's part
 * of A's rows.  Codes are read by all warps of the consumers. */
template <class CONFIG> __device__ static inline void initialize_wide_barriers(uint32_t shared)
{
    using RING = typename CONFIG::codes_ring;
    for (uint32_t stage = 0; stage < CONFIG::STAGES; stage++) {
        mbarrier_init(full_barrier<CONFIG>(shared, stage), 1);
        mbarrier_init(empty_barrier<CONFIG>(shared, stage), CONFIG::CLUSTER * CONFIG::GROUPS);
    }
    for (uint32_t stage = 0; stage < RING::STAGES; stage++) {
        mbarrier_init(full_barrier<RING>(shared, stage), 1);
        mbarrier_init(empty_barrier<RING>(shared, stage), 4 * CONFIG::GROUPS);
    }
    fence_mbarrier_init();
}

/* Where a consumer is in the ring of codes: at its next step. */
template <class CONFIG> struct codes_place {
    gemm_ring<typename CONFIG::codes_ring> ring;
    uint32_t number;                      /* of the step in its stage */
    int32_t segment, left;                /* steps of the segment that are left */
};

template <class CONFIG> __device__ static inline void begin_segment(const bsmi_gemm_parameters &p, codes_place<CONFIG> &place, int32_t segment)
{
    place.segment = segment, place.number = 0;
    place.left = segment < p.segment_count ? p.segments[segment].blocks : 0;
}

/* The codes of the next step.  The step that ends a segment may leave others of the stage unused. */
template <class CONFIG>
__device__ static inline fragment_codes take_fragment_codes(const bsmi_gemm_parameters &p, const fragment_reader &reader,
                                                            codes_place<CONFIG> &place, uint32_t shared)
{
    using RING = typename CONFIG::codes_ring;
    const uint32_t stage = place.ring.stage;
    if (place.number == 0) mbarrier_wait_parity(full_barrier<RING>(shared, stage), place.ring.parity);
    const fragment_codes codes = read_fragment_codes<CONFIG>(reader, shared, stage, place.number);
    place.number++, place.left--;
    if (place.number < CONFIG::CODE_STEPS && place.left > 0) return codes;
    fence_proxy_async_shared();           /* behind the reads of the stage, before the copy engine fills it again */
    __syncwarp();
    if (reader.tells) mbarrier_arrive(empty_barrier<RING>(shared, stage));
    place.ring.next();
    place.number = 0;
    if (place.left == 0) begin_segment<CONFIG>(p, place, place.segment + 1);
    return codes;
}

/* What a thread keeps from step to step. */
struct wide_operand {
    uint64_t a;                           /* descriptor of stage 0 */
    uint32_t full, empty;                 /* barriers of stage 0; the second one where this thread tells that a stage is read */
    bool tells;
};

template <class CONFIG> __device__ static inline wide_operand wide_operand_of(uint32_t shared)
{
    const uint32_t thread = __shfl_sync(0xffffffff, threadIdx.x % 128, threadIdx.x % 32), empty = shared + CONFIG::AT_EMPTY;
    return { wgmma_descriptor(shared + CONFIG::AT_A), shared + CONFIG::AT_FULL,
             CONFIG::CLUSTER == 1 ? empty : mapa_shared_cluster(empty, thread % CONFIG::CLUSTER), thread < CONFIG::CLUSTER };
}

/* The registers are read here, so that ptxas gives them to nothing else before the products that read them have been waited for: before CUDA
 * 13.3 it takes them for free once such a product has been issued (release notes of 13.3, ptxas). */
__device__ static inline void keep(uint32_t &kept, const fragments &f)
{
#pragma unroll
    for (int j = 0; j < 4; j++)
#pragma unroll
        for (int i = 0; i < 4; i += 2) asm volatile("lop3.b32 %0, %0, %1, %2, 0x96;" : "+r"(kept) : "r"(f.of[j][i]), "r"(f.of[j][i + 1]));
}

/* Where a consumer is at its next step. */
template <class CONFIG> struct wide_place {
    gemm_ring<CONFIG> ring;
    codes_place<CONFIG> codes;
    uint32_t before;                      /* the stage of the step before */
    uint32_t kept;                        /* of keep() */
};

template <class CONFIG> __device__ static inline void release_wide(const wide_operand &o, uint32_t stage)
{
    if (!o.tells) return;
    if (CONFIG::CLUSTER == 1) mbarrier_arrive(o.empty + stage * 8);
    else mbarrier_arrive_cluster(o.empty + stage * 8);
}

/* Step number `step`: its products are issued behind those of the step before, which are waited for then, and the next step is decoded into
 * the registers that they have read.  True if there is a next one. */
template <class CONFIG>
__device__ static inline bool step_fragments(const bsmi_gemm_parameters &p, decoded_sums<CONFIG> &sums, const wide_operand &o,
                                             const fragment_reader &reader, wide_place<CONFIG> &place, uint32_t shared, int32_t step,
                                             int32_t steps, const fragments &now, fragments &other)
{
    const uint32_t stage = place.ring.stage;
    const uint64_t a = o.a + stage * (CONFIG::A_BYTES / 16);
    mbarrier_wait_parity(o.full + stage * 8, place.ring.parity);
    wgmma_fence();
#pragma unroll
    for (int j = 0; j < 4; j++) wgmma_bf16_fragments<CONFIG::ROWS>::multiply(sums[0], now.of[j], a + 2 * j, step > 0 || j > 0);
    wgmma_commit_group();
    wgmma_wait_group<1>();
    keep(place.kept, other);
    if (step > 0) release_wide<CONFIG>(o, place.before);
    place.before = stage;
    place.ring.next();
    if (step + 1 == steps) return false;
    const fragment_codes codes = take_fragment_codes<CONFIG>(p, reader, place.codes, shared);
    decode_fragments<typename CONFIG::CODES>(codes, other.of);
    return true;
}

/* The sums of a tile, K ascending, 16 columns at a time, as sum_tile of shared_memory_consumer.cuh makes them. */
template <class CONFIG>
__device__ static inline void sum_fragments(const bsmi_gemm_parameters &p, decoded_sums<CONFIG> &sums, const wide_operand &o,
                                            const fragment_reader &reader, wide_place<CONFIG> &place, uint32_t shared, int32_t steps)
{
    fragments even, odd = {};
    begin_segment<CONFIG>(p, place.codes, 0);
    const fragment_codes codes = take_fragment_codes<CONFIG>(p, reader, place.codes, shared);
    decode_fragments<typename CONFIG::CODES>(codes, even.of);
    for (int32_t step = 0;; step += 2) {
        if (!step_fragments<CONFIG>(p, sums, o, reader, place, shared, step, steps, even, odd)) break;
        if (!step_fragments<CONFIG>(p, sums, o, reader, place, shared, step + 1, steps, odd, even)) break;
    }
    wgmma_wait_group<0>();
    keep(place.kept, even);
    keep(place.kept, odd);
#pragma unroll
    for (int i = 0; i < CONFIG::PRODUCT_SUMS; i++) asm volatile("" : "+f"(sums[0][i])::"memory");
    release_wide<CONFIG>(o, place.before);
}

template <class CONFIG>
__device__ static inline void consume_wide(const bsmi_gemm_parameters &p, uint32_t shared, gemm_cta cta, uint32_t group)
{
    decoded_sums<CONFIG> sums;
    wide_place<CONFIG> place = {};
    const wide_operand operand = wide_operand_of<CONFIG>(shared);
    const fragment_reader reader = fragment_reader_of(group);
    const gemm_finish finish = gemm_finish_of(p);
    const int64_t tiles = gemm_tiles(p), step = gridDim.x / CONFIG::CLUSTER;
    int32_t k_steps = 0;
    for (int32_t s = 0; s < p.segment_count; s++) k_steps += p.segments[s].blocks;
    for (int64_t number = blockIdx.x / CONFIG::CLUSTER; number < tiles; number += step) {
        gemm_tile tile = gemm_tile_of<CONFIG>(p, number, cta);
        tile.column += (int32_t)group * 64;
        const bool scaled = fill_tables<CONFIG>(p, finish, tile, shared, group);
        sum_fragments<CONFIG>(p, sums, operand, reader, place, shared, k_steps);
        finish_decoded_tile<CONFIG>(p, finish, tile, decoded_tile_of<CONFIG>(p, tile, shared, group, scaled), sums);
    }
    if (p.segment_count > BSMI_MOST_SEGMENTS) store_shared(shared, place.kept);      /* never, which ptxas does not know */
}

template <class CONFIG> struct wide_roles {
    static constexpr bool WAITS_FIRST = true;
    __device__ static inline void begin(uint32_t shared) { initialize_wide_barriers<CONFIG>(shared); }
    __device__ static inline void work(const bsmi_fused_parameters &p, uint32_t address, gemm_cta cta, uint32_t group)
    {
        const uint32_t shared = __shfl_sync(0xffffffff, address, 0);
        if (group == 0) {
            setmaxnreg_dec<CONFIG::PRODUCER>();
            const uint32_t warp = warp_of_cta();
            if (warp == 0 && elect_sync()) produce_rows<CONFIG>(p, shared, cta);
            else if (warp == 1 && elect_sync()) produce_codes<CONFIG>(p, shared, cta);
        } else {
            setmaxnreg_inc<CONFIG::CONSUMER>();
            consume_wide<CONFIG>(p, shared, cta, group - 1);
        }
    }
};

#define WIDE_DECODING_KERNEL(codes, tile, rows, cluster_columns, stages, code_stages)                                    \
    extern "C" __global__ void __launch_bounds__(128 * 3, 1)                                                                        \
        bsmi_gemm_##codes##_##tile(const __grid_constant__ bsmi_fused_parameters p)                                       \
    {                                                                                                                    \
        using CONFIG = wide_config<codes_##codes, rows, cluster_columns, stages, code_stages>;                           \
        run_persistent<CONFIG, wide_roles<CONFIG>>(p, p);\
    }
