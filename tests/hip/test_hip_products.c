/* Products on a GPU of AMD by what the plan chooses around its kernels: D that the GEMM kernel finishes, quantized or
 * not, and prepacked weights.  Sums are exact in any order, so that D has the CPU's bytes. */
#include "cuda/harness/gpu.h"

#include <math.h>
#include <stdlib.h>

static struct operand make(struct test *t, const struct shape *shape)
{
    struct operand o = operand_make(shape, 0xff);
    fill_whole(t, &o);
    return o;
}

static bool forced(const struct contexts *c, const char *name)
{
    for (int i = 0; bsm_kernel_name(i) != NULL; i++)
        if (name != NULL && strcmp(bsm_kernel_name(i), name) == 0)
            return bsm_context_force_kernel(c->gpu, i) == BSM_OK;
    return bsm_context_force_kernel(c->gpu, -1) == BSM_OK && name == NULL;
}

/* What a plan says of itself. */
static void describe(struct test *t, const struct contexts *c, const struct run *run, char *text, size_t bytes)
{
    struct twin a = twin_make(t, c, run->a), b = twin_make(t, c, run->b), d = twin_make(t, c, run->d);
    bsm_matmul call = run->call;
    bsm_plan *plan = NULL;
    call.a = &a.m, call.b = &b.m, call.d = &d.m, call.c = run->c == NULL ? NULL : run->c == run->d ? &d.m : &run->c->m;
    CHECK(t, bsm_plan_create(c->gpu, &call, &plan) == BSM_OK);
    bsm_plan_describe(plan, text, bytes);
    bsm_plan_destroy(plan);
    twin_free(t, c, &a), twin_free(t, c, &b), twin_free(t, c, &d);
}

/* On both, D finished where it should be. */
static void check(struct test *t, const struct contexts *c, const struct run *run, bool by_the_kernel, const char *what)
{
    char text[600] = "";
    describe(t, c, run, text, sizeof text);
    if ((strstr(text, "D finished by the same kernel") != NULL) != by_the_kernel) FAIL(t, "%s: %s", what, text);
    run_both(t, c, run, what);
}

/* D ---------------------------------------------------------------------------------------------------------------- */

enum { M = 45, N = 160, K = 96 };
static const bsm_format quantized[] = { BSM_MXFP8_E4M3, BSM_MXFP8_E5M2, BSM_MXFP6_E2M3, BSM_MXFP6_E3M2, BSM_MXFP4 };
enum { QUANTIZED = sizeof quantized / sizeof quantized[0] };

/* Factors of columns: ordinary ones, so small that scales are clamped, or so large; and infinity and NaN, which make
 * their blocks NaN. */
static void draw_factors(struct test *t, float *factors, int count, int kind)
{
    static const float tiny[] = { 0x1p-149f, 3e-41f, 0x1p-126f, 1e-36f, 0, 0x1p-133f };
    for (int i = 0; i < count; i++) {
        factors[i] = (float)rnd_normal(t) * (kind == 2 ? 1e36f : 1);
        if (kind == 1) factors[i] = tiny[rnd_below(t, 6)];
        if (kind == 2 && i % 37 == 5) factors[i] = i % 2 == 0 ? INFINITY : NAN;
    }
}

static struct operand quantized_d(bsm_format format, int64_t rows, int64_t columns, int64_t batch, int number)
{
    static const bsm_layout layouts[] = { BSM_LAYOUT_LINEAR, BSM_LAYOUT_CDNA4_16, BSM_LAYOUT_AITER };
    return operand_make(&(struct shape){ .format = format, .rows = rows, .columns = columns, .batch = batch,
                                         .layout.kind = layouts[number / 3 % 3],
                                         .packing = format == BSM_MXFP4 ? BSM_PACKING_LOW_FIRST : BSM_PACKING_DEFAULT,
                                         .extra_pitch = number % 4 == 3 ? 64 : 0 }, 0xff);
}

