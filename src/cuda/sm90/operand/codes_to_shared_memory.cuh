/* From codes in shared memory to bf16 in shared memory: 32 columns of a row at a time. */
#pragma once

#include "cuda/sm90/mainloop/fused_config.cuh"
#include "elements.cuh"

/* What a thread has read: 32 codes, and the scales of their blocks from the lowest byte on. */
template <class CODES> struct raw_codes {
    uint4 codes[CODES::NIBBLES ? 1 : 2];
    uint32_t scales;
};
template <> struct raw_codes<codes_stream> { uint32_t codes[6], scales; };

/* How a thread reads codes and writes numbers, the same for all steps. */
struct code_reader {
    uint32_t row, of_stage;               /* its row of the tile, and of the stage: where the operand of wgmma has it */
    uint32_t half;                        /* of the 64 columns of a step */
    uint32_t scales;                      /* address of its row's, within a stage */
    bool notifies;                        /* barriers, for its warp */
};

/* Row 16 w + 2 g + e of the tile lies in row 16 w + g + 8 e of the stage, so that a thread of the consumers has sums of
 * neighbouring columns of D.  Eight lanes that access memory together have rows that differ modulo 8 in both: no two of
 * them meet in a bank. */
template <class CONFIG> __device__ static inline code_reader code_reader_of()
{
    const uint32_t lane = __shfl_sync(0xffffffff, threadIdx.x % 32, threadIdx.x % 32), warp = threadIdx.x % 128 / 32,
                   odd = (lane / 4 ^ lane / 8) & 1;
    const uint32_t first = warp % 2 * 32 + lane / 16 * 16;
    code_reader reader = {};
    reader.row = first + lane % 8 * 2 + odd;
    reader.of_stage = first + lane % 8 + 8 * odd;
    reader.half = warp / 2;
    reader.notifies = lane == 0;
    return reader;
}

/* The tile begins with row `column` of B. */
__device__ static inline void begin_tile(code_reader &reader, int32_t column)
{
    const uint32_t of_piece = reader.row + (uint32_t)column % 128;
    reader.scales = of_piece % 32 * 16 + of_piece / 32 * 4;
}

/* Half of the reader's row in step `number`; codes: the stage's. */
template <class CONFIG, int WORDS>
__device__ static inline void read_row(const code_reader &reader, uint32_t codes, uint32_t number, uint4 (&to)[WORDS])
{
#pragma unroll
    for (uint32_t word = 0; word < WORDS; word++)
        to[word] = load_shared_v4(codes + reader.row * 128
                                  + (((number * 2 + reader.half) * WORDS + word) ^ reader.row % 8) * 16);
}

/* Half a step of a stream is 16 bytes and 8, or 8 bytes and 16, which begin where 16 do. */
template <class CONFIG>
__device__ static inline void read_row(const code_reader &reader, uint32_t codes, uint32_t number, uint32_t (&to)[6])
{
    const uint32_t row = codes + number * CONFIG::STREAM_BOX_BYTES + reader.row * BSMI_STREAM_BOX_BYTES;
    const bool last = reader.half != 0;
    const uint4 four = load_shared_v4(row + reader.half * 32);
    const uint2 two = load_shared_v2(row + 16 + reader.half * 8);
    to[0] = last ? two.x : four.x, to[1] = last ? two.y : four.y, to[2] = last ? four.x : four.z;
    to[3] = last ? four.y : four.w, to[4] = last ? four.z : two.x, to[5] = last ? four.w : two.y;
}

/* Step `number` of the stage. */
template <class CONFIG>
__device__ static inline raw_codes<typename CONFIG::CODES> read_codes(const code_reader &reader, uint32_t shared,
                                                                      uint32_t stage, uint32_t number)
{
    raw_codes<typename CONFIG::CODES> raw;
    read_row<CONFIG>(reader, shared + CONFIG::AT_CODES + stage * CONFIG::CODE_BYTES, number, raw.codes);
    const uint32_t piece = number * BSMI_K_STEP / CONFIG::PIECE_COLUMNS * CONFIG::PIECE_BYTES;
    const uint32_t scales =
        load_shared(shared + CONFIG::AT_SCALES + stage * CONFIG::SCALE_BYTES + piece + reader.scales);
    raw.scales = scales >> (CONFIG::CODES::MICRO ? reader.half * 16 : (number % 2 * 2 + reader.half) * 8);
    return raw;
}

/* The scale of the i-th eight of them, twice.  e8m0 codes are less the exponents of their rows. */
template <class CODES> __device__ static inline uint32_t scale_of_octet(uint32_t scales, int i)
{
    if (CODES::MICRO) return scale_pair(BSM_UE4M3, scales >> i / 2 * 8 & 0xff, 0);
    const uint32_t code = scales & 0xff;
    return code == 255 ? 0x7fc07fc0 : code * 0x00800080;
}

