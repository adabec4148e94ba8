/* The multiplier: one thread, of a pair the even CTA's, which issues all products and all copies of scales into tensor
 * memory.
 *
 * Both run in the order in which it issues them, so that the scales of a step may be written over those of the step
 * before. */
#pragma once

#include "gemm_config.cuh"

/* Block i of a row of blocks goes behind block i of the rows before it: the scales of B's columns lie side by side.
 * Only what a product reads is copied: two copies to the same columns have no order without a product between them. */
template <class CONFIG>
__device__ static inline void copy_scales(uint32_t tensor, uint32_t a, uint32_t b, int32_t products)
{
#pragma unroll
    for (int i = 0; i < CONFIG::BLOCKS; i++) {
        if (products <= i * CONFIG::BLOCK_PRODUCTS) break;
        tcgen05_cp<CONFIG::CTAS, CP_32X128B>(tensor + CONFIG::AT_A_SCALES + 4 * i,
                                             shared_scales_descriptor(a + i * CONFIG::BLOCK_BYTES));
#pragma unroll
        for (int j = 0; j < CONFIG::B_ROW_BLOCKS; j++)
            tcgen05_cp<CONFIG::CTAS, CP_32X128B>(
                tensor + CONFIG::AT_B_SCALES + 4 * (i * CONFIG::B_ROW_BLOCKS + j),
                shared_scales_descriptor(b + (j * CONFIG::BLOCKS + i) * CONFIG::BLOCK_BYTES));
    }
}

/* Metadata of the rows of a sparse A: a product reads two columns, and the smaller copy has those of two products. */
template <class CONFIG>
__device__ static inline void copy_metadata(uint32_t tensor, uint32_t metadata, int32_t products)
{
    const uint64_t rows = shared_rows_descriptor(metadata, SHARED_SWIZZLE_32B);
    if (products > 2) tcgen05_cp<CONFIG::CTAS, CP_128X256B>(tensor + CONFIG::AT_METADATA, rows);
    else tcgen05_cp<CONFIG::CTAS, CP_128X128B>(tensor + CONFIG::AT_METADATA, rows);
}

/* Bytes from one product to the next: of K-major rows always the same. */
template <class CONFIG> __device__ static inline uint32_t product_bytes(const bsmi_operand_boxes &boxes)
{
    return CONFIG::HAS_MAJORS ? (uint32_t)boxes.product_bytes : CONFIG::PRODUCT_BYTES;
}

/* Product number I of a step: 32 bytes of K, whose scales are byte `id` and those behind it of the cells of a block. */
template <class CONFIG, int I>
__device__ static inline void multiply(const bsmi_blackwell_parameters &p, uint32_t tensor, uint32_t d, uint64_t a,
                                       uint64_t b, uint32_t b_scales, bool adds)
{
    const uint32_t instruction = p.instruction;
    constexpr int BLOCK = I / CONFIG::BLOCK_PRODUCTS, ID = I * CONFIG::BLOCKS % CONFIG::PRODUCTS;
    a = shared_matrix_advance(a, I * product_bytes<CONFIG>(gemm_lane_boxes<CONFIG>(p)));
    constexpr int OF_B = I * CONFIG::B_PRODUCT_BYTES;
    if constexpr (CONFIG::SPARSE)
        b = shared_matrix_advance(b, OF_B / CONFIG::ROW_BYTES * CONFIG::B_PANEL_BYTES + OF_B % CONFIG::ROW_BYTES);
    else b = shared_matrix_advance(b, I * product_bytes<CONFIG>(gemm_column_boxes<CONFIG>(p)));
    constexpr mma_scale_vector VECTOR = CONFIG::KIND == MMA_MXF4NVF4 ? BLOCK_16 : BLOCK_32;
    const uint32_t a_scales = tensor + CONFIG::AT_A_SCALES + 4 * BLOCK;
    b_scales += 4 * CONFIG::B_ROW_BLOCKS * BLOCK;
    if constexpr (CONFIG::BLOCKS == 0) {
        if (mma_is_tf32(instruction)) tcgen05_mma<MMA_TF32, CONFIG::CTAS>(d, a, b, instruction, adds);
        else tcgen05_mma<CONFIG::KIND, CONFIG::CTAS>(d, a, b, instruction, adds);
    } else if constexpr (CONFIG::SPARSE)
        tcgen05_mma_sp_block_scale<CONFIG::KIND, VECTOR, CONFIG::CTAS>(d, a, b, tensor + CONFIG::AT_METADATA + 2 * I,
                                                                       mma_with_scale_ids(instruction, ID, ID),
                                                                       a_scales, b_scales, adds);
    else
        tcgen05_mma_block_scale<CONFIG::KIND, VECTOR, CONFIG::CTAS>(d, a, b, mma_with_scale_ids(instruction, ID, ID),
                                                                    a_scales, b_scales, adds);
}

