/* bsmi_quantize_row_and_column, and the kernels that leave scales in the order of tiles, against bsm_quantize_both: the
 * same bytes of both destinations. */
#include "cuda/harness/device.h"

#include "cuda/params/row_and_column.h"

#include <math.h>
#include <stdlib.h>

/* What the numbers are like; of the last kind, bits at random, NaN and infinity too. */
enum kind { NORMAL, TIES, WIDE, BITS, KIND_COUNT };

struct source { bsm_real_matrix host; struct bsmi_reals resolved; struct bsmi_device_reals device; };

static uint16_t bf16_of(double value)
{
    return (uint16_t)bsm_element_encode(BSM_BF16, value, BSM_ROUND_NEAREST_EVEN, false, 0);
}

static void source_make(struct test *t, int64_t rows, int64_t columns, enum kind kind, struct source *s)
{
    const int64_t row_stride = columns + 8 * rnd_below(t, 3);
    const size_t bytes = (size_t)(row_stride * rows) * 2;
    uint16_t *numbers = malloc(bytes);
    s->host = (bsm_real_matrix){ .struct_size = sizeof s->host, .type = BSM_REAL_BF16, .rows = rows, .columns = columns,
                                 .data = numbers,
                                 .row_stride = row_stride, .column_stride = 1 };
    double scale = 1;
    for (int64_t i = 0; i < row_stride * rows; i++) {
        if (i % 32 == 0) scale = ldexp(1, (int)rnd_between(t, -6, 6));
        if (i % 32 == 0 && rnd_below(t, 20) == 0) scale = ldexp(1, (int)rnd_between(t, -150, 126));
        switch (kind) {
        case TIES: numbers[i] = bf16_of((double)rnd_between(t, -97, 97) / 16 * scale); break;
        case WIDE:
            numbers[i] = bf16_of(rnd_below(t, 9) == 0 ? 0 : rnd_normal(t) * ldexp(1, (int)rnd_between(t, -40, 15)));
            break;
        case BITS: numbers[i] = rnd_below(t, 16) == 0 ? (uint16_t)rnd(t) : bf16_of(rnd_normal(t)); break;
        default: numbers[i] = bf16_of(rnd_normal(t) * scale); break;
        }
    }
    CHECK(t, bsmi_reals_resolve("source", &s->host, &s->resolved) == BSM_OK);
    s->device = bsmi_device_reals_of(&s->resolved);
    s->device.data = device_copy(t, numbers, bytes, 0);
}

static struct bsmi_device_reals transposed(struct bsmi_device_reals s)
{
    const struct bsmi_device_reals all = s;
    s.rows = all.columns, s.columns = all.rows, s.row_stride = all.column_stride, s.column_stride = all.row_stride;
    return s;
}

static struct bsmi_quantize_parameters parameters_of(const struct twin *twin, struct bsmi_device_reals source,
                                                     const bsm_quantize_options *o)
{
    const struct bsmi_matrix *m = &twin->resolved;
    union { const float *constant; uint32_t *word; } scale = { twin->device.tensor_scale };
    const bool nvfp4 = m->scale == BSM_UE4M3;
    return (struct bsmi_quantize_parameters){
        .source = source, .destination = twin->device, .nonfinite = (int32_t)o->nonfinite,
        .recipe = o->recipe != BSM_RECIPE_DEFAULT ? (int32_t)o->recipe : nvfp4 ? BSM_RECIPE_NEAREST : BSM_RECIPE_RCEIL,
        .computed = o->tensor_scale == BSM_TENSOR_SCALE_COMPUTED ? scale.word : NULL,
        .largest = bsm_element_get((int)m->element)->max_value * (nvfp4 ? 448 : 1),
    };
}

