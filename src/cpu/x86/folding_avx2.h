/* Folded factors, for the kernels of few rows of fp32 chains.  A power of two f = sB * factor (halves.h) commutes with
 * rounding while nothing is subnormal or overflows:
 *
 *     fma(a, f h, S) = f fma(a, h, S / f)
 *
 * so that sums are divided by f before a block of B and multiplied by it behind, in place of every element.  With
 * nonzero |a| of 2^-32 to 2^32, hence multiples of 2^-55, h a multiple of 2^-17 below 2^16, f of 2^-27 to 2^27, and
 * nonzero |S| of 2^-70 to 2^60 before the chunk, every sum in it is 0 or a multiple of 2^-99 below 2^85, and S / f 0 or
 * a multiple of 2^-126 below 2^112: normal numbers.
 * (Infinities and NaN of B are what they are either way.)  Other chunks multiply every element by its factor. */
#ifndef BSMI_FOLDING_AVX2_H
#define BSMI_FOLDING_AVX2_H

#include "lanes_avx2.h"

/* Every number is 0 or has an exponent in [low, high).  Where none can be 0, as scales are not, that takes fewer
 * instructions. */
AVX2_INLINE bool all_between(bool zeros, const float *values, int64_t count, int low, int high)
{
    const __m256i lowest = _mm256_set1_epi32((low + 127) << 23), last = _mm256_set1_epi32(((high - low) << 23) - 1);
    const __m256i magnitude = _mm256_set1_epi32(0x7fffffff), lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    __m256i largest = _mm256_setzero_si256();
    for (int64_t k = 0; k < count; k += 8) {
        const __m256i there = _mm256_cmpgt_epi32(_mm256_set1_epi32((int)BSMI_MIN(8, count - k)), lanes);
        const __m256 v = count % 8 == 0 ? _mm256_loadu_ps(values + k) : _mm256_maskload_ps(values + k, there);
        const __m256i bits = _mm256_and_si256(_mm256_castps_si256(v), magnitude),
                      above = _mm256_sub_epi32(bits, lowest);
        const __m256i zero = _mm256_cmpeq_epi32(bits, _mm256_setzero_si256());
        largest = _mm256_max_epu32(largest, zeros ? _mm256_andnot_si256(zero, above) : above);
    }
    return _mm256_movemask_epi8(_mm256_cmpeq_epi32(_mm256_max_epu32(largest, last), last)) == -1;
}

AVX2_INLINE bool row_folds(const float *a, int64_t count) { return all_between(true, a, count, -32, 32); }

/* Of e8m0 and of whole vectors; only powers of two commute with rounding. */
AVX2_INLINE bool scales_fold(bsm_scale scale, const float *scales, int64_t count, float factor)
{
    const int moved = (int)(bsmi_float_bits(factor) >> 23) - 127;
    return scale != BSM_UE4M3 && all_between(false, scales, count, -27 - moved, 28 - moved);
}

AVX2_INLINE bool sums_fold(int64_t rows, int64_t columns, const float *sums, int64_t pitch)
{
    bool fold = true;
    for (int64_t r = 0; r < rows && fold; r++) fold = all_between(true, sums + r * pitch, columns, -70, 60);
    return fold;
}

#endif
