/* Dequantizing with AVX2: eight numbers at a time.
 *
 * Element times scale is exact in fp32: at most 8 bits, and no smaller than 2^-143 where it is subnormal.  A tensor scale rounds
 * that product once.  fp16 and bf16 are rounded from the exact product. */
#if defined(__x86_64__)
#include "decoding.h"

#include <immintrin.h>

#define AVX2 __attribute__((target("avx2,fma,f16c")))
#define AVX2_INLINE AVX2 __attribute__((always_inline)) static inline

/* 16 codes, one in each byte. */
AVX2_INLINE __m128i load_codes(bsm_packing packing, const uint8_t *codes, int64_t i)
{
    if (packing == BSM_PACKING_BYTES) return _mm_loadu_si128((const __m128i *)(const void *)(codes + i));
    const __m128i pairs = _mm_loadl_epi64((const __m128i *)(const void *)(codes + i / 2)), mask = _mm_set1_epi8(15);
    const __m128i low = _mm_and_si128(pairs, mask), high = _mm_and_si128(_mm_srli_epi16(pairs, 4), mask);
    return packing == BSM_PACKING_LOW_FIRST ? _mm_unpacklo_epi8(low, high) : _mm_unpacklo_epi8(high, low);
}

/* The codes as fp16 numbers, times 2^-exponent. */
AVX2_INLINE __m256i halves(const struct bsmi_decoding *d, __m128i codes)
{
    const __m256i wide = _mm256_cvtepu8_epi16(codes), mask = _mm256_set1_epi16((short)((1 << d->sign_bit) - 1));
    const __m256i magnitude = _mm256_and_si256(wide, mask), sign = _mm256_andnot_si256(mask, wide);
    const __m256i nan = _mm256_cmpeq_epi16(magnitude, _mm256_set1_epi16((short)d->nan_magnitude));
    const __m256i placed = _mm256_mullo_epi16(magnitude, _mm256_set1_epi16((short)(1 << d->shift)));
    const __m256i sign_placed = _mm256_mullo_epi16(sign, _mm256_set1_epi16((short)(1 << (15 - d->sign_bit))));
    return _mm256_or_si256(_mm256_or_si256(placed, sign_placed), nan);
}

/* Every NaN becomes the positive quiet one. */
AVX2_INLINE __m256 canonical(__m256 x)
{
    return _mm256_blendv_ps(x, _mm256_castsi256_ps(_mm256_set1_epi32(0x7fc00000)), _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
}

AVX2_INLINE __m256 value(const struct bsmi_decoding *d, bool scaled_by_t, __m256 element, __m256 scale)
{
    const __m256 scaled = _mm256_mul_ps(_mm256_mul_ps(element, _mm256_set1_ps(d->factor)), scale),
                 t = _mm256_set1_ps(d->tensor_scale);
    if (!scaled_by_t) return canonical(scaled);
    return canonical(d->divides ? _mm256_div_ps(scaled, t) : _mm256_mul_ps(scaled, t));
}

/* To nearest, ties to even. */
AVX2_INLINE __m256i bf16_bits(__m256 x)
{
    const __m256i bits = _mm256_castps_si256(x), odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    return _mm256_srli_epi32(_mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff))), 16);
}

AVX2_INLINE void store(bsm_real type, bool streamed, __m256 low, __m256 high, void *to, int64_t i)
{
    float *const floats = (float *)to + i;
    if (type == BSM_REAL_FP32 && streamed) {
        _mm256_stream_ps(floats, low);
        _mm256_stream_ps(floats + 8, high);
        return;
    }
    if (type == BSM_REAL_FP32) {
        _mm256_storeu_ps(floats, low);
        _mm256_storeu_ps(floats + 8, high);
        return;
    }
    __m256i both;
    if (type == BSM_REAL_FP16)
        both = _mm256_setr_m128i(_mm256_cvtps_ph(low, _MM_FROUND_TO_NEAREST_INT), _mm256_cvtps_ph(high, _MM_FROUND_TO_NEAREST_INT));
    else
        both = _mm256_permute4x64_epi64(_mm256_packus_epi32(bf16_bits(low), bf16_bits(high)), 0xd8);
    _mm256_storeu_si256((__m256i *)(void *)((uint16_t *)to + i), both);
}

AVX2_INLINE void dequantize_row(const struct bsmi_decoding *decoding, bsm_real type, bsm_packing packing, bool integer,
                                bool scaled_by_t, const uint8_t *codes, const float *scales, int64_t count, void *to)
{
    const struct bsmi_decoding d = *decoding;
    const int64_t per_scale = d.block / 16;
    const bool streamed = d.streamed && (uintptr_t)to % 32 == 0;
    for (int64_t i = 0; i < count; i += 16) {
        const __m256 scale = _mm256_set1_ps(scales[i / 16 >> (per_scale - 1)]);
        const __m128i code = load_codes(packing, codes, i);
        __m256 low, high;
        if (integer) {
            low = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(code));
            high = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(code, 8)));
        } else {
            const __m256i half = halves(&d, code);
            low = _mm256_cvtph_ps(_mm256_castsi256_si128(half)), high = _mm256_cvtph_ps(_mm256_extracti128_si256(half, 1));
        }
        store(type, streamed, value(&d, scaled_by_t, low, scale), value(&d, scaled_by_t, high, scale), to, i);
    }
}

AVX2_INLINE void dequantize_packing(const struct bsmi_decoding *d, bsm_real type, bool scaled_by_t, const uint8_t *codes,
                                    const float *scales, int64_t count, void *to)
{
    switch (d->packing) {
    case BSM_PACKING_LOW_FIRST: dequantize_row(d, type, BSM_PACKING_LOW_FIRST, false, scaled_by_t, codes, scales, count, to); break;
    case BSM_PACKING_HIGH_FIRST:
        dequantize_row(d, type, BSM_PACKING_HIGH_FIRST, false, scaled_by_t, codes, scales, count, to);
        break;
    default: dequantize_row(d, type, BSM_PACKING_BYTES, false, scaled_by_t, codes, scales, count, to); break;
    }
}

AVX2 void bsmi_dequantize_blocks_avx2(const struct bsmi_decoding *d, const uint8_t *codes, const float *scales, int64_t count,
                                      void *to)
{
    if (d->integer) dequantize_row(d, d->type, BSM_PACKING_BYTES, true, false, codes, scales, count, to);
    else if (d->tensor_scale != 1) dequantize_packing(d, BSM_REAL_FP32, true, codes, scales, count, to);
    else if (d->type == BSM_REAL_FP32) dequantize_packing(d, BSM_REAL_FP32, false, codes, scales, count, to);
    else if (d->type == BSM_REAL_BF16) dequantize_packing(d, BSM_REAL_BF16, false, codes, scales, count, to);
    else dequantize_packing(d, BSM_REAL_FP16, false, codes, scales, count, to);
}
#else
typedef int bsmi_not_x86_64;              /* a translation unit needs a declaration */
#endif
