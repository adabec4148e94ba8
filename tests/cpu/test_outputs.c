/* What D may be: every format, recipe, layout and packing holds exactly what bsm_quantize makes of the same product in
 * fp32. */
#include "naive.h"

#include <math.h>
#include <stdlib.h>

enum { K = 32, FP32_GAP = 64 };

static const bsm_scale_layout layouts[] = {
    { .kind = BSM_LAYOUT_LINEAR },
    { .kind = BSM_LAYOUT_LINEAR, .pitch = 77 },
    { .kind = BSM_LAYOUT_128X4 },
    { .kind = BSM_LAYOUT_8X4 },
    { .kind = BSM_LAYOUT_TILES, .tile_rows = 64, .tile_columns = 2 },
    { .kind = BSM_LAYOUT_LINEAR, .pitch = BSM_PITCH_PADDED_16 },
    { .kind = BSM_LAYOUT_CDNA4_16 },
    { .kind = BSM_LAYOUT_CDNA4_32 },
    { .kind = BSM_LAYOUT_AITER },
    { .kind = BSM_LAYOUT_DEEPGEMM },
};
enum { LAYOUTS = sizeof layouts / sizeof layouts[0] };

static bsm_context *make_context(struct test *t)
{
    bsm_context *context = NULL;
    CHECK(t, bsm_context_create(NULL, &context) == BSM_OK);
    return context;
}

/* M x N numbers t: a product in fp32, with a few that are not finite if asked for. */
struct source {
    struct operand a, b, c;
    float beta, alpha;
    bsm_matmul call;                      /* without d */
};

static void source_make(struct test *t, struct source *s, int64_t m, int64_t n, bool nonfinite)
{
    memset(s, 0, sizeof *s);
    s->a = operand_make(&(struct shape){ .format = BSM_MXFP8_E4M3, .rows = m, .columns = K }, 0xff);
    s->b = operand_make(&(struct shape){ .format = BSM_MXFP4, .rows = n, .columns = K }, 0xff);
    s->c = operand_make(&(struct shape){ .format = BSM_FORMAT_FP32, .rows = m, .columns = n }, 0);
    operand_fill(t, &s->a, false);
    operand_fill(t, &s->b, false);
    for (int64_t i = 0; i < m * n; i++) {
        float *c = (float *)s->c.m.data + i;
        *c = (float)rnd_normal(t);
        if (!nonfinite || rnd_below(t, 60) != 0) continue;
        *c = rnd_below(t, 3) == 0 ? (float)NAN : rnd_below(t, 2) == 0 ? INFINITY : -INFINITY;
    }
    s->alpha = ldexpf(1, (int)rnd_between(t, -12, -2));
    s->beta = 1;
}

static bsm_matmul source_call(const struct source *s, const bsm_matrix *d)
{
    return (bsm_matmul){
        .struct_size = sizeof(bsm_matmul), .a = &s->a.m, .b = &s->b.m, .alpha = &s->alpha, .beta = &s->beta,
        .c = &s->c.m, .d = d
    };
}

static void source_free(struct source *s) { operand_free(&s->a), operand_free(&s->b), operand_free(&s->c); }

/* The same product in fp32, tight. */
static float *in_fp32(struct test *t, bsm_context *context, const bsm_matmul *call, int64_t m, int64_t n)
{
    float *values = malloc((size_t)(m * n + 1) * sizeof *values);
    const bsm_matrix d = { .struct_size = sizeof d, .format = BSM_FORMAT_FP32, .rows = m, .columns = n,
                           .data = values };
    bsm_matmul plain = *call;
    plain.d = &d;
    plain.d_recipe = BSM_RECIPE_DEFAULT, plain.d_nonfinite = BSM_NONFINITE_PROPAGATE, plain.d_no_saturate = false;
    if (bsm_multiply(context, &plain) != BSM_OK) FAIL(t, "fp32: %s", bsm_last_error());
    return values;
}

