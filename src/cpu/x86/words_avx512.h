/* Codes of 16 rows, transposed and made the 16-bit words that vcvtph2ps (or, for int8, vpmovsxwd) takes, with AVX-512:
 * what words_avx2.h does for 8.  Include in files of x86-64 alone.
 *
 * A group is 64 of K.  Of each row its codes are one vector, unpacked no further than to words of two codes (4 bits: of
 * four); 8 such vectors are transposed within their quarters, and quarters of the same K put side by side.  Shifts and
 * multiplications then put every element where fp16 has it; those of 4 bits as subnormal numbers, where their exponents
 * have the same distance. */
#ifndef BSMI_WORDS_AVX512_H
#define BSMI_WORDS_AVX512_H

#include "halves_avx512.h"
#include "words_avx2.h"

/* 64 of K for 16 rows: four times [place][half of a vector][8 rows]. */
typedef bsmi_words bsmi_wide_words[4];

/* Value = number of a word * factor. */
AVX512_INLINE float wide_factor(bsm_element element)
{
    return element == BSM_E2M1 ? 0x1p14F : bsmi_half_factors[element];
}

/* Words of k = 16 q; those of the next k of the same sixteen follow 64 bytes later. */
enum { BSMI_WIDE_TO_NEXT = 32 };
AVX512_INLINE const uint16_t *wide_words_of_sixteen(bsm_element element, bsmi_wide_words words, int64_t q)
{
    const uint16_t *const first = words[0][0][0];
    return bits_of(element) == 4 ? first + q % 2 * 16 * BSMI_WIDE_TO_NEXT + q / 2 * 16
                                 : first + q / 2 * 16 * BSMI_WIDE_TO_NEXT + q % 2 * 16;
}

AVX512_INLINE void transpose_eight_wide(__m512i v[8])
{
#pragma GCC unroll 3
    for (int stage = 0; stage < 3; stage++) {
        __m512i w[8];
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) {
            w[2 * i] = _mm512_unpacklo_epi16(v[i], v[i + 4]);
            w[2 * i + 1] = _mm512_unpackhi_epi16(v[i], v[i + 4]);
        }
#pragma GCC unroll 8
        for (int i = 0; i < 8; i++) v[i] = w[i];
    }
}

/* 64 codes of 6 or 8 bits of one row. */
AVX512_INLINE __m512i load_wide(bsm_element element, const uint8_t *row)
{
    if (bits_of(element) == 8) return _mm512_loadu_si512(row);
    const __m512i quarters = _mm512_setr_epi32(0, 1, 2, 2, 3, 4, 5, 5, 6, 7, 8, 8, 9, 10, 11, 11);
    const __m128i places = _mm_setr_epi8(0, 1, 1, 2, 3, 4, 4, 5, 6, 7, 7, 8, 9, 10, 10, 11);
    const __m512i bytes = _mm512_permutexvar_epi32(quarters, _mm512_maskz_loadu_epi32(0x0fff, row));
    return _mm512_shuffle_epi8(bytes, _mm512_broadcast_i32x4(places));
}

/* A code of 4 or 6 bits that ends at bit `end` of its word, where fp16 has it. */
AVX512_INLINE __m512i place_bits_wide(bsm_element element, int end, __m512i word)
{
    const __m512i top = end == 16 ? word : _mm512_mullo_epi16(word, _mm512_set1_epi16((short)(1 << (16 - end))));
    switch (element) {
    case BSM_E3M2: return _mm512_and_si512(_mm512_srai_epi16(top, 2), _mm512_set1_epi16((short)0x9f00));
    case BSM_E2M3: return _mm512_and_si512(_mm512_srai_epi16(top, 3), _mm512_set1_epi16((short)0x8f80));
    default: return _mm512_and_si512(_mm512_srai_epi16(top, 3), _mm512_set1_epi16((short)0x8e00));
    }
}

/* 32 codes of 6 bits: word i takes the two bytes that code i lies in and moves it up to their end, then down to where
 * fp16 has it.  Each quarter of the vector has 8 codes, 6 bytes. */
AVX512_INLINE struct thirty_two decode_stream(bsm_element element, const uint8_t *row)
{
    const __m512i quarters = _mm512_setr_epi32(0, 1, 1, 1, 1, 2, 2, 2, 3, 4, 4, 4, 4, 5, 5, 5);
    const __m256i places = _mm256_setr_epi8(0, 1, 0, 1, 1, 2, 2, 3, 3, 4, 3, 4, 4, 5, 5, 6,
                                            2, 3, 2, 3, 3, 4, 4, 5, 5, 6, 5, 6, 6, 7, 7, 8);
    const __m512i up = _mm512_set1_epi64(10 | 4LL << 16 | 6LL << 32 | 8LL << 48);
    const __m512i bytes =
        _mm512_permutexvar_epi32(quarters, _mm512_castsi256_si512(_mm256_maskz_loadu_epi32(0x3f, row)));
    const __m512i top = _mm512_sllv_epi16(_mm512_shuffle_epi8(bytes, _mm512_broadcast_i64x4(places)), up);
    const __m512i halves = place_bits_wide(element, 16, top);
    return (struct thirty_two){ _mm512_cvtph_ps(_mm512_castsi512_si256(halves)),
                                _mm512_cvtph_ps(_mm512_extracti64x4_epi64(halves, 1)) };
}