static void quantized_one(struct test *t, const struct contexts *c, const char *kernel, int number)
{
    static const bsm_recipe recipes[] = { BSM_RECIPE_DEFAULT, BSM_RECIPE_FLOOR, BSM_RECIPE_CEIL, BSM_RECIPE_EVEN,
                                          BSM_RECIPE_RCEIL };
    const bool bf16 = kernel != NULL && strstr(kernel, "bf16") != NULL;
    const bsm_format format = quantized[number % QUANTIZED];
    float factors[N], amax = -1, bias[N], beta = 0.75f;
    struct operand a = make(t, &(struct shape){ .format = bf16 ? BSM_FORMAT_BF16 : BSM_MXFP8_E4M3, .rows = M,
                                                .columns = K, .batch = 2 }),
                   b = make(t, &(struct shape){ .format = bf16 ? BSM_NVFP4 : BSM_MXFP4, .rows = N, .columns = K,
                                                .batch = 2 }),
                   cc = make(t, &(struct shape){ .format = BSM_FORMAT_BF16, .rows = M, .columns = N, .batch = 2 }),
                   d = quantized_d(format, M, N, 2, number);
    draw_factors(t, factors, N, number % 3);
    for (int i = 0; i < N; i++) bias[i] = (float)rnd_normal(t);
    struct run run = { .a = &a, .b = &b, .d = &d, .alphas = N, .biases = N };
    run.call = (bsm_matmul){ .struct_size = sizeof run.call, .alpha = factors, .alpha_per = BSM_PER_COLUMN,
                             .d_recipe = recipes[number / QUANTIZED % 5], .amax = &amax };
    if (number % 3 == 1) run.c = &cc, run.call.beta = &beta;
    if (number % 4 == 1) run.call.bias = bias, run.call.bias_per = BSM_PER_COLUMN, run.call.activation = BSM_ACT_RELU;
    char what[160];
    snprintf(what, sizeof what, "number %d by %s: D %s, recipe %d, scales %s", number, kernel,
             bsm_format_get((int)format)->name, (int)run.call.d_recipe, bsm_layout_name((int)d.m.scale_layout.kind));
    CHECK(t, forced(c, kernel));
    check(t, c, &run, true, what);
    operand_free(&a), operand_free(&b), operand_free(&cc), operand_free(&d);
}

static void quantized_by_the_kernel(struct test *t)
{
    static const char *const others[] = { "hip_mfma_scale_128x128", "hip_mfma_scale_256x256",
                                          "hip_mfma_scale_256x256_32", "hip_mfma_bf16_32x128",
                                          "hip_mfma_bf16_256x256" };
    struct contexts c;
    if (!contexts_open(t, &c)) return;
    for (int number = 0; number < 25; number++) quantized_one(t, &c, "hip_mfma_scale_32x128", number);
    for (int number = 0; number < 10; number++) quantized_one(t, &c, others[number / 2], 3 * number);
    contexts_close(&c);
}

/* What the kernel cannot finish goes through the workspace, with the same bytes. */
static void quantized_by_an_epilogue(struct test *t)
{
    static const struct {
        bsm_format d;
        bsm_layout layout;
        int64_t n;
        bsm_nonfinite nonfinite;
        bsm_gate gate;
    } cases[] = {
        { BSM_MXFP8_E4M3, BSM_LAYOUT_128X4, N, BSM_NONFINITE_PROPAGATE, BSM_GATE_NONE },
        { BSM_MXFP8_E4M3, BSM_LAYOUT_LINEAR, N - 1, BSM_NONFINITE_PROPAGATE, BSM_GATE_NONE },
        { BSM_MXFP4, BSM_LAYOUT_LINEAR, 96, BSM_NONFINITE_PROPAGATE, BSM_GATE_SPLIT },
        { BSM_MXFP6_E2M3, BSM_LAYOUT_LINEAR, N, BSM_NONFINITE_SATURATE, BSM_GATE_NONE },
        { BSM_NVFP4, BSM_LAYOUT_LINEAR, N, BSM_NONFINITE_PROPAGATE, BSM_GATE_NONE },
        { BSM_MXFP4_BLOCK16, BSM_LAYOUT_LINEAR, N, BSM_NONFINITE_PROPAGATE, BSM_GATE_NONE },
        { BSM_MXINT8, BSM_LAYOUT_LINEAR, N, BSM_NONFINITE_PROPAGATE, BSM_GATE_NONE },
        { BSM_FORMAT_E4M3, BSM_LAYOUT_LINEAR, N, BSM_NONFINITE_PROPAGATE, BSM_GATE_NONE },
    };
    struct contexts c;
    if (!contexts_open(t, &c)) return;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const int64_t columns = cases[i].gate == BSM_GATE_NONE ? cases[i].n : cases[i].n / 2;
        const bool scaled = bsm_format_get((int)cases[i].d)->block != 0;
        float alpha = 0.37f;
        struct operand a = make(t, &(struct shape){ .format = BSM_MXFP8_E4M3, .rows = M, .columns = K }),
                       b = make(t, &(struct shape){ .format = BSM_MXFP4, .rows = cases[i].n, .columns = K }),
                       d = operand_make(&(struct shape){ .format = cases[i].d, .rows = M, .columns = columns,
                                                         .layout.kind = scaled ? cases[i].layout : BSM_LAYOUT_LINEAR },
                                        0xff);
        const struct run run = { .a = &a, .b = &b, .d = &d, .alphas = 1,
                                 .call = { .struct_size = sizeof run.call, .alpha = &alpha, .gate = cases[i].gate,
                                           .d_nonfinite = cases[i].nonfinite } };
        check(t, &c, &run, false, bsm_format_get((int)cases[i].d)->name);
        operand_free(&a), operand_free(&b), operand_free(&d);
    }
    contexts_close(&c);
}

