/* The arithmetic of tcgen05.mma: codes to panels, panels to sums.  See tcgen05_product.h. */
#include "tcgen05_multiply.h"

#include <string.h>

/* Where element e of a row of A stands in k. */
static uint32_t index_of(const struct tcgen05_product *p, const struct tcgen05_workspace *w, uint32_t row, uint32_t e)
{
    return p->form->sparse ? w->index[row * p->shape.a_k + e] : e;
}

static uint32_t sign_of(bool negated, enum tensor_format format)
{
    return negated ? 1u << (tensor_format_bits(format) - 1) : 0;
}

/* ---- one fused sum: f16, tf32, f8f6f4, mxf8f6f4 ---- */

enum { SCALE_NAN = 255, SCALE_BIAS = 127 };

/* The one scale of a row.  A NaN stands in all of it: a sparse row looks at some elements only. */
static void scale_row(struct tensor_panel *panel, uint32_t row, uint32_t length, uint32_t code)
{
    enum { ANY_NAN = 0x7e00 };
    for (uint32_t k = 0; k < length; k++) {
        if (code == SCALE_NAN) tensor_set(panel, row, k, TENSOR_F16, ANY_NAN);
        else tensor_scale(panel, row, k, (int32_t)code - SCALE_BIAS);
    }
}

static void fill_a(const struct tcgen05_product *p, struct tcgen05_workspace *w, struct tensor_panel *a)
{
    const struct mma_shape *s = &p->shape;
    const uint32_t sign = sign_of(s->a_negated, s->a_format), rows = product_rows(p);
    tensor_clear(a, rows, s->k);
    for (uint32_t i = 0; i < rows; i++) {
        for (uint32_t e = 0; e < s->a_k; e++)
            tensor_set(a, i, index_of(p, w, i, e), s->a_format, w->a[i * s->a_k + e] ^ sign);
        if (p->form->block != 0) scale_row(a, i, s->k, w->sfa[i][0]);
    }
}

static void fill_b(const struct tcgen05_product *p, struct tcgen05_workspace *w, struct tensor_panel *b)
{
    const struct mma_shape *s = &p->shape;
    const uint32_t sign = sign_of(s->b_negated, s->b_format);
    tensor_clear(b, s->n, s->k);
    for (uint32_t j = 0; j < s->n; j++) {
        for (uint32_t k = 0; k < s->k; k++) tensor_set(b, j, k, s->b_format, w->b[j * s->k + k] ^ sign);
        if (p->form->block != 0) scale_row(b, j, s->k, w->sfb[j][0]);
    }
}

static void multiply_reals(const struct tcgen05_product *p, enum tensor_mode mode, uint32_t sm,
                           struct tcgen05_workspace *w)
{
    const struct mma_shape *s = &p->shape;
    struct tensor_model model =
        tensor_model_of(mode, sm, TENSOR_TCGEN05, s->a_format, s->b_format, s->f16_output, s->k);
    struct tensor_panel a = TENSOR_PANEL(w->panel.real.a), b = TENSOR_PANEL(w->panel.real.b);
    model.c_down = p->scale_down;
    fill_a(p, w, &a);
    fill_b(p, w, &b);
    tensor_multiply(&model, &a, &b, w->d);
}

/* ---- exact groups: mxf4, mxf4nvf4 ---- */

static void multiply_fp4(const struct tcgen05_product *p, enum tensor_mode mode, struct tcgen05_workspace *w)
{
    const struct mma_shape *s = &p->shape;
    const enum tensor_scale_format format = s->ue4m3 ? TENSOR_UE4M3 : TENSOR_UE8M0;
    const uint32_t groups = s->a_k / TENSOR_FP4_GROUP, width = s->k / groups,
                   per_scale = groups / tcgen05_scales(p->form);
    const uint32_t sign_a = sign_of(s->a_negated, TENSOR_E2M1), sign_b = sign_of(s->b_negated, TENSOR_E2M1),
                   rows = product_rows(p);
    struct tensor_fp4 a = TENSOR_FP4_PANEL(w->panel.fp4.a), b = TENSOR_FP4_PANEL(w->panel.fp4.b);
    tensor_fp4_clear(&a, rows, groups, width);
    tensor_fp4_clear(&b, s->n, groups, width);
    for (uint32_t i = 0; i < rows; i++) {
        for (uint32_t e = 0; e < s->a_k; e++)
            tensor_fp4_set(&a, i, index_of(p, w, i, e), w->a[i * s->a_k + e] ^ sign_a);
        for (uint32_t g = 0; g < groups; g++) tensor_fp4_scale(&a, i, g, format, w->sfa[i][g / per_scale]);
    }
    for (uint32_t j = 0; j < s->n; j++) {
        for (uint32_t k = 0; k < s->k; k++) tensor_fp4_set(&b, j, k, w->b[j * s->k + k] ^ sign_b);
        for (uint32_t g = 0; g < groups; g++) tensor_fp4_scale(&b, j, g, format, w->sfb[j][g / per_scale]);
    }
    tensor_fp4_multiply(&a, &b, mode == TENSOR_MODE_FP32, w->d);
}

/* ---- integers ---- */

static int16_t integer_of(uint32_t code, bool is_signed) { return is_signed ? (int8_t)(uint8_t)code : (int16_t)code; }

static void multiply_integers(const struct tcgen05_product *p, struct tcgen05_workspace *w)
{
    const struct mma_shape *s = &p->shape;
    int16_t *a = w->panel.integer.a, *b = w->panel.integer.b;
    const uint32_t rows = product_rows(p);
    memset(a, 0, rows * s->k * sizeof *a);
    for (uint32_t i = 0; i < rows; i++)
        for (uint32_t e = 0; e < s->a_k; e++)
            a[i * s->k + index_of(p, w, i, e)] = integer_of(w->a[i * s->a_k + e], s->a_signed);
    for (uint32_t i = 0; i < s->n * s->k; i++) b[i] = integer_of(w->b[i], s->b_signed);
    tensor_multiply_integers(a, rows, b, s->n, s->k, s->saturate, (int32_t *)w->d);
}

void tcgen05_multiply(const struct tcgen05_product *p, enum tensor_mode mode, uint32_t sm, struct tcgen05_workspace *w)
{
    switch (p->form->kind) {
    case TCGEN05_I8: multiply_integers(p, w); break;
    case TCGEN05_MXF4:
    case TCGEN05_MXF4NVF4: multiply_fp4(p, mode, w); break;
    default: multiply_reals(p, mode, sm, w); break;
    }
}