/* What a thread makes of them: 32 numbers. */
struct decoded_codes { uint4 octets[4]; };

__device__ static inline uint32_t word_of(const uint4 &v, int i)
{
    return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w;
}

/* The i-th eight, without their scales. */
template <int ELEMENT> __device__ static inline uint4 decode_octet(const uint4 (&v)[1], int i)
{
    return decode_nibbles(word_of(v[0], i));
}
template <int ELEMENT> __device__ static inline uint4 decode_octet(const uint4 (&v)[2], int i)
{
    const uint32_t low = word_of(v[i / 2], i % 2 * 2), high = word_of(v[i / 2], i % 2 * 2 + 1);
    constexpr uint32_t FIRST = first_bytes<ELEMENT>(), LAST = last_bytes<ELEMENT>();
    return make_uint4(
        decode_bytes<ELEMENT>(__byte_perm(low, 0, FIRST)), decode_bytes<ELEMENT>(__byte_perm(low, 0, LAST)),
        decode_bytes<ELEMENT>(__byte_perm(high, 0, FIRST)), decode_bytes<ELEMENT>(__byte_perm(high, 0, LAST)));
}

/* Of a stream: 48 bits, which begin with a word or in its middle. */
template <int ELEMENT> __device__ static inline uint4 decode_octet(const uint32_t (&w)[6], int i)
{
    const bool odd = i % 2 != 0;
    const int first = i / 2 * 3 + odd;
    const uint32_t low = odd ? __funnelshift_r(w[first], w[first + 1], 16) : w[first],
                   high = odd ? w[first + 1] >> 16 : w[first + 1];
    const uint32_t rest = __funnelshift_r(low, high, 24);            /* from the fifth code on */
    return make_uint4(decode_bytes<ELEMENT>((low & 0x3f) | (low << 10 & 0x003f0000)),
                      decode_bytes<ELEMENT>((low >> 12 & 0x3f) | (low >> 2 & 0x003f0000)),
                      decode_bytes<ELEMENT>((rest & 0x3f) | (rest << 10 & 0x003f0000)),
                      decode_bytes<ELEMENT>((rest >> 12 & 0x3f) | (rest >> 2 & 0x003f0000)));
}

/* NaN and infinity, which are rare: looked for in all 32 codes at once. */
template <int ELEMENT> __device__ static inline void mend_octets(const uint4 (&)[1], decoded_codes &) {}
template <int ELEMENT> __device__ static inline void mend_octets(const uint32_t (&)[6], decoded_codes &) {}
template <int ELEMENT> __device__ static inline void mend_octets(const uint4 (&v)[2], decoded_codes &decoded)
{
    uint32_t special = 0;
#pragma unroll
    for (int i = 0; i < 8; i++) special |= special_bits<ELEMENT>(word_of(v[i / 4], i % 4));
    if (special == 0) return;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const uint32_t low = word_of(v[i / 2], i % 2 * 2), high = word_of(v[i / 2], i % 2 * 2 + 1);
        constexpr uint32_t FIRST = first_bytes<ELEMENT>(), LAST = last_bytes<ELEMENT>();
        uint4 &octet = decoded.octets[i];
        octet = make_uint4(mend_bytes<ELEMENT>(__byte_perm(low, 0, FIRST), octet.x),
                           mend_bytes<ELEMENT>(__byte_perm(low, 0, LAST), octet.y),
                           mend_bytes<ELEMENT>(__byte_perm(high, 0, FIRST), octet.z),
                           mend_bytes<ELEMENT>(__byte_perm(high, 0, LAST), octet.w));
    }
}

template <class CODES, int ELEMENT> __device__ static inline decoded_codes decode_raw(const raw_codes<CODES> &raw)
{
    decoded_codes decoded;
#pragma unroll
    for (int i = 0; i < 4; i++) decoded.octets[i] = decode_octet<ELEMENT>(raw.codes, i);
    mend_octets<ELEMENT>(raw.codes, decoded);
#pragma unroll
    for (int i = 0; i < 4; i++) decoded.octets[i] = multiply(decoded.octets[i], scale_of_octet<CODES>(raw.scales, i));
    return decoded;
}

template <class CONFIG>
__device__ static inline void write_decoded(const code_reader &reader, const decoded_codes &decoded, uint32_t shared,
                                            uint32_t stage)
{
    const uint32_t to = shared + CONFIG::AT_B + stage * CONFIG::B_BYTES + reader.of_stage * CONFIG::K_BYTES;
#pragma unroll
    for (int i = 0; i < 4; i++)
        store_shared_v4(to + ((reader.half * 4 + i) ^ reader.of_stage % 8) * 16, decoded.octets[i]);
}
