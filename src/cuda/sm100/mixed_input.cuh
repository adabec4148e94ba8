/* D = finish(A B^T) on Blackwell where A is rows of bf16 and B e2m1 with scales: B is decoded into tensor memory, which
 * is the first operand of D^T = B A^T, and never lies in global memory as bf16.
 *
 *     global memory       shared memory                  registers         tensor memory                       D
 *     rows of A  -- TMA -> ring of A's rows -----------------------------> second operand, where it is
 *     codes of B -- TMA -> ring of codes ---> decoded --> tcgen05.st ----> ring of first operands --> sums --> finished
 *     scales of B -------> with the codes ----^
 *
 * The 128 lanes of an instruction are rows of B, and the rows of A, few of them mostly, are its columns.  The numbers
 * that are multiplied, the order of sums, and with them the bits of D are those of gemm_f16.cu with decoded rows.
 *
 * A persistent grid of CTAs.  Roles, which all walk the same tiles in the same order:
 *
 *   warp 0, a thread     loads rows of A, 64 columns a stage
 *   warp 1, a thread     multiplies
 *   warp 2               allocates tensor memory
 *   warp 3, a thread     loads codes and scales of B, 256 columns a stage
 *   warps 4 to 7         read an accumulator while the next tile is multiplied into the other, finish and store
 *   warps 8 to 15        decode: four warps have 128 rows, a row a thread, 128 columns at a time: a pair of steps.
 *                        Of a stage of codes, warps 8 to 11 have the first pair, the others the second
 *
 * A thread reads 16 bytes of its row's codes at a time: eight neighbours read eight different chunks of 128 bytes, as
 * the swizzle has them, so that no bank is asked twice, and codes need no other order than the one they are stored in.
 * A word of them becomes the four cells of tensor memory that follow each other in the thread's lane. */
#pragma once

#include "cuda/ptx/bulk_copy.cuh"
#include "cuda/sm90/operand/e2m1_numbers.cuh"
#include "mixed_input_config.cuh"

/* Loading ---------------------------------------------------------------------------------------------------------- */

template <class CONFIG>
__device__ static inline void load_rows_of_a(const bsmi_tensor_mixed_input_parameters &p, uint32_t shared)
{
    using RING = typename CONFIG::rows_ring;
    gemm_ring<RING::STAGES> ring = { 0, 1 };
    for_each_tile(p, [&](const gemm_tile &tile) {
        const gemm_side a = gemm_side_a(p, tile);
        for (int32_t s = 0; s < p.segment_count; s++)
            for (int32_t step = 0; step < p.segments[s].blocks; step++, ring.next()) {
                const uint32_t full = full_barrier<RING>(shared, ring.at);
                const int32_t at[3] = { p.segments[s].a_column + step * BSMI_K_STEP, a.row, a.matrix };
                mbarrier_wait_parity(empty_barrier<RING>(shared, ring.at), ring.parity);
                mbarrier_arrive_expect_tx(full, (uint32_t)p.tile_rows * CONFIG::ROW_BYTES);
                cp_async_bulk_tensor_load(shared + CONFIG::AT_ROWS + ring.at * CONFIG::A_BYTES, &p.a, at, full);
            }
    });
    griddepcontrol_launch_dependents();
}

/* Scales behind the last column of the segment do not come. */
template <class CONFIG>
__device__ static inline void load_codes_of_b(const bsmi_tensor_mixed_input_parameters &p, uint32_t shared)
{
    using RING = typename CONFIG::codes_ring;
    gemm_ring<RING::STAGES> ring = { 0, 1 };
    for_each_stage<CONFIG>(p, [&](const gemm_tile &tile, int32_t step, int32_t steps) {
        const gemm_side b = gemm_side_b(p, tile);
        const uint32_t full = full_barrier<RING>(shared, ring.at);
        const int32_t at[3] = { step * (BSMI_K_STEP / 2), b.row, b.matrix };
        const uint32_t scale_bytes = (uint32_t)(steps * BSMI_K_STEP + CONFIG::PIECE_COLUMNS - 1)
                                     / CONFIG::PIECE_COLUMNS * CONFIG::PIECE_BYTES;
        mbarrier_wait_parity(empty_barrier<RING>(shared, ring.at), ring.parity);
        mbarrier_arrive_expect_tx(full, CONFIG::CODE_BYTES + scale_bytes);
        cp_async_bulk_tensor_load(shared + CONFIG::AT_CODES + ring.at * CONFIG::CODE_BYTES, &p.b, at, full);
        cp_async_bulk_load(shared + CONFIG::AT_SCALES + ring.at * CONFIG::SCALE_BYTES,
                           p.code_scales + b.matrix * p.code_batch_bytes + b.row / 128 * p.code_band_bytes
                               + step * BSMI_K_STEP / CONFIG::PIECE_COLUMNS * CONFIG::PIECE_BYTES,
                           scale_bytes, full);
        ring.next();
    });
}