static void check_scale_padding(struct test *t, const struct operand *d, const char *what)
{
    const bsm_matrix *m = &d->m;
    const int64_t columns = bsm_matrix_scale_columns(m);
    int64_t padded_rows = 0, padded_columns = 0, offset = 0;
    if (d->scale_bytes == 0) return;
    if (bsm_scale_padded(&m->scale_layout, m->rows, columns, &padded_rows, &padded_columns) != BSM_OK)
        FAIL(t, "%s", bsm_last_error());
    for (int64_t r = 0; r < padded_rows; r++)
        for (int64_t s = 0; s < padded_columns; s++) {
            if (r < m->rows && s < columns) continue;
            const bool fine = bsm_scale_offset(&m->scale_layout, m->rows, columns, r, s, &offset) == BSM_OK &&
                              ((uint8_t *)m->scales)[offset] == 0;
            if (fine) continue;
            FAIL(t, "%s: the padding scale (%" PRId64 ", %" PRId64 ") is not zero", what, r, s);
            return;
        }
}

struct output {
    struct shape shape;
    bsm_recipe recipe;
    bsm_nonfinite nonfinite;
    bool no_saturate;
    float *tensor_scale;
    bsm_tensor_scale_use use;
};

static void describe(const struct output *o, char *what, size_t bytes)
{
    snprintf(what, bytes, "%s %" PRId64 " x %" PRId64 ", %s, %s, %s, tensor scale %s%g%s",
             bsm_format_get((int)o->shape.format)->name, o->shape.rows, o->shape.columns,
             bsm_recipe_name((int)o->recipe), bsm_layout_name((int)o->shape.layout.kind),
             bsm_packing_name((int)o->shape.packing), o->use == BSM_TENSOR_SCALE_DIVIDES ? "/" : "*",
             o->tensor_scale == NULL ? 1 : (double)*o->tensor_scale, o->no_saturate ? ", not saturating" : "");
}

static void use_tensor_scale(bsm_matrix *m, const struct output *o)
{
    m->tensor_scale = o->tensor_scale, m->tensor_scale_use = o->use;
}

/* values: what D holds before rounding.  Every byte of D and its scales, also those that are not owed, is what
 * bsm_quantize leaves. */
static void check_output(struct test *t, bsm_context *context, const bsm_matmul *call, const float *values,
                         const struct output *o)
{
    char what[256];
    const int poison = rnd_below(t, 2) == 0 ? 0x00 : 0xff;
    struct operand d = operand_make(&o->shape, poison), want = operand_make(&o->shape, poison);
    use_tensor_scale(&d.m, o), use_tensor_scale(&want.m, o);
    if (o->shape.packing == BSM_PACKING_GGUF) d.m.scales = d.m.data, want.m.scales = want.m.data;
    describe(o, what, sizeof what);
    const bsm_real_matrix source = { .struct_size = sizeof source,
                                     .type = BSM_REAL_FP32,
                                     .rows = o->shape.rows,
                                     .columns = o->shape.columns,
                                     .data = (void *)(uintptr_t)values,
                                     .row_stride = o->shape.columns,
                                     .column_stride = 1 };
    const bsm_quantize_options options = {
        .struct_size = sizeof options, .recipe = o->recipe, .nonfinite = o->nonfinite, .no_saturate = o->no_saturate
    };
    bsm_matmul product = *call;
    product.d = &d.m;
    product.d_recipe = o->recipe, product.d_nonfinite = o->nonfinite, product.d_no_saturate = o->no_saturate;
    if (bsm_quantize(context, &source, &options, &want.m, NULL) != BSM_OK) FAIL(t, "%s: %s", what, bsm_last_error());
    if (bsm_multiply(context, &product) != BSM_OK) FAIL(t, "%s: %s", what, bsm_last_error());
    if (d.data_bytes > 0 && memcmp(d.m.data, want.m.data, d.data_bytes) != 0)
        FAIL(t, "%s: codes differ from bsm_quantize's", what);
    if (d.scale_bytes > 0 && memcmp(d.m.scales, want.m.scales, d.scale_bytes) != 0)
        FAIL(t, "%s: scales differ from bsm_quantize's", what);
    check_scale_padding(t, &d, what);
    operand_free(&d), operand_free(&want);
}

