/* BSM_ORDER_ANY: whole numbers, which every order sums exactly, against the CPU byte for byte; other data against the bound
 * of the header; the same bits each time; and who takes it when.
 * GEMM_INSTANCE=FUNCTION: kernels of this function alone. */
#include "gpu.h"

#include <math.h>
#include <stdlib.h>

/* Number of the n-th kernel that divides K; -1 behind the last. */
static int dividing(int n) { return kernel_with("_split", n); }

/* Contexts, if the GPU has such kernels. */
static bool order_open(struct test *t, struct contexts *c)
{
    if (!contexts_open(t, c)) return false;
    struct operand a = nibble_operand(BSM_FORMAT_BF16, 1, 32, 0, BSM_LAYOUT_LINEAR), b = nibble_operand(BSM_MXFP4, 1, 32, 0, BSM_LAYOUT_LINEAR);
    struct operand d = nibble_operand(BSM_FORMAT_FP32, 1, 1, 0, BSM_LAYOUT_LINEAR);
    const bsm_matmul call = { .struct_size = sizeof call, .a = &a.m, .b = &b.m, .d = &d.m, .order = BSM_ORDER_ANY };
    CHECK(t, bsm_context_force_kernel(c->gpu, dividing(0)) == BSM_OK);
    const bool here = bsm_supported(c->gpu, &call) == BSM_OK;
    CHECK(t, bsm_context_force_kernel(c->gpu, -1) == BSM_OK);
    operand_free(&a), operand_free(&b), operand_free(&d);
    if (here) return true;
    test_skip(t, "this GPU has no kernels that divide K");
    contexts_close(c);
    return false;
}

struct problem {
    int64_t m, n, k, batch, groups;
    bsm_format a, d;
    bsm_layout layout;
    bool addends;
};

static void check_whole_numbers(struct test *t, const struct contexts *c, const struct problem *q, int kernel)
{
    static const int64_t group_rows[] = { 0, 13, 1, 0, 6 };
    float alpha[1024], bias[1024], beta = 2;
    for (int i = 0; i < 1024; i++) alpha[i] = (float)(i % 4) - 1, bias[i] = (float)(i % 9) - 3;
    const int64_t of_d = q->groups > 0 ? 1 : q->batch;
    struct operand a = nibble_operand(q->a, q->m, q->k, of_d, BSM_LAYOUT_LINEAR),
                   b = nibble_operand(nibbles_of_kernel(kernel), q->n, q->k, q->groups > 0 ? q->groups : q->batch, q->layout);
    struct operand d = nibble_operand(q->d, q->m, q->n, of_d, BSM_LAYOUT_LINEAR),
                   cc = nibble_operand(BSM_FORMAT_BF16, q->m, q->n, of_d, BSM_LAYOUT_LINEAR);
    operand_fill(t, &a, true), operand_fill(t, &b, true), operand_fill(t, &cc, true);
    struct run run = { .a = &a,
                       .b = &b,
                       .d = &d,
                       .call = { .struct_size = sizeof run.call,
                                 .order = BSM_ORDER_ANY,
                                 .groups = q->groups,
                                 .group_rows = q->groups > 0 ? group_rows : NULL } };
    if (q->addends) {
        run.c = &cc, run.alphas = q->m, run.biases = q->n, run.call.alpha = alpha, run.call.alpha_per = BSM_PER_ROW;
        run.call.beta = &beta, run.call.bias = bias, run.call.bias_per = BSM_PER_COLUMN;
    }
    CHECK(t, bsm_context_force_kernel(c->gpu, kernel) == BSM_OK);
    run_both(t, c, &run, bsm_kernel_name(kernel));
    operand_free(&a), operand_free(&b), operand_free(&d), operand_free(&cc);
}

