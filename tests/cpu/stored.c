#include "stored.h"

const struct stored_pair stored_pairs[STORED_PAIRS] = {
    { BSM_MXFP4, BSM_NVFP4 },           { BSM_NVFP4, BSM_NVFP4 },          { BSM_MXFP8_E4M3, BSM_MXFP6_E2M3 },
    { BSM_MXINT8, BSM_MXFP4_BLOCK16 },  { BSM_FORMAT_BF16, BSM_MXFP4 },    { BSM_FORMAT_FP16, BSM_FORMAT_E5M2 },
    { BSM_FORMAT_FP32, BSM_MXFP8_E5M2 }, { BSM_MXFP8_E4M3, BSM_MXFP8_E4M3 }, { BSM_FORMAT_BF16, BSM_FORMAT_BF16 },
};

void stored_problem_make(struct test *t, struct stored_problem *p, stored_make *make, int pair, int64_t m,
                         int64_t batch)
{
    p->a = make(t, stored_pairs[pair].a, m, 1), p->b = make(t, stored_pairs[pair].b, STORED_N, batch);
    const struct shape d = { .format = BSM_FORMAT_FP32, .rows = m, .columns = STORED_N, .batch = batch };
    p->d = operand_make(&d, 0xff), p->want = operand_make(&d, 0xff);
}

void stored_problem_free(struct stored_problem *p)
{
    struct operand *const all[] = { &p->a.plain, &p->b.plain, &p->a.other, &p->b.other, &p->d, &p->want };
    for (int i = 0; i < 6; i++) operand_free(all[i]);
}

static void compare(struct test *t, struct stored_problem *p, const char *kernel, int pair, const char *what)
{
    if (memcmp(p->d.m.data, p->want.m.data, p->d.data_bytes) != 0)
        FAIL(t, "%s, %s x %s, %s: other bits", kernel, bsm_format_get((int)stored_pairs[pair].a)->name,
             bsm_format_get((int)stored_pairs[pair].b)->name, what);
    memset(p->d.m.data, 0xff, p->d.data_bytes);
}

/* Packed once; then B's own codes are gone. */
static void with_panels(struct test *t, bsm_context *context, struct stored_problem *p, const char *kernel, int pair)
{
    bsm_matmul product = { .struct_size = sizeof product, .a = &p->a.plain.m, .b = &p->b.other.m, .d = &p->d.m };
    bsm_plan *plan = NULL;
    CHECK_OR_RETURN(t, bsm_plan_create(context, &product, &plan) == BSM_OK);
    const size_t bytes = bsm_plan_b_panels_bytes(plan), workspace_bytes = bsm_plan_workspace_bytes(plan);
    void *panels = guarded_at_end(bytes, 64, 0x5a), *workspace = guarded_at_end(workspace_bytes, 64, 0x5a);
    CHECK(t, bytes >= p->b.plain.data_bytes && bsm_plan_pack_b(plan, &product, panels, bytes) == BSM_OK);
    memset(p->b.other.m.data, 0, p->b.other.data_bytes);
    product.b_panels = panels;
    CHECK(t, bsm_plan_run(plan, &product, workspace, workspace_bytes) == BSM_OK);
    compare(t, p, kernel, pair, "packed once");
    bsm_plan_destroy(plan);
    guarded_free(panels), guarded_free(workspace);
}

static void one(struct test *t, bsm_context *context, stored_make *make, const char *kernel, int pair, int64_t m,
                int64_t batch)
{
    struct stored_problem p;
    stored_problem_make(t, &p, make, pair, m, batch);
    bsm_matmul product = { .struct_size = sizeof product, .a = &p.a.plain.m, .b = &p.b.plain.m, .d = &p.want.m };
    CHECK(t, bsm_multiply(context, &product) == BSM_OK);
    product.d = &p.d.m;
    for (int which = 1; which < 4; which++) {
        product.a = which % 2 != 0 ? &p.a.other.m : &p.a.plain.m;
        product.b = which / 2 != 0 ? &p.b.other.m : &p.b.plain.m;
        if (bsm_multiply(context, &product) != BSM_OK) FAIL(t, "%s: %s", kernel, bsm_last_error());
        compare(t, &p, kernel, pair, which == 1 ? "A" : which == 2 ? "B" : "A and B");
    }
    with_panels(t, context, &p, kernel, pair);
    stored_problem_free(&p);
}

void stored_by_every_kernel(struct test *t, stored_make *make)
{
    bsm_context *context;
    const bsm_context_options options = { .struct_size = sizeof options, .threads = 2 };
    CHECK(t, bsm_context_create(&options, &context) == BSM_OK);
    for (int i = 0; bsm_kernel_name(i) != NULL; i++)
        for (int pair = 0; pair < STORED_PAIRS; pair++) {
            if (!bsm_kernel_serves(context, i, stored_pairs[pair].a, stored_pairs[pair].b)) continue;
            CHECK(t, bsm_context_force_kernel(context, i) == BSM_OK);
            one(t, context, make, bsm_kernel_name(i), pair, pair % 2 == 0 ? STORED_M : 1, pair % 3 == 0 ? 2 : 1);
        }
    bsm_context_destroy(context);
}
