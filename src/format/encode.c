/* Values to codes: one rounding, in integer arithmetic, straight from the double. */
#include "format.h"

/* A finite magnitude as significand * 2^(exponent - 52). */
struct magnitude { uint64_t significand; int exponent; };

static struct magnitude split(uint64_t magnitude_bits)
{
    const int biased = (int)(magnitude_bits >> 52);
    const uint64_t fraction = magnitude_bits & (((uint64_t)1 << 52) - 1);
    if (biased == 0) return (struct magnitude){ fraction, -1022 };
    return (struct magnitude){ fraction | (uint64_t)1 << 52, biased - 1023 };
}

/* significand / 2^shift, rounded; shift >= 0. */
static uint64_t round_shift(uint64_t significand, int shift, bsm_rounding rounding, uint32_t random)
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

/* Two's complement times 2^-6, within +-127. */
static uint32_t encode_int8(uint64_t bits, bsm_rounding rounding, uint32_t random)
{
    const bool negative = bits >> 63 != 0;
    const struct magnitude m = split(bits & ~((uint64_t)1 << 63));
    const int shift = 52 - 6 - m.exponent;
    const uint64_t steps = shift < 40 ? 127 : round_shift(m.significand, shift, rounding, random);   /* 40: far above 127 steps */
    const int value = steps > 127 ? 127 : (int)steps;
    return (uint8_t)(negative ? -value : value);
}

uint32_t bsm_element_encode(bsm_element element, double value, bsm_rounding rounding, bool saturate, uint32_t random)
{
    const bsm_element_info *info = bsm_element_get((int)element);
    if (info == NULL) return 0;
    const uint64_t bits = bsmi_double_bits(value), magnitude_bits = bits & ~((uint64_t)1 << 63);
    const bool infinite = magnitude_bits == (uint64_t)0x7ff << 52;
    if (magnitude_bits > (uint64_t)0x7ff << 52) return info->nan_code;
    if (element == BSM_INT8) return infinite ? (uint8_t)(bits >> 63 ? -127 : 127) : encode_int8(bits, rounding, random);

    const uint32_t sign = (uint32_t)(bits >> 63) << (info->bits - 1);
    const int min_exponent = 1 - info->bias;
    uint64_t code = (uint64_t)info->max_code + 1;
    if (!infinite) {
        const struct magnitude m = split(magnitude_bits);
        const int exponent = m.exponent > min_exponent ? m.exponent : min_exponent;
        const int shift = 52 - info->mantissa_bits + (exponent - m.exponent);
        /* The leading bit of a normal number adds 1 to the exponent field, also when rounding carries into it. */
        code = ((uint64_t)(exponent - min_exponent) << info->mantissa_bits) + round_shift(m.significand, shift, rounding, random);
    }
    if (code <= info->max_code) return sign | (uint32_t)code;
    if (saturate) return sign | info->max_code;
    if (info->has_infinity) return sign | ((((uint32_t)1 << info->exponent_bits) - 1) << info->mantissa_bits);
    if (info->nan_codes > 0) return info->nan_code;
    return sign | info->max_code;
}

uint8_t bsmi_ue4m3_encode(double magnitude)
{
    return (uint8_t)(bsm_element_encode(BSM_E4M3, magnitude, BSM_ROUND_NEAREST_EVEN, true, 0) & 0x7f);
}

/* splitmix64's finalizer (Steele, Lea, Flood 2014) over a counter: any element can be rounded without the others. */
uint32_t bsm_random_bits(uint64_t seed, uint64_t index)
{
    uint64_t z = seed + (index + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (uint32_t)((z ^ (z >> 31)) >> 32);
}

float bsmi_round_sum_to_float(double value, double tail)
{
    /* Round to odd: if value is inexact and its last bit is even, move it one step towards the tail.  53 >= 24 + 2 bits
     * make the second rounding see the right side of every midpoint (Boldo and Melquiond 2008). */
    uint64_t bits = bsmi_double_bits(value);
    if (isfinite(value) && tail != 0 && (bits & 1) == 0) bits += (tail > 0) == (value > 0) ? 1 : (uint64_t)-1;
    return (float)bsmi_double_from_bits(bits);
}
