/* The whole contract of a product on a GPU, and quantizing, dequantizing and converting scales: every byte against the
 * CPU's. */
#include "cuda/harness/gpu.h"

#include <math.h>
#include <stdlib.h>

enum { M = 37, N = 48, K = 96 };

static struct operand make(struct test *t, bsm_format format, int64_t rows, int64_t columns, int64_t batch)
{
    struct operand o = operand_make(&(struct shape){ .format = format, .rows = rows, .columns = columns,
                                                     .batch = batch }, 0xff);
    operand_fill(t, &o, true);
    return o;
}

static struct operand make_d(bsm_format format, int64_t rows, int64_t columns, int64_t batch)
{
    struct shape s = { .format = format, .rows = rows, .columns = columns, .batch = batch };
    if (bsm_format_get((int)format)->block != 0) s.layout.kind = BSM_LAYOUT_128X4;
    struct operand d = operand_make(&s, 0xff);
    /* Elements behind what is owed do not exist here: everything else is compared. */
    return d;
}

/* Which kernels: the named one, or that which the plan chooses, and the one that keeps the CPU's order. */
static void on_kernels(struct test *t, const struct contexts *c, const char *name, const struct run *run,
                       const char *what)
{
    char text[160];
    for (int plain = 0; plain < 2; plain++) {
        const char *asked = plain != 0 ? simt_kernel() : name;
        const int kernel = asked == NULL ? -1 : kernel_number(c->gpu, asked, run->a->m.format, run->b->m.format);
        CHECK(t, (asked == NULL || kernel >= 0) && bsm_context_force_kernel(c->gpu, kernel) == BSM_OK);
        memset(run->d->m.data, 0xff, run->d->data_bytes);
        snprintf(text, sizeof text, "%s, kernel %s", what, asked == NULL ? "of the plan" : asked);
        run_both(t, c, run, text);
    }
    CHECK(t, bsm_context_force_kernel(c->gpu, -1) == BSM_OK);
}

static void on_both_kernels(struct test *t, const struct contexts *c, const struct run *run, const char *what)
{
    on_kernels(t, c, NULL, run, what);
}

static void factors_and_addends(struct test *t)
{
    struct contexts c;
    if (!contexts_open(t, &c)) return;
    static const bsm_format ds[] = { BSM_FORMAT_FP32, BSM_FORMAT_BF16, BSM_FORMAT_FP16 };
    float alpha[M + N], bias[M + N], beta = 2, scale_a = 0.5f, scale_b = 4;
    for (int i = 0; i < M + N; i++) alpha[i] = (float)(i % 4) - 1, bias[i] = (float)(i % 9) - 3;
    for (int i = 0; i < 6; i++) {
        struct operand a = make(t, BSM_MXFP8_E4M3, M, K, 1), b = make(t, BSM_NVFP4, N, K, 1),
                       cc = make(t, BSM_FORMAT_FP32, M, N, 1);
        struct operand d = make_d(ds[i % 3], M, N, 1);
        a.m.tensor_scale = &scale_a, b.m.tensor_scale = &scale_b;
        b.m.tensor_scale_use = i % 2 == 0 ? BSM_TENSOR_SCALE_MULTIPLIES : BSM_TENSOR_SCALE_DIVIDES;
        static const bsm_per pers[] = { BSM_PER_TENSOR, BSM_PER_ROW, BSM_PER_COLUMN };
        const bool has_c = i % 2 == 1, has_bias = i >= 2;
        on_both_kernels(t, &c,
                        &(struct run){ .a = &a,
                                       .b = &b,
                                       .c = has_c ? &cc : NULL,
                                       .d = &d,
                                       .alphas = M + N,
                                       .biases = has_bias ? M + N : 0,
                                       .call = { .struct_size = sizeof(bsm_matmul),
                                                 .alpha = alpha,
                                                 .alpha_per = pers[i % 3],
                                                 .beta = has_c ? &beta : NULL,
                                                 .bias = has_bias ? bias : NULL,
                                                 .bias_per = i % 4 < 2 ? BSM_PER_ROW : BSM_PER_COLUMN } },
                        "factors and addends");
        a.m.tensor_scale = b.m.tensor_scale = NULL;
        operand_free(&a), operand_free(&b), operand_free(&cc), operand_free(&d);
    }
    contexts_close(&c);
}

