/* One block: elements under their scale, what is not finite, flushing, stochastic rounding, and the counts. */
#include "core/core.h"
#include "oracle_block.h"
#include "quantize/block/block.h"
#include "test.h"

#include "../format/oracle.h"

#include <float.h>

enum { POISON = 0xa5 };

static int block_of(bsm_format format) { return bsm_format_get((int)format)->block; }

static struct bsmi_block_quantizer quantizer_of(const struct oracle_setup *setup, bsm_rounding rounding, uint64_t seed)
{
    struct bsmi_block_quantizer quantizer;
    memset(&quantizer, 0, sizeof quantizer);
    bsmi_block_quantizer_make("recipe", setup->format, setup->recipe, rounding, seed, setup->nonfinite,
                              setup->tensor_scale,
                              setup->divides ? BSM_TENSOR_SCALE_DIVIDES : BSM_TENSOR_SCALE_MULTIPLIES, &quantizer);
    return quantizer;
}

/* Quantizes with and without statistics and compares everything with the slow way. */
static void check_block(struct test *t, const struct oracle_setup *setup, const float *x, int count)
{
    const struct bsmi_block_quantizer quantizer = quantizer_of(setup, BSM_ROUND_NEAREST_EVEN, 0);
    struct oracle_block want;
    struct bsmi_block_stats stats = { 0 };
    uint8_t codes[33], again[33];
    memset(codes, POISON, sizeof codes);
    memset(again, POISON, sizeof again);
    oracle_quantize_block(setup, x, count, &want);
    const uint8_t scale = bsmi_quantize_block(&quantizer, x, count, 0, codes, &stats);
    const uint8_t scale_again = bsmi_quantize_block(&quantizer, x, count, 0, again, NULL);
    if (scale != want.scale || scale_again != want.scale)
        FAIL(t, "%s %s: scale %d, want %d", bsm_format_get((int)setup->format)->name,
             bsm_recipe_name((int)setup->recipe), scale, want.scale);
    for (int i = 0; i < count; i++)
        if (codes[i] != want.codes[i])
            FAIL(t, "%s %s, scale %d, tensor scale %a%s: %a became 0x%02x, want 0x%02x",
                 bsm_format_get((int)setup->format)->name, bsm_recipe_name((int)setup->recipe), scale,
                 (double)setup->tensor_scale, setup->divides ? " divides" : "", (double)x[i], codes[i], want.codes[i]);
    CHECK(t, memcmp(codes, again, sizeof codes) == 0);
    for (int i = count; i < 33; i++) CHECK(t, codes[i] == POISON);
    if (stats.saturated_elements != want.saturated)
        FAIL(t, "saturated %" PRId64 ", want %d", stats.saturated_elements, want.saturated);
    if (stats.flushed_blocks != want.flushed)
        FAIL(t, "flushed %" PRId64 ", want %d", stats.flushed_blocks, want.flushed);
    if (stats.nan_blocks != want.nan) FAIL(t, "NaN blocks %" PRId64 ", want %d", stats.nan_blocks, want.nan);
    CHECK(t, stats.elements == count && stats.blocks == 1 && stats.scale_histogram[scale] == 1);
}

static float random_value(struct test *t, int kind)
{
    switch (kind) {
    case 0: return (float)rnd_normal(t);
    case 1: return ldexpf((float)rnd_between(t, -127, 127), (int)rnd_between(t, -9, 3));          /* many ties */
    /* anything, NaN too */
    case 2: return bsmi_float_from_bits((uint32_t)rnd(t));
    case 3: return ldexpf((float)rnd_normal(t), (int)rnd_between(t, -149, 126));
    default: return rnd_below(t, 4) == 0 ? (float)rnd_normal(t) * 1000 : 0.0f;
    }
}

static bsm_recipe random_recipe(struct test *t, bsm_format format, float tensor_scale)
{
    if (format != BSM_NVFP4 && tensor_scale == 1 && rnd_below(t, 3) == 0) return BSM_RECIPE_MSE;
    return format == BSM_NVFP4 ? BSM_RECIPE_NEAREST : (bsm_recipe)rnd_between(t, BSM_RECIPE_FLOOR, BSM_RECIPE_EVEN);
}

