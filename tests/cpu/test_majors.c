/* MN-major operands on the CPU: the bits of the product of the same numbers K-major, by every kernel, also with weights
 * packed once; the exact product; what a plan says. */
#include "stored.h"

#include <stdlib.h>

enum { M = STORED_M, N = STORED_N, K = 165 };

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

static struct stored_operand mn_major(struct test *t, bsm_format format, int64_t rows, int64_t batch)
{
    const struct operand plain = filled(t, format, rows, K, batch);
    return (struct stored_operand){ plain, turned(t, &plain) };
}

static void every_kernel(struct test *t)
{
    stored_by_every_kernel(t, mn_major);
}

static void exact_product(struct test *t)
{
    bsm_context *context;
    CHECK(t, bsm_context_create(NULL, &context) == BSM_OK);
    for (int pair = 0; pair < STORED_PAIRS; pair++) {
        struct stored_problem p;
        double sums[2][M * N], magnitudes[2][M * N];
        stored_problem_make(t, &p, mn_major, pair, M, 1);
        for (int i = 0; i < 2; i++) {
            const bsm_real_matrix sum = { .struct_size = sizeof sum, .type = BSM_REAL_FP64, .rows = M, .columns = N,
                                          .data = sums[i], .row_stride = N, .column_stride = 1 };
            bsm_real_matrix magnitude = sum;
            magnitude.data = magnitudes[i];
            CHECK(t, bsm_matmul_exact(context, i == 0 ? &p.a.plain.m : &p.a.other.m,
                                      i == 0 ? &p.b.plain.m : &p.b.other.m, &sum, &magnitude) == BSM_OK);
        }
        CHECK(t, memcmp(sums[0], sums[1], sizeof sums[0]) == 0
                     && memcmp(magnitudes[0], magnitudes[1], sizeof magnitudes[0]) == 0);
        stored_problem_free(&p);
    }
    bsm_context_destroy(context);
}

static void what_plans_say(struct test *t)
{
    bsm_context *context;
    bsm_plan *plan = NULL;
    struct stored_problem p;
    char text[600], start[40];
    CHECK(t, bsm_context_create(NULL, &context) == BSM_OK);
    stored_problem_make(t, &p, mn_major, 2, M, 1);
    bsm_matmul product = { .struct_size = sizeof product, .a = &p.a.other.m, .b = &p.b.other.m, .d = &p.d.m };
    CHECK(t, bsm_plan_create(context, &product, &plan) == BSM_OK);
    const size_t length = bsm_plan_describe(plan, text, sizeof text);
    CHECK(t, length == strlen(text) && strstr(text, "stored MN-major and copied K-major first: A, B") != NULL);
    CHECK(t, bsm_plan_describe(plan, NULL, 0) == length);
    CHECK(t, bsm_plan_describe(plan, start, sizeof start) == length && strncmp(start, text, sizeof start - 1) == 0
                 && start[sizeof start - 1] == '\0');
    product.a = &p.a.plain.m;             /* another major than the plan's */
    CHECK(t, bsm_plan_run(plan, &product, NULL, 0) == BSM_EINVAL && strstr(bsm_last_error(), "a->major=0") != NULL);
    bsm_plan_destroy(plan);

    bsm_matrix d = p.d.m;
    d.major = BSM_MAJOR_MN, product.d = &d;
    CHECK(t, bsm_multiply(context, &product) == BSM_EUNSUPPORTED && strstr(bsm_last_error(), "d->major=mn") != NULL);
    d = p.d.m, d.data = (void *)(((uintptr_t)p.b.other.m.data + 3) / 4 * 4);
    CHECK(t, bsm_multiply(context, (product.b = &p.b.other.m, &product)) == BSM_EINVAL
                 && strstr(bsm_last_error(), "overlaps b->data") != NULL);
    stored_problem_free(&p);
    bsm_context_destroy(context);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(every_kernel), TEST(exact_product), TEST(what_plans_say) };
    return TEST_MAIN(argc, argv, cases);
}
