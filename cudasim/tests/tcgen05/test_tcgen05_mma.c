/* tcgen05.mma of every kind, shape and way to lie: whole kernels, whose results are compared bit by bit with the
 * published models, and (whole numbers) with integers.  All of tensor memory is compared: nothing but D may change. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/tcgen05_kernel.h"

/* ---- comparing ---- */

static void describe(const struct mma_case *c, char *text, size_t size)
{
    char statement[300];
    case_statement(c, statement, sizeof statement);
    snprintf(text, size, "%s idesc %08x, A: mode %u%s, B: mode %u%s", statement, case_descriptor(c), c->at_a.mode,
             c->at_a.mn_major ? " MN" : "", c->at_b.mode, c->at_b.mn_major ? " MN" : "");
}

/* One element in `step` of D; the others take what came out. */
static void compare(struct test *t, const struct mma_case *c, const struct images *x, bool whole, uint32_t step)
{
    char what[500];
    uint32_t wrong = 0;
    const uint32_t mask = c->half ? 0xffff : UINT32_MAX;
    describe(c, what, sizeof what);
    for (uint32_t i = 0; i < c->m; i++)
        for (uint32_t j = 0; j < c->n; j++) {
            uint32_t cta, lane, column;
            case_d_place(c, i, j, &cta, &lane, &column);
            const size_t at = cta * (size_t)CASE_CELLS + lane * 512 + column;
            const uint32_t got = x->after[at] & mask;
            x->cells[at] = x->after[at];
            if (step != 1 && rnd(t) % step != 0) continue;
            const uint32_t want = case_result(c, i, j);
            if (got != want && wrong++ < 2) FAIL(t, "%s: D[%u][%u] is 0x%x, not 0x%x", what, i, j, got, want);
            if (whole && case_whole_result(c, i, j) != got)
                FAIL(t, "%s: D[%u][%u] is 0x%x: not the whole number", what, i, j, got);
        }
    if (memcmp(x->cells, x->after, c->form.ctas * CASE_CELLS * 4) != 0) FAIL(t, "%s: changes cells outside of D", what);
}

struct run { bool whole, twice; enum tensor_mode mode; };

/* The first of two products in a row makes the D that the second begins with. */
static void step_on(struct mma_case *c)
{
    for (uint32_t i = 0; i < c->m; i++)
        for (uint32_t j = 0; j < c->n; j++) c->old[i][j] = case_result(c, i, j);
}

static void run_case(struct test *t, struct mma_case *c, struct run run)
{
    char statement[600];
    struct sim sim;
    case_draw(t, c, run.whole);
    struct images x = images_of(t, c);
    case_statement(c, statement, sizeof statement);
    if (run.twice) case_statement(c, statement + strlen(statement), sizeof statement - strlen(statement));
    x.mode = run.mode;
    if (c->form.kind != TCGEN05_I8 && rnd(t) % 4 == 0) x.device = "sm_103a";
    const bool wide = c->form.kind <= TCGEN05_F16;                                /* their reference is the slowest */
    const uint32_t products = c->m * c->n * c->a_k, most = wide ? 16000 : 200000;
    const bool good = case_run(t, &sim, c, &x, statement);
    if (good && run.twice) step_on(c);
    if (good) compare(t, c, &x, run.whole && !run.twice, products / most + 1);
    else if (sim.module != NULL) FAIL(t, "%s", sim.report.text);
    if (sim.module != NULL) sim_close(&sim);
    images_release(&x);
}

/* ---- what there is ---- */

static const enum tcgen05_kind plain_kinds[] = { TCGEN05_TF32, TCGEN05_F16, TCGEN05_I8, TCGEN05_F8F6F4 };
static const struct { enum tcgen05_kind kind; uint8_t block; } scaled_kinds[] = {
    { TCGEN05_MXF8F6F4, 32 }, { TCGEN05_MXF4, 32 }, { TCGEN05_MXF4NVF4, 32 }, { TCGEN05_MXF4NVF4, 16 },
};

static struct mma_case *new_case(struct tcgen05_form form, uint32_t m, uint32_t n)
{
    struct mma_case *c = calloc(1, sizeof *c);
    if (c == NULL) abort();
    c->form = form, c->m = m, c->n = n;
    return c;
}

static void run_form(struct test *t, struct tcgen05_form form, uint32_t m, uint32_t n, bool whole)
{
    struct mma_case *c = new_case(form, m, n);
    run_case(t, c, (struct run){ .whole = whole });
    free(c);
}