static void quantized_outputs(struct test *t)
{
    struct contexts c;
    if (!contexts_open(t, &c)) return;
    static const bsm_format ds[] = { BSM_MXFP8_E4M3, BSM_NVFP4, BSM_FORMAT_E4M3, BSM_MXFP4, BSM_FORMAT_BF16 };
    for (int i = 0; i < 5; i++) {
        const bsm_gate gate = (bsm_gate)(i % 3);
        float amax = 0, scale = 2;
        struct operand a = make(t, BSM_MXFP4, M, K, 1), b = make(t, BSM_MXFP8_E5M2, N, K, 1);
        struct operand d = make_d(ds[i], M, gate == BSM_GATE_NONE ? N : N / 2, 1);
        if (i % 2 == 1) d.m.tensor_scale = &scale;
        on_both_kernels(t, &c,
                        &(struct run){ .a = &a,
                                       .b = &b,
                                       .d = &d,
                                       .call = { .struct_size = sizeof(bsm_matmul),
                                                 .activation = i % 2 == 0 ? BSM_ACT_RELU : BSM_ACT_NONE,
                                                 .gate = gate,
                                                 .amax = &amax } },
                        bsm_format_get((int)ds[i])->name);
        d.m.tensor_scale = NULL;
        operand_free(&a), operand_free(&b), operand_free(&d);
    }
    contexts_close(&c);
}

static void batches_and_groups(struct test *t)
{
    struct contexts c;
    if (!contexts_open(t, &c)) return;
    static const int64_t rows[] = { 0, 20, 0, 1, 16, 0 };          /* 37 */
    for (int i = 0; i < 4; i++) {
        const bool grouped = i >= 2;
        const int64_t batch = grouped ? 6 : 3;
        const bsm_format fa = i % 2 == 0 ? BSM_MXFP8_E4M3 : BSM_FORMAT_BF16;
        float alpha[6] = { 1, 2, 3, -1, 4, 5 }, beta = 2;
        struct operand a = make(t, fa, M, K, grouped || i == 1 ? 1 : batch), b = make(t, BSM_MXFP4, N, K, batch);
        struct operand d = make_d(BSM_FORMAT_FP32, M, N, grouped ? 1 : batch), cc = make(t, BSM_FORMAT_BF16, M, N, 1);
        const struct operand *shared = grouped ? NULL : &cc;           /* the same C for every matrix */
        on_both_kernels(t, &c, &(struct run){ .a = &a, .b = &b, .c = shared, .d = &d, .alphas = batch,
            .call = { .struct_size = sizeof(bsm_matmul), .alpha = alpha, .beta = shared != NULL ? &beta : NULL,
                      .alpha_per = BSM_PER_BATCH, .groups = grouped ? batch : 0,
                      .group_rows = grouped ? rows : NULL } }, grouped ? "groups" : "batches");
        operand_free(&a), operand_free(&b), operand_free(&d), operand_free(&cc);
    }
    contexts_close(&c);
}

/* More groups than a thread each can make tables of, few of which have rows. */
static void many_groups(struct test *t)
{
    enum { GROUPS = 600, FEW_COLUMNS = 16, SHORT = 32 };
    struct contexts c;
    int64_t rows[GROUPS] = { 1 }, total = 1;
    if (!contexts_open(t, &c)) return;
    for (int i = 1; i < GROUPS; i++) rows[i] = i % 19 == 7 ? 1 : 0, total += rows[i];
    rows[GROUPS - 1] = M - total;
    struct operand a = make(t, BSM_FORMAT_BF16, M, SHORT, 1), b = make(t, BSM_MXFP4, FEW_COLUMNS, SHORT, GROUPS),
                   d = make_d(BSM_FORMAT_FP32, M, FEW_COLUMNS, 1);
    on_both_kernels(t, &c, &(struct run){ .a = &a, .b = &b, .d = &d,
        .call = { .struct_size = sizeof(bsm_matmul), .groups = GROUPS, .group_rows = rows } }, "many groups");
    operand_free(&a), operand_free(&b), operand_free(&d);
    contexts_close(&c);
}

