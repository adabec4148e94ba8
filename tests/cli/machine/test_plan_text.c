/* Plans for people: the short line has kernel, tile and reason, and never more than its columns. */
#include "test.h"
#include "cli/cli.h"
#include "cli/machine/plan_text.h"

#define TABLE "the first kernel of the table that this CPU runs"

static const struct { const char *description, *in_short; } plans[] = {
    { "cpu, kernel terms_avx512, tiles of 70 x 128, threads 2, order: k ascending, one fused multiply-add each; "
      "chosen for bf16 x mxfp4: " TABLE,
      "terms_avx512, tiles of 70 x 128: " TABLE },
    { "cuda, kernel cuda_wgmma_128x256_2x1, tiles of 128 x 256, clusters of 2 x 1, A (mxfp8_e4m3) as bf16, B (bf16) as "
      "it is, D finished by the same kernel, workspace 64 bytes, order: tensor cores along K in fp32; "
      "chosen because: the least time (6 tiles, 1 wave, about 12.3 us)",
      "cuda_wgmma_128x256_2x1, tiles of 128 x 256: the least time" },
    { "cuda, kernel cuda_x, tiles of 16 x 64, order: any; chosen because: forced; with prepacked B: cuda_y",
      "cuda_x, tiles of 16 x 64: forced" },
    { "cuda, kernel cuda_simt, an element a thread, order: the portable one; chosen because: K is 0: nothing to "
      "multiply",
      "cuda_simt: K is 0: nothing to multiply" },
    { "cpu, kernel only", "only" },
    { "", "" },
    { "K is missing", "K is missing" },
};

static void short_lines(struct test *t)
{
    char text[PLAN_TEXT_BYTES];
    for (size_t i = 0; i < sizeof plans / sizeof plans[0]; i++) {
        plan_in_short(plans[i].description, 91, text, sizeof text);
        if (strcmp(text, plans[i].in_short) != 0) FAIL(t, "\"%s\", not \"%s\"", text, plans[i].in_short);
    }
}

/* The tile goes first, then the reason; the kernel stays. */
static void narrow_lines(struct test *t)
{
    char text[PLAN_TEXT_BYTES];
    for (size_t i = 0; i < sizeof plans / sizeof plans[0]; i++)
        for (int columns = 22; columns < 100; columns++) {
            plan_in_short(plans[i].description, columns, text, sizeof text);
            CHECK(t, cli_text_width(text) <= columns);
            CHECK(t, (text[0] == '\0') == (plans[i].description[0] == '\0'));
        }
    plan_in_short(plans[0].description, 79, text, sizeof text);
    CHECK(t, strcmp(text, "terms_avx512: " TABLE) == 0);
    plan_in_short(plans[0].description, 40, text, sizeof text);
    CHECK(t, strcmp(text, "terms_avx512") == 0);
    const char *portable = "cpu, kernel exact_blocks_portable, tiles of 72 x 128, threads 2; "
                           "chosen for mxfp4 x mxfp4: portable C: this context has no CPU feature that a better kernel "
                           "needs";
    plan_in_short(portable, 91, text, sizeof text);
    CHECK(t, strcmp(text, "exact_blocks_portable, tiles of 72 x 128: portable C") == 0);
    plan_in_short(portable, 36, text, sizeof text);
    CHECK(t, strcmp(text, "exact_blocks_portable: portable C") == 0);
}

/* By the kernel's name: a CPU's int8 kernels and mxint8 operands are something else. */
static void int8_rows_are_of_gpus(struct test *t)
{
    CHECK(t,
          plan_multiplies_int8_rows("cuda, kernel cuda_wgmma_int8_128x256_2x1, tiles of 128 x 256; chosen because: x"));
    CHECK(t, !plan_multiplies_int8_rows("cuda, kernel cuda_wgmma_64x48_1x1, tiles of 64 x 48, A (mxint8) as it is"));
    CHECK(t, !plan_multiplies_int8_rows("cpu, kernel int8_few_rows_avx2, tiles of 8 x 128")
                 && !plan_multiplies_int8_rows(""));
}

/* What the library says of the products that it really plans has the form that the short line is read from. */
static void the_library_is_understood(struct test *t)
{
    bsm_context *context = NULL;
    CHECK_OR_RETURN(t, bsm_context_create(NULL, &context) == BSM_OK);
    float a[2] = { 1, 2 }, b[2] = { 3, 4 }, d[1];
    const bsm_matrix am = { .struct_size = sizeof am, .format = BSM_FORMAT_FP32, .rows = 1, .columns = 2, .data = a };
    const bsm_matrix bm = { .struct_size = sizeof bm, .format = BSM_FORMAT_FP32, .rows = 1, .columns = 2, .data = b };
    const bsm_matrix dm = { .struct_size = sizeof dm, .format = BSM_FORMAT_FP32, .rows = 1, .columns = 1, .data = d };
    const bsm_matmul product = { .struct_size = sizeof product, .a = &am, .b = &bm, .d = &dm };
    int planned = 0;
    for (int kernel = 0; bsm_kernel_name(kernel) != NULL; kernel++) {
        char whole[PLAN_TEXT_BYTES], text[PLAN_TEXT_BYTES], start[128];
        bsm_plan *plan = NULL;
        if (!bsm_kernel_serves(context, kernel, BSM_FORMAT_FP32, BSM_FORMAT_FP32)) continue;
        CHECK(t, bsm_context_force_kernel(context, kernel) == BSM_OK);
        if (bsm_plan_create(context, &product, &plan) != BSM_OK) continue;
        CHECK(t, bsm_plan_describe(plan, whole, sizeof whole) < sizeof whole);
        bsm_plan_destroy(plan);
        plan_in_short(whole, 100, text, sizeof text);
        snprintf(start, sizeof start, "%s, tiles of ", bsm_kernel_name(kernel));
        CHECK(t, strncmp(text, start, strlen(start)) == 0 && strstr(text, ": forced") != NULL);
        planned++;
    }
    CHECK(t, planned > 0);
    bsm_context_destroy(context);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(short_lines), TEST(narrow_lines), TEST(int8_rows_are_of_gpus),
                                              TEST(the_library_is_understood) };
    return TEST_MAIN(argc, argv, cases);
}
