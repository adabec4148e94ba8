/* From codes of four bits in shared memory to the first operand of wgmma in registers.
 *
 * Of each 16 columns of a row a thread needs four, 2 c, 2 c + 1, 2 c + 8 and 2 c + 9 (c its lane modulo 4): a byte of each of two words.
 * prmt finds 192 + 2 v for each code v in a table by magnitude, one table for each sign; where a code has the other sign, the bit that
 * tells so makes prmt repeat the byte's highest bit, which is 0: the sum of both is the number.  It is the low byte of a bf16 from 128 to
 * 256, whose last place is 1, and one fma with half of the scale makes it v times the scale, exactly. */
#pragma once

#include "cuda/dequantize/small_floats.cuh"
#include "cuda/sm90/kernels/register_config.cuh"

/* How a thread reads, the same all the time. */
struct register_reader {
    uint32_t codes;                       /* address of its first row's codes in stage 0 */
    uint32_t places[4];                   /* of its first row's codes of each step, as the swizzle has them; the second row's differ by 16 */
    uint32_t scales;                      /* address of its first row's scales */
    uint32_t select;                      /* its bytes of two words, for prmt */
    uint32_t shift[2];                    /* MXFP4: four scales of either row out of two words, for prmt */
};

/* What a thread needs for a step: 64 codes each of two neighbouring rows. */
struct register_codes { uint4 v[2][2]; };

/* Row 2 g + e of a warp's 16 is row g + 8 e of wgmma's, so that a thread has sums of neighbouring columns of D. */
template <class CONFIG> __device__ static inline register_reader register_reader_of(uint32_t shared)
{
    const uint32_t lane = __shfl_sync(0xffffffff, threadIdx.x % 32, threadIdx.x % 32);
    const uint32_t row = __shfl_sync(0xffffffff, threadIdx.x % 128 / 32 * 16, 0) + lane / 4 * 2, c = lane % 4;
    const uint32_t flip = row % 8 * 16;
    return { shared + CONFIG::AT_CODES + row * 128, { flip, flip ^ 32, flip ^ 64, flip ^ 96 }, 0, c * 0x1111 + 0x4040,
             { 0x3210, 0x3210 } };
}

/* Step NUMBER of the stage. */
template <class CONFIG, int NUMBER> __device__ static inline register_codes read_step(const register_reader &reader, uint32_t stage)
{
    const uint32_t first = reader.codes + stage * CONFIG::CODE_BYTES;
    const uint32_t near = first + reader.places[NUMBER], far = first + (reader.places[NUMBER] ^ 16);
    return { { { load_shared_v4(near), load_shared_v4(far) }, { load_shared_v4(far + 128), load_shared_v4(near + 128) } } };
}

/* Scales of two steps, of both rows: of NVFP4 a word for each, of MXFP4 one word. */
template <class CODES> struct register_scales { uint32_t words[2][CODES::MICRO ? 2 : 1]; };

template <class CONFIG>
__device__ static inline register_scales<typename CONFIG::CODES> read_scales(const register_reader &reader, int32_t step)
{
    constexpr int WORDS = CONFIG::CODES::MICRO ? 2 : 1;
    register_scales<typename CONFIG::CODES> scales;
#pragma unroll
    for (int row = 0; row < 2; row++) {
        const uint32_t from = reader.scales + row * CONFIG::SCALE_PITCH + step * (BSMI_K_STEP / CONFIG::BLOCK);
#pragma unroll
        for (int word = 0; word < WORDS; word++) scales.words[row][word] = load_shared(from + 4 * word);
        if (!CONFIG::CODES::MICRO) scales.words[row][0] = ptx_prmt(scales.words[row][0], load_shared(from + 4), reader.shift[row]);
    }
    return scales;
}

/* Halves of the scales of a step, and what makes 192 times them zero: of each row, those of NVFP4's four blocks or of MXFP4's two, block i in
 * word i % WORDS. */
template <class CODES> struct register_halves {
    static constexpr int WORDS = CODES::MICRO ? 2 : 1;
    uint32_t of[2][WORDS], offset[2][WORDS];
};

/* The i-th word of codes, each in half of it. */
template <class CODES, int STEP> __device__ static inline uint32_t codes_of_scales(const register_scales<CODES> &scales, int row, int i)
{
    const uint32_t word = scales.words[row][CODES::MICRO ? STEP : 0];
    return CODES::MICRO ? word >> 8 * i & 0x00ff00ff : ptx_prmt(word, 0, STEP == 0 ? 0x4140 : 0x4342);
}

