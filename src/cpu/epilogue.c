/* From S to t: f * S + beta * C + bias, activation, gating; then the row is stored. */
#include "epilogue.h"

#include "core/core.h"
#include "core/stream.h"
#include "epilogue/activation.h"
#include "epilogue/multiply_add.h"
#include "matrix/reals.h"
#include "matrix/rows.h"
#include "tile.h"

/* Rows of scratch memory, `columns` long each. */
struct scratch { float *t, *addends, *column_factor, *column_bias; };

size_t bsmi_epilogue_scratch_bytes(int64_t columns) { return (size_t)columns * 4 * sizeof(float); }

static struct scratch divide_scratch(void *memory, int64_t columns)
{
    float *row = memory;
    return (struct scratch){ row, row + columns, row + 2 * columns, row + 3 * columns };
}

void bsmi_epilogue_make(const struct bsmi_product *product, uint32_t features, struct bsmi_epilogue *e)
{
    memset(e, 0, sizeof *e);
    e->d.features = features;
    e->product = product;
    e->reads_c = bsmi_product_reads_c(product);
    e->tensor_scale_a = product->a.tensor_scale == NULL ? 1 : *product->a.tensor_scale;
    e->tensor_scale_b = product->b.tensor_scale == NULL ? 1 : *product->b.tensor_scale;
    e->d.matrix = &product->d;
    e->d.tensor_scale = product->d.tensor_scale == NULL ? 1 : *product->d.tensor_scale;
    e->d.saturate = !product->d_no_saturate;
    if (product->d.block != 0)
        (void)bsmi_block_quantizer_make("d_recipe", product->d.format, product->d_recipe, BSM_ROUND_NEAREST_EVEN, 0,
                                        product->d_nonfinite, e->d.tensor_scale, product->d.tensor_scale_use,
                                        &e->d.quantizer);
}

/* f: everything that multiplies, times each other in double, over the product of everything that divides; rounded to
 * fp32. */
static float factor(const struct bsmi_epilogue *e, float alpha)
{
    double numerator = (double)alpha, denominator = 1;
    if (e->product->a.tensor_scale_use == BSM_TENSOR_SCALE_DIVIDES) denominator *= (double)e->tensor_scale_a;
    else numerator *= (double)e->tensor_scale_a;
    if (e->product->b.tensor_scale_use == BSM_TENSOR_SCALE_DIVIDES) denominator *= (double)e->tensor_scale_b;
    else numerator *= (double)e->tensor_scale_b;
    return (float)(numerator / denominator);
}

/* Number of the source column of virtual column v of the product: of B's row, C's column, a bias, an alpha. */
static int64_t source_column(const struct bsmi_product *p, int64_t v)
{
    return bsmi_source_column(v, p->gate == BSM_GATE_SPLIT ? p->n / 2 : 0);
}

static void make_column_factors(const struct bsmi_epilogue *e, const struct bsmi_epilogue_tile *tile, float *factors)
{
    const struct bsmi_product *p = e->product;
    if (p->alpha == NULL || p->alpha_per != BSM_PER_COLUMN) return;
    for (int64_t j = 0; j < tile->columns; j++) factors[j] = factor(e, p->alpha[source_column(p, tile->column + j)]);
}

static float row_factor(const struct bsmi_epilogue *e, const struct bsmi_epilogue_tile *tile, int64_t row)
{
    const struct bsmi_product *p = e->product;
    if (p->alpha == NULL) return factor(e, 1);
    return factor(e, p->alpha[p->alpha_per == BSM_PER_ROW ? row : p->alpha_per == BSM_PER_BATCH ? tile->matrix : 0]);
}

static void make_column_bias(const struct bsmi_epilogue *e, const struct bsmi_epilogue_tile *tile, float *bias)
{
    const struct bsmi_product *p = e->product;
    if (p->bias == NULL || p->bias_per != BSM_PER_COLUMN) return;
    const int64_t first = tile->matrix * p->bias_batch_pitch;
    for (int64_t j = 0; j < tile->columns; j++)
        bias[j] = (float)bsmi_real_load(p->bias_type, p->bias, first + source_column(p, tile->column + j));
}

static float row_bias(const struct bsmi_product *p, const struct bsmi_epilogue_tile *tile, int64_t row)
{
    const int64_t first = p->groups > 0 ? 0 : tile->matrix * p->bias_batch_pitch;
    return (float)bsmi_real_load(p->bias_type, p->bias, first + row);
}

/* Matrix of a batch that has either one or all. */
static int64_t broadcast(const struct bsmi_product *p, const struct bsmi_matrix *m, int64_t matrix)
{
    return p->groups > 0 || m->batch == 1 ? 0 : matrix;
}

/* beta * C in virtual columns. */
static void read_c(const struct bsmi_epilogue *e, const struct bsmi_epilogue_tile *tile, int64_t row, float *values)
{
    const struct bsmi_product *p = e->product;
    const int64_t batch = broadcast(p, &p->c, tile->matrix);
    if (p->gate != BSM_GATE_SPLIT) {
        bsmi_row_elements(&p->c, NULL, batch, row, tile->column, tile->columns, values);
        return;
    }
    for (int64_t j = 0; j < tile->columns; j++)
        bsmi_row_elements(&p->c, NULL, batch, row, source_column(p, tile->column + j), 1, values + j);
}