static void random_blocks(struct test *t)
{
    static const float tensor_scales[] = { 1, 1, 1, 0.37f, 3e-4f, 1.7f, 0x1p-126f, 0x1.fffffep20f, 1e30f };
    for (int i = 0; i < 9000; i++) {
        const bsm_format format = (bsm_format)rnd_between(t, BSM_MXFP8_E4M3, BSM_NVFP4);
        const float tensor_scale = tensor_scales[rnd_below(t, 9)];
        const struct oracle_setup setup = { format, random_recipe(t, format, tensor_scale),
                                            (bsm_nonfinite)rnd_below(t, 2), tensor_scale, rnd_below(t, 2) };
        const int count = (int)rnd_between(t, 1, block_of(format)), kind = (int)rnd_below(t, 5);
        const int shift = (int)rnd_between(t, -8, 8);
        float x[32];
        for (int j = 0; j < count; j++) x[j] = ldexpf(random_value(t, kind), kind == 0 ? shift : 0);
        check_block(t, &setup, x, count);
    }
}

/* Every midpoint between codes under one scale and tensor scale, and the fp32 numbers beside it: the first element
 * fixes the scale. */
static void around_every_midpoint(struct test *t)
{
    for (int f = BSM_MXFP8_E4M3; f <= BSM_NVFP4; f++) {
        const bsm_format format = (bsm_format)f;
        const bsm_element element = bsm_format_get(f)->element;
        const double largest = bsm_element_get((int)element)->max_value;
        static const float tensor_scales[] = { 1, 0.1f, 3, 0x1.3p-11f };
        for (int s = 0; s < 8; s++) {
            const struct oracle_setup setup = { format, format == BSM_NVFP4 ? BSM_RECIPE_NEAREST : BSM_RECIPE_RCEIL,
                                                BSM_NONFINITE_PROPAGATE, tensor_scales[s % 4], s >= 4 };
            const double t_value = setup.divides ? 1 / (double)setup.tensor_scale : (double)setup.tensor_scale;
            const double block_scale = format == BSM_NVFP4 ? 1.25 : ldexp(1, 5);
            float x[3];
            x[0] = (float)(largest * block_scale * t_value);
            for (uint32_t code = 0; code < bsm_element_get((int)element)->max_code; code++) {
                const double middle =
                    (oracle_decode(element, code) + oracle_decode(element, code + 1)) / 2 * block_scale * t_value;
                x[1] = (float)middle, x[2] = -(float)middle;
                check_block(t, &setup, x, 3);
                x[1] = nextafterf((float)middle, INFINITY), x[2] = -x[1];
                check_block(t, &setup, x, 3);
                x[1] = nextafterf((float)middle, 0), x[2] = -x[1];
                check_block(t, &setup, x, 3);
            }
        }
    }
}

/* Ties of e2m1 go to the even code; some kernels send them away from zero, or down. */
static void e2m1_ties_in_plain_numbers(struct test *t)
{
    static const float ties[] = { 0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5.0f };
    static const uint8_t at[] = { 0, 2, 2, 4, 4, 6, 6 }, below[] = { 0, 1, 2, 3, 4, 5, 6 },
                         above[] = { 1, 2, 3, 4, 5, 6, 7 };
    const bsm_format formats[] = { BSM_MXFP4, BSM_MXFP4_BLOCK16, BSM_NVFP4 };
    for (int f = 0; f < 3; f++)
        for (int i = 0; i < 7; i++) {
            const struct oracle_setup setup = { formats[f], BSM_RECIPE_DEFAULT, BSM_NONFINITE_PROPAGATE, 1, false };
            const struct bsmi_block_quantizer quantizer = quantizer_of(&setup, BSM_ROUND_NEAREST_EVEN, 0);
            const float x[] = { 6,
                                ties[i],
                                -ties[i],
                                nextafterf(ties[i], 0),
                                -nextafterf(ties[i], 0),
                                nextafterf(ties[i], 9),
                                -nextafterf(ties[i], 9) };
            const uint8_t want[] = { 7, at[i], at[i] | 8, below[i], below[i] | 8, above[i], above[i] | 8 };
            uint8_t codes[7];
            const uint8_t scale = bsmi_quantize_block(&quantizer, x, 7, 0, codes, NULL);
            CHECK(t, scale == (formats[f] == BSM_NVFP4 ? 0x38 : 127));
            if (memcmp(codes, want, 7) != 0)
                FAIL(t, "%s at %g", bsm_format_get((int)formats[f])->name, (double)ties[i]);
        }
}

