/* Recipes: the scale code of a block of one number, against a search in integers. */
#include "core/core.h"
#include "oracle_block.h"
#include "quantize/block/block.h"
#include "quantize/block/recipes.h"
#include "test.h"

#include <float.h>

static const bsm_format e8m0_formats[] = { BSM_MXFP8_E4M3, BSM_MXFP8_E5M2, BSM_MXFP6_E3M2, BSM_MXFP6_E2M3, BSM_MXFP4,
                                           BSM_MXFP4_BLOCK16, BSM_MXINT8 };
static const double largest[] = { 448, 57344, 28, 7.5, 6, 6, 1.984375 };
static const int mantissa_bits[] = { 3, 2, 2, 3, 1, 1, 6 };
enum { E8M0_FORMATS = 7 };
static const bsm_recipe e8m0_recipes[] = { BSM_RECIPE_FLOOR, BSM_RECIPE_RCEIL, BSM_RECIPE_CEIL, BSM_RECIPE_EVEN };

static const float tensor_scales[] = { 1,         3,           0.1f,      0x1.fffffep-1f, 0x1.000002p0f,
                                       0x1p-126f, 0x1.8p-149f, 0x1p-149f, FLT_MAX,        1234567 };
enum { TENSOR_SCALES = sizeof tensor_scales / sizeof tensor_scales[0] };

static uint8_t scale_code_of(const struct oracle_setup *setup, float m)
{
    struct bsmi_block_quantizer quantizer;
    uint8_t code;
    if (bsmi_block_quantizer_make("recipe", setup->format, setup->recipe, BSM_ROUND_NEAREST_EVEN, 0, setup->nonfinite,
                                  setup->tensor_scale,
                                  setup->divides ? BSM_TENSOR_SCALE_DIVIDES : BSM_TENSOR_SCALE_MULTIPLIES, &quantizer)
        != BSM_OK)
        return 0xee;
    return bsmi_quantize_block(&quantizer, &m, 1, 0, &code, NULL);
}

static void check_amax(struct test *t, const struct oracle_setup *setup, float m)
{
    if (!(m >= 0) || isinf(m)) return;
    const uint8_t got = scale_code_of(setup, m), want = oracle_scale_code(setup, m);
    if (got != want)
        FAIL(t, "%s %s of %a, tensor scale %a%s: code %d, want %d", bsm_format_get((int)setup->format)->name,
             bsm_recipe_name((int)setup->recipe), (double)m, (double)setup->tensor_scale,
             setup->divides ? " divides" : "", got, want);
    if (scale_code_of(setup, -m) != want) FAIL(t, "the sign of %a matters", (double)m);
}

/* The fp32 number nearest to a value, and two steps to each side. */
static void check_around(struct test *t, const struct oracle_setup *setup, double value)
{
    if (!(value < 0x1p128)) return;
    float m = nextafterf(nextafterf((float)value, -INFINITY), -INFINITY);
    for (int i = 0; i < 5; i++, m = nextafterf(m, INFINITY)) check_amax(t, setup, m);
}

/* Every place where an exponent changes, in every binade of fp32. */
static void around_every_threshold(struct test *t)
{
    for (int f = 0; f < E8M0_FORMATS; f++)
        for (int r = 0; r < 4; r++) {
            const struct oracle_setup setup = { e8m0_formats[f], e8m0_recipes[r], BSM_NONFINITE_PROPAGATE, 1, false };
            const double carries = 2 - ldexp(1, -mantissa_bits[f] - 1);
            for (int k = -151; k <= 128; k++) {
                check_around(t, &setup, ldexp(1, k));
                check_around(t, &setup, ldexp(carries, k));
                check_around(t, &setup, ldexp(largest[f], k - 8));
            }
            check_amax(t, &setup, FLT_MAX);
            check_amax(t, &setup, FLT_TRUE_MIN);
        }
}