/* Parts of K without a turn, rings that go round, several tiles a cluster and not, in each form of product. */
static void whole_numbers_are_exact(struct test *t)
{
    static const struct problem problems[] = {
        { 5, 150, 1056, 1, 0, BSM_FORMAT_BF16, BSM_FORMAT_FP32, BSM_LAYOUT_LINEAR, false },
        { 1, 1, 32, 1, 0, BSM_FORMAT_BF16, BSM_FORMAT_FP32, BSM_LAYOUT_LINEAR, false },
        { 17, 70, 288, 1, 0, BSM_FORMAT_BF16, BSM_FORMAT_BF16, BSM_LAYOUT_128X4, true },
        { 40, 65, 2848, 1, 0, BSM_FORMAT_BF16, BSM_FORMAT_FP32, BSM_LAYOUT_LINEAR, true },
        { 3, 66, 544, 3, 0, BSM_FORMAT_BF16, BSM_FORMAT_FP16, BSM_LAYOUT_LINEAR, false },
        { 20, 72, 320, 0, 5, BSM_FORMAT_BF16, BSM_FORMAT_FP32, BSM_LAYOUT_LINEAR, false },
        { 20, 64, 800, 1, 0, BSM_MXFP8_E4M3, BSM_FORMAT_BF16, BSM_LAYOUT_LINEAR, false },
        { 20, 64, 96, 1, 0, BSM_MXFP4, BSM_MXFP8_E4M3, BSM_LAYOUT_LINEAR, false },
    };
    enum { PROBLEMS = sizeof problems / sizeof problems[0] };
    struct contexts c;
    if (!order_open(t, &c)) return;
    for (int n = 0; dividing(n) >= 0; n++)
        for (int i = 0; i < PROBLEMS && is_asked_for(dividing(n)); i++)
            if (!is_simulated() || one_is_asked_for() || i == 0 || i == 1 + n % (PROBLEMS - 1)) check_whole_numbers(t, &c, &problems[i], dividing(n));
    contexts_close(&c);
}

/* The device's D, fp32, in `bytes`. */
static void multiply(struct test *t, const struct contexts *c, const struct operand *a, const struct operand *b, float *d)
{
    const int64_t m = a->m.rows, n = b->m.rows;
    struct twin x = twin_make(t, c, a), y = twin_make(t, c, b);
    memset(d, 0xee, (size_t)(m * n) * sizeof *d);
    const bsm_matrix out = { .struct_size = sizeof out,
                             .format = BSM_FORMAT_FP32,
                             .rows = m,
                             .columns = n,
                             .data = to_device(t, c, d, (size_t)(m * n) * sizeof *d) };
    const bsm_matmul call = { .struct_size = sizeof call, .a = &x.m, .b = &y.m, .d = &out, .order = BSM_ORDER_ANY };
    if (bsm_multiply(c->gpu, &call) != BSM_OK) FAIL(t, "%s", bsm_last_error());
    from_device(t, c, d, out.data, (size_t)(m * n) * sizeof *d);
    twin_free(t, c, &x), twin_free(t, c, &y), (void)bsm_device_release(c->gpu, out.data);
}

/* The header's; what is left out is a chain of K roundings instead, and an exponent is put back with one more. */
static double bound_of(double magnitude, int64_t k, enum scales scales)
{
    const double roundings = scales == SCALES_USUAL ? 10 * ceil((double)k / 16) : fmax(10 * ceil((double)k / 16), (double)k) + 1;
    return magnitude * (roundings + 8) * ldexp(1, -24) * (1 + roundings * ldexp(1, -23)) + (double)k * ldexp(1, -149);
}

static void check_bound(struct test *t, const struct contexts *c, const struct operand *a, const struct operand *b, const float *d,
                        enum scales scales, const char *what)
{
    const int64_t m = a->m.rows, n = b->m.rows;
    double *sum = malloc((size_t)(m * n) * 8), *magnitude = malloc((size_t)(m * n) * 8);
    const bsm_real_matrix s = {
        .struct_size = sizeof s, .type = BSM_REAL_FP64, .rows = m, .columns = n, .data = sum, .row_stride = n, .column_stride = 1
    };
    bsm_real_matrix g = s;
    g.data = magnitude;
    CHECK(t, bsm_matmul_exact(c->cpu, &a->m, &b->m, &s, &g) == BSM_OK);
    for (int64_t i = 0; i < m * n; i++) {
        const double bound = bound_of(magnitude[i], a->m.columns, scales);
        const bool good = isnan(sum[i]) ? isnan(d[i]) : magnitude[i] >= 0x1p127 || fabs((double)d[i] - sum[i]) <= bound;
        if (good) continue;
        FAIL(t, "%s, scales %d: element (%d, %d) is %a, exactly %a: bound %a", what, (int)scales, (int)(i / n), (int)(i % n),
             (double)d[i], sum[i], bound);
        break;
    }
    free(sum), free(magnitude);
}

