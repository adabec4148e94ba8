/* bsmi_quantize and bsmi_amax against bsm_quantize: the same bytes, for every format, recipe and option. */
#include "cuda/harness/device.h"

#include "core/core.h"
#include "cuda/params/policies.h"

#include <math.h>
#include <stdlib.h>

/* Real numbers as a source: columns beside one another unless column_stride says otherwise. */
struct source { bsm_real_matrix host; struct bsmi_reals resolved; struct bsmi_device_reals device; size_t bytes; };

static const size_t sizes[] = { [BSM_REAL_FP32] = 4, [BSM_REAL_FP16] = 2, [BSM_REAL_BF16] = 2 };

static void set(struct source *s, int64_t index, double value)
{
    if (s->host.type == BSM_REAL_FP32) ((float *)s->host.data)[index] = (float)value;
    else
        ((uint16_t *)s->host.data)[index] = (uint16_t)bsm_element_encode(
            s->host.type == BSM_REAL_BF16 ? BSM_BF16 : BSM_FP16, value, BSM_ROUND_NEAREST_EVEN, false, 0);
}

/* What the numbers are like. */
enum kind { NORMAL, TIES, WIDE, BITS, KIND_COUNT };

static double number_of(struct test *t, enum kind kind, double *row_scale)
{
    switch (kind) {
    case TIES: return (double)rnd_between(t, -97, 97) / 16 * *row_scale;         /* middles of many codes, powers of
                                                                                    two, zeros */
    case WIDE: return rnd_normal(t) * ldexp(1, (int)rnd_between(t, -40, 15)) * (rnd_below(t, 9) == 0 ? 0 : 1);
    default: return rnd_normal(t) * *row_scale;
    }
}

static void source_make(struct test *t, bsm_real type, int64_t rows, int64_t columns, int64_t batch,
                        int64_t column_stride, enum kind kind, bool specials, struct source *s)
{
    const int64_t row_stride =
        column_stride == 1 ? bsmi_round_up(columns, 8) + 8 * rnd_below(t, 2) + (rnd_below(t, 4) == 0) : 1;
    const int64_t stride = column_stride == 1 ? row_stride * rows : columns * rows;
    s->bytes = (size_t)(stride * batch + 8) * sizes[type];
    s->host = (bsm_real_matrix){ .struct_size = sizeof s->host,
                                 .type = type,
                                 .rows = rows,
                                 .columns = columns,
                                 .data = calloc(1, s->bytes),
                                 .row_stride = row_stride,
                                 .column_stride = column_stride == 1 ? 1 : rows,
                                 .batch = batch,
                                 .batch_stride = stride };
    for (int64_t b = 0; b < batch; b++)
        for (int64_t r = 0; r < rows; r++) {
            double row_scale = ldexp(1, (int)rnd_between(t, -6, 6));
            for (int64_t k = 0; k < columns; k++) {
                const int64_t index = b * stride + r * s->host.row_stride + k * s->host.column_stride;
                if (k % 32 == 0 && rnd_below(t, 5) == 0) row_scale = ldexp(1, (int)rnd_between(t, -150, 126));
                set(s, index, number_of(t, kind, &row_scale));
                if (kind == BITS)
                    for (size_t i = 0; i < sizes[type]; i++)
                        ((unsigned char *)s->host.data)[(size_t)index * sizes[type] + i] = (unsigned char)rnd(t);
                if (specials && rnd_below(t, 200) == 0)
                    set(s, index,
                        rnd_below(t, 2) == 0   ? (double)NAN
                        : rnd_below(t, 2) == 0 ? (double)INFINITY
                                               : -(double)INFINITY);
            }
        }
    CHECK(t, bsmi_reals_resolve("source", &s->host, &s->resolved) == BSM_OK);
    s->device = bsmi_device_reals_of(&s->resolved);
    s->device.data = device_copy(t, s->host.data, s->bytes, rnd_below(t, 3) == 0 ? sizes[type] : 0);
}

static int32_t resolved_recipe(const struct bsmi_matrix *m, bsm_recipe recipe)
{
    if (recipe != BSM_RECIPE_DEFAULT) return (int32_t)recipe;
    return m->scale == BSM_E8M0 ? BSM_RECIPE_RCEIL : m->scale == BSM_UE4M3 ? BSM_RECIPE_NEAREST : BSM_RECIPE_DEFAULT;
}

