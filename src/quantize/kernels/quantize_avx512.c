/* Quantizing with AVX-512: sixteen blocks at a time. */
#if defined(__x86_64__)
#include "bytes_x86.h"

#include "core/core.h"

#define BSMI_QUANTIZE(name) name##_avx512
#define BSMI_TARGET __attribute__((target("avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl")))
#define AVX512 BSMI_TARGET __attribute__((always_inline)) static inline
enum { LANES = 16 };

typedef float floats __attribute__((vector_size(64)));
typedef int32_t words __attribute__((vector_size(64)));

AVX512 floats fused(floats a, floats b, floats c) { return _mm512_fmadd_ps(a, b, c); }
AVX512 words larger(words a, words b) { return (words)_mm512_max_epi32((__m512i)a, (__m512i)b); }
AVX512 words smaller(words a, words b) { return (words)_mm512_min_epi32((__m512i)a, (__m512i)b); }

/* The smaller of two magnitudes, without a sign. */
AVX512 words least(floats q, words limit) { return (words)_mm512_range_ps(q, (floats)limit, 0x0a); }
AVX512 bool any(words v) { return _mm512_test_epi32_mask((__m512i)v, (__m512i)v) != 0; }

/* Of LANES vectors, one: their numbers' largest, or their bounded sums. */
AVX512 words bounded_sum(words a, words b);
AVX512 __m512i joined(bool sums, __m512i a, __m512i b)
{
    return (__m512i)(sums ? bounded_sum((words)a, (words)b) : larger((words)a, (words)b));
}

AVX512 __m512i joined_pairs(bool sums, words a, words b)
{
    return joined(sums, _mm512_unpacklo_epi32((__m512i)a, (__m512i)b), _mm512_unpackhi_epi32((__m512i)a, (__m512i)b));
}

AVX512 __m512i joined_fours(bool sums, const words v[4])
{
    const __m512i a = joined_pairs(sums, v[0], v[1]), b = joined_pairs(sums, v[2], v[3]);
    return joined(sums, _mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
}

/* Of the quarters of two vectors: those with even numbers and those with odd ones. */
AVX512 __m512i joined_quarters(bool sums, __m512i a, __m512i b)
{
    return joined(sums, _mm512_shuffle_i32x4(a, b, 0x88), _mm512_shuffle_i32x4(a, b, 0xdd));
}

AVX512 words joined_blocks(bool sums, const words v[LANES])
{
    const __m512i low = joined_quarters(sums, joined_fours(sums, v), joined_fours(sums, v + 4));
    const __m512i high = joined_quarters(sums, joined_fours(sums, v + 8), joined_fours(sums, v + 12));
    return (words)joined_quarters(sums, low, high);
}

AVX512 words block_maxima(const words v[LANES]) { return joined_blocks(false, v); }
AVX512 words block_sums(const words v[LANES]) { return joined_blocks(true, v); }

AVX512 bytes narrow(const words v[1]) { return _mm512_cvtepi32_epi8((__m512i)v[0]); }

AVX512 words rounded(floats v) { return (words)_mm512_cvtps_epi32(v); }
AVX512 words smaller_unsigned(words a, words b) { return (words)_mm512_min_epu32((__m512i)a, (__m512i)b); }

/* Of each 16 bytes four of each vector: of their quarters. */
typedef int8_t all_bytes __attribute__((vector_size(64)));
AVX512 all_bytes narrow_four(const words v[4])
{
    return (all_bytes)_mm512_packs_epi16(_mm512_packs_epi32((__m512i)v[0], (__m512i)v[1]),
                                         _mm512_packs_epi32((__m512i)v[2], (__m512i)v[3]));
}

AVX512 all_bytes entries(const int8_t table[16], all_bytes v)
{
    const __m512i all_four = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(const void *)table));
    return (all_bytes)_mm512_shuffle_epi8(all_four, _mm512_min_epu8((__m512i)v, _mm512_set1_epi8(15)));
}

AVX512 void store_narrowed(all_bytes codes, bool high_first, unsigned char *to)
{
    const __m512i pairs = _mm512_maddubs_epi16((__m512i)codes, _mm512_set1_epi16(high_first ? 0x0110 : 0x1001));
    const __m256i order = _mm256_setr_epi16(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    _mm256_storeu_si256((__m256i *)(void *)to, _mm256_permutexvar_epi16(order, _mm512_cvtepi16_epi8(pairs)));
}

/* The numbers in a table of 16 that LANES codes stand for. */
AVX512 floats entries_of_16(const float *table, const uint8_t *codes)
{
    const __m512i places = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)codes));
    return _mm512_permutexvar_ps(places, _mm512_loadu_ps(table));
}

AVX512 floats bf16_floats(__m256i v) { return (floats)_mm512_slli_epi32(_mm512_cvtepu16_epi32(v), 16); }
AVX512 floats of_bf16(const void *from) { return bf16_floats(_mm256_loadu_si256(from)); }
AVX512 floats of_fp16(const void *from) { return _mm512_cvtph_ps(_mm256_loadu_si256(from)); }

#include "quantize_template.h"

#include "count_template.h"

/* Of int16_t. */
AVX512 words larger_halves(words a, words b) { return (words)_mm512_max_epi16((__m512i)a, (__m512i)b); }

#include "amax_template.h"

BSMI_TARGET void bsmi_widen_reals_avx512(bsm_real type, const void *from, int64_t count, float *to)
{
    const uint16_t *numbers = from;
    for (int64_t i = 0; i < count; i += 16) {
        const __mmask16 some = count - i < 16 ? (__mmask16)((1 << (count - i)) - 1) : 0xffff;
        const __m256i v = _mm256_maskz_loadu_epi16(some, numbers + i);
        _mm512_mask_storeu_ps(to + i, some, type == BSM_REAL_FP16 ? (floats)_mm512_cvtph_ps(v) : bf16_floats(v));
    }
}
#else
typedef int bsmi_not_x86_64;              /* a translation unit needs a declaration */
#endif
