/* From codes of e2m1 in shared memory to bf16 in registers, as the first operand of wgmma: a step of 64 columns of a warp's 16 rows at a time.
 *
 * Row 2 g + e of them is row g + 8 e of the operand, so that a thread has sums of neighbouring columns of D.  A thread, lane 4 g + c, needs
 * of each 16 columns of its two rows columns 2 c and 2 c + 1, and those 8 behind them. */
#pragma once

#include "cuda/dequantize/small_floats.cuh"
#include "cuda/sm90/kernels/decoding_wide_config.cuh"

/* Of a step: for each 16 columns, registers in the order of wgmma. */
struct fragments { uint32_t of[4][4]; };

/* How a thread reads, the same all the time. */
struct fragment_reader {
    uint32_t codes[2], swizzle[2];        /* of its rows: what they add to addresses in a stage, and where they have 16 bytes */
    uint32_t scales;                      /* address of the first row's, within a stage; the second's is 16 bytes behind */
    uint32_t pick;                        /* selector for prmt: its byte of two words */
    bool tells;                           /* the barriers, for its warp */
};

__device__ static inline fragment_reader fragment_reader_of(uint32_t group)
{
    const uint32_t thread = __shfl_sync(0xffffffff, threadIdx.x % 128, threadIdx.x % 32), lane = thread % 32;
    const uint32_t row = group * 64 + thread / 32 * 16 + lane / 4 * 2;
    return { { row * 128, (row + 1) * 128 }, { row % 8, (row + 1) % 8 }, row % 32 * 16 + row / 32 * 4, lane % 4 | (lane % 4 + 4) << 4, lane == 0 };
}

/* What a thread has read of a step: of each 16 columns its eight codes, in the order of wgmma but for the two in the middle, and of each of its
 * rows scales, from the step's first block on. */
struct fragment_codes { uint32_t words[4], scales[2]; };

/* Step `number` of the stage: of the 16 bytes of 32 columns, that of each four which has the thread's two codes. */
template <class CONFIG>
__device__ static inline fragment_codes read_fragment_codes(const fragment_reader &reader, uint32_t shared, uint32_t stage, uint32_t number)
{
    using CODES = typename CONFIG::CODES;
    const uint32_t pieces = shared + CONFIG::AT_SCALES + stage * CONFIG::SCALE_BYTES;
    const uint32_t at = pieces + number * BSMI_K_STEP / CONFIG::PIECE_COLUMNS * CONFIG::PIECE_BYTES + reader.scales;
    const uint32_t codes = shared + CONFIG::AT_CODES + stage * CONFIG::CODE_BYTES, shift = CODES::MICRO ? 0 : number % 2 * 16;
    fragment_codes f;
    f.scales[0] = load_shared(at) >> shift, f.scales[1] = load_shared(at + 16) >> shift;
#pragma unroll
    for (uint32_t i = 0; i < 2; i++) {
        const uint4 first = load_shared_v4(codes + reader.codes[0] + ((number * 2 + i) ^ reader.swizzle[0]) * 16);
        const uint4 second = load_shared_v4(codes + reader.codes[1] + ((number * 2 + i) ^ reader.swizzle[1]) * 16);
        f.words[2 * i] = __byte_perm(__byte_perm(first.x, first.y, reader.pick), __byte_perm(second.x, second.y, reader.pick), 0x5410);
        f.words[2 * i + 1] = __byte_perm(__byte_perm(first.z, first.w, reader.pick), __byte_perm(second.z, second.w, reader.pick), 0x5410);
    }
    return f;
}

/* Halves of the scales of a step, and what makes 192 times them zero: of each row, of NVFP4's four blocks or of MXFP4's two, block i in
 * half i / WORDS of word i % WORDS. */
template <class CODES> struct fragment_halves {
    static constexpr int WORDS = CODES::MICRO ? 2 : 1;
    uint32_t of[2][WORDS], offset[2][WORDS];
};

/* Whether a scale of the step is NaN, or e8m0 so large that 192 times it is infinite: as blocks of zeros may have it, since rows of other
 * numbers have exponents. */
template <class CODES> __device__ static inline bool has_special_scale(const fragment_codes &f)
{
    const uint32_t first = f.scales[0], second = f.scales[1], both = __byte_perm(first, second, 0x5410);
    if (CODES::MICRO) return ((((first & 0x7f7f7f7f) + 0x01010101) | ((second & 0x7f7f7f7f) + 0x01010101)) & 0x80808080) != 0;
    return (((both & 0x78787878) + 0x08080808) & both & 0x80808080) != 0;
}