static void zero_blocks(struct test *t)
{
    static const float tensor_scales[] = { 1, 0x1p-126f, FLT_MAX };
    for (int f = BSM_MXFP8_E4M3; f <= BSM_NVFP4; f++)
        for (int s = 0; s < 6; s++) {
            const struct oracle_setup setup = { (bsm_format)f, f == BSM_NVFP4 ? BSM_RECIPE_NEAREST : BSM_RECIPE_FLOOR,
                                                BSM_NONFINITE_PROPAGATE, tensor_scales[s % 3], s >= 3 };
            const struct bsmi_block_quantizer quantizer = quantizer_of(&setup, BSM_ROUND_NEAREST_EVEN, 0);
            float x[32];
            uint8_t codes[32];
            for (int i = 0; i < 32; i++) x[i] = i % 3 == 1 ? -0.0f : 0.0f;
            struct bsmi_block_stats stats = { 0 };
            CHECK(t, bsmi_quantize_block(&quantizer, x, block_of(setup.format), 0, codes, &stats) == 0);
            for (int i = 0; i < block_of(setup.format); i++)
                CHECK(t, codes[i] == (i % 3 == 1 ? oracle_negative(bsm_format_get(f)->element, 0) : 0));
            CHECK(t, stats.flushed_blocks == 0 && stats.nan_blocks == 0 && stats.signal == 0 && stats.noise == 0
                         && stats.amax == 0);
        }
}

static void one_nonzero_per_block(struct test *t)
{
    for (int f = BSM_MXFP8_E4M3; f <= BSM_NVFP4; f++)
        for (int place = 0; place < block_of((bsm_format)f); place++)
            for (int i = 0; i < 6; i++) {
                const struct oracle_setup setup = { (bsm_format)f, random_recipe(t, (bsm_format)f, 1),
                                                    BSM_NONFINITE_PROPAGATE, 1, false };
                float x[32] = { 0 };
                x[place] = (float)rnd_normal(t) * (i < 3 ? 1 : 1e-23f);
                check_block(t, &setup, x, block_of((bsm_format)f));
            }
}

static void every_magnitude(struct test *t)
{
    for (int f = BSM_MXFP8_E4M3; f <= BSM_NVFP4; f++)
        for (int e = -149; e <= 127; e++)
            for (int recipe = BSM_RECIPE_FLOOR; recipe <= BSM_RECIPE_NEAREST; recipe++) {
                if ((f == BSM_NVFP4) != (recipe == BSM_RECIPE_NEAREST)) continue;
                const struct oracle_setup setup = { (bsm_format)f, (bsm_recipe)recipe, BSM_NONFINITE_PROPAGATE,
                                                    e % 2 == 0 ? 1 : 0.7f, e % 3 == 0 };
                float x[4];
                for (int i = 0; i < 4; i++) x[i] = ldexpf((float)(rnd_normal(t) / 8), e);
                x[3] = ldexpf(1, e);
                check_block(t, &setup, x, 4);
            }
}

/* m in (max, 2 max): where FLOOR lets the largest element overflow, and a cast without saturation gives NaN. */
static void between_max_and_twice_max(struct test *t)
{
    for (int f = BSM_MXFP8_E4M3; f <= BSM_MXINT8; f++)
        for (int recipe = BSM_RECIPE_FLOOR; recipe <= BSM_RECIPE_EVEN; recipe++)
            for (int i = 0; i < 200; i++) {
                const struct oracle_setup setup = { (bsm_format)f, (bsm_recipe)recipe, BSM_NONFINITE_PROPAGATE, 1,
                                                    false };
                const double max = bsm_element_get((int)bsm_format_get(f)->element)->max_value;
                const float m = (float)(max * (1 + (i < 2 ? 1e-7 + i * 0.9999998 : (double)(rnd(t) >> 40) * 0x1p-24)));
                const float x[] = { m, -m, m / 2, (float)max };
                check_block(t, &setup, x, 4);
            }
}

