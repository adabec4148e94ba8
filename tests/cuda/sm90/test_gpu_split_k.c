/* BSM_ORDER_SPLIT_K: with prepacked weights S is the sum of the first part of K and of the rest, each with the bits of
 * a product of these columns by itself, whatever M and N are; where it does not divide K the bits are those of
 * BSM_ORDER_K.  GEMM_INSTANCE=FUNCTION: kernels of this function alone. */
#include "cuda/harness/gpu.h"

#include <stdlib.h>

enum { SLICE = 384 };                     /* columns; the first part has half of the slices, or one more than the
                                             rest */

static int64_t first_part(int64_t k) { return ((k + SLICE - 1) / SLICE + 1) / 2 * SLICE; }

struct problem {
    int64_t m, n, k;
    bsm_format a, b;
    enum scales scales;
};

static bool opened(struct test *t, struct contexts *c)
{
    if (!contexts_open(t, c)) return false;
    for (int i = 0; kernel_with("_split_k", i) >= 0; i++)
        if (strstr(bsm_kernel_name(kernel_with("_split_k", i)), "_wgmma_") != NULL
            && is_of_gpu(c->gpu, kernel_with("_split_k", i)))
            return true;
    test_skip(t, "this GPU has no kernels for two parts of K");
    contexts_close(c);
    return false;
}

/* D on the device by `kernel` (-1: the plan's choice), with prepacked weights where they are asked for and there are
 * any; what the plan says of itself. */
static void multiply(struct test *t, const struct contexts *c, const bsm_matmul *given, bool packed, int kernel,
                     struct operand *d, char (*text)[1200])
{
    /* operands begin with their matrices */
    struct twin a = twin_make(t, c, (const void *)given->a), b = twin_make(t, c, (const void *)given->b),
                out = twin_make(t, c, d);
    bsm_matmul call = *given;
    bsm_plan *plan = NULL;
    void *workspace = NULL, *panels = NULL;
    call.a = &a.m, call.b = &b.m, call.d = &out.m;
    CHECK(t, bsm_context_force_kernel(c->gpu, kernel) == BSM_OK);
    if (bsm_plan_create(c->gpu, &call, &plan) != BSM_OK) FAIL(t, "%s", bsm_last_error());
    const size_t work = bsm_plan_workspace_bytes(plan), bytes = packed ? bsm_plan_b_panels_bytes(plan) : 0;
    if (text != NULL) bsm_plan_describe(plan, *text, sizeof *text);
    if (work > 0) CHECK(t, bsm_device_allocate(c->gpu, work, &workspace) == BSM_OK);
    if (bytes > 0) {
        CHECK(t, bsm_device_allocate(c->gpu, bytes, &panels) == BSM_OK);
        if (bsm_plan_pack_b(plan, &call, panels, bytes) != BSM_OK) FAIL(t, "%s", bsm_last_error());
        call.b_panels = panels;
    }
    if (bsm_plan_run(plan, &call, workspace, work) != BSM_OK) FAIL(t, "%s", bsm_last_error());
    from_device(t, c, d->m.data, out.m.data, d->data_bytes);
    bsm_plan_destroy(plan);
    if (panels != NULL) (void)bsm_device_release(c->gpu, panels);
    if (workspace != NULL) (void)bsm_device_release(c->gpu, workspace);
    twin_free(t, c, &a), twin_free(t, c, &b), twin_free(t, c, &out);
}

/* S in fp32, in the order BSM_ORDER_K, of some columns alone, by a kernel for rows of bf16. */
static struct operand sums_of_columns(struct test *t, const struct contexts *c, const struct problem *q,
                                      const struct operand *a, const struct operand *b, int64_t first, int64_t columns)
{
    struct operand x = operand_of_columns(&a->m, first, columns), y = operand_of_columns(&b->m, first, columns),
                   d = nibble_operand(BSM_FORMAT_FP32, q->m, q->n, 1, BSM_LAYOUT_LINEAR);
    const bsm_matmul call = { .struct_size = sizeof call, .a = &x.m, .b = &y.m };
    multiply(t, c, &call, false, kernel_number(c->gpu, rows_kernel(c->gpu), q->a, q->b), &d, NULL);
    operand_free(&x), operand_free(&y);
    return d;
}

