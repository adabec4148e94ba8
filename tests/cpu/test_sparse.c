/* Products of sparse operands on the CPU: the bits of the product of the same numbers with their zeros, by every
 * kernel, also with weights packed once; groups along K; what a plan says; what is refused. */
#include "stored.h"

#include <stdlib.h>

enum { M = STORED_M, N = STORED_N, K = 168 };

/* Any packing, two layouts of scales, either pattern. */
static struct stored_operand sparse(struct test *t, bsm_format format, int64_t rows, int64_t batch)
{
    static const bsm_packing of_4[] = { BSM_PACKING_LOW_FIRST, BSM_PACKING_HIGH_FIRST, BSM_PACKING_BYTES };
    const bsm_format_info *f = bsm_format_get((int)format);
    const int bits = bsm_element_get((int)f->element)->bits;
    struct shape shape = { .format = format, .rows = rows, .columns = K, .batch = batch,
                           .sparsity = BSM_SPARSITY_2_4 };
    if (bits == 4) shape.packing = of_4[rnd_below(t, 3)];
    if (bits == 4 && rnd_below(t, 3) != 0) shape.sparsity = BSM_SPARSITY_4_8_PAIRS;
    if (f->block != 0 && rnd_below(t, 2) != 0) shape.layout.kind = BSM_LAYOUT_128X4;
    struct operand o = operand_make(&shape, 0xff);
    operand_fill(t, &o, false);
    return (struct stored_operand){ operand_expanded(&o), o };
}

static void every_kernel(struct test *t)
{
    stored_by_every_kernel(t, sparse);
}

/* Groups along K begin with a scale: at multiples of 64 columns here. */
static void groups_along_k(struct test *t)
{
    static const int64_t columns[][2] = { { 64, K - 64 }, { 32, K - 32 } };
    bsm_context *context;
    struct stored_problem p;
    struct operand d[2];
    CHECK(t, bsm_context_create(NULL, &context) == BSM_OK);
    stored_problem_make(t, &p, sparse, 7, M, 1);
    for (int i = 0; i < 2; i++)
        d[i] = operand_make(&(struct shape){ .format = BSM_FORMAT_FP32, .rows = M, .columns = N, .batch = 2 }, 0xff);
    bsm_matmul product = { .struct_size = sizeof product, .a = &p.a.plain.m, .b = &p.b.plain.m, .d = &d[0].m,
                           .groups = 2, .group_columns = columns[0] };
    CHECK(t, bsm_multiply(context, &product) == BSM_OK);
    product.a = &p.a.other.m, product.b = &p.b.other.m, product.d = &d[1].m;
    CHECK(t, bsm_multiply(context, &product) == BSM_OK && memcmp(d[0].m.data, d[1].m.data, d[0].data_bytes) == 0);
    product.group_columns = columns[1];
    CHECK(t, bsm_multiply(context, &product) == BSM_EINVAL && strstr(bsm_last_error(), "multiples of 64") != NULL);
    operand_free(&d[0]), operand_free(&d[1]);
    stored_problem_free(&p);
    bsm_context_destroy(context);
}

static void refused(struct test *t, bsm_context *context, const bsm_matmul *product, bsm_status status,
                    const char *words)
{
    CHECK(t, bsm_multiply(context, product) == status);
    if (strstr(bsm_last_error(), words) == NULL) FAIL(t, "\"%s\" lacks \"%s\"", bsm_last_error(), words);
}

static void what_plans_say(struct test *t)
{
    bsm_context *context;
    bsm_plan *plan = NULL;
    struct stored_problem p;
    char text[600];
    CHECK(t, bsm_context_create(NULL, &context) == BSM_OK);
    stored_problem_make(t, &p, sparse, 2, M, 1);
    bsm_matmul product = { .struct_size = sizeof product, .a = &p.a.other.m, .b = &p.b.other.m, .d = &p.d.m };
    CHECK(t, bsm_plan_create(context, &product, &plan) == BSM_OK);
    const size_t length = bsm_plan_describe(plan, text, sizeof text), bytes = bsm_plan_b_panels_bytes(plan);
    CHECK(t, length == strlen(text) && strstr(text, "; sparse, and copied with their zeros first: A, B (once") != NULL);
    CHECK(t, bsm_plan_describe(plan, NULL, 0) == length);
    product.a = &p.a.plain.m;             /* not as the plan has it */
    CHECK(t, bsm_plan_run(plan, &product, NULL, 0) == BSM_EINVAL);

    void *panels = guarded_at_end(bytes, 64, 0x5a);
    product.a = &p.a.other.m;
    ((unsigned char *)p.b.other.sparse.metadata)[p.b.other.sparse.metadata_pitch] = 0x46;
    CHECK(t, bsm_plan_pack_b(plan, &product, panels, bytes) == BSM_EINVAL
                 && strstr(bsm_last_error(), "b->metadata: group 0 of row 1 of matrix 0 is 6") != NULL);
    refused(t, context, &product, BSM_EINVAL, "b->metadata: group 0 of row 1");
    for (size_t i = 0; i < p.d.data_bytes; i++) CHECK(t, ((unsigned char *)p.d.m.data)[i] == 0xff);
    product.b = &p.b.plain.m, ((unsigned char *)p.a.other.sparse.metadata)[1] = 0x4f;
    refused(t, context, &product, BSM_EINVAL, "a->metadata: group 2 of row 0");
    bsm_matrix d = p.d.m;
    d.data = (void *)(((uintptr_t)p.a.other.sparse.metadata + 3) / 4 * 4), product.d = &d;
    refused(t, context, &product, BSM_EINVAL, "overlaps a->metadata");
    product.d = &p.a.other.m;
    refused(t, context, &product, BSM_EUNSUPPORTED, "d->sparsity=2:4");
    guarded_free(panels);
    bsm_plan_destroy(plan);
    stored_problem_free(&p);
    bsm_context_destroy(context);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(every_kernel), TEST(groups_along_k), TEST(what_plans_say) };
    return TEST_MAIN(argc, argv, cases);
}