/* The kernel for them that leaves scales in the order of tiles, or NULL. */
static const char *kernel_in_front(const struct bsmi_row_and_column_parameters *p)
{
    const struct bsmi_device_matrix *both[2] = { &p->rows.destination, &p->columns.destination };
    int powers = 0, quotients = 0;
    for (int i = 0; i < 2; i++) {
        if (both[i]->layout.kind != BSM_LAYOUT_LINEAR || both[i]->layout.pitch % 32 != 0) return NULL;
        powers += both[i]->scale == BSM_E8M0 && both[i]->element != BSM_E5M2;
        quotients += both[i]->scale == BSM_UE4M3 && p->rows.computed == NULL;
    }
    if (p->rows.source.rows % BSMI_ROW_AND_COLUMN_POWERS != 0
        || p->rows.source.columns % BSMI_ROW_AND_COLUMN_POWERS != 0)
        return NULL;
    return powers == 2      ? "bsmi_quantize_row_and_column_powers"
           : quotients == 2 ? "bsmi_quantize_row_and_column_quotients"
                            : NULL;
}

static void launch_in_order(struct test *t, const char *kernel, const struct bsmi_row_and_column_parameters *p,
                            int ctas)
{
    const int64_t regions = bsmi_row_and_column_regions(&p->rows.destination.layout)
                            + bsmi_row_and_column_regions(&p->columns.destination.layout);
    device_launch(t, kernel, ctas, BSMI_ROW_AND_COLUMN_THREADS, p);
    device_launch(t, "bsmi_order_scales", (int)regions, BSMI_ROW_AND_COLUMN_THREADS, p);
}

static void run(struct test *t, const struct twin *rows, const struct twin *columns, const struct source *s,
                const bsm_quantize_options *o, int ctas)
{
    const struct bsmi_row_and_column_parameters p = { parameters_of(rows, s->device, o),
                                            parameters_of(columns, transposed(s->device), o) };
    const struct twin *twins[2] = { rows, columns };
    if (p.rows.computed != NULL) {
        const struct bsmi_amax_parameters amax = { s->device, p.rows.computed };
        device_write_word(t, amax.amax, BSMI_NO_AMAX);
        device_launch(t, "bsmi_amax", 2, BSMI_AMAX_THREADS, &amax);
    }
    const char *in_front = kernel_in_front(&p);
    if (in_front != NULL) launch_in_order(t, in_front, &p, ctas);
    else device_launch(t, "bsmi_quantize_row_and_column", ctas, BSMI_ROW_AND_COLUMN_THREADS, &p);
    for (int i = 0; i < 2; i++) {
        const struct bsmi_clear_padding_parameters clear = { twins[i]->device.scales, twins[i]->device.layout, 1, 0 };
        device_launch(t, "bsmi_clear_padding", 1, BSMI_CONVERT_THREADS, &clear);
    }
}

static void case_of(struct test *t, const struct twin_wish wishes[2], enum kind kind, bsm_quantize_options o, int ctas)
{
    struct twin twins[2];
    struct source s;
    bsm_context *context = NULL;
    char what[400];
    CHECK_OR_RETURN(t, twin_make(t, &wishes[0], &twins[0]) && twin_make(t, &wishes[1], &twins[1]));
    CHECK(t, bsm_context_create(NULL, &context) == BSM_OK);
    source_make(t, wishes[0].rows, wishes[0].columns, kind, &s);
    for (int i = 0; i < 2; i++) twin_upload(t, &wishes[i], &twins[i]);
    o.struct_size = sizeof o;
    if (bsm_quantize_both(context, &s.host, &o, &twins[0].host, &twins[1].host) != BSM_OK)
        FAIL(t, "%s: %s", wish_text(&wishes[0]), bsm_last_error());
    run(t, &twins[0], &twins[1], &s, &o, ctas);
    for (int i = 0; i < 2; i++) {
        float scale = 0;
        snprintf(what, sizeof what, "%s: %s, tensor scale %g, kind %d recipe %d nonfinite %d",
                 i == 0 ? "rows" : "columns", wish_text(&wishes[i]), (double)wishes[i].tensor_scale, (int)kind,
                 (int)o.recipe, (int)o.nonfinite);
        twin_equal(t, &twins[i], what);
        if (twins[i].device.tensor_scale == NULL) continue;
        device_read(t, &scale, twins[i].device.tensor_scale, sizeof scale);
        if (scale != twins[i].tensor_scale)
            FAIL(t, "%s: tensor scale %a, not %a", what, (double)scale, (double)twins[i].tensor_scale);
    }
    device_free_all(t);
    free(s.host.data);
    twin_free(&twins[0]), twin_free(&twins[1]);
    bsm_context_destroy(context);
}

