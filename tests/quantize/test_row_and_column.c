/* Rows and the transposed copy in one pass: byte for byte what two calls give. */
#include "blockscale.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>

enum { MOST = 1 << 18, GUARD = 0x5a };

struct side { bsm_matrix matrix; float tensor_scale; uint8_t *data, *scales; int64_t data_bytes, scale_bytes; };

static struct side make_side(struct test *t, bsm_format format, bsm_packing packing, bsm_layout layout, int64_t rows,
                             int64_t columns, int64_t batch, bool scaled)
{
    struct side s = { .tensor_scale = 1, .data = malloc(MOST), .scales = malloc(MOST) };
    if (s.data == NULL || s.scales == NULL) abort();
    memset(s.data, GUARD, MOST);
    memset(s.scales, GUARD, MOST);
    s.matrix = (bsm_matrix){ .struct_size = sizeof s.matrix, .format = format, .packing = packing, .rows = rows,
                             .columns = columns,
                             .data = s.data, .batch = batch, .scale_layout = { .kind = layout } };
    if (bsm_format_get((int)format)->scale != BSM_UNSCALED)
        s.matrix.scales = packing == BSM_PACKING_GGUF ? s.data : s.scales;
    CHECK(t, bsm_matrix_data_bytes(&s.matrix, &s.data_bytes) == BSM_OK
                 && bsm_matrix_scale_bytes(&s.matrix, &s.scale_bytes) == BSM_OK);
    CHECK(t, s.data_bytes < MOST && s.scale_bytes < MOST);
    (void)scaled;
    return s;
}

static void free_side(struct side *s)
{
    free(s->data);
    free(s->scales);
}

static void compare(struct test *t, const struct side *got, const struct side *want)
{
    CHECK(t, memcmp(got->data, want->data, MOST) == 0);           /* the bytes behind the last code too */
    CHECK(t, memcmp(got->scales, want->scales, MOST) == 0);
    CHECK(t, memcmp(&got->tensor_scale, &want->tensor_scale, sizeof(float)) == 0);
}

struct form { bsm_format format; bsm_packing packing; bsm_layout layout; };

static void one(struct test *t, bsm_context *context, struct form a, struct form b, int64_t rows, int64_t columns,
                int64_t batch, bsm_quantize_options options, float *x, bool strided)
{
    const bsm_real_matrix source = { .struct_size = sizeof source, .rows = rows, .columns = columns, .data = x,
                                     .batch = batch,
                                     .batch_stride = rows * columns, .row_stride = strided ? 1 : columns,
                                     .column_stride = strided ? rows : 1 };
    bsm_real_matrix turned = source;
    struct side sides[4];
    const bool scaled = options.tensor_scale == BSM_TENSOR_SCALE_COMPUTED;
    for (int i = 0; i < 4; i++) {
        const struct form f = i % 2 == 0 ? a : b;
        sides[i] = make_side(t, f.format, f.packing, f.layout, i % 2 == 0 ? rows : columns, i % 2 == 0 ? columns : rows,
                             batch, scaled);
        if (scaled) sides[i].matrix.tensor_scale = &sides[i].tensor_scale;
    }
    options.struct_size = sizeof options;
    turned.rows = columns, turned.columns = rows;
    turned.row_stride = source.column_stride, turned.column_stride = source.row_stride;
    CHECK(t, bsm_quantize(context, &source, &options, &sides[0].matrix, NULL) == BSM_OK);
    CHECK(t, bsm_quantize(context, &turned, &options, &sides[1].matrix, NULL) == BSM_OK);
    CHECK(t, bsm_quantize_both(context, &source, &options, &sides[2].matrix, &sides[3].matrix) == BSM_OK);
    compare(t, &sides[2], &sides[0]);
    compare(t, &sides[3], &sides[1]);
    for (int i = 0; i < 4; i++) free_side(&sides[i]);
}

static void fill(struct test *t, float *x, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        x[i] = (float)(rnd_below(t, 2001) - 1000) * (rnd_below(t, 7) == 0 ? 0x1p-12f : 0x1p-9f);
}