/* Decoding --------------------------------------------------------------------------------------------------------- */

/* What a thread has of a pair of steps: its row's codes, and a word whose lowest bytes are the first scales of either
 * step. */
struct pair_of_steps { uint4 codes[4]; piece_scales scales; };

/* number: of the pair in its stage.  The second step's scales have come if there is one. */
template <class CONFIG>
__device__ static inline pair_of_steps read_pair(uint32_t shared, uint32_t stage, uint32_t number, uint32_t row,
                                                 bool has_second)
{
    const uint32_t codes = shared + CONFIG::AT_CODES + stage * CONFIG::CODE_BYTES + row * 128,
                   scales = shared + CONFIG::AT_SCALES + stage * CONFIG::SCALE_BYTES + row % 32 * 16 + row / 32 * 4
                            + number * (CONFIG::SCALE_BYTES / 2);
    pair_of_steps pair;
#pragma unroll
    for (uint32_t i = 0; i < 4; i++) pair.codes[i] = load_shared_v4(codes + ((number * 4 + i) ^ row % 8) * 16);
    pair.scales.of[0] = load_shared(scales);
    if (CONFIG::CODES::MICRO) pair.scales.of[1] = has_second ? load_shared(scales + CONFIG::PIECE_BYTES) : 0;
    else pair.scales.of[1] = pair.scales.of[0] >> 16;
    return pair;
}

/* Step STEP of the pair: a word of codes is four cells of tensor memory. */
template <class CODES, int STEP>
__device__ static inline void decode_step_of_row(const pair_of_steps &pair, const scale_halves<CODES> &halves,
                                                 uint32_t (&cells)[32])
{
#pragma unroll
    for (int word = 0; word < 8; word++) {
        const uint4 &v = pair.codes[STEP * 2 + word / 4];
        const uint32_t codes = word % 4 == 0 ? v.x : word % 4 == 1 ? v.y : word % 4 == 2 ? v.z : v.w;
        const int block = CODES::MICRO ? word / 2 : word / 4, in_word = block % halves.WORDS;
        const uint32_t half = twice_of_half(halves.of[STEP][in_word], block / halves.WORDS),
                       offset = twice_of_half(halves.offset[STEP][in_word], block / halves.WORDS);
        decode_four(codes, half, offset, cells[4 * word], cells[4 * word + 1]);
        decode_four(codes >> 16, half, offset, cells[4 * word + 2], cells[4 * word + 3]);
    }
}

template <class CONFIG>
__device__ static inline void decode_pair(const pair_of_steps &pair, uint32_t to, bool has_second)
{
    using CODES = typename CONFIG::CODES;
    const scale_halves<CODES> halves = halves_of_piece<CODES>(pair.scales);
    uint32_t cells[CONFIG::STEP_CELLS];
    decode_step_of_row<CODES, 0>(pair, halves, cells);
    tcgen05_st<SHAPE_32X32B, CONFIG::STEP_CELLS>(to, cells);
    if (has_second) {
        decode_step_of_row<CODES, 1>(pair, halves, cells);
        tcgen05_st<SHAPE_32X32B, CONFIG::STEP_CELLS>(to + CONFIG::STEP_CELLS, cells);
    }
    tcgen05_wait_st();
}

/* By all threads of a warp, an arrival of which ends what they had of the barrier's stage. */
__device__ static inline void arrive_together(uint32_t barrier)
{
    __syncwarp();
    if (threadIdx.x % 32 == 0) mbarrier_arrive(barrier);
}

/* Eight warps.  A warp waits for each stage of codes, also where it has no pair of it: its arrivals are in step with
 * the phases. */