/* D that is C, tensor scales of A and of B, groups with amax; every type of D, rows that end within a quad. */
static void plain_by_the_kernel(struct test *t)
{
    static const bsm_format types[] = { BSM_FORMAT_FP32, BSM_FORMAT_BF16, BSM_FORMAT_FP16 };
    static const int64_t rows[] = { 20, 0, M - 20 };
    struct contexts c;
    if (!contexts_open(t, &c)) return;
    for (int i = 0; i < 24; i++) {
        const bool grouped = i % 4 == 3, unscaled = i % 2 == 0;
        const int64_t n = N - 32 + i;
        float alphas[N], beta = -0.5f, scale_a = 0.3f, scale_b = 7.1f, amax = -1;
        draw_factors(t, alphas, N, 0);
        struct operand a = make(t, &(struct shape){ .format = unscaled ? BSM_FORMAT_E4M3 : BSM_FORMAT_BF16, .rows = M,
                                                    .columns = K }),
                       b = make(t, &(struct shape){ .format = unscaled ? BSM_FORMAT_E4M3 : BSM_NVFP4, .rows = n,
                                                    .columns = K, .batch = grouped ? 3 : 1 }),
                       d = make(t, &(struct shape){ .format = types[i % 3], .rows = M, .columns = n });
        a.m.tensor_scale = i % 3 != 0 ? &scale_a : NULL, b.m.tensor_scale = i % 3 != 1 ? &scale_b : NULL;
        b.m.tensor_scale_use = i % 5 == 0 ? BSM_TENSOR_SCALE_DIVIDES : BSM_TENSOR_SCALE_MULTIPLIES;
        struct run run = { .a = &a, .b = &b, .d = &d, .alphas = N,
                           .call = { .struct_size = sizeof run.call, .amax = &amax, .alpha = i % 6 == 5 ? NULL : alphas,
                                     .alpha_per = (bsm_per)(i / 2 % 4), .groups = grouped ? 3 : 0,
                                     .group_rows = grouped ? rows : NULL } };
        if (i % 2 == 1) run.c = &d, run.call.beta = &beta;
        char what[64];
        snprintf(what, sizeof what, "number %d", i);
        check(t, &c, &run, true, what);
        a.m.tensor_scale = b.m.tensor_scale = NULL;
        operand_free(&a), operand_free(&b), operand_free(&d);
    }
    contexts_close(&c);
}

/* A plan for a D that is aligned asks the same of later ones; and of one that is not: runs with all. */
static void plans_and_alignment(struct test *t)
{
    struct contexts c;
    if (!contexts_open(t, &c)) return;
    struct operand a = make(t, &(struct shape){ .format = BSM_MXFP8_E4M3, .rows = M, .columns = K }),
                   b = make(t, &(struct shape){ .format = BSM_MXFP4, .rows = N, .columns = K }),
                   d = quantized_d(BSM_MXFP8_E4M3, M + 1, N, 1, 0);
    struct twin x = twin_make(t, &c, &a), y = twin_make(t, &c, &b), z = twin_make(t, &c, &d);
    d.m.rows = z.m.rows = M;
    bsm_matrix moved = z.m;
    moved.data = (unsigned char *)moved.data + 1;
    bsm_matmul call = { .struct_size = sizeof call, .a = &x.m, .b = &y.m, .d = &z.m };
    bsm_plan *plan = NULL;
    void *workspace = NULL;
    for (int i = 0; i < 2; i++) {
        call.d = i == 0 ? &z.m : &moved;
        CHECK(t, bsm_plan_create(c.gpu, &call, &plan) == BSM_OK);
        const size_t bytes = bsm_plan_workspace_bytes(plan);
        CHECK(t, bsm_device_allocate(c.gpu, bytes, &workspace) == BSM_OK);
        CHECK(t, bsm_plan_run(plan, &call, workspace, bytes) == BSM_OK);
        call.d = i == 0 ? &moved : &z.m;
        if (i == 0)
            CHECK(t, bsm_plan_run(plan, &call, workspace, bytes) == BSM_EALIGN
                         && strstr(bsm_last_error(), "d->data=") != NULL);
        else CHECK(t, bsm_plan_run(plan, &call, workspace, bytes) == BSM_OK);
        CHECK(t, bsm_device_release(c.gpu, workspace) == BSM_OK);
        bsm_plan_destroy(plan);
    }
    twin_free(t, &c, &x), twin_free(t, &c, &y), twin_free(t, &c, &z);
    operand_free(&a), operand_free(&b), operand_free(&d);
    contexts_close(&c);
}