static double largest_of(const struct bsmi_matrix *m, bsm_recipe recipe)
{
    const double element = bsm_element_get((int)m->element)->max_value;
    return m->scale == BSM_UE4M3 ? element * (recipe == BSM_RECIPE_FOUR_OVER_SIX ? 256 : 448) : element;
}

static bool has_policies(const bsm_quantize_options *o)
{
    return o->clamp_low > 0 || o->clamp_high > 0 || o->smallest_scale > 0 || o->block_rows > 1
           || o->recipe == BSM_RECIPE_FOUR_OVER_SIX;
}

static void run(struct test *t, const struct twin *twin, const struct source *s, const bsm_quantize_options *o)
{
    const struct bsmi_matrix *m = &twin->resolved;
    union { const float *constant; uint32_t *word; } scale = { twin->device.tensor_scale };
    const bool computed = o->tensor_scale == BSM_TENSOR_SCALE_COMPUTED;
    if (computed) {
        const struct bsmi_amax_parameters amax = { s->device, scale.word };
        device_write_word(t, scale.word, BSMI_NO_AMAX);
        device_launch(t, "bsmi_amax", 2, BSMI_AMAX_THREADS, &amax);
    }
    const struct bsmi_quantize_parameters p = {
        .source = s->device, .destination = twin->device, .recipe = resolved_recipe(m, o->recipe),
        .rounding = (int32_t)o->rounding,
        .nonfinite = (int32_t)o->nonfinite, .no_saturate = o->no_saturate, .seed = o->seed,
        .computed = computed ? scale.word : NULL, .largest = largest_of(m, o->recipe), .backward = computed,
    };
    if (has_policies(o)) {
        const struct bsmi_policies_parameters policies = { p, { o->clamp_low, o->clamp_high }, o->smallest_scale,
                                                           o->block_rows > 1 ? (int32_t)o->block_rows : 1 };
        device_launch(t, "bsmi_quantize_policies", 2, BSMI_POLICIES_THREADS, &policies);
    } else {
        device_launch(t, "bsmi_quantize", 3, BSMI_QUANTIZE_THREADS, &p);
    }
    const struct bsmi_clear_padding_parameters clear = { twin->device.scales, twin->device.layout, m->batch,
                                                         m->scale_batch_bytes };
    if (m->block != 0) device_launch(t, "bsmi_clear_padding", 1, BSMI_CONVERT_THREADS, &clear);
}

static int compared; /* cases that the CPU did not refuse */

static void case_of(struct test *t, struct twin_wish wish, bsm_real type, int64_t column_stride, enum kind kind,
                    bool specials, bsm_quantize_options o)
{
    struct twin twin;
    struct source s;
    bsm_context *context = NULL;
    char what[320];
    if (!twin_make(t, &wish, &twin)) return;
    CHECK(t, bsm_context_create(NULL, &context) == BSM_OK);
    source_make(t, type, wish.rows, wish.columns, twin.resolved.batch, column_stride, kind, specials, &s);
    twin_upload(t, &wish, &twin);
    o.struct_size = sizeof o;
    if (bsm_quantize(context, &s.host, &o, &twin.host, NULL) == BSM_OK) {
        snprintf(what, sizeof what, "%s <- %s stride %d kind %d recipe %d rounding %d nonfinite %d computed %d",
                 wish_text(&wish), bsm_real_name((int)type), (int)s.host.column_stride, (int)kind, (int)o.recipe,
                 (int)o.rounding, (int)o.nonfinite, (int)o.tensor_scale);
        compared++;
        run(t, &twin, &s, &o);
        twin_equal(t, &twin, what);
        float scale = 0;
        if (twin.device.tensor_scale != NULL) {
            device_read(t, &scale, twin.device.tensor_scale, sizeof scale);
            if (scale != twin.tensor_scale)
                FAIL(t, "%s: tensor scale %a, not %a", what, (double)scale, (double)twin.tensor_scale);
        }
    }
    device_free_all(t);
    free(s.host.data);
    twin_free(&twin);
    bsm_context_destroy(context);
}

static bsm_scale_layout layout_of(int kind)
{
    if (kind == NO_LAYOUT) return (bsm_scale_layout){ .kind = BSM_LAYOUT_LINEAR, .pitch = BSM_PITCH_PADDED_16 };
    bsm_scale_layout layout = { .kind = (bsm_layout)kind };
    if (kind == BSM_LAYOUT_TILES) layout.tile_rows = 5, layout.tile_columns = 3;
    return layout;
}

