/* Products of sparse operands on the CPU: the bits of the product of the same numbers with their zeros, by every
 * kernel, also with weights packed once; groups along K; what a plan says; what is refused. */
#include "naive.h"

#include <stdlib.h>

static const struct { bsm_format a, b; } pairs[] = {
    { BSM_MXFP4, BSM_NVFP4 },           { BSM_NVFP4, BSM_NVFP4 },          { BSM_MXFP8_E4M3, BSM_MXFP6_E2M3 },
    { BSM_MXINT8, BSM_MXFP4_BLOCK16 },  { BSM_FORMAT_BF16, BSM_MXFP4 },    { BSM_FORMAT_FP16, BSM_FORMAT_E5M2 },
    { BSM_FORMAT_FP32, BSM_MXFP8_E5M2 }, { BSM_MXFP8_E4M3, BSM_MXFP8_E4M3 }, { BSM_FORMAT_BF16, BSM_FORMAT_BF16 },
};
enum { PAIRS = sizeof pairs / sizeof pairs[0], M = 37, N = 71, K = 168 };

/* Any packing, two layouts of scales, either pattern. */
static struct operand sparse(struct test *t, bsm_format format, int64_t rows, int64_t batch)
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
    return o;
}

struct problem { struct operand a, b, a_sparse, b_sparse, d, want; };

static void problem_make(struct test *t, struct problem *p, int pair, int64_t m, int64_t batch)
{
    p->a_sparse = sparse(t, pairs[pair].a, m, 1), p->b_sparse = sparse(t, pairs[pair].b, N, batch);
    p->a = operand_expanded(&p->a_sparse), p->b = operand_expanded(&p->b_sparse);
    const struct shape d = { .format = BSM_FORMAT_FP32, .rows = m, .columns = N, .batch = batch };
    p->d = operand_make(&d, 0xff), p->want = operand_make(&d, 0xff);
}

static void problem_free(struct problem *p)
{
    struct operand *const all[] = { &p->a, &p->b, &p->a_sparse, &p->b_sparse, &p->d, &p->want };
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
    bsm_matmul product = { .struct_size = sizeof product, .a = &p->a.m, .b = &p->b_sparse.m, .d = &p->d.m };
    bsm_plan *plan = NULL;
    CHECK_OR_RETURN(t, bsm_plan_create(context, &product, &plan) == BSM_OK);
    const size_t bytes = bsm_plan_b_panels_bytes(plan), workspace_bytes = bsm_plan_workspace_bytes(plan);
    void *panels = guarded_at_end(bytes, 64, 0x5a), *workspace = guarded_at_end(workspace_bytes, 64, 0x5a);
    CHECK(t, bytes > p->b.data_bytes && bsm_plan_pack_b(plan, &product, panels, bytes) == BSM_OK);
    memset(p->b_sparse.m.data, 0, p->b_sparse.data_bytes);
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
        product.a = which % 2 != 0 ? &p.a_sparse.m : &p.a.m, product.b = which / 2 != 0 ? &p.b_sparse.m : &p.b.m;
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

/* Groups along K begin with a scale: at multiples of 64 columns here. */
static void groups_along_k(struct test *t)
{
    static const int64_t columns[][2] = { { 64, K - 64 }, { 32, K - 32 } };
    bsm_context *context;
    struct problem p;
    struct operand d[2];
    CHECK(t, bsm_context_create(NULL, &context) == BSM_OK);
    problem_make(t, &p, 7, M, 1);
    for (int i = 0; i < 2; i++)
        d[i] = operand_make(&(struct shape){ .format = BSM_FORMAT_FP32, .rows = M, .columns = N, .batch = 2 }, 0xff);
    bsm_matmul product = { .struct_size = sizeof product, .a = &p.a.m, .b = &p.b.m, .d = &d[0].m, .groups = 2,
                           .group_columns = columns[0] };
    CHECK(t, bsm_multiply(context, &product) == BSM_OK);
    product.a = &p.a_sparse.m, product.b = &p.b_sparse.m, product.d = &d[1].m;
    CHECK(t, bsm_multiply(context, &product) == BSM_OK && memcmp(d[0].m.data, d[1].m.data, d[0].data_bytes) == 0);
    product.group_columns = columns[1];
    CHECK(t, bsm_multiply(context, &product) == BSM_EINVAL && strstr(bsm_last_error(), "multiples of 64") != NULL);
    operand_free(&d[0]), operand_free(&d[1]);
    problem_free(&p);
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
    struct problem p;
    char text[600];
    CHECK(t, bsm_context_create(NULL, &context) == BSM_OK);
    problem_make(t, &p, 2, M, 1);
    bsm_matmul product = { .struct_size = sizeof product, .a = &p.a_sparse.m, .b = &p.b_sparse.m, .d = &p.d.m };
    CHECK(t, bsm_plan_create(context, &product, &plan) == BSM_OK);
    const size_t length = bsm_plan_describe(plan, text, sizeof text), bytes = bsm_plan_b_panels_bytes(plan);
    CHECK(t, length == strlen(text) && strstr(text, "; sparse, and copied with their zeros first: A, B (once") != NULL);
    CHECK(t, bsm_plan_describe(plan, NULL, 0) == length);
    product.a = &p.a.m;                   /* not as the plan has it */
    CHECK(t, bsm_plan_run(plan, &product, NULL, 0) == BSM_EINVAL);

    void *panels = guarded_at_end(bytes, 64, 0x5a);
    product.a = &p.a_sparse.m;
    ((unsigned char *)p.b_sparse.sparse.metadata)[p.b_sparse.sparse.metadata_pitch] = 0x46;
    CHECK(t, bsm_plan_pack_b(plan, &product, panels, bytes) == BSM_EINVAL
                 && strstr(bsm_last_error(), "b->metadata: group 0 of row 1 of matrix 0 is 6") != NULL);
    refused(t, context, &product, BSM_EINVAL, "b->metadata: group 0 of row 1");
    for (size_t i = 0; i < p.d.data_bytes; i++) CHECK(t, ((unsigned char *)p.d.m.data)[i] == 0xff);
    product.b = &p.b.m, ((unsigned char *)p.a_sparse.sparse.metadata)[1] = 0x4f;
    refused(t, context, &product, BSM_EINVAL, "a->metadata: group 2 of row 0");
    bsm_matrix d = p.d.m;
    d.data = (void *)(((uintptr_t)p.a_sparse.sparse.metadata + 3) / 4 * 4), product.d = &d;
    refused(t, context, &product, BSM_EINVAL, "overlaps a->metadata");
    product.d = &p.a_sparse.m;
    refused(t, context, &product, BSM_EUNSUPPORTED, "d->sparsity=2:4");
    guarded_free(panels);
    bsm_plan_destroy(plan);
    problem_free(&p);
    bsm_context_destroy(context);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(every_kernel), TEST(groups_along_k), TEST(what_plans_say) };
    return TEST_MAIN(argc, argv, cases);
}
