/* A sparse B as tcgen05.mma.sp takes it (BSM_COMPUTE_FAST): whole numbers, so that every order of sums gives the CPU's
 * bits of the same numbers in full; every kernel, formats, edges, groups, batches; and when it is not taken. */
#include "cuda/harness/gpu.h"

struct problem {
    bsm_format a, b;
    int64_t m, n, k, batch, groups;
    const int64_t *group_rows;
    bsm_layout layout;
    int64_t extra_pitch;
    int kernel;                           /* -1: chosen */
};

static struct operand sparse_operand(struct test *t, const struct problem *p)
{
    struct operand o = operand_make(
        &(struct shape){ .format = p->b, .rows = p->n, .columns = p->k, .layout.kind = p->layout,
                         .batch = p->groups > 0 ? p->groups : p->batch, .extra_pitch = p->extra_pitch,
                         .sparsity = BSM_SPARSITY_2_4 },
        0xff);
    operand_fill(t, &o, true);
    return o;
}

/* Run on both, with the kernel that was asked for. */
static void check(struct test *t, const struct contexts *c, const struct problem *p, bsm_compute compute)
{
    char what[160];
    struct operand b = sparse_operand(t, p),
                   a = operand_make(&(struct shape){ .format = p->a, .rows = p->m, .columns = p->k,
                                                     .batch = p->groups > 0 ? 1 : p->batch }, 0xff),
                   d = operand_make(&(struct shape){ .format = BSM_FORMAT_FP32, .rows = p->m, .columns = p->n,
                                                     .batch = p->groups > 0 ? 1 : p->batch }, 0xff);
    operand_fill(t, &a, true);
    snprintf(what, sizeof what, "%s x %s, %d x %d x %d, batch %d, %d groups, kernel %s",
             bsm_format_get((int)p->a)->name, bsm_format_get((int)p->b)->name, (int)p->m, (int)p->n, (int)p->k,
             (int)p->batch, (int)p->groups, p->kernel < 0 ? "chosen" : bsm_kernel_name(p->kernel));
    CHECK(t, bsm_context_force_kernel(c->gpu, p->kernel) == BSM_OK);
    run_both(t, c, &(struct run){ .a = &a, .b = &b, .d = &d,
                                  .call = { .struct_size = sizeof(bsm_matmul), .compute = compute,
                                            .groups = p->groups, .group_rows = p->group_rows } }, what);
    CHECK(t, bsm_context_force_kernel(c->gpu, -1) == BSM_OK);
    operand_free(&a), operand_free(&b), operand_free(&d);
}

static bool open_here(struct test *t, struct contexts *c)
{
    if (!contexts_open(t, c)) return false;
    if (kernel_number(c->gpu, "cuda_tcgen05_f16_128x32", BSM_FORMAT_BF16, BSM_FORMAT_BF16) >= 0) return true;
    test_skip(t, "no GPU with tensor memory");
    contexts_close(c);
    return false;
}

/* Steps of 256 columns, one to four products of 64 in the last, rows of metadata that TMA cannot describe, and edges of
 * tiles. */
static void every_kernel(struct test *t)
{
    static const bsm_format formats[][2] = {
        { BSM_FORMAT_E4M3, BSM_MXFP8_E4M3 }, { BSM_FORMAT_E5M2, BSM_MXFP4 }, { BSM_FORMAT_E4M3, BSM_MXFP6_E2M3 },
        { BSM_FORMAT_E4M3, BSM_FORMAT_E5M2 }, { BSM_FORMAT_E5M2, BSM_MXFP8_E5M2 },
    };
    static const int64_t columns[] = { 256, 72, 1144, 320, 440 };       /* 1144: TMA reads metadata */
    struct contexts c;
    int kernel;
    if (!open_here(t, &c)) return;
    for (int i = 0; (kernel = kernel_with("tcgen05_sparse", i)) >= 0; i++)
        for (int f = 0; f < 5; f++)
            check(t, &c, &(struct problem){ .a = formats[f][0], .b = formats[f][1], .m = i == 2 ? 9 : 70 + 70 * f,
                                            .n = 136, .k = columns[(f + i) % 5], .batch = 1 + (f == 2),
                                            .layout = f == 0 ? BSM_LAYOUT_128X4 : BSM_LAYOUT_LINEAR,
                                            .extra_pitch = f % 2 * 64, .kernel = kernel },
                  BSM_COMPUTE_FAST);
    contexts_close(&c);
}

