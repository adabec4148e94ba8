/* Every instance of the GEMM kernels of gfx950 on gfxsim, with every pair of elements, at the edges of M, N and K, and
 * all that their epilogue does, against the library on the CPU.  Data are such that every sum is exact in fp32 in any
 * order: bits are compared.  The environment chooses gfxsim's schedule, seed and rounding; the list of tests has
 * several of them. */
#include "gemm_case.h"

#include <math.h>
#include <stdlib.h>
#include <strings.h>

static const bsm_format formats[] = { BSM_MXFP8_E4M3, BSM_MXFP8_E5M2, BSM_MXFP6_E2M3, BSM_MXFP6_E3M2, BSM_MXFP4 };
enum { FORMATS = sizeof formats / sizeof formats[0] };

static const struct gemm_instance *instance_of(const char *tile, bool scaled)
{
    for (int i = 0; i < gemm_instance_count; i++)
        if (strcmp(gemm_instances[i].tile, tile) == 0 && gemm_instances[i].scaled == scaled) return &gemm_instances[i];
    return NULL;
}

static int64_t drawn(struct test *t, const int64_t *numbers, int count) { return numbers[rnd_below(t, count)]; }
#define DRAWN(t, ...) drawn(t, (const int64_t[]){ __VA_ARGS__ }, sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t))

static int64_t drawn_k(struct test *t)
{
    return DRAWN(t, 1, 7, 31, 32, 33, 64, 96, 127, 128, 129, 160, 192, 255, 256, 257, 384, 511, 512, 515, 640, 768);
}

/* One side of D: a little of a tile, all of it, or a little more. */
static int64_t drawn_side(struct test *t, int64_t tile)
{
    return DRAWN(t, 1, 15, 16, 17, 33, tile - 1, tile, tile + 1, tile / 2 + 3);
}

static void run_pair(struct test *t, const struct gemm_instance *instance, bsm_format a, bsm_format b)
{
    struct gemm_case of = { .instance = instance, .a = a, .b = b, .d = BSM_FORMAT_FP32, .k = drawn_k(t) };
    of.m = drawn_side(t, instance->rows);
    /* Two tiles at most. */
    of.n = of.m > instance->rows ? DRAWN(t, 1, 15, 16, 33, instance->columns - 1, instance->columns)
                                 : drawn_side(t, instance->columns);
    of.direct = rnd_below(t, 2) == 1;
    gemm_case_run(t, &of);
}

static void every_pair_of_the_tile(struct test *t, const char *tile)
{
    for (int i = 0; i < FORMATS * FORMATS; i++)
        run_pair(t, instance_of(tile, true), formats[i / FORMATS], formats[i % FORMATS]);
}

static void every_pair_32x128(struct test *t) { every_pair_of_the_tile(t, "32x128"); }
static void every_pair_128x128(struct test *t) { every_pair_of_the_tile(t, "128x128"); }

/* Of the large tiles, for which gfxsim wants a tenth of a second each, a third of the pairs: those of a seed. */
static void some_pairs_of_the_tile(struct test *t, const char *tile)
{
    for (int i = (int)(t->seed % 3); i < FORMATS * FORMATS; i += 3)
        run_pair(t, instance_of(tile, true), formats[i / FORMATS], formats[i % FORMATS]);
}
static void some_pairs_256x256(struct test *t) { some_pairs_of_the_tile(t, "256x256"); }
static void some_pairs_256x256_32(struct test *t) { some_pairs_of_the_tile(t, "256x256_32"); }

static bsm_format format_named(const char *name)
{
    for (int i = 0; i < FORMATS; i++)
        if (strcasecmp(bsm_element_get(bsm_format_get(formats[i])->element)->name, name) == 0) return formats[i];
    return BSM_FORMAT_NONE;
}