static void any_numbers_are_within_the_bound(struct test *t)
{
    enum { M = 18, N = 70, K = 1056 };
    static float d[M * N];
    struct contexts c;
    if (!order_open(t, &c)) return;
    for (int n = 0; dividing(n) >= 0; n++)
        for (int scales = 0; scales < SCALES_COUNT; scales++) {
            if (is_simulated() && !one_is_asked_for() && scales != n % SCALES_COUNT && !(n == 0 && scales == SCALES_WITH_NAN))
                continue;                 /* NaN: a loop of its own in MXFP4's */
            if (!is_asked_for(dividing(n))) continue;
            struct operand a = nibble_operand(n % 3 == 2 ? BSM_MXFP8_E4M3 : BSM_FORMAT_BF16, M, K, 0, BSM_LAYOUT_LINEAR);
            struct operand b = nibble_operand(nibbles_of_kernel(dividing(n)), N, K, 0, n % 2 == 0 ? BSM_LAYOUT_LINEAR : BSM_LAYOUT_DEEPGEMM);
            operand_fill(t, &a, false), operand_fill(t, &b, false), set_scales(t, &b, (enum scales)scales);
            if (a.m.format != BSM_FORMAT_BF16 && scales == SCALES_SPANNING) set_scales(t, &a, SCALES_SPANNING);   /* left out of A, too */
            CHECK(t, bsm_context_force_kernel(c.gpu, dividing(n)) == BSM_OK);
            multiply(t, &c, &a, &b, d);
            check_bound(t, &c, &a, &b, d, (enum scales)scales, bsm_kernel_name(dividing(n)));
            operand_free(&a), operand_free(&b);
        }
    contexts_close(&c);
}

/* Several tiles a cluster, each with sums from everywhere. */
static void same_bits_each_time(struct test *t)
{
    enum { M = 16, N = 320, K = 1056 };
    static float first[M * N], d[M * N];
    struct contexts c;
    if (!order_open(t, &c)) return;
    for (int n = 0; dividing(n) >= 0; n++) {
        if (is_simulated() && strstr(bsm_kernel_name(dividing(n)), "mxfp4_16x64") == NULL) continue;
        struct operand a = nibble_operand(BSM_FORMAT_BF16, M, K, 0, BSM_LAYOUT_LINEAR),
                       b = nibble_operand(nibbles_of_kernel(dividing(n)), N, K, 0, BSM_LAYOUT_LINEAR);
        operand_fill(t, &a, false), operand_fill(t, &b, false);
        CHECK(t, bsm_context_force_kernel(c.gpu, dividing(n)) == BSM_OK);
        for (int time = 0; time < (is_simulated() ? 2 : 200); time++) {
            multiply(t, &c, &a, &b, time == 0 ? first : d);
            if (time > 0 && memcmp(first, d, sizeof d) != 0) {
                FAIL(t, "%s: the bits of product %d are others", bsm_kernel_name(dividing(n)), time);
                break;
            }
        }
        check_bound(t, &c, &a, &b, first, SCALES_USUAL, bsm_kernel_name(dividing(n)));
        operand_free(&a), operand_free(&b);
    }
    contexts_close(&c);
}

/* B is written by the kernel in front, which may not have ended when the product begins. */
static void weights_written_just_before(struct test *t)
{
    enum { M = 5, N = 130, K = 1056 };
    static uint16_t numbers[N * K];
    static float d[M * N];
    struct contexts c;
    if (!order_open(t, &c)) return;
    for (int i = 0; i < N * K; i++) numbers[i] = (uint16_t)(0x3f80 + rnd_below(t, 0x100) + (rnd_below(t, 2) << 15));
    int divides = 1;
    while (!is_asked_for(dividing(divides))) divides++;
    const bsm_format codes = nibbles_of_kernel(dividing(divides));
    struct operand a = nibble_operand(BSM_FORMAT_BF16, M, K, 0, BSM_LAYOUT_LINEAR), b = nibble_operand(codes, N, K, 0, BSM_LAYOUT_LINEAR);
    operand_fill(t, &a, false);
    struct twin x = twin_make(t, &c, &a), y = twin_make(t, &c, &b);
    const bsm_matrix out = {
        .struct_size = sizeof out, .format = BSM_FORMAT_FP32, .rows = M, .columns = N, .data = to_device(t, &c, d, sizeof d)
    };
    const bsm_real_matrix source = { .struct_size = sizeof source,
                                     .type = BSM_REAL_BF16,
                                     .rows = N,
                                     .columns = K,
                                     .data = to_device(t, &c, numbers, sizeof numbers),
                                     .row_stride = K,
                                     .column_stride = 1 };
    for (int order = 0; order < BSM_ORDER_COUNT; order++) {
        const char *turns = codes == BSM_MXFP4 ? "cuda_wgmma_mxfp4_16x64_1x1_turns" : "cuda_wgmma_nvfp4_16x64_1x1_turns";
        const int kernel = order == BSM_ORDER_ANY ? dividing(divides) : kernel_number(c.gpu, turns, BSM_FORMAT_BF16, codes);
        const bsm_matmul call = { .struct_size = sizeof call, .a = &x.m, .b = &y.m, .d = &out, .order = (bsm_order)order };
        CHECK(t, bsm_context_force_kernel(c.gpu, kernel) == BSM_OK);
        CHECK(t, bsm_quantize(c.gpu, &source, NULL, &y.m, NULL) == BSM_OK);
        if (bsm_multiply(c.gpu, &call) != BSM_OK) FAIL(t, "%s", bsm_last_error());
        from_device(t, &c, d, out.data, sizeof d);
        from_device(t, &c, b.m.data, y.m.data, b.data_bytes), from_device(t, &c, b.m.scales, y.m.scales, b.scale_bytes);
        check_bound(t, &c, &a, &b, d, SCALES_USUAL, bsm_kernel_name(kernel));
    }
    twin_free(t, &c, &x), twin_free(t, &c, &y);
    (void)bsm_device_release(c.gpu, out.data), (void)bsm_device_release(c.gpu, source.data);
    operand_free(&a), operand_free(&b);
    contexts_close(&c);
}

