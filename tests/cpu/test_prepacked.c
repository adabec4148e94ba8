/* Weights packed once (bsm_plan_pack_b): the same bits as from B as it is stored, by every kernel that has panels; what
 * is read is the panels; what they were not made for is refused or leaves them alone. */
#include "naive.h"

#include <stdlib.h>

static const struct { bsm_format a, b; } pairs[] = {
    { BSM_MXFP4, BSM_MXFP4 }, { BSM_NVFP4, BSM_NVFP4 }, { BSM_NVFP4, BSM_MXFP4 }, { BSM_MXFP8_E4M3, BSM_MXFP6_E2M3 },
    { BSM_FORMAT_BF16, BSM_NVFP4 }, { BSM_MXINT8, BSM_MXINT8 }, { BSM_MXFP8_E4M3, BSM_MXFP8_E4M3 },
    { BSM_FORMAT_BF16, BSM_MXFP4 },
};
enum { PAIRS = sizeof pairs / sizeof pairs[0], M = 105, N = 86, K = 549, BATCH = 3 };

struct problem { struct operand a, b, d, want; bsm_matmul product; int64_t group_rows[BATCH]; };

static struct operand filled(struct test *t, bsm_format format, int64_t rows, int64_t columns, int64_t batch)
{
    struct operand o = operand_make(&(struct shape){ .format = format, .rows = rows, .columns = columns,
                                                     .batch = batch }, 0xff);
    operand_fill(t, &o, false);
    /* Rows with a subnormal number, or one far from 1, may need B's codes beside its panels: exponents of -15 to 0. */
    uint16_t *const numbers = o.m.data;
    for (size_t i = 0; format == BSM_FORMAT_BF16 && i < o.data_bytes / 2; i++)
        numbers[i] = (uint16_t)((numbers[i] & 0x87ff) | 0x3800);
    return o;
}

static void problem_make(struct test *t, struct problem *p, int pair, int64_t batch, bsm_gate gate)
{
    const int64_t columns = gate == BSM_GATE_NONE ? N : N / 2;
    memset(p, 0, sizeof *p);
    p->a = filled(t, pairs[pair].a, M, K, 1), p->b = filled(t, pairs[pair].b, N, K, batch);
    p->d = operand_make(&(struct shape){ .format = BSM_FORMAT_FP32, .rows = M, .columns = columns }, 0xff);
    p->want = operand_make(&(struct shape){ .format = BSM_FORMAT_FP32, .rows = M, .columns = columns }, 0xff);
    for (int g = 0; g < BATCH; g++) p->group_rows[g] = M / BATCH;
    p->product = (bsm_matmul){ .struct_size = sizeof p->product, .a = &p->a.m, .b = &p->b.m, .d = &p->d.m, .gate = gate,
                               .activation = gate == BSM_GATE_NONE ? BSM_ACT_NONE : BSM_ACT_RELU,
                               .groups = batch > 1 ? batch : 0, .group_rows = batch > 1 ? p->group_rows : NULL };
}

static void problem_free(struct problem *p)
{
    operand_free(&p->a), operand_free(&p->b), operand_free(&p->d), operand_free(&p->want);
}

/* The panels of the plan that this context makes; NULL where its kernel has none. */
static void *make_panels(struct test *t, bsm_context *context, const bsm_matmul *product)
{
    bsm_plan *plan = NULL;
    CHECK(t, bsm_plan_create(context, product, &plan) == BSM_OK);
    const size_t bytes = bsm_plan_b_panels_bytes(plan);
    void *panels = bytes > 0 ? guarded_at_end(bytes, 64, 0x5a) : NULL;
    const bsm_status status = bsm_plan_pack_b(plan, product, panels, bytes);
    if (status != (bytes > 0 ? BSM_OK : BSM_EUNSUPPORTED)) FAIL(t, "packing: %s", bsm_last_error());
    bsm_plan_destroy(plan);
    return panels;
}

/* With panels and with B's codes gone: what is computed came out of the panels. */
static bool check_problem(struct test *t, bsm_context *context, struct problem *p, const char *kernel)
{
    bsm_matmul product = p->product;
    void *panels = make_panels(t, context, &p->product);
    if (panels == NULL) return false;
    product.d = &p->want.m;
    CHECK(t, bsm_multiply(context, &product) == BSM_OK);
    product.d = &p->d.m, product.b_panels = panels;
    memset(p->b.m.data, 0, p->b.data_bytes);
    CHECK(t, bsm_multiply(context, &product) == BSM_OK);
    if (memcmp(p->d.m.data, p->want.m.data, p->d.data_bytes) != 0)
        FAIL(t, "%s: %s x %s, %lld matrices, gate %d: other bits with panels", kernel,
             bsm_format_get((int)p->a.m.format)->name, bsm_format_get((int)p->b.m.format)->name,
             (long long)p->b.m.batch, (int)product.gate);
    guarded_free(panels);
    return true;
}

