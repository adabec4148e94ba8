/* From codes of e2m1 and their scales to numbers of bf16, exactly, in registers; whichever way a kernel reads them.
 *
 * prmt finds 192 + 2 v for each code v in a table by magnitude, one table for each sign; where a code has the other
 * sign, the bit that says so makes prmt repeat the byte's highest bit, which is 0: the sum of both is the number.  It
 * is the low byte of a bf16 from 128 to 256, whose last place is 1, and one fma with half of the scale makes it v times
 * the scale, exactly. */
#pragma once

#include "codes.cuh"
#include "cuda/ptx/arithmetic.cuh"

/* Scales ----------------------------------------------------------------------------------------------------------- */

/* Halves of the scales of a step, and what makes 192 times them zero: of each row, those of NVFP4's four blocks or of
 * MXFP4's two; block i lies in half i / WORDS of word i % WORDS. */
template <class CODES> struct scale_halves {
    static constexpr int WORDS = CODES::MICRO ? 2 : 1;
    uint32_t of[2][WORDS], offset[2][WORDS];
};

/* Codes of two scales, each in half of a word, become halves of the scales.  ue4m3: its bits, where bf16 has them, and
 * a power of two that corrects the exponent.  e8m0 from 1 on: 2^(code - 128). */
template <class CODES> __device__ static inline uint32_t half_of_scales(uint32_t codes)
{
    return CODES::MICRO ? ptx_mul_bf16x2(codes * 16, 0x7b007b00) : codes * 128 - 0x00800080;
}

template <class CODES> __device__ static inline void set_offsets(scale_halves<CODES> &halves)
{
#pragma unroll
    for (int i = 0; i < 2 * halves.WORDS; i++)
        halves.offset[i / halves.WORDS][i % halves.WORDS] =
            ptx_mul_bf16x2(halves.of[i / halves.WORDS][i % halves.WORDS], 0xc340c340);
}

/* Numbers ---------------------------------------------------------------------------------------------------------- */

/* The low or the high half of a word, twice: the instructions that use it take it from there. */
__device__ static inline uint32_t twice_of_half(uint32_t word, int half)
{
    uint32_t d;
    if (half == 0) asm("{\n.reg .b16 l, h;\nmov.b32 {l, h}, %1;\nmov.b32 %0, {l, l};\n}" : "=r"(d) : "r"(word));
    else asm("{\n.reg .b16 l, h;\nmov.b32 {l, h}, %1;\nmov.b32 %0, {h, h};\n}" : "=r"(d) : "r"(word));
    return d;
}

/* codes: four, in the low half. */
__device__ static inline void decode_four(uint32_t codes, uint32_t half, uint32_t offset, uint32_t &first,
                                          uint32_t &second)
{
    const uint32_t bytes = ptx_prmt(0x43424140, 0x4c484644, codes) + ptx_prmt(0x3d3e3f40, 0x34383a3c, codes ^ 0x8888);
    first = ptx_fma_bf16x2(ptx_prmt(bytes, 0x43434343, 0x4140), half, offset);
    second = ptx_fma_bf16x2(ptx_prmt(bytes, 0x43434343, 0x4342), half, offset);
}

/* Scales in layout 128x4, less the exponents of rows --------------------------------------------------------------- */

/* Of a step and of each of the thread's rows, from the step's first block on. */
struct piece_scales { uint32_t of[2]; };

/* Whether a scale of the step is NaN, or e8m0 so large that 192 times it is infinite: as blocks of zeros may have it,
 * since rows of other numbers have exponents. */
template <class CODES> __device__ static inline bool has_special_scale(const piece_scales &s)
{
    const uint32_t first = s.of[0], second = s.of[1], both = __byte_perm(first, second, 0x5410);
    if (CODES::MICRO)
        return ((((first & 0x7f7f7f7f) + 0x01010101) | ((second & 0x7f7f7f7f) + 0x01010101)) & 0x80808080) != 0;
    return (((both & 0x78787878) + 0x08080808) & both & 0x80808080) != 0;
}

/* Two codes of scales, each in half of a word: those of blocks i and i + WORDS of a row. */
template <class CODES> __device__ static inline uint32_t codes_of_halves(const piece_scales &s, int row, int i)
{
    return CODES::MICRO ? s.of[row] >> 8 * i & 0x007f007f : __byte_perm(s.of[row], 0, 0x4140);
}

template <class CODES>
__device__ static inline void set_special_halves(const piece_scales &s, scale_halves<CODES> &halves)
{
    constexpr uint32_t NAN_CODE = CODES::MICRO ? 0x7f : 0xff, LARGE_CODE = CODES::MICRO ? 0x7f : 0xf8;
#pragma unroll
    for (int i = 0; i < 2 * halves.WORDS; i++) {
        const uint32_t codes = codes_of_halves<CODES>(s, i / halves.WORDS, i % halves.WORDS);
        const uint32_t low = codes & 0xffff, high = codes >> 16;
        uint32_t &half = halves.of[i / halves.WORDS][i % halves.WORDS];
        if (low >= LARGE_CODE) half = (half & 0xffff0000) | (low == NAN_CODE ? 0x7fc0 : 0);
        if (high >= LARGE_CODE) half = (half & 0xffff) | (high == NAN_CODE ? 0x7fc00000 : 0);
    }
}

/* The codes 0 and 1 of e8m0, which only zeros have, padding and blocks of zeros, become 0. */
template <class CODES> __device__ static inline scale_halves<CODES> halves_of_piece(const piece_scales &s)
{
    scale_halves<CODES> halves;
#pragma unroll
    for (int i = 0; i < 2 * halves.WORDS; i++) {
        const uint32_t codes = codes_of_halves<CODES>(s, i / halves.WORDS, i % halves.WORDS);
        halves.of[i / halves.WORDS][i % halves.WORDS] =
            half_of_scales<CODES>(CODES::MICRO ? codes : __vmaxu2(codes, 0x00010001));
    }
    if (__builtin_expect(has_special_scale<CODES>(s), 0)) set_special_halves<CODES>(s, halves);
    set_offsets(halves);
    return halves;
}
