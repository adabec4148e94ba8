/* MSE, the better of two scales: examples, ties and what lies beside them, every CPU feature set, where it is
 * refused. */
#include "blockscale.h"
#include "core/core.h"
#include "oracle_block.h"
#include "test.h"

#include <math.h>

enum { BLOCK = 32, MOST = 40 * BLOCK };

static bsm_context *context_of(uint32_t features)
{
    const bsm_context_options options = { .struct_size = sizeof options, .threads = 1, .cpu_mask = features };
    bsm_context *context = NULL;
    return bsm_context_create(&options, &context) == BSM_OK ? context : NULL;
}

static bsm_status quantize(bsm_context *context, const float *x, int64_t count, bsm_format format, bsm_recipe recipe,
                           uint8_t *codes, uint8_t *scales, bsm_quantize_stats *stats)
{
    const bsm_real_matrix source = { .struct_size = sizeof source, .rows = 1, .columns = count,
                                     .data = (void *)(uintptr_t)x,
                                     .row_stride = count, .column_stride = 1 };
    const bsm_matrix destination = { .struct_size = sizeof destination, .format = format, .packing = BSM_PACKING_BYTES,
                                     .rows = 1,
                                     .columns = count, .data = codes, .scales = scales };
    const bsm_quantize_options options = { .struct_size = sizeof options, .recipe = recipe };
    return bsm_quantize(context, &source, &options, &destination, stats);
}

/* Scale 2^0 is RCEIL's of 6 and more, 2^1 of 7; examples that can be seen. */
static void examples(struct test *t)
{
    static const struct { float x[4]; uint8_t scale, codes[4]; } rows[] = {
        { { 6, 3, 1, 0.5f }, 127, { 7, 5, 2, 1 } },      /* both recipes take 2^0 */
        { { 7, 0.5f, 1.5f, 3 }, 127, { 7, 1, 3, 5 } },   /* 7 is cut to 6; 0.5 and 1.5 are codes under 2^0 alone */
        { { 8, 0.5f, 4, 2 }, 128, { 6, 0, 4, 2 } },      /* 8 cut to 6 costs 4, 0.5 lost 0.25 */
        { { 7.0625f, 0.5f, 0, 0 }, 128, { 6, 0, 0, 0 } },        /* 1.0625^2 - 0.9375^2 = 0.25: equal, and RCEIL's */
        { { 0, 0, -0.0f, 0 }, 0, { 0, 0, 8, 0 } },
    };
    bsm_context *context = context_of(0);
    CHECK_OR_RETURN(t, context != NULL);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint8_t codes[4], scales[1];
        CHECK(t, quantize(context, rows[i].x, 4, BSM_MXFP4, BSM_RECIPE_MSE, codes, scales, NULL) == BSM_OK);
        if (scales[0] != rows[i].scale || memcmp(codes, rows[i].codes, 4) != 0)
            FAIL(t, "example %zu: scale %d, codes %d %d %d %d", i, scales[0], codes[0], codes[1], codes[2], codes[3]);
    }
    bsm_context_destroy(context);
}

static float beside(struct test *t, float x)
{
    const int64_t step = rnd_between(t, -1, 1);
    return step == 0 ? x : nextafterf(x, step > 0 ? INFINITY : 0);
}

/* What a quotient's error is larger under the lower scale by, times 2^25. */
static double more_below(float q)
{
    const double whole = q >= 1 ? (double)q - 1 : (double)q;
    if (q < 2) return (whole < 0.25 || whole > 0.75 ? 0 : fabs(whole - 0.5) - 0.25) * 0x1p25;
    return (q > 7 ? 4 * (double)q - 28 : 0) * 0x1p25;
}

/* A block whose two errors are equal, or almost: the largest number is what the others ask for. */
static void fill_balanced(struct test *t, float *x, int count)
{
    double sum = 0;
    const int used = (int)rnd_between(t, 1, count - 1), size = (int)rnd_between(t, -100, 100);
    for (int i = 0; i < count; i++) x[i] = 0;
    for (int i = 0; i < used; i++) {
        const int bits = (int)rnd_between(t, 3, 23);
        const double fraction = (double)rnd_below(t, (int64_t)1 << bits) / (double)((int64_t)1 << bits);
        x[1 + i] = (float)(rnd_below(t, 8) == 0   ? 7 + fraction
                           : rnd_below(t, 2) == 0 ? 0.25 + fraction / 2
                                                  : 1.25 + fraction / 2);
        if (sum + more_below(x[1 + i]) > 0) x[1 + i] = 0;
        sum += more_below(x[1 + i]);
    }
    x[0] = (float)(7 + -sum * 0x1p-25 / 4);
    if (!(x[0] < 8)) x[0] = 7.5f;
    const int near = (int)rnd_below(t, count);
    x[near] = beside(t, x[near]);
    for (int i = 0; i < count; i++) x[i] = ldexpf(rnd_below(t, 2) == 0 ? x[i] : -x[i], size);
    const int other = (int)rnd_below(t, count);
    const float first = x[0];
    x[0] = x[other], x[other] = first;
}

