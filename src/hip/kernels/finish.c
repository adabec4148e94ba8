/* The epilogue: S in memory to D, everything of the contract (include/blockscale/matmul.h), with the formulas and the
 * rounding of src/cpu/epilogue.c and src/cpu/epilogue.  A thread takes a number of D, or a block of it. */
#include "functions.h"
#include "blocks.h"
#include "hip/params/kernels.h"
#include "product/activation.h"

/* What is the same along a row of D. */
struct finish_row {
    const struct bsmi_epilogue_parameters *e;
    int64_t matrix, row;
    const float *sums;
    int32_t a_exponent;
    float beta;
};

/* f: everything that multiplies, times each other in double, over the product of everything that divides; rounded to
 * fp32. */
static inline float factor_at(const struct bsmi_epilogue_parameters *e, int64_t number)
{
    const double a = e->tensor_scale_a == NULL ? 1 : (double)*e->tensor_scale_a,
                 b = e->tensor_scale_b == NULL ? 1 : (double)*e->tensor_scale_b;
    double numerator = 1, denominator = 1;
    if (e->alpha != NULL) numerator = (double)e->alpha[number];
    if (e->a_divides) denominator *= a;
    else numerator *= a;
    if (e->b_divides) denominator *= b;
    else numerator *= b;
    return (float)(numerator / denominator);
}

static inline float factor_of(const struct finish_row *r, int64_t column)
{
    const int32_t per = r->e->alpha_per;
    return factor_at(r->e, per == BSM_PER_ROW      ? r->row
                           : per == BSM_PER_COLUMN ? column
                           : per == BSM_PER_BATCH  ? r->matrix
                                                   : 0);
}

KERNEL(BSMI_HIP_THREADS) bsmi_factors(struct bsmi_hip_factors_parameters p, uint32_t groups)
{
    for (int64_t i = (int64_t)group_number() * BSMI_HIP_THREADS + thread_number(); i < p.count;
         i += (int64_t)groups * BSMI_HIP_THREADS)
        p.factors[i] = factor_at(&p.epilogue, i);
}

static inline int64_t find_group(const struct bsmi_epilogue_parameters *e, int64_t row)
{
    int64_t low = 0, high = e->matrices;
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        if (e->group_starts[middle] <= row) low = middle;
        else high = middle;
    }
    return low;
}

static inline struct finish_row begin_row(const struct bsmi_epilogue_parameters *e, int64_t number)
{
    struct finish_row r = { .e = e };
    r.matrix = e->grouped ? find_group(e, number) : quotient(number, e->m);
    r.row = e->grouped ? number : number - r.matrix * e->m;
    r.sums = e->sums + (e->grouped ? 0 : r.matrix * e->sums_batch_pitch) + r.row * e->sums_pitch;
    r.a_exponent = e->a_exponents == NULL ? 0 : e->a_exponents[r.matrix * e->a_exponent_step + r.row];
    r.beta = e->beta == NULL || e->c == NULL ? 0 : *e->beta;
    return r;
}

static inline float load_c(const struct finish_row *r, int64_t column)
{
    const struct bsmi_epilogue_parameters *e = r->e;
    const int type = e->c_element == BSM_FP32   ? BSM_REAL_FP32
                     : e->c_element == BSM_BF16 ? BSM_REAL_BF16
                                                : BSM_REAL_FP16;
    return (float)load_real(type, e->c + r->matrix * e->c_batch_bytes + r->row * e->c_row_bytes, column);
}

/* t before the activation: fma(f, S, fma(beta, C, bias)), terms that are absent left out. */
static inline float finish_sum(const struct finish_row *r, int64_t column)
{
    const struct bsmi_epilogue_parameters *e = r->e;
    float sum = r->sums[column];
    for (int part = 1; part < e->sums_parts; part++) sum += r->sums[part * e->sums_part_pitch + column];
    const int32_t exponent = bsmi_sum_exponent(
        r->a_exponent, e->b_exponents == NULL ? 0 : e->b_exponents[r->matrix * e->b_exponent_step + column]);
    if (exponent != 0) sum = (float)((double)sum * bsmi_double_power_of_two(exponent));
    const float factor = factor_of(r, column);
    if (e->bias == NULL) return r->beta == 0 ? factor * sum : __builtin_fmaf(factor, sum, r->beta * load_c(r, column));
    const bool per_row = e->bias_per == BSM_PER_ROW;
    const int64_t first = e->grouped && per_row ? 0 : r->matrix * e->bias_batch_pitch;
    const float bias = (float)load_real(e->bias_type, e->bias, first + (per_row ? r->row : column));
    return __builtin_fmaf(factor, sum, r->beta == 0 ? bias : __builtin_fmaf(r->beta, load_c(r, column), bias));
}

/* Out of line: they are long, and most products have none. */
static __attribute__((noinline)) float activate(int activation, float t)
{
    return (float)bsmi_activation((bsm_activation)activation, (double)t);
}

