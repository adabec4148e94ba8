/* 16 codes as packings have them: what the kernels for AVX2 and AVX-512 share.  Include in files of x86-64 alone. */
#ifndef BSMI_BYTES_X86_H
#define BSMI_BYTES_X86_H

#include <immintrin.h>
#include <stdbool.h>
#include <string.h>

#define BYTES_INLINE __attribute__((target("avx2"), always_inline, unused)) static inline

typedef __m128i bytes;

BYTES_INLINE void store_bytes(bytes codes, unsigned char *to) { _mm_storeu_si128((__m128i *)(void *)to, codes); }

/* Two codes of 4 bits in a byte. */
BYTES_INLINE void store_nibbles(bytes codes, bool high_first, unsigned char *to)
{
    const __m128i places = _mm_set1_epi16(high_first ? 0x0110 : 0x1001);
    const __m128i pairs = _mm_maddubs_epi16(codes, places);
    _mm_storel_epi64((__m128i *)(void *)to, _mm_packus_epi16(pairs, pairs));
}

/* Four codes of 6 bits in three bytes. */
BYTES_INLINE void store_stream(bytes codes, unsigned char *to)
{
    const __m128i pairs = _mm_maddubs_epi16(codes, _mm_set1_epi16(0x4001));
    const __m128i fours = _mm_madd_epi16(pairs, _mm_set1_epi32(0x10000001));
    const __m128i packed =
        _mm_shuffle_epi8(fours, _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1));
    const int last = _mm_extract_epi32(packed, 2);
    _mm_storel_epi64((__m128i *)(void *)to, packed);
    memcpy(to + 8, &last, sizeof last);
}

#endif
