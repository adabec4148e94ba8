/* Four over six: against trying everything, block by block; computed tensor scales; where it is refused. */
#include "blockscale.h"
#include "test.h"

#include <float.h>
#include <math.h>

enum { BLOCK = 16 };
static const double e2m1[8] = { 0, 0.5, 1, 1.5, 2, 3, 4, 6 };

/* Tries every code: the nearest to numerator / 1 among values[0 .. count), ties to the even code. */
static int nearest_of(const long double *values, int count, long double wanted)
{
    int best = 0;
    for (int code = 1; code < count; code++) {
        const long double here = fabsl(values[code] - wanted), there = fabsl(values[best] - wanted);
        if (here < there || (!(here > there) && code % 2 == 0)) best = code;
    }
    return best;
}

struct tried {
    int scale, codes[BLOCK];
    long double error;
};

/* The block under the scale that makes its largest number `target`. */
static struct tried try_target(const float *x, int count, float tensor_scale, bool divides, int target)
{
    struct tried tried = { .error = 0 };
    const long double t = divides ? 1 / (long double)tensor_scale : (long double)tensor_scale;
    long double scales[0x7f], elements[8], amax = 0;
    for (int i = 0; i < count; i++) amax = fmaxl(amax, fabsl((long double)x[i]));
    for (int code = 0; code < 0x7f; code++)
        scales[code] = (long double)bsm_scale_decode(BSM_UE4M3, (uint8_t)code) * t * target;
    tried.scale = nearest_of(scales, 0x7f, amax);
    for (int i = 0; i < count; i++) {
        const long double scale = scales[tried.scale] / target;
        for (int code = 0; code < 8; code++) elements[code] = (long double)e2m1[code] * scale;
        const int code = tried.scale == 0 ? 0 : nearest_of(elements, 8, fabsl((long double)x[i]));
        const long double difference = fabsl((long double)x[i]) - elements[code];
        tried.codes[i] = code | (signbit(x[i]) ? 8 : 0);
        tried.error += difference * difference;
    }
    return tried;
}

static bsm_status quantize(bsm_context *context, const float *x, int64_t count, bsm_recipe recipe, float *tensor_scale,
                           bool divides, bool computed, unsigned char *codes, unsigned char *scales,
                           bsm_quantize_stats *stats)
{
    const bsm_real_matrix source = { .struct_size = sizeof source,
                                     .rows = 1,
                                     .columns = count,
                                     .data = (void *)(uintptr_t)x,
                                     .row_stride = count,
                                     .column_stride = 1 };
    const bsm_matrix destination = { .struct_size = sizeof destination,
                                     .format = BSM_NVFP4,
                                     .packing = BSM_PACKING_BYTES,
                                     .rows = 1,
                                     .columns = count,
                                     .data = codes,
                                     .scales = scales,
                                     .tensor_scale = tensor_scale,
                                     .tensor_scale_use =
                                         divides ? BSM_TENSOR_SCALE_DIVIDES : BSM_TENSOR_SCALE_MULTIPLIES };
    const bsm_quantize_options options = { .struct_size = sizeof options,
                                           .recipe = recipe,
                                           .tensor_scale =
                                               computed ? BSM_TENSOR_SCALE_COMPUTED : BSM_TENSOR_SCALE_GIVEN };
    return bsm_quantize(context, &source, &options, &destination, stats);
}

/* Random blocks of several kinds, whole and short. */
static void every_choice_is_the_better_one(struct test *t)
{
    static const float tensor_scales[] = { 1, 0.5f, 0.0123f, 7 };
    bsm_context *context;
    int fours = 0, sixes = 0;
    CHECK_OR_RETURN(t, bsm_context_create(NULL, &context) == BSM_OK);
    for (int n = 0; n < 4000; n++) {
        float x[BLOCK], tensor_scale = tensor_scales[n % 4];
        unsigned char codes[BLOCK], scales[1];
        const bool divides = n / 4 % 2 != 0;
        const int count = n % 5 == 4 ? 1 + (int)rnd_below(t, BLOCK) : BLOCK;
        for (int i = 0; i < count; i++)
            x[i] = (float)(n % 3 == 0 ? (double)rnd_below(t, 13) - 6 : rnd_normal(t)) * (n % 7 == 6 ? 1e-3f : 40);
        CHECK(t,
              quantize(context, x, count, BSM_RECIPE_FOUR_OVER_SIX, &tensor_scale, divides, false, codes, scales, NULL)
                  == BSM_OK);
        const struct tried six = try_target(x, count, tensor_scale, divides, 6),
                           four = try_target(x, count, tensor_scale, divides, 4);
        const long double least = fminl(six.error, four.error), most = fmaxl(six.error, four.error);
        const bool close = most - least <= 1e-12L * most; /* a tie, or a matter of rounding: 6, but for exact ties
                                                             either */
        const struct tried *want = four.error < six.error ? &four : &six;
        if (close && scales[0] == (unsigned char)four.scale) want = &four;
        CHECK(t, !(close && most > 0) || scales[0] == six.scale || scales[0] == four.scale);
        if (scales[0] != want->scale)
            FAIL(t, "block %d: scale 0x%02x, not 0x%02x; errors %Lg with 6, %Lg with 4", n, scales[0], want->scale,
                 six.error, four.error);
        for (int i = 0; i < count; i++) CHECK(t, codes[i] == want->codes[i]);
        if (want == &four) fours++;
        else sixes++;
    }
    CHECK(t, fours > 500 && sixes > 500);
    bsm_context_destroy(context);
}

