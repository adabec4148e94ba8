/* Groups of codes into words: words_avx2.h. */
#if defined(__x86_64__)
#include "words_avx2.h"

/* 480 becomes NaN. */
AVX2 void bsmi_mark_nans(bsmi_words words)
{
    for (int i = 0; i < 16; i++) {
        __m256i *const at = (__m256i *)(void *)words[i];
        const __m256i word = _mm256_load_si256(at);
        const __m256i nan =
            _mm256_cmpeq_epi16(_mm256_and_si256(word, _mm256_set1_epi16(0x7fff)), _mm256_set1_epi16(0x3f80));
        _mm256_store_si256(at, _mm256_or_si256(word, _mm256_and_si256(nan, _mm256_set1_epi16(0x7e00))));
    }
}

/* The second half of a line is read while it is still in a cache: rows 4 KiB apart share the sets of the first-level
 * one. */
AVX2_INLINE void transpose_element(bsm_element element, const uint8_t *const *rows, int64_t k, bsmi_words words[2])
{
    if (bits_of(element) != 4 || k % 128 == 0)
#pragma GCC unroll 8
        for (int r = 0; r < 8; r++)
            __builtin_prefetch(
                (const void *)((uintptr_t)rows[r] + (uintptr_t)(k / 8 * bits_of(element) + BSMI_ROWS_AHEAD)));
    transpose_words(element, rows, k, words[0]);
    transpose_words(element, rows, k + 32, words[1]);
}

AVX2 void bsmi_transpose_group(bsm_element element, const uint8_t *const *rows, int64_t k, bsmi_words words[2])
{
    BSMI_BY_ELEMENT(element, transpose_element, rows, k, words)
}
#else
typedef int bsmi_not_x86_64;              /* a translation unit needs a declaration */
#endif