static int packings_of(bsm_format format, bsm_packing *packings)
{
    static const bsm_packing four[] = { BSM_PACKING_LOW_FIRST, BSM_PACKING_HIGH_FIRST, BSM_PACKING_BYTES,
                                        BSM_PACKING_GGUF };
    const int bits = bsm_element_get((int)bsm_format_get((int)format)->element)->bits;
    packings[0] = bits == 6 ? BSM_PACKING_BIT_STREAM : BSM_PACKING_DEFAULT, packings[1] = BSM_PACKING_BYTES;
    if (bits == 6) return 2;
    if (bits != 4) return 1;
    memcpy(packings, four, sizeof four);
    return format == BSM_MXFP4 || format == BSM_NVFP4 ? 4 : 3;
}

/* Every block format with every recipe, layout and packing that it has; sizes, tensor scales and pitches take turns. */
static void block_formats(struct test *t)
{
    static const int64_t ns[] = { 1, 17, 33, 50, 300 }, ms[] = { 1, 5, 131 };
    static float tensor_scales[] = { 0.37f, 3.3f };
    bsm_context *context = make_context(t);
    int turn = (int)(t->seed % 100);
    for (int size = 0; size < 30; size++) {
        const int64_t n = ns[size % 5], m = ms[size % 3];
        const bool nonfinite = size / 15 != 0;
        struct source s;
        source_make(t, &s, m, n, nonfinite);
        const bsm_matmul call = source_call(&s, NULL);
        float *values = in_fp32(t, context, &call, m, n);
        int combination = 0;
        for (int f = BSM_MXFP8_E4M3; f <= BSM_NVFP4; f++)
            for (int recipe = 0; recipe <= BSM_RECIPE_NEAREST; recipe++) {
                if (recipe != 0 && (recipe == BSM_RECIPE_NEAREST) != (f == BSM_NVFP4)) continue;
                bsm_packing packings[4];
                const int count = packings_of((bsm_format)f, packings);
                for (int p = 0; p < count; p++)
                    for (int l = 0; l < (packings[p] == BSM_PACKING_GGUF ? 1 : LAYOUTS); l++) {
                        if (combination++ % 15 != size % 15) continue;       /* each combination finite and not, sizes
                                                                                by turns */
                        struct output o = { .shape = { .format = (bsm_format)f,
                                                       .rows = m,
                                                       .columns = n,
                                                       .packing = packings[p],
                                                       .layout = layouts[l] },
                                            .recipe = (bsm_recipe)recipe,
                                            .nonfinite = (bsm_nonfinite)(turn % 2) };
                        if (o.shape.packing == BSM_PACKING_GGUF)
                            o.shape.layout = (bsm_scale_layout){ .kind = f == BSM_MXFP4 ? BSM_LAYOUT_GGUF_MXFP4
                                                                                        : BSM_LAYOUT_GGUF_NVFP4 };
                        if (turn % 3 != 0)
                            o.tensor_scale = &tensor_scales[turn % 3 - 1], o.use = (bsm_tensor_scale_use)(turn / 2 % 2);
                        o.shape.extra_pitch = turn / 3 % 2 * 64;
                        check_output(t, context, &call, values, &o);
                        turn++;
                    }
            }
        free(values);
        source_free(&s);
    }
    bsm_context_destroy(context);
}

