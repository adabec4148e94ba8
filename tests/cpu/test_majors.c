/* MN-major operands on the CPU: the bits of the product of the same numbers K-major, by every kernel, also with weights
 * packed once; the exact product; what a plan says. */
#include "naive.h"

#include <stdlib.h>

static const struct { bsm_format a, b; } pairs[] = {
    { BSM_MXFP4, BSM_NVFP4 },           { BSM_NVFP4, BSM_NVFP4 },          { BSM_MXFP8_E4M3, BSM_MXFP6_E2M3 },
    { BSM_MXINT8, BSM_MXFP4_BLOCK16 },  { BSM_FORMAT_BF16, BSM_MXFP4 },    { BSM_FORMAT_FP16, BSM_FORMAT_E5M2 },
    { BSM_FORMAT_FP32, BSM_MXFP8_E5M2 }, { BSM_MXFP8_E4M3, BSM_MXFP8_E4M3 }, { BSM_FORMAT_BF16, BSM_FORMAT_BF16 },
};
enum { PAIRS = sizeof pairs / sizeof pairs[0], M = 37, N = 71, K = 165 };

static struct operand filled(struct test *t, bsm_format format, int64_t rows, int64_t columns, int64_t batch)
{
    struct operand o = operand_make(&(struct shape){ .format = format, .rows = rows, .columns = columns,
                                                     .batch = batch }, 0xff);
    operand_fill(t, &o, false);
    return o;
}

/* Any packing of columns. */
static struct operand turned(struct test *t, const struct operand *o)
{
    static const bsm_packing of_4[] = { BSM_PACKING_LOW_FIRST, BSM_PACKING_HIGH_FIRST, BSM_PACKING_BYTES },
                             of_6[] = { BSM_PACKING_BIT_STREAM, BSM_PACKING_BYTES, BSM_PACKING_DEFAULT };
    const int bits = bsm_element_get((int)bsm_format_get((int)o->m.format)->element)->bits,
              which = (int)rnd_below(t, 3);
    return operand_turned(o, bits == 4 ? of_4[which] : bits == 6 ? of_6[which] : BSM_PACKING_DEFAULT,
                          rnd_below(t, 2) * 64);
}

struct problem { struct operand a, b, a_turned, b_turned, d, want; };

static void problem_make(struct test *t, struct problem *p, int pair, int64_t m, int64_t batch)
{
    p->a = filled(t, pairs[pair].a, m, K, 1), p->b = filled(t, pairs[pair].b, N, K, batch);
    p->a_turned = turned(t, &p->a), p->b_turned = turned(t, &p->b);
    const struct shape d = { .format = BSM_FORMAT_FP32, .rows = m, .columns = N, .batch = batch };
    p->d = operand_make(&d, 0xff), p->want = operand_make(&d, 0xff);
}

static void problem_free(struct problem *p)
{
    struct operand *const all[] = { &p->a, &p->b, &p->a_turned, &p->b_turned, &p->d, &p->want };
    for (int i = 0; i < 6; i++) operand_free(all[i]);
}

static void compare(struct test *t, struct problem *p, const char *kernel, int pair, const char *what)
{
    if (memcmp(p->d.m.data, p->want.m.data, p->d.data_bytes) != 0)
        FAIL(t, "%s, %s x %s, %s: other bits", kernel, bsm_format_get((int)pairs[pair].a)->name,
             bsm_format_get((int)pairs[pair].b)->name, what);
    memset(p->d.m.data, 0xff, p->d.data_bytes);
}

/* Packed once; then B's own codes are gone. */
static void with_panels(struct test *t, bsm_context *context, struct problem *p, const char *kernel, int pair)
{
    bsm_matmul product = { .struct_size = sizeof product, .a = &p->a.m, .b = &p->b_turned.m, .d = &p->d.m };
    bsm_plan *plan = NULL;
    CHECK_OR_RETURN(t, bsm_plan_create(context, &product, &plan) == BSM_OK);
    const size_t bytes = bsm_plan_b_panels_bytes(plan), workspace_bytes = bsm_plan_workspace_bytes(plan);
    void *panels = guarded_at_end(bytes, 64, 0x5a), *workspace = guarded_at_end(workspace_bytes, 64, 0x5a);
    CHECK(t, bytes >= p->b.data_bytes && bsm_plan_pack_b(plan, &product, panels, bytes) == BSM_OK);
    memset(p->b_turned.m.data, 0, p->b_turned.data_bytes);
    product.b_panels = panels;
    CHECK(t, bsm_plan_run(plan, &product, workspace, workspace_bytes) == BSM_OK);
    compare(t, p, kernel, pair, "packed once");
    bsm_plan_destroy(plan);
    guarded_free(panels), guarded_free(workspace);
}

