/* What the packers for AVX2 and AVX-512 share: transposing bytes, and decoding scales.  Include in files of x86-64 alone. */
#ifndef BSMI_LANES_AVX2_H
#define BSMI_LANES_AVX2_H

#include "code_rows.h"
#include "core/core.h"

#include <immintrin.h>

#define AVX2 __attribute__((target("avx2,fma")))
#define AVX2_INLINE AVX2 __attribute__((always_inline, unused)) static inline

AVX2_INLINE __m256i load_two(const uint8_t *low, const uint8_t *high)
{
    return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)low)),
                                   _mm_loadu_si128((const __m128i *)(const void *)high), 1);
}

/* 16 x 16 bytes in each half: interleaving the first eight vectors with the last eight moves the highest bit of a byte's address
 * to the lowest place; four times exchanges row and column. */
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

/* Code 0 is 2^-127, a subnormal number whose bits are no shifted code; 255 is NaN. */
AVX2_INLINE __m256 decode_e8m0(__m256i codes)
{
    const __m256i bits = _mm256_max_epi32(_mm256_slli_epi32(codes, 23), _mm256_set1_epi32(0x00400000));
    const __m256i nan = _mm256_cmpeq_epi32(codes, _mm256_set1_epi32(255));
    return _mm256_castsi256_ps(_mm256_or_si256(bits, _mm256_and_si256(nan, _mm256_set1_epi32(0x7fc00000))));
}

/* The bit above the code is no part of it; exponent 0 is a multiple of 2^-9; 0x7f is NaN. */
AVX2_INLINE __m256 decode_ue4m3(__m256i codes)
{
    const __m256i code = _mm256_and_si256(codes, _mm256_set1_epi32(0x7f));
    const __m256i normal = _mm256_add_epi32(_mm256_slli_epi32(code, 20), _mm256_set1_epi32(120 << 23));
    const __m256 subnormal = _mm256_mul_ps(_mm256_cvtepi32_ps(code), _mm256_set1_ps(0x1p-9F));
    const __m256i is_normal = _mm256_cmpgt_epi32(code, _mm256_set1_epi32(7)),
                  nan = _mm256_cmpeq_epi32(code, _mm256_set1_epi32(0x7f));
    const __m256 value = _mm256_blendv_ps(subnormal, _mm256_castsi256_ps(normal), _mm256_castsi256_ps(is_normal));
    return _mm256_or_ps(value, _mm256_castsi256_ps(_mm256_and_si256(nan, _mm256_set1_epi32(0x7fc00000))));
}

/* 32 scale codes into floats. */
AVX2_INLINE void decode_scales(bsm_scale scale, const uint8_t *codes, float *values)
{
#pragma GCC unroll 4
    for (int i = 0; i < 32; i += 8) {
        const __m256i wide = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)(codes + i)));
        _mm256_storeu_ps(values + i, scale == BSM_E8M0 ? decode_e8m0(wide) : decode_ue4m3(wide));
    }
}

/* Scales of the part's rows, at most 32, for each run: scales[run][row].  Missing rows repeat the last. */
AVX2 __attribute__((unused)) static void pack_scales_by_column(const struct bsmi_part *part, int run, float (*scales)[32])
{
    const struct bsmi_matrix *m = part->operand.matrix;
    struct bsmi_scale_code_rows codes;
    const int64_t blocks = bsmi_scale_code_rows(part, 32, &codes), runs = bsmi_ceil_div(part->length, run),
                  repeats = m->block / run;
    for (int64_t first = 0; first < blocks; first += 16) {
        __m256i v[16];
        uint8_t columns[32];
#pragma GCC unroll 16
        for (int r = 0; r < 16; r++) v[r] = load_two(codes.rows[r] + first, codes.rows[r + 16] + first);
        transpose_bytes(v);
        for (int64_t block = first; block < BSMI_MIN(first + 16, blocks); block++) {
            _mm256_storeu_si256((__m256i *)(void *)columns, v[block - first]);
            for (int64_t s = block * repeats; s < BSMI_MIN((block + 1) * repeats, runs); s++)
                decode_scales(m->scale, columns, scales[s]);
        }
    }
}

#endif