/* With a tensor scale the thresholds lie where m / t, or m * d, crosses them: between numbers of fp32, or on one. */
static void around_thresholds_with_tensor_scales(struct test *t)
{
    for (int f = 0; f < E8M0_FORMATS; f++)
        for (int r = 0; r < 4; r++)
            for (int s = 0; s < TENSOR_SCALES; s++)
                for (int divides = 0; divides < 2; divides++) {
                    const struct oracle_setup setup = { e8m0_formats[f], e8m0_recipes[r], BSM_NONFINITE_PROPAGATE,
                                                        tensor_scales[s], divides };
                    const double scale = divides ? 1 / (double)tensor_scales[s] : (double)tensor_scales[s];
                    const double places[] = { 1, largest[f], 2 - ldexp(1, -mantissa_bits[f] - 1) };
                    for (int k = -140; k <= 130; k += (int)rnd_between(t, 1, 9))
                        for (int p = 0; p < 3; p++) check_around(t, &setup, ldexp(places[p] * scale, k));
                }
}

static float random_positive(struct test *t) { return bsmi_float_from_bits((uint32_t)rnd_below(t, 0x7f800000)); }

static void random_amax_and_tensor_scale(struct test *t)
{
    for (int i = 0; i < 60000; i++) {
        const bool nvfp4 = i % 5 == 4;
        struct oracle_setup setup = { nvfp4 ? BSM_NVFP4 : e8m0_formats[rnd_below(t, E8M0_FORMATS)],
                                      nvfp4 ? BSM_RECIPE_NEAREST : e8m0_recipes[rnd_below(t, 4)],
                                      BSM_NONFINITE_PROPAGATE, 1, i % 2 };
        float m = random_positive(t);
        if (i % 3 != 0) setup.tensor_scale = random_positive(t);
        if (setup.tensor_scale == 0) continue;
        /* For ue4m3 most random pairs are far out of range: put three of four within it. */
        if (nvfp4 && i % 4 != 0) {
            const double near =
                (double)m * (setup.divides ? 1 / (double)setup.tensor_scale : (double)setup.tensor_scale);
            m = (float)ldexp(near,
                             (int)rnd_between(t, -8, 12) - ilogb(near)
                                 + ilogb(setup.divides ? 1 / (double)setup.tensor_scale : (double)setup.tensor_scale));
        }
        check_amax(t, &setup, m);
    }
}

/* m * 6 t at every midpoint of ue4m3, where it is a number of fp32, and beside it where it is not. */
static void around_every_ue4m3_midpoint(struct test *t)
{
    static const float scales[] = { 1, 3, 5, 0x1.8p-20f, 131071, 0x1.fffep-30f, 0.1f, 1e-3f, 0x1p-120f, 7e30f };
    for (int s = 0; s < 10; s++)
        for (int divides = 0; divides < 2; divides++) {
            const struct oracle_setup setup = { BSM_NVFP4, BSM_RECIPE_NEAREST, BSM_NONFINITE_PROPAGATE, scales[s],
                                                divides };
            const double scale = divides ? 1 / (double)scales[s] : (double)scales[s];
            for (int c = 0; c < 0x7f; c++) {
                const double low = (double)bsm_scale_decode(BSM_UE4M3, (uint8_t)c);
                const double high = c < 0x7e ? (double)bsm_scale_decode(BSM_UE4M3, (uint8_t)(c + 1)) : 480;
                check_around(t, &setup, (low + high) / 2 * 6 * scale);
                check_around(t, &setup, low * 6 * scale);
            }
        }
}