/* GGUF blocks with all sizes: the last block may be short, and its unused nibbles are zero. */
static void gguf_and_every_remainder(struct test *t)
{
    static float tensor_scale = 0.21f;
    bsm_context *context = make_context(t);
    for (int64_t n = 1; n <= 150; n += n < 70 ? 1 : 13) {
        struct source s;
        source_make(t, &s, 3, n, false);
        const bsm_matmul call = source_call(&s, NULL);
        float *values = in_fp32(t, context, &call, 3, n);
        struct output o = { .shape = { .format = BSM_MXFP4,
                                       .rows = 3,
                                       .columns = n,
                                       .packing = BSM_PACKING_GGUF,
                                       .layout = { .kind = BSM_LAYOUT_GGUF_MXFP4 } } };
        check_output(t, context, &call, values, &o);
        o.shape.format = BSM_NVFP4, o.shape.layout.kind = BSM_LAYOUT_GGUF_NVFP4, o.tensor_scale = &tensor_scale;
        check_output(t, context, &call, values, &o);
        o.shape.packing = BSM_PACKING_LOW_FIRST, o.shape.layout.kind = BSM_LAYOUT_128X4;
        check_output(t, context, &call, values, &o);
        o.shape.format = BSM_MXFP6_E3M2, o.shape.packing = BSM_PACKING_BIT_STREAM;
        check_output(t, context, &call, values, &o);
        free(values);
        source_free(&s);
    }
    bsm_context_destroy(context);
}

static void unscaled_formats(struct test *t)
{
    static const bsm_format formats[] = { BSM_FORMAT_FP32, BSM_FORMAT_BF16, BSM_FORMAT_FP16, BSM_FORMAT_E4M3,
                                          BSM_FORMAT_E5M2 };
    static float tensor_scales[] = { 0.37f, 0x1p-9f, 0x1p-120f };
    bsm_context *context = make_context(t);
    for (int f = 0; f < 5; f++)
        for (int variant = 0; variant < 28; variant++) {
            const int64_t n = variant % 2 == 0 ? 300 : 17, m = variant % 4 < 2 ? 5 : 131;
            struct source s;
            source_make(t, &s, m, n, variant % 3 == 0);
            const bsm_matmul call = source_call(&s, NULL);
            float *values = in_fp32(t, context, &call, m, n);
            struct output o = {
                .shape = { .format = formats[f], .rows = m, .columns = n,
                           .extra_pitch = variant % 5 == 0 ? FP32_GAP : 0 },
                .no_saturate = f >= 3 && variant % 2 == 1,
                .use = (bsm_tensor_scale_use)(variant / 4 % 2)
            };
            if (variant % 4 != 0) o.tensor_scale = &tensor_scales[variant % 4 - 1];
            check_output(t, context, &call, values, &o);
            free(values);
            source_free(&s);
        }
    bsm_context_destroy(context);
}

/* Rounded once: numbers next to a tie, where a stop in a narrower type, or in fp32 on the way through the tensor scale,
 * would make the tie and then go the other way.  t / scale and t * scale below are 19/16 less about 2^-27: 9/8 in e4m3,
 * not 5/4. */