/* Two codes of scales, each in half of a word: those of blocks i and i + WORDS of a row. */
template <class CODES> __device__ static inline uint32_t codes_of_halves(const fragment_codes &f, int row, int i)
{
    return CODES::MICRO ? f.scales[row] >> 8 * i & 0x007f007f : __byte_perm(f.scales[row], 0, 0x4140);
}

template <class CODES> __device__ static inline void mend_halves(const fragment_codes &f, fragment_halves<CODES> &halves)
{
    constexpr uint32_t NAN_CODE = CODES::MICRO ? 0x7f : 0xff, LARGE_CODE = CODES::MICRO ? 0x7f : 0xf8;
#pragma unroll
    for (int i = 0; i < 2 * halves.WORDS; i++) {
        const uint32_t codes = codes_of_halves<CODES>(f, i / halves.WORDS, i % halves.WORDS);
        const uint32_t low = codes & 0xffff, high = codes >> 16;
        uint32_t &half = halves.of[i / halves.WORDS][i % halves.WORDS];
        if (low >= LARGE_CODE) half = (half & 0xffff0000) | (low == NAN_CODE ? 0x7fc0 : 0);
        if (high >= LARGE_CODE) half = (half & 0xffff) | (high == NAN_CODE ? 0x7fc00000 : 0);
    }
}

/* ue4m3: its bits, where bf16 has them, and a power of two that mends the exponent.  e8m0: 2^(code - 128),
 * and 0 for the codes 0 and 1, which only zeros have: padding, and blocks of zeros. */
template <class CODES> __device__ static inline fragment_halves<CODES> fragment_halves_of(const fragment_codes &f)
{
    constexpr int WORDS = fragment_halves<CODES>::WORDS;
    fragment_halves<CODES> halves;
#pragma unroll
    for (int i = 0; i < 2 * WORDS; i++) {
        const uint32_t codes = codes_of_halves<CODES>(f, i / WORDS, i % WORDS);
        halves.of[i / WORDS][i % WORDS] =
            CODES::MICRO ? ptx_mul_bf16x2(codes * 16, 0x7b007b00) : __vmaxu2(codes, 0x00010001) * 128 - 0x00800080;
    }
    if (__builtin_expect(has_special_scale<CODES>(f), 0)) mend_halves<CODES>(f, halves);
#pragma unroll
    for (int i = 0; i < 2 * WORDS; i++)
        halves.offset[i / WORDS][i % WORDS] = ptx_mul_bf16x2(halves.of[i / WORDS][i % WORDS], 0xc340c340);
    return halves;
}

/* The low or the high half of a word, twice: the instructions that use it take it from there. */
__device__ static inline uint32_t twice_of_half(uint32_t word, int half)
{
    uint32_t d;
    if (half == 0) asm("{\n.reg .b16 l, h;\nmov.b32 {l, h}, %1;\nmov.b32 %0, {l, l};\n}" : "=r"(d) : "r"(word));
    else asm("{\n.reg .b16 l, h;\nmov.b32 {l, h}, %1;\nmov.b32 %0, {h, h};\n}" : "=r"(d) : "r"(word));
    return d;
}

/* Four codes of a row in the low half: prmt finds 192 + 2 v for each number v in a table by magnitude, one table for each sign; where a
 * code has the other sign, the bit that tells so makes prmt repeat the byte's highest bit, which is 0.  The sum of both is the low byte of
 * a bf16 from 128 to 256, whose last place is 1, and one fma with half of the scale makes it v times the scale, exactly. */
__device__ static inline void decode_row(uint32_t codes, uint32_t half, uint32_t offset, uint32_t &first, uint32_t &second)
{
    const uint32_t bytes = ptx_prmt(0x43424140, 0x4c484644, codes) + ptx_prmt(0x3d3e3f40, 0x34383a3c, codes ^ 0x8888);
    first = ptx_fma_bf16x2(ptx_prmt(bytes, 0x43434343, 0x4140), half, offset);
    second = ptx_fma_bf16x2(ptx_prmt(bytes, 0x43434343, 0x4342), half, offset);
}

template <class CODES> __device__ static inline void decode_fragments(const fragment_codes &codes, uint32_t (&to)[4][4])
{
    constexpr int WORDS = fragment_halves<CODES>::WORDS;
    const fragment_halves<CODES> halves = fragment_halves_of<CODES>(codes);
#pragma unroll
    for (int j = 0; j < 4; j++)
#pragma unroll
        for (int row = 0; row < 2; row++) {
            const int block = CODES::MICRO ? j : j / 2, word = block % WORDS, half = block / WORDS;
            decode_row(row == 0 ? codes.words[j] : codes.words[j] >> 16, twice_of_half(halves.of[row][word], half),
                       twice_of_half(halves.offset[row][word], half), to[j][row], to[j][2 + row]);
        }
}