template <class CONFIG>
__device__ static inline void decode(const bsmi_tensor_mixed_input_parameters &p, uint32_t shared, uint32_t tensor,
                                     uint32_t warp)
{
    using CODES_RING = typename CONFIG::codes_ring;
    using RING = typename CONFIG::operands_ring;
    const uint32_t own = warp / 4, row = warp % 4 * 32 + threadIdx.x % 32;
    const uint32_t to = tensor + CONFIG::AT_OPERANDS + (warp % 4 * 32 << 16);
    gemm_ring<CODES_RING::STAGES> codes = { 0, 0 };
    gemm_ring<RING::STAGES> ring = { 0, 1 };
    for_each_stage<CONFIG>(p, [&](const gemm_tile &, int32_t, int32_t steps) {
        mbarrier_wait_parity(full_barrier<CODES_RING>(shared, codes.at), codes.parity);
        const int32_t own_steps = steps - (int32_t)own * CONFIG::PAIR_STEPS;
        pair_of_steps pair;
        if (own_steps > 0) pair = read_pair<CONFIG>(shared, codes.at, own, row, own_steps > 1);
        fence_proxy_async_shared();       /* TMA writes where this warp has read */
        arrive_together(empty_barrier<CODES_RING>(shared, codes.at));
        codes.next();
        for (int32_t number = 0; number * CONFIG::PAIR_STEPS < steps; number++, ring.next()) {
            if (number != (int32_t)own) continue;
            mbarrier_wait_parity(empty_barrier<RING>(shared, ring.at), ring.parity);
            tcgen05_fence_after_thread_sync();
            decode_pair<CONFIG>(pair, to + ring.at * CONFIG::OPERAND_COLUMNS, own_steps > 1);
            tcgen05_fence_before_thread_sync();
            arrive_together(full_barrier<RING>(shared, ring.at));
        }
    });
}

/* Multiplying ------------------------------------------------------------------------------------------------------ */

/* A step: four products of 16 columns, which are 32 bytes of a row of A and 8 cells of a lane. */
template <class CONFIG>
__device__ static inline void multiply_step(uint32_t d, uint32_t operand, uint32_t rows, uint32_t instruction,
                                            bool adds)
{
    const uint64_t b = shared_rows_descriptor(rows, SHARED_SWIZZLE_128B);
#pragma unroll
    for (uint32_t i = 0; i < 4; i++)
        tcgen05_mma_a_tensor<MMA_F16, 1>(d, operand + i * (CONFIG::STEP_CELLS / 4), shared_matrix_advance(b, i * 32),
                                         instruction, adds || i > 0);
}

template <class CONFIG>
__device__ static inline void multiply_tiles(const bsmi_tensor_mixed_input_parameters &p, uint32_t shared,
                                             uint32_t tensor)
{
    using ROWS_RING = typename CONFIG::rows_ring;
    using RING = typename CONFIG::operands_ring;
    gemm_ring<ROWS_RING::STAGES> rows = { 0, 0 };
    gemm_ring<RING::STAGES> ring = { 0, 0 };
    gemm_ring<2> accumulator = { 0, 1 };  /* both begin drained */
    for_each_tile(p, [&](const gemm_tile &) {
        const uint32_t d = tensor + accumulator.at * CONFIG::ACCUMULATOR_COLUMNS;
        bool adds = false;
        mbarrier_wait_parity(drained_barrier<CONFIG>(shared, accumulator.at), accumulator.parity);
        for (int32_t s = 0; s < p.segment_count; s++)
            for (int32_t step = 0; step < p.segments[s].blocks; step += CONFIG::PAIR_STEPS, ring.next()) {
                mbarrier_wait_parity(full_barrier<RING>(shared, ring.at), ring.parity);
                tcgen05_fence_after_thread_sync();
                for (int32_t i = 0; i < min(CONFIG::PAIR_STEPS, p.segments[s].blocks - step); i++, rows.next()) {
                    mbarrier_wait_parity(full_barrier<ROWS_RING>(shared, rows.at), rows.parity);
                    multiply_step<CONFIG>(
                        d, tensor + CONFIG::AT_OPERANDS + ring.at * CONFIG::OPERAND_COLUMNS + i * CONFIG::STEP_CELLS,
                        shared + CONFIG::AT_ROWS + rows.at * CONFIG::A_BYTES, p.instruction, adds);
                    adds = true;
                    tcgen05_commit<1>(empty_barrier<ROWS_RING>(shared, rows.at));
                }
                tcgen05_commit<1>(empty_barrier<RING>(shared, ring.at));
            }
        tcgen05_commit<1>(filled_barrier<CONFIG>(shared, accumulator.at));
        accumulator.next();
    });
}

/* Finishing -------------------------------------------------------------------------------------------------------- */

