/* BSM_COMPUTE_FAST: whole numbers, which it has exactly, against the CPU byte for byte; other data against its bound;
 * the same bits for every M. */
#include "cuda/harness/gpu.h"

#include <math.h>
#include <stdlib.h>

static const bsm_format formats[] = { BSM_MXFP8_E4M3, BSM_MXFP8_E5M2, BSM_MXFP6_E2M3, BSM_MXFP6_E3M2, BSM_MXFP4 };
enum { FORMATS = sizeof formats / sizeof formats[0], SUMMED = 256 };

/* Contexts, if the GPU has a kernel for it. */
static bool fast_open(struct test *t, struct contexts *c)
{
    int kernel = 0;
    if (!contexts_open(t, c)) return false;
    while (bsm_kernel_name(kernel) != NULL && strstr(bsm_kernel_name(kernel), "_fp8_requantized_") == NULL) kernel++;
    struct operand a = operand_make(&(struct shape){ .format = BSM_MXFP8_E4M3, .rows = 1, .columns = 32 }, 0);
    struct operand d = operand_make(&(struct shape){ .format = BSM_FORMAT_FP32, .rows = 1, .columns = 1 }, 0);
    const bsm_matmul call = { .struct_size = sizeof call, .a = &a.m, .b = &a.m, .d = &d.m,
                              .compute = BSM_COMPUTE_FAST };
    CHECK(t, bsm_context_force_kernel(c->gpu, kernel) == BSM_OK);
    const bool here = bsm_supported(c->gpu, &call) == BSM_OK;
    CHECK(t, bsm_context_force_kernel(c->gpu, -1) == BSM_OK);
    operand_free(&a), operand_free(&d);
    if (here) return true;
    test_skip(t, "this GPU has no kernel for BSM_COMPUTE_FAST");
    contexts_close(c);
    return false;
}

/* A format in the packing that rows of it usually have. */
static struct shape shape_of(bsm_format format, int64_t rows, int64_t columns, int64_t batch)
{
    const int bits = bsm_element_get((int)bsm_format_get((int)format)->element)->bits;
    return (struct shape){ .format = format, .rows = rows, .columns = columns, .batch = batch,
                           .packing = bits == 6 ? BSM_PACKING_BYTES : BSM_PACKING_DEFAULT };
}

/* Whole numbers of magnitude at most 4, times a power of two for each row and one of 1, 2, 4 for each 128 columns:
 * exact in every order. */
static struct operand whole_numbers(struct test *t, bsm_format format, int64_t rows, int64_t columns, int64_t batch)
{
    const struct shape shape = shape_of(format, rows, columns, batch);
    struct operand o = operand_make(&shape, 0xff);
    operand_fill(t, &o, true);
    for (int64_t b = 0; b < (batch == 0 ? 1 : batch); b++)
        for (int64_t r = 0; r < rows; r++)
            for (int64_t s = 0; s < bsm_matrix_scale_columns(&o.m); s++)
                bsm_matrix_set_scale(&o.m, b, r, s, (uint8_t)(127 + (r + s / 4) % 3 - (r % 5 == 0 ? 1 : 0)));
    return o;
}

struct problem {
    bsm_format a, b, d;
    int64_t m, n, k, batch, groups;
    bool b_broadcast, addends;
    bool no_exponents;                    /* of rows */
};

static void check_whole_numbers(struct test *t, const struct contexts *c, const struct problem *q)
{
    static const int64_t group_rows[] = { 0, 130, 1, 0, 69 };
    float alpha[1024], bias[1024], beta = 2;
    char what[200];
    for (int i = 0; i < 1024; i++) alpha[i] = (float)(i % 4) - 1, bias[i] = (float)(i % 9) - 3;
    const int64_t matrices = q->groups > 0 ? q->groups : q->batch;
    struct operand a = whole_numbers(t, q->a, q->m, q->k, q->groups > 0 ? 1 : q->batch),
                   b = whole_numbers(t, q->b, q->n, q->k, q->b_broadcast ? 1 : matrices);
    for (int64_t r = 0; q->no_exponents && r < q->m + q->n; r++)
        for (int64_t s = 0; s < q->k / 32; s++)
            bsm_matrix_set_scale(r < q->m ? &a.m : &b.m, 0, r < q->m ? r : r - q->m, s, 127);
    const int64_t of_d = q->groups > 0 ? 1 : q->batch;
    struct operand d = operand_make(&(struct shape){ .format = q->d, .rows = q->m, .columns = q->n, .batch = of_d,
                                                     .extra_pitch = q->n % 8 == 0 ? 0 : 64 }, 0xee);
    struct operand cc = operand_make(&(struct shape){ .format = BSM_FORMAT_BF16, .rows = q->m, .columns = q->n,
                                                      .batch = of_d }, 0xff);
    operand_fill(t, &cc, true);
    struct run run = { .a = &a, .b = &b, .d = &d,
                       .call = { .struct_size = sizeof run.call, .compute = BSM_COMPUTE_FAST, .groups = q->groups,
                                                            .group_rows = q->groups > 0 ? group_rows : NULL } };
    if (q->addends) {
        run.c = &cc, run.alphas = q->m, run.biases = q->n, run.call.alpha = alpha, run.call.alpha_per = BSM_PER_ROW;
        run.call.beta = &beta, run.call.bias = bias, run.call.bias_per = BSM_PER_COLUMN;
    }
    snprintf(what, sizeof what, "%s x %s, M=%d N=%d K=%d", bsm_format_get((int)q->a)->name,
             bsm_format_get((int)q->b)->name, (int)q->m, (int)q->n, (int)q->k);
    run_both(t, c, &run, what);
    operand_free(&a), operand_free(&b), operand_free(&d), operand_free(&cc);
}