static void what_is_not_finite(struct test *t)
{
    static const float specials[] = { INFINITY, -INFINITY, NAN, -NAN };
    for (int f = BSM_MXFP8_E4M3; f <= BSM_NVFP4; f++)
        for (int policy = 0; policy < 2; policy++)
            for (int kind = 0; kind < 8; kind++)
                for (int place = 0; place < block_of((bsm_format)f); place += 5) {
                    const struct oracle_setup setup = { (bsm_format)f, random_recipe(t, (bsm_format)f, 1),
                                                        (bsm_nonfinite)policy, 1, false };
                    float x[32];
                    for (int i = 0; i < 32; i++) x[i] = kind < 4 ? (float)rnd_normal(t) : 0;
                    x[place] = specials[kind % 4];
                    check_block(t, &setup, x, block_of((bsm_format)f));
                }
    /* The same in plain codes. */
    const float x[] = { 1, INFINITY, -INFINITY, NAN };
    uint8_t codes[4];
    struct oracle_setup setup = { BSM_MXFP8_E4M3, BSM_RECIPE_RCEIL, BSM_NONFINITE_PROPAGATE, 1, false };
    struct bsmi_block_quantizer quantizer = quantizer_of(&setup, BSM_ROUND_NEAREST_EVEN, 0);
    CHECK(t, bsmi_quantize_block(&quantizer, x, 4, 0, codes, NULL) == 0xff);
    CHECK(t, memcmp(codes, "\0\0\0\0", 4) == 0);
    setup.nonfinite = BSM_NONFINITE_SATURATE;
    quantizer = quantizer_of(&setup, BSM_ROUND_NEAREST_EVEN, 0);
    CHECK(t, bsmi_quantize_block(&quantizer, x, 4, 0, codes, NULL) == 127 - 8);
    CHECK(t, codes[0] == 0x78 && codes[1] == 0x7e && codes[2] == 0xfe && codes[3] == 0x7f);
    setup.format = BSM_NVFP4, setup.recipe = BSM_RECIPE_NEAREST;
    quantizer = quantizer_of(&setup, BSM_ROUND_NEAREST_EVEN, 0);
    CHECK(t, bsmi_quantize_block(&quantizer, x + 1, 3, 0, codes, NULL) == 0);
    CHECK(t, codes[0] == 7 && codes[1] == 15 && codes[2] == 7);
}

/* A block far below the tensor's largest value: its ue4m3 scale is 0, and its elements are zeros that keep their
 * signs. */
static void flushed_blocks(struct test *t)
{
    const struct oracle_setup setup = { BSM_NVFP4, BSM_RECIPE_NEAREST, BSM_NONFINITE_PROPAGATE, 28672.0f / 2688,
                                        false };
    const struct bsmi_block_quantizer quantizer = quantizer_of(&setup, BSM_ROUND_NEAREST_EVEN, 0);
    const float x[] = { 0.06f, -0.06f, 0, -0.0f };
    uint8_t codes[4];
    struct bsmi_block_stats stats = { 0 };
    CHECK(t, bsmi_quantize_block(&quantizer, x, 4, 0, codes, &stats) == 0);
    CHECK(t, codes[0] == 0 && codes[1] == 8 && codes[2] == 0 && codes[3] == 8);
    CHECK(t, stats.flushed_blocks == 1 && stats.saturated_elements == 0);
    CHECK(t, stats.noise == stats.signal && stats.signal == 2 * (double)0.06f * (double)0.06f);

    const struct oracle_setup mx = { BSM_MXFP4, BSM_RECIPE_RCEIL, BSM_NONFINITE_PROPAGATE, 1, false };
    const struct bsmi_block_quantizer small = quantizer_of(&mx, BSM_ROUND_NEAREST_EVEN, 0);
    const float tiny[] = { 0x1p-129f, -0x1p-149f };       /* a quarter of 2^-127: half of the smallest e2m1, a tie */
    CHECK(t, bsmi_quantize_block(&small, tiny, 2, 0, codes, &stats) == 0);
    CHECK(t, codes[0] == 0 && codes[1] == 8 && stats.flushed_blocks == 2);
    const float enough[] = { 0x1.00008p-129f, 0 };
    CHECK(t,
          bsmi_quantize_block(&small, enough, 2, 0, codes, &stats) == 0 && codes[0] == 1 && stats.flushed_blocks == 2);
}

