/* Codes to numbers. */
#include "elements.h"

#include <math.h>
#include <string.h>

struct kind { uint8_t bits, exponent, mantissa; int8_t bias; };
static const struct kind kinds[ELEMENTS] = {
    [ELEMENT_E4M3] = { 8, 4, 3, 7 },  [ELEMENT_E5M2] = { 8, 5, 2, 15 }, [ELEMENT_E2M3] = { 6, 2, 3, 1 },
    [ELEMENT_E3M2] = { 6, 3, 2, 3 },  [ELEMENT_E2M1] = { 4, 2, 1, 1 },  [ELEMENT_BF16] = { 16, 8, 7, 127 },
    [ELEMENT_F16] = { 16, 5, 10, 15 }, [ELEMENT_I8] = { 8, 0, 7, 0 },
};

uint32_t element_bits(enum element e) { return kinds[e].bits; }

double element_value(enum element e, uint32_t code)
{
    const struct kind *k = &kinds[e];
    if (e == ELEMENT_I8) return (double)(int8_t)code;
    const uint32_t mantissa = code & ((1u << k->mantissa) - 1), all = (1u << k->exponent) - 1,
                   exponent = code >> k->mantissa & all;
    const double sign = code >> (k->bits - 1) & 1 ? -1.0 : 1.0;
    const bool ieee = e == ELEMENT_E5M2 || e == ELEMENT_BF16 || e == ELEMENT_F16;
    if (ieee && exponent == all) return mantissa == 0 ? sign * INFINITY : NAN;
    if (e == ELEMENT_E4M3 && (code & 0x7f) == 0x7f) return NAN;
    const double fraction = exponent == 0 ? mantissa : mantissa + (double)(1u << k->mantissa);
    return sign * ldexp(fraction, (int)(exponent == 0 ? 1 : exponent) - k->bias - k->mantissa);
}

uint32_t element_encode(enum element e, double value, bool saturates)
{
    const struct kind *k = &kinds[e];
    const bool wide = e == ELEMENT_E4M3 || e == ELEMENT_E5M2;
    const uint32_t sign = signbit(value) ? 1u << (k->bits - 1) : 0,
                   all = (1u << (k->bits - 1)) - 1,
                   largest = e == ELEMENT_E4M3 ? 0x7e : e == ELEMENT_E5M2 ? 0x7b : all,
                   beyond = !wide || saturates ? largest : e == ELEMENT_E4M3 ? 0x7f : 0x7c;
    const double a = fabs(value);
    if (a != a) return sign | (wide ? 0x7f : largest);
    if (isinf(a)) return sign | beyond;
    int exponent;
    (void)frexp(a, &exponent);
    const int lowest = 1 - k->bias;
    if (a == 0 || exponent - 1 < lowest) exponent = lowest + 1;
    const double unit = ldexp(1, exponent - 1 - k->mantissa), rounded = nearbyint(a / unit) * unit;
    if (rounded > element_value(e, largest)) return sign | beyond;
    if (rounded < ldexp(1, lowest)) return sign | (uint32_t)ldexp(rounded, k->mantissa - lowest);
    (void)frexp(rounded, &exponent);
    const uint32_t fraction = (uint32_t)ldexp(rounded, k->mantissa - exponent + 1) - (1u << k->mantissa);
    return sign | (uint32_t)(exponent - 1 + k->bias) << k->mantissa | fraction;
}

float half_to_float(uint16_t bits) { return (float)element_value(ELEMENT_F16, bits); }

uint16_t float_to_half(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, 4);
    if (f != f) return (uint16_t)((bits >> 16 & 0x8000) | 0x7e00 | (bits >> 13 & 0x3ff));
    return double_to_half((double)f);
}

uint16_t double_to_half(double d)
{
    const uint16_t sign = signbit(d) ? 0x8000 : 0;
    if (d != d) return sign | 0x7e00;
    const double a = fabs(d);
    if (a >= 65520.0) return (uint16_t)(sign | 0x7c00);
    int e = 0;
    (void)frexp(a, &e);
    const int lowest = e - 11 < -24 ? -24 : e - 11;                       /* exponent of the last bit that is kept */
    const double units = nearbyint(ldexp(a, -lowest));                    /* RNE */
    const double rounded = ldexp(units, lowest);
    if (rounded < ldexp(1, -14)) return (uint16_t)(sign | (uint16_t)ldexp(rounded, 24));
    (void)frexp(rounded, &e);
    return (uint16_t)(sign | (uint16_t)((e + 14) << 10) | ((uint16_t)ldexp(rounded, 11 - e) & 0x3ff));
}

uint16_t float_to_bfloat(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, 4);
    if (f != f) return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
