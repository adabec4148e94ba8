/* A block of D as codes and a scale of e8m0, by one lane: v_cvt_scalef32 divides by the scale and rounds once. */
#ifndef BSMI_GFX950_GEMM_QUANTIZED_H
#define BSMI_GFX950_GEMM_QUANTIZED_H

#include "gemm_config.h"
#include <blockscale/format.h>

typedef int16_t halves2 __attribute__((ext_vector_type(2)));

/* Without the sign, a place higher.  By value: given an element of a vector, __builtin_bit_cast of clang 22 takes the
 * vector's first one. */
INLINE uint32_t magnitude_of(float x) { return __builtin_bit_cast(uint32_t, x) << 1; }

/* 4 numbers of 8 bits.  Those that are too large would become NaN: saturated first. */
INLINE int32_t convert_to_8_bits(floats4 t, float scale, float limit, bool is_e5m2)
{
    halves2 pairs = { 0, 0 };
    UNROLL for (int32_t i = 0; i < 4; i++) t[i] = __builtin_amdgcn_fmed3f(t[i], -limit, limit);
    if (is_e5m2) {
        pairs = __builtin_amdgcn_cvt_scalef32_pk_bf8_f32(pairs, t[0], t[1], scale, false);
        pairs = __builtin_amdgcn_cvt_scalef32_pk_bf8_f32(pairs, t[2], t[3], scale, true);
    } else {
        pairs = __builtin_amdgcn_cvt_scalef32_pk_fp8_f32(pairs, t[0], t[1], scale, false);
        pairs = __builtin_amdgcn_cvt_scalef32_pk_fp8_f32(pairs, t[2], t[3], scale, true);
    }
    return __builtin_bit_cast(int32_t, pairs);
}

/* The instruction takes even and odd numbers from registers of their own. */
INLINE void convert_to_6_bits(const float *t, float scale, bool is_e3m2, int32_t *words)
{
    floats16 even, odd;
    UNROLL for (int32_t i = 0; i < 16; i++) even[i] = t[2 * i], odd[i] = t[2 * i + 1];
    const words6 six = is_e3m2 ? (words6)__builtin_amdgcn_cvt_scalef32_2xpk16_bf6_f32(even, odd, scale)
                               : (words6)__builtin_amdgcn_cvt_scalef32_2xpk16_fp6_f32(even, odd, scale);
    UNROLL for (int32_t i = 0; i < 6; i++) words[i] = six[i];
}

INLINE void convert_to_4_bits(const float *t, float scale, int32_t *words)
{
    UNROLL for (int32_t i = 0; i < 4; i++) {
        uint32_t word = 0;
        word = __builtin_amdgcn_cvt_scalef32_pk_fp4_f32(word, t[8 * i], t[8 * i + 1], scale, 0);
        word = __builtin_amdgcn_cvt_scalef32_pk_fp4_f32(word, t[8 * i + 2], t[8 * i + 3], scale, 1);
        word = __builtin_amdgcn_cvt_scalef32_pk_fp4_f32(word, t[8 * i + 4], t[8 * i + 5], scale, 2);
        word = __builtin_amdgcn_cvt_scalef32_pk_fp4_f32(word, t[8 * i + 6], t[8 * i + 7], scale, 3);
        words[i] = (int32_t)word;
    }
}

/* Pairs of words, or zeros: mask 0. */
INLINE void store_codes(unsigned char *to, const int32_t *words, int32_t count, int32_t mask)
{
    UNROLL for (int32_t i = 0; i < count / 2; i++)
        ((GLOBAL words2 *)to)[i] = (words2){ words[2 * i] & mask, words[2 * i + 1] & mask };
}

/* BSM_LAYOUT_CDNA4_16, or rows of scales. */
INLINE int64_t scale_place(CONSTANT const struct bsmi_hip_gemm_finish *f, int32_t row, int32_t s)
{
    if (!f->d_scales_in_lane_order) return row * f->d_scale_row_bytes + s;
    return row / 32 * f->d_scale_row_bytes + s / 8 * 256 + s % 4 * 64 + row % 16 * 4 + s / 4 % 2 * 2 + row / 16 % 2;
}

/* The 32 numbers at `from`, of columns `column` ... */
INLINE void store_block(CONSTANT const struct bsmi_hip_gemm_finish *f, int64_t matrix, int32_t row, int32_t column,
                        LDS const floats4 *from)
{
    float t[32];
    int32_t words[8];
    uint32_t largest = 0;
    UNROLL for (int32_t i = 0; i < 8; i++) {
        const floats4 four = from[i];
        UNROLL for (int32_t j = 0; j < 4; j++) {
            const uint32_t magnitude = magnitude_of(four[j]);
            t[4 * i + j] = four[j];
            largest = largest > magnitude ? largest : magnitude;
        }
    }
    const bool is_nan = largest >= 0xff000000;
    const int32_t mask = is_nan ? 0 : -1;
    int32_t code = (int32_t)((largest / 2 + (uint32_t)f->d_scale_addend) >> 23) - f->d_scale_exponent;
    code = code < 0 ? 0 : code > 254 ? 254 : code;
    const float scale = __builtin_bit_cast(float, code << 23);
    unsigned char *to = f->d + matrix * f->d_batch_bytes + row * f->d_row_bytes;
    if (f->d_element == BSM_E2M1) {
        convert_to_4_bits(t, scale, words);
        store_codes(to + column / 32 * 16, words, 4, mask);
    } else if (f->d_element == BSM_E4M3 || f->d_element == BSM_E5M2) {
        const float limit = __builtin_ldexpf(f->d_largest, code - 127);
        _Pragma("nounroll") for (int32_t i = 0; i < 8; i += 2) {
            UNROLL for (int32_t j = 0; j < 2; j++)
                words[j] = convert_to_8_bits(from[i + j], scale, limit, f->d_element == BSM_E5M2);
            store_codes(to + column + i * 4, words, 2, mask);
        }
    } else {
        convert_to_6_bits(t, scale, f->d_element == BSM_E3M2, words);
        store_codes(to + column / 32 * 24, words, 6, mask);
    }
    ((GLOBAL unsigned char *)f->d_scales)[matrix * f->d_scale_batch_bytes + scale_place(f, row, column / 32)] =
        (unsigned char)(is_nan ? 255 : code);
}

#endif