/* A tensor scale that divides is used as it is: through its fp32 reciprocal some codes differ. */
static void divisors_are_not_inverted(struct test *t)
{
    int differ = 0;
    for (int i = 0; i < 3000; i++) {
        const float divisor = (float)(1 + (double)(rnd(t) >> 40) * 0x1p-24) * 37;
        const struct oracle_setup divides = { BSM_NVFP4, BSM_RECIPE_NEAREST, BSM_NONFINITE_PROPAGATE, divisor, true };
        const struct oracle_setup multiplies = { BSM_NVFP4, BSM_RECIPE_NEAREST, BSM_NONFINITE_PROPAGATE, 1 / divisor,
                                                 false };
        /* m d / 6 on a midpoint of ue4m3, or just beside it. */
        float x[2] = { 0, 0 };
        x[0] = (float)(6 * 1.0625 / (double)divisor);
        check_block(t, &divides, x, 2);
        check_block(t, &multiplies, x, 2);
        differ += oracle_scale_code(&divides, x[0]) != oracle_scale_code(&multiplies, x[0]);
    }
    CHECK(t, differ > 50);
}

static void stochastic_rounding(struct test *t)
{
    for (int f = BSM_MXFP8_E4M3; f <= BSM_NVFP4; f++) {
        const struct oracle_setup setup = { (bsm_format)f, BSM_RECIPE_DEFAULT, BSM_NONFINITE_PROPAGATE, 1, false };
        const struct bsmi_block_quantizer quantizer = quantizer_of(&setup, BSM_ROUND_STOCHASTIC, 99);
        const bsm_element element = bsm_format_get(f)->element;
        float x[16];
        for (int i = 0; i < 16; i++) x[i] = (float)rnd_normal(t);
        uint8_t codes[16], again[16];
        const uint64_t index = rnd(t) >> 20;
        const uint8_t scale = bsmi_quantize_block(&quantizer, x, 16, index, codes, NULL);
        CHECK(t, bsmi_quantize_block(&quantizer, x, 16, index, again, NULL) == scale && memcmp(codes, again, 16) == 0);
        const double s = (double)bsm_scale_decode(bsm_format_get(f)->scale, scale);
        for (int i = 0; i < 16; i++)
            CHECK(t, codes[i] == bsm_element_encode(element, (double)x[i] / s, BSM_ROUND_STOCHASTIC, true,
                                                    bsm_random_bits(99, index + (uint64_t)i)));
        /* Another place, another seed: other bits. */
        struct bsmi_block_quantizer other = quantizer_of(&setup, BSM_ROUND_STOCHASTIC, 100);
        int moved = 0, reseeded = 0;
        for (uint64_t j = 0; j < 20; j++) {
            bsmi_quantize_block(&quantizer, x, 16, index + 16 * j + 16, again, NULL);
            moved += memcmp(codes, again, 16) != 0;
            bsmi_quantize_block(&other, x, 16, index + 16 * j, again, NULL);
            reseeded += memcmp(codes, again, 16) != 0;
        }
        CHECK(t, moved > 0 && reseeded > 0);
    }
}