/* Around the tile of 128 x 192, its cluster of two, and the ring of five stages; in each form of product. */
static void check_all(struct test *t, const struct problem *problems, size_t count)
{
    struct contexts c;
    if (!fast_open(t, &c)) return;
    for (size_t i = 0; i < count; i++) check_whole_numbers(t, &c, &problems[i]);
    contexts_close(&c);
}

static void whole_numbers_are_exact(struct test *t)
{
    static const struct problem problems[] = {
        { BSM_MXFP8_E4M3, BSM_MXFP8_E4M3, BSM_FORMAT_FP32, 1, 1, 1, 1, 0, false, false, false },
        { BSM_MXFP8_E4M3, BSM_MXFP4, BSM_FORMAT_BF16, 300, 264, 128, 1, 0, false, true, false },
        { BSM_MXFP8_E5M2, BSM_MXFP6_E3M2, BSM_FORMAT_FP32, 65, 513, 673, 1, 0, false, false, false },
        { BSM_MXFP6_E2M3, BSM_MXFP8_E4M3, BSM_FORMAT_FP16, 130, 40, 1100, 2, 0, false, false, false },
        { BSM_MXFP4, BSM_MXFP6_E2M3, BSM_FORMAT_FP32, 20, 71, 200, 3, 0, true, true, false },
        { BSM_MXFP6_E3M2, BSM_MXFP8_E5M2, BSM_FORMAT_BF16, 200, 24, 300, 0, 5, false, false, false },
        { BSM_MXFP8_E4M3, BSM_MXFP8_E4M3, BSM_MXFP8_E4M3, 33, 64, 160, 1, 0, false, false, false },
    };
    check_all(t, problems, sizeof problems / sizeof problems[0]);
}

/* D by boxes that the next tile fills again, in each of its types. */
static void stored_by_boxes(struct test *t)
{
    static const struct problem problems[] = {
        { BSM_MXFP8_E4M3, BSM_MXFP8_E4M3, BSM_FORMAT_FP32, 70, 392, 160, 1, 0, false, false, false },
        { BSM_MXFP8_E4M3, BSM_MXFP8_E4M3, BSM_FORMAT_BF16, 20, 200, 32, 1, 0, false, false, false },
        { BSM_MXFP8_E4M3, BSM_MXFP8_E4M3, BSM_FORMAT_FP32, 20, 392, 32, 1, 0, false, false, true },
        { BSM_MXFP8_E4M3, BSM_MXFP8_E4M3, BSM_FORMAT_BF16, 20, 392, 32, 1, 0, false, false, true },
        { BSM_MXFP8_E4M3, BSM_MXFP8_E4M3, BSM_FORMAT_FP16, 20, 392, 32, 1, 0, false, false, true },
    };
    check_all(t, problems, sizeof problems / sizeof problems[0]);
}

/* Random numbers, as a recipe quantizes them: magnitudes of blocks differ by some powers of two. */
static struct operand quantized(struct test *t, const struct contexts *c, bsm_format format, int64_t rows,
                                int64_t columns)
{
    const struct shape shape = shape_of(format, rows, columns, 0);
    struct operand o = operand_make(&shape, 0xff);
    float *numbers = malloc((size_t)(rows * columns) * sizeof *numbers);
    for (int64_t i = 0; i < rows * columns; i++) numbers[i] = (float)ldexp(rnd_normal(t), (int)(i / 32 % 7) - 3);
    const bsm_real_matrix source = { .struct_size = sizeof source, .type = BSM_REAL_FP32, .rows = rows,
                                     .columns = columns, .data = numbers,
                                      .row_stride = columns, .column_stride = 1 };
    if (bsm_quantize(c->cpu, &source, NULL, &o.m, NULL) != BSM_OK) FAIL(t, "%s", bsm_last_error());
    free(numbers);
    return o;
}

