/* Real numbers into codes and scales: the bits of bsm_quantize, a thread a block; and back. */
#include "functions.h"
#include "blocks.h"
#include "hip/params/kernels.h"

/* A row of the source. */
struct source_row { const struct bsmi_device_reals *s; int64_t first; };

static inline float source_number(const void *row, int64_t k)
{
    const struct source_row *r = row;
    return (float)load_real(r->s->type, r->s->data, r->first + k * r->s->column_stride);
}

static inline struct source_row source_row_of(const struct bsmi_device_reals *s, int64_t batch, int64_t row)
{
    return (struct source_row){ s, batch * s->batch_stride + row * s->row_stride };
}

/* Four over six: recipes.c, in its order of sums. */
static inline double squared_error(const struct quantizer *q, const struct source_row *r, int64_t block, uint32_t code)
{
    const double scale = (double)decode_scale(q->m->scale, code);
    const struct bsmi_division by = division_of(q, code);
    const int count = count_of(q->m, block);
    double sum = 0;
#pragma unroll 1
    for (int i = 0; i < count; i++) {
        const double x = (double)source_number(r, block * q->m->block + i);
        if (!isfinite(x)) continue;
        const uint32_t element =
            encode_element(q->m->element, x * by.factor / by.divisor, BSM_ROUND_NEAREST_EVEN, true, 0);
        const double error = x - bsmi_scaled_value((double)decode_element(q->m->element, element), scale,
                                                   q->tensor_scale, q->divides);
        sum += error * error;
    }
    return sum;
}

static inline uint32_t four_over_six_code(const struct quantizer *q, const struct source_row *r, int64_t block,
                                          float amax)
{
    const struct bsmi_fraction fraction = bsmi_scaled_amax(amax, q->tensor_scale, q->divides);
    const uint32_t six = bsmi_nearest_code(element_of(q->m->element), element_of(BSM_E4M3), fraction);
    const uint32_t four = bsmi_nearest_code_of_4(element_of(BSM_E4M3), fraction);
    if (four == six) return six;
    return squared_error(q, r, block, four) < squared_error(q, r, block, six) ? four : six;
}

/* Blocks of the rows from `row` to end - 1, which share a scale. */
static inline void quantize_square(const struct bsmi_hip_quantize_parameters *p, const struct quantizer *q,
                                   int64_t batch, int64_t row, int64_t end, int64_t block)
{
    const struct bsmi_device_matrix *m = q->m;
    const int count = count_of(m, block);
    struct magnitudes all = { 0, 0 };
    for (int64_t i = row; i < end; i++) {
        const struct source_row r = source_row_of(&p->all.source, batch, i);
        for (int j = 0; j < count; j++) raise_magnitudes(&all, source_number(&r, block * m->block + j));
    }
    const bool is_nan = all.largest >= 0x7f800000 && q->nonfinite == BSM_NONFINITE_PROPAGATE;
    const float amax = bsmi_clamped(p->clamp, bsmi_float_from_bits(all.largest_finite));
    uint32_t code = 0;
    if (is_nan) code = nan_scale(m);
    else if (amax > 0 && q->recipe == BSM_RECIPE_FOUR_OVER_SIX) {
        const struct source_row r = source_row_of(&p->all.source, batch, row);
        code = four_over_six_code(q, &r, block, amax);
    } else if (amax > 0) code = scale_code(q, amax);
    code = larger_word(code, (uint32_t)p->smallest_scale);
    for (int64_t i = row; i < end; i++) {
        const struct source_row r = source_row_of(&p->all.source, batch, i);
        store_block(q, source_number, &r, block, m->data + batch * m->batch_bytes + i * m->row_bytes, is_nan, code,
                    (uint64_t)(batch * m->rows + i) * (uint64_t)m->columns);
        if (count > 0) *scale_at(m, batch, i, block) = (unsigned char)code;
    }
}

/* Without block scales: number by number, as convert_row.c. */
static inline void convert_number(const struct bsmi_quantize_parameters *p, double tensor_scale, int64_t batch,
                                  int64_t row, int64_t k)
{
    const struct bsmi_device_matrix *m = &p->destination;
    const struct source_row r = source_row_of(&p->source, batch, row);
    const double x = load_real(p->source.type, p->source.data, r.first + k * p->source.column_stride);
    const double value = m->tensor_scale_divides ? x * tensor_scale : x / tensor_scale;
    const uint64_t index = (uint64_t)(batch * m->rows + row) * (uint64_t)m->columns + (uint64_t)k;
    const uint32_t random = p->rounding == BSM_ROUND_STOCHASTIC ? bsmi_random_bits(p->seed, index) : 0,
                   code = encode_element(m->element, value, p->rounding, m->bits == 8 && !p->no_saturate, random);
    unsigned char *to = m->data + batch * m->batch_bytes + row * m->row_bytes;
    if (m->bits == 8) to[k] = (unsigned char)code;
    else if (m->bits == 16) ((uint16_t *)(void *)to)[k] = (uint16_t)code;
    else ((uint32_t *)(void *)to)[k] = code;
}