/* Rows and columns whose scales span more than bf16 rows hold, some or most of them: the exact kernel's part. */
static void scales_that_span_much(struct test *t, const struct contexts *c, int row_step, int first_column,
                                  int column_step)
{
    struct operand a = make(t, BSM_MXFP8_E4M3, M, K, 1), b = make(t, BSM_MXFP4, N, K, 1),
                   d = make_d(BSM_FORMAT_FP32, M, N, 1);
    for (int64_t r = 0; r < M; r += row_step)
        for (int64_t s = 0; s < K / 32; s++)
            bsm_matrix_set_scale(&a.m, 0, r, s, (uint8_t)(s == 1 ? 20 : r % 2 == 0 ? 230 : 127));
    for (int64_t n = first_column; n < N; n += column_step)
        for (int64_t s = 0; s < K / 32; s++) bsm_matrix_set_scale(&b.m, 0, n, s, (uint8_t)(s == 1 ? 240 : 13));
    bsm_matrix_set_scale(&a.m, 0, 3, 1, 255);
    /* A block has one number, and sums of those that are near each other fit fp32: every order of sums gives the same
     * bits. */
    for (int64_t r = 0; r < M; r++)
        for (int64_t k = 0; k < K; k++)
            if (k % 32 != 5) bsm_matrix_set_code(&a.m, 0, r, k, 0);
    /* AMD's plans multiply codes, whose large terms cancel in another order. */
    on_kernels(t, c, is_hip() ? rows_kernel(c->gpu) : NULL,
               &(struct run){ .a = &a, .b = &b, .d = &d, .call = { .struct_size = sizeof(bsm_matmul) } },
               "extreme scales");
    operand_free(&a), operand_free(&b), operand_free(&d);
}

static void extreme_scales(struct test *t)
{
    struct contexts c;
    if (!contexts_open(t, &c)) return;
    scales_that_span_much(t, &c, 5, 7, N);
    scales_that_span_much(t, &c, 1, 0, 1);               /* more in a row than a tile holds */
    scales_that_span_much(t, &c, M, 1, 2);
    contexts_close(&c);
}

/* Quantizing and back ---------------------------------------------------------------------------------------------- */

static void quantizing_and_back(struct test *t)
{
    struct contexts c;
    if (!contexts_open(t, &c)) return;
    float source[M * K], scale = 1, back[M * K], found[M * K];
    for (int i = 0; i < M * K; i++) source[i] = (float)rnd_normal(t) * (i % 7 == 0 ? 30.0f : 1.0f);
    source[5] = INFINITY;
    static const bsm_format formats[] = { BSM_MXFP8_E4M3, BSM_MXFP6_E2M3,  BSM_MXFP4,
                                          BSM_NVFP4,      BSM_FORMAT_E4M3, BSM_FORMAT_BF16 };
    for (int i = 0; i < 6; i++) {
        const bool computed = formats[i] == BSM_NVFP4 || formats[i] == BSM_FORMAT_E4M3;
        struct operand host = make_d(formats[i], M, K, 1);
        if (computed) host.m.tensor_scale = &scale;
        const bsm_quantize_options options = { .struct_size = sizeof options,
                                               .tensor_scale =
                                                   computed ? BSM_TENSOR_SCALE_COMPUTED : BSM_TENSOR_SCALE_GIVEN };
        bsm_real_matrix real = {
            .struct_size = sizeof real, .rows = M, .columns = K, .data = source, .row_stride = K, .column_stride = 1
        };
        bsm_real_matrix to = real, on_gpu = real, to_on_gpu = real;
        struct twin twin = twin_make(t, &c, &host);
        on_gpu.data = to_device(t, &c, source, sizeof source), to_on_gpu.data = to_device(t, &c, source, sizeof source);
        CHECK(t, bsm_quantize(c.cpu, &real, &options, &host.m, NULL) == BSM_OK);
        if (bsm_quantize(c.gpu, &on_gpu, &options, &twin.m, NULL) != BSM_OK)
            FAIL(t, "%s: %s", bsm_format_get((int)formats[i])->name, bsm_last_error());
        twin_compare(t, &c, &twin, bsm_format_get((int)formats[i])->name);
        to.data = back;
        CHECK(t, bsm_dequantize(c.cpu, &host.m, &to) == BSM_OK);
        if (bsm_dequantize(c.gpu, &twin.m, &to_on_gpu) != BSM_OK) FAIL(t, "dequantize: %s", bsm_last_error());
        from_device(t, &c, found, to_on_gpu.data, sizeof found);
        CHECK(t, memcmp(found, back, sizeof back) == 0);
        CHECK(t,
              bsm_device_release(c.gpu, on_gpu.data) == BSM_OK && bsm_device_release(c.gpu, to_on_gpu.data) == BSM_OK);
        twin_free(t, &c, &twin);
        host.m.tensor_scale = NULL;
        operand_free(&host);
    }
    bsm_quantize_stats stats = { .struct_size = sizeof stats };
    struct operand host = make_d(BSM_MXFP4, M, K, 1);
    const bsm_real_matrix real = {
        .struct_size = sizeof real, .rows = M, .columns = K, .data = source, .row_stride = K, .column_stride = 1
    };
    CHECK(t, bsm_quantize(c.gpu, &real, NULL, &host.m, &stats) == BSM_EUNSUPPORTED
                 && strstr(bsm_last_error(), "stats") != NULL);
    operand_free(&host);
    contexts_close(&c);
}

