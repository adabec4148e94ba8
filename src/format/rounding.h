/* Codes to values and values to codes, by a row of the table of elements: the arithmetic of decode.c and encode.c, in
 * integers.  Also compiled for GPUs. */
#ifndef BSMI_ROUNDING_H
#define BSMI_ROUNDING_H

#include "format.h"

/* Exact value of a code that is none of fp32, bf16 and int8; see bsm_element_decode. */
BSMI_SHARED float bsmi_decode_small(const bsm_element_info *info, uint32_t code)
{
    const uint32_t sign = (code >> (info->bits - 1)) & 1;
    const uint32_t magnitude = code & (((uint32_t)1 << (info->bits - 1)) - 1);
    const uint32_t exponent = magnitude >> info->mantissa_bits;
    const uint32_t fraction = magnitude & (((uint32_t)1 << info->mantissa_bits) - 1);
    const uint32_t fraction_bits = fraction << (23 - info->mantissa_bits);

    if (magnitude > info->max_code) {     /* only formats with NaN or infinity have such codes */
        const bool infinite = info->has_infinity && fraction == 0;
        return bsmi_float_from_bits(sign << 31 | (infinite ? 0x7f800000u : 0x7fc00000u));
    }
    if (exponent == 0) {                  /* fraction * 2^(1 - bias - mantissa bits): exact, and normal in fp32 */
        const float value = (float)fraction * bsmi_float_power_of_two(1 - info->bias - info->mantissa_bits);
        return bsmi_float_from_bits(sign << 31 | bsmi_float_bits(value));
    }
    return bsmi_float_from_bits(sign << 31 | (uint32_t)((int)exponent - info->bias + 127) << 23 | fraction_bits);
}

BSMI_SHARED float bsmi_decode_int8(uint32_t code) { return (float)(int8_t)(uint8_t)code * 0x1p-6f; }

/* A finite magnitude as significand * 2^(exponent - 52). */
struct bsmi_magnitude { uint64_t significand; int exponent; };

BSMI_SHARED struct bsmi_magnitude bsmi_split_magnitude(uint64_t magnitude_bits)
{
    const int biased = (int)(magnitude_bits >> 52);
    struct bsmi_magnitude m = { magnitude_bits & (((uint64_t)1 << 52) - 1), -1022 };
    if (biased != 0) {
        m.significand |= (uint64_t)1 << 52;
        m.exponent = biased - 1023;
    }
    return m;
}

/* significand / 2^shift, rounded; shift >= 0. */
BSMI_SHARED uint64_t bsmi_round_shift(uint64_t significand, int shift, bsm_rounding rounding, uint32_t random)
{
    if (shift == 0) return significand;
    if (rounding == BSM_ROUND_STOCHASTIC) {
        if (shift >= 53 + 32) return 0;   /* the fraction is below 2^-32: never up */
        const uint64_t whole = shift < 64 ? significand >> shift : 0;
        const uint64_t rest = shift < 64 ? significand & (((uint64_t)1 << shift) - 1) : significand;
        const uint64_t fraction = shift >= 32 ? rest >> (shift - 32) : rest << (32 - shift);
        return whole + ((fraction + random) >> 32);
    }
    if (shift > 53) return 0;             /* below half of the last place */
    const uint64_t half = (uint64_t)1 << (shift - 1);
    const uint64_t whole = significand >> shift, rest = significand & ((half << 1) - 1);
    return whole + (rest > half || (rest == half && (whole & 1) != 0));
}

/* int8 is two's complement; the others have a sign bit. */
BSMI_SHARED uint32_t bsmi_code_with_sign(const bsm_element_info *info, bool negative, uint32_t code)
{
    if (!negative) return code;
    return info->exponent_bits == 0 ? (0u - code) & 0xff : code | (uint32_t)1 << (info->bits - 1);
}

/* See bsm_element_encode.
 * int8 needs no case of its own: 7 mantissa bits and no exponent make it the subnormals below 2^1, in steps of 2^-6. */
BSMI_SHARED uint32_t bsmi_encode(const bsm_element_info *info, double value, bsm_rounding rounding, bool saturate,
                                 uint32_t random)
{
    const uint64_t bits = bsmi_double_bits(value), magnitude_bits = bits & ~((uint64_t)1 << 63);
    const bool negative = bits >> 63 != 0, infinite = magnitude_bits == (uint64_t)0x7ff << 52;
    if (magnitude_bits > (uint64_t)0x7ff << 52) return info->nan_code;

    const int min_exponent = 1 - info->bias;
    uint64_t code = (uint64_t)info->max_code + 1;
    if (!infinite) {
        const struct bsmi_magnitude m = bsmi_split_magnitude(magnitude_bits);
        const int exponent = m.exponent > min_exponent ? m.exponent : min_exponent;
        const int shift = 52 - info->mantissa_bits + (exponent - m.exponent);
        /* The leading bit of a normal number adds 1 to the exponent field, also when rounding carries into it. */
        code = ((uint64_t)(exponent - min_exponent) << info->mantissa_bits)
             + bsmi_round_shift(m.significand, shift, rounding, random);
    }
    if (code <= info->max_code) return bsmi_code_with_sign(info, negative, (uint32_t)code);
    if (saturate) return bsmi_code_with_sign(info, negative, info->max_code);
    if (info->has_infinity) return bsmi_code_with_sign(info, negative, info->max_code + 1);
    if (info->nan_codes > 0) return info->nan_code;
    return bsmi_code_with_sign(info, negative, info->max_code);
}

/* splitmix64's finalizer (Steele, Lea, Flood 2014) over a counter: any element can be rounded without the others. */
BSMI_SHARED uint32_t bsmi_random_bits(uint64_t seed, uint64_t index)
{
    uint64_t z = seed + (index + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (uint32_t)((z ^ (z >> 31)) >> 32);
}

#endif
