/* Codes into fp32 by way of fp16 (halves.h), with AVX2 and F16C.  The element is a constant where these are called: one
 * copy of a loop for each, chosen by BSMI_BY_ELEMENT. */
#ifndef BSMI_HALVES_AVX2_H
#define BSMI_HALVES_AVX2_H

#include "halves.h"
#include "lanes_avx2.h"

#define BSMI_BY_ELEMENT(element, function, ...) \
    switch (element) { \
    case BSM_E4M3: function(BSM_E4M3, __VA_ARGS__); break; \
    case BSM_E5M2: function(BSM_E5M2, __VA_ARGS__); break; \
    case BSM_E3M2: function(BSM_E3M2, __VA_ARGS__); break; \
    case BSM_E2M3: function(BSM_E2M3, __VA_ARGS__); break; \
    case BSM_E2M1: function(BSM_E2M1, __VA_ARGS__); break; \
    default: function(BSM_INT8, __VA_ARGS__); break; \
    }

/* The upper bytes of e2m1's numbers as fp16. */
AVX2_INLINE __m256i upper_bytes_of_e2m1(__m256i codes)
{
    const __m128i table = _mm_setr_epi8(0, 0x38, 0x3c, 0x3e, 0x40, 0x42, 0x44, 0x46, (char)0x80, (char)0xb8, (char)0xbc,
                                        (char)0xbe, (char)0xc0, (char)0xc2, (char)0xc4, (char)0xc6);
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(table), codes);
}

/* 32 codes into the upper bytes of fp16 numbers, those of moved elements one bit too high; int8 as it is. */
AVX2_INLINE __m256i upper_bytes(bsm_element element, __m256i codes)
{
    if (element == BSM_E2M1) return upper_bytes_of_e2m1(codes);
    if (element != BSM_E2M3 && element != BSM_E3M2) return codes;
    const __m256i low = _mm256_and_si256(codes, _mm256_set1_epi8(31)),
                  sign = _mm256_and_si256(codes, _mm256_set1_epi8(32));
    return _mm256_or_si256(low, _mm256_slli_epi16(sign, 2));
}

AVX2_INLINE __m256 decode_eight(bsm_element element, const uint16_t *words)
{
    const __m128i eight = _mm_load_si128((const __m128i *)(const void *)words);
    return element == BSM_INT8 ? _mm256_cvtepi32_ps(_mm256_cvtepi16_epi32(eight)) : _mm256_cvtph_ps(eight);
}

/* e4m3 has one NaN of either sign, whose bits would be 480. */
struct sixteen { __m256 low, high; };
AVX2_INLINE struct sixteen decode_sixteen(bsm_element element, __m128i bytes)
{
    if (element == BSM_INT8)
        return (struct sixteen){ _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes)),
                                 _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_unpackhi_epi64(bytes, bytes))) };
    __m256i halves = _mm256_slli_epi16(_mm256_cvtepu8_epi16(bytes), 8);
    if (bsmi_half_is_moved(element))
        halves = _mm256_and_si256(_mm256_srai_epi16(halves, 1), _mm256_set1_epi16((short)0xbfff));
    if (element == BSM_E4M3) {
        const __m256i nan =
            _mm256_cmpeq_epi16(_mm256_and_si256(halves, _mm256_set1_epi16(0x7fff)), _mm256_set1_epi16(0x3f80));
        halves = _mm256_or_si256(halves, _mm256_and_si256(nan, _mm256_set1_epi16(0x7e00)));
    }
    return (struct sixteen){ _mm256_cvtph_ps(_mm256_castsi256_si128(halves)),
                             _mm256_cvtph_ps(_mm256_extracti128_si256(halves, 1)) };
}

#endif