static void rounded_once(struct test *t)
{
    static const struct { bsm_format format; float t, scale; bsm_tensor_scale_use use; uint32_t code;
    } cases[] = {
        { BSM_FORMAT_BF16, 0x1.01p0f, 0, 0, 0x3f80 },
        { BSM_FORMAT_BF16, 0x1.010002p0f, 0, 0, 0x3f81 },
        { BSM_FORMAT_BF16, 0x1.02fffep0f, 0, 0, 0x3f81 },
        { BSM_FORMAT_BF16, 0x1.03p0f, 0, 0, 0x3f82 },
        { BSM_FORMAT_BF16, 0x1.fefffep127f, 0, 0, 0x7f7f },
        { BSM_FORMAT_BF16, 0x1.ffp127f, 0, 0, 0x7f80 },
        { BSM_FORMAT_FP16, 0x1.002p0f, 0, 0, 0x3c00 },
        { BSM_FORMAT_FP16, 0x1.002002p0f, 0, 0, 0x3c01 },
        { BSM_FORMAT_FP16, 0x1.005ffep0f, 0, 0, 0x3c01 },
        { BSM_FORMAT_FP16, 0x1.000002p-25f, 0, 0, 1 },
        { BSM_FORMAT_FP16, 0x1p-25f, 0, 0, 0 },
        { BSM_FORMAT_FP16, 65519, 0, 0, 0x7bff },
        { BSM_FORMAT_FP16, 65520, 0, 0, 0x7c00 },
        { BSM_FORMAT_E4M3, 0x1.1p0f, 0, 0, 0x38 },
        { BSM_FORMAT_E4M3, 0x1.100002p0f, 0, 0, 0x39 },
        { BSM_FORMAT_E4M3, 0x1.2ffffep0f, 0, 0, 0x39 },
        { BSM_FORMAT_E4M3, 0x1.3p0f, 0, 0, 0x3a },
        { BSM_FORMAT_E4M3, 0x1.000002p-10f, 0, 0, 1 },
        { BSM_FORMAT_E4M3, -0x1p-10f, 0, 0, 0x80 },
        { BSM_FORMAT_E5M2, 0x1.2p0f, 0, 0, 0x3c },
        { BSM_FORMAT_E5M2, 0x1.200002p0f, 0, 0, 0x3d },
        { BSM_FORMAT_E5M2, -0x1.5ffffep0f, 0, 0, 0xbd },
        { BSM_FORMAT_E5M2, 0x1.000002p-17f, 0, 0, 1 },
        { BSM_FORMAT_E4M3, 0x1.30001ap0f, 0x1.000016p0f, BSM_TENSOR_SCALE_MULTIPLIES, 0x39 },
        { BSM_FORMAT_E4M3, 0x1.30026p0f, 0x1.fffcp-1f, BSM_TENSOR_SCALE_DIVIDES, 0x39 },
        { BSM_FORMAT_FP32, 3, 7, BSM_TENSOR_SCALE_MULTIPLIES, 0x3edb6db7 },
        { BSM_FORMAT_FP32, 3, 7, BSM_TENSOR_SCALE_DIVIDES, 0x41a80000 },
        { BSM_FORMAT_FP32, 0x1p-149f, 3, BSM_TENSOR_SCALE_MULTIPLIES, 0 },
        { BSM_FORMAT_FP32, -0x1p-148f, 3, BSM_TENSOR_SCALE_MULTIPLIES, 0x80000001 },
    };
    bsm_context *context = make_context(t);
    const float one = 1;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        float c = cases[i].t, scale = cases[i].scale;
        uint32_t found = 0xffffffff, code = 0xffffffff;
        const bsm_matrix a = { .struct_size = sizeof a, .format = BSM_MXFP4, .rows = 1 }, b = a;
        const bsm_matrix mc = { .struct_size = sizeof mc, .format = BSM_FORMAT_FP32, .rows = 1, .columns = 1,
                                .data = &c };
        const bsm_matrix d = { .struct_size = sizeof d, .format = cases[i].format, .rows = 1, .columns = 1,
                               .data = &found,
                               .tensor_scale = scale != 0 ? &scale : NULL, .tensor_scale_use = cases[i].use };
        const bsm_matmul call = { .struct_size = sizeof call, .a = &a, .b = &b, .beta = &one, .c = &mc, .d = &d };
        if (bsm_multiply(context, &call) != BSM_OK || bsm_matrix_get_code(&d, 0, 0, 0, &code) != BSM_OK)
            FAIL(t, "%s", bsm_last_error());
        if (code != cases[i].code)
            FAIL(t, "%a (scale %a) in %s is code %x, not %x", (double)c, (double)scale,
                 bsm_format_get((int)d.format)->name, code, cases[i].code);
    }
    bsm_context_destroy(context);
}

