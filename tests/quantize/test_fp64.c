/* Sources of doubles: rounded once, from all of their bits.  Against the oracle, beside midpoints and thresholds. */
#include "blockscale.h"
#include "oracle_block.h"
#include "test.h"

#include "../format/oracle.h"

#include <float.h>
#include <stdlib.h>

enum { ROWS = 3, COLUMNS = 75, COUNT = ROWS * COLUMNS, KINDS = 6 };

static const double largest_values[] = {
    [BSM_E4M3] = 448, [BSM_E5M2] = 57344, [BSM_E3M2] = 28, [BSM_E2M3] = 7.5, [BSM_E2M1] = 6, [BSM_INT8] = 1.984375
};

static bsm_context *new_context(void)
{
    bsm_context *context = NULL;
    if (bsm_context_create(NULL, &context) != BSM_OK) abort();
    return context;
}

/* A few doubles above or below, or none. */
static double nudged(struct test *t, double x)
{
    const int64_t steps = rnd_below(t, 5) - 2;
    for (int64_t i = 0; i < llabs(steps); i++) x = nextafter(x, steps > 0 ? DBL_MAX : -DBL_MAX);
    return x;
}

/* A midpoint of two neighbouring codes of an element. */
static double midpoint(struct test *t, bsm_element element)
{
    const uint32_t code = (uint32_t)rnd_below(t, oracle_elements[element].largest);
    return (oracle_decode(element, code) + oracle_decode(element, code + 1)) / 2;
}

/* unit: what an element's 1 is worth in the source; nearly, where a tensor scale divides. */
static double number(struct test *t, int kind, bsm_element element, double unit, bool first)
{
    const double sign = rnd_below(t, 2) == 0 ? 1 : -1;
    switch (kind) {
    case 0:
        return rnd_normal(t);
    case 1:
        return sign * nudged(t, (first ? largest_values[element] : midpoint(t, element)) * unit);
    case 2:
        return sign * ldexp(1 + (double)rnd_below(t, 1000) / 999, (int)rnd_between(t, -1074, 1022));
    case 3:
        return (double)(float)rnd_normal(t);
    case 4:
        return sign * nudged(t, ldexp(rnd_below(t, 2) == 0 ? 1 : 1.5, (int)rnd_between(t, -140, 130)));
    default:
        return rnd_below(t, 9) == 0 ? sign * INFINITY : rnd_below(t, 11) == 0 ? (double)NAN : rnd_normal(t);
    }
}

static void fill(struct test *t, double *x, int kind, bsm_element element, int block, double factor)
{
    for (int i = 0; i < COUNT; i++) x[i] = 0;
    for (int r = 0; r < ROWS; r++)
        for (int k = 0; k < COLUMNS; k += block) {
            const double unit = ldexp(factor, (int)rnd_between(t, -6, 3));
            for (int c = k; c < COLUMNS && c < k + block; c++)
                x[r * COLUMNS + c] = number(t, kind, element, unit, c == k);
        }
}

static bsm_real_matrix rows_of(bsm_real type, void *data)
{
    return (bsm_real_matrix){ .struct_size = sizeof(bsm_real_matrix),
                              .type = type,
                              .rows = ROWS,
                              .columns = COLUMNS,
                              .data = data,
                              .row_stride = COLUMNS,
                              .column_stride = 1 };
}

struct target {
    uint8_t codes[4 * COUNT], scales[COUNT];
    float tensor_scale;
    bsm_matrix matrix;
};

static void target_make(struct target *target, bsm_format format, float tensor_scale, bool divides)
{
    const bsm_format_info *info = bsm_format_get((int)format);
    memset(target, 0, sizeof *target);
    target->tensor_scale = tensor_scale;
    target->matrix =
        (bsm_matrix){ .struct_size = sizeof target->matrix,
                      .format = format,
                      .rows = ROWS,
                      .columns = COLUMNS,
                      .packing = info->bits_per_element < 8 ? BSM_PACKING_BYTES : BSM_PACKING_DEFAULT,
                      .data = target->codes,
                      .scales = info->block > 0 ? target->scales : NULL,
                      .tensor_scale = tensor_scale > 0 || tensor_scale < 0 ? &target->tensor_scale : NULL,
                      .tensor_scale_use = divides ? BSM_TENSOR_SCALE_DIVIDES : BSM_TENSOR_SCALE_MULTIPLIES };
}

/* Blocks ------------------------------------------------------------------------------------------------------ */