static const bsm_format formats[] = { BSM_MXFP8_E4M3, BSM_MXFP8_E5M2, BSM_MXFP4, BSM_NVFP4 };

/* number: what is not asked for, by turns.  Tensor scales are of NVFP4 alone. */
static struct twin_wish wish_of(bsm_format format, int64_t rows, int64_t columns, int number, float tensor_scale)
{
    static const bsm_layout layouts[] = { BSM_LAYOUT_LINEAR, BSM_LAYOUT_128X4, BSM_LAYOUT_8X4, BSM_LAYOUT_CDNA4_16,
                                          BSM_LAYOUT_DEEPGEMM };
    const bool nibbles = format == BSM_MXFP4 || format == BSM_NVFP4;
    return (struct twin_wish){ .format = format,
                               .rows = rows,
                               .columns = columns,
                               .batch = 1,
                               .extra_pitch = number % 3 == 0,
                               .packing = nibbles ? number % 2 ? BSM_PACKING_HIGH_FIRST : BSM_PACKING_LOW_FIRST
                                                  : BSM_PACKING_DEFAULT,
                               .layout.kind = layouts[number % 5],
                               .tensor_scale = format == BSM_NVFP4 ? tensor_scale : 0,
                               .use = number % 4 == 3 ? BSM_TENSOR_SCALE_DIVIDES : BSM_TENSOR_SCALE_MULTIPLIES };
}

static void every_format_with_every_other(struct test *t)
{
    static const float tensor_scales[] = { 0, 0.25f, 0.0123f, 0.75f, 3e-30f, 5.0f / 2688 };
    static const bsm_recipe recipes[] = { BSM_RECIPE_DEFAULT, BSM_RECIPE_FLOOR, BSM_RECIPE_EVEN, BSM_RECIPE_CEIL };
    if (!device_open(t)) return;
    for (int number = 0; number < 64; number++) {
        const bsm_format one = formats[number % 4], other = formats[number / 4 % 4];
        const bool nvfp4 = one == BSM_NVFP4 || other == BSM_NVFP4;
        const int64_t rows = 64 * (1 + number % 3), columns = number % 2 == 0 ? 128 : 256;
        const struct twin_wish wishes[2] = { wish_of(one, rows, columns, number, tensor_scales[number % 6]),
                                             wish_of(other, columns, rows, number / 2, tensor_scales[number / 3 % 6]) };
        const bsm_quantize_options o = { .recipe = nvfp4 ? BSM_RECIPE_DEFAULT : recipes[number / 16],
                                         .nonfinite = (bsm_nonfinite)(number / 8 % 2) };
        case_of(t, wishes, (enum kind)((number + number / 16) % KIND_COUNT), o, 1 + number % 3);
    }
}

static void tensor_scales_of_an_amax(struct test *t)
{
    if (!device_open(t)) return;
    for (int number = 0; number < 8; number++) {
        struct twin_wish wishes[2] = { wish_of(BSM_NVFP4, 128, 128, number, 1),
                                       wish_of(BSM_NVFP4, 128, 128, number / 2, 1) };
        wishes[1].use = wishes[0].use;
        case_of(t, wishes, (enum kind)(number % KIND_COUNT),
                (bsm_quantize_options){ .tensor_scale = BSM_TENSOR_SCALE_COMPUTED }, 2);
    }
}

