/* The scale code of a block, recipe by recipe, and what its elements are divided by: the arithmetic of recipes.c and
 * block.c.  Also compiled for GPUs.
 *
 * A recipe works on the real number r = amax / t (or amax * t for a dividing tensor scale), which need not be a double.
 * It is kept as a fraction of two doubles that are both exact, and only fractions are compared: no logarithm, no
 * quotient that was rounded.  Both parts are normal doubles: they lie between 2^-298 and 2^256. */
#ifndef BSMI_SCALE_CODE_H
#define BSMI_SCALE_CODE_H

#include "format/rounding.h"

struct bsmi_fraction { double numerator, denominator; };

/* 24 bits over 24 bits, or 48 bits (the product of two floats) over 1: exact. */
BSMI_SHARED struct bsmi_fraction bsmi_scaled_amax(float amax, double tensor_scale, bool tensor_scale_divides)
{
    struct bsmi_fraction r = { (double)amax, tensor_scale };
    if (tensor_scale_divides) r.numerator *= tensor_scale, r.denominator = 1;
    return r;
}

BSMI_SHARED int bsmi_exponent_of(double normal) { return (int)(bsmi_double_bits(normal) >> 52) - 1023; }
BSMI_SHARED uint64_t bsmi_significand_of(double normal) { return bsmi_double_bits(normal) & (((uint64_t)1 << 52) - 1); }

/* n = 2^a u, d = 2^b v with u, v in [1, 2): u / v lies in (1/2, 2), so log2(n / d) is a - b plus less than one. */
BSMI_SHARED int bsmi_floor_log2(struct bsmi_fraction r)
{
    return bsmi_exponent_of(r.numerator) - bsmi_exponent_of(r.denominator)
         - (bsmi_significand_of(r.numerator) < bsmi_significand_of(r.denominator));
}

BSMI_SHARED int bsmi_ceil_log2(struct bsmi_fraction r)
{
    return bsmi_exponent_of(r.numerator) - bsmi_exponent_of(r.denominator)
         + (bsmi_significand_of(r.numerator) > bsmi_significand_of(r.denominator));
}

BSMI_SHARED struct bsmi_fraction bsmi_fraction_over(struct bsmi_fraction r, double divisor)
{
    r.denominator *= divisor;             /* 24 bits times at most 7: exact */
    return r;
}

/* The e8m0 code of 2^exponent, within the codes that are numbers. */
BSMI_SHARED uint8_t bsmi_e8m0_code(int exponent)
{
    const int code = exponent + 127;
    return (uint8_t)(code < 0 ? 0 : code > 254 ? 254 : code);
}

BSMI_SHARED uint8_t bsmi_floor_code(const bsm_element_info *element, struct bsmi_fraction r)
{
    return bsmi_e8m0_code(bsmi_floor_log2(r) - bsmi_exponent_of(element->max_value));
}

BSMI_SHARED uint8_t bsmi_ceil_code(const bsm_element_info *element, struct bsmi_fraction r)
{
    return bsmi_e8m0_code(bsmi_ceil_log2(r) - bsmi_exponent_of(element->max_value));
}

BSMI_SHARED uint8_t bsmi_rceil_code(const bsm_element_info *element, struct bsmi_fraction r)
{
    return bsmi_e8m0_code(bsmi_ceil_log2(bsmi_fraction_over(r, element->max_value)));
}

/* Rounding half up to `bits` fraction bits carries into the next power of two from 2 - 2^-(bits + 1) on.  On fp32 bits
 * that is adding 1 << (23 - bits - 1), as the implementations do it; said of the real number it also holds for
 * subnormals (where only int8 can tell the difference: the others are clamped to code 0) and up to FLT_MAX.
 * int8 has 6 fraction bits behind the leading bit of its largest binade, [1, 2). */
BSMI_SHARED uint8_t bsmi_even_code(const bsm_element_info *element, struct bsmi_fraction r)
{
    const int bits = element->exponent_bits == 0 ? 6 : element->mantissa_bits;
    const double carries_from = 2 - bsmi_double_power_of_two(-(bits + 1));
    return bsmi_e8m0_code(bsmi_floor_log2(bsmi_fraction_over(r, carries_from)) + 1
                          - bsmi_exponent_of(element->max_value));
}

/* r / max, rounded to nearest even with 4 bits, saturating.
 * The quotient is rounded to a double first, and that does no harm.  A midpoint of ue4m3 is k 2^j with k < 2^5, max is
 * 3 * 2^1 for e2m1.  With r = n / d: n / (max d) is a midpoint, or n differs from 3 k d 2^(j + 1), an integer of at
 * most 2 + 5 + 24 = 31 bits (48 bits of n over d = 1, for a divisor), by at least one unit: relatively by 2^-48 or
 * more.  The double is off by at most 2^-53, so it lies on the same side of every midpoint, and on one only if the
 * quotient does. */
BSMI_SHARED uint8_t bsmi_ue4m3_code(const bsm_element_info *e4m3, struct bsmi_fraction r)
{
    return (uint8_t)(bsmi_encode(e4m3, r.numerator / r.denominator, BSM_ROUND_NEAREST_EVEN, true, 0) & 0x7f);
}

BSMI_SHARED uint8_t bsmi_nearest_code(const bsm_element_info *element, const bsm_element_info *e4m3,
                                      struct bsmi_fraction r)
{
    return bsmi_ue4m3_code(e4m3, bsmi_fraction_over(r, element->max_value));
}

/* The same of r / 4, a power of two: the largest number becomes e2m1's 4 instead of its 6. */
BSMI_SHARED uint8_t bsmi_nearest_code_of_4(const bsm_element_info *e4m3, struct bsmi_fraction r)
{
    return bsmi_ue4m3_code(e4m3, bsmi_fraction_over(r, 4));
}

/* What the elements of a block are divided by: x * factor / divisor.
 * Both parts are exact doubles: 24 times 24 bits, over 24 times at most 4 bits.  Their quotient is rounded to a double,
 * and then to the element; that is one rounding in effect.  A midpoint of an element has at most 8 bits, so midpoint *
 * divisor has at most 36 bits, and a quotient that is no midpoint differs from it by 2^-48 or more, relatively; the
 * double is off by 2^-53.  Nor does it matter for "larger than the largest value". */
struct bsmi_division { double factor, divisor; };

BSMI_SHARED struct bsmi_division bsmi_division_of(double scale, double tensor_scale, bool tensor_scale_divides)
{
    struct bsmi_division by = { 1, scale * tensor_scale };
    if (scale == 0) by.divisor = (double)INFINITY;                   /* ue4m3 code 0: everything is +-0 */
    else if (tensor_scale_divides) by.factor = tensor_scale, by.divisor = scale;
    return by;
}

/* element * scale, times or over the tensor scale: one rounding to double at most.  Products are exact: at most 24 bits
 * of element and scale times 24 bits. */
BSMI_SHARED double bsmi_scaled_value(double element, double scale, double tensor_scale, bool divides)
{
    return divides ? element * scale / tensor_scale : element * scale * tensor_scale;
}

#endif
