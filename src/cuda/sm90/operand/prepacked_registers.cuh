/* From prepacked weights in shared memory to the first operand of wgmma in registers.
 *
 * Each thread of wgmma has its own codes together: of a row and a step, which are four products, two words, each half
 * of which has the codes of one column of two.  A code's sign and its three bits of magnitude lie as far apart as they
 * do in a bf16, so that a shift and a mask make e2m1's value times 2^-126 of it, subnormal ones included.  Of the eight
 * pairs of codes three lie so in either word; what is left of both words, together, has two more. */
#pragma once

#include "e2m1_registers.cuh"
#include "prepacked_bits.cuh"

/* Scales of e8m0 of a warp's slice: all at most 2, as codes less 2 with the highest bit set, or some larger, and all as
 * codes less 60. */
enum prepacked_range { PREPACKED_SMALL, PREPACKED_LARGE };

/* Scales of a slice, a thread's two rows. */
template <class CODES> struct prepacked_scales { uint32_t words[BSMI_PREPACKED_STEPS][CODES::MICRO ? 2 : 1]; };

/* from: a slice's scales of this thread. */
template <class CODES> __device__ static inline prepacked_scales<CODES> read_prepacked_scales(uint32_t from)
{
    prepacked_scales<CODES> scales;
#pragma unroll
    for (int step = 0; step < BSMI_PREPACKED_STEPS; step += 2) {
        if constexpr (CODES::MICRO) {
            const uint4 v = load_shared_v4(from + step * 8);
            scales.words[step][0] = v.x, scales.words[step][1] = v.y, scales.words[step + 1][0] = v.z,
            scales.words[step + 1][1] = v.w;
        } else {
            const uint2 v = load_shared_v2(from + step * 4);
            scales.words[step][0] = v.x, scales.words[step + 1][0] = v.y;
        }
    }
    return scales;
}

/* Of one step alone, `step` of the slice. */
template <class CODES>
__device__ static inline void read_step_scales(uint32_t from, int step, uint32_t (&words)[CODES::MICRO ? 2 : 1])
{
    if constexpr (CODES::MICRO) {
        const uint2 v = load_shared_v2(from + step * 8);
        words[0] = v.x, words[1] = v.y;
    } else {
        words[0] = load_shared(from + step * 4);
    }
}

/* first: the scales of any step of the slice. */
template <class CODES> __device__ static inline bool are_large(uint32_t first)
{
    return !CODES::MICRO && __any_sync(0xffffffff, (int32_t)first >= 0);
}

template <class CODES> __device__ static inline bool are_large(const prepacked_scales<CODES> &scales)
{
    return are_large<CODES>(scales.words[0][0]);
}

/* Of a row and a step: what its numbers are multiplied with, blocks 0 and 1 in the halves of the first word, 2 and 3 of
 * the second.  Times 2^126 for e8m0 that is small, for others the rest of 2^126 is `before`; for ue4m3 the half. */
template <class CODES> struct prepacked_factors { uint32_t of[CODES::MICRO ? 2 : 1], before; };

template <class CODES, prepacked_range RANGE>
__device__ static inline prepacked_factors<CODES> factors_of_row(const uint32_t (&words)[CODES::MICRO ? 2 : 1], int row)
{
    if constexpr (CODES::MICRO) {
        return { { ptx_mul_bf16x2((words[row] << 4) & 0x07f007f0, 0x7b007b00),
                   ptx_mul_bf16x2((words[row] >> 4) & 0x07f007f0, 0x7b007b00) },
                 0x7f007f00 };
    } else {
        constexpr bool large = RANGE == PREPACKED_LARGE;
        const uint32_t shifted = (row == 0 ? words[0] << 7 : words[0] >> 1) & 0x7f807f80;
        return { { large ? shifted + 0x1e001e00 : shifted }, large ? 0x7e807e80u : 0x3f803f80u };
    }
}

/* Of a row's pair number i of eight: two for each of four products. */
template <class CODES, prepacked_range RANGE>
__device__ static inline uint32_t scaled_pair(uint32_t pair, const prepacked_factors<CODES> &factors, int i)
{
    const bool once = !CODES::MICRO && RANGE == PREPACKED_SMALL;
    return ptx_mul_bf16x2(once ? pair : ptx_mul_bf16x2(pair, factors.before),
                          twice_of_half(factors.of[CODES::MICRO ? i / 4 : 0], CODES::MICRO ? i / 2 % 2 : i / 4));
}

/* Of one of the thread's two rows, a step. */
template <class CODES, prepacked_range RANGE>
__device__ static inline void decode_prepacked_row(const uint4 &codes, const uint32_t (&scales)[CODES::MICRO ? 2 : 1],
                                                   int row, step_operand &operand)
{
    uint32_t pairs[8];
    const prepacked_factors<CODES> factors = factors_of_row<CODES, RANGE>(scales, row);
    unpack_pairs(row == 0 ? codes.x : codes.z, row == 0 ? codes.y : codes.w, pairs);
#pragma unroll
    for (int i = 0; i < 8; i++) operand[i / 2 * 4 + i % 2 * 2 + row] = scaled_pair<CODES, RANGE>(pairs[i], factors, i);
}
