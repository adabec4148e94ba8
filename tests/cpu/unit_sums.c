/* Orders of sums of matrix units. */
#include "unit_sums.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SLICE = 32, LEAST = -40, MOST = 40 };

/* Which order -------------------------------------------------------------------------------------------------------*/

enum unit_order unit_order_of_plan(const bsm_plan *plan)
{
    char text[1024];
    bsm_plan_describe(plan, text, sizeof text);
    const char *order = strstr(text, "order: ");
    if (order == NULL) abort();
    if (strncmp(order + 7, "AMX", 3) == 0) return UNIT_AMX_BF16;
    if (strncmp(order + 7, "AVX512_BF16", 11) == 0) return UNIT_AVX512_BF16;
    if (strncmp(order + 7, "Arm", 3) == 0) return UNIT_ARM_BF16;
    return UNIT_NONE;
}

enum unit_order unit_order_of(bsm_context *context, const bsm_matmul *product)
{
    bsm_plan *plan = NULL;
    if (bsm_plan_create(context, product, &plan) != BSM_OK) return UNIT_NONE;
    const enum unit_order order = unit_order_of_plan(plan);
    bsm_plan_destroy(plan);
    return order;
}

/* Operands --------------------------------------------------------------------------------------------------------- */

/* Exponents of an element's least and largest magnitude. */
static void element_exponents(bsm_element element, int *least, int *most)
{
    static const int exponents[BSM_ELEMENT_COUNT][2] = {
        [BSM_E2M1] = { -1, 2 }, [BSM_E2M3] = { -3, 2 }, [BSM_E3M2] = { -4, 4 },
        [BSM_E4M3] = { -9, 8 }, [BSM_E5M2] = { -16, 15 }, [BSM_INT8] = { -6, 1 },
    };
    *least = exponents[element][0], *most = exponents[element][1];
}

/* A row in blocks with e8m0 scales: blocks of zeros, and those under a scale that is NaN, have no part in its range. */
static bool fits(bsm_element element, int block, int64_t columns, const double *elements, const double *scales,
                 bool beside_bf16, int *exponent)
{
    int least, most, low = 1000, high = -1000;
    element_exponents(element, &least, &most);
    for (int64_t k = 0; k < columns; k++) {
        bool zeros = true;
        for (int64_t i = k / block * block; i < columns && i < k / block * block + block; i++)
            zeros = zeros && elements[i] == 0;
        if (zeros || isnan(scales[k])) continue;
        const int scale = ilogb(scales[k]);
        low = scale < low ? scale : low, high = scale > high ? scale : high;
    }
    *exponent = 0;
    if (low > high || (low + least >= LEAST && high + most <= MOST)) return true;
    if (beside_bf16 || high + most - (low + least) > MOST - LEAST) return false;
    *exponent = (int)floor((low + least + high + most) / 2.0);
    return true;
}