/* Gives how many blocks are not those of the numbers rounded to fp32: where that is 0 the test shows nothing. */
static int64_t compare_blocks(struct test *t, const struct oracle_setup *setup, const double *x,
                              const struct target *got)
{
    const int block = bsm_format_get((int)setup->format)->block, across = (COLUMNS + block - 1) / block;
    int64_t differ = 0;
    for (int r = 0; r < ROWS; r++)
        for (int k = 0; k < COLUMNS; k += block) {
            const int count = COLUMNS - k < block ? COLUMNS - k : block, first = r * COLUMNS + k;
            float narrow[32];
            struct oracle_block want, rounded;
            for (int i = 0; i < count; i++) narrow[i] = (float)x[first + i];
            oracle_quantize_wide_block(setup, x + first, count, &want);
            oracle_quantize_block(setup, narrow, count, &rounded);
            const int scale = got->scales[r * across + k / block];
            if (scale != want.scale)
                FAIL(t, "%s %s, tensor scale %a %d: scale %d, want %d, of %a", bsm_format_get((int)setup->format)->name,
                     bsm_recipe_name((int)setup->recipe), (double)setup->tensor_scale, setup->divides, scale,
                     want.scale, x[first]);
            for (int i = 0; i < count; i++)
                if (got->codes[first + i] != want.codes[i])
                    FAIL(t, "%s %s, tensor scale %a %d: %a under scale %d is 0x%02x, want 0x%02x",
                         bsm_format_get((int)setup->format)->name, bsm_recipe_name((int)setup->recipe),
                         (double)setup->tensor_scale, setup->divides, x[first + i], scale, got->codes[first + i],
                         want.codes[i]);
            differ += want.scale != rounded.scale || memcmp(want.codes, rounded.codes, (size_t)count) != 0;
        }
    return differ;
}

static void blocks_are_those_of_the_oracle(struct test *t)
{
    static const struct {
        bsm_format format;
        bsm_recipe recipe;
    } rows[] = {
        { BSM_MXFP8_E4M3, BSM_RECIPE_FLOOR }, { BSM_MXFP8_E5M2, BSM_RECIPE_RCEIL },
        { BSM_MXFP6_E3M2, BSM_RECIPE_CEIL },  { BSM_MXFP6_E2M3, BSM_RECIPE_EVEN },
        { BSM_MXFP4, BSM_RECIPE_RCEIL },      { BSM_MXFP4_BLOCK16, BSM_RECIPE_FLOOR },
        { BSM_MXINT8, BSM_RECIPE_EVEN },      { BSM_NVFP4, BSM_RECIPE_NEAREST },
        { BSM_MXFP4, BSM_RECIPE_EVEN },
    };
    static const struct {
        float t;
        bool divides;
    } scales[] = { { 0, false }, { 0.1f, false }, { 0.1f, true }, { 700.3f, true }, { 0x1.fffffep-100f, false } };
    bsm_context *context = new_context();
    int64_t differ = 0;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (size_t s = 0; s < sizeof scales / sizeof scales[0]; s++)
            for (int kind = 0; kind < KINDS; kind++) {
                const bsm_format_info *info = bsm_format_get((int)rows[i].format);
                const float given = scales[s].t > 0 ? scales[s].t : 1;
                const double factor = scales[s].divides ? 1 / (double)given : (double)given;
                const struct oracle_setup setup = { rows[i].format, rows[i].recipe, (bsm_nonfinite)(kind % 2), given,
                                                    scales[s].divides };
                const bsm_quantize_options options = { .struct_size = sizeof options,
                                                       .recipe = setup.recipe,
                                                       .nonfinite = setup.nonfinite };
                double x[COUNT];
                struct target got;
                fill(t, x, kind, info->element, info->block, info->scale == BSM_UE4M3 ? factor * 1.125 : factor);
                const bsm_real_matrix source = rows_of(BSM_REAL_FP64, x);
                target_make(&got, setup.format, scales[s].t, scales[s].divides);
                CHECK(t, bsm_quantize(context, &source, &options, &got.matrix, NULL) == BSM_OK);
                differ += compare_blocks(t, &setup, x, &got);
            }
    CHECK(t, differ > 400);
    bsm_context_destroy(context);
}

/* Unscaled ------------------------------------------------------------------------------------------------------ */

static uint32_t stored(const struct target *got, int bits, int i)
{
    uint32_t code = 0;
    memcpy(&code, got->codes + i * bits / 8, (size_t)bits / 8);
    return code;
}

/* Beside a midpoint of the element over (or times) the tensor scale. */
static double unscaled_number(struct test *t, bsm_element element, double unit)
{
    const uint32_t one = element == BSM_FP32   ? 0x3f800000
                         : element == BSM_BF16 ? 0x3f80
                         : element == BSM_FP16 ? 0x3c00
                                               : 0x30;
    const uint32_t code = rnd_below(t, 4) == 0 ? (uint32_t)rnd_below(t, oracle_elements[element].largest)
                                               : one + (uint32_t)rnd_below(t, 16);
    return nudged(t, (oracle_decode(element, code) + oracle_decode(element, code + 1)) / 2 * unit);
}