/* D, fp32, of the product of A's first rows. */
static float *product(struct test *t, const struct contexts *c, const struct operand *a, const struct operand *b,
                      int64_t rows)
{
    const int64_t n = b->m.rows;
    struct operand d = operand_make(&(struct shape){ .format = BSM_FORMAT_FP32, .rows = rows, .columns = n }, 0xee);
    struct twin on_a = twin_make(t, c, a), on_b = twin_make(t, c, b), on_d = twin_make(t, c, &d);
    on_a.m.rows = rows;
    const bsm_matmul call = { .struct_size = sizeof call, .a = &on_a.m, .b = &on_b.m, .d = &on_d.m,
                              .compute = BSM_COMPUTE_FAST };
    if (bsm_multiply(c->gpu, &call) != BSM_OK) FAIL(t, "%s", bsm_last_error());
    float *numbers = malloc((size_t)(rows * n) * sizeof *numbers);
    from_device(t, c, numbers, on_d.m.data, (size_t)(rows * n) * sizeof *numbers);
    twin_free(t, c, &on_a), twin_free(t, c, &on_b), twin_free(t, c, &on_d);
    operand_free(&d);
    return numbers;
}

static void same_bits_for_every_m(struct test *t)
{
    static const int64_t rows[] = { 1, 64, 129, 255 };
    struct contexts c;
    if (!fast_open(t, &c)) return;
    struct operand a = quantized(t, &c, BSM_MXFP8_E4M3, 270, 300), b = quantized(t, &c, BSM_MXFP8_E4M3, 40, 300);
    float *all = product(t, &c, &a, &b, 270);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        float *some = product(t, &c, &a, &b, rows[i]);
        CHECK(t, memcmp(all, some, (size_t)(rows[i] * 40) * sizeof *all) == 0);
        free(some);
    }
    free(all);
    operand_free(&a), operand_free(&b);
    contexts_close(&c);
}

/* Requantized once by bsm_plan_pack_b, B gives the same bits, and is not read again. */
static void kept_codes(struct test *t)
{
    enum { M = 70, N = 40, K = 300 };
    static const bsm_format of_b[] = { BSM_MXFP8_E4M3, BSM_MXFP4 };
    struct contexts c;
    if (!fast_open(t, &c)) return;
    for (int i = 0; i < 2; i++) {
        struct operand a = quantized(t, &c, BSM_MXFP8_E4M3, M, K), b = quantized(t, &c, of_b[i], N, K),
                       d = operand_make(&(struct shape){ .format = BSM_FORMAT_FP32, .rows = M, .columns = N }, 0);
        float *want = product(t, &c, &a, &b, M), *found = malloc(sizeof(float) * M * N);
        struct twin x = twin_make(t, &c, &a), y = twin_make(t, &c, &b), z = twin_make(t, &c, &d);
        memset(b.m.data, 0, b.data_bytes);
        struct twin other = twin_make(t, &c, &b);
        bsm_matmul call = { .struct_size = sizeof call, .a = &x.m, .b = &y.m, .d = &z.m, .compute = BSM_COMPUTE_FAST };
        bsm_plan *plan = NULL;
        void *panels = NULL, *workspace = NULL;
        CHECK(t, bsm_plan_create(c.gpu, &call, &plan) == BSM_OK);
        const size_t bytes = bsm_plan_b_panels_bytes(plan), work = bsm_plan_workspace_bytes(plan);
        CHECK(t, bytes >= N * K && bsm_device_allocate(c.gpu, bytes, &panels) == BSM_OK
                     && bsm_device_allocate(c.gpu, work, &workspace) == BSM_OK);
        if (bsm_plan_pack_b(plan, &call, panels, bytes) != BSM_OK) FAIL(t, "%s", bsm_last_error());
        call.b = &other.m, call.b_panels = panels;
        if (bsm_plan_run(plan, &call, workspace, work) != BSM_OK) FAIL(t, "%s", bsm_last_error());
        from_device(t, &c, found, z.m.data, sizeof(float) * M * N);
        if (memcmp(want, found, sizeof(float) * M * N) != 0)
            FAIL(t, "B in %s: other bits by what bsm_plan_pack_b wrote", bsm_format_get((int)of_b[i])->name);
        bsm_plan_destroy(plan);
        (void)bsm_device_release(c.gpu, panels), (void)bsm_device_release(c.gpu, workspace);
        twin_free(t, &c, &x), twin_free(t, &c, &y), twin_free(t, &c, &z), twin_free(t, &c, &other);
        operand_free(&a), operand_free(&b), operand_free(&d);
        free(want), free(found);
    }
    contexts_close(&c);
}