static bsm_scale_layout gguf_of(bsm_format format)
{
    return layout_of(format == BSM_MXFP4 ? BSM_LAYOUT_GGUF_MXFP4 : BSM_LAYOUT_GGUF_NVFP4);
}

static const int64_t columns[] = { 1, 7, 31, 64, 65, 100, 192, 333 };

static void every_format_and_packing(struct test *t)
{
    if (!device_open(t)) return;
    int number = 0;
    for (int format = 1; format < BSM_FORMAT_COUNT; format++)
        for (int packing = 0; packing < BSM_PACKING_COUNT; packing++)
            for (int type = 0; type < BSM_REAL_FP64; type++, number++) {
                if (type != number / 3 % 3 && !device_is_real()) continue;
                const int bits = bsm_element_get((int)bsm_format_get(format)->element)->bits;
                if (bits < 8 && bsm_format_get(format)->block == 0) continue;         /* refused (test_gpu_contract) */
                const struct twin_wish wish = {
                    .format = (bsm_format)format,
                    .packing = (bsm_packing)packing,
                    .rows = 2 + number % 3,
                    .columns = columns[number % 8],
                    .batch = 1 + number % 2,
                    .extra_pitch = number % 5 == 0,
                    .offset = bits > 8 ? 4 * (number % 2) : number % 4,
                    .layout = packing == BSM_PACKING_GGUF ? gguf_of((bsm_format)format)
                                                          : layout_of(number % BSM_LAYOUT_GGUF_MXFP4),
                    .tensor_scale = number % 3 == 0 ? 0 : 0.37f * (float)(number % 7 + 1),
                    .use = (bsm_tensor_scale_use)(number % 2),
                };
                case_of(t, wish, (bsm_real)type, 1 + number % 4 / 3, (enum kind)(number % KIND_COUNT), number % 2 != 0,
                        (bsm_quantize_options){ 0 });
            }
}

static void every_recipe_and_option(struct test *t)
{
    static const float tensor_scales[] = { 0, 1, 0.25f, 0.0123f, 3e-30f, 7.5f };
    if (!device_open(t)) return;
    int number = 0;
    const int repeats = device_is_real() ? 8 : 1;
    for (int format = 1; format < BSM_FORMAT_BF16; format++)
        for (int recipe = 0; recipe <= BSM_RECIPE_NEAREST; recipe++)
            for (int kind = 0; kind < KIND_COUNT * repeats; kind++, number++) {
                if (kind % 2 != recipe % 2 && !device_is_real()) continue;
                const struct twin_wish wish = {
                    .format = (bsm_format)format,
                    .layout = layout_of(number % 2 ? BSM_LAYOUT_128X4 : BSM_LAYOUT_LINEAR),
                    .rows = 4 * repeats,
                    .columns = 200,
                    .batch = 1,
                    .tensor_scale = tensor_scales[number % 6],
                    .use = (bsm_tensor_scale_use)(number % 7 == 0),
                };
                const bsm_quantize_options o = {
                    .recipe = (bsm_recipe)recipe,
                    .rounding = number % 5 == 4 ? BSM_ROUND_STOCHASTIC : BSM_ROUND_NEAREST_EVEN,
                    .seed = (uint64_t)number,
                    .nonfinite = (bsm_nonfinite)(number / 2 % 2),
                    .no_saturate = format >= BSM_FORMAT_E4M3 && number % 2 != 0,
                    .tensor_scale =
                        wish.tensor_scale != 0 && number % 3 == 0 && (format == BSM_NVFP4 || format >= BSM_FORMAT_E4M3)
                            ? BSM_TENSOR_SCALE_COMPUTED
                            : BSM_TENSOR_SCALE_GIVEN,
                };
                case_of(t, wish, (bsm_real)(number % 3), 1, (enum kind)(kind % KIND_COUNT), number % 4 == 3, o);
            }
}

/* Clamps, a smallest scale, squares and four over six, with each other and with everything else that changes a
 * block. */