static void groups(struct test *t)
{
    static const int64_t rows[] = { 70, 0, 3, 140 };
    struct contexts c;
    int kernel;
    if (!open_here(t, &c)) return;
    for (int i = 0; i < 2 && (kernel = kernel_with("tcgen05_sparse", i)) >= 0; i++)
        check(t, &c, &(struct problem){ .a = BSM_FORMAT_E4M3, .b = BSM_MXFP4, .m = 213, .n = 130, .k = 248, .groups = 4,
                                        .group_rows = rows, .layout = BSM_LAYOUT_128X4, .kernel = kernel },
              BSM_COMPUTE_FAST);
    contexts_close(&c);
}

/* Many orders of what runs at one time: CUDASIM_SCHEDULES. */
static void schedules(struct test *t)
{
    struct contexts c;
    if (!open_here(t, &c)) return;
    for (int i = 0; i < 3; i++)
        check(t, &c, &(struct problem){ .a = BSM_FORMAT_E4M3, .b = BSM_MXFP8_E4M3, .m = i == 2 ? 16 : 129, .n = 256,
                                        .k = 1144, .kernel = kernel_with("tcgen05_sparse", i) },
              BSM_COMPUTE_FAST);
    contexts_close(&c);
}

static bool describes(struct test *t, const struct contexts *c, const bsm_matmul *product, const char *words)
{
    char text[700];
    bsm_plan *plan = NULL;
    if (bsm_plan_create(c->gpu, product, &plan) != BSM_OK) FAIL(t, "%s", bsm_last_error());
    (void)bsm_plan_describe(plan, text, sizeof text);
    bsm_plan_destroy(plan);
    return strstr(text, words) != NULL;
}

static void refused(struct test *t, const struct contexts *c, const bsm_matmul *product, const char *words)
{
    CHECK(t, bsm_supported(c->gpu, product) == BSM_EUNSUPPORTED);
    if (strstr(bsm_last_error(), words) == NULL) FAIL(t, "\"%s\" lacks \"%s\"", bsm_last_error(), words);
}