static float upper_half(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits &= 0xffff0000;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* fp16 has three bits more than bf16.  Where those are zero both terms are one half, so that no zero meets an infinity
 * that was not there. */
static void split(float x, float *high, float *low)
{
    const float upper = upper_half(x);
    if (isnan(x)) *high = *low = x;
    else if (upper == x) *high = *low = x / 2;
    else *high = upper, *low = x - upper;
}

static bool read_row(struct unit_rows *rows, bsm_format format, int64_t row, const double *elements,
                     const double *scales, bool beside_bf16)
{
    const bsm_format_info *info = bsm_format_get((int)format);
    float *numbers = rows->numbers + row * rows->terms * rows->padded;
    int exponent = 0;
    if (info->scale == BSM_E8M0
        && !fits(info->element, info->block, rows->depth, elements, scales, beside_bf16, &exponent))
        return false;
    rows->exponents[row] = exponent;
    for (int64_t k = 0; k < rows->depth; k++) {
        const double value = ldexp(elements[k] * scales[k], -exponent);
        if (format == BSM_FORMAT_BF16 && value != 0 && fabs(value) < 0x1p-126) return false;
        numbers[k] = (float)value;
        if (rows->terms == 2) split((float)value, &numbers[k], &numbers[rows->padded + k]);
        else if (upper_half(numbers[k]) != numbers[k] && !isnan(value)) abort();     /* bf16 holds them all */
    }
    return true;
}

struct unit_rows unit_rows_make(bsm_format format, int64_t rows, int64_t columns, const double *elements,
                                const double *scales, bool beside_bf16)
{
    struct unit_rows made = { .count = rows, .depth = columns, .padded = (columns + SLICE - 1) / SLICE * SLICE,
                              .terms = format == BSM_FORMAT_FP16 ? 2 : 1 };
    made.numbers = calloc((size_t)(rows * made.terms * made.padded) + 1, sizeof *made.numbers);
    made.exponents = calloc((size_t)rows + 1, sizeof *made.exponents);
    made.fallback = calloc((size_t)rows + 1, sizeof *made.fallback);
    for (int64_t r = 0; r < rows; r++)
        made.fallback[r] = format == BSM_FORMAT_FP32
                           || !read_row(&made, format, r, elements + r * columns, scales + r * columns, beside_bf16);
    return made;
}

void unit_rows_free(struct unit_rows *rows) { free(rows->numbers), free(rows->exponents), free(rows->fallback); }

/* Steps ------------------------------------------------------------------------------------------------------------ */

/* x + y in double; where it is not exact, with the last bit set.  Then nothing that is rounded from it later is rounded
 * twice. */
static double odd_double(double x, double y)
{
    const double s = x + y;
    if (!isfinite(s)) return s;
    const double part = s - x, error = (x - (s - part)) + (y - part);
    uint64_t bits;
    memcpy(&bits, &s, sizeof bits);
    if (error == 0 || bits % 2 != 0) return s;
    return nextafter(s, error > 0 ? INFINITY : -INFINITY);
}

static float flush(double x) { return fabs(x) < 0x1p-126 ? copysignf(0, (float)x) : (float)x; }

/* Nearest even; what has less than 2^-126 after it was rounded to 24 bits is a zero. */
static float nearest_flushed(double x)
{
    return fabs(x) < 0x1p-126 - 0x1p-151 ? copysignf(0, (float)x) : (float)x;
}

static float fused(float a, float b, float sum)
{
    return nearest_flushed(odd_double((double)flush((double)a) * (double)flush((double)b), (double)sum));
}

/* To odd in fp32: cut toward zero, the last bit set where something was cut; below 2^-126 a zero. */
static float to_odd(double x)
{
    if (!isfinite(x) || x == 0) return (float)x;
    if (fabs(x) < 0x1p-126) return copysignf(0, (float)x);
    if (fabs(x) >= 0x1p128) return copysignf(INFINITY, (float)x);
    const double unit = ldexp(1, ilogb(x) - 23), whole = trunc(x / unit);
    const bool sets = whole * unit != x && fmod(whole, 2) == 0;
    return (float)((sets ? whole + copysign(1, x) : whole) * unit);
}

/* Orders ----------------------------------------------------------------------------------------------------------- */

/* A slice of AMX: even and odd k in chains of their own, from +0. */
static float amx_slice(const float *a, const float *b, float sum)
{
    float chains[2] = { 0, 0 };
    for (int k = 0; k < SLICE; k++) chains[k % 2] = fused(a[k], b[k], chains[k % 2]);
    const float both = nearest_flushed(odd_double((double)chains[0], (double)chains[1]));
    return nearest_flushed(odd_double((double)sum, (double)both));
}

/* Of a pair the second product first. */
static float avx512_slice(const float *a, const float *b, float sum)
{
    for (int k = 0; k < SLICE; k += 2) {
        sum = fused(a[k + 1], b[k + 1], sum);
        sum = fused(a[k], b[k], sum);
    }
    return sum;
}

/* Products and sums of pairs rounded to odd. */
static float arm_slice(const float *a, const float *b, float sum)
{
    for (int k = 0; k < SLICE; k += 2) {
        const float first = to_odd((double)flush((double)a[k]) * (double)flush((double)b[k]));
        const float second = to_odd((double)flush((double)a[k + 1]) * (double)flush((double)b[k + 1]));
        sum = to_odd(odd_double((double)sum, (double)to_odd(odd_double((double)first, (double)second))));
    }
    return sum;
}

int64_t unit_roundings(enum unit_order order, bsm_format a, bsm_format b, int64_t k)
{
    const int64_t terms = (a == BSM_FORMAT_FP16 ? 2 : 1) * (b == BSM_FORMAT_FP16 ? 2 : 1);
    if (order == UNIT_NONE) return k;
    if (order == UNIT_AMX_BF16) return 16 + (k + SLICE - 1) / SLICE * terms;
    return order == UNIT_AVX512_BF16 ? 1 + k * terms : 1 + 2 * ((k + 1) / 2 * terms);
}

float unit_sum(enum unit_order order, const struct unit_rows *a, int64_t i, const struct unit_rows *b, int64_t j)
{
    float (*const slice)(const float *, const float *, float) = order == UNIT_AMX_BF16      ? amx_slice
                                                                : order == UNIT_AVX512_BF16 ? avx512_slice
                                                                                            : arm_slice;
    const float *of_a = a->numbers + i * a->terms * a->padded, *of_b = b->numbers + j * b->terms * b->padded;
    float sum = 0;
    for (int64_t k = 0; k < a->padded; k += SLICE)
        for (int x = 0; x < a->terms; x++)
            for (int y = 0; y < b->terms; y++) sum = slice(of_a + x * a->padded + k, of_b + y * b->padded + k, sum);
    const int exponent = a->exponents[i] + b->exponents[j];
    return exponent == 0 ? sum : (float)ldexp((double)sum, exponent);
}