static void fill_block(struct test *t, float *x, int count)
{
    const float size = ldexpf(1, (int)rnd_between(t, -120, 100));
    const int64_t kind = rnd_below(t, 6);
    if (kind < 4) fill_balanced(t, x, count);
    /* all are cut */
    for (int i = 0; i < count && kind == 4; i++) x[i] = size * (8 - 0x1p-10f * (float)rnd_below(t, 1000));
    for (int i = 0; i < count && kind == 5; i++) x[i] = size * (float)rnd_normal(t);
}

/* Every CPU feature set that has another kernel, against integers. */
static void near_ties_on_every_cpu(struct test *t)
{
    static const uint32_t masks[] = { BSM_CPU_ALL, BSM_CPU_ALL & ~(uint32_t)BSM_CPU_AVX512, BSM_CPU_FMA };
    int low = 0, high = 0;
    for (int m = 0; m < 3; m++) {
        bsm_context *context = context_of(masks[m]);
        CHECK_OR_RETURN(t, context != NULL);
        for (int n = 0; n < 300; n++) {
            const bsm_format format = n % 2 == 0 ? BSM_MXFP4 : BSM_MXFP4_BLOCK16;
            const int block = n % 2 == 0 ? 32 : 16, blocks = (int)rnd_between(t, 1, 20);
            const struct oracle_setup setup = { format, BSM_RECIPE_MSE, BSM_NONFINITE_PROPAGATE, 1, false };
            float x[MOST];
            uint8_t codes[MOST], scales[MOST];
            for (int b = 0; b < blocks; b++) fill_block(t, x + b * block, block);
            CHECK(t, quantize(context, x, blocks * block, format, BSM_RECIPE_MSE, codes, scales, NULL) == BSM_OK);
            for (int b = 0; b < blocks; b++) {
                struct oracle_block want;
                oracle_quantize_block(&setup, x + b * block, block, &want);
                if (scales[b] != want.scale || memcmp(codes + b * block, want.codes, (size_t)block) != 0)
                    FAIL(t, "mask %d, block %d of %d: scale %d, want %d", m, b, blocks, scales[b], want.scale);
                struct oracle_setup plain = setup;
                plain.recipe = BSM_RECIPE_RCEIL;
                oracle_quantize_block(&plain, x + b * block, block, &want);
                if (scales[b] == want.scale) high++;
                else low++;
            }
        }
        bsm_context_destroy(context);
    }
    CHECK(t, low > 1500 && high > 1500);
}

/* Less noise than any recipe without a search, for every e8m0 format. */
static void never_more_noise(struct test *t)
{
    bsm_context *context = context_of(0);
    CHECK_OR_RETURN(t, context != NULL);
    for (int format = BSM_MXFP8_E4M3; format < BSM_NVFP4; format++) {
        float x[MOST];
        uint8_t codes[MOST], scales[MOST];
        bsm_quantize_stats best = { .struct_size = sizeof best };
        for (int i = 0; i < MOST; i++) x[i] = (float)rnd_normal(t);
        CHECK(t, quantize(context, x, MOST, (bsm_format)format, BSM_RECIPE_MSE, codes, scales, &best) == BSM_OK);
        for (int recipe = BSM_RECIPE_FLOOR; recipe <= BSM_RECIPE_EVEN; recipe++) {
            bsm_quantize_stats stats = { .struct_size = sizeof stats };
            CHECK(t,
                  quantize(context, x, MOST, (bsm_format)format, (bsm_recipe)recipe, codes, scales, &stats) == BSM_OK);
            if (!(best.noise <= stats.noise * (1 + 1e-12)))
                FAIL(t, "%s: noise %g, with %s %g", bsm_format_get(format)->name, best.noise, bsm_recipe_name(recipe),
                     stats.noise);
        }
    }
    bsm_context_destroy(context);
}

static void refused(struct test *t)
{
    float x[32] = { 0 };
    uint8_t codes[32], scales[2];
    bsm_context *context = context_of(0);
    CHECK_OR_RETURN(t, context != NULL);
    const bsm_matrix a = { .struct_size = sizeof a, .format = BSM_FORMAT_FP32, .rows = 1, .columns = 32, .data = x };
    const bsm_matrix out = { .struct_size = sizeof out, .format = BSM_MXFP4, .packing = BSM_PACKING_BYTES, .rows = 1,
                             .columns = 1,
                             .data = codes, .scales = scales };
    bsm_matmul product = { .struct_size = sizeof product, .a = &a, .b = &a, .d = &out, .d_recipe = BSM_RECIPE_MSE };
    CHECK(t, bsm_supported(context, &product) == BSM_EUNSUPPORTED);
    CHECK(t, strstr(bsm_last_error(), "d_recipe=mse: products quantize their results in one pass") != NULL);
    CHECK(t, quantize(context, x, 32, BSM_NVFP4, BSM_RECIPE_MSE, codes, scales, NULL) == BSM_EINVAL);
    CHECK(t, strstr(bsm_last_error(), "mse gives e8m0 scales") != NULL);
    bsm_context_destroy(context);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(examples), TEST(near_ties_on_every_cpu), TEST(never_more_noise),
                                              TEST(refused) };
    return TEST_MAIN(argc, argv, cases);
}
