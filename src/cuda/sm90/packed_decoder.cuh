/* From a panel in shared memory to the first operand of wgmma in registers.
 *
 * In a panel each thread of wgmma has its own codes together: of a row and a step, which are four products, two words, each half of which
 * has the codes of one column of two.  A code's sign and its three bits of magnitude lie as far apart as they do in a bf16, so that a shift
 * and a mask make e2m1's value times 2^-126 of it, subnormal ones included.  Of the eight pairs of codes three lie so in either word; what
 * is left of both words, together, has two more. */
#pragma once

#include "cuda/ptx/arithmetic.cuh"
#include "packed_config.cuh"
#include "panel_bits.cuh"

/* The low or the high half of a word, twice: the instructions that use it take it from there. */
__device__ static inline uint32_t both_halves(uint32_t word, int half)
{
    uint32_t d;
    if (half == 0) asm("{\n.reg .b16 l, h;\nmov.b32 {l, h}, %1;\nmov.b32 %0, {l, l};\n}" : "=r"(d) : "r"(word));
    else asm("{\n.reg .b16 l, h;\nmov.b32 {l, h}, %1;\nmov.b32 %0, {h, h};\n}" : "=r"(d) : "r"(word));
    return d;
}

/* Scales of a turn, a thread's two rows. */
template <class CODES> struct panel_scales { uint32_t words[4][CODES::MICRO ? 2 : 1]; };

/* from: a turn's scales of this thread. */
template <class CODES> __device__ static inline panel_scales<CODES> read_panel_scales(uint32_t from)
{
    if constexpr (CODES::MICRO) {
        const uint4 a = load_shared_v4(from), b = load_shared_v4(from + 16);
        return { { { a.x, a.y }, { a.z, a.w }, { b.x, b.y }, { b.z, b.w } } };
    } else {
        const uint4 v = load_shared_v4(from);
        return { { { v.x }, { v.y }, { v.z }, { v.w } } };
    }
}

/* Of e8m0: a warp's of a turn are either 2 at most, as their codes less 2, or some are larger, and all are their codes less 60 with the
 * highest bit set. */
template <class CODES> __device__ static inline bool are_large(const panel_scales<CODES> &scales)
{
    return !CODES::MICRO && __any_sync(0xffffffff, (int32_t)scales.words[0][0] < 0);
}

/* Of a row and a step: what its numbers are multiplied with, blocks 0 and 1 in the halves of the first word, 2 and 3 of the second.  Times
 * 2^126 for e8m0 that is not large; for ue4m3 the half. */
template <class CODES> struct panel_factors { uint32_t of[CODES::MICRO ? 2 : 1]; };

template <class CODES, bool LARGE>
__device__ static inline panel_factors<CODES> factors_of_row(const uint32_t (&words)[CODES::MICRO ? 2 : 1], int row)
{
    if constexpr (CODES::MICRO) {
        return { { ptx_mul_bf16x2((words[row] << 4) & 0x07f007f0, 0x7b007b00), ptx_mul_bf16x2((words[row] >> 4) & 0x07f007f0, 0x7b007b00) } };
    } else {
        const uint32_t shifted = (row == 0 ? words[0] << 7 : words[0] >> 1) & 0x3f803f80;
        return { { LARGE ? shifted + 0x1e001e00 : shifted | 0x40004000 } };
    }
}

/* Of a row's pair number i of eight: two for each of four products. */
template <class CODES, bool LARGE> __device__ static inline uint32_t scaled_pair(uint32_t pair, const panel_factors<CODES> &factors, int i)
{
    if constexpr (CODES::MICRO) return ptx_mul_bf16x2(ptx_mul_bf16x2(pair, 0x7f007f00), both_halves(factors.of[i / 4], i / 2 % 2));
    else return ptx_mul_bf16x2(LARGE ? ptx_mul_bf16x2(pair, 0x7e807e80) : pair, both_halves(factors.of[0], i / 4));
}

/* operand: of four products, 16 columns each. */
template <class CODES, bool LARGE>
__device__ static inline void decode_panel_step(const uint4 &codes, const uint32_t (&scales)[CODES::MICRO ? 2 : 1], uint32_t (&operand)[16])
{
    const uint32_t words[2][2] = { { codes.x, codes.y }, { codes.z, codes.w } };
#pragma unroll
    for (int row = 0; row < 2; row++) {
        uint32_t pairs[8];
        const panel_factors<CODES> factors = factors_of_row<CODES, LARGE>(scales, row);
        unpack_pairs(words[row][0], words[row][1], pairs);
#pragma unroll
        for (int i = 0; i < 8; i++) operand[i / 2 * 4 + i % 2 * 2 + row] = scaled_pair<CODES, LARGE>(pairs[i], factors, i);
    }
}

/* codes: this thread's of four steps. */
template <class CODES, bool LARGE>
__device__ static inline void decode_steps(const uint4 (&codes)[4], const panel_scales<CODES> &scales, uint32_t (&operand)[4][16])
{
#pragma unroll
    for (int step = 0; step < 4; step++) decode_panel_step<CODES, LARGE>(codes[step], scales.words[step], operand[step]);
}