/* Gates and ups from the product that is not gated; D wide enough that it lies in several tiles. */
static void gated_across_tiles(struct test *t)
{
    static const bsm_format formats[] = { BSM_FORMAT_FP32, BSM_FORMAT_BF16, BSM_FORMAT_E5M2, BSM_MXFP8_E4M3,
                                          BSM_MXFP6_E2M3,  BSM_MXFP4,       BSM_NVFP4 };
    static const int64_t ns[] = { 600, 1100, 34, 2 };
    bsm_context *context = make_context(t);
    for (int size = 0; size < 4; size++) {
        const int64_t n = ns[size], m = size == 1 ? 7 : 50, half = n / 2;
        struct source s;
        source_make(t, &s, m, n, false);
        bsm_matmul call = source_call(&s, NULL);
        float *all = in_fp32(t, context, &call, m, n), *values = malloc((size_t)(m * half) * sizeof *values);
        for (int split = 0; split < 2; split++)
            for (int relu = 0; relu < 2; relu++) {
                for (int64_t i = 0; i < m; i++)
                    for (int64_t j = 0; j < half; j++) {
                        const float *row = all + i * n, gate = split ? row[j] : row[2 * j],
                                    up = split ? row[half + j] : row[2 * j + 1];
                        values[i * half + j] = (float)((double)(relu && !(gate > 0) ? 0 : gate) * (double)up);
                    }
                call.gate = split ? BSM_GATE_SPLIT : BSM_GATE_INTERLEAVED;
                call.activation = relu ? BSM_ACT_RELU : BSM_ACT_NONE;
                for (int f = 0; f < 7; f++)
                    for (int threads = 1; threads <= 3; threads += 2) {
                        CHECK(t, bsm_context_set_threads(context, threads) == BSM_OK);
                        const bool block = bsm_format_get((int)formats[f])->block != 0;
                        const struct output o = { .shape = { .format = formats[f],
                                                             .rows = m,
                                                             .columns = half,
                                                             .layout =
                                                                 layouts[block ? (f + split + relu) % LAYOUTS : 0],
                                                             .extra_pitch = 64 * (threads & 2) } };
                        check_output(t, context, &call, values, &o);
                    }
            }
        free(all), free(values);
        source_free(&s);
    }
    bsm_context_destroy(context);
}

static void recipes_that_do_not_fit(struct test *t)
{
    static const struct { bsm_format format; bsm_recipe recipe; bool no_saturate, fits; } cases[] = {
        { BSM_FORMAT_FP32, BSM_RECIPE_FLOOR, false, false }, { BSM_FORMAT_E4M3, BSM_RECIPE_NEAREST, false, false },
        { BSM_MXFP4, BSM_RECIPE_NEAREST, false, false },     { BSM_NVFP4, BSM_RECIPE_RCEIL, false, false },
        { BSM_NVFP4, BSM_RECIPE_FLOOR, false, false },       { BSM_MXFP8_E4M3, BSM_RECIPE_DEFAULT, true, false },
        { BSM_FORMAT_BF16, BSM_RECIPE_DEFAULT, true, false }, { BSM_FORMAT_E5M2, BSM_RECIPE_DEFAULT, true, true },
        { BSM_NVFP4, BSM_RECIPE_NEAREST, false, true },      { BSM_MXINT8, BSM_RECIPE_EVEN, false, true },
        { BSM_MXINT8, BSM_RECIPE_COUNT, false, false },
    };
    bsm_context *context = make_context(t);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct source s;
        source_make(t, &s, 2, 40, false);
        struct operand d = operand_make(&(struct shape){ .format = cases[i].format, .rows = 2, .columns = 40 }, 0xee);
        bsm_matmul call = source_call(&s, &d.m);
        call.d_recipe = cases[i].recipe, call.d_no_saturate = cases[i].no_saturate;
        operand_freeze(&d);
        const bsm_status status = bsm_multiply(context, &call);
        const char *field = cases[i].no_saturate ? "d_no_saturate" : "d_recipe";
        if (cases[i].fits) CHECK(t, status == BSM_OK);
        else if (status != BSM_EINVAL || strstr(bsm_last_error(), field) == NULL)
            FAIL(t, "case %zu: status %d, %s", i, (int)status, bsm_last_error());
        if (!cases[i].fits) operand_check_same(t, &d, "d");
        operand_free(&d);
        source_free(&s);
    }
    bsm_context_destroy(context);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        TEST(block_formats), TEST(gguf_and_every_remainder), TEST(unscaled_formats),
        TEST(rounded_once),  TEST(gated_across_tiles),       TEST(recipes_that_do_not_fit),
    };
    return TEST_MAIN(argc, argv, cases);
}