static void prepacked_weights(struct test *t)
{
#define PAIR(a, b) { #a, #b },
    static const char *const pairs[][2] = { BSMI_HIP_GEMM_PREPACKED_PAIRS(PAIR) };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        for (int j = 0; j < 6; j++) {
            const struct gemm_instance *instance = instance_of(j == 0 ? "256x256_prepacked" : "32x128_prepacked", true);
            run_pair(t, instance, format_named(pairs[i][0]), format_named(pairs[i][1]));
        }
    for (int64_t k = 3; k < 600; k += 29) {
        const struct gemm_case of = { .instance = instance_of("32x128_prepacked", true),
                                      .m = 20,
                                      .n = 150,
                                      .k = k,
                                      .a = formats[k % FORMATS],
                                      .b = BSM_MXFP4,
                                      .a_batch = 2,
                                      .b_batch = 2,
                                      .d = BSM_FORMAT_FP32 };
        gemm_case_run(t, &of);
    }
}

static void bf16_rows(struct test *t)
{
    for (int i = 0; i < gemm_instance_count; i++)
        for (int j = 0; j < 2; j++)
            if (!gemm_instances[i].scaled) run_pair(t, &gemm_instances[i], BSM_FORMAT_BF16, BSM_FORMAT_BF16);
}

/* K of every remainder that a step can have, for one pair of each kind of step. */
static void every_rest_of_k(struct test *t)
{
    static const bsm_format pairs[][2] = { { BSM_MXFP4, BSM_MXFP4 },
                                           { BSM_MXFP6_E2M3, BSM_MXFP8_E5M2 },
                                           { BSM_MXFP8_E4M3, BSM_MXFP4 } };
    for (int pair = 0; pair < 3; pair++)
        for (int64_t k = 1 + rnd_below(t, 8); k < 530; k += 8) {
            const struct gemm_case of = { .instance = instance_of("32x128", true),
                                          .a = pairs[pair][0],
                                          .b = pairs[pair][1],
                                          .m = 17,
                                          .n = 40,
                                          .k = k,
                                          .d = BSM_FORMAT_FP32 };
            gemm_case_run(t, &of);
        }
}

/* ---- the epilogue ---- */

enum { MOST = 300 };
static float numbers[MOST];
static uint16_t narrow[MOST];

static void draw_numbers(struct test *t, bsm_element element)
{
    for (int i = 0; i < MOST; i++) {
        numbers[i] = (float)rnd_between(t, -8, 8) / 4;
        narrow[i] = (uint16_t)bsm_element_encode(element, numbers[i], BSM_ROUND_NEAREST_EVEN, true, 0);
    }
}

static void every_epilogue(struct test *t)
{
    static const bsm_format types[] = { BSM_FORMAT_FP32, BSM_FORMAT_BF16, BSM_FORMAT_FP16 };
    static const bsm_real reals[] = { BSM_REAL_FP32, BSM_REAL_BF16, BSM_REAL_FP16 };
    static float alphas[MOST];
    static const float betas[] = { 0, 1, -0.5f };
    for (int i = 0; i < 96; i++) {
        const int type = i % 3, c_type = i / 3 % 3, bias_type = (i / 9 + i) % 3;
        draw_numbers(t, bias_type == 1 ? BSM_BF16 : BSM_FP16);
        for (int j = 0; j < MOST; j++) alphas[j] = (float)rnd_between(t, -4, 4) / 2;
        struct gemm_case of = { .instance = instance_of(i % 8 == 0 ? "128x128" : "32x128", true),
                                .a = BSM_MXFP4,
                                .b = formats[i % FORMATS],
                                .m = rnd_between(t, 1, 40),
                                .n = rnd_between(t, 1, 140),
                                .k = 32 * rnd_between(t, 1, 6),
                                .d = types[type],
                                .direct = true,
                                .relu = i % 5 == 0 };
        if (i % 4 != 3) of.alpha = alphas, of.alpha_per = (bsm_per)(i / 4 % 4);
        if (i % 3 != 0) of.c = types[c_type], of.beta = &betas[i % 7 % 3];
        if (i % 2 == 0) {
            of.bias = bias_type == 0 ? (const void *)numbers : narrow, of.bias_type = reals[bias_type];
            of.bias_per = i % 4 == 0 ? BSM_PER_ROW : BSM_PER_COLUMN;
        }
        if (i % 3 == 1) of.d_pitch = of.n + rnd_below(t, 9);
        gemm_case_run(t, &of);
    }
}