static void every_kernel(struct test *t)
{
    bsm_context *context;
    const bsm_context_options options = { .struct_size = sizeof options, .threads = 2 };
    CHECK(t, bsm_context_create(&options, &context) == BSM_OK);
    int kept = 0;
    for (int i = 0; bsm_kernel_name(i) != NULL; i++)
        for (int pair = 0; pair < PAIRS; pair++) {
            static const struct {
                int64_t batch;
                bsm_gate gate;
            } kinds[] = {
                { 1, BSM_GATE_NONE }, { BATCH, BSM_GATE_NONE }, { 1, BSM_GATE_SPLIT }, { 1, BSM_GATE_INTERLEAVED }
            };
            if (!bsm_kernel_serves(context, i, pairs[pair].a, pairs[pair].b)) continue;
            CHECK(t, bsm_context_force_kernel(context, i) == BSM_OK);
            for (size_t kind = 0; kind < sizeof kinds / sizeof kinds[0]; kind++) {
                struct problem p;
                problem_make(t, &p, pair, kinds[kind].batch, kinds[kind].gate);
                kept += check_problem(t, context, &p, bsm_kernel_name(i));
                problem_free(&p);
            }
        }
    CHECK(t, kept > 0 || bsm_context_cpu_features(context) == 0);
    bsm_context_destroy(context);
}

/* Panels of another kernel, of another exact block or of another gate are no error, and not read. */
static void panels_of_others(struct test *t)
{
    bsm_context *context;
    struct problem p;
    CHECK(t, bsm_context_create(NULL, &context) == BSM_OK);
    problem_make(t, &p, 0, 1, BSM_GATE_NONE);
    void *panels = make_panels(t, context, &p.product);
    if (panels == NULL) test_skip(t, "no kernel with panels on this CPU");
    bsm_matmul product = p.product;
    for (int other = 0; panels != NULL && other < 2; other++) {
        struct operand a = filled(t, other == 0 ? BSM_NVFP4 : BSM_MXFP4, other == 0 ? M : 1, K, 1);
        struct operand want = operand_make(&(struct shape){ .format = BSM_FORMAT_FP32, .rows = a.m.rows,
                                                            .columns = N }, 0xff);
        struct operand got = operand_make(&(struct shape){ .format = BSM_FORMAT_FP32, .rows = a.m.rows,
                                                           .columns = N }, 0xff);
        product.a = &a.m, product.d = &want.m, product.b_panels = NULL;
        CHECK(t, bsm_multiply(context, &product) == BSM_OK);
        product.d = &got.m, product.b_panels = panels;
        CHECK(t, bsm_multiply(context, &product) == BSM_OK);
        CHECK(t, memcmp(want.m.data, got.m.data, want.data_bytes) == 0);
        operand_free(&a), operand_free(&want), operand_free(&got);
    }
    if (panels != NULL) guarded_free(panels);
    problem_free(&p);
    bsm_context_destroy(context);
}

static void refused(struct test *t)
{
    bsm_context *context;
    struct problem p;
    bsm_plan *plan = NULL;
    _Alignas(64) unsigned char nothing[128] = { 0 };
    CHECK(t, bsm_context_create(NULL, &context) == BSM_OK);
    problem_make(t, &p, 0, 1, BSM_GATE_NONE);
    bsm_matmul product = p.product;
    product.b_panels = nothing;
    CHECK(t, bsm_multiply(context, &product) == BSM_EINVAL);
    product.b_panels = nothing + 1;
    CHECK(t, bsm_multiply(context, &product) == BSM_EALIGN);
    void *panels = make_panels(t, context, &p.product);
    if (panels != NULL) {
        struct problem fewer;
        problem_make(t, &fewer, 0, 1, BSM_GATE_INTERLEAVED);
        fewer.b.m.rows -= 2, fewer.d.m.columns -= 1;
        fewer.product.b_panels = panels;
        CHECK(t, bsm_multiply(context, &fewer.product) == BSM_EINVAL);
        CHECK(t, strstr(bsm_last_error(), "product->b_panels") != NULL);
        problem_free(&fewer);
        CHECK(t, bsm_plan_create(context, &p.product, &plan) == BSM_OK);
        CHECK(t, bsm_plan_pack_b(plan, &p.product, panels, bsm_plan_b_panels_bytes(plan) - 1) == BSM_EINVAL);
        CHECK(t, bsm_plan_pack_b(plan, &p.product, NULL, bsm_plan_b_panels_bytes(plan)) == BSM_EINVAL);
        bsm_plan_destroy(plan);
        guarded_free(panels);
    }
    CHECK(t, bsm_plan_b_panels_bytes(NULL) == 0);
    CHECK(t, bsm_plan_pack_b(NULL, &p.product, nothing, sizeof nothing) == BSM_EINVAL);
    problem_free(&p);
    bsm_context_destroy(context);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(every_kernel), TEST(panels_of_others), TEST(refused) };
    return TEST_MAIN(argc, argv, cases);
}