static void policies(struct test *t)
{
    static const float lows[] = { 0, 0, 1e-4f, 3 }, highs[] = { 0, 5, 0, 7.5f };
    static const bsm_recipe of_e8m0[] = { BSM_RECIPE_DEFAULT, BSM_RECIPE_FLOOR, BSM_RECIPE_EVEN, BSM_RECIPE_CEIL };
    static const int64_t row_counts[] = { 1, 16, 33, 70 };
    if (!device_open(t)) return;
    int number = 0;
    compared = 0;
    for (int format = 1; format < BSM_FORMAT_BF16; format++) {
        const bsm_format_info *info = bsm_format_get(format);
        if (info->scale == BSM_UNSCALED) continue;
        for (int packing = 0; packing < BSM_PACKING_COUNT; packing++)
            for (int way = 0; way < 4; way++, number++) {
                const bool squares = way % 2 != 0, nvfp4 = info->scale == BSM_UE4M3;
                const struct twin_wish wish = {
                    .format = (bsm_format)format,
                    .packing = (bsm_packing)packing,
                    .rows = row_counts[squares ? number / 2 % 4 : number % 2],
                    .columns = columns[number % 8],
                    .batch = 1 + number % 2,
                    .extra_pitch = number % 5 == 0,
                    .layout = packing == BSM_PACKING_GGUF ? gguf_of((bsm_format)format)
                                                          : layout_of(number % BSM_LAYOUT_GGUF_MXFP4),
                    .tensor_scale = number % 3 == 0 ? 0 : 0.37f * (float)(number % 7 + 1),
                    .use = (bsm_tensor_scale_use)(number % 2),
                };
                const bsm_quantize_options o = {
                    .recipe = nvfp4 ? (squares ? BSM_RECIPE_NEAREST : BSM_RECIPE_FOUR_OVER_SIX) : of_e8m0[number % 4],
                    .rounding = number % 5 == 4 ? BSM_ROUND_STOCHASTIC : BSM_ROUND_NEAREST_EVEN,
                    .seed = (uint64_t)number,
                    .nonfinite = (bsm_nonfinite)(number / 2 % 2),
                    .tensor_scale = wish.tensor_scale != 0 && nvfp4 && number % 2 != 0 ? BSM_TENSOR_SCALE_COMPUTED
                                                                                       : BSM_TENSOR_SCALE_GIVEN,
                    .clamp_low = lows[number % 4],
                    .clamp_high = highs[number % 4],
                    .smallest_scale = (uint8_t)(number % 3 == 1 ? nvfp4 ? 8 : 120 : 0),
                    .block_rows = squares ? info->block : 0,
                };
                case_of(t, wish, (bsm_real)(number % 3), 1 + number % 4 / 3, (enum kind)(number % KIND_COUNT),
                        number % 4 == 3, o);
            }
    }
    CHECK(t, compared >= 100);
}

/* The fast paths with many numbers: ties and near ties of every element, from each type. */
static void fast_paths(struct test *t)
{
    static const bsm_format formats[] = { BSM_MXFP8_E4M3, BSM_MXFP8_E5M2,    BSM_MXFP6_E3M2, BSM_MXFP6_E2M3,
                                          BSM_MXFP4,      BSM_MXFP4_BLOCK16, BSM_MXINT8,     BSM_NVFP4 };
    if (!device_open(t)) return;
    for (int i = 0; i < 8; i++)
        for (int type = 0; type < BSM_REAL_FP64; type++)
            for (int kind = 0; kind < KIND_COUNT; kind++) {
                /* The ring of a warp is two rows of bf16: four go round it twice. */
                const int64_t rows = device_is_real() ? 4096 : type == BSM_REAL_BF16 ? 48 : 24;
                /* Simulated, half of them; blocks of 16 in full, since a third of the sources are not aligned and go
                 * another way. */
                const bool sixteen = formats[i] == BSM_NVFP4 || formats[i] == BSM_MXFP4_BLOCK16;
                if ((i + type + kind) % 2 != 0 && !sixteen && !device_is_real()) continue;
                const struct twin_wish wish = { .format = formats[i],
                                                .rows = rows,
                                                .columns = 512,
                                                .batch = 1,
                                                .tensor_scale = formats[i] != BSM_NVFP4 || kind % 2 != 0 ? 0
                                                                : kind == 0                              ? 0.013579f
                                                                            : 5.0f / 2688 };
                case_of(t, wish, (bsm_real)type, 1, (enum kind)kind, false, (bsm_quantize_options){ 0 });
            }
}

