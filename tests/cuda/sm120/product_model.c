#include "product_model.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* significand * 2^(exponent - fraction), fraction bits behind the point; it need not be normalized. */
struct number { int64_t significand; int exponent, fraction; };

static const struct { bsm_element element; int exponent_bits, mantissa_bits, bias; } elements[] = {
    { BSM_E4M3, 4, 3, 7 }, { BSM_E5M2, 5, 2, 15 }, { BSM_E3M2, 3, 2, 3 }, { BSM_E2M3, 2, 3, 1 }, { BSM_E2M1, 2, 1, 1 },
    { BSM_BF16, 8, 7, 127 }, { BSM_FP16, 5, 10, 15 }, { BSM_FP32, 8, 23, 127 },
};

int64_t model_columns(enum model_kind kind)
{
    static const int64_t columns[] = { [MODEL_MXF8F6F4] = 32, [MODEL_MXF4] = 64, [MODEL_MXF4NVF4] = 64,
                                       [MODEL_F16] = 16, [MODEL_TF32] = 8 };
    return columns[kind];
}

/* Subnormal numbers have their format's least exponent. */
static struct number fields(uint32_t code, int exponent_bits, int mantissa_bits, int bias)
{
    const uint32_t field = code >> mantissa_bits & ((1u << exponent_bits) - 1),
                   mantissa = code & ((1u << mantissa_bits) - 1);
    const int64_t hidden = field == 0 ? 0 : (int64_t)1 << mantissa_bits,
                  sign = code >> (exponent_bits + mantissa_bits) & 1 ? -1 : 1;
    return (struct number){ sign * (hidden + mantissa), (field == 0 ? 1 : (int)field) - bias, mantissa_bits };
}

/* Element k of a row; zero from `end` on. */
static struct number element_at(const bsm_matrix *m, int64_t matrix, int64_t row, int64_t k, int64_t end)
{
    const bsm_element element = bsm_format_get((int)m->format)->element;
    uint32_t code = 0;
    size_t i = 0;
    while (elements[i].element != element) i++;
    if (k < end) (void)bsm_matrix_get_code(m, matrix, row, k, &code);
    if (element == BSM_FP32) code &= ~0x1fffu;        /* tf32 */
    return fields(code, elements[i].exponent_bits, elements[i].mantissa_bits, elements[i].bias);
}

/* The scale of element k: 1 of a format without scales; of ue4m3 zero has the exponent -126.  Behind the last: zero. */
static struct number scale_at(const bsm_matrix *m, int64_t matrix, int64_t row, int64_t k)
{
    const bsm_format_info *f = bsm_format_get((int)m->format);
    uint8_t code = 0;
    if (f->block == 0) return (struct number){ 1, 0, 0 };
    if (k >= m->columns) return (struct number){ 0, -126, 0 };
    (void)bsm_matrix_get_scale(m, matrix, row, k / f->block, &code);
    if (f->scale == BSM_E8M0) return (struct number){ 1, code - 127, 0 };
    const struct number scale = fields(code & 0x7f, 4, 3, 7);
    return scale.significand == 0 ? (struct number){ 0, -126, 3 } : scale;
}

static struct number number_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return fields(bits, 8, 23, 127);
}

/* What is left of a term, in units of 2^(exponent - kept): cut toward zero. */
static int64_t cut(struct number x, int exponent, int kept)
{
    const int left = kept - x.fraction - (exponent - x.exponent);
    const int64_t size = x.significand < 0 ? -x.significand : x.significand;
    const int64_t moved = left >= 0 ? size << left : left > -63 ? size >> -left : 0;
    return x.significand < 0 ? -moved : moved;
}

/* sum * 2^unit to fp32, toward zero; an exact zero is +0. */
static float to_fp32(int64_t sum, int unit)
{
    uint64_t size = (uint64_t)(sum < 0 ? -sum : sum);
    if (size == 0) return 0;
    while (size >> 24 != 0 || unit < -149) size >>= 1, unit++;
    while (size != 0 && size >> 23 == 0 && unit > -149) size <<= 1, unit--;
    const uint32_t normal = size >> 23 != 0, bits = (uint32_t)(size & 0x7fffff)
                                                    | (normal ? (uint32_t)(unit + 150) << 23 : 0)
                                                    | (size != 0 && sum < 0 ? 0x80000000u : 0);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static int most(int x, int y) { return x > y ? x : y; }

/* Up to 32 products and c in one sum, 25 bits behind the largest exponent, which is -133 at least; zeros have none. */
static float one_by_one(const struct model_rows *r, int products, int64_t first, int64_t end, float c)
{
    struct number terms[33];
    int exponent = -133;
    int64_t sum = 0;
    for (int i = 0; i < products; i++) {
        const int64_t k = first + i;
        const struct number x = element_at(r->a, r->a_matrix, r->row, k, end),
                            y = element_at(r->b, r->b_matrix, r->column, k, end),
                            p = scale_at(r->a, r->a_matrix, r->row, k), q = scale_at(r->b, r->b_matrix, r->column, k);
        terms[i] = (struct number){ x.significand * y.significand, x.exponent + y.exponent + p.exponent + q.exponent,
                                    x.fraction + y.fraction };
    }
    terms[products] = number_of(c);
    for (int i = 0; i <= products; i++)
        if (terms[i].significand != 0) exponent = most(exponent, terms[i].exponent);
    for (int i = 0; i <= products; i++) sum += cut(terms[i], exponent, 25);
    return to_fp32(sum, exponent - 25);
}

/* Four groups of 16, exact each, with the scales' exponents even where they are zero, and c: 35 bits behind the largest
 * exponent, which is -126 at least. */
static float by_groups(const struct model_rows *r, int64_t first, int64_t end, float c)
{
    struct number terms[5];
    int exponent = -126;
    int64_t sum = 0;
    for (int group = 0; group < 4; group++) {
        const int64_t k = first + group * 16;
        const struct number p = scale_at(r->a, r->a_matrix, r->row, k), q = scale_at(r->b, r->b_matrix, r->column, k);
        int64_t dot = 0;
        for (int i = 0; i < 16; i++) {
            const struct number x = element_at(r->a, r->a_matrix, r->row, k + i, end),
                                y = element_at(r->b, r->b_matrix, r->column, k + i, end);
            dot += x.significand * y.significand * ((int64_t)1 << (x.exponent + y.exponent));
        }
        terms[group] = (struct number){ dot * p.significand * q.significand, p.exponent + q.exponent,
                                        2 + p.fraction + q.fraction };
        exponent = most(exponent, terms[group].exponent);
    }
    terms[4] = number_of(c);
    if (terms[4].significand != 0) exponent = most(exponent, terms[4].exponent);
    for (int i = 0; i < 5; i++) sum += cut(terms[i], exponent, 35);
    return to_fp32(sum, exponent - 35);
}

float model_sum(enum model_kind kind, const struct model_rows *rows, int64_t first, int64_t end)
{
    const int64_t columns = model_columns(kind);
    float sum = 0;
    for (int64_t k = first; k < end; k += columns)
        sum = kind == MODEL_MXF4 || kind == MODEL_MXF4NVF4 ? by_groups(rows, k, end, sum)
                                                           : one_by_one(rows, (int)columns, k, end, sum);
    return sum;
}
