/* BSM_ORDER_ANY changes nothing: the bits and the plan of BSM_ORDER_K; whole numbers, which every order sums exactly,
 * against the CPU byte for byte; and weights that the kernel in front writes.  BSM_ORDER_PORTABLE has the bits of the
 * CPU. */
#include "cuda/harness/gpu.h"

#include <math.h>
#include <stdlib.h>

/* Contexts, if the GPU has the kernels for few rows. */
static bool order_open(struct test *t, struct contexts *c)
{
    if (!contexts_open(t, c)) return false;
    if (few_rows_kernel(c->gpu) != NULL) return true;
    test_skip(t, "this GPU has no kernels that decode in registers");
    contexts_close(c);
    return false;
}

struct problem {
    int64_t m, n, k, batch, groups;
    bsm_format a, d;
    bsm_layout layout;
    bool addends;
};

static void check_whole_numbers(struct test *t, const struct contexts *c, const struct problem *q, bsm_format codes)
{
    static const int64_t group_rows[] = { 0, 13, 1, 0, 6 };
    float alpha[1024], bias[1024], beta = 2;
    for (int i = 0; i < 1024; i++) alpha[i] = (float)(i % 4) - 1, bias[i] = (float)(i % 9) - 3;
    const int64_t of_d = q->groups > 0 ? 1 : q->batch;
    struct operand a = nibble_operand(q->a, q->m, q->k, of_d, BSM_LAYOUT_LINEAR),
                   b = nibble_operand(codes, q->n, q->k, q->groups > 0 ? q->groups : q->batch, q->layout);
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
    run_both(t, c, &run, bsm_format_get((int)codes)->name);
    operand_free(&a), operand_free(&b), operand_free(&d), operand_free(&cc);
}

/* Few K and many, in each form of product. */
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
    for (int i = 0; i < 2 * PROBLEMS; i++)
        if (!is_simulated() || i < PROBLEMS)
            check_whole_numbers(t, &c, &problems[i % PROBLEMS], (i + i / PROBLEMS) % 2 == 0 ? BSM_MXFP4 : BSM_NVFP4);
    contexts_close(&c);
}

/* The device's D, fp32, in `bytes`. */
static void multiply(struct test *t, const struct contexts *c, const struct operand *a, const struct operand *b,
                     bsm_order order, float *d)
{
    const int64_t m = a->m.rows, n = b->m.rows;
    struct twin x = twin_make(t, c, a), y = twin_make(t, c, b);
    memset(d, 0xee, (size_t)(m * n) * sizeof *d);
    const bsm_matrix out = { .struct_size = sizeof out,
                             .format = BSM_FORMAT_FP32,
                             .rows = m,
                             .columns = n,
                             .data = to_device(t, c, d, (size_t)(m * n) * sizeof *d) };
    const bsm_matmul call = { .struct_size = sizeof call, .a = &x.m, .b = &y.m, .d = &out, .order = order };
    if (bsm_multiply(c->gpu, &call) != BSM_OK) FAIL(t, "%s", bsm_last_error());
    from_device(t, c, d, out.data, (size_t)(m * n) * sizeof *d);
    twin_free(t, c, &x), twin_free(t, c, &y), (void)bsm_device_release(c->gpu, out.data);
}

static void same_bits_as_in_the_order_of_k(struct test *t)
{
    enum { M = 18, N = 70, K = 1056 };
    static const struct {
        bsm_format a, b;
    } pairs[] = { { BSM_FORMAT_BF16, BSM_MXFP4 },
                  { BSM_MXFP8_E4M3, BSM_NVFP4 },
                  { BSM_FORMAT_BF16, BSM_NVFP4 },
                  { BSM_MXFP8_E4M3, BSM_MXFP4 } };
    static float any[M * N], k[M * N];
    struct contexts c;
    if (!order_open(t, &c)) return;
    for (int i = 0; i < 4; i++) {
        struct operand a = nibble_operand(pairs[i].a, M, K, 0, BSM_LAYOUT_LINEAR),
                       b = nibble_operand(pairs[i].b, N, K, 0, BSM_LAYOUT_LINEAR);
        operand_fill(t, &a, false), operand_fill(t, &b, false);
        multiply(t, &c, &a, &b, BSM_ORDER_ANY, any), multiply(t, &c, &a, &b, BSM_ORDER_K, k);
        if (memcmp(any, k, sizeof k) != 0)
            FAIL(t, "%s x %s: BSM_ORDER_ANY has other bits", bsm_format_get((int)pairs[i].a)->name,
                 bsm_format_get((int)pairs[i].b)->name);
        operand_free(&a), operand_free(&b);
    }
    contexts_close(&c);
}

