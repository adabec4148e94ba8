/* The slow quantizer, see oracle_block.h. */
#include "oracle_block.h"

#include "../format/oracle.h"

#include <string.h>

static const double largest_values[] = {
    [BSM_E4M3] = 448, [BSM_E5M2] = 57344, [BSM_E3M2] = 28, [BSM_E2M3] = 7.5, [BSM_E2M1] = 6, [BSM_INT8] = 1.984375
};
static const int largest_exponents[] = {
    [BSM_E4M3] = 8, [BSM_E5M2] = 15, [BSM_E3M2] = 4, [BSM_E2M3] = 2, [BSM_E2M1] = 2, [BSM_INT8] = 0
};
static const int fraction_bits[] = {
    [BSM_E4M3] = 3, [BSM_E5M2] = 2, [BSM_E3M2] = 2, [BSM_E2M3] = 3, [BSM_E2M1] = 1, [BSM_INT8] = 6
};

static const struct { bsm_format format; bsm_element element; bool ue4m3; } formats[] = {
    { BSM_MXFP8_E4M3, BSM_E4M3, false }, { BSM_MXFP8_E5M2, BSM_E5M2, false }, { BSM_MXFP6_E3M2, BSM_E3M2, false },
    { BSM_MXFP6_E2M3, BSM_E2M3, false }, { BSM_MXFP4, BSM_E2M1, false }, { BSM_MXFP4_BLOCK16, BSM_E2M1, false },
    { BSM_MXINT8, BSM_INT8, false }, { BSM_NVFP4, BSM_E2M1, true } };

static bsm_element element_of(bsm_format format)
{
    int i = 0;
    while (formats[i].format != format) i++;
    return formats[i].element;
}

/* amax / t <= y for a multiplying tensor scale: amax <= y t; amax * t <= y for a dividing one.  -1, 0, 1. */
static int compare_scaled(const struct oracle_setup *setup, double amax, struct exact y)
{
    const struct exact m = exact_of(amax), t = exact_of((double)setup->tensor_scale);
    return setup->divides ? exact_compare(exact_times(m, t), y) : exact_compare(m, exact_times(y, t));
}

/* The smallest e with r <= y 2^e, r the scaled amax. */
static int smallest_exponent(const struct oracle_setup *setup, double amax, double y)
{
    int low = -600, high = 600;           /* r > y 2^low, r <= y 2^high */
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        if (compare_scaled(setup, amax, exact_times(exact_of(y), exact_power_of_two(middle))) <= 0) high = middle;
        else low = middle;
    }
    return high;
}

static int floor_exponent(const struct oracle_setup *setup, double amax)
{
    const int up = smallest_exponent(setup, amax, 1);
    return compare_scaled(setup, amax, exact_power_of_two(up)) == 0 ? up : up - 1;
}

/* floor, unless adding half a unit of the mantissa reaches the next power: r >= 2^(f + 1) - 2^(f - bits - 1). */
static int even_exponent(const struct oracle_setup *setup, double amax, int bits)
{
    const int f = floor_exponent(setup, amax);
    const struct exact carries = { ((wide_integer)1 << (bits + 2)) - 1, f - bits - 1 };
    return compare_scaled(setup, amax, carries) >= 0 ? f + 1 : f;
}

/* Counts the midpoints of ue4m3 that r / 6 is beyond; at a midpoint the even code stays. */
static uint8_t nearest_code(const struct oracle_setup *setup, double amax, double largest)
{
    uint8_t code = 0;
    for (uint32_t c = 0; c < 0x7e; c++) {
        const double middle = (oracle_decode(BSM_E4M3, c) + oracle_decode(BSM_E4M3, c + 1)) / 2;
        const int side = compare_scaled(setup, amax, exact_times(exact_of(middle), exact_of(largest)));
        if (side > 0 || (side == 0 && c % 2 == 1)) code = (uint8_t)(c + 1);
    }
    return code;
}

uint8_t oracle_scale_code(const struct oracle_setup *setup, double amax)
{
    const bsm_element element = element_of(setup->format);
    int exponent = 0;
    if (amax == 0) return 0;
    switch (setup->recipe) {
    case BSM_RECIPE_FLOOR: exponent = floor_exponent(setup, amax) - largest_exponents[element]; break;
    case BSM_RECIPE_CEIL: exponent = smallest_exponent(setup, amax, 1) - largest_exponents[element]; break;
    case BSM_RECIPE_RCEIL: exponent = smallest_exponent(setup, amax, largest_values[element]); break;
    case BSM_RECIPE_EVEN:
        exponent = even_exponent(setup, amax, fraction_bits[element]) - largest_exponents[element];
        break;
    default: return nearest_code(setup, amax, largest_values[element]);
    }
    return (uint8_t)(exponent < -127 ? 0 : exponent > 127 ? 254 : exponent + 127);
}

uint32_t oracle_round(bsm_element element, bool negative, struct exact numerator, struct exact denominator,
                      bool saturate)
{
    const uint32_t largest = oracle_elements[element].largest;
    uint32_t low = 0, high = largest + 2;  /* value(low) <= number < value(high) */
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        const double value = middle <= largest
                                 ? oracle_decode(element, middle)
                                 : 2 * oracle_decode(element, largest) - oracle_decode(element, largest - 1);
        if (exact_compare(exact_times(exact_of(value), denominator), numerator) <= 0) low = middle;
        else high = middle;
    }
    uint32_t code = low;
    if (low <= largest) {
        const double value = oracle_decode(element, low);
        const double step =
            low < largest ? oracle_decode(element, low + 1) - value : value - oracle_decode(element, low - 1);
        const int side = exact_compare(numerator, exact_times(exact_of(value + step / 2), denominator));
        if (side > 0 || (side == 0 && low % 2 == 1)) code++;
    }
    if (code > largest) {
        if (!saturate && element == BSM_E4M3) return 0x7f;
        code = !saturate && oracle_elements[element].kind == IEEE ? largest + 1 : largest;
    }
    return negative ? oracle_negative(element, code) : code;
}

