/* Quantizing with AVX2: eight blocks at a time. */
#if defined(__x86_64__)
#include "bytes_x86.h"

#include "core/core.h"

#define BSMI_QUANTIZE(name) name##_avx2
#define BSMI_TARGET __attribute__((target("avx2,fma,f16c")))
#define AVX2 BSMI_TARGET __attribute__((always_inline)) static inline
enum { LANES = 8 };

typedef float floats __attribute__((vector_size(32)));
typedef int32_t words __attribute__((vector_size(32)));

AVX2 floats fused(floats a, floats b, floats c) { return _mm256_fmadd_ps(a, b, c); }
AVX2 words larger(words a, words b) { return (words)_mm256_max_epi32((__m256i)a, (__m256i)b); }
AVX2 words smaller(words a, words b) { return (words)_mm256_min_epi32((__m256i)a, (__m256i)b); }

AVX2 words least(floats q, words limit) { return smaller((words)q & 0x7fffffff, limit); }
AVX2 bool any(words v) { return !_mm256_testz_si256((__m256i)v, (__m256i)v); }

/* Of LANES vectors, one: their numbers' largest, or their bounded sums. */
AVX2 words bounded_sum(words a, words b);
AVX2 words joined(bool sums, __m256i a, __m256i b)
{
    return sums ? bounded_sum((words)a, (words)b) : larger((words)a, (words)b);
}

AVX2 __m256i joined_pairs(bool sums, words a, words b)
{
    return (__m256i)joined(sums, _mm256_unpacklo_epi32((__m256i)a, (__m256i)b),
                           _mm256_unpackhi_epi32((__m256i)a, (__m256i)b));
}

AVX2 __m256i joined_fours(bool sums, const words v[4])
{
    const __m256i a = joined_pairs(sums, v[0], v[1]), b = joined_pairs(sums, v[2], v[3]);
    return (__m256i)joined(sums, _mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b));
}

AVX2 words joined_blocks(bool sums, const words v[LANES])
{
    const __m256i low = joined_fours(sums, v), high = joined_fours(sums, v + 4);
    return joined(sums, _mm256_permute2x128_si256(low, high, 0x20), _mm256_permute2x128_si256(low, high, 0x31));
}

AVX2 words block_maxima(const words v[LANES]) { return joined_blocks(false, v); }
AVX2 words block_sums(const words v[LANES]) { return joined_blocks(true, v); }

AVX2 bytes narrow(const words v[2])
{
    const words low = v[0] & 0xff, high = v[1] & 0xff;
    const __m256i halves = _mm256_permute4x64_epi64(_mm256_packus_epi32((__m256i)low, (__m256i)high), 0xd8);
    return _mm_packus_epi16(_mm256_castsi256_si128(halves), _mm256_extracti128_si256(halves, 1));
}

AVX2 words rounded(floats v) { return (words)_mm256_cvtps_epi32(v); }
AVX2 words smaller_unsigned(words a, words b) { return (words)_mm256_min_epu32((__m256i)a, (__m256i)b); }

/* Of 16 bytes four of each vector: in the lower half those of their lower halves. */
typedef int8_t all_bytes __attribute__((vector_size(32)));
AVX2 all_bytes narrow_four(const words v[4])
{
    return (all_bytes)_mm256_packs_epi16(_mm256_packs_epi32((__m256i)v[0], (__m256i)v[1]),
                                         _mm256_packs_epi32((__m256i)v[2], (__m256i)v[3]));
}

AVX2 all_bytes entries(const int8_t table[16], all_bytes v)
{
    const __m256i both = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)table));
    return (all_bytes)_mm256_shuffle_epi8(both, _mm256_min_epu8((__m256i)v, _mm256_set1_epi8(15)));
}

AVX2 void store_narrowed(all_bytes codes, bool high_first, unsigned char *to)
{
    const __m256i pairs = _mm256_maddubs_epi16((__m256i)codes, _mm256_set1_epi16(high_first ? 0x0110 : 0x1001));
    const __m128i halves = _mm_packus_epi16(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256(pairs, 1));
    const __m128i order = _mm_setr_epi8(0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15);
    _mm_storeu_si128((__m128i *)(void *)to, _mm_shuffle_epi8(halves, order));
}

/* The numbers in a table of 16 that LANES codes stand for. */
AVX2 floats entries_of_16(const float *table, const uint8_t *codes)
{
    const __m256i places = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)codes));
    const __m256 low = _mm256_permutevar8x32_ps(_mm256_loadu_ps(table), places);
    const __m256 high = _mm256_permutevar8x32_ps(_mm256_loadu_ps(table + 8), places);
    return _mm256_blendv_ps(low, high, (__m256)_mm256_slli_epi32(places, 28));
}

AVX2 __m128i halves_of(const void *from) { return _mm_loadu_si128(from); }
AVX2 floats of_bf16(const void *from) { return (floats)_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves_of(from)), 16); }
AVX2 floats of_fp16(const void *from) { return _mm256_cvtph_ps(halves_of(from)); }

#include "quantize_template.h"

#include "count_template.h"

/* Of int16_t. */
AVX2 words larger_halves(words a, words b) { return (words)_mm256_max_epi16((__m256i)a, (__m256i)b); }

#include "amax_template.h"

BSMI_TARGET void bsmi_widen_reals_avx2(bsm_real type, const void *from, int64_t count, float *to)
{
    const uint16_t *numbers = from;
    int64_t i = 0;
    for (; i + 8 <= count; i += 8)
        _mm256_storeu_ps(to + i, type == BSM_REAL_FP16 ? of_fp16(numbers + i) : of_bf16(numbers + i));
    for (; i < count; i++)
        to[i] = type == BSM_REAL_FP16 ? bsmi_fp16_to_float(numbers[i]) : bsmi_bf16_to_float(numbers[i]);
}
#else
typedef int bsmi_not_x86_64;              /* a translation unit needs a declaration */
#endif