KERNEL(BSMI_HIP_THREADS) bsmi_quantize(struct bsmi_hip_quantize_parameters p, uint32_t groups)
{
    const struct bsmi_device_matrix *m = &p.all.destination;
    const double tensor_scale = m->tensor_scale == NULL ? 1 : (double)*m->tensor_scale;
    const struct quantizer q = { m, p.all.recipe, p.all.rounding, p.all.nonfinite, p.all.seed, tensor_scale,
                                 m->tensor_scale_divides != 0 };
    const int64_t across = m->block == 0 ? m->columns : stored_blocks(m), down = divided_up(m->rows, p.block_rows);
    for (int64_t i = (int64_t)group_number() * BSMI_HIP_THREADS + thread_number(); i < m->batch * down * across;
         i += (int64_t)groups * BSMI_HIP_THREADS) {
        const int64_t square = quotient(i, across), unit = i - square * across, batch = quotient(square, down),
                      row = (square - batch * down) * p.block_rows;
        if (m->block == 0) convert_number(&p.all, tensor_scale, batch, row, unit);
        else quantize_square(&p, &q, batch, row, smaller(row + p.block_rows, m->rows), unit);
    }
}

/* The tensor scale that the largest magnitude gives.  tensor_scale.c has the reason why this rounds once. */
KERNEL(BSMI_HIP_THREADS) bsmi_tensor_scale(struct bsmi_hip_quantize_parameters p, uint32_t groups)
{
    (void)groups;
    const double least = 0x1p-126, most = 0x1.fffffep127;
    if (thread_number() != 0 || group_number() != 0) return;
    const double all = (double)bsmi_clamped(p.clamp, bsmi_float_from_bits(*p.all.computed & 0x7fffffff));
    double exact = all == 0 ? 1 : p.all.destination.tensor_scale_divides ? p.all.largest / all : all / p.all.largest;
    exact = exact > most ? most : exact;
    *p.all.computed = bsmi_float_bits((float)(exact < least ? least : exact));
}

KERNEL(BSMI_HIP_THREADS) bsmi_amax(struct bsmi_amax_parameters p, uint32_t groups)
{
    const struct bsmi_device_reals *s = &p.source;
    uint32_t largest = 0;
    for (int64_t i = (int64_t)group_number() * BSMI_HIP_THREADS + thread_number(); i < s->batch * s->rows * s->columns;
         i += (int64_t)groups * BSMI_HIP_THREADS) {
        const int64_t line = quotient(i, s->columns), batch = quotient(line, s->rows);
        const struct source_row r = source_row_of(s, batch, line - batch * s->rows);
        const uint32_t bits = bsmi_float_bits(source_number(&r, i - line * s->columns)) & 0x7fffffff;
        largest = larger_word(largest, bits < 0x7f800000 ? bits : 0);
    }
    raise_to_largest(p.amax, largest | 0x80000000);
}

/* The bits of bsm_dequantize, and its reasons why rounding through double rounds once (dequantize.c). */
KERNEL(BSMI_HIP_THREADS) bsmi_dequantize(struct bsmi_dequantize_parameters p, uint32_t groups)
{
    const struct bsmi_device_matrix *m = &p.source;
    const struct bsmi_device_reals *d = &p.destination;
    const double tensor_scale = m->tensor_scale == NULL ? 1 : (double)*m->tensor_scale;
    for (int64_t i = (int64_t)group_number() * BSMI_HIP_THREADS + thread_number();
         i < m->batch * m->rows * m->columns; i += (int64_t)groups * BSMI_HIP_THREADS) {
        const int64_t line = quotient(i, m->columns), batch = quotient(line, m->rows), row = line - batch * m->rows,
                      k = i - line * m->columns;
        const double element = (double)decode_element(m->element, load_code(m, row_of(m, batch, row), k)),
                     scale = m->block == 0
                                 ? 1
                                 : (double)decode_scale(m->scale, load_scale(m, batch, row, block_of(m, k)));
        store_real(d->type, d->data, batch * d->batch_stride + row * d->row_stride + k * d->column_stride,
                   bsmi_scaled_value(element, scale, tensor_scale, m->tensor_scale_divides != 0));
    }
}