/* Prepacked weights ------------------------------------------------------------------------------------------------ */

struct problem {
    bsm_format a, b;
    int64_t m, n, k, batch;
    bool grouped;
    bsm_packing packing;                  /* of B */
    bsm_layout layout;                    /* of B */
    bool nan;                             /* a NaN scale in B */
    const char *kernel;                   /* NULL: by the plan's choice */
};

/* D's bytes by panels that a plan for `packs` rows of A has made, or without them. */
static void multiply(struct test *t, const struct contexts *c, bsm_matmul call, const char *kernel, void *panels,
                     const struct operand *d, unsigned char *bytes)
{
    struct twin out = twin_make(t, c, d);
    bsm_plan *plan = NULL;
    void *workspace = NULL;
    call.d = &out.m, call.b_panels = panels;
    CHECK(t, forced(c, panels == NULL ? NULL : kernel));
    if (bsm_plan_create(c->gpu, &call, &plan) != BSM_OK) FAIL(t, "%s", bsm_last_error());
    const size_t work = bsm_plan_workspace_bytes(plan);
    CHECK(t, bsm_device_allocate(c->gpu, work, &workspace) == BSM_OK);
    CHECK(t, bsm_plan_b_panels_bytes(plan) > 0);
    if (bsm_plan_run(plan, &call, workspace, work) != BSM_OK) FAIL(t, "%s", bsm_last_error());
    from_device(t, c, bytes, out.m.data, d->data_bytes);
    bsm_plan_destroy(plan);
    CHECK(t, bsm_device_release(c->gpu, workspace) == BSM_OK);
    twin_free(t, c, &out);
}

/* Panels made by a plan for one row of A, B read from there alone: the matrix itself is zeros then. */
static void *pack(struct test *t, const struct contexts *c, const bsm_matmul *call, struct twin *b)
{
    bsm_matrix row = *call->a, out = { .struct_size = sizeof out, .format = BSM_FORMAT_FP32, .rows = 1,
                                       .columns = call->b->rows, .batch = call->b->batch };
    bsm_matmul small = { .struct_size = sizeof small, .a = &row, .b = call->b, .d = &out };
    bsm_plan *plan = NULL;
    void *panels = NULL, *d = NULL;
    const size_t d_bytes = (size_t)(call->b->rows * (call->b->batch == 0 ? 1 : call->b->batch)) * sizeof(float);
    row.rows = 1, row.batch = 1;
    CHECK(t, forced(c, NULL) && bsm_device_allocate(c->gpu, d_bytes, &d) == BSM_OK);
    out.data = d;
    if (bsm_plan_create(c->gpu, &small, &plan) != BSM_OK) FAIL(t, "%s", bsm_last_error());
    const size_t bytes = bsm_plan_b_panels_bytes(plan);
    CHECK(t, bytes > 0 && bsm_device_allocate(c->gpu, bytes, &panels) == BSM_OK);
    if (bsm_plan_pack_b(plan, &small, panels, bytes) != BSM_OK) FAIL(t, "%s", bsm_last_error());
    bsm_plan_destroy(plan);
    void *zeros = calloc(1, b->host->data_bytes);
    CHECK(t, bsm_device_release(c->gpu, d) == BSM_OK);
    CHECK(t, bsm_device_write(c->gpu, b->m.data, zeros, b->host->data_bytes) == BSM_OK);
    free(zeros);
    return panels;
}