static void numbers_without_blocks(struct test *t)
{
    static const bsm_format formats[] = { BSM_FORMAT_E4M3, BSM_FORMAT_E5M2, BSM_FORMAT_BF16, BSM_FORMAT_FP16,
                                          BSM_FORMAT_FP32 };
    static const struct {
        float t;
        bool divides;
    } scales[] = { { 0, false }, { 0.1f, false }, { 0.1f, true }, { 0x1.234566p20f, true } };
    bsm_context *context = new_context();
    for (size_t f = 0; f < sizeof formats / sizeof formats[0]; f++)
        for (size_t s = 0; s < sizeof scales / sizeof scales[0]; s++) {
            const bsm_format_info *info = bsm_format_get((int)formats[f]);
            const float given = scales[s].t > 0 ? scales[s].t : 1;
            double x[COUNT];
            struct target got;
            for (int i = 0; i < COUNT; i++)
                x[i] = i % 3 == 0
                           ? rnd_normal(t)
                           : unscaled_number(t, info->element, scales[s].divides ? 1 / (double)given : (double)given);
            x[0] = -1e300, x[1] = 1e-310, x[2] = -0.0;
            const bsm_real_matrix source = rows_of(BSM_REAL_FP64, x);
            target_make(&got, formats[f], scales[s].t, scales[s].divides);
            CHECK(t, bsm_quantize(context, &source, NULL, &got.matrix, NULL) == BSM_OK);
            for (int i = 0; i < COUNT; i++) {
                struct exact above = exact_of(fabs(x[i])), below = exact_of((double)given);
                if (scales[s].divides) above = exact_times(above, below), below = exact_of(1);
                const uint32_t want =
                    oracle_round(info->element, signbit(x[i]) != 0, above, below, info->bits_per_element == 8);
                const uint32_t code = stored(&got, (int)info->bits_per_element, i);
                if (code != want)
                    FAIL(t, "%s, tensor scale %a %d: %a is 0x%x, want 0x%x", info->name, (double)given,
                         scales[s].divides, x[i], code, want);
            }
        }
    bsm_context_destroy(context);
}

/* Tensor scales --------------------------------------------------------------------------------------------------- */

/* Whether numerator / denominator rounds to t, to nearest even. */
static bool rounds_to(double numerator, double denominator, float t)
{
    const double below = ((double)t + (double)nextafterf(t, 0)) / 2,
                 above = ((double)t + (double)nextafterf(t, FLT_MAX)) / 2;
    uint32_t bits;
    memcpy(&bits, &t, sizeof bits);
    const int low = exact_compare(exact_times(exact_of(below), exact_of(denominator)), exact_of(numerator));
    const int high = exact_compare(exact_of(numerator), exact_times(exact_of(above), exact_of(denominator)));
    return bits % 2 == 0 ? low <= 0 && high <= 0 : low < 0 && high < 0;
}

static void computed_tensor_scales(struct test *t)
{
    bsm_context *context = new_context();
    for (int n = 0; n < 400; n++) {
        const bool divides = n % 2 == 1, nvfp4 = n / 2 % 2 == 1;
        const double largest = nvfp4 ? 2688 : 448,
                     middle = ldexp((double)(2 * rnd_below(t, 1 << 23) + (1 << 24) + 1), (int)rnd_between(t, -60, 10));
        const bsm_quantize_options options = { .struct_size = sizeof options,
                                               .tensor_scale = BSM_TENSOR_SCALE_COMPUTED };
        double x[COUNT] = { 0 };
        struct target got;
        x[n % COUNT] = -nudged(t, divides ? largest / middle : largest * middle);
        const bsm_real_matrix source = rows_of(BSM_REAL_FP64, x);
        const double amax = fabs(x[n % COUNT]);
        target_make(&got, nvfp4 ? BSM_NVFP4 : BSM_FORMAT_E4M3, 1, divides);
        CHECK(t, bsm_quantize(context, &source, &options, &got.matrix, NULL) == BSM_OK);
        if (!rounds_to(divides ? largest : amax, divides ? amax : largest, got.tensor_scale))
            FAIL(t, "amax %a, %s: tensor scale %a", amax, divides ? "divides" : "multiplies", (double)got.tensor_scale);
    }
    static const struct {
        double amax;
        bool divides;
        float want;
    } ends[] = { { 1e300, false, FLT_MAX },
                 { 1e300, true, 0x1p-126f },
                 { 5e-324, false, 0x1p-126f },
                 { 5e-324, true, FLT_MAX },
                 { 0, true, 1 } };
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        const bsm_quantize_options options = { .struct_size = sizeof options,
                                               .tensor_scale = BSM_TENSOR_SCALE_COMPUTED };
        double x[COUNT] = { ends[i].amax };
        struct target got;
        const bsm_real_matrix source = rows_of(BSM_REAL_FP64, x);
        target_make(&got, BSM_NVFP4, 1, ends[i].divides);
        CHECK(t, bsm_quantize(context, &source, &options, &got.matrix, NULL) == BSM_OK);
        CHECK(t, memcmp(&got.tensor_scale, &ends[i].want, sizeof(float)) == 0);
    }
    bsm_context_destroy(context);
}