/* Every element of quantized D and every recipe of e8m0, on tiles with one, two and four blocks of a wave's row. */
static void every_quantized_d(struct test *t)
{
    static const bsm_recipe recipes[] = { BSM_RECIPE_RCEIL, BSM_RECIPE_FLOOR, BSM_RECIPE_CEIL, BSM_RECIPE_EVEN };
    static const char *const tiles[] = { "32x128", "128x128", "256x256", "256x256_32" };
    static float alphas[MOST];
    for (int i = 0; i < 40; i++) {
        for (int j = 0; j < MOST; j++)
            alphas[j] = j == 40 && i % 4 == 3 ? INFINITY : (float)rnd_normal(t) * (i % 7 == 3 ? 0x1p-130f : 1);
        const struct gemm_case of = { .instance = instance_of(tiles[i < 20 ? 0 : i < 30 ? 1 : 2 + i % 2], true),
                                      .a = i < 20 ? formats[i % FORMATS] : BSM_MXFP8_E4M3,
                                      .b = BSM_MXFP4,
                                      .m = rnd_between(t, 1, 70),
                                      .n = 32 * rnd_between(t, 1, 9),
                                      .k = 32,
                                      .a_batch = 1 + i % 2,
                                      .b_batch = 1 + i % 2,
                                      .d = formats[i % FORMATS],
                                      .direct = true,
                                      .recipe = recipes[i / FORMATS % 4],
                                      .scales_in_lane_order = i % 3 == 0,
                                      .nan_scale = i % 8 == 1 ? 1 : 0,
                                      .flagged_nans = i % 8 == 1,
                                      .relu = i % 6 == 5,
                                      .alpha = alphas,
                                      .alpha_per = BSM_PER_COLUMN };
        gemm_case_run(t, &of);
    }
}

static void batches(struct test *t)
{
    for (int i = 0; i < 4; i++) {
        const struct gemm_case of = { .instance = instance_of("32x128", true),
                                      .a = formats[i],
                                      .b = BSM_MXFP4,
                                      .m = 35,
                                      .n = 130,
                                      .k = 70,
                                      .a_batch = i == 1 ? 1 : 3,
                                      .b_batch = i == 2 ? 1 : 3,
                                      .d = BSM_FORMAT_FP32,
                                      .direct = i != 0 };
        gemm_case_run(t, &of);
    }
}

static void groups(struct test *t)
{
    static const int64_t rows[][5] = {
        { 5, 0, 40, 1, 33 }, { 32, 32, 0, 0, 7 }, { 0, 0, 0, 0, 3 }, { 31, 1, 64, 2, 90 }
    };
    for (int i = 0; i < 8; i++) {
        struct gemm_case of = { .instance = instance_of(i % 4 == 3 ? "128x128" : "32x128", true),
                                .a = formats[i % FORMATS],
                                .b = formats[(i + 2) % FORMATS],
                                .n = 131,
                                .k = 96,
                                .groups = 5,
                                .group_rows = rows[i % 4],
                                .d = BSM_FORMAT_BF16,
                                .direct = true,
                                .band_rows = 1 + i % 3 };
        for (int g = 0; g < 5; g++) of.m += rows[i % 4][g];
        gemm_case_run(t, &of);
    }
}

/* More tiles than XCDs, and bands that do not divide them. */
static void order_of_tiles(struct test *t)
{
    for (int i = 0; i < 4; i++) {
        const struct gemm_case of = { .instance = instance_of("32x128", true),
                                      .a = BSM_MXFP4,
                                      .b = BSM_MXFP4,
                                      .m = 32 * (1 + 2 * i) + 1,
                                      .n = 128 * (5 - i) + 9,
                                      .k = 32,
                                      .d = BSM_FORMAT_FP32,
                                      .band_rows = 1 + i };
        gemm_case_run(t, &of);
    }
}