/* NaN among them; of ue4m3 perhaps signs, too. */
template <class CODES> __device__ static inline uint32_t special_half(uint32_t codes, uint32_t half)
{
    constexpr uint32_t NAN_CODE = CODES::MICRO ? 0x7f : 0xff;
    if (CODES::MICRO) half = ptx_mul_bf16x2((codes & 0x007f007f) * 16, 0x7b007b00);
    if ((codes & NAN_CODE) == NAN_CODE) half = (half & 0xffff0000) | 0x7fc0;
    if ((codes >> 16 & NAN_CODE) == NAN_CODE) half = (half & 0xffff) | 0x7fc00000;
    return half;
}

/* e8m0: 2^(code - 128).  ue4m3: its bits, where bf16 has them, and a power of two that mends the exponent.  SPECIAL: there may be NaN. */
template <class CODES, int STEP, bool SPECIAL> __device__ static inline register_halves<CODES> halves_of(const register_scales<CODES> &scales)
{
    constexpr int WORDS = register_halves<CODES>::WORDS;
    register_halves<CODES> halves;
#pragma unroll
    for (int i = 0; i < 2 * WORDS; i++) {
        const uint32_t codes = codes_of_scales<CODES, STEP>(scales, i / WORDS, i % WORDS);
        uint32_t &half = halves.of[i / WORDS][i % WORDS];
        half = CODES::MICRO ? ptx_mul_bf16x2(codes * 16, 0x7b007b00) : codes * 128 - 0x00800080;
        if (SPECIAL) half = special_half<CODES>(codes, half);
    }
#pragma unroll
    for (int i = 0; i < 2 * WORDS; i++) halves.offset[i / WORDS][i % WORDS] = ptx_mul_bf16x2(halves.of[i / WORDS][i % WORDS], 0xc340c340);
    return halves;
}

/* The low or the high half of a word, twice: the instructions that use it take it from there. */
__device__ static inline uint32_t twice(uint32_t word, int half)
{
    uint32_t d;
    if (half == 0) asm("{\n.reg .b16 l, h;\nmov.b32 {l, h}, %1;\nmov.b32 %0, {l, l};\n}" : "=r"(d) : "r"(word));
    else asm("{\n.reg .b16 l, h;\nmov.b32 {l, h}, %1;\nmov.b32 %0, {h, h};\n}" : "=r"(d) : "r"(word));
    return d;
}

/* Four codes, of 16 columns. */
__device__ static inline void decode_four(uint32_t low, uint32_t high, uint32_t select, uint32_t half, uint32_t offset, uint32_t &first,
                                          uint32_t &second)
{
    const uint32_t codes = ptx_prmt(low, high, select);
    const uint32_t bytes = ptx_prmt(0x43424140, 0x4c484644, codes) + ptx_prmt(0x3d3e3f40, 0x34383a3c, codes ^ 0x8888);
    first = ptx_fma_bf16x2(ptx_prmt(bytes, 0x43434343, 0x4140), half, offset);
    second = ptx_fma_bf16x2(ptx_prmt(bytes, 0x43434343, 0x4342), half, offset);
}

/* operand: of four products.  STEP: 0 or 1 of the two that the scales are of. */
template <class CODES, int STEP, bool SPECIAL>
__device__ static inline void decode_step(const register_reader &reader, const register_codes &codes, const register_scales<CODES> &scales,
                                          uint32_t (&operand)[16])
{
    const register_halves<CODES> halves = halves_of<CODES, STEP, SPECIAL>(scales);
#pragma unroll
    for (int row = 0; row < 2; row++)
#pragma unroll
        for (int product = 0; product < 4; product++) {
            const uint4 &v = codes.v[row][product / 2];
            const uint32_t half = halves.of[row][CODES::MICRO ? product % 2 : 0], offset = halves.offset[row][CODES::MICRO ? product % 2 : 0];
            decode_four(product % 2 == 0 ? v.x : v.z, product % 2 == 0 ? v.y : v.w, reader.select, twice(half, product / 2),
                        twice(offset, product / 2), operand[4 * product + row], operand[4 * product + 2 + row]);
        }
}
