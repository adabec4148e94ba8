/* Codes into fp32 by way of fp16 (halves.h), with AVX2 and F16C.  The element is a constant where these are called: one copy of a
 * loop for each, chosen by BSMI_BY_ELEMENT. */
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

/* 32 codes into the upper bytes of fp16 numbers, those of moved elements one bit too high; int8 as it is. */
AVX2_INLINE __m256i upper_bytes(bsm_element element, __m256i codes)
{
    const int magnitude = element == BSM_E2M1 ? 7 : 31, up = element == BSM_E2M1 ? 1 : 0, sign_up = element == BSM_E2M1 ? 4 : 2;
    if (element != BSM_E2M1 && element != BSM_E2M3 && element != BSM_E3M2) return codes;
    const __m256i low = _mm256_slli_epi16(_mm256_and_si256(codes, _mm256_set1_epi8((char)magnitude)), up);
    const __m256i sign = _mm256_and_si256(codes, _mm256_set1_epi8((char)(magnitude + 1)));
    return _mm256_or_si256(low, _mm256_slli_epi16(sign, sign_up));
}

/* Bytes of upper_bytes into what decode_eight takes, within the halves of a vector: bytes 0-7 and 16-23, and the others. */
struct words { __m256i first, second; };
AVX2_INLINE struct words widen(bsm_element element, __m256i bytes)
{
    __m256i low = _mm256_setzero_si256(), high = bytes;
    if (element == BSM_INT8) low = high, high = _mm256_cmpgt_epi8(_mm256_setzero_si256(), bytes);
    if (bsmi_half_is_moved(element)) {
        low = _mm256_and_si256(_mm256_slli_epi16(bytes, 7), _mm256_set1_epi8((char)0x80));
        high = _mm256_or_si256(_mm256_and_si256(_mm256_srli_epi16(bytes, 1), _mm256_set1_epi8(0x3f)),
                               _mm256_and_si256(bytes, _mm256_set1_epi8((char)0x80)));
    }
    if (element == BSM_E4M3) {            /* one NaN of either sign */
        const __m256i magnitude = _mm256_set1_epi8(0x7f), nan = _mm256_cmpeq_epi8(_mm256_and_si256(bytes, magnitude), magnitude);
        high = _mm256_or_si256(high, _mm256_and_si256(nan, _mm256_set1_epi8(0x7e)));
    }
    return (struct words){ _mm256_unpacklo_epi8(low, high), _mm256_unpackhi_epi8(low, high) };
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
    if (bsmi_half_is_moved(element)) halves = _mm256_and_si256(_mm256_srai_epi16(halves, 1), _mm256_set1_epi16((short)0xbfff));
    if (element == BSM_E4M3) {
        const __m256i nan = _mm256_cmpeq_epi16(_mm256_and_si256(halves, _mm256_set1_epi16(0x7fff)), _mm256_set1_epi16(0x3f80));
        halves = _mm256_or_si256(halves, _mm256_and_si256(nan, _mm256_set1_epi16(0x7e00)));
    }
    return (struct sixteen){ _mm256_cvtph_ps(_mm256_castsi256_si128(halves)),
                             _mm256_cvtph_ps(_mm256_extracti128_si256(halves, 1)) };
}

#endif