/* 64 codes of 4 bits of two rows. */
AVX512_INLINE __m512i load_two_wide(const uint8_t *low, const uint8_t *high)
{
    return _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_loadu_si256((const __m256i *)(const void *)low)),
                              _mm256_loadu_si256((const __m256i *)(const void *)high), 1);
}

AVX512_INLINE __m512i place_byte_wide(bsm_element element, bool upper, __m512i word)
{
    const __m512i one = _mm512_set1_epi16((short)(upper ? 0x0100 : 0x0001)),
                  most = _mm512_set1_epi16((short)(upper ? 0x8000 : 0x0080));
    switch (element) {
    case BSM_E4M3: return _mm512_and_si512(_mm512_maddubs_epi16(most, word), _mm512_set1_epi16((short)0xbf80));
    case BSM_INT8: return _mm512_maddubs_epi16(one, word);
    default: return upper ? _mm512_and_si512(word, _mm512_set1_epi16((short)0xff00)) : _mm512_slli_epi16(word, 8);
    }
}

/* The even or the odd k of vector i of 6 or 8 bits. */
AVX512_INLINE __m512i place_wide(bsm_element element, int i, bool odd, __m512i word)
{
    if (bits_of(element) == 8) return place_byte_wide(element, odd, word);
    return place_bits_wide(element, i % 2 == 0 ? odd ? 12 : 6 : odd ? 16 : 10, word);
}

AVX512_INLINE void store_wide(bsmi_wide_words words, int at, __m512i v)
{
    _mm512_store_si512((uint16_t *)words + at * BSMI_WIDE_TO_NEXT, v);
}

AVX512_INLINE void transpose_nibbles_wide(const uint8_t *const *rows, int64_t byte, bsmi_wide_words words)
{
    __m512i v[8];
#pragma GCC unroll 8
    for (int r = 0; r < 8; r++) v[r] = load_two_wide(rows[r] + byte, rows[r + 8] + byte);
    transpose_eight_wide(v);
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) {
        const __m512i four = _mm512_shuffle_i64x2(v[i], v[i], 0xd8);
#pragma GCC unroll 4
        for (int c = 0; c < 4; c++) store_wide(words, 4 * i + c, place_bits_wide(BSM_E2M1, 4 * c + 4, four));
    }
}

/* e4m3 alone has a NaN that is no fp16 NaN when it is moved: adding 1 to it turns its sign. */
AVX512_INLINE bool any_nan_wide(const __m512i v[8], const __m512i w[8])
{
    __m512i turned = _mm512_setzero_si512();
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) {
        turned = _mm512_ternarylogic_epi32(turned, v[i], _mm512_add_epi8(v[i], _mm512_set1_epi8(1)), 0xf6);
        turned = _mm512_ternarylogic_epi32(turned, w[i], _mm512_add_epi8(w[i], _mm512_set1_epi8(1)), 0xf6);
    }
    return _mm512_movepi8_mask(turned) != 0;
}

/* 64 of K of 16 rows, from k on. */
AVX512_INLINE void transpose_wide(bsm_element element, const uint8_t *const *rows, int64_t k, bsmi_wide_words words)
{
    const __m512i low = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11),
                  high = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
    const int64_t byte = k / 8 * bits_of(element);
    if (bits_of(element) == 4) {
        transpose_nibbles_wide(rows, byte, words);
        return;
    }
    __m512i v[8], w[8];
#pragma GCC unroll 8
    for (int r = 0; r < 8; r++)
        v[r] = load_wide(element, rows[r] + byte), w[r] = load_wide(element, rows[r + 8] + byte);
    const bool nans = element == BSM_E4M3 && any_nan_wide(v, w);
    transpose_eight_wide(v);
    transpose_eight_wide(w);
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) {
        const __m512i first = _mm512_permutex2var_epi64(v[i], low, w[i]),
                      second = _mm512_permutex2var_epi64(v[i], high, w[i]);
        store_wide(words, 2 * i, place_wide(element, i, false, first));
        store_wide(words, 2 * i + 1, place_wide(element, i, true, first));
        store_wide(words, 16 + 2 * i, place_wide(element, i, false, second));
        store_wide(words, 16 + 2 * i + 1, place_wide(element, i, true, second));
    }
    for (int i = 0; i < 4 && nans; i++) bsmi_mark_nans(words[i]);
}

AVX512_INLINE __m512 decode_wide(bsm_element element, const uint16_t *words)
{
    const __m256i sixteen = _mm256_load_si256((const __m256i *)(const void *)words);
    return element == BSM_INT8 ? _mm512_cvtepi32_ps(_mm512_cvtepi16_epi32(sixteen)) : _mm512_cvtph_ps(sixteen);
}

#endif