/* N legal for all: i8 takes multiples of 16 (32 for pairs) from 32 on. */
static uint32_t draw_n(struct test *t, struct tcgen05_form form)
{
    const uint32_t step = (form.kind == TCGEN05_I8 ? 16u : 8u) * form.ctas;
    return rnd(t) % 8 == 0 ? 256 : step * (1 + (uint32_t)rnd_below(t, 96 / (int64_t)step));
}

static void plain_of(struct test *t, uint8_t ctas, bool sparse, int times)
{
    for (size_t k = 0; k < sizeof plain_kinds / sizeof plain_kinds[0]; k++)
        for (int i = 0; i < times; i++) {
            const struct tcgen05_form form = {
                .kind = plain_kinds[k], .ctas = ctas, .sparse = sparse, .a_in_tensor_memory = i % 3 == 2
            };
            const uint32_t m = (i % 2 == 0 || sparse ? 128u : 64u) * ctas;
            run_form(t, form, m, draw_n(t, form), i % 4 < 2);
        }
}
static void plain_kinds_of_one_cta(struct test *t) { plain_of(t, 1, false, 12); }
static void sparse_kinds_of_one_cta(struct test *t) { plain_of(t, 1, true, 6); }

static void scaled_of(struct test *t, uint8_t ctas, bool sparse, int times)
{
    for (size_t k = 0; k < sizeof scaled_kinds / sizeof scaled_kinds[0]; k++)
        for (int i = 0; i < times; i++) {
            const struct tcgen05_form form = { .kind = scaled_kinds[k].kind, .ctas = ctas,
                                               .block = scaled_kinds[k].block,
                                               .sparse = sparse, .a_in_tensor_memory = i % 3 == 2 };
            run_form(t, form, 128u * ctas, draw_n(t, form), i % 4 == 1);
        }
}
static void scaled_kinds_of_one_cta(struct test *t) { scaled_of(t, 1, false, 10); }
static void sparse_scaled_kinds_of_one_cta(struct test *t) { scaled_of(t, 1, true, 5); }

static void plain_kinds_of_a_pair(struct test *t) { plain_of(t, 2, false, 6); }
static void sparse_kinds_of_a_pair(struct test *t) { plain_of(t, 2, true, 3); }
static void scaled_kinds_of_a_pair(struct test *t) { scaled_of(t, 2, false, 5); scaled_of(t, 2, true, 2); }

static void weight_stationary(struct test *t)
{
    static const uint32_t rows[] = { 32, 64, 128 }, columns[] = { 64, 128, 256 };
    for (size_t k = 0; k < sizeof plain_kinds / sizeof plain_kinds[0]; k++)
        for (int i = 0; i < 12; i++) {
            const struct tcgen05_form form = { .kind = plain_kinds[k], .ctas = 1, .weight_stationary = true,
                                               .sparse = i % 4 == 3,
                                               .a_in_tensor_memory = i % 3 == 1 };
            run_form(t, form, rows[rnd_below(t, 3)], columns[rnd_below(t, form.sparse ? 2 : 3)], i % 2 == 0);
        }
}

static void for_each_kind(struct test *t, struct run run)
{
    for (size_t k = 0; k < sizeof plain_kinds / sizeof plain_kinds[0]; k++) {
        struct mma_case *c = new_case((struct tcgen05_form){ .kind = plain_kinds[k], .ctas = 1 }, 64, 32);
        run_case(t, c, run);
        free(c);
    }
    for (size_t k = 0; k < sizeof scaled_kinds / sizeof scaled_kinds[0]; k++) {
        const struct tcgen05_form form = { .kind = scaled_kinds[k].kind, .ctas = 1, .block = scaled_kinds[k].block };
        struct mma_case *c = new_case(form, 128, 16);
        run_case(t, c, run);
        free(c);
    }
}
static void products_follow_each_other(struct test *t) { for_each_kind(t, (struct run){ .twice = true }); }
static void fp32_mode_gives_exact_sums_too(struct test *t)
{
    for_each_kind(t, (struct run){ .whole = true, .mode = TENSOR_MODE_FP32 });
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        TEST(plain_kinds_of_one_cta), TEST(sparse_kinds_of_one_cta), TEST(scaled_kinds_of_one_cta),
        TEST(sparse_scaled_kinds_of_one_cta), TEST(weight_stationary), TEST(plain_kinds_of_a_pair),
        TEST(sparse_kinds_of_a_pair), TEST(scaled_kinds_of_a_pair), TEST(products_follow_each_other),
        TEST(fp32_mode_gives_exact_sums_too),
    };
    return TEST_MAIN(argc, argv, cases);
}