/* A NaN touches its row (column) of D alone. */
static void nans(struct test *t)
{
    for (int i = 0; i < 9; i++) {
        const struct gemm_case of = { .instance = instance_of("32x128", true),
                                      .a = formats[i % 2],
                                      .b = formats[i % FORMATS],
                                      .m = 31,
                                      .n = 65,
                                      .k = DRAWN(t, 64, 100, 300),
                                      .nan_scale = 1 + i % 3,
                                      .d = i % 3 == 0   ? BSM_FORMAT_FP32
                                           : i % 3 == 1 ? BSM_FORMAT_BF16
                                                        : BSM_FORMAT_FP16,
                                      .direct = true };
        gemm_case_run(t, &of);
    }
}

/* NaN scales by bits of rows: with them the product has no NaN scale at all. */
static void nan_scales_by_bits(struct test *t)
{
    for (int i = 0; i < 12; i++) {
        const struct gemm_case of = { .instance = instance_of(i % 6 == 5 ? "256x256_32" : "32x128", true),
                                      .a = formats[i % FORMATS],
                                      .b = formats[(i + 3) % FORMATS],
                                      .m = rnd_between(t, 1, 90),
                                      .n = rnd_between(t, 1, 200),
                                      .k = DRAWN(t, 32, 64, 100, 300, 520),
                                      .nan_scale = 1 + i % 2,
                                      .a_batch = i % 3 == 2 ? 2 : 1,
                                      .b_batch = i % 3 == 2 ? 2 : 1,
                                      .flagged_nans = true,
                                      .d = BSM_FORMAT_FP32,
                                      .direct = i % 4 != 0 };
        gemm_case_run(t, &of);
    }
}

/* All codes and scales from 2^-20 to 2^20: sums are rounded, in one of the models, and held to their bound. */
static void all_codes(struct test *t)
{
    for (int i = 0; i < FORMATS * FORMATS; i++) {
        const struct gemm_case of = { .instance = instance_of("32x128", true),
                                      .a = formats[i / FORMATS],
                                      .b = formats[i % FORMATS],
                                      .m = 32,
                                      .n = 24,
                                      .k = 200,
                                      .wide = true,
                                      .d = BSM_FORMAT_FP32 };
        gemm_case_run(t, &of);
    }
}

/* GFX950_INSTANCE=A_B_TILE (bf16_TILE): all that one code object does, for test_mutants.py. */
static bool named_instance(struct gemm_case *of)
{
    const char *name = getenv("GFX950_INSTANCE");
    for (int i = 0; name != NULL && i < gemm_instance_count; i++)
        for (int pair = 0; pair < FORMATS * FORMATS; pair++) {
            const struct gemm_instance *instance = &gemm_instances[i];
            char own[256] = "bf16";
            if (instance->scaled)
                snprintf(own, sizeof own, "%s_%s",
                         bsm_element_get(bsm_format_get(formats[pair / FORMATS])->element)->name,
                         bsm_element_get(bsm_format_get(formats[pair % FORMATS])->element)->name);
            const size_t length = strlen(own);
            if (strncmp(name, own, length) != 0 || name[length] != '_'
                || strcmp(name + length + 1, instance->tile) != 0)
                continue;
            *of = (struct gemm_case){ .instance = instance,
                                      .a = instance->scaled ? formats[pair / FORMATS] : BSM_FORMAT_BF16,
                                      .b = instance->scaled ? formats[pair % FORMATS] : BSM_FORMAT_BF16 };
            return true;
        }
    return false;
}