static void check_panels(struct test *t, const struct contexts *c, const struct problem *q)
{
    static const int64_t all_rows[] = { 13, 0, 20 };
    const bool scaled = bsm_format_get((int)q->b)->block != 0;
    struct operand a = make(t, &(struct shape){ .format = q->a, .rows = q->m, .columns = q->k,
                                                .batch = q->grouped ? 1 : q->batch }),
                   b = make(t, &(struct shape){ .format = q->b, .rows = q->n, .columns = q->k, .batch = q->batch,
                                                .packing = q->packing,
                                                .layout.kind = scaled ? q->layout : BSM_LAYOUT_LINEAR }),
                   d = operand_make(&(struct shape){ .format = BSM_FORMAT_FP32, .rows = q->m, .columns = q->n,
                                                     .batch = q->grouped ? 1 : q->batch }, 0xff);
    if (q->nan) bsm_matrix_set_scale(&b.m, 0, q->n / 2, q->k / 32 - 1, 255);
    struct twin x = twin_make(t, c, &a), y = twin_make(t, c, &b);
    void *rows = q->grouped ? to_device(t, c, all_rows, sizeof all_rows) : NULL;
    const bsm_matmul call = { .struct_size = sizeof call, .a = &x.m, .b = &y.m, .groups = q->grouped ? 3 : 0,
                              .group_rows = rows };
    unsigned char *with = malloc(d.data_bytes), *without = malloc(d.data_bytes);
    multiply(t, c, call, NULL, NULL, &d, without);
    void *panels = pack(t, c, &call, &y);
    multiply(t, c, call, q->kernel, panels, &d, with);
    if (memcmp(with, without, d.data_bytes) != 0)
        FAIL(t, "%s x %s, %d x %d x %d: other bits with prepacked weights", bsm_format_get((int)q->a)->name,
             bsm_format_get((int)q->b)->name, (int)q->m, (int)q->n, (int)q->k);
    free(with), free(without);
    CHECK(t, bsm_device_release(c->gpu, panels) == BSM_OK && bsm_device_release(c->gpu, rows) == BSM_OK);
    twin_free(t, c, &x), twin_free(t, c, &y);
    operand_free(&a), operand_free(&b), operand_free(&d);
}

/* Every pair that has such kernels; B in every packing and some layouts, batches, groups, rests of K, NaN scales. */
static void prepacked_weights(struct test *t)
{
    static const struct problem problems[] = {
        { BSM_MXFP8_E4M3, BSM_MXFP8_E4M3, 33, 150, 544, 1, false, BSM_PACKING_DEFAULT, BSM_LAYOUT_LINEAR, true, NULL },
        { BSM_MXFP6_E2M3, BSM_MXFP6_E2M3, 5, 70, 320, 2, false, BSM_PACKING_BIT_STREAM, BSM_LAYOUT_128X4, true, NULL },
        { BSM_MXFP6_E2M3, BSM_MXFP6_E2M3, 5, 70, 90, 1, false, BSM_PACKING_BYTES, BSM_LAYOUT_LINEAR, false, NULL },
        { BSM_MXFP8_E4M3, BSM_MXFP4, 17, 130, 576, 1, false, BSM_PACKING_HIGH_FIRST, BSM_LAYOUT_CDNA4_16, true, NULL },
        { BSM_MXFP8_E5M2, BSM_MXFP4, 33, 66, 256, 3, true, BSM_PACKING_LOW_FIRST, BSM_LAYOUT_CDNA4_32, false, NULL },
        { BSM_MXFP6_E2M3, BSM_MXFP4, 3, 200, 128, 2, false, BSM_PACKING_BYTES, BSM_LAYOUT_DEEPGEMM, false, NULL },
        { BSM_MXFP6_E3M2, BSM_MXFP4, 1, 17, 33, 1, false, BSM_PACKING_LOW_FIRST, BSM_LAYOUT_LINEAR, false, NULL },
        { BSM_MXFP4, BSM_MXFP4, 40, 300, 800, 1, false, BSM_PACKING_LOW_FIRST, BSM_LAYOUT_AITER, true, NULL },
        { BSM_MXFP4, BSM_MXFP4, 40, 64, 96, 1, false, BSM_PACKING_GGUF, BSM_LAYOUT_GGUF_MXFP4, true, NULL },
        { BSM_FORMAT_E4M3, BSM_FORMAT_E4M3, 9, 40, 200, 2, false, BSM_PACKING_DEFAULT, BSM_LAYOUT_LINEAR, false, NULL },
        { BSM_MXFP4, BSM_MXFP4, 270, 260, 512, 1, false, BSM_PACKING_LOW_FIRST, BSM_LAYOUT_LINEAR, true,
          "hip_mfma_scale_256x256_prepacked" },
        { BSM_MXFP8_E4M3, BSM_MXFP8_E4M3, 100, 40, 288, 1, false, BSM_PACKING_DEFAULT, BSM_LAYOUT_LINEAR, false,
          "hip_mfma_scale_256x256_prepacked" },
    };
    struct contexts c;
    if (!contexts_open(t, &c)) return;
    for (size_t i = 0; i < sizeof problems / sizeof problems[0]; i++) check_panels(t, &c, &problems[i]);
    contexts_close(&c);
}