/* A matrix and its transpose: the CPU's bytes of both. */
static void quantizing_both(struct test *t)
{
    static const struct { bsm_format rows, columns; int64_t m, k; bool computed; } cases[] = {
        { BSM_MXFP8_E4M3, BSM_MXFP8_E4M3, 64, 128, false }, { BSM_MXFP4, BSM_MXFP4, 96, 160, false },
        { BSM_NVFP4, BSM_NVFP4, 128, 64, true },
        { BSM_MXFP8_E4M3, BSM_MXFP4, 37, 101, false },      { BSM_NVFP4, BSM_NVFP4, 64, 64, false },
        { BSM_NVFP4, BSM_NVFP4, 64, 256, true },            { BSM_MXFP4, BSM_NVFP4, 128, 128, false },
        { BSM_MXFP8_E4M3, BSM_MXFP4, 1024, 1024, false },   { BSM_MXFP8_E5M2, BSM_MXFP4, 1024, 1024, false },
        { BSM_NVFP4, BSM_NVFP4, 1024, 1024, false },        { BSM_NVFP4, BSM_NVFP4, 1024, 1024, true },
    };
    struct contexts c;
    if (!contexts_open(t, &c)) return;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const int64_t m = cases[i].m, k = cases[i].k, pitch = (k + 7) / 8 * 8;
        float scales[2] = { 1, 1 };
        struct operand rows = make_d(cases[i].rows, m, k, 1), columns = make_d(cases[i].columns, k, m, 1);
        if (cases[i].computed) rows.m.tensor_scale = &scales[0], columns.m.tensor_scale = &scales[1];
        uint16_t *numbers = calloc((size_t)(m * pitch), sizeof *numbers);
        for (int64_t j = 0; j < m * pitch; j++)
            numbers[j] = (uint16_t)bsm_element_encode(BSM_BF16, rnd_normal(t) * (j % 7 == 0 ? 30.0 : 1.0),
                                                      BSM_ROUND_NEAREST_EVEN, true, 0);
        const bsm_quantize_options options = { .struct_size = sizeof options,
                                               .tensor_scale = cases[i].computed ? BSM_TENSOR_SCALE_COMPUTED
                                                                                 : BSM_TENSOR_SCALE_GIVEN };
        const bsm_real_matrix real = { .struct_size = sizeof real, .type = BSM_REAL_BF16, .rows = m, .columns = k,
                                       .data = numbers, .row_stride = pitch, .column_stride = 1 };
        bsm_real_matrix on_gpu = real;
        struct twin rows_there = twin_make(t, &c, &rows), columns_there = twin_make(t, &c, &columns);
        on_gpu.data = to_device(t, &c, numbers, (size_t)(m * pitch) * sizeof *numbers);
        CHECK(t, bsm_quantize_both(c.cpu, &real, &options, &rows.m, &columns.m) == BSM_OK);
        if (bsm_quantize_both(c.gpu, &on_gpu, &options, &rows_there.m, &columns_there.m) != BSM_OK)
            FAIL(t, "case %zu: %s", i, bsm_last_error());
        twin_compare(t, &c, &rows_there, "rows");
        twin_compare(t, &c, &columns_there, "columns");
        CHECK(t, bsm_device_release(c.gpu, on_gpu.data) == BSM_OK);
        twin_free(t, &c, &rows_there), twin_free(t, &c, &columns_there);
        rows.m.tensor_scale = columns.m.tensor_scale = NULL;
        operand_free(&rows), operand_free(&columns), free(numbers);
    }
    contexts_close(&c);
}