/* Examples that can be seen: 4 and 6 are hit exactly; 5 lies between them; equal errors keep 6. */
static void examples(struct test *t)
{
    static const struct {
        float x[4];
        uint8_t scale;
        uint8_t codes[4];
    } rows[] = {
        { { 6, 3, 1, 0 }, 0x38, { 7, 5, 2, 0 } },       /* 6: scale 1, no error */
        { { 6, 4.5f, 3, 1.5f }, 0x3c, { 6, 5, 4, 2 } }, /* 4.5 has no code under 1, but 3 * 1.5 */
        { { 8, 6, 4, 2 }, 0x40, { 6, 5, 4, 2 } },       /* scale 2, not 1.375 */
        { { 0, 0, 0, 0 }, 0, { 0, 0, 0, 0 } },
    };
    bsm_context *context;
    CHECK_OR_RETURN(t, bsm_context_create(NULL, &context) == BSM_OK);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        unsigned char codes[4], scales[1];
        CHECK(t, quantize(context, rows[i].x, 4, BSM_RECIPE_FOUR_OVER_SIX, NULL, false, false, codes, scales, NULL)
                     == BSM_OK);
        if (scales[0] != rows[i].scale || memcmp(codes, rows[i].codes, 4) != 0)
            FAIL(t, "example %zu: scale 0x%02x, codes %d %d %d %d", i, scales[0], codes[0], codes[1], codes[2],
                 codes[3]);
    }
    bsm_context_destroy(context);
}

/* A computed tensor scale leaves room for scales half as large again; less noise than NEAREST on normal numbers. */
static void computed_tensor_scales(struct test *t)
{
    enum { COUNT = 4096 };
    static float x[COUNT];
    static unsigned char codes[COUNT], scales[COUNT / BLOCK];
    bsm_context *context;
    CHECK_OR_RETURN(t, bsm_context_create(NULL, &context) == BSM_OK);
    for (int i = 0; i < COUNT; i++) x[i] = (float)rnd_normal(t);
    x[7] = 6;
    for (int divides = 0; divides < 2; divides++) {
        float tensor_scale = 0;
        bsm_quantize_stats six = { .struct_size = sizeof six }, four = { .struct_size = sizeof four };
        CHECK(t, quantize(context, x, COUNT, BSM_RECIPE_NEAREST, &tensor_scale, divides, true, codes, scales, &six)
                     == BSM_OK);
        CHECK(t,
              quantize(context, x, COUNT, BSM_RECIPE_FOUR_OVER_SIX, &tensor_scale, divides, true, codes, scales, &four)
                  == BSM_OK);
        const float want = divides ? 1536.0f / 6 : 6 / 1536.0f;
        CHECK(t, memcmp(&tensor_scale, &want, sizeof want) == 0);
        CHECK(t, scales[0] == 0x78); /* 256: the block of the largest number */
        CHECK(t, four.noise < 0.9 * six.noise);
    }
    bsm_context_destroy(context);
}

static void refused(struct test *t)
{
    float x[32] = { 0 }, d[32];
    unsigned char codes[32], scales[2];
    bsm_context *context;
    CHECK_OR_RETURN(t, bsm_context_create(NULL, &context) == BSM_OK);
    bsm_matrix a = { .struct_size = sizeof a, .format = BSM_FORMAT_FP32, .rows = 1, .columns = 32, .data = x };
    bsm_matrix out = { .struct_size = sizeof out,
                       .format = BSM_NVFP4,
                       .packing = BSM_PACKING_BYTES,
                       .rows = 1,
                       .columns = 1,
                       .data = codes,
                       .scales = scales };
    bsm_matmul product = { .struct_size = sizeof product, .a = &a, .b = &a, .d = &out,
                           .d_recipe = BSM_RECIPE_FOUR_OVER_SIX };
    CHECK(t, bsm_supported(context, &product) == BSM_EUNSUPPORTED
                 && strstr(bsm_last_error(), "d_recipe=four_over_six") != NULL);
    product.d_recipe = BSM_RECIPE_NEAREST;
    CHECK(t, bsm_supported(context, &product) == BSM_OK);
    const bsm_real_matrix source = {
        .struct_size = sizeof source, .rows = 1, .columns = 32, .data = d, .row_stride = 32, .column_stride = 1
    };
    out.format = BSM_MXFP4, out.columns = 32;
    const bsm_quantize_options options = { .struct_size = sizeof options, .recipe = BSM_RECIPE_FOUR_OVER_SIX };
    CHECK(t, bsm_quantize(context, &source, &options, &out, NULL) == BSM_EINVAL &&
                 strstr(bsm_last_error(), "four_over_six gives ue4m3") != NULL);
    bsm_context_destroy(context);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(every_choice_is_the_better_one), TEST(examples),
                                              TEST(computed_tensor_scales), TEST(refused) };
    return TEST_MAIN(argc, argv, cases);
}