/* What bsm_plan_pack_b and bsm_plan_run say to what they cannot serve. */
static void refused(struct test *t)
{
    struct contexts c;
    char text[600];
    if (!contexts_open(t, &c)) return;
    struct operand a = make(t, &(struct shape){ .format = BSM_MXFP4, .rows = 8, .columns = 64 }),
                   b = make(t, &(struct shape){ .format = BSM_MXFP4, .rows = 40, .columns = 64 }),
                   rows = make(t, &(struct shape){ .format = BSM_FORMAT_BF16, .rows = 8, .columns = 64 }),
                   d = make(t, &(struct shape){ .format = BSM_FORMAT_FP32, .rows = 8, .columns = 40 });
    struct twin x = twin_make(t, &c, &a), y = twin_make(t, &c, &b), z = twin_make(t, &c, &d),
                r = twin_make(t, &c, &rows);
    bsm_matmul call = { .struct_size = sizeof call, .a = &x.m, .b = &y.m, .d = &z.m };
    bsm_plan *plan = NULL;
    unsigned char *panels = NULL;
    CHECK(t, bsm_plan_create(c.gpu, &call, &plan) == BSM_OK);
    bsm_plan_describe(plan, text, sizeof text);
    CHECK(t, strstr(text, "with prepacked B: hip_mfma_scale_32x128_prepacked") != NULL);
    const size_t bytes = bsm_plan_b_panels_bytes(plan);
    CHECK(t, bytes > 0 && bsm_device_allocate(c.gpu, bytes + 64, (void **)&panels) == BSM_OK);
    CHECK(t, bsm_plan_pack_b(plan, &call, NULL, bytes) == BSM_EINVAL && strstr(bsm_last_error(), "panels is NULL"));
    CHECK(t, bsm_plan_pack_b(plan, &call, panels, bytes - 1) == BSM_EINVAL && strstr(bsm_last_error(), "bytes="));
    CHECK(t, bsm_plan_pack_b(plan, &call, panels + 4, bytes) == BSM_EALIGN && strstr(bsm_last_error(), "panels="));
    CHECK(t, bsm_plan_pack_b(plan, &call, y.m.data, bytes) == BSM_EINVAL && strstr(bsm_last_error(), "overlaps"));
    bsm_plan_destroy(plan);

    CHECK(t, forced(&c, "hip_mfma_scale_32x128_prepacked"));
    CHECK(t, bsm_multiply(c.gpu, &call) == BSM_EUNSUPPORTED
                 && strstr(bsm_last_error(), "product->b_panels is NULL") != NULL);
    call.a = &r.m;
    CHECK(t, bsm_multiply(c.gpu, &call) == BSM_EUNSUPPORTED && strstr(bsm_last_error(), "does not serve") != NULL);
    CHECK(t, forced(&c, NULL) && bsm_plan_create(c.gpu, &call, &plan) == BSM_OK);
    CHECK(t, bsm_plan_b_panels_bytes(plan) == 0);
    CHECK(t, bsm_plan_pack_b(plan, &call, panels, bytes) == BSM_EUNSUPPORTED
                 && strstr(bsm_last_error(), "hip_mfma_bf16_") != NULL);
    bsm_plan_destroy(plan);
    CHECK(t, bsm_device_release(c.gpu, panels) == BSM_OK);
    twin_free(t, &c, &x), twin_free(t, &c, &y), twin_free(t, &c, &z), twin_free(t, &c, &r);
    operand_free(&a), operand_free(&b), operand_free(&d), operand_free(&rows);
    contexts_close(&c);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(quantized_by_the_kernel), TEST(quantized_by_an_epilogue),
                                              TEST(plain_by_the_kernel),     TEST(plans_and_alignment),
                                              TEST(prepacked_weights),       TEST(refused) };
    return TEST_MAIN(argc, argv, cases);
}