/* Magnitudes of a block that FLOOR saturates, a block with infinity, and two matrices. */
static void quantized_by_one(struct test *t, const struct gemm_instance *instance, bsm_format a, bsm_format b)
{
    static float alphas[MOST];
    for (int j = 0; j < MOST; j++) alphas[j] = j == 40 ? INFINITY : (float)rnd_normal(t);
    for (int i = 0; i < FORMATS; i++) {
        const struct gemm_case of = { .instance = instance, .a = a, .b = b, .d = formats[i], .m = 20, .n = 160, .k = 64,
                                      .a_batch = 2, .b_batch = 2, .direct = true, .recipe = BSM_RECIPE_FLOOR,
                                      .scales_in_lane_order = i % 2 == 0, .alpha = alphas,
                                      .alpha_per = BSM_PER_COLUMN };
        gemm_case_run(t, &of);
    }
}

static void one_instance(struct test *t)
{
    struct gemm_case of;
    if (!named_instance(&of)) {
        test_skip(t, "GFX950_INSTANCE names none");
        return;
    }
    const float beta = 0.5f, alpha = 2;
    static const int64_t rows[] = { 5, 0, 40 };
    draw_numbers(t, BSM_BF16);
    /* Whole steps and a rest; then all of the epilogue; then batches and groups. */
    of.d = BSM_FORMAT_FP32, of.m = of.instance->rows - 3, of.n = of.instance->columns - 5, of.k = 1024;
    gemm_case_run(t, &of);
    of.direct = true, of.m = 21, of.n = 43, of.k = 1190, of.alpha = &alpha, of.beta = &beta, of.relu = true;
    of.c = BSM_FORMAT_BF16, of.d = BSM_FORMAT_BF16, of.d_pitch = 48;
    of.bias = narrow, of.bias_type = BSM_REAL_BF16, of.bias_per = BSM_PER_COLUMN;
    gemm_case_run(t, &of);
    of.c = BSM_FORMAT_FP16, of.d = BSM_FORMAT_FP16, of.d_pitch = 0, of.bias_per = BSM_PER_ROW, of.k = 96;
    of.alpha = numbers, of.alpha_per = BSM_PER_COLUMN, of.bias = numbers, of.bias_type = BSM_REAL_FP32;
    gemm_case_run(t, &of);
    of.c = BSM_FORMAT_FP32, of.d = BSM_FORMAT_FP32, of.alpha_per = BSM_PER_ROW, of.relu = false;
    gemm_case_run(t, &of);
    of.alpha_per = BSM_PER_BATCH, of.bias = NULL, of.a_batch = of.b_batch = 2;
    gemm_case_run(t, &of);
    of.alpha_per = BSM_PER_COLUMN, of.beta = NULL, of.c = BSM_FORMAT_NONE, of.relu = true; /* zeros of both signs */
    numbers[1] = 0;
    gemm_case_run(t, &of);
    quantized_by_one(t, of.instance, of.a, of.b);
    of.m = 45, of.a_batch = of.b_batch = 0, of.groups = 3, of.group_rows = rows;
    gemm_case_run(t, &of);
    if (!of.instance->scaled) return;
    of.groups = 0, of.group_rows = NULL, of.flagged_nans = true, of.nan_scale = 1;
    gemm_case_run(t, &of);
    of.nan_scale = 2;
    gemm_case_run(t, &of);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        TEST(every_pair_32x128),
        TEST(every_pair_128x128),
        TEST(some_pairs_256x256),
        TEST(some_pairs_256x256_32),
        TEST(bf16_rows),
        TEST(every_rest_of_k),
        TEST(every_epilogue),
        TEST(every_quantized_d),
        TEST(batches),
        TEST(groups),
        TEST(order_of_tiles),
        TEST(nans),
        TEST(all_codes),
        TEST(nan_scales_by_bits),
        TEST(prepacked_weights),
    };
    static const struct test_case one[] = { TEST(one_instance) };
    return getenv("GFX950_INSTANCE") != NULL ? TEST_MAIN(argc, argv, one) : TEST_MAIN(argc, argv, cases);
}
