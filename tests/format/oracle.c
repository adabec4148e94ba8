/* A second statement of the formats, see oracle.h. */
#include "oracle.h"

#include <math.h>

const struct oracle_element oracle_elements[BSM_ELEMENT_COUNT] = {
    [BSM_E4M3] = { 8, 4, 3, 7, 0x7e, ONE_NAN },
    [BSM_E5M2] = { 8, 5, 2, 15, 0x7b, IEEE },
    [BSM_E3M2] = { 6, 3, 2, 3, 0x1f, ONLY_NUMBERS },
    [BSM_E2M3] = { 6, 2, 3, 1, 0x1f, ONLY_NUMBERS },
    [BSM_E2M1] = { 4, 2, 1, 1, 0x07, ONLY_NUMBERS },
    [BSM_INT8] = { 8, 0, 7, 0, 0x7f, INTEGER },
    [BSM_BF16] = { 16, 8, 7, 127, 0x7f7f, IEEE },
    [BSM_FP16] = { 16, 5, 10, 15, 0x7bff, IEEE },
    [BSM_FP32] = { 32, 8, 23, 127, 0x7f7fffff, IEEE },
};

/* The value of exponent and mantissa fields, whatever they stand for. */
static double fields_value(const struct oracle_element *e, uint32_t magnitude)
{
    const double steps = ldexp(1, e->mantissa_bits);
    const int exponent = (int)(magnitude >> e->mantissa_bits);
    const double fraction = (double)(magnitude & (((uint32_t)1 << e->mantissa_bits) - 1)) / steps;
    return exponent == 0 ? ldexp(fraction, 1 - e->bias) : ldexp(1 + fraction, exponent - e->bias);
}

static double positive_value(bsm_element element, uint32_t code)
{
    const struct oracle_element *e = &oracle_elements[element];
    return e->kind == INTEGER ? (double)code / 64 : fields_value(e, code);
}

double oracle_decode(bsm_element element, uint32_t code)
{
    const struct oracle_element *e = &oracle_elements[element];
    const uint32_t half = (uint32_t)1 << (e->bits - 1);
    if (e->bits < 32) code %= 2 * half;
    if (e->kind == INTEGER) return code < half ? (double)code / 64 : ((double)code - 256) / 64;
    const uint32_t magnitude = code % half;
    const double sign = code < half ? 1 : -1;
    if (magnitude <= e->largest) return sign * fields_value(e, magnitude);
    if (e->kind == IEEE && magnitude == e->largest + 1) return sign * (double)INFINITY;
    return (double)NAN;
}

uint32_t oracle_floor_code(bsm_element element, double magnitude)
{
    uint32_t low = 0, high = oracle_elements[element].largest + 2;       /* value(low) <= magnitude < value(high) */
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        if (positive_value(element, middle) <= magnitude) low = middle;
        else high = middle;
    }
    return low;
}

uint32_t oracle_negative(bsm_element element, uint32_t positive_code)
{
    const struct oracle_element *e = &oracle_elements[element];
    if (e->kind == INTEGER) return (256 - positive_code) % 256;
    return positive_code + ((uint32_t)1 << (e->bits - 1));
}

static uint32_t nearest_positive(bsm_element element, double magnitude)
{
    const uint32_t largest = oracle_elements[element].largest;
    const uint32_t low = oracle_floor_code(element, magnitude);
    if (low > largest) return low;
    /* Halves of neighbours are exact: one bit more than the code has. */
    const double middle = (positive_value(element, low) + positive_value(element, low + 1)) / 2;
    if (magnitude < middle) return low;
    if (magnitude > middle) return low + 1;
    return low % 2 == 0 ? low : low + 1;
}

uint32_t oracle_encode(bsm_element element, double value, bool saturate)
{
    const struct oracle_element *e = &oracle_elements[element];
    const uint32_t nan[] = { [ONLY_NUMBERS] = e->largest, [ONE_NAN] = 0x7f, [INTEGER] = 0,
                             [IEEE] = e->largest + 1 + ((uint32_t)1 << (e->mantissa_bits - 1)) };
    if (isnan(value)) return element == BSM_E5M2 ? 0x7f : nan[e->kind];
    const bool negative = signbit(value) != 0;
    uint32_t code = isinf(value) ? e->largest + 1 : nearest_positive(element, fabs(value));
    if (code > e->largest) {
        if (!saturate && e->kind == ONE_NAN) return 0x7f;
        code = !saturate && e->kind == IEEE ? e->largest + 1 : e->largest;
    }
    return negative ? oracle_negative(element, code) : code;
}