/* The plan's line for bf16 x MXFP4. */
static void describe(struct test *t, const struct contexts *c, int64_t m, int64_t n, bsm_order order, char *text, size_t bytes)
{
    struct operand a = nibble_operand(BSM_FORMAT_BF16, m, 8192, 0, BSM_LAYOUT_LINEAR), b = nibble_operand(BSM_MXFP4, n, 8192, 0, BSM_LAYOUT_LINEAR);
    struct operand d = nibble_operand(BSM_FORMAT_FP32, m, n, 0, BSM_LAYOUT_LINEAR);
    const bsm_matmul call = { .struct_size = sizeof call, .a = &a.m, .b = &b.m, .d = &d.m, .order = order };
    bsm_plan *plan = NULL;
    CHECK(t, bsm_plan_create(c->gpu, &call, &plan) == BSM_OK);
    bsm_plan_describe(plan, text, bytes);
    bsm_plan_destroy(plan);
    operand_free(&a), operand_free(&b), operand_free(&d);
}

static void chosen_by_name_alone(struct test *t)
{
    struct contexts c;
    char any[1000], k[1000];
    if (!order_open(t, &c)) return;
    /* A tile's columns: as many waves on a simulated GPU as on another. */
    describe(t, &c, 8, 64, BSM_ORDER_ANY, any, sizeof any), describe(t, &c, 8, 64, BSM_ORDER_K, k, sizeof k);
    if (strstr(any, "_split") == NULL || strstr(any, "order: any: tensor cores along each of ") == NULL)
        FAIL(t, "BSM_ORDER_ANY: %s", any);
    if (strstr(k, "_split") != NULL) FAIL(t, "BSM_ORDER_K: %s", k);
    describe(t, &c, 1000, 8192, BSM_ORDER_ANY, any, sizeof any), describe(t, &c, 1000, 8192, BSM_ORDER_K, k, sizeof k);
    if (strcmp(any, k) != 0) FAIL(t, "BSM_ORDER_ANY for many rows: %s; BSM_ORDER_K: %s", any, k);
    struct operand a = nibble_operand(BSM_FORMAT_BF16, 1, 32, 0, BSM_LAYOUT_LINEAR), b = nibble_operand(BSM_MXFP4, 1, 32, 0, BSM_LAYOUT_LINEAR);
    struct operand d = nibble_operand(BSM_FORMAT_FP32, 1, 1, 0, BSM_LAYOUT_LINEAR);
    const bsm_matmul call = { .struct_size = sizeof call, .a = &a.m, .b = &b.m, .d = &d.m };
    CHECK(t, bsm_context_force_kernel(c.gpu, dividing(0)) == BSM_OK);
    CHECK(t, bsm_supported(c.gpu, &call) == BSM_EUNSUPPORTED);
    CHECK(t, strstr(bsm_last_error(), "BSM_ORDER_ANY") != NULL);
    CHECK(t, !bsm_kernel_serves(c.gpu, dividing(0), BSM_FORMAT_BF16, BSM_MXFP4));
    operand_free(&a), operand_free(&b), operand_free(&d);
    contexts_close(&c);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(whole_numbers_are_exact), TEST(any_numbers_are_within_the_bound),
                                              TEST(same_bits_each_time), TEST(weights_written_just_before),
                                              TEST(chosen_by_name_alone) };
    return TEST_MAIN(argc, argv, cases);
}
