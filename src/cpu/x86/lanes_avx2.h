/* What the packers for AVX2 and AVX-512 share: transposing bytes, and decoding scales.  Include in files of x86-64
 * alone. */
#ifndef BSMI_LANES_AVX2_H
#define BSMI_LANES_AVX2_H

#include "cpu/code_rows.h"
#include "core/core.h"

#include <immintrin.h>

#define AVX2 __attribute__((target("avx2,fma,f16c")))
#define AVX2_INLINE AVX2 __attribute__((always_inline, unused)) static inline

AVX2_INLINE __m256i load_two(const uint8_t *low, const uint8_t *high)
{
    return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)low)),
                                   _mm_loadu_si128((const __m128i *)(const void *)high), 1);
}

/* 16 x 16 bytes in each half: interleaving the first eight vectors with the last eight moves the highest bit of a
 * byte's address to the lowest place; four times exchanges row and column. */
AVX2_INLINE void transpose_bytes(__m256i v[16])
{
#pragma GCC unroll 4
    for (int stage = 0; stage < 4; stage++) {
        __m256i w[16];
#pragma GCC unroll 8
        for (int i = 0; i < 8; i++) {
            w[2 * i] = _mm256_unpacklo_epi8(v[i], v[i + 8]);
            w[2 * i + 1] = _mm256_unpackhi_epi8(v[i], v[i + 8]);
        }
#pragma GCC unroll 16
        for (int i = 0; i < 16; i++) v[i] = w[i];
    }
}

/* 8 x 8 words of two bytes in each half, in the same manner. */
AVX2_INLINE void transpose_eight(__m256i v[8])
{
#pragma GCC unroll 3
    for (int stage = 0; stage < 3; stage++) {
        __m256i w[8];
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) {
            w[2 * i] = _mm256_unpacklo_epi16(v[i], v[i + 4]);
            w[2 * i + 1] = _mm256_unpackhi_epi16(v[i], v[i + 4]);
        }
#pragma GCC unroll 8
        for (int i = 0; i < 8; i++) v[i] = w[i];
    }
}

/* 32 scale codes as the upper 16 bits of fp32 (e8m0), or as fp16 numbers of 2^-8 the value (ue4m3). */
struct scale_words { __m256i first, second; };
AVX2_INLINE struct scale_words scale_words(bsm_scale scale, __m256i codes)
{
    const __m256i code = scale == BSM_E8M0 ? codes : _mm256_and_si256(codes, _mm256_set1_epi8(0x7f)),
                  bit = _mm256_set1_epi8(0x40);
    const __m256i low = _mm256_and_si256(_mm256_slli_epi16(code, 7), _mm256_set1_epi8((char)0x80));
    const __m256i high = _mm256_and_si256(_mm256_srli_epi16(code, 1), _mm256_set1_epi8(0x7f));
    if (scale == BSM_E8M0) {              /* 0 is 2^-127, a subnormal number, 255 is NaN: the same bit more than code <<
                                             23 */
        const __m256i special = _mm256_or_si256(_mm256_cmpeq_epi8(code, _mm256_setzero_si256()),
                                                _mm256_cmpeq_epi8(code, _mm256_set1_epi8((char)255)));
        const __m256i low_bits = _mm256_or_si256(low, _mm256_and_si256(special, bit));
        return (struct scale_words){ _mm256_unpacklo_epi8(low_bits, high), _mm256_unpackhi_epi8(low_bits, high) };
    }
    const __m256i nan = _mm256_and_si256(_mm256_cmpeq_epi8(code, _mm256_set1_epi8(0x7f)), bit),
                  bits = _mm256_or_si256(high, nan);
    return (struct scale_words){ _mm256_unpacklo_epi8(low, bits), _mm256_unpackhi_epi8(low, bits) };
}

/* 16 scales of columns 0-3, 8-11, 4-7, 12-15. */
AVX2_INLINE void store_scales(bsm_scale scale, __m256i words, float *values)
{
    const __m256i zero = _mm256_setzero_si256();
    __m256 first = _mm256_castsi256_ps(_mm256_unpacklo_epi16(zero, words)),
           second = _mm256_castsi256_ps(_mm256_unpackhi_epi16(zero, words));
    if (scale != BSM_E8M0) {
        const __m256i in_order = _mm256_permute4x64_epi64(words, 0xd8);
        first = _mm256_mul_ps(_mm256_cvtph_ps(_mm256_castsi256_si128(in_order)), _mm256_set1_ps(256));
        second = _mm256_mul_ps(_mm256_cvtph_ps(_mm256_extracti128_si256(in_order, 1)), _mm256_set1_ps(256));
    }
    _mm256_storeu_ps(values, first);
    _mm256_storeu_ps(values + 8, second);
}

/* Exact blocks [first, end) of transposed codes: a vector for each block. */
AVX2_INLINE void store_block_sums(bsm_scale scale, const __m256i *codes, int64_t repeats, int64_t first, int64_t end,
                                  float (*scales)[32])
{
    for (int64_t s = first; s < end; codes++) {
        const struct scale_words words = scale_words(scale, *codes);
        for (int64_t r = 0; r < repeats && s < end; r++, s++) {
            store_scales(scale, words.first, scales[s]);
            store_scales(scale, words.second, scales[s] + 16);
        }
    }
}

/* Scales of the part's rows, at most 32, for each exact block: scales[exact_block][row].  Missing rows repeat the last.
 * Byte q of half h of a transposed vector is row q / 4 * 8 + q % 4 + 4 h, so that unpacking puts eight rows in
 * order. */
AVX2 __attribute__((unused)) static void pack_scales_by_column(const struct bsmi_part *part, int exact_block,
                                                               float (*scales)[32])
{
    const struct bsmi_matrix *m = part->operand.matrix;
    struct bsmi_scale_code_rows codes;
    const int64_t blocks = bsmi_scale_code_rows(part, 32, &codes),
                  exact_blocks = bsmi_ceil_div(part->length, exact_block), repeats = m->block / exact_block;
    for (int64_t first = 0; first < blocks; first += 16) {
        __m256i v[16];
#pragma GCC unroll 16
        for (int q = 0; q < 16; q++) {
            const int row = q / 4 * 8 + q % 4;
            v[q] = load_two(codes.rows[row] + first, codes.rows[row + 4] + first);
        }
        transpose_bytes(v);
        const int64_t end = BSMI_MIN((first + 16) * repeats, exact_blocks);
        if (m->scale == BSM_E8M0) store_block_sums(BSM_E8M0, v, repeats, first * repeats, end, scales);
        else store_block_sums(BSM_UE4M3, v, repeats, first * repeats, end, scales);
    }
}

#endif