/* Every bf16 number in a block of its own beside the largest of its binade, and every one as the only number. */
static void every_bf16(struct test *t)
{
    static const bsm_format formats[] = { BSM_MXFP8_E4M3, BSM_MXFP4, BSM_NVFP4, BSM_MXINT8 };
    if (!device_open(t)) return;
    for (int i = 0; i < 4; i++) {
        const struct twin_wish wish = { .format = formats[i], .rows = 64, .columns = 1024, .batch = 1 };
        struct twin twin;
        bsm_context *context = NULL;
        CHECK_OR_RETURN(t, twin_make(t, &wish, &twin) && bsm_context_create(NULL, &context) == BSM_OK);
        struct source s = { .bytes = 64 * 1024 * 2 };
        s.host = (bsm_real_matrix){ .struct_size = sizeof s.host,
                                    .type = BSM_REAL_BF16,
                                    .rows = 64,
                                    .columns = 1024,
                                    .data = malloc(s.bytes),
                                    .row_stride = 1024,
                                    .column_stride = 1 };
        for (int k = 0; k < 65536; k++) ((uint16_t *)s.host.data)[k] = (uint16_t)k;
        CHECK(t, bsmi_reals_resolve("source", &s.host, &s.resolved) == BSM_OK);
        s.device = bsmi_device_reals_of(&s.resolved);
        s.device.data = device_copy(t, s.host.data, s.bytes, 0);
        twin_upload(t, &wish, &twin);
        const bsm_quantize_options o = { .struct_size = sizeof o,
                                         .recipe = i == 1 ? BSM_RECIPE_FLOOR : BSM_RECIPE_DEFAULT };
        CHECK(t, bsm_quantize(context, &s.host, &o, &twin.host, NULL) == BSM_OK);
        run(t, &twin, &s, &o);
        twin_equal(t, &twin, wish_text(&wish));
        device_free_all(t);
        free(s.host.data);
        twin_free(&twin);
        bsm_context_destroy(context);
    }
}

/* Row r: blocks whose largest number has significand 37 r % 128, beside numbers of every significand in the five
 * binades below it and the largest's own; odd ones negative. */
static void fill_pairs(uint16_t *codes, int64_t rows, int64_t columns, int block)
{
    for (int64_t r = 0; r < rows; r++) {
        const int exponent = 127 + (int)(r / 128) - 8, amax = exponent << 7 | (int)(r * 37 % 128);
        for (int64_t k = 0; k < columns; k++) {
            const int64_t number = k / block * (block - 1) + k % block - 1;
            const int code = k % block == 0 ? amax : (exponent - (int)(number / 128 % 6)) << 7 | (int)(number % 128);
            codes[r * columns + k] = (uint16_t)((code > amax ? amax : code) | (k % 2 << 15));
        }
    }
}

/* Every significand beside every largest one: with tensor scales that are powers of two, short, and any; of the last
 * two, one has a quotient within 2^-25 of the middle of two codes. */
static void every_pair(struct test *t)
{
    static const struct {
        bsm_format format;
        float tensor_scale;
    } ways[] = {
        { BSM_MXFP4, 0 },        { BSM_MXFP8_E4M3, 0 },   { BSM_MXFP8_E5M2, 0 },    { BSM_NVFP4, 0 },
        { BSM_NVFP4, 0.125f },   { BSM_NVFP4, 0.75f },    { BSM_NVFP4, 0.013579f }, { BSM_NVFP4, 129.0f / 105 },
        { BSM_NVFP4, 0x1.8p9f }, { BSM_NVFP4, 3.14159f },
    };
    if (!device_open(t)) return;
    const int64_t rows = device_is_real() ? 16 * 128 : 11, columns = 896;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        const struct twin_wish wish = {
            .format = ways[i].format, .rows = rows, .columns = columns, .batch = 1, .tensor_scale = ways[i].tensor_scale
        };
        struct twin twin;
        bsm_context *context = NULL;
        CHECK_OR_RETURN(t, twin_make(t, &wish, &twin) && bsm_context_create(NULL, &context) == BSM_OK);
        struct source s = { .bytes = (size_t)(rows * columns) * 2 };
        s.host = (bsm_real_matrix){ .struct_size = sizeof s.host,
                                    .type = BSM_REAL_BF16,
                                    .rows = rows,
                                    .columns = columns,
                                    .data = malloc(s.bytes),
                                    .row_stride = columns,
                                    .column_stride = 1 };
        fill_pairs(s.host.data, rows, columns, twin.resolved.block);
        CHECK(t, bsmi_reals_resolve("source", &s.host, &s.resolved) == BSM_OK);
        s.device = bsmi_device_reals_of(&s.resolved);
        s.device.data = device_copy(t, s.host.data, s.bytes, 0);
        twin_upload(t, &wish, &twin);
        const bsm_quantize_options o = { .struct_size = sizeof o };
        CHECK(t, bsm_quantize(context, &s.host, &o, &twin.host, NULL) == BSM_OK);
        run(t, &twin, &s, &o);
        twin_equal(t, &twin, wish_text(&wish));
        device_free_all(t);
        free(s.host.data);
        twin_free(&twin);
        bsm_context_destroy(context);
    }
}