static __attribute__((noinline)) float activate_gated(int activation, float gate, float up)
{
    const double g = (double)gate, u = (double)up;
    return (float)(activation == BSM_ACT_SWIGLU_CLAMPED ? bsmi_swiglu_clamped(g, u)
                                                        : bsmi_activation((bsm_activation)activation, g) * u);
}

/* Number `column` of a row of D, before it is rounded. */
static inline float finish_number(const void *row, int64_t column)
{
    const struct finish_row *r = row;
    const struct bsmi_epilogue_parameters *e = r->e;
    if (e->gate == BSM_GATE_NONE) {
        const float t = finish_sum(r, column);
        return e->activation == BSM_ACT_NONE ? t : activate(e->activation, t);
    }
    const bool split = e->gate == BSM_GATE_SPLIT;
    const int64_t gate = split ? column : 2 * column, up = split ? e->n / 2 + column : gate + 1;
    return activate_gated(e->activation, finish_sum(r, gate), finish_sum(r, up));
}

/* |t| as the bits of a float; any NaN as the canonical one, which is larger than everything. */
static inline uint32_t magnitude_of(float t)
{
    const uint32_t bits = bsmi_float_bits(t) & 0x7fffffff;
    return bits > 0x7f800000 ? 0x7fc00000 : bits;
}

/* D without block scales: rounded once, NaN canonical.  t / tensor scale, or t * it where it divides, by way of double:
 * store.c has the reason why that rounds once. */
static inline void store_plain(const struct bsmi_epilogue_parameters *e, unsigned char *row, int64_t column, float t)
{
    const struct bsmi_device_matrix *d = &e->d;
    double value = (double)t;
    if (d->tensor_scale != NULL)
        value = d->tensor_scale_divides ? value * (double)*d->tensor_scale : value / (double)*d->tensor_scale;
    if (d->element == BSM_FP32) {
        ((uint32_t *)(void *)row)[column] = fp32_code(value);
        return;
    }
    const uint32_t code =
        encode_element(d->element, value, BSM_ROUND_NEAREST_EVEN, d->bits == 8 && !e->d_no_saturate, 0);
    if (d->bits == 8) row[column] = (unsigned char)code;
    else ((uint16_t *)(void *)row)[column] = (uint16_t)code;
}

static inline uint32_t finish_plain(const struct finish_row *r, unsigned char *to, int64_t column)
{
    const float t = finish_number(r, column);
    store_plain(r->e, to, column, t);
    return magnitude_of(t);
}

static inline uint32_t finish_block(const struct finish_row *r, unsigned char *to, int64_t batch, int64_t block)
{
    const struct bsmi_epilogue_parameters *e = r->e;
    const struct bsmi_device_matrix *d = &e->d;
    const struct quantizer q = { d, e->d_recipe, BSM_ROUND_NEAREST_EVEN, e->d_nonfinite, 0,
                                 d->tensor_scale == NULL ? 1 : (double)*d->tensor_scale, d->tensor_scale_divides != 0 };
    const int count = count_of(d, block);
    struct magnitudes all = { 0, 0 };
    for (int i = 0; i < count; i++) raise_magnitudes(&all, finish_number(r, block * d->block + i));
    const bool is_nan = all.largest >= 0x7f800000 && q.nonfinite == BSM_NONFINITE_PROPAGATE;
    uint32_t code = 0;
    if (is_nan) code = nan_scale(d);
    else if (all.largest_finite > 0) code = scale_code(&q, bsmi_float_from_bits(all.largest_finite));
    store_block(&q, finish_number, r, block, to, is_nan, code, 0);
    if (count > 0) *scale_at(d, batch, r->row, block) = (unsigned char)code;
    return magnitude_of(bsmi_float_from_bits(all.largest));
}

KERNEL(BSMI_HIP_THREADS) bsmi_finish(struct bsmi_hip_finish_parameters p, uint32_t groups)
{
    const struct bsmi_epilogue_parameters *e = &p.epilogue;
    const struct bsmi_device_matrix *d = &e->d;
    const int64_t units = d->block == 0 ? d->columns : stored_blocks(d),
                  rows = e->grouped ? e->group_starts[e->matrices] : e->m * e->matrices;
    uint32_t amax = 0;
    for (int64_t i = (int64_t)group_number() * BSMI_HIP_THREADS + thread_number(); i < rows * units;
         i += (int64_t)groups * BSMI_HIP_THREADS) {
        const int64_t number = quotient(i, units), unit = i - number * units;
        const struct finish_row r = begin_row(e, number);
        const int64_t batch = e->grouped ? 0 : r.matrix;
        unsigned char *to = d->data + batch * d->batch_bytes + r.row * d->row_bytes;
        amax = larger_word(amax, d->block == 0 ? finish_plain(&r, to, unit) : finish_block(&r, to, batch, unit));
    }
    if (e->amax != NULL) raise_to_largest(e->amax, amax);
}