static uint16_t to_bf16(float v)
{
    uint32_t u;
    memcpy(&u, &v, sizeof u);
    return v != v ? 0x7fc0 : (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

static uint32_t bits(float v)
{
    uint32_t u;
    memcpy(&u, &v, sizeof u);
    return v != v ? 0x7fc00000 : u;
}

/* Large and small scales of e8m0 in turn, 64 rows each, and rows between: kernels ask that of a warpgroup. */
static void mix_scales(struct operand *b)
{
    for (int64_t r = 0; r < b->m.rows; r++)
        for (int64_t s = 0; s < bsm_matrix_scale_columns(&b->m) && r / 16 % 3 != 0; s++)
            bsm_matrix_set_scale(&b->m, 0, r, s, (uint8_t)(120 + (r + s) % 8));
}

/* By all kernels for two parts (simulated, by those whose turn it is), and by the plan's choice. */
static void check_problem(struct test *t, const struct contexts *c, const struct problem *q, int number)
{
    struct operand a = nibble_operand(q->a, q->m, q->k, 1, BSM_LAYOUT_LINEAR),
                   b = nibble_operand(q->b, q->n, q->k, 1, BSM_LAYOUT_LINEAR),
                   d = nibble_operand(BSM_FORMAT_FP32, q->m, q->n, 1, BSM_LAYOUT_LINEAR),
                   narrow = nibble_operand(BSM_FORMAT_BF16, q->m, q->n, 1, BSM_LAYOUT_LINEAR);
    operand_fill(t, &a, false), operand_fill(t, &b, false), set_scales(t, &b, q->scales);
    if (q->b == BSM_MXFP4 && q->scales != SCALES_SPANNING) mix_scales(&b);
    const int64_t first = first_part(q->k), count = q->m * q->n;
    struct operand whole = sums_of_columns(t, c, q, &a, &b, 0, q->k),
                   one = sums_of_columns(t, c, q, &a, &b, 0, first),
                   two = sums_of_columns(t, c, q, &a, &b, first, q->k - first);
    const float *w = whole.m.data, *x = one.m.data, *y = two.m.data, *got = d.m.data;
    const uint16_t *got_narrow = narrow.m.data;
    const bsm_matmul call = { .struct_size = sizeof call, .a = &a.m, .b = &b.m, .order = BSM_ORDER_SPLIT_K };
    int64_t others = 0, ran = 0;
    for (int i = -1; i < 0 || kernel_with("_split_k", i) >= 0; i++) {
        const int kernel = i < 0 ? -1 : kernel_with("_split_k", i);
        if (i < 0 && is_simulated() && one_is_asked_for()) continue;
        if (i >= 0 && (strstr(bsm_kernel_name(kernel), "_wgmma_") == NULL || nibbles_of_kernel(kernel) != q->b
                       || !is_asked_for(kernel)))
            continue;
        if (i >= 0 && is_simulated() && !one_is_asked_for() && (i + number) % 2 == 0) continue;
        multiply(t, c, &call, true, kernel, &d, NULL), ran++;
        if (i < 0 || !is_simulated()) multiply(t, c, &call, true, kernel, &narrow, NULL);
        for (int64_t e = 0; e < count; e++) {
            const float sum = x[e] + y[e];
            const bool falls_back = q->scales == SCALES_SPANNING && bits(got[e]) == bits(w[e]);
            others += bits(sum) != bits(w[e]);
            const bool narrowed = (i >= 0 && is_simulated()) || got_narrow[e] == to_bf16(got[e]);
            if ((bits(got[e]) != bits(sum) && !falls_back) || !narrowed)
                FAIL(t, "%s, %d x %d x %d, element %d: %a, bf16 %04x; not %a + %a",
                     kernel < 0 ? "the plan's choice" : bsm_kernel_name(kernel), (int)q->m, (int)q->n, (int)q->k,
                     (int)e, (double)got[e], got_narrow[e], (double)x[e], (double)y[e]);
        }
    }
    if (ran > 0 && count >= 100 && others == 0)
        FAIL(t, "%d x %d x %d: one chain of sums would pass", (int)q->m, (int)q->n, (int)q->k);
    operand_free(&a), operand_free(&b), operand_free(&d), operand_free(&narrow);
    operand_free(&whole), operand_free(&one), operand_free(&two);
}

/* Ragged sizes, a second part of less than a step, several tiles of a cluster, A that is decoded in front, and rows
 * that bf16 cannot hold: these have one order. */
static void parts_add_up(struct test *t)
{
    static const struct problem problems[] = {
        { 5, 150, 1056, BSM_FORMAT_BF16, BSM_MXFP4, SCALES_USUAL },
        { 100, 130, 800, BSM_FORMAT_BF16, BSM_NVFP4, SCALES_USUAL },
        { 100, 66, 1570, BSM_FORMAT_BF16, BSM_MXFP4, SCALES_LARGE },
        { 140, 66, 840, BSM_FORMAT_BF16, BSM_MXFP4, SCALES_USUAL },
        { 70, 66, 1152, BSM_MXFP8_E4M3, BSM_MXFP4, SCALES_USUAL },
        { 40, 66, 992, BSM_FORMAT_BF16, BSM_MXFP4, SCALES_SPANNING },
    };
    struct contexts c;
    if (!opened(t, &c)) return;
    for (size_t i = 0; i < sizeof problems / sizeof problems[0]; i++) check_problem(t, &c, &problems[i], (int)i);
    contexts_close(&c);
}

/* Two tiles of a cluster: what a warpgroup was given is overwritten by the next tile's. */
static void schedules(struct test *t)
{
    static const struct problem of_mxfp4 = { 20, 390, 864, BSM_FORMAT_BF16, BSM_MXFP4, SCALES_USUAL },
                                of_nvfp4 = { 20, 390, 864, BSM_FORMAT_BF16, BSM_NVFP4, SCALES_USUAL };
    struct contexts c;
    if (!opened(t, &c)) return;
    if (!is_simulated() || one_is_asked_for()) {
        check_problem(t, &c, &of_mxfp4, 0);
        check_problem(t, &c, &of_nvfp4, 0);
    }
    contexts_close(&c);
}

/* Whether a plan divides K, whose description says so. */
static bool divides(struct test *t, const struct contexts *c, bsm_format a_format, bsm_format b_format, int64_t m,
                    int64_t n, int64_t k, int64_t groups, bsm_order order)
{
    struct operand a = nibble_operand(a_format, m, k, 0, BSM_LAYOUT_LINEAR),
                   b = nibble_operand(b_format, n, k, groups, BSM_LAYOUT_LINEAR),
                   d = nibble_operand(BSM_FORMAT_FP32, m, n, 0, BSM_LAYOUT_LINEAR);
    const int64_t rows[2] = { 0, m };
    const bsm_matmul call = { .struct_size = sizeof call, .a = &a.m, .b = &b.m, .d = &d.m, .groups = groups,
                              .group_rows = groups > 0 ? rows : NULL, .order = order };
    bsm_plan *plan = NULL;
    char text[1200];
    CHECK(t, bsm_context_force_kernel(c->gpu, -1) == BSM_OK);
    if (bsm_plan_create(c->gpu, &call, &plan) != BSM_OK) FAIL(t, "%s", bsm_last_error());
    bsm_plan_describe(plan, text, sizeof text);
    const bool divided = strstr(text, "_split_k") != NULL;
    CHECK(t, !divided || bsm_plan_b_panels_bytes(plan) > 0);
    bsm_plan_destroy(plan);
    operand_free(&a), operand_free(&b), operand_free(&d);
    return divided;
}

/* Whatever M and N are, and by nothing else than what the header says. */
static void rule(struct test *t)
{
    static const int64_t rows[] = { 1, 2, 17, 64, 65, 128, 200, 1000, 5000 };
    struct contexts c;
    if (!opened(t, &c)) return;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CHECK(t, divides(t, &c, BSM_FORMAT_BF16, BSM_MXFP4, rows[i], 66, 800, 0, BSM_ORDER_SPLIT_K));
        CHECK(t, divides(t, &c, BSM_FORMAT_BF16, BSM_NVFP4, rows[i], 1, 770, 0, BSM_ORDER_SPLIT_K));
    }
    CHECK(t, divides(t, &c, BSM_MXFP8_E4M3, BSM_MXFP4, 3, 66, 800, 0, BSM_ORDER_SPLIT_K));
    CHECK(t, divides(t, &c, BSM_NVFP4, BSM_NVFP4, 3, 66, 800, 0, BSM_ORDER_SPLIT_K));
    CHECK(t, !divides(t, &c, BSM_FORMAT_BF16, BSM_MXFP4, 3, 66, 768, 0, BSM_ORDER_SPLIT_K));
    CHECK(t, !divides(t, &c, BSM_MXFP4, BSM_MXFP4, 3, 66, 800, 0, BSM_ORDER_SPLIT_K));
    CHECK(t, !divides(t, &c, BSM_FORMAT_FP16, BSM_MXFP4, 3, 66, 800, 0, BSM_ORDER_SPLIT_K));
    CHECK(t, !divides(t, &c, BSM_FORMAT_BF16, BSM_MXFP8_E4M3, 3, 66, 800, 0, BSM_ORDER_SPLIT_K));
    CHECK(t, !divides(t, &c, BSM_FORMAT_BF16, BSM_MXFP4, 3, 66, 800, 2, BSM_ORDER_SPLIT_K));
    CHECK(t, !divides(t, &c, BSM_FORMAT_BF16, BSM_MXFP4, 128, 7168, 800, 0, BSM_ORDER_K));
    CHECK(t, !divides(t, &c, BSM_FORMAT_BF16, BSM_MXFP4, 128, 7168, 800, 0, BSM_ORDER_ANY));
    contexts_close(&c);
}

/* Weights as they are stored are multiplied in the order BSM_ORDER_K. */
static void stored_weights(struct test *t)
{
    static const struct problem q = { 20, 66, 800, BSM_FORMAT_BF16, BSM_MXFP4, SCALES_USUAL };
    struct contexts c;
    if (!opened(t, &c)) return;
    struct operand a = nibble_operand(q.a, q.m, q.k, 1, BSM_LAYOUT_LINEAR), b = nibble_operand(q.b, q.n, q.k, 1,
                                                                                               BSM_LAYOUT_LINEAR),
                   d = nibble_operand(BSM_FORMAT_FP32, q.m, q.n, 1, BSM_LAYOUT_LINEAR);
    operand_fill(t, &a, false), operand_fill(t, &b, false), set_scales(t, &b, q.scales);
    struct operand want = sums_of_columns(t, &c, &q, &a, &b, 0, q.k);
    const bsm_matmul call = { .struct_size = sizeof call, .a = &a.m, .b = &b.m, .order = BSM_ORDER_SPLIT_K };
    multiply(t, &c, &call, false, -1, &d, NULL);
    CHECK(t, memcmp(d.m.data, want.m.data, d.data_bytes) == 0);
    operand_free(&a), operand_free(&b), operand_free(&d), operand_free(&want);
    contexts_close(&c);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(parts_add_up), TEST(schedules), TEST(rule), TEST(stored_weights) };
    return TEST_MAIN(argc, argv, cases);
}