/* b_scales: of the tile's first column.  products: how many of the four K still has. */
template <class CONFIG>
__device__ static inline void multiply_stage(const bsmi_blackwell_parameters &p, uint32_t shared, uint32_t stage,
                                             uint32_t tensor, uint32_t d, uint32_t b_scales, int32_t products,
                                             bool first)
{
    const uint64_t a = shared_matrix_advance(gemm_lane_boxes<CONFIG>(p).descriptor,
                                             shared + CONFIG::OF_A + stage * CONFIG::A_BYTES);
    const uint64_t b = shared_matrix_advance(gemm_column_boxes<CONFIG>(p).descriptor,
                                             shared + CONFIG::OF_B + stage * CONFIG::B_BYTES);
    copy_scales<CONFIG>(tensor, shared + CONFIG::OF_A_SCALES + stage * CONFIG::A_SCALE_BYTES,
                        shared + CONFIG::OF_B_SCALES + stage * CONFIG::B_SCALE_BYTES, products);
    if constexpr (CONFIG::SPARSE)
        copy_metadata<CONFIG>(tensor, shared + CONFIG::OF_METADATA + stage * CONFIG::METADATA_BYTES, products);
    multiply<CONFIG, 0>(p, tensor, d, a, b, b_scales, !first);
    if (products > 1) multiply<CONFIG, 1>(p, tensor, d, a, b, b_scales, true);
    if (products > 2) multiply<CONFIG, 2>(p, tensor, d, a, b, b_scales, true);
    if (products > 3) multiply<CONFIG, 3>(p, tensor, d, a, b, b_scales, true);
}

template <class CONFIG> __device__ static inline void commit(uint32_t barrier)
{
    if (CONFIG::CTAS == 1) tcgen05_commit<1>(barrier);
    else tcgen05_commit_multicast<CONFIG::CTAS>(barrier, 3);
}

template <class CONFIG>
__device__ static inline void multiply_tiles(const bsmi_blackwell_parameters &p, uint32_t shared, uint32_t tensor)
{
    gemm_ring<CONFIG::STAGES> ring = { 0, 0 };
    gemm_ring<2> accumulator = { 0, 0 };
    gemm_ring<CONFIG::ACCUMULATORS> drained = { 0, 1 }; /* every accumulator begins drained */
    for (gemm_jobs<CONFIG> jobs(p); jobs.more(); jobs.next(), accumulator.next(), drained.next()) {
        const gemm_job job = jobs.job(p, 0);
        const uint32_t b_scales =
            tensor + CONFIG::AT_B_SCALES + (uint32_t)gemm_column_side<CONFIG>(p, job.tile).row % 128 / 32;
        mbarrier_wait_parity(drained_barrier<CONFIG>(shared, drained.at), drained.parity);
        tcgen05_fence_after_thread_sync();
        for (int32_t step = 0; step < job.steps; step++, ring.next()) {
            const bool is_last = job.first_step + step + 1 == jobs.all_steps;
            mbarrier_wait_parity(full_barrier<CONFIG>(shared, ring.at), ring.parity);
            multiply_stage<CONFIG>(p, shared, ring.at, tensor, accumulator_of<CONFIG>(tensor, accumulator.at), b_scales,
                                   CONFIG::BLOCKS > 0 && is_last ? p.last_products : CONFIG::PRODUCTS, step == 0);
            commit<CONFIG>(empty_barrier<CONFIG>(shared, ring.at));
        }
        commit<CONFIG>(filled_barrier<CONFIG>(shared, accumulator.at));
    }
}