static void one(struct test *t, bsm_context *context, const char *kernel, int pair, int64_t m, int64_t batch)
{
    struct problem p;
    problem_make(t, &p, pair, m, batch);
    bsm_matmul product = { .struct_size = sizeof product, .a = &p.a.m, .b = &p.b.m, .d = &p.want.m };
    CHECK(t, bsm_multiply(context, &product) == BSM_OK);
    product.d = &p.d.m;
    for (int which = 1; which < 4; which++) {
        product.a = which % 2 != 0 ? &p.a_turned.m : &p.a.m, product.b = which / 2 != 0 ? &p.b_turned.m : &p.b.m;
        if (bsm_multiply(context, &product) != BSM_OK) FAIL(t, "%s: %s", kernel, bsm_last_error());
        compare(t, &p, kernel, pair, which == 1 ? "A" : which == 2 ? "B" : "A and B");
    }
    with_panels(t, context, &p, kernel, pair);
    problem_free(&p);
}

static void every_kernel(struct test *t)
{
    bsm_context *context;
    const bsm_context_options options = { .struct_size = sizeof options, .threads = 2 };
    CHECK(t, bsm_context_create(&options, &context) == BSM_OK);
    for (int i = 0; bsm_kernel_name(i) != NULL; i++)
        for (int pair = 0; pair < PAIRS; pair++) {
            if (!bsm_kernel_serves(context, i, pairs[pair].a, pairs[pair].b)) continue;
            CHECK(t, bsm_context_force_kernel(context, i) == BSM_OK);
            one(t, context, bsm_kernel_name(i), pair, pair % 2 == 0 ? M : 1, pair % 3 == 0 ? 2 : 1);
        }
    bsm_context_destroy(context);
}

static void exact_product(struct test *t)
{
    bsm_context *context;
    CHECK(t, bsm_context_create(NULL, &context) == BSM_OK);
    for (int pair = 0; pair < PAIRS; pair++) {
        struct problem p;
        double sums[2][M * N], magnitudes[2][M * N];
        problem_make(t, &p, pair, M, 1);
        for (int i = 0; i < 2; i++) {
            const bsm_real_matrix sum = { .struct_size = sizeof sum, .type = BSM_REAL_FP64, .rows = M, .columns = N,
                                          .data = sums[i], .row_stride = N, .column_stride = 1 };
            bsm_real_matrix magnitude = sum;
            magnitude.data = magnitudes[i];
            CHECK(t, bsm_matmul_exact(context, i == 0 ? &p.a.m : &p.a_turned.m, i == 0 ? &p.b.m : &p.b_turned.m, &sum,
                                      &magnitude) == BSM_OK);
        }
        CHECK(t, memcmp(sums[0], sums[1], sizeof sums[0]) == 0
                     && memcmp(magnitudes[0], magnitudes[1], sizeof magnitudes[0]) == 0);
        problem_free(&p);
    }
    bsm_context_destroy(context);
}

static void what_plans_say(struct test *t)
{
    bsm_context *context;
    bsm_plan *plan = NULL;
    struct problem p;
    char text[600], start[40];
    CHECK(t, bsm_context_create(NULL, &context) == BSM_OK);
    problem_make(t, &p, 2, M, 1);
    bsm_matmul product = { .struct_size = sizeof product, .a = &p.a_turned.m, .b = &p.b_turned.m, .d = &p.d.m };
    CHECK(t, bsm_plan_create(context, &product, &plan) == BSM_OK);
    const size_t length = bsm_plan_describe(plan, text, sizeof text);
    CHECK(t, length == strlen(text) && strstr(text, "stored MN-major and copied K-major first: A, B") != NULL);
    CHECK(t, bsm_plan_describe(plan, NULL, 0) == length);
    CHECK(t, bsm_plan_describe(plan, start, sizeof start) == length && strncmp(start, text, sizeof start - 1) == 0
                 && start[sizeof start - 1] == '\0');
    product.a = &p.a.m;                   /* another major than the plan's */
    CHECK(t, bsm_plan_run(plan, &product, NULL, 0) == BSM_EINVAL && strstr(bsm_last_error(), "a->major=0") != NULL);
    bsm_plan_destroy(plan);

    bsm_matrix d = p.d.m;
    d.major = BSM_MAJOR_MN, product.d = &d;
    CHECK(t, bsm_multiply(context, &product) == BSM_EUNSUPPORTED && strstr(bsm_last_error(), "d->major=mn") != NULL);
    d = p.d.m, d.data = (void *)(((uintptr_t)p.b_turned.m.data + 3) / 4 * 4);
    CHECK(t, bsm_multiply(context, (product.b = &p.b_turned.m, &product)) == BSM_EINVAL
                 && strstr(bsm_last_error(), "overlaps b->data") != NULL);
    problem_free(&p);
    bsm_context_destroy(context);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(every_kernel), TEST(exact_product), TEST(what_plans_say) };
    return TEST_MAIN(argc, argv, cases);
}
