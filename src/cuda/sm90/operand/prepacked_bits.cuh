/* Where the bits of 16 codes lie in two words of prepacked weights. */
#pragma once

#include <stdint.h>

/* Of a pair of codes, one in each half: signs and magnitudes as bf16 has its sign, the last bits of its exponent, and
 * the first of its mantissa. */
constexpr uint32_t PREPACKED_PAIR = 0x81c081c0;

/* Each pair is a word rotated to the right by so many bits, and masked: of the first word three, of the second three,
 * and two of a third word, which has these bits of the first one, and others of the second one, shifted left by two. */
__device__ static constexpr int prepacked_rotation(int pair)
{
    return pair == 7 ? 4 : pair == 6 ? -2 : pair % 3 == 0 ? 0 : pair % 3 == 1 ? -6 : 6;
}
constexpr uint32_t PREPACKED_REST = 0x0c180c18;

__device__ static inline uint32_t rotated(uint32_t word, int right)
{
    return right < 0 ? word << -right : right == 0 ? word : __funnelshift_r(word, word, right);
}

/* Those rotated to the left lose nothing that the mask would keep. */
__device__ static inline void unpack_pairs(uint32_t first, uint32_t second, uint32_t (&pairs)[8])
{
    const uint32_t shifted = second << 2, words[3] = { first, second, shifted ^ ((first ^ shifted) & PREPACKED_REST) };
#pragma unroll
    for (int i = 0; i < 8; i++) pairs[i] = rotated(words[i / 3], prepacked_rotation(i)) & PREPACKED_PAIR;
}

/* The reverse. */
__device__ static inline uint2 pack_pairs(const uint32_t (&pairs)[8])
{
    uint32_t words[3] = { 0, 0, 0 };
#pragma unroll
    for (int i = 0; i < 8; i++) words[i / 3] |= __funnelshift_l(pairs[i], pairs[i], prepacked_rotation(i) & 31);
    return make_uint2(words[0] | (words[2] & PREPACKED_REST), words[1] | (words[2] & ~PREPACKED_REST) >> 2);
}