/* The rest of the call -------------------------------------------------------------------------------------------- */

/* Doubles that floats hold, and those floats: the same bits and the same counts, whatever is asked. */
static void floats_in_doubles(struct test *t)
{
    static const bsm_quantize_options rows[] = { { .recipe = BSM_RECIPE_DEFAULT },
                                                 { .rounding = BSM_ROUND_STOCHASTIC, .seed = 9 },
                                                 { .block_rows = 32 },
                                                 { .clamp_low = 0.5f, .clamp_high = 2 },
                                                 { .smallest_scale = 126 },
                                                 { .nonfinite = BSM_NONFINITE_SATURATE } };
    static const bsm_format formats[] = { BSM_MXFP8_E4M3, BSM_MXFP4, BSM_MXINT8 };
    bsm_context *context = new_context();
    for (size_t i = 0; i < 3 * sizeof rows / sizeof rows[0]; i++) {
        bsm_quantize_options options = rows[i / 3];
        double wide[COUNT];
        float narrow[COUNT];
        struct target got, want;
        bsm_quantize_stats counted = { .struct_size = sizeof counted }, expected = { .struct_size = sizeof expected };
        for (int n = 0; n < COUNT; n++) wide[n] = (double)(narrow[n] = (float)rnd_normal(t));
        const bsm_real_matrix doubles = rows_of(BSM_REAL_FP64, wide), floats = rows_of(BSM_REAL_FP32, narrow);
        target_make(&got, formats[i % 3], 0.3f, i % 2 == 0);
        target_make(&want, formats[i % 3], 0.3f, i % 2 == 0);
        options.struct_size = sizeof options;
        CHECK(t, bsm_quantize(context, &doubles, &options, &got.matrix, &counted) == BSM_OK);
        CHECK(t, bsm_quantize(context, &floats, &options, &want.matrix, &expected) == BSM_OK);
        CHECK(t, memcmp(got.codes, want.codes, sizeof got.codes) == 0 &&
                     memcmp(got.scales, want.scales, sizeof got.scales) == 0);
        CHECK(t, memcmp(&counted, &expected, sizeof counted) == 0);
    }
    bsm_context_destroy(context);
}

/* Both copies in one pass, the source read along its columns. */
static void both_copies(struct test *t)
{
    bsm_context *context = new_context();
    double x[COUNT];
    uint8_t codes[2][COUNT], scales[2][COUNT] = { { 0 } };
    struct target rows;
    fill(t, x, 1, BSM_E4M3, 32, 1);
    const bsm_real_matrix source = rows_of(BSM_REAL_FP64, x);
    bsm_real_matrix transposed = source;
    transposed.rows = COLUMNS, transposed.columns = ROWS, transposed.row_stride = 1, transposed.column_stride = COLUMNS;
    bsm_matrix columns[2];
    for (int i = 0; i < 2; i++)
        columns[i] = (bsm_matrix){ .struct_size = sizeof columns[i],
                                   .format = BSM_MXFP8_E4M3,
                                   .rows = COLUMNS,
                                   .columns = ROWS,
                                   .data = codes[i],
                                   .scales = scales[i] };
    target_make(&rows, BSM_MXFP8_E4M3, 0, false);
    CHECK(t, bsm_quantize_both(context, &source, NULL, &rows.matrix, &columns[0]) == BSM_OK);
    CHECK(t, bsm_quantize(context, &transposed, NULL, &columns[1], NULL) == BSM_OK);
    CHECK(t, memcmp(codes[0], codes[1], COUNT) == 0 && memcmp(scales[0], scales[1], COUNT) == 0);
    const struct oracle_setup setup = { BSM_MXFP8_E4M3, BSM_RECIPE_RCEIL, BSM_NONFINITE_PROPAGATE, 1, false };
    compare_blocks(t, &setup, x, &rows);
    bsm_context_destroy(context);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(blocks_are_those_of_the_oracle), TEST(numbers_without_blocks),
                                              TEST(computed_tensor_scales), TEST(floats_in_doubles),
                                              TEST(both_copies) };
    return TEST_MAIN(argc, argv, cases);
}