void oracle_value(double element, double scale, float tensor_scale, bool divides, struct exact *numerator,
                  struct exact *denominator)
{
    const struct exact product = exact_times(exact_of(fabs(element)), exact_of(scale)),
                       t = exact_of((double)tensor_scale);
    *numerator = divides ? product : exact_times(product, t);
    *denominator = divides ? t : exact_power_of_two(0);
}

static double scale_value(const struct oracle_setup *setup, uint8_t code)
{
    return setup->format == BSM_NVFP4 ? oracle_decode(BSM_E4M3, code) : ldexp(1, code - 127);
}

/* One element under a scale that is no NaN. */
static void quantize_element(const struct oracle_setup *setup, double x, double scale, uint8_t *code, bool *saturated)
{
    const bsm_element element = element_of(setup->format);
    *saturated = false;
    if (!isfinite(x)) {
        *code = (uint8_t)oracle_encode(element, x, true);
        return;
    }
    const bool negative = signbit(x) != 0;
    const struct exact magnitude = exact_of(fabs(x)), t = exact_of((double)setup->tensor_scale);
    if (scale == 0 || x == 0) {           /* a zero that keeps its sign, where there is one */
        *code = (uint8_t)(negative ? oracle_negative(element, 0) : 0);
        return;
    }
    const struct exact numerator = setup->divides ? exact_times(magnitude, t) : magnitude;
    const struct exact denominator = setup->divides ? exact_of(scale) : exact_times(exact_of(scale), t);
    *code = (uint8_t)oracle_round(element, negative, numerator, denominator, true);
    *saturated = exact_compare(numerator, exact_times(exact_of(largest_values[element]), denominator)) > 0;
}

/* MSE -------------------------------------------------------------------------------------------------------------- */

/* |x| - |value| in units of 2^(exponent - 41), squared.  Where some code is not zero, x is a multiple of the unit: its
 * quotient is at least half of e5m2's smallest step, 2^-17, and has 24 bits. */
static wide_integer squared_difference(double x, struct exact value, int exponent)
{
    const struct exact magnitude = exact_of(fabs(x));
    const wide_integer a = magnitude.n << (magnitude.e - (exponent - 41)),
                       b = value.n << (value.n == 0 ? 0 : value.e - (exponent - 41));
    return a > b ? (a - b) * (a - b) : (b - a) * (b - a);
}

/* Whether the scale 2^low has less squared error than 2^(low + 1); what is zero under both makes no difference. */
static bool lower_scale_is_better(const struct oracle_setup *setup, const double *x, int count, int low)
{
    const bsm_element element = element_of(setup->format);
    wide_integer below = 0, above = 0;
    for (int i = 0; i < count; i++) {
        uint8_t codes[2];
        bool saturated;
        if (!isfinite(x[i])) continue;
        struct exact values[2];
        for (int s = 0; s < 2; s++) {
            quantize_element(setup, x[i], ldexp(1, low + s), &codes[s], &saturated);
            values[s] = exact_times(exact_of(fabs(oracle_decode(element, codes[s]))), exact_power_of_two(low + s));
        }
        if (values[0].n == 0 && values[1].n == 0) continue;
        below += squared_difference(x[i], values[0], low);
        above += squared_difference(x[i], values[1], low);
    }
    return below < above;
}

static uint8_t mse_code(const struct oracle_setup *setup, double amax, const double *x, int count)
{
    struct oracle_setup candidate = *setup;
    candidate.recipe = BSM_RECIPE_FLOOR;
    const uint8_t low = oracle_scale_code(&candidate, amax);
    candidate.recipe = BSM_RECIPE_RCEIL;
    const uint8_t high = oracle_scale_code(&candidate, amax);
    return low != high && lower_scale_is_better(setup, x, count, low - 127) ? low : high;
}

void oracle_quantize_wide_block(const struct oracle_setup *setup, const double *x, int count,
                                struct oracle_block *result)
{
    double amax = 0;
    bool nonfinite = false, nonzero = false, any_code = false;
    memset(result, 0, sizeof *result);
    for (int i = 0; i < count; i++) {
        if (!isfinite(x[i])) nonfinite = true;
        else if (fabs(x[i]) > amax) amax = fabs(x[i]);
        if (!(x[i] == 0)) nonzero = true;
    }
    if (nonfinite && setup->nonfinite == BSM_NONFINITE_PROPAGATE) {
        result->scale = setup->format == BSM_NVFP4 ? 0x7f : 0xff;
        result->nan = true;
        return;
    }
    result->scale = setup->recipe == BSM_RECIPE_MSE ? mse_code(setup, amax, x, count) : oracle_scale_code(setup, amax);
    const double scale = scale_value(setup, result->scale);
    for (int i = 0; i < count; i++) {
        bool saturated;
        quantize_element(setup, x[i], scale, &result->codes[i], &saturated);
        result->saturated += saturated;
        const double value = oracle_decode(element_of(setup->format), result->codes[i]);
        if (value != 0) any_code = true;
    }
    result->flushed = nonzero && (!any_code || scale == 0);
}

void oracle_quantize_block(const struct oracle_setup *setup, const float *x, int count, struct oracle_block *result)
{
    double wide[32];
    for (int i = 0; i < count; i++) wide[i] = (double)x[i];
    oracle_quantize_wide_block(setup, wide, count, result);
}