/* Everything that bsm_quantize can be asked for but statistics and presets. */
static void quantizing_with_policies(struct test *t)
{
    static const struct {
        bsm_format format;
        bsm_quantize_options options;
    } cases[] = {
        { BSM_NVFP4, { .recipe = BSM_RECIPE_FOUR_OVER_SIX, .tensor_scale = BSM_TENSOR_SCALE_COMPUTED } },
        { BSM_NVFP4, { .block_rows = 16, .clamp_high = 4, .tensor_scale = BSM_TENSOR_SCALE_COMPUTED } },
        { BSM_NVFP4, { .smallest_scale = 8 } },
        { BSM_MXFP8_E4M3, { .block_rows = 32, .rounding = BSM_ROUND_STOCHASTIC, .seed = 5 } },
        { BSM_MXFP4, { .clamp_low = 0.5f } },
        { BSM_MXFP6_E2M3, { .rounding = BSM_ROUND_STOCHASTIC, .seed = 7 } },
    };
    struct contexts c;
    if (!contexts_open(t, &c)) return;
    float source[M * K], scale = 1;
    for (int i = 0; i < M * K; i++) source[i] = (float)rnd_normal(t) * (i % 7 == 0 ? 30.0f : 1.0f);
    const bsm_real_matrix real = {
        .struct_size = sizeof real, .rows = M, .columns = K, .data = source, .row_stride = K, .column_stride = 1
    };
    bsm_real_matrix on_gpu = real;
    on_gpu.data = to_device(t, &c, source, sizeof source);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bsm_quantize_options options = cases[i].options;
        const char *name = bsm_format_get((int)cases[i].format)->name;
        struct operand host = make_d(cases[i].format, M, K, 1);
        options.struct_size = sizeof options;
        if (options.tensor_scale == BSM_TENSOR_SCALE_COMPUTED) host.m.tensor_scale = &scale;
        struct twin twin = twin_make(t, &c, &host);
        CHECK(t, bsm_quantize(c.cpu, &real, &options, &host.m, NULL) == BSM_OK);
        if (bsm_quantize(c.gpu, &on_gpu, &options, &twin.m, NULL) != BSM_OK) FAIL(t, "%s: %s", name, bsm_last_error());
        twin_compare(t, &c, &twin, name);
        options = (bsm_quantize_options){ .struct_size = sizeof options, .preset = BSM_PRESET_OCP };
        on_gpu.type = BSM_REAL_FP64, on_gpu.row_stride = 0;
        CHECK(t, bsm_quantize(c.gpu, &on_gpu, NULL, &twin.m, NULL) == BSM_EUNSUPPORTED &&
                     strstr(bsm_last_error(), "source->type=fp64: GPUs quantize fp32, fp16 and bf16") != NULL);
        on_gpu.type = BSM_REAL_FP32, on_gpu.row_stride = K;
        const bsm_matrix narrow = { .struct_size = sizeof narrow, .format = BSM_FORMAT_E2M1, .rows = M, .columns = K,
                                    .data = twin.m.data };
        CHECK(t, bsm_quantize(c.gpu, &on_gpu, NULL, &narrow, NULL) == BSM_EUNSUPPORTED
                     && strstr(bsm_last_error(), "destination->format=e2m1: GPUs quantize to codes of 4") != NULL);
        const bsm_quantize_options search = { .struct_size = sizeof search, .recipe = BSM_RECIPE_MSE };
        if (cases[i].format == BSM_MXFP4)
            CHECK(t, bsm_quantize(c.gpu, &on_gpu, &search, &twin.m, NULL) == BSM_EUNSUPPORTED &&
                         strstr(bsm_last_error(), "options->recipe=mse: GPUs have every other recipe") != NULL);
        if (host.m.tensor_scale == NULL && cases[i].format == BSM_MXFP4)
            CHECK(t, bsm_quantize(c.gpu, &on_gpu, &options, &twin.m, NULL) == BSM_EUNSUPPORTED &&
                         strstr(bsm_last_error(), "preset=ocp") != NULL);
        twin_free(t, &c, &twin);
        host.m.tensor_scale = NULL;
        operand_free(&host);
    }
    CHECK(t, bsm_device_release(c.gpu, on_gpu.data) == BSM_OK);
    contexts_close(&c);
}

