/* Numbers of D from sums: a line of D at a time, 16 of fp32 or 32 of bf16 and fp16.
 *
 * Rounding to bf16 is that of integers: half of the last place is added, or one less where the number is even; what
 * overflows becomes infinity by itself.  vcvtneps2bf16 would take subnormal numbers for zeros. */
#if defined(__x86_64__)
#include "cpu/epilogue/store.h"

#include "core/stream.h"
#include "halves_avx512.h"

enum { NUMBERS = 32 };

/* NaN as it is written: its upper half is bf16's, and fp16's is made of it. */
AVX512_INLINE __m512 scaled(__m512 factor, __m512 sums)
{
    const __m512 value = _mm512_mul_ps(factor, sums);
    return _mm512_mask_mov_ps(value, _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q),
                              _mm512_castsi512_ps(_mm512_set1_epi32(0x7fc00000)));
}

/* The rounded number in the upper half.  A NaN's lower half is zeros: it stays as it is. */
AVX512_INLINE __m512i rounded_to_bf16(__m512 value)
{
    const __m512i bits = _mm512_castps_si512(value),
                  odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    return _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
}

AVX512_INLINE __m512i upper_halves(__m512i low, __m512i high)
{
    const __m512i places =
        _mm512_set_epi16(63, 61, 59, 57, 55, 53, 51, 49, 47, 45, 43, 41, 39, 37, 35, 33, 31, 29, 27, 25, 23, 21, 19, 17,
                         15, 13, 11, 9, 7, 5, 3, 1);
    return _mm512_permutex2var_epi16(low, places, high);
}

AVX512_INLINE __m512i halves_of(bsm_element element, __m512 low, __m512 high)
{
    enum { NEAREST_EVEN = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC };
    if (element == BSM_BF16) return upper_halves(rounded_to_bf16(low), rounded_to_bf16(high));
    return _mm512_inserti64x4(_mm512_castsi256_si512(_mm512_cvtps_ph(low, NEAREST_EVEN)),
                              _mm512_cvtps_ph(high, NEAREST_EVEN), 1);
}

AVX512_INLINE void store_line(bool past_caches, void *to, __m512i line)
{
    if (past_caches) _mm512_stream_si512(to, line);
    else _mm512_storeu_si512(to, line);
}

AVX512_INLINE void store_32(bsm_element element, bool past_caches, __m512 factor, const float *sums, unsigned char *to)
{
    const __m512 low = scaled(factor, _mm512_loadu_ps(sums)), high = scaled(factor, _mm512_loadu_ps(sums + 16));
    if (element == BSM_FP32) {
        store_line(past_caches, to, _mm512_castps_si512(low));
        store_line(past_caches, to + BSMI_LINE, _mm512_castps_si512(high));
    } else {
        store_line(past_caches, to, halves_of(element, low, high));
    }
}

/* The last ones, fewer than 32. */
AVX512_INLINE void store_rest(bsm_element element, int64_t count, __m512 factor, const float *sums, unsigned char *to)
{
    const __mmask32 there = ((__mmask32)1 << count) - 1;
    const __mmask16 upper = (__mmask16)(there >> 16);
    const __m512 low = scaled(factor, _mm512_maskz_loadu_ps((__mmask16)there, sums)),
                 high = scaled(factor, _mm512_maskz_loadu_ps(upper, upper != 0 ? sums + 16 : sums));
    if (element == BSM_FP32) {
        _mm512_mask_storeu_ps(to, (__mmask16)there, low);
        if (upper != 0) _mm512_mask_storeu_ps(to + BSMI_LINE, upper, high);
    } else {
        _mm512_mask_storeu_epi16(to, there, halves_of(element, low, high));
    }
}

AVX512_INLINE void store(bsm_element element, bool past_caches, int64_t count, float factor, const float *sums,
                         unsigned char *to)
{
    const int64_t bytes = element == BSM_FP32 ? 4 : 2;
    const __m512 factors = _mm512_set1_ps(factor);
    for (; count >= NUMBERS; count -= NUMBERS, sums += NUMBERS, to += NUMBERS * bytes)
        store_32(element, past_caches, factors, sums, to);
    if (count > 0) store_rest(element, count, factors, sums, to);
}

AVX512 void bsmi_store_scaled_avx512(bsm_element element, bool past_caches, int64_t count, float factor,
                                     const float *sums, void *to)
{
    const bool lines = past_caches && (uintptr_t)to % BSMI_LINE == 0;
    if (element == BSM_FP32 && lines) store(BSM_FP32, true, count, factor, sums, to);
    else if (element == BSM_FP32) store(BSM_FP32, false, count, factor, sums, to);
    else if (element == BSM_BF16 && lines) store(BSM_BF16, true, count, factor, sums, to);
    else if (element == BSM_BF16) store(BSM_BF16, false, count, factor, sums, to);
    else if (lines) store(BSM_FP16, true, count, factor, sums, to);
    else store(BSM_FP16, false, count, factor, sums, to);
}
#else
typedef int bsmi_not_x86_64;              /* a translation unit needs a declaration */
#endif