static void portable_order_has_the_bits_of_the_cpu(struct test *t)
{
    enum { M = 5, N = 20, K = 288 };
    static const bsm_format pairs[][2] = { { BSM_FORMAT_BF16, BSM_MXFP4 }, { BSM_MXFP8_E4M3, BSM_MXFP8_E4M3 },
                                           { BSM_MXFP4, BSM_MXFP4 }, { BSM_NVFP4, BSM_FORMAT_FP16 } };
    static float gpu[M * N], cpu[M * N];
    struct contexts c;
    if (!contexts_open(t, &c)) return;
    for (int i = 0; i < 4; i++) {
        struct operand a = nibble_operand(pairs[i][0], M, K, 0, BSM_LAYOUT_LINEAR),
                       b = nibble_operand(pairs[i][1], N, K, 0, BSM_LAYOUT_LINEAR);
        const bsm_matrix d = { .struct_size = sizeof d, .format = BSM_FORMAT_FP32, .rows = M, .columns = N,
                               .data = cpu };
        const bsm_matmul call = { .struct_size = sizeof call, .a = &a.m, .b = &b.m, .d = &d,
                                  .order = BSM_ORDER_PORTABLE };
        operand_fill(t, &a, false), operand_fill(t, &b, false);
        multiply(t, &c, &a, &b, BSM_ORDER_PORTABLE, gpu);
        CHECK(t, bsm_multiply(c.cpu, &call) == BSM_OK);
        if (memcmp(gpu, cpu, sizeof cpu) != 0)
            FAIL(t, "%s x %s: BSM_ORDER_PORTABLE has other bits than the CPU", bsm_format_get((int)pairs[i][0])->name,
                 bsm_format_get((int)pairs[i][1])->name);
        operand_free(&a), operand_free(&b);
    }
    contexts_close(&c);
}

/* Kernels of tensor cores have other orders: forced, they are refused by name. */
static void portable_order_refuses_forced_kernels(struct test *t)
{
    struct contexts c;
    if (!contexts_open(t, &c)) return;
    struct operand a = nibble_operand(BSM_FORMAT_BF16, 5, 64, 0, BSM_LAYOUT_LINEAR),
                   b = nibble_operand(BSM_MXFP4, 20, 64, 0, BSM_LAYOUT_LINEAR),
                   d = nibble_operand(BSM_FORMAT_FP32, 5, 20, 0, BSM_LAYOUT_LINEAR);
    const bsm_matmul call = { .struct_size = sizeof call, .a = &a.m, .b = &b.m, .d = &d.m,
                              .order = BSM_ORDER_PORTABLE };
    CHECK(t, bsm_supported(c.gpu, &call) == BSM_OK);
    for (int i = 0; bsm_kernel_name(i) != NULL; i++) {
        if (!bsm_kernel_serves(c.gpu, i, a.m.format, b.m.format)) continue;
        CHECK(t, bsm_context_force_kernel(c.gpu, i) == BSM_OK);
        const bsm_status status = bsm_supported(c.gpu, &call);
        const bool simt = strcmp(bsm_kernel_name(i), "cuda_simt") == 0;
        if (status != (simt ? BSM_OK : BSM_EUNSUPPORTED)
            || (!simt && strstr(bsm_last_error(), "BSM_ORDER_PORTABLE") == NULL))
            FAIL(t, "%s: status %d, \"%s\"", bsm_kernel_name(i), (int)status, bsm_last_error());
    }
    operand_free(&a), operand_free(&b), operand_free(&d);
    contexts_close(&c);
}

/* The header's; what is left out is a chain of K roundings instead, and an exponent is put back with one more. */
static double bound_of(double magnitude, int64_t k, enum scales scales)
{
    const double roundings =
        scales == SCALES_USUAL ? 10 * ceil((double)k / 16) : fmax(10 * ceil((double)k / 16), (double)k) + 1;
    return magnitude * (roundings + 8) * ldexp(1, -24) * (1 + roundings * ldexp(1, -23)) + (double)k * ldexp(1, -149);
}

