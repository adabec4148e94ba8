/* The last step: fp32 values into D, rounded once, or quantized in blocks. */
#include "epilogue.h"
#include "core/core.h"

static void store_blocks(const struct bsmi_epilogue *e, int64_t batch, int64_t row, int64_t column, int64_t count, const float *t)
{
    const struct bsmi_matrix *d = &e->product->d;
    uint8_t codes[32];
    for (int64_t j = 0; j < count; j += d->block) {
        const int length = (int)BSMI_MIN(d->block, count - j);
        const uint64_t index = (uint64_t)(batch * d->rows + row) * (uint64_t)d->columns + (uint64_t)(column + j);
        *bsmi_scale_pointer(d, batch, row, (column + j) / d->block) =
            bsmi_quantize_block(&e->quantizer, t + j, length, index, codes, NULL);
        bsmi_row_store_codes(d, batch, row, column + j, length, codes);
    }
}

/* t / tensor_scale, or t * tensor_scale where it divides.  A product of two fp32 numbers is exact in double; their quotient
 * cannot come so close to a midpoint of fp32 (25 bits) that rounding it to double first changes the result. */
static double unscaled(const struct bsmi_epilogue *e, float t)
{
    if (e->product->d.tensor_scale == NULL) return (double)t;
    const double scale = (double)e->tensor_scale_d;
    return e->product->d.tensor_scale_use == BSM_TENSOR_SCALE_DIVIDES ? (double)t * scale : (double)t / scale;
}

static void store_bytes(const struct bsmi_epilogue *e, unsigned char *row, int64_t column, int64_t count, const float *t)
{
    const struct bsmi_product *p = e->product;
    for (int64_t j = 0; j < count; j++)
        row[column + j] = (unsigned char)bsm_element_encode(p->d.element, unscaled(e, t[j]), BSM_ROUND_NEAREST_EVEN,
                                                            !p->d_no_saturate, 0);
}

bool bsmi_stores_fp32(const struct bsmi_matrix *d) { return d->element == BSM_FP32 && d->tensor_scale == NULL; }

static void store_fp32(float *restrict row, int64_t count, float factor, const float *restrict t)
{
    for (int64_t j = 0; j < count; j++) {
        const float value = factor * t[j];
        row[j] = isnan(value) ? bsmi_float_from_bits(0x7fc00000) : value;
    }
}

void bsmi_store_scaled(const struct bsmi_matrix *d, int64_t batch, int64_t row, int64_t column, int64_t count, float factor,
                       const float *sums)
{
    store_fp32((float *)(void *)bsmi_row(d, batch, row) + column, count, factor, sums);
}

void bsmi_store_row(const struct bsmi_epilogue *e, int64_t batch, int64_t row, int64_t column, int64_t count, const float *t)
{
    const struct bsmi_matrix *d = &e->product->d;
    if (d->block != 0) {
        store_blocks(e, batch, row, column, count, t);
        return;
    }
    unsigned char *to = bsmi_row(d, batch, row);
    if (d->bits == 8) {
        store_bytes(e, to, column, count, t);
        return;
    }
    if (bsmi_stores_fp32(d)) {
        bsmi_store_scaled(d, batch, row, column, count, 1, t);
        return;
    }
    const bsm_real type = d->element == BSM_FP32 ? BSM_REAL_FP32 : d->element == BSM_BF16 ? BSM_REAL_BF16 : BSM_REAL_FP16;
    for (int64_t j = 0; j < count; j++) bsmi_real_store(type, to, column + j, unscaled(e, t[j]));
}