/* The tensor scales that amaxes of all significands give, where numbers with the amax's own significand lie within
 * 2^-24 of the middles of codes, and so do blocks whose largest number has it: those and their neighbours, beside a
 * largest number of any kind. */
static void fill_beside_middles(uint16_t *codes, int amax_significand)
{
    for (int r = 0; r < 24; r++)
        for (int k = 0; k < 64; k++) {
            const int down = r < 16 ? 0 : (r - 4) << 7, number = k / 16 * 15 + k % 16 - 1; /* 2^-16 of the amax: scale
                                                                                              code 3.5 */
            const int largest = 127 << 7 | (r < 16 ? r * 8 + 3 : amax_significand);
            const int beside = ((126 - number / 3 % 8) << 7 | amax_significand) + number % 3 - 1;
            codes[r * 64 + k] = (uint16_t)(((k % 16 == 0 ? largest : beside) - down) | (k % 2 << 15));
        }
}

static void every_scale_of_an_amax(struct test *t)
{
    if (!device_open(t)) return;
    for (int i = 0; i < 256; i++) {
        const bool divides = i % 2 != 0;
        const int significand = device_is_real() ? i / 2 : i / 2 * 37 % 128;
        const double amax = (1 + significand / 128.0) * (i % 3 == 0 ? 1 : 3.5);
        if (!device_is_real() && i >= 40) break;
        const struct twin_wish wish = { .format = BSM_NVFP4, .rows = 24, .columns = 64, .batch = 1,
                                        .tensor_scale = (float)(divides ? 2688 / amax : amax / 2688),
                                        .use = divides ? BSM_TENSOR_SCALE_DIVIDES : BSM_TENSOR_SCALE_MULTIPLIES };
        struct twin twin;
        bsm_context *context = NULL;
        uint16_t codes[24 * 64];
        CHECK_OR_RETURN(t, twin_make(t, &wish, &twin) && bsm_context_create(NULL, &context) == BSM_OK);
        struct source s = { .bytes = sizeof codes };
        s.host = (bsm_real_matrix){ .struct_size = sizeof s.host, .type = BSM_REAL_BF16, .rows = 24, .columns = 64,
                                    .data = codes,
                                    .row_stride = 64, .column_stride = 1 };
        fill_beside_middles(codes, (int)(bsmi_float_bits((float)amax) >> 16 & 127));
        CHECK(t, bsmi_reals_resolve("source", &s.host, &s.resolved) == BSM_OK);
        s.device = bsmi_device_reals_of(&s.resolved);
        s.device.data = device_copy(t, codes, s.bytes, 0);
        twin_upload(t, &wish, &twin);
        const bsm_quantize_options o = { .struct_size = sizeof o };
        CHECK(t, bsm_quantize(context, &s.host, &o, &twin.host, NULL) == BSM_OK);
        run(t, &twin, &s, &o);
        twin_equal(t, &twin, wish_text(&wish));
        device_free_all(t);
        twin_free(&twin);
        bsm_context_destroy(context);
    }
}

/* Blocks that are done again for their NaN, infinities or scales, in rows whose last block is short: no octet is stored
 * twice. */
static void blocks_done_again_beside_a_short_one(struct test *t)
{
    static const bsm_format formats[] = { BSM_MXFP8_E4M3, BSM_MXFP8_E5M2, BSM_MXFP4, BSM_NVFP4 };
    if (!device_open(t)) return;
    for (int i = 0; i < 8; i++) {
        const struct twin_wish wish = { .format = formats[i % 4], .rows = 24, .columns = i < 4 ? 72 : 136, .batch = 1,
                                        .layout = layout_of(BSM_LAYOUT_LINEAR) };
        case_of(t, wish, BSM_REAL_BF16, 1, (enum kind)(i % KIND_COUNT), true, (bsm_quantize_options){ 0 });
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(every_format_and_packing), TEST(every_recipe_and_option),
                                              TEST(policies), TEST(fast_paths), TEST(every_bf16), TEST(every_pair),
                                              TEST(every_scale_of_an_amax),
                                              TEST(blocks_done_again_beside_a_short_one) };
    return TEST_MAIN(argc, argv, cases);
}