/* So many tiles for a CTA that it does two of them behind one another, and keeps the scales of their columns until
 * then. */
static void chunks(struct test *t)
{
    if (!device_open(t)) return;
    for (int number = 0; number < 24; number++) {
        const struct twin_wish wishes[2] = { wish_of(formats[number % 4], 256, 256, number, 0.0123f),
                                             wish_of(formats[number / 4 % 4], 256, 256, number / 2,
                                                     number % 3 == 0 ? 0.75f : 0.0123f) };
        const bsm_quantize_options o = { .nonfinite = (bsm_nonfinite)(number % 2) };
        case_of(t, wishes, (enum kind)((number + number / 4) % KIND_COUNT), o, 1 + number % 3);
    }
}

/* More tiles above one another than a band has, the last band lower. */
static void bands(struct test *t)
{
    if (!device_open(t)) return;
    const struct twin_wish wishes[2] = { wish_of(BSM_MXFP4, 17 * 64, 256, 1, 0),
                                         wish_of(BSM_MXFP8_E4M3, 256, 17 * 64, 0, 0) };
    case_of(t, wishes, NORMAL, (bsm_quantize_options){ 0 }, 5);
    const struct twin_wish of_chunks[2] = { wish_of(BSM_MXFP8_E4M3, 5 * 256, 256, 1, 0),
                                            wish_of(BSM_MXFP4, 256, 5 * 256, 0, 0) };
    case_of(t, of_chunks, BITS, (bsm_quantize_options){ 0 }, 3);
}

/* Scales that lie in the order of tiles until bsmi_order_scales.  As many CTAs as there are chunks, fewer, or more. */
static void powers(struct test *t)
{
    static const bsm_recipe recipes[] = { BSM_RECIPE_DEFAULT, BSM_RECIPE_FLOOR, BSM_RECIPE_EVEN, BSM_RECIPE_CEIL };
    if (!device_open(t)) return;
    for (int number = 0; number < 4; number++) {
        const int64_t rows = number == 3 ? 4096 : 1024, columns = number == 2 ? 2048 : 1024;
        const struct twin_wish wishes[2] = { wish_of(formats[number / 2 * 2], rows, columns, 5 * number + 10, 0),
                                             wish_of(formats[(number + 1) / 2 % 2 * 2], columns, rows, 5 * number + 5,
                                                     0) };
        const bsm_quantize_options o = { .recipe = recipes[number], .nonfinite = (bsm_nonfinite)(number % 2) };
        case_of(t, wishes, (enum kind)number, o, number == 0 ? 64 : number == 1 ? 70 : 13 * number);
    }
}

/* The same of NVFP4: tensor scales of many bits that bring numbers close to middles, powers of two and others of few
 * bits, one that is too small for the fast paths, and none. */
static void quotients(struct test *t)
{
    static const float tensor_scales[] = { 0.0123f, 5.0f / 2688, 0.25f, 0.75f, 3e-38f, 105.0f / 2688, 0 };
    if (!device_open(t)) return;
    for (int number = 0; number < 7; number++) {
        const int64_t rows = number == 1 ? 2048 : 1024, columns = number == 3 ? 2048 : 1024;
        const struct twin_wish wishes[2] = { wish_of(BSM_NVFP4, rows, columns, 5 * number + 10, tensor_scales[number]),
                                             wish_of(BSM_NVFP4, columns, rows, 5 * (number / 2) + 5,
                                                     tensor_scales[(number + number / 2) % 5]) };
        const bsm_quantize_options o = { .nonfinite = (bsm_nonfinite)(number % 2) };
        case_of(t, wishes, (enum kind)(number % KIND_COUNT), o, number == 0 ? 64 : number == 2 ? 70 : 13 * number);
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(every_format_with_every_other), TEST(tensor_scales_of_an_amax),
                                              TEST(chunks), TEST(bands), TEST(powers), TEST(quotients) };
    return TEST_MAIN(argc, argv, cases);
}
