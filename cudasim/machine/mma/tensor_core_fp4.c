/* Block-scaled products of e2m1: see tensor_core_fp4.h. */
#include "tensor_core_fp4.h"

#include <math.h>
#include <string.h>

#include "tensor_core.h"

enum { FRACTION_BITS = 35, LEAST_EXPONENT = -126, RESULT_NAN = 0x7fffffff };
/* A group's integer counts quarters (two elements, each doubled) times eighths times eighths. */
enum { GROUP_POINT = 8, C_POINT = 23 };

void tensor_fp4_clear(struct tensor_fp4 *panel, uint32_t rows, uint32_t groups, uint32_t width)
{
    panel->rows = rows, panel->groups = groups, panel->width = width;
    memset(panel->twice, 0, (size_t)rows * groups * width * sizeof *panel->twice);
    memset(panel->significand, 8, (size_t)rows * groups);
    memset(panel->exponent, 0, (size_t)rows * groups * sizeof *panel->exponent);
    memset(panel->nan, 0, rows * sizeof *panel->nan);
}

void tensor_fp4_set(struct tensor_fp4 *panel, uint32_t row, uint32_t k, uint32_t code)
{
    static const int8_t twice[16] = { 0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12 };
    panel->twice[(size_t)row * panel->groups * panel->width + k] = twice[code & 15];
}

void tensor_fp4_scale(struct tensor_fp4 *panel, uint32_t row, uint32_t group, enum tensor_scale_format format,
                      uint32_t code)
{
    const size_t at = (size_t)row * panel->groups + group;
    if (format == TENSOR_UE8M0) {
        panel->significand[at] = 8;
        panel->exponent[at] = (int16_t)((int32_t)(code & 255) - 127);
        panel->nan[row] |= (code & 255) == 255;
        return;
    }
    const uint32_t field = code >> 3 & 15, fraction = code & 7;
    panel->significand[at] = (uint8_t)(fraction | (uint32_t)(field != 0) << 3);
    panel->exponent[at] = (int16_t)(field != 0 ? (int32_t)field - 7 : fraction != 0 ? -6 : LEAST_EXPONENT);
    panel->nan[row] |= (code & 127) == 127;
}

/* Four times the sum. */
static int32_t sum_of_group(const int16_t *x, const int16_t *y, uint32_t width)
{
    int32_t sum = 0;
    for (uint32_t from = 0; from < width; from += TENSOR_FP4_GROUP)
        /* a fixed count: vector code */
        for (uint32_t k = 0; k < TENSOR_FP4_GROUP; k++) sum += x[from + k] * y[from + k];
    return sum;
}

/* value * 2^shift, toward zero. */
static int64_t shifted(int64_t value, int32_t shift)
{
    if (shift >= 0) return value * (INT64_C(1) << shift);
    if (shift <= -63) return 0;
    return value < 0 ? -(-value >> -shift) : value >> -shift;
}

static uint32_t plain_dot(const struct tensor_fp4 *a, uint32_t row_a, const struct tensor_fp4 *b, uint32_t row_b,
                          uint32_t c)
{
    const size_t from_a = (size_t)row_a * a->groups, from_b = (size_t)row_b * b->groups;
    float d;
    memcpy(&d, &c, sizeof d);
    for (uint32_t k = 0; k < a->groups * a->width; k++) {
        const size_t ga = from_a + k / a->width, gb = from_b + k / b->width;
        const float x = (float)(a->twice[from_a * a->width + k] * a->significand[ga]) / 16;
        const float y = (float)(b->twice[from_b * b->width + k] * b->significand[gb]) / 16;
        /* a scale may not fit, alone */
        const int32_t exponent = a->exponent[ga] + b->exponent[gb], half = exponent / 2;
        if (x != 0 && y != 0) d = fmaf(ldexpf(x, half), ldexpf(y, exponent - half), d);
    }
    memcpy(&c, &d, sizeof c);
    return d != d ? (uint32_t)RESULT_NAN : c;
}

/* A sum of normal size, rounded toward zero; what is not, by tensor_round. */
static uint32_t round_sum(int64_t sum, int32_t unit)
{
    if (sum == 0) return 0;
    const uint64_t magnitude = sum < 0 ? -(uint64_t)sum : (uint64_t)sum;
    const int32_t zeros = __builtin_clzll(magnitude), field = 63 - zeros + unit + 127;
    if (field < 1 || field > 254) return tensor_round(TENSOR_TO_F32, sum, unit);
    return (uint32_t)(sum < 0) << 31 | ((uint32_t)field << 23) | ((uint32_t)(magnitude << zeros >> 40) & 0x7fffff);
}

