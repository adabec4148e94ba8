/* From codes of e2m1 in shared memory to bf16 in registers, as the first operand of wgmma: a step of 64 columns of a warp's 16 rows at a time.
 *
 * Row 2 g + e of them is row g + 8 e of the operand, so that a thread has sums of neighbouring columns of D.  A thread, lane 4 g + c, needs
 * of each 16 columns of its two rows columns 2 c and 2 c + 1, and those 8 behind them. */
#pragma once

#include "cuda/common/small_floats.cuh"
#include "decoding_wide_config.cuh"

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

/* The scale of the j-th 16 columns, twice; scales: of a row, from the step's first block on. */
template <class CODES> __device__ static inline uint32_t scale_of_columns(uint32_t scales, int j)
{
    if (CODES::MICRO) return scale_pair(BSM_UE4M3, scales >> j * 8 & 0xff, 0);
    const uint32_t code = scales >> j / 2 * 8 & 0xff;
    return code == 255 ? 0x7fc07fc0 : code * 0x00800080;
}

/* The j-th 16 columns. */
template <class CODES> __device__ static inline void decode_fragment(const fragment_codes &codes, int j, uint32_t (&to)[4])
{
    const uint32_t of_first = scale_of_columns<CODES>(codes.scales[0], j), of_second = scale_of_columns<CODES>(codes.scales[1], j);
    const uint4 decoded = decode_nibbles(codes.words[j]);
    to[0] = ptx_mul_bf16x2(decoded.x, of_first), to[2] = ptx_mul_bf16x2(decoded.y, of_first);
    to[1] = ptx_mul_bf16x2(decoded.z, of_second), to[3] = ptx_mul_bf16x2(decoded.w, of_second);
}