static void the_bits_of_two_calls(struct test *t)
{
    static const struct form forms[] = {
        { BSM_MXFP4, BSM_PACKING_DEFAULT, BSM_LAYOUT_LINEAR },     { BSM_NVFP4, BSM_PACKING_DEFAULT, BSM_LAYOUT_128X4 },
        { BSM_MXFP8_E4M3, BSM_PACKING_DEFAULT, BSM_LAYOUT_128X4 },
          { BSM_MXFP6_E2M3, BSM_PACKING_DEFAULT, BSM_LAYOUT_LINEAR },
        { BSM_MXFP4, BSM_PACKING_GGUF, BSM_LAYOUT_GGUF_MXFP4 },
          { BSM_NVFP4, BSM_PACKING_GGUF, BSM_LAYOUT_GGUF_NVFP4 },
        { BSM_MXINT8, BSM_PACKING_DEFAULT, BSM_LAYOUT_CDNA4_32 },
          { BSM_FORMAT_E4M3, BSM_PACKING_DEFAULT, BSM_LAYOUT_LINEAR },
        { BSM_FORMAT_BF16, BSM_PACKING_DEFAULT, BSM_LAYOUT_LINEAR },
    };
    static const int64_t shapes[][3] = { { 1, 1, 1 },    { 64, 128, 1 }, { 33, 130, 2 }, { 127, 65, 1 },
                                         { 200, 17, 3 }, { 0, 5, 1 },    { 65, 257, 1 } };
    enum { FORMS = sizeof forms / sizeof forms[0] };
    float *x = malloc(MOST * sizeof *x);
    CHECK_OR_RETURN(t, x != NULL);
    fill(t, x, MOST);
    for (int threads = 1; threads <= 3; threads += 2) {
        const bsm_context_options with = { .struct_size = sizeof with, .threads = threads };
        bsm_context *context;
        CHECK_OR_RETURN(t, bsm_context_create(&with, &context) == BSM_OK);
        for (int i = 0; i < FORMS; i++)
            for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
                const struct form a = forms[i], b = forms[(i + (int)s) % FORMS];
                const bsm_quantize_options stochastic = { .rounding = BSM_ROUND_STOCHASTIC, .seed = 7 };
                one(t, context, a, b, shapes[s][0], shapes[s][1], shapes[s][2],
                    s % 2 == 0 ? stochastic : (bsm_quantize_options){ 0 }, x, s % 3 == 1);
            }
        one(t, context, forms[1], forms[5], 100, 90, 1,
            (bsm_quantize_options){ .tensor_scale = BSM_TENSOR_SCALE_COMPUTED }, x, false);
        one(t, context, forms[1], forms[1], 100, 90, 1,
            (bsm_quantize_options){ .recipe = BSM_RECIPE_FOUR_OVER_SIX,
                                    .tensor_scale = BSM_TENSOR_SCALE_COMPUTED }, x, true);
        one(t, context, forms[0], forms[0], 100, 90, 1, (bsm_quantize_options){ .preset = BSM_PRESET_MODELOPT }, x,
            false);
        bsm_context_destroy(context);
    }
    free(x);
}

static void refused(struct test *t)
{
    bsm_context *context;
    float x[64 * 32] = { 1 };
    const bsm_real_matrix source = { .struct_size = sizeof source, .rows = 64, .columns = 32, .data = x,
                                     .row_stride = 32, .column_stride = 1 };
    CHECK_OR_RETURN(t, bsm_context_create(NULL, &context) == BSM_OK);
    struct side rows = make_side(t, BSM_MXFP4, BSM_PACKING_DEFAULT, BSM_LAYOUT_LINEAR, 64, 32, 1, false);
    struct side columns = make_side(t, BSM_MXFP4, BSM_PACKING_DEFAULT, BSM_LAYOUT_LINEAR, 32, 64, 1, false);
    bsm_quantize_options squares = { .struct_size = sizeof squares, .block_rows = 32 };
    /* its shape */
    CHECK(t, bsm_quantize_both(context, &source, NULL, &rows.matrix, &rows.matrix) == BSM_EINVAL);
    CHECK(t, bsm_quantize_both(context, &source, &squares, &rows.matrix, &columns.matrix) == BSM_EUNSUPPORTED);
    CHECK(t, bsm_quantize_both(NULL, &source, NULL, &rows.matrix, &columns.matrix) == BSM_EINVAL);
    CHECK(t, bsm_quantize_both(context, NULL, NULL, &rows.matrix, &columns.matrix) == BSM_EINVAL);
    columns.matrix.data = rows.data + 8;
    CHECK(t, bsm_quantize_both(context, &source, NULL, &rows.matrix, &columns.matrix) == BSM_EINVAL);
    CHECK(t, strstr(bsm_last_error(), "columns->data") != NULL);
    columns.matrix.data = columns.data, columns.matrix.scales = x;
    CHECK(t, bsm_quantize_both(context, &source, NULL, &rows.matrix, &columns.matrix) == BSM_EINVAL);
    for (int i = 0; i < MOST; i++)
        if (rows.data[i] != GUARD || columns.data[i] != GUARD) FAIL(t, "byte %d was written", i);
    free_side(&rows);
    free_side(&columns);
    bsm_context_destroy(context);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(the_bits_of_two_calls), TEST(refused) };
    return TEST_MAIN(argc, argv, cases);
}