static void scales_from_layout_to_layout(struct test *t)
{
    struct contexts c;
    if (!contexts_open(t, &c)) return;
    unsigned char from[130 * 7], to[512 * 16], found[512 * 16];
    for (size_t i = 0; i < sizeof from; i++) from[i] = (unsigned char)(i * 37 + 1);
    for (int kind = BSM_LAYOUT_128X4; kind <= BSM_LAYOUT_DEEPGEMM; kind++) {
        int64_t bytes = 0;
        if (bsm_layout_name(kind) == NULL) continue;
        bsm_scales a = { .data = from, .rows = 130, .columns = 7 },
                   b = { .data = to, .rows = 130, .columns = 7, .layout.kind = (bsm_layout)kind };
        if (kind == BSM_LAYOUT_TILES) b.layout.tile_rows = 16, b.layout.tile_columns = 2;
        CHECK_OR_RETURN(t, bsm_scale_bytes(&b.layout, 130, 7, &bytes) == BSM_OK && bytes <= (int64_t)sizeof to);
        memset(to, 0xaa, sizeof to);
        bsm_scales da = a, db = b;
        da.data = to_device(t, &c, from, sizeof from), db.data = to_device(t, &c, to, sizeof to);
        CHECK(t, bsm_scales_convert(&a, &b) == BSM_OK && bsm_scales_convert_on(c.gpu, &da, &db) == BSM_OK);
        from_device(t, &c, found, db.data, sizeof found);
        if (memcmp(found, to, sizeof to) != 0) FAIL(t, "layout %s differs", bsm_layout_name(kind));
        CHECK(t, bsm_device_release(c.gpu, da.data) == BSM_OK && bsm_device_release(c.gpu, db.data) == BSM_OK);
    }
    contexts_close(&c);
}

static void what_a_gpu_refuses(struct test *t)
{
    struct contexts c;
    if (!contexts_open(t, &c)) return;
    struct operand a = make(t, BSM_FORMAT_FP32, M, K, 1), b = make(t, BSM_MXFP4, N, K, 1),
                   d = make_d(BSM_FORMAT_FP32, M, N, 1);
    const bsm_matmul call = { .struct_size = sizeof call, .a = &a.m, .b = &b.m, .d = &d.m };
    CHECK(t, bsm_supported(c.gpu, &call) == BSM_EUNSUPPORTED && strstr(bsm_last_error(), "a->format=fp32") != NULL);
    CHECK(t, bsm_supported(c.cpu, &call) == BSM_OK);
    const bsm_real_matrix sum = {
        .struct_size = sizeof sum, .rows = M, .columns = N, .data = d.m.data, .row_stride = N, .column_stride = 1
    };
    CHECK(t, bsm_matmul_exact(c.gpu, &a.m, &b.m, &sum, NULL) == BSM_EUNSUPPORTED);
    bsm_matmul on_cpu = call;
    on_cpu.stream = &c;
    CHECK(t, bsm_supported(c.cpu, &on_cpu) == BSM_EINVAL && strstr(bsm_last_error(), "stream") != NULL);
    operand_free(&a), operand_free(&b), operand_free(&d);
    contexts_close(&c);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        TEST(factors_and_addends),      TEST(quantized_outputs),
        TEST(batches_and_groups),       TEST(many_groups),
        TEST(extreme_scales),
        TEST(quantizing_and_back),      TEST(quantizing_both),
        TEST(quantizing_with_policies), TEST(scales_from_layout_to_layout), TEST(what_a_gpu_refuses),
    };
    return TEST_MAIN(argc, argv, cases);
}