/* Known answers, worked out by hand. */
static void known_codes(struct test *t)
{
    static const struct { bsm_format format; bsm_recipe recipe; float m; int code; } rows[] = {
        { BSM_MXFP4, BSM_RECIPE_RCEIL, 6, 127 },          { BSM_MXFP4, BSM_RECIPE_RCEIL, 0x1.800002p2f, 128 },
        { BSM_MXFP4, BSM_RECIPE_FLOOR, 6, 127 },          { BSM_MXFP4, BSM_RECIPE_FLOOR, 0x1.fffffep2f, 127 },
        { BSM_MXFP4, BSM_RECIPE_FLOOR, 8, 128 },          { BSM_MXFP4, BSM_RECIPE_CEIL, 4, 127 },
        { BSM_MXFP4, BSM_RECIPE_CEIL, 0x1.000002p2f, 128 }, { BSM_MXFP4, BSM_RECIPE_EVEN, 6.9999995f, 127 },
        { BSM_MXFP4, BSM_RECIPE_EVEN, 7, 128 },           { BSM_MXFP8_E4M3, BSM_RECIPE_RCEIL, 448, 127 },
        { BSM_MXFP8_E4M3, BSM_RECIPE_RCEIL, 448.00003f, 128 }, { BSM_MXFP8_E4M3, BSM_RECIPE_FLOOR, 511.99997f, 127 },
        { BSM_MXFP8_E4M3, BSM_RECIPE_EVEN, 495.99997f, 127 }, { BSM_MXFP8_E4M3, BSM_RECIPE_EVEN, 496, 128 },
        { BSM_MXFP8_E5M2, BSM_RECIPE_RCEIL, 57344, 127 }, { BSM_MXFP8_E5M2, BSM_RECIPE_FLOOR, 65535, 127 },
        { BSM_MXFP6_E3M2, BSM_RECIPE_RCEIL, 28, 127 },    { BSM_MXFP6_E2M3, BSM_RECIPE_RCEIL, 7.5f, 127 },
        { BSM_MXINT8, BSM_RECIPE_RCEIL, 1.984375f, 127 }, { BSM_MXINT8, BSM_RECIPE_RCEIL, 0x1.fc0002p0f, 128 },
        { BSM_MXINT8, BSM_RECIPE_EVEN, 1.9921875f, 128 }, { BSM_MXINT8, BSM_RECIPE_EVEN, 1.992187f, 127 },
        { BSM_MXFP4, BSM_RECIPE_FLOOR, 7.9999995f, 127 }, /* 0x40ffffff: floor(log2f) gives one more */
        { BSM_MXFP4, BSM_RECIPE_FLOOR, FLT_MAX, 252 },    { BSM_MXINT8, BSM_RECIPE_CEIL, FLT_MAX, 254 },
        { BSM_MXINT8, BSM_RECIPE_EVEN, FLT_MAX, 254 },    { BSM_MXINT8, BSM_RECIPE_RCEIL, FLT_MAX, 254 },
        { BSM_MXINT8, BSM_RECIPE_FLOOR, 0x1p-126f, 1 },   { BSM_MXINT8, BSM_RECIPE_FLOOR, 0x1.fffffcp-127f, 0 },
        { BSM_MXINT8, BSM_RECIPE_EVEN, 0x1.fffffcp-127f, 1 }, { BSM_MXFP8_E5M2, BSM_RECIPE_RCEIL, FLT_TRUE_MIN, 0 },
        { BSM_NVFP4, BSM_RECIPE_NEAREST, 6, 0x38 },       { BSM_NVFP4, BSM_RECIPE_NEAREST, 2688, 0x7e },
        { BSM_NVFP4, BSM_RECIPE_NEAREST, FLT_MAX, 0x7e }, { BSM_NVFP4, BSM_RECIPE_NEAREST, 6 * 0x1p-10f, 0x00 },
        { BSM_NVFP4, BSM_RECIPE_NEAREST, 6.000001f * 0x1p-10f, 0x01 },
          { BSM_NVFP4, BSM_RECIPE_NEAREST, 6 * 0x1.8p-9f, 0x02 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct oracle_setup setup = { rows[i].format, rows[i].recipe, BSM_NONFINITE_PROPAGATE, 1, false };
        const int got = scale_code_of(&setup, rows[i].m);
        if (got != rows[i].code)
            FAIL(t, "%s %s of %a: code %d, want %d", bsm_format_get((int)rows[i].format)->name,
                 bsm_recipe_name((int)rows[i].recipe), (double)rows[i].m, got, rows[i].code);
    }
}

/* EVEN as it is usually written: add half a unit of the mantissa to the bits of a normal number, take the exponent
 * field. */
static void even_is_the_sum_on_fp32_bits(struct test *t)
{
    for (int f = 0; f < E8M0_FORMATS; f++) {
        const struct oracle_setup setup = { e8m0_formats[f], BSM_RECIPE_EVEN, BSM_NONFINITE_PROPAGATE, 1, false };
        const int emax = ilogb(largest[f]);
        for (int i = 0; i < 20000; i++) {
            uint32_t bits = (uint32_t)rnd_between(t, 0x00800000, 0x7f7fffff);
            if (i % 2) bits |= 0x7fffff & ~(uint32_t)rnd_below(t, (int64_t)1 << (24 - mantissa_bits[f]));
            const int exponent = (int)((bits + ((uint32_t)1 << (23 - mantissa_bits[f] - 1))) >> 23) - emax;
            const int want = exponent < 0 ? 0 : exponent > 254 ? 254 : exponent;
            const int got = scale_code_of(&setup, bsmi_float_from_bits(bits));
            if (got != want)
                FAIL(t, "%s of bits 0x%08x: code %d, want %d", bsm_format_get((int)setup.format)->name, bits, got,
                     want);
        }
    }
}

/* A scale code is NaN only for what is not finite: all binades, all recipes, also with extreme tensor scales. */
static void finite_blocks_never_get_a_nan_scale(struct test *t)
{
    for (int format = BSM_MXFP8_E4M3; format <= BSM_NVFP4; format++)
        for (int recipe = 0; recipe < BSM_RECIPE_COUNT; recipe++)
            for (int s = 0; s < TENSOR_SCALES; s++)
                for (int divides = 0; divides < 2; divides++) {
                    const struct oracle_setup setup = { (bsm_format)format, (bsm_recipe)recipe, BSM_NONFINITE_PROPAGATE,
                                                        tensor_scales[s], divides };
                    if (scale_code_of(&setup, 1) == 0xee) continue;         /* the recipe is not for this format */
                    for (uint32_t bits = 0; bits < 0x7f800000; bits += 0x00400000 - 1) {
                        const uint8_t code = scale_code_of(&setup, bsmi_float_from_bits(bits));
                        CHECK(t, format == BSM_NVFP4 ? code <= 0x7e : code <= 254);
                        if (bits == 0) CHECK(t, code == 0);
                    }
                }
}

/* RCEIL never saturates; CEIL with these elements neither; FLOOR does exactly in the top of a binade. */
static void who_saturates(struct test *t)
{
    static const double floor_saturates_from[] = { 1.75, 1.75, 1.75, 1.875, 1.5, 1.5, 1.984375 };
    for (int f = 0; f < E8M0_FORMATS; f++)
        for (int i = 0; i < 2000; i++) {
            const float m = (float)(largest[f] * (1 + (double)(rnd(t) >> 40) * 0x1p-24));      /* in (max, 2 max) */
            for (int r = 0; r < 4; r++) {
                const struct oracle_setup setup = { e8m0_formats[f], e8m0_recipes[r], BSM_NONFINITE_PROPAGATE, 1,
                                                    false };
                const double top = largest[f] * ldexp(1, scale_code_of(&setup, m) - 127);
                const double fraction = ldexp((double)m, -ilogbf(m));
                const bool saturates = (double)m > top;
                if (e8m0_recipes[r] == BSM_RECIPE_FLOOR) CHECK(t, saturates == (fraction > floor_saturates_from[f]));
                else if (e8m0_recipes[r] != BSM_RECIPE_EVEN) CHECK(t, !saturates);
                else CHECK(t, !saturates || (double)m < top * (1 + ldexp(1, -mantissa_bits[f])));
            }
        }
}

static void defaults_and_names(struct test *t)
{
    static const char *const names[] = {
        "default", "floor", "rceil", "ceil", "even", "nearest", "four_over_six", "mse"
    };
    for (int i = 0; i < BSM_RECIPE_COUNT; i++) {
        CHECK(t, bsm_recipe_name(i) != NULL && strcmp(bsm_recipe_name(i), names[i]) == 0);
        CHECK(t, bsm_recipe_from_name(names[i]) == i);
    }
    CHECK(t, bsm_recipe_name(-1) == NULL && bsm_recipe_name(BSM_RECIPE_COUNT) == NULL);
    CHECK(t, bsm_recipe_from_name("RCEIL") == BSM_RECIPE_RCEIL);
    CHECK(t,
          bsm_recipe_from_name("rceil2") == -1 && bsm_recipe_from_name("") == -1 && bsm_recipe_from_name(NULL) == -1);

    struct bsmi_block_quantizer q;
    for (int f = 0; f < E8M0_FORMATS; f++) {
        CHECK(t, bsmi_recipe_choose("r", e8m0_formats[f], BSM_RECIPE_DEFAULT) ==
                     bsmi_recipe_choose("r", e8m0_formats[f], BSM_RECIPE_RCEIL));
        CHECK(t, bsmi_block_quantizer_make("r", e8m0_formats[f], BSM_RECIPE_DEFAULT, BSM_ROUND_NEAREST_EVEN, 0,
                                           BSM_NONFINITE_PROPAGATE, 1, BSM_TENSOR_SCALE_MULTIPLIES, &q) == BSM_OK);
    }
    CHECK(t, strcmp(bsmi_recipe_choose("r", BSM_NVFP4, BSM_RECIPE_DEFAULT)->name, "nearest") == 0);
}

static void check_refused(struct test *t, bsm_format format, bsm_recipe recipe, const char *sentence)
{
    struct bsmi_block_quantizer q;
    CHECK(t, bsmi_block_quantizer_make("options->recipe", format, recipe, BSM_ROUND_NEAREST_EVEN, 0,
                                       BSM_NONFINITE_PROPAGATE, 1, BSM_TENSOR_SCALE_MULTIPLIES, &q)
                 == BSM_EINVAL);
    if (strcmp(bsm_last_error(), sentence) != 0) FAIL(t, "sentence is \"%s\"", bsm_last_error());
}

static void misfits_are_refused(struct test *t)
{
    check_refused(t, BSM_MXFP4, BSM_RECIPE_NEAREST,
                  "options->recipe=nearest gives ue4m3 scales, and mxfp4 has e8m0: take floor, rceil, ceil, even, mse");
    check_refused(t, BSM_NVFP4, BSM_RECIPE_FLOOR,
                  "options->recipe=floor gives e8m0 scales, and nvfp4 has ue4m3: take nearest, four_over_six");
    check_refused(t, BSM_NVFP4, BSM_RECIPE_COUNT, "options->recipe=8: recipes are 0 to 7");
    check_refused(t, BSM_NVFP4, (bsm_recipe)-1, "options->recipe=-1: recipes are 0 to 7");
    check_refused(t, BSM_FORMAT_BF16, BSM_RECIPE_DEFAULT,
                  "options->recipe: bf16 has no block scales, and so no recipe");
    check_refused(t, BSM_FORMAT_NONE, BSM_RECIPE_DEFAULT, "format=0 is no format: use one of enum bsm_format");
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        TEST(known_codes),
        TEST(around_every_threshold),
        TEST(around_thresholds_with_tensor_scales),
        TEST(random_amax_and_tensor_scale),
        TEST(around_every_ue4m3_midpoint),
        TEST(even_is_the_sum_on_fp32_bits),
        TEST(finite_blocks_never_get_a_nan_scale),
        TEST(who_saturates),
        TEST(defaults_and_names),
        TEST(misfits_are_refused),
    };
    return TEST_MAIN(argc, argv, cases);
}