/* The mean of many roundings is the number itself: within five standard deviations of a coin with that fraction. */
static void stochastic_rounding_is_unbiased(struct test *t)
{
    enum { TRIES = 20000 };
    for (int f = BSM_MXFP8_E4M3; f <= BSM_NVFP4; f++) {
        const struct oracle_setup setup = { (bsm_format)f, BSM_RECIPE_DEFAULT, BSM_NONFINITE_PROPAGATE, 1, false };
        const struct bsmi_block_quantizer quantizer = quantizer_of(&setup, BSM_ROUND_STOCHASTIC, rnd(t));
        const bsm_element element = bsm_format_get(f)->element;
        float x[4] = { (float)bsm_element_get((int)element)->max_value };
        for (int i = 1; i < 4; i++) x[i] = (float)rnd_normal(t) * x[0] / 5;
        double sums[4] = { 0 };
        uint8_t codes[4];
        for (uint64_t i = 0; i < TRIES; i++) {
            bsmi_quantize_block(&quantizer, x, 4, 4 * i, codes, NULL);
            for (int j = 0; j < 4; j++) sums[j] += oracle_decode(element, codes[j]);
        }
        for (int j = 0; j < 4; j++) {
            const uint32_t low = oracle_floor_code(element, fabs((double)x[j]));
            const double step = low < bsm_element_get((int)element)->max_code
                                    ? oracle_decode(element, low + 1) - oracle_decode(element, low)
                                    : 0;
            if (!(fabs(sums[j] / TRIES - (double)x[j]) <= 5 * 0.5 * step / sqrt(TRIES)))
                FAIL(t, "%s: mean %g of %g", bsm_format_get(f)->name, sums[j] / TRIES, (double)x[j]);
        }
    }
}

/* Signal, noise and amax, added up once more in long double. */
static void sums_of_squares(struct test *t)
{
    for (int f = BSM_MXFP8_E4M3; f <= BSM_NVFP4; f++)
        for (int n = 0; n < 40; n++) {
            const struct oracle_setup setup = { (bsm_format)f, random_recipe(t, (bsm_format)f, 0),
                                                (bsm_nonfinite)(n % 2), n % 3 == 0 ? 1 : 0.3f, n % 3 == 2 };
            const struct bsmi_block_quantizer quantizer = quantizer_of(&setup, BSM_ROUND_NEAREST_EVEN, 0);
            struct bsmi_block_stats stats = { 0 };
            long double signal = 0, noise = 0;
            double amax = 0;
            for (int b = 0; b < 10; b++) {
                float x[16];
                uint8_t codes[16];
                for (int i = 0; i < 16; i++) x[i] = b == 3 && i == 7 ? NAN : (float)rnd_normal(t);
                const uint8_t scale = bsmi_quantize_block(&quantizer, x, 16, 0, codes, &stats);
                for (int i = 0; i < 16; i++) {
                    const double element = oracle_decode(bsm_format_get(f)->element, codes[i]);
                    const double s = f == BSM_NVFP4 ? oracle_decode(BSM_E4M3, scale)
                                     : scale == 255 ? (double)NAN
                                                    : ldexp(1, scale - 127);
                    const double back = setup.divides ? element * s / (double)setup.tensor_scale
                                                      : element * s * (double)setup.tensor_scale;
                    if (isfinite(x[i])) amax = fmax(amax, fabs((double)x[i]));
                    if (!isfinite(x[i]) || !isfinite(back)) continue;
                    signal += (long double)x[i] * x[i];
                    noise += ((long double)x[i] - back) * ((long double)x[i] - back);
                }
            }
            CHECK(t, fabsl(stats.signal - signal) <= 1e-13L * signal);
            CHECK(t, fabsl(stats.noise - noise) <= 1e-12L * noise);
            CHECK(t, noise > 0 && stats.amax == amax && stats.nan_blocks == (n % 2 == 0));
            CHECK(t, stats.blocks == 10 && stats.elements == 160);
        }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        TEST(random_blocks),
        TEST(around_every_midpoint),
        TEST(e2m1_ties_in_plain_numbers),
        TEST(zero_blocks),
        TEST(one_nonzero_per_block),
        TEST(every_magnitude),
        TEST(between_max_and_twice_max),
        TEST(what_is_not_finite),
        TEST(flushed_blocks),
        TEST(divisors_are_not_inverted),
        TEST(stochastic_rounding),
        TEST(stochastic_rounding_is_unbiased),
        TEST(sums_of_squares),
    };
    return TEST_MAIN(argc, argv, cases);
}