/* beta * C + bias, what is there of it, in `row_addends` or where it lies already; NULL if nothing is. */
static const float *addends_of(const struct bsmi_epilogue *e, const struct bsmi_epilogue_tile *tile, int64_t row,
                               const float *column_bias, float *row_addends)
{
    const struct bsmi_product *p = e->product;
    const bool per_row = p->bias != NULL && p->bias_per == BSM_PER_ROW;
    const float bias = per_row ? row_bias(p, tile, row) : 0, beta = e->reads_c ? *p->beta : 0;
    if (!e->reads_c) {
        if (!per_row) return p->bias == NULL ? NULL : column_bias;
        for (int64_t j = 0; j < tile->columns; j++) row_addends[j] = bias;
        return row_addends;
    }
    read_c(e, tile, row, row_addends);
    if (p->bias != NULL && !per_row)
        bsmi_multiply_add(e->d.features, NULL, beta, row_addends, column_bias, tile->columns, row_addends);
    else if (per_row)
        for (int64_t j = 0; j < tile->columns; j++) row_addends[j] = fmaf(beta, row_addends[j], bias);
    else
        for (int64_t j = 0; j < tile->columns; j++) row_addends[j] *= beta;
    return row_addends;
}

static void raise_amax(uint32_t *amax_bits, const float *t, int64_t count)
{
    uint32_t largest = *amax_bits;
    for (int64_t j = 0; j < count; j++) largest = BSMI_MAX(largest, bsmi_float_bits(t[j]) & 0x7fffffff);
    *amax_bits = largest;
}

/* t = factor * sums, a factor for each column or one for all. */
static void scale(const float *restrict sums, const float *restrict factors, float factor, int64_t count,
                  float *restrict t)
{
    for (int64_t j = 0; j < count; j++) t[j] = (factors == NULL ? factor : factors[j]) * sums[j];
}

/* One factor makes D's numbers of S, and nothing else happens to them. */
static bool only_scales(const struct bsmi_epilogue *e)
{
    const struct bsmi_product *p = e->product;
    return !e->reads_c && p->bias == NULL && (p->alpha == NULL || p->alpha_per != BSM_PER_COLUMN)
           && p->gate == BSM_GATE_NONE && p->activation == BSM_ACT_NONE && p->amax == NULL && bsmi_stores_reals(&p->d);
}

static void run_row(const struct bsmi_epilogue *e, const struct bsmi_epilogue_tile *tile, int64_t i,
                    const struct scratch *s, uint32_t *amax_bits)
{
    const struct bsmi_product *p = e->product;
    const int64_t row = tile->row + i;
    const float *sums = tile->sums + i * tile->sums_pitch;
    const bool per_column = p->alpha != NULL && p->alpha_per == BSM_PER_COLUMN;
    const float f = per_column ? 1 : row_factor(e, tile, row);
    const float *addends = addends_of(e, tile, row, s->column_bias, s->addends);
    if (addends != NULL)
        bsmi_multiply_add(e->d.features, per_column ? s->column_factor : NULL, f, sums, addends, tile->columns, s->t);
    else scale(sums, per_column ? s->column_factor : NULL, f, tile->columns, s->t);
    int64_t column = tile->column, count = tile->columns;
    if (p->gate == BSM_GATE_NONE) {
        bsmi_activate(p->activation, s->t, count);
    } else {
        column /= 2, count /= 2;
        bsmi_activate_gated(p->activation, s->t, count);
    }
    if (p->amax != NULL) raise_amax(amax_bits, s->t, count);
    bsmi_store_row(&e->d, p->groups > 0 ? 0 : tile->matrix, row, column, count, s->t);
}

static void run_rows(const struct bsmi_epilogue *e, const struct bsmi_epilogue_tile *tile, void *scratch,
                     uint32_t *amax_bits)
{
    const struct scratch s = divide_scratch(scratch, tile->columns);
    if (only_scales(e)) {
        const int64_t batch = e->product->groups > 0 ? 0 : tile->matrix;
        for (int64_t i = 0; i < tile->rows; i++)
            bsmi_store_scaled(&e->d, batch, tile->row + i, tile->column, tile->columns,
                              row_factor(e, tile, tile->row + i), tile->sums + i * tile->sums_pitch);
        return;
    }
    make_column_factors(e, tile, s.column_factor);
    make_column_bias(e, tile, s.column_bias);
    for (int64_t i = 0; i < tile->rows; i++) run_row(e, tile, i, &s, amax_bits);
}

void bsmi_epilogue_run(const struct bsmi_epilogue *e, const struct bsmi_epilogue_tile *tile, void *scratch,
                       uint32_t *amax_bits)
{
    run_rows(e, tile, scratch, amax_bits);
    if (bsmi_is_stored_past_caches(&e->product->d)) bsmi_end_stream();
}