/* Permission alone takes them; forced ones name the rule. */
static void what_plans_say(struct test *t)
{
    static const char expanded[] = "sparse, and copied with their zeros first: B";
    const struct problem p = { .a = BSM_FORMAT_E4M3, .b = BSM_MXFP4, .m = 32, .n = 64, .k = 128 };
    struct contexts c;
    if (!open_here(t, &c)) return;
    struct operand b = sparse_operand(t, &p), odd = sparse_operand(t, &(struct problem){ .b = p.b, .n = 64, .k = 132 }),
                   a = operand_make(&(struct shape){ .format = p.a, .rows = p.m, .columns = p.k }, 0xff),
                   of_odd = operand_make(&(struct shape){ .format = p.a, .rows = p.m, .columns = 132 }, 0xff),
                   mx = operand_make(&(struct shape){ .format = BSM_MXFP8_E4M3, .rows = p.m, .columns = p.k }, 0xff),
                   d = operand_make(&(struct shape){ .format = BSM_FORMAT_BF16, .rows = p.m, .columns = p.n }, 0xff);
    bsm_matmul product = { .struct_size = sizeof product, .a = &a.m, .b = &b.m, .d = &d.m };
    CHECK(t, describes(t, &c, &product, expanded) && !describes(t, &c, &product, "tcgen05_sparse"));
    product.compute = BSM_COMPUTE_FAST;
    CHECK(t, describes(t, &c, &product, "kernel cuda_tcgen05_sparse_") && !describes(t, &c, &product, expanded));
    product.order = BSM_ORDER_PORTABLE;
    CHECK(t, describes(t, &c, &product, expanded));
    product.order = BSM_ORDER_K, product.a = &mx.m;
    CHECK(t, describes(t, &c, &product, expanded));
    product.a = &of_odd.m, product.b = &odd.m;
    CHECK(t, describes(t, &c, &product, expanded));

    CHECK(t, bsm_context_force_kernel(c.gpu, kernel_with("tcgen05_sparse", 1)) == BSM_OK);
    refused(t, &c, &product, "K a multiple of 8");
    product.a = &mx.m, product.b = &b.m;
    refused(t, &c, &product, "it wants an A without block scales");
    product.a = &a.m, product.compute = BSM_COMPUTE_EXACT;
    refused(t, &c, &product, "it does not look at what B leaves out");
    product.compute = BSM_COMPUTE_FAST, product.b = &mx.m, product.a = &a.m, d.m.columns = p.m;
    refused(t, &c, &product, "it wants a B that is sparse 2:4 and a dense A");
    CHECK(t, bsm_context_force_kernel(c.gpu, -1) == BSM_OK);
    operand_free(&a), operand_free(&b), operand_free(&mx), operand_free(&d), operand_free(&odd), operand_free(&of_odd);
    contexts_close(&c);
}

/* NaN of A beside what B leaves out: no NaN under the permission, and NaN without. */
static void what_is_left_out(struct test *t)
{
    enum { M = 4, N = 8, K = 64, NOT_A_NUMBER = 0x7f };
    const struct problem p = { .b = BSM_MXFP8_E4M3, .n = N, .k = K };
    struct contexts c;
    if (!open_here(t, &c)) return;
    struct operand b = sparse_operand(t, &p),
                   a = operand_make(&(struct shape){ .format = BSM_FORMAT_E4M3, .rows = M, .columns = K }, 0xff);
    operand_fill(t, &a, true);
    bsm_matrix_set_code(&a.m, 0, 1, 7, NOT_A_NUMBER);
    for (int64_t row = 0; row < N; row++) {
        unsigned char *metadata = b.sparse.metadata;
        metadata += row * b.sparse.metadata_pitch;
        memset(metadata, 0x44, K / 8);                    /* columns 0 and 1 of four are kept */
        if (row == 3) metadata[0] = 0xc4;                 /* and column 7 */
    }
    for (int fast = 0; fast < 2; fast++) {
        float found[M * N];
        struct operand d = operand_make(&(struct shape){ .format = BSM_FORMAT_FP32, .rows = M, .columns = N }, 0xff);
        struct twin of_a = twin_make(t, &c, &a), of_b = twin_make(t, &c, &b), of_d = twin_make(t, &c, &d);
        const bsm_matmul product = { .struct_size = sizeof product, .a = &of_a.m, .b = &of_b.m, .d = &of_d.m,
                                     .compute = fast ? BSM_COMPUTE_FAST : BSM_COMPUTE_EXACT };
        CHECK(t, bsm_multiply(c.gpu, &product) == BSM_OK);
        from_device(t, &c, found, of_d.m.data, sizeof found);
        for (int i = 0; i < M * N; i++)
            CHECK(t, (found[i] != found[i]) == (i / N == 1 && (fast == 0 || i % N == 3)));
        twin_free(t, &c, &of_a), twin_free(t, &c, &of_b), twin_free(t, &c, &of_d), operand_free(&d);
    }
    operand_free(&a), operand_free(&b);
    contexts_close(&c);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(every_kernel), TEST(groups), TEST(schedules), TEST(what_plans_say),
                                              TEST(what_is_left_out) };
    return TEST_MAIN(argc, argv, cases);
}