/* A block that is far larger than the rest of its row is felt in that row alone. */
static void rows_do_not_feel_each_other(struct test *t)
{
    enum { M = 20, N = 30, K = 300, LARGE = 11 };
    struct contexts c;
    if (!fast_open(t, &c)) return;
    struct operand a = quantized(t, &c, BSM_MXFP8_E4M3, M, K), b = quantized(t, &c, BSM_MXFP8_E4M3, N, K);
    float *before = product(t, &c, &a, &b, M);
    bsm_matrix_set_scale(&a.m, 0, LARGE, 2, 160), bsm_matrix_set_scale(&b.m, 0, LARGE, 3, 160);
    float *after = product(t, &c, &a, &b, M);
    for (int i = 0; i < M * N; i++) {
        const bool same = memcmp(&before[i], &after[i], sizeof *after) == 0, felt = i / N == LARGE || i % N == LARGE;
        if (same == felt)
            FAIL(t, "row %d, column %d: %a, and %a beside a large block", i / N, i % N, (double)before[i],
                 (double)after[i]);
    }
    free(before), free(after);
    operand_free(&a), operand_free(&b);
    contexts_close(&c);
}

/* c of the header. */
static int fold_of(bsm_element element)
{
    return element == BSM_E5M2 ? 7 : element == BSM_E2M3 ? -5 : element == BSM_E3M2 ? -4 : element == BSM_E2M1 ? -6 : 0;
}

/* The numbers that a row's are rounded to. */
static double *requantized(const struct operand *o)
{
    const bsm_format_info *f = bsm_format_get((int)o->m.format);
    double *numbers = malloc((size_t)(o->m.rows * o->m.columns) * sizeof *numbers);
    for (int64_t r = 0; r < o->m.rows; r++) {
        int most = 0;
        for (int64_t s = 0; s < bsm_matrix_scale_columns(&o->m); s++) {
            uint8_t scale = 0;
            bsm_matrix_get_scale(&o->m, 0, r, s, &scale);
            if (scale > most) most = scale;
        }
        const int exponent = most - 127 + fold_of(f->element);
        for (int64_t k = 0; k < o->m.columns; k++) {
            const uint32_t code = bsm_element_encode(BSM_E4M3, ldexp(operand_value(&o->m, 0, r, k), -exponent),
                                                     BSM_ROUND_NEAREST_EVEN, true, 0);
            numbers[r * o->m.columns + k] = ldexp((double)bsm_element_decode(BSM_E4M3, code), exponent);
        }
    }
    return numbers;
}

/* The header's bound for each, and what is usual for all of them: a requantizing that is wrong in some element, or a
 * chain of 13 bits along all of K, is further off. */
static void check_bound(struct test *t, const struct contexts *c, bsm_format fa, bsm_format fb)
{
    enum { M = 9, N = 40, K = 2568 };
    struct operand a = quantized(t, c, fa, M, K), b = quantized(t, c, fb, N, K);
    double *new_a = requantized(&a), *new_b = requantized(&b), squares = 0;
    float *d = product(t, c, &a, &b, M);
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            double exact = 0, folded = 0, moved = 0, magnitude = 0;
            for (int k = 0; k < K; k++) {
                const double old = operand_value(&a.m, 0, i, k) * operand_value(&b.m, 0, j, k),
                             now = new_a[i * K + k] * new_b[j * K + k];
                exact += old, folded += now, moved += fabs(now - old), magnitude += fabs(now);
            }
            const double found = (double)d[i * N + j], groups = (K + SUMMED - 1) / SUMMED;
            if (!(fabs(found - exact) <= moved + (0x1p-5 * 1.0718 + groups * 0x1p-23) * magnitude))
                FAIL(t, "%s x %s: row %d, column %d: %a is beyond the bound around %a", bsm_format_get((int)fa)->name,
                     bsm_format_get((int)fb)->name, i, j, found, exact);
            squares += (found - folded) / magnitude * ((found - folded) / magnitude);
        }
    const double usual = sqrt(squares / (M * N));
    if (!(usual < 0x1p-15 * 1.41))
        FAIL(t, "%s x %s: %g of sum |a'b'| off what was requantized", bsm_format_get((int)fa)->name,
             bsm_format_get((int)fb)->name, usual);
    free(d), free(new_a), free(new_b);
    operand_free(&a), operand_free(&b);
}

