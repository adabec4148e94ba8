/* Dequantizing with AVX2: eight numbers at a time.
 *
 * Element times scale is exact in fp32: at most 8 bits, and no smaller than 2^-143 where it is subnormal.  A tensor
 * scale rounds that product once: to nearest for fp32; to odd where 16 bits are rounded from it, which then is as if
 * they were rounded from the exact number. */
#if defined(__x86_64__)
#include "dequantize_table.h"

#include <immintrin.h>
#include <string.h>

#define AVX2 __attribute__((target("avx2,fma,f16c")))
#define AVX2_INLINE AVX2 __attribute__((always_inline)) static inline

/* The codes as fp16 numbers, times 2^-exponent. */
AVX2_INLINE __m256i halves(const struct bsmi_block_decoding *d, __m128i codes)
{
    const __m256i places = _mm256_set1_epi16((short)(1 << d->shift)),
                  nan_magnitude = _mm256_set1_epi16((short)d->nan_magnitude);
    if (d->sign_bit == 7) {               /* the sign is moved with the rest: below it only the magnitude's place is
                                             kept */
        const __m256i wide = _mm256_cvtepi8_epi16(codes),
                      kept = _mm256_set1_epi16((short)(INT16_MIN | 0x7f << d->shift));
        const __m256i nan = _mm256_cmpeq_epi16(_mm256_and_si256(wide, _mm256_set1_epi16(0x7f)), nan_magnitude);
        return _mm256_or_si256(_mm256_and_si256(_mm256_mullo_epi16(wide, places), kept), nan);
    }
    const __m256i wide = _mm256_cvtepu8_epi16(codes), mask = _mm256_set1_epi16((short)((1 << d->sign_bit) - 1));
    const __m256i magnitude = _mm256_and_si256(wide, mask), sign = _mm256_andnot_si256(mask, wide);
    const __m256i sign_placed = _mm256_mullo_epi16(sign, _mm256_set1_epi16((short)(1 << (15 - d->sign_bit))));
    return _mm256_or_si256(_mm256_mullo_epi16(magnitude, places), sign_placed);
}

/* Every NaN becomes the positive quiet one. */
AVX2_INLINE __m256 canonical(__m256 x)
{
    return _mm256_blendv_ps(x, _mm256_castsi256_ps(_mm256_set1_epi32(0x7fc00000)), _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
}

/* What was rounded to nearest, with the sign of what it lacks (exact where nothing underflows, see serves of
 * dequantize_table.c): where that is not 0 and the last bit is, the neighbour on that side. */
AVX2_INLINE __m256 to_odd(__m256 nearest, __m256 rest)
{
    const __m256i bits = _mm256_castps_si256(nearest), one = _mm256_set1_epi32(1);
    const __m256i inexact = _mm256_castps_si256(_mm256_cmp_ps(rest, _mm256_setzero_ps(), _CMP_NEQ_OQ));
    const __m256i odd = _mm256_srai_epi32(_mm256_slli_epi32(bits, 31), 31), moves = _mm256_andnot_si256(odd, inexact);
    const __m256i to_zero = _mm256_srai_epi32(_mm256_castps_si256(_mm256_xor_ps(nearest, rest)), 31);
    return _mm256_castsi256_ps(_mm256_add_epi32(bits, _mm256_and_si256(moves, _mm256_or_si256(to_zero, one))));
}

AVX2_INLINE __m256 scaled(const struct bsmi_block_decoding *d, bsm_real type, bool scaled_by_t, __m256 element,
                          __m256 scale)
{
    const __m256 product = _mm256_mul_ps(element, scale), t = _mm256_set1_ps(d->tensor_scale);
    if (!scaled_by_t) return product;
    const __m256 nearest = d->divides ? _mm256_div_ps(product, t) : _mm256_mul_ps(product, t);
    if (type == BSM_REAL_FP32) return nearest;
    return to_odd(nearest, d->divides ? _mm256_fnmadd_ps(nearest, t, product) : _mm256_fmsub_ps(product, t, nearest));
}

AVX2_INLINE __m256 value(const struct bsmi_block_decoding *d, bsm_real type, bool scaled_by_t, __m256 element,
                         __m256 scale)
{
    return scaled(d, type, scaled_by_t, _mm256_mul_ps(element, _mm256_set1_ps(d->factor)), scale);
}

/* To nearest, ties to even. */
AVX2_INLINE __m256i bf16_bits(__m256 x)
{
    const __m256i bits = _mm256_castps_si256(x),
                  odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
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
        both = _mm256_setr_m128i(_mm256_cvtps_ph(low, _MM_FROUND_TO_NEAREST_INT),
                                 _mm256_cvtps_ph(high, _MM_FROUND_TO_NEAREST_INT));
    else
        both = _mm256_permute4x64_epi64(_mm256_packus_epi32(bf16_bits(low), bf16_bits(high)), 0xd8);
    _mm256_storeu_si256((__m256i *)(void *)((uint16_t *)to + i), both);
}

/* One code in each byte. */
AVX2_INLINE void dequantize_bytes(const struct bsmi_block_decoding *decoding, bsm_real type, bool integer,
                                  bool scaled_by_t, const uint8_t *codes, const float *scales, int64_t count, void *to)
{
    const struct bsmi_block_decoding d = *decoding;
    const int64_t per_scale = d.block / 16;
    const bool streamed = d.streamed && (uintptr_t)to % 32 == 0;
    for (int64_t i = 0; i < count; i += 16) {
        const __m256 scale = _mm256_set1_ps(scales[i / 16 >> (per_scale - 1)]);
        const __m128i code = _mm_loadu_si128((const __m128i *)(const void *)(codes + i));
        __m256 low, high;
        if (integer) {
            low = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(code));
            high = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(code, 8)));
        } else {
            const __m256i half = halves(&d, code);
            low = _mm256_cvtph_ps(_mm256_castsi256_si128(half)),
            high = _mm256_cvtph_ps(_mm256_extracti128_si256(half, 1));
        }
        low = value(&d, type, scaled_by_t, low, scale), high = value(&d, type, scaled_by_t, high, scale);
        if (_mm256_movemask_ps(_mm256_cmp_ps(low, high, _CMP_UNORD_Q)) != 0)
            low = canonical(low), high = canonical(high);
        store(type, streamed, low, high, to, i);
    }
}