/* As finish_swapped, of as many rows as the tile has. */
template <class CONFIG>
__device__ static inline void finish_tiles(const bsmi_tensor_mixed_input_parameters &p, uint32_t shared,
                                           uint32_t tensor)
{
    const gemm_finish finish = gemm_finish_of(p);
    gemm_ring<2> accumulator = { 0, 0 };
    uint32_t amax = 0;
    for_each_tile(p, [&](const gemm_tile &tile) {
        const gemm_job job = { tile, 0, 0, 0 };
        const gemm_column column = gemm_column_of(p, finish, tile);
        const uint32_t from =
            tensor + accumulator.at * CONFIG::ACCUMULATOR_COLUMNS + (threadIdx.x % 128 / 32 * 32 << 16);
        mbarrier_wait_parity(filled_barrier<CONFIG>(shared, accumulator.at), accumulator.parity);
        tcgen05_fence_after_thread_sync();
#pragma unroll 1
        for (int32_t first = 0; first < p.tile_rows; first += CONFIG::CHUNK) {
            uint32_t words[CONFIG::CHUNK];
            float sums[CONFIG::SUMS];
            tcgen05_ld<SHAPE_32X32B, CONFIG::CHUNK>(words, from + first);
            tcgen05_wait_ld(words);
#pragma unroll
            for (int i = 0; i < CONFIG::SUMS; i++) sums[i] = __uint_as_float(words[i]);
            if (first + CONFIG::CHUNK == p.tile_rows)
                release_accumulator<CONFIG>(drained_barrier<CONFIG>(shared, accumulator.at));
            const int32_t row = tile.row + first;
            const uint32_t exists = finish_column<CONFIG>(p, finish, tile, column, row, sums, amax);
            store_column<CONFIG>(p, job, column, row, exists, sums);
        }
        accumulator.next();
    });
}

/* The kernel ------------------------------------------------------------------------------------------------------- */

template <class RING>
__device__ static inline void initialize_ring(uint32_t shared, uint32_t to_full, uint32_t to_empty)
{
    for (uint32_t stage = 0; stage < RING::STAGES; stage++) {
        mbarrier_init(full_barrier<RING>(shared, stage), to_full);
        mbarrier_init(empty_barrier<RING>(shared, stage), to_empty);
    }
}

template <class CONFIG>
__device__ static inline void begin(const bsmi_tensor_mixed_input_parameters &p, uint32_t shared, uint32_t warp)
{
    if (threadIdx.x == 0) {
        prefetch_tensormap(&p.a);
        prefetch_tensormap(&p.b);
        initialize_ring<typename CONFIG::rows_ring>(shared, 1, 1);
        initialize_ring<typename CONFIG::codes_ring>(shared, 1, CONFIG::DECODING_WARPS);
        initialize_ring<typename CONFIG::operands_ring>(shared, CONFIG::DECODING_WARPS / 2, 1);
        for (uint32_t i = 0; i < 2; i++) {
            mbarrier_init(filled_barrier<CONFIG>(shared, i), 1);
            mbarrier_init(drained_barrier<CONFIG>(shared, i), 4);
        }
        fence_mbarrier_init();
    }
    if (warp == 2) {
        tcgen05_alloc<1, CONFIG::TENSOR_COLUMNS>(shared + CONFIG::AT_TENSOR);
        tcgen05_relinquish_alloc_permit<1>();
    }
    __syncthreads();
}

template <class CONFIG> __device__ static inline void mixed_input(const bsmi_tensor_mixed_input_parameters &p)
{
    extern __shared__ __align__(1024) unsigned char memory[];
    const uint32_t shared = shared_address(memory), warp = warp_of_cta();
    begin<CONFIG>(p, shared, warp);
    const uint32_t tensor = load_shared(shared + CONFIG::AT_TENSOR);
    griddepcontrol_wait();
    if (warp == 0 && elect_sync()) load_rows_of_a<CONFIG>(p, shared);
    else if (warp == 1 && elect_sync()) multiply_tiles<CONFIG>(p, shared, tensor);
    else if (warp == 3 && elect_sync()) load_codes_of_b<CONFIG>(p, shared);
    else if (warp >= 8) decode<CONFIG>(p, shared, tensor, warp - 8);
    else if (warp >= 4) finish_tiles<CONFIG>(p, shared, tensor);
    __syncwarp();
    __syncthreads();                      /* accumulators and operands have been read */
    if (warp == 2) tcgen05_dealloc<1, CONFIG::TENSOR_COLUMNS>(tensor);
}

#define MIXED_INPUT_BY_TENSOR_MEMORY(codes) \
    extern "C" __global__ void __launch_bounds__(BSMI_SM100_MIXED_INPUT_THREADS, 1) \
        bsmi_gemm_tensor_##codes(const __grid_constant__ bsmi_tensor_mixed_input_parameters p) \
    { \
        mixed_input<tensor_mixed_input_config<codes_##codes>>(p); \
    }