static void error_is_within_the_bound(struct test *t)
{
    struct contexts c;
    if (!fast_open(t, &c)) return;
    for (int i = 0; i < FORMATS - 1; i++) check_bound(t, &c, formats[i], formats[(i * 2 + 1) % FORMATS]);
    contexts_close(&c);
}

/* Rows whose scales lie far out have an exponent of their own: the same numbers, times a power of two. */
static void scales_of_any_size(struct test *t)
{
    enum { M = 12, N = 20, K = 160 };
    struct contexts c;
    if (!fast_open(t, &c)) return;
    struct operand a = whole_numbers(t, BSM_MXFP8_E4M3, M, K, 1), b = whole_numbers(t, BSM_MXFP6_E3M2, N, K, 1);
    struct operand d = operand_make(&(struct shape){ .format = BSM_FORMAT_FP32, .rows = M, .columns = N }, 0xee);
    for (int r = 0; r < M + N; r++)
        for (int s = 0; s < K / 32; s++)
            bsm_matrix_set_scale(r < M ? &a.m : &b.m, 0, r < M ? r : r - M, s,
                                 (uint8_t)(r < M ? 27 + 14 * r : 81 + 5 * (r - M)));
    bsm_matrix_set_scale(&a.m, 0, 5, 1, 255), bsm_matrix_set_scale(&b.m, 0, 7, 4, 255),
        bsm_matrix_set_code(&a.m, 0, 3, 40, 0xff);
    run_both(t, &c, &(struct run){ .a = &a, .b = &b, .d = &d,
                                   .call = { .struct_size = sizeof(bsm_matmul),
                                             .compute = BSM_COMPUTE_FAST } }, "far scales");
    operand_free(&a), operand_free(&b), operand_free(&d);
    contexts_close(&c);
}

/* By name only, and where it is meant for. */
static void plans_say_so(struct test *t)
{
    static const struct { bsm_format a, b; bsm_compute compute; bool requantizes; } cases[] = {
        { BSM_MXFP8_E4M3, BSM_MXFP4, BSM_COMPUTE_FAST, true }, { BSM_MXFP8_E4M3, BSM_MXFP4, BSM_COMPUTE_EXACT, false },
        { BSM_MXFP4, BSM_MXFP4, BSM_COMPUTE_FAST, false }, { BSM_MXFP8_E4M3, BSM_NVFP4, BSM_COMPUTE_FAST, false },
        { BSM_FORMAT_BF16, BSM_MXFP8_E4M3, BSM_COMPUTE_FAST, false },
    };
    struct contexts c;
    if (!fast_open(t, &c)) return;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct shape of_a = shape_of(cases[i].a, 4, 128, 1), of_b = shape_of(cases[i].b, 8, 128, 1);
        struct operand a = operand_make(&of_a, 0), b = operand_make(&of_b, 0),
                       d = operand_make(&(struct shape){ .format = BSM_FORMAT_FP32, .rows = 4, .columns = 8 }, 0);
        bsm_matmul call = { .struct_size = sizeof call, .a = &a.m, .b = &b.m, .d = &d.m, .compute = cases[i].compute };
        bsm_plan *plan = NULL;
        char text[1000];
        CHECK_OR_RETURN(t, bsm_plan_create(c.gpu, &call, &plan) == BSM_OK);
        bsm_plan_describe(plan, text, sizeof text);
        if ((strstr(text, "requantized to e4m3") != NULL) != cases[i].requantizes) FAIL(t, "case %zu: %s", i, text);
        call.compute = cases[i].compute == BSM_COMPUTE_FAST ? BSM_COMPUTE_EXACT : BSM_COMPUTE_FAST;
        CHECK(t, bsm_plan_run(plan, &call, NULL, 0) == BSM_EINVAL);
        CHECK(t, strstr(bsm_last_error(), "compute") != NULL);
        call.compute = BSM_COMPUTE_COUNT;
        CHECK(t, bsm_supported(c.gpu, &call) == BSM_EINVAL);
        bsm_plan_destroy(plan);
        operand_free(&a), operand_free(&b), operand_free(&d);
    }
    contexts_close(&c);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(whole_numbers_are_exact), TEST(stored_by_boxes),
                                              TEST(same_bits_for_every_m), TEST(kept_codes),
                                              TEST(rows_do_not_feel_each_other),
                                              TEST(error_is_within_the_bound), TEST(scales_of_any_size),
                                              TEST(plans_say_so) };
    return TEST_MAIN(argc, argv, cases);
}
