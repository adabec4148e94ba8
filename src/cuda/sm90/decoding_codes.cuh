/* From codes in shared memory to wgmma's registers: a step of 64 columns of two rows at a time.
 *
 * A thread's part of 16 columns is 2 c, 2 c + 1, 2 c + 8, 2 c + 9 of its two rows (wgmma_registers.cuh): every lane of a row reads all
 * codes of the row, and picks its own.  Its two rows are neighbours, so that it has pairs of neighbouring columns of D to store. */
#pragma once

#include "cuda/common/small_floats.cuh"
#include "decoding_config.cuh"

/* What a thread has read of its two rows: 64 codes each, in two halves, and the scales of each: four, or two in the low bytes. */
template <class CODES> struct raw_codes {
    uint4 row[2][2][CODES::NIBBLES ? 1 : 2];
    uint32_t scales[2];
};

/* How a thread decodes, the same all the time. */
struct code_reader {
    uint32_t codes, scales;               /* addresses of its first row, within a stage */
    uint32_t swizzle[2];                  /* of its two rows: to be xored into addresses of 16 bytes */
    uint32_t pick;                        /* for __byte_perm: this lane's bytes */
    small_float f;                        /* codes_bytes */
    int32_t element;
};

__device__ static inline uint32_t first_row_of_thread()
{
    const uint32_t thread = threadIdx.x % 128;
    return thread / 32 * 16 + thread % 32 / 4 * 2;
}

/* The tile begins with row `column` of B. */
template <class CONFIG> __device__ static inline void aim(code_reader &reader, uint32_t group, int32_t column)
{
    const uint32_t row = group * 64 + first_row_of_thread(), of_piece = row + (uint32_t)column % 128;
    reader.codes = row * 128;
    reader.swizzle[0] = row % 8 * 16, reader.swizzle[1] = (row + 1) % 8 * 16;
    reader.scales = of_piece % 32 * 16 + of_piece / 32 * 4;
}

template <class CONFIG> __device__ static inline code_reader code_reader_of(const bsmi_gemm_parameters &p)
{
    const uint32_t c = threadIdx.x % 4;
    code_reader reader = {};
    reader.pick = CONFIG::CODES::NIBBLES ? c | (c + 4) << 4 : (2 * c) | (2 * c + 1) << 4;
    reader.element = p.code_element;
    if (!CONFIG::CODES::NIBBLES && p.code_element != BSM_INT8) reader.f = small_float_of(p.code_element);
    return reader;
}

/* Step `number` of the stage. */
template <class CONFIG>
__device__ static inline void read_codes(raw_codes<typename CONFIG::CODES> &raw, const code_reader &reader, uint32_t shared, uint32_t stage,
                                         uint32_t number)
{
    constexpr uint32_t WORDS = CONFIG::CODES::NIBBLES ? 1 : 2;
    const uint32_t codes = shared + CONFIG::AT_CODES + stage * CONFIG::CODE_BYTES + reader.codes;
    const uint32_t scales = shared + CONFIG::AT_SCALES + stage * CONFIG::SCALE_BYTES + reader.scales
                          + number * BSMI_K_STEP / CONFIG::PIECE_COLUMNS * CONFIG::PIECE_BYTES;
    const uint32_t behind = CONFIG::CODES::MICRO ? 0 : number % 2 * 16;
#pragma unroll
    for (uint32_t row = 0; row < 2; row++) {
#pragma unroll
        for (uint32_t word = 0; word < 2 * WORDS; word++)
            raw.row[row][word / WORDS][word % WORDS] =
                load_shared_v4(codes + row * 128 + (((number * 2 * WORDS + word) * 16) ^ reader.swizzle[row]));
        raw.scales[row] = load_shared(scales + row * 16) >> behind;
    }
}

/* This lane's eight codes of the row, as decode_nibbles and decode_codes take them. */
__device__ static inline uint32_t own_nibbles(uint4 v, uint32_t pick)
{
    return __byte_perm(__byte_perm(v.x, v.y, pick), __byte_perm(v.z, v.w, pick), 0x5410);
}
__device__ static inline octet own_bytes(const uint4 (&v)[2], uint32_t pick)
{
    return { own_nibbles(v[0], pick), own_nibbles(v[1], pick) };
}

/* A scale for each of two pieces of 16 columns, of this half of the step. */
struct scale_pairs { uint32_t first, second; };

template <class CODES> __device__ static inline scale_pairs scales_of(uint32_t scales, int half)
{
    if (CODES::MICRO)
        return { scale_pair(BSM_UE4M3, scales >> 16 * half & 0xff, 0), scale_pair(BSM_UE4M3, scales >> (16 * half + 8) & 0xff, 0) };
    const uint32_t code = scales >> 8 * half & 0xff, pair = code == 255 ? 0x7fc07fc0 : code * 0x00800080;
    return { pair, pair };
}

__device__ static inline uint4 decode_own(const code_reader &reader, const uint4 (&v)[1])
{
    return decode_nibbles(own_nibbles(v[0], reader.pick));
}
__device__ static inline uint4 decode_own(const code_reader &reader, const uint4 (&v)[2])
{
    return decode_codes(reader.element, reader.f, own_bytes(v, reader.pick));
}

/* Four operands of 64 x 16: this thread's parts of them. */
template <class CODES>
__device__ static inline void decode_raw(uint32_t (&a)[4][4], const raw_codes<CODES> &raw, const code_reader &reader)
{
#pragma unroll
    for (int half = 0; half < 2; half++)
#pragma unroll
        for (int row = 0; row < 2; row++) {
            const scale_pairs scales = scales_of<CODES>(raw.scales[row], half);
            const uint4 v = decode_own(reader, raw.row[row][half]);
            uint32_t(&first)[4] = a[2 * half], (&second)[4] = a[2 * half + 1];
            first[row] = ptx_mul_bf16x2(v.x, scales.first), first[row + 2] = ptx_mul_bf16x2(v.y, scales.first);
            second[row] = ptx_mul_bf16x2(v.z, scales.second), second[row + 2] = ptx_mul_bf16x2(v.w, scales.second);
        }
}