/* products: four times the sum of each group. */
static uint32_t scale_and_sum(const struct tensor_fp4 *a, uint32_t row_a, const struct tensor_fp4 *b, uint32_t row_b,
                              const int32_t *products, uint32_t c)
{
    const uint32_t field = c >> 23 & 255, fraction = c & 0x7fffff, groups = a->groups;
    const size_t from_a = (size_t)row_a * groups, from_b = (size_t)row_b * groups;
    if (a->nan[row_a] || b->nan[row_b] || (field == 255 && fraction != 0)) return RESULT_NAN;
    if (field == 255) return c;
    const int32_t exponent = field != 0 ? (int32_t)field - 127 : -126;
    int32_t largest = exponent > LEAST_EXPONENT ? exponent : LEAST_EXPONENT;
    for (uint32_t g = 0; g < groups; g++) {
        const int32_t e = a->exponent[from_a + g] + b->exponent[from_b + g];
        if (e > largest) largest = e;
    }
    const int64_t significand = fraction | (uint32_t)(field != 0) << 23;
    int64_t sum = shifted(c >> 31 != 0 ? -significand : significand, exponent - largest + FRACTION_BITS - C_POINT);
    for (uint32_t g = 0; g < groups; g++) {
        const int32_t e = a->exponent[from_a + g] + b->exponent[from_b + g];
        const int64_t term = (int64_t)products[g] * (a->significand[from_a + g] * b->significand[from_b + g]);
        sum += shifted(term, e - largest + FRACTION_BITS - GROUP_POINT);
    }
    return round_sum(sum, largest - FRACTION_BITS);
}

uint32_t tensor_fp4_dot(const struct tensor_fp4 *a, uint32_t row_a, const struct tensor_fp4 *b, uint32_t row_b,
                        uint32_t c, bool plain)
{
    const uint32_t field = c >> 23 & 255, groups = a->groups;
    const size_t from_a = (size_t)row_a * groups, from_b = (size_t)row_b * groups;
    int32_t products[TENSOR_FP4_GROUPS];
    if (plain && field != 255 && !a->nan[row_a] && !b->nan[row_b]) return plain_dot(a, row_a, b, row_b, c);
    for (uint32_t g = 0; g < groups; g++)
        products[g] = sum_of_group(a->twice + (from_a + g) * a->width, b->twice + (from_b + g) * b->width, a->width);
    return scale_and_sum(a, row_a, b, row_b, products, c);
}

/* ---- whole products ---- */

/* Sixteen bits hold the products of a group: 4 * 16 * 36 at most.  So eight columns of B are summed at a time, from B
 * with its columns side by side. */
enum { TOGETHER = 8, MOST_GROUPS = 4, MOST_K = MOST_GROUPS * TENSOR_FP4_SPARSE_GROUP };
typedef int16_t short8 __attribute__((vector_size(16)));

static void transpose(const struct tensor_fp4 *b, uint32_t from, uint32_t count, int16_t (*to)[TOGETHER])
{
    const uint32_t length = b->groups * b->width;
    for (uint32_t j = 0; j < count; j++)
        for (uint32_t k = 0; k < length; k++) to[k][j] = b->twice[(size_t)(from + j) * length + k];
}

/* products[g][j]: four times the sums of row i of A and eight columns. */
static void sum_groups(const int16_t *x, uint32_t groups, uint32_t width, int16_t (*columns)[TOGETHER],
                       int16_t (*products)[TOGETHER])
{
    for (uint32_t g = 0; g < groups; g++) {
        short8 sum = { 0 };
        for (uint32_t k = g * width; k < (g + 1) * width; k++) {
            short8 y;
            memcpy(&y, columns[k], sizeof y);
            sum += y * x[k];
        }
        memcpy(products[g], &sum, sizeof sum);
    }
}

static void multiply_columns(const struct tensor_fp4 *a, const struct tensor_fp4 *b, uint32_t from, uint32_t count,
                             uint32_t *d)
{
    int16_t columns[MOST_K][TOGETHER] = { { 0 } }, products[MOST_GROUPS][TOGETHER];
    transpose(b, from, count, columns);
    for (uint32_t i = 0; i < a->rows; i++) {
        sum_groups(a->twice + (size_t)i * a->groups * a->width, a->groups, a->width, columns, products);
        for (uint32_t j = 0; j < count; j++) {
            int32_t sums[MOST_GROUPS];
            uint32_t *to = &d[(size_t)i * b->rows + from + j];
            for (uint32_t g = 0; g < a->groups; g++) sums[g] = products[g][j];
            *to = scale_and_sum(a, i, b, from + j, sums, *to);
        }
    }
}

void tensor_fp4_multiply(const struct tensor_fp4 *a, const struct tensor_fp4 *b, bool plain, uint32_t *d)
{
    if (!plain && a->groups <= MOST_GROUPS) {
        for (uint32_t j = 0; j < b->rows; j += TOGETHER)
            multiply_columns(a, b, j, b->rows - j < TOGETHER ? b->rows - j : TOGETHER, d);
        return;
    }
    for (uint32_t i = 0; i < a->rows; i++)
        for (uint32_t j = 0; j < b->rows; j++)
            d[i * b->rows + j] = tensor_fp4_dot(a, i, b, j, d[i * b->rows + j], plain);
}
