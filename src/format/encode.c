/* Values to codes: one rounding, in integer arithmetic, straight from the double. */
#include "rounding.h"

uint32_t bsm_element_encode(bsm_element element, double value, bsm_rounding rounding, bool saturate, uint32_t random)
{
    const bsm_element_info *info = bsm_element_get((int)element);
    return info == NULL ? 0 : bsmi_encode(info, value, rounding, saturate, random);
}

/* The same rounding without its branches.  A shift of 63 stands for all that are longer: nothing is left then. */
void bsmi_element_encode_nearest(bsm_element element, const double *values, int count, uint8_t *codes)
{
    const bsm_element_info *info = bsm_element_get((int)element);
    const int mantissa_bits = info->mantissa_bits, min_biased = 1 - info->bias + 1023;
    const uint64_t fraction_mask = ((uint64_t)1 << 52) - 1, max_code = info->max_code;
    const uint32_t complement = info->exponent_bits == 0 ? 0xff : 0,
                   sign_bit = ((uint32_t)1 << (info->bits - 1)) & ~complement;
    for (int i = 0; i < count; i++) {
        const uint64_t bits = bsmi_double_bits(values[i]), magnitude = bits & ~((uint64_t)1 << 63);
        const int biased = (int)(magnitude >> 52), kept = biased > min_biased ? biased : min_biased;
        const int wanted = 52 - mantissa_bits + (kept - biased), shift = wanted < 63 ? wanted : 63;
        const uint64_t significand = (magnitude & fraction_mask) | (uint64_t)1 << 52;
        const uint64_t below_half = ((uint64_t)1 << (shift - 1)) - 1, odd = significand >> shift & 1;
        const uint64_t code =
            ((uint64_t)(kept - min_biased) << mantissa_bits) + ((significand + below_half + odd) >> shift);
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

uint32_t bsm_random_bits(uint64_t seed, uint64_t index) { return bsmi_random_bits(seed, index); }

double bsmi_round_to_odd(double value, double tail)
{
    uint64_t bits = bsmi_double_bits(value);
    const bool inexact = isfinite(value) && value != 0 && tail != 0;
    if (inexact && (bits & 1) == 0) bits += (tail > 0) == (value > 0) ? 1 : (uint64_t)-1;
    return bsmi_double_from_bits(bits);
}

double bsmi_odd_product(double a, double b)
{
    const double product = a * b;
    return bsmi_round_to_odd(product, fma(a, b, -product));
}

/* 53 >= 24 + 2 bits make the second rounding see the right side of every midpoint (Boldo and Melquiond 2008). */
float bsmi_round_sum_to_float(double value, double tail) { return (float)bsmi_round_to_odd(value, tail); }