/* Two codes of e2m1 in a byte.  A block has eight magnitudes, which are scaled beforehand; if its scale is NaN all of
 * them are, and have no sign. */
struct magnitudes { __m256 scaled; __m256i sign; };

AVX2_INLINE struct magnitudes block_magnitudes(const struct bsmi_block_decoding *d, bsm_real type, bool scaled_by_t,
                                               float scale)
{
    const __m256 v =
        scaled(d, type, scaled_by_t, _mm256_setr_ps(0, 0.5F, 1, 1.5F, 2, 3, 4, 6), _mm256_set1_ps(scale));
    const __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
    return (struct magnitudes){ canonical(v), _mm256_andnot_si256(is_nan, _mm256_set1_epi32(INT32_MIN)) };
}

/* Eight codes of four bytes. */
AVX2_INLINE __m256 look_up(const struct magnitudes *m, __m256i shifts, const uint8_t *codes)
{
    int32_t eight;
    memcpy(&eight, codes, sizeof eight);
    const __m256i lanes = _mm256_srlv_epi32(_mm256_set1_epi32(eight), shifts);
    const __m256i sign = _mm256_and_si256(_mm256_slli_epi32(lanes, 28), m->sign);
    return _mm256_xor_ps(_mm256_permutevar8x32_ps(m->scaled, lanes), _mm256_castsi256_ps(sign));
}

AVX2_INLINE void dequantize_pairs(const struct bsmi_block_decoding *decoding, bsm_real type, bool scaled_by_t,
                                  const uint8_t *codes, const float *scales, int64_t count, void *to)
{
    const struct bsmi_block_decoding d = *decoding;
    const __m256i low_first = _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28);
    const __m256i shifts =
        d.packing == BSM_PACKING_LOW_FIRST ? low_first : _mm256_xor_si256(low_first, _mm256_set1_epi32(4));
    const bool streamed = d.streamed && (uintptr_t)to % 32 == 0;
    for (int64_t i = 0; i < count; scales++) {
        const struct magnitudes m = block_magnitudes(&d, type, scaled_by_t, *scales);
        for (const int64_t end = i + d.block; i < end && i < count; i += 16)
            store(type, streamed, look_up(&m, shifts, codes + i / 2), look_up(&m, shifts, codes + i / 2 + 4), to, i);
    }
}

AVX2_INLINE void dequantize_floats(const struct bsmi_block_decoding *d, bsm_real type, bool scaled_by_t,
                                   const uint8_t *codes, const float *scales, int64_t count, void *to)
{
    if (d->packing == BSM_PACKING_BYTES) dequantize_bytes(d, type, false, scaled_by_t, codes, scales, count, to);
    else dequantize_pairs(d, type, scaled_by_t, codes, scales, count, to);
}

AVX2_INLINE void dequantize_type(const struct bsmi_block_decoding *d, bool scaled_by_t, const uint8_t *codes,
                                 const float *scales, int64_t count, void *to)
{
    if (d->type == BSM_REAL_FP32) dequantize_floats(d, BSM_REAL_FP32, scaled_by_t, codes, scales, count, to);
    else if (d->type == BSM_REAL_BF16) dequantize_floats(d, BSM_REAL_BF16, scaled_by_t, codes, scales, count, to);
    else dequantize_floats(d, BSM_REAL_FP16, scaled_by_t, codes, scales, count, to);
}

AVX2 void bsmi_dequantize_blocks_avx2(const struct bsmi_block_decoding *d, const uint8_t *codes, const float *scales,
                                      int64_t count, void *to)
{
    if (d->integer) dequantize_bytes(d, d->type, true, false, codes, scales, count, to);
    else if (d->tensor_scale != 1) dequantize_type(d, true, codes, scales, count, to);
    else dequantize_type(d, false, codes, scales, count, to);
}
#else
typedef int bsmi_not_x86_64;              /* a translation unit needs a declaration */
#endif
