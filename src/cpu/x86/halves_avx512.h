/* Codes into fp32 by way of fp16 (halves.h), with AVX-512. */
#ifndef BSMI_HALVES_AVX512_H
#define BSMI_HALVES_AVX512_H

#include "halves_avx2.h"

#define AVX512 __attribute__((target("avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512dq")))
#define AVX512_INLINE AVX512 __attribute__((always_inline, unused)) static inline

/* 32 upper bytes, see upper_bytes; e4m3 has one NaN of either sign, whose bits would be 480. */
struct thirty_two { __m512 low, high; };
AVX512_INLINE struct thirty_two decode_thirty_two(bsm_element element, __m256i bytes)
{
    if (element == BSM_INT8)
        return (struct thirty_two){ _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm256_castsi256_si128(bytes))),
                                    _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm256_extracti128_si256(bytes, 1))) };
    __m512i halves = _mm512_slli_epi16(_mm512_cvtepu8_epi16(bytes), 8);
    if (bsmi_half_is_moved(element))
        halves = _mm512_and_si512(_mm512_srai_epi16(halves, 1), _mm512_set1_epi16((short)0xbfff));
    if (element == BSM_E4M3) {
        const __m256i nan = _mm256_cmpeq_epi8(_mm256_and_si256(bytes, _mm256_set1_epi8(0x7f)), _mm256_set1_epi8(0x7f));
        halves = _mm512_mask_mov_epi16(halves, (__mmask32)_mm256_movepi8_mask(nan), _mm512_set1_epi16(0x7e00));
    }
    return (struct thirty_two){ _mm512_cvtph_ps(_mm512_castsi512_si256(halves)),
                                _mm512_cvtph_ps(_mm512_extracti64x4_epi64(halves, 1)) };
}

#endif