static void check_bound(struct test *t, const struct contexts *c, const struct operand *a, const struct operand *b,
                        const float *d, enum scales scales, const char *what)
{
    const int64_t m = a->m.rows, n = b->m.rows;
    double *sum = malloc((size_t)(m * n) * 8), *magnitude = malloc((size_t)(m * n) * 8);
    const bsm_real_matrix s = {
        .struct_size = sizeof s, .type = BSM_REAL_FP64, .rows = m, .columns = n, .data = sum, .row_stride = n,
        .column_stride = 1
    };
    bsm_real_matrix g = s;
    g.data = magnitude;
    CHECK(t, bsm_matmul_exact(c->cpu, &a->m, &b->m, &s, &g) == BSM_OK);
    for (int64_t i = 0; i < m * n; i++) {
        const double bound = bound_of(magnitude[i], a->m.columns, scales);
        const bool good = isnan(sum[i]) ? isnan(d[i]) : magnitude[i] >= 0x1p127 || fabs((double)d[i] - sum[i]) <= bound;
        if (good) continue;
        FAIL(t, "%s, scales %d: element (%d, %d) is %a, exactly %a: bound %a", what, (int)scales, (int)(i / n),
             (int)(i % n), (double)d[i], sum[i], bound);
        break;
    }
    free(sum), free(magnitude);
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
    const bsm_format codes = BSM_MXFP4;
    struct operand a = nibble_operand(BSM_FORMAT_BF16, M, K, 0, BSM_LAYOUT_LINEAR),
                   b = nibble_operand(codes, N, K, 0, BSM_LAYOUT_LINEAR);
    operand_fill(t, &a, false);
    struct twin x = twin_make(t, &c, &a), y = twin_make(t, &c, &b);
    const bsm_matrix out = {
        .struct_size = sizeof out, .format = BSM_FORMAT_FP32, .rows = M, .columns = N,
        .data = to_device(t, &c, d, sizeof d)
    };
    const bsm_real_matrix source = { .struct_size = sizeof source,
                                     .type = BSM_REAL_BF16,
                                     .rows = N,
                                     .columns = K,
                                     .data = to_device(t, &c, numbers, sizeof numbers),
                                     .row_stride = K,
                                     .column_stride = 1 };
    for (int order = BSM_ORDER_K; order <= BSM_ORDER_ANY; order++) {
        const int kernel = kernel_number(c.gpu, few_rows_kernel(c.gpu), BSM_FORMAT_BF16, codes);
        const bsm_matmul call = { .struct_size = sizeof call, .a = &x.m, .b = &y.m, .d = &out,
                                  .order = (bsm_order)order };
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
static void describe(struct test *t, const struct contexts *c, int64_t m, int64_t n, bsm_order order, char *text,
                     size_t bytes)
{
    struct operand a = nibble_operand(BSM_FORMAT_BF16, m, 8192, 0, BSM_LAYOUT_LINEAR),
                   b = nibble_operand(BSM_MXFP4, n, 8192, 0, BSM_LAYOUT_LINEAR);
    struct operand d = nibble_operand(BSM_FORMAT_FP32, m, n, 0, BSM_LAYOUT_LINEAR);
    const bsm_matmul call = { .struct_size = sizeof call, .a = &a.m, .b = &b.m, .d = &d.m, .order = order };
    bsm_plan *plan = NULL;
    CHECK(t, bsm_plan_create(c->gpu, &call, &plan) == BSM_OK);
    bsm_plan_describe(plan, text, bytes);
    bsm_plan_destroy(plan);
    operand_free(&a), operand_free(&b), operand_free(&d);
}

static void same_plan_as_in_the_order_of_k(struct test *t)
{
    struct contexts c;
    char any[1000], k[1000];
    if (!order_open(t, &c)) return;
    for (int64_t m = 8; m <= 1000; m += 992) {
        describe(t, &c, m, 8192, BSM_ORDER_ANY, any, sizeof any), describe(t, &c, m, 8192, BSM_ORDER_K, k, sizeof k);
        if (strcmp(any, k) != 0) FAIL(t, "BSM_ORDER_ANY for %d rows: %s; BSM_ORDER_K: %s", (int)m, any, k);
    }
    contexts_close(&c);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(whole_numbers_are_exact), TEST(same_bits_as_in_the_order_of_k),
                                              TEST(weights_written_just_before), TEST(same_plan_as_in_the_order_of_k),
                                              TEST(portable_order_has_the_bits_of_the_cpu),
                                              TEST(portable_order_refuses_forced_kernels) };
    return TEST_MAIN(argc, argv, cases);
}
