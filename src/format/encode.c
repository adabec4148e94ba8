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

/* int8 is two's complement; the others have a sign bit. */
static uint32_t with_sign(const bsm_element_info *info, bool negative, uint32_t code)
{
    if (!negative) return code;
    return info->exponent_bits == 0 ? (0u - code) & 0xff : code | (uint32_t)1 << (info->bits - 1);
}

/* int8 needs no case of its own: 7 mantissa bits and no exponent make it the subnormals below 2^1, in steps of 2^-6. */
uint32_t bsm_element_encode(bsm_element element, double value, bsm_rounding rounding, bool saturate, uint32_t random)
{
    const bsm_element_info *info = bsm_element_get((int)element);
    if (info == NULL) return 0;
    const uint64_t bits = bsmi_double_bits(value), magnitude_bits = bits & ~((uint64_t)1 << 63);
    const bool negative = bits >> 63 != 0, infinite = magnitude_bits == (uint64_t)0x7ff << 52;
    if (magnitude_bits > (uint64_t)0x7ff << 52) return info->nan_code;

    const int min_exponent = 1 - info->bias;
    uint64_t code = (uint64_t)info->max_code + 1;
    if (!infinite) {
        const struct magnitude m = split(magnitude_bits);
        const int exponent = m.exponent > min_exponent ? m.exponent : min_exponent;
        const int shift = 52 - info->mantissa_bits + (exponent - m.exponent);
        /* The leading bit of a normal number adds 1 to the exponent field, also when rounding carries into it. */
        code = ((uint64_t)(exponent - min_exponent) << info->mantissa_bits) + round_shift(m.significand, shift, rounding, random);
    }
    if (code <= info->max_code) return with_sign(info, negative, (uint32_t)code);
    if (saturate) return with_sign(info, negative, info->max_code);
    if (info->has_infinity) return with_sign(info, negative, info->max_code + 1);
    if (info->nan_codes > 0) return info->nan_code;
    return with_sign(info, negative, info->max_code);
}

/* The same rounding without its branches.  A shift of 63 stands for all that are longer: nothing is left then. */
void bsmi_element_encode_nearest(bsm_element element, const double *values, int count, uint8_t *codes)
{
    const bsm_element_info *info = bsm_element_get((int)element);
    const int mantissa_bits = info->mantissa_bits, min_biased = 1 - info->bias + 1023;
    const uint64_t fraction_mask = ((uint64_t)1 << 52) - 1, max_code = info->max_code;
    const uint32_t complement = info->exponent_bits == 0 ? 0xff : 0, sign_bit = ((uint32_t)1 << (info->bits - 1)) & ~complement;
    for (int i = 0; i < count; i++) {
        const uint64_t bits = bsmi_double_bits(values[i]), magnitude = bits & ~((uint64_t)1 << 63);
        const int biased = (int)(magnitude >> 52), kept = biased > min_biased ? biased : min_biased;
        const int wanted = 52 - mantissa_bits + (kept - biased), shift = wanted < 63 ? wanted : 63;
        const uint64_t significand = (magnitude & fraction_mask) | (uint64_t)1 << 52;
        const uint64_t below_half = ((uint64_t)1 << (shift - 1)) - 1, odd = significand >> shift & 1;
        const uint64_t code = ((uint64_t)(kept - min_biased) << mantissa_bits) + ((significand + below_half + odd) >> shift);
        const uint32_t cut = (uint32_t)(code < max_code ? code : max_code);
        const uint32_t if_negative = 0u - (uint32_t)(bits >> 63), flip = complement & if_negative;
        const uint32_t signed_code = ((cut ^ flip) + (flip & 1)) | (sign_bit & if_negative);
        codes[i] = (uint8_t)(magnitude > (uint64_t)0x7ff << 52 ? info->nan_code : signed_code);
    }
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
