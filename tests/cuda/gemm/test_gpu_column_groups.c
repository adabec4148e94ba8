/* Groups along K on a GPU: against the CPU where sums are exact, and against a product of each group's columns alone,
 * byte for byte, where they are not: every format, packing and layout of scales, scales far out, and numbers of columns
 * that break the rule, which the host cannot see. */
#include "cuda/harness/gpu.h"

#include <stdlib.h>

enum { MOST_GROUPS = 6 };

static const bsm_scale_layout layouts[] = {
    { .kind = BSM_LAYOUT_LINEAR },   { .kind = BSM_LAYOUT_LINEAR, .pitch = 61 },
    { .kind = BSM_LAYOUT_128X4 },    { .kind = BSM_LAYOUT_8X4 },
    { .kind = BSM_LAYOUT_CDNA4_32 }, { .kind = BSM_LAYOUT_TILES, .tile_rows = 5, .tile_columns = 3 },
    { .kind = BSM_LAYOUT_DEEPGEMM }, { .kind = BSM_LAYOUT_AITER },
};
enum { LAYOUTS = sizeof layouts / sizeof layouts[0] };

struct groups { int64_t m, n, count, columns[MOST_GROUPS]; };

static int64_t sum_of(const struct groups *g)
{
    int64_t k = 0;
    for (int64_t i = 0; i < g->count; i++) k += g->columns[i];
    return k;
}

static struct operand any_operand(struct test *t, bsm_format format, int64_t rows, int64_t columns)
{
    struct shape s = { .format = format, .rows = rows, .columns = columns };
    shape_in_any_way(t, &s, layouts, LAYOUTS);
    return operand_make(&s, 0xff);
}

static const char *text_of(const char *name, const struct operand *a, const struct operand *b, const struct groups *g)
{
    static char text[300];
    int length = snprintf(text, sizeof text, "%s, %s x %s, layouts %d %d, packings %d %d, M=%d N=%d, columns", name,
                          bsm_format_get((int)a->m.format)->name, bsm_format_get((int)b->m.format)->name,
                          (int)a->m.scale_layout.kind, (int)b->m.scale_layout.kind, (int)a->m.packing,
                          (int)b->m.packing, (int)g->m, (int)g->n);
    for (int64_t i = 0; i < g->count; i++)
        length += snprintf(text + length, sizeof text - (size_t)length, " %d", (int)g->columns[i]);
    return text;
}

/* Kernels for groups along K, and behind them the one without tensor cores; -1 behind the last. */
static int kernel_of(int number)
{
    int with = 0;
    while (kernel_with("column_groups", with) >= 0) with++;
    if (number > with) return -1;
    return kernel_with(number < with ? "column_groups" : simt_kernel(), number < with ? number : 0);
}

static bool runs(const struct contexts *c, int kernel, const struct operand *a, const struct operand *b)
{
    return bsm_kernel_serves(c->gpu, kernel, a->m.format, b->m.format);
}

/* Whole numbers: one result for every order of sums. */
static void check_whole(struct test *t, const struct contexts *c, int kernel, bsm_format a_format, bsm_format b_format,
                        const struct groups *g)
{
    const int64_t k = sum_of(g);
    struct operand a = any_operand(t, a_format, g->m, k), b = any_operand(t, b_format, g->n, k);
    struct operand d = operand_make(&(struct shape){ .format = BSM_FORMAT_FP32, .rows = g->m, .columns = g->n,
                                                     .batch = g->count, .extra_pitch = rnd_below(t, 2) * 64 }, 0xff);
    fill_whole(t, &a), fill_whole(t, &b);
    if (kernel < 0 || runs(c, kernel, &a, &b)) {
        CHECK(t, bsm_context_force_kernel(c->gpu, kernel) == BSM_OK);
        run_both(t, c, &(struct run){ .a = &a, .b = &b, .d = &d,
                                      .call = { .struct_size = sizeof(bsm_matmul), .groups = g->count,
                                                .group_columns = g->columns } },
                 text_of(kernel < 0 ? "chosen" : bsm_kernel_name(kernel), &a, &b, g));
        CHECK(t, bsm_context_force_kernel(c->gpu, -1) == BSM_OK);
    }
    operand_free(&a), operand_free(&b), operand_free(&d);
}

static void every_format(struct test *t)
{
    static const struct groups cases[] = {
        { 7, 20, 3, { 64, 32, 96 } }, { 33, 9, 4, { 0, 128, 0, 64 } }, { 130, 5, 2, { 64, 77 } },
        { 4, 140, 5, { 64, 0, 0, 192, 1 } },
    };
    struct contexts c;
    int turn = 0;
    if (!contexts_open(t, &c)) return;
    for (int format = 1; format < BSM_FORMAT_COUNT; format++)
        for (int other = 0; other < 2; other++, turn++) {
            static const bsm_format others[] = { BSM_MXFP8_E4M3, BSM_FORMAT_BF16, BSM_NVFP4, BSM_FORMAT_FP16 };
            if (format == BSM_FORMAT_FP32) continue;
            check_whole(t, &c, -1, (bsm_format)format, other == 0 ? (bsm_format)format : others[turn % 4],
                        &cases[turn % 4]);
        }
    contexts_close(&c);
}

/* Edges of tiles, of rings and of groups, on each kernel. */
static void every_kernel(struct test *t)
{
    static const struct groups cases[] = {
        { 257, 129, 2, { 32, 64 } },         { 1, 1, 6, { 32, 32, 32, 32, 32, 32 } }, { 5, 300, 3, { 0, 64, 1 } },
        { 128, 128, 4, { 448, 0, 64, 33 } }, { 3, 4, 3, { 0, 0, 0 } },                { 9, 17, 1, { 1 } },
    };
    struct contexts c;
    if (!contexts_open(t, &c)) return;
    for (int number = 0; kernel_of(number) >= 0; number++)
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            const bool nothing = sum_of(&cases[i]) == 0, plain = kernel_of(number) == kernel_with(simt_kernel(), 0);
            if (nothing && !plain) continue;           /* K = 0 is no GEMM kernel's */
            check_whole(t, &c, kernel_of(number), BSM_MXFP8_E4M3, i % 2 == 0 ? BSM_MXFP8_E5M2 : BSM_MXFP4, &cases[i]);
        }
    contexts_close(&c);
}

/* D on the GPU, fp32. */
static void multiply(struct test *t, const struct contexts *c, const struct operand *a, const struct operand *b,
                     const struct groups *g, int64_t matrices, float *d)
{
    const size_t bytes = (size_t)(matrices * g->m * g->n) * sizeof(float);
    struct twin of_a = twin_make(t, c, a), of_b = twin_make(t, c, b);
    void *columns = matrices > 1 ? to_device(t, c, g->columns, (size_t)g->count * sizeof(int64_t)) : NULL;
    memset(d, 0xff, bytes);
    bsm_matrix of_d = { .struct_size = sizeof of_d, .format = BSM_FORMAT_FP32, .rows = g->m, .columns = g->n,
                        .batch = matrices, .data = to_device(t, c, d, bytes) };
    const bsm_matmul call = { .struct_size = sizeof call, .a = &of_a.m, .b = &of_b.m, .d = &of_d,
                              .groups = columns != NULL ? g->count : 0, .group_columns = columns };
    if (bsm_multiply(c->gpu, &call) != BSM_OK) FAIL(t, "%s", bsm_last_error());
    from_device(t, c, d, of_d.data, bytes);
    CHECK(t, bsm_device_release(c->gpu, columns) == BSM_OK && bsm_device_release(c->gpu, of_d.data) == BSM_OK);
    twin_free(t, c, &of_a), twin_free(t, c, &of_b);
}

/* Any numbers: what a product of each group's columns alone gives, on whatever kernel that takes; where no kernel for
 * tensor cores takes groups along K, in the CPU's order of sums. */
static void check_alone(struct test *t, const struct contexts *c, bsm_format a_format, bsm_format b_format,
                        enum scales scales, const struct groups *g)
{
    const int64_t k = sum_of(g), size = g->m * g->n;
    struct operand a = any_operand(t, a_format, g->m, k), b = any_operand(t, b_format, g->n, k);
    float *d = malloc((size_t)(g->count * size) * sizeof *d), *alone = malloc((size_t)size * sizeof *alone);
    operand_fill(t, &a, false), operand_fill(t, &b, false);
    set_scales(t, &a, scales), set_scales(t, &b, scales);
    multiply(t, c, &a, &b, g, g->count, d);
    const int with = kernel_with("column_groups", 0);
    if (with < 0 || !bsm_kernel_serves(c->gpu, with, a_format, b_format))
        CHECK(t, bsm_context_force_kernel(c->gpu, kernel_with(simt_kernel(), 0)) == BSM_OK);
    for (int64_t i = 0, first = 0; i < g->count; first += g->columns[i++]) {
        struct operand of_a = operand_of_columns(&a.m, first, g->columns[i]),
                       of_b = operand_of_columns(&b.m, first, g->columns[i]);
        multiply(t, c, &of_a, &of_b, g, 1, alone);
        for (int64_t at = 0; at < size; at++)
            if (memcmp(&alone[at], &d[i * size + at], sizeof *d) != 0) {
                FAIL(t, "%s, scales %d: group %d, row %d, column %d is %a, and %a in a product of its own",
                     text_of("chosen", &a, &b, g), (int)scales, (int)i, (int)(at / g->n), (int)(at % g->n),
                     (double)d[i * size + at], (double)alone[at]);
                break;
            }
        operand_free(&of_a), operand_free(&of_b);
    }
    CHECK(t, bsm_context_force_kernel(c->gpu, -1) == BSM_OK);
    operand_free(&a), operand_free(&b);
    free(d), free(alone);
}

static void as_products_of_their_own(struct test *t)
{
    static const struct { bsm_format a, b; } pairs[] = {
        { BSM_MXFP8_E4M3, BSM_MXFP8_E5M2 }, { BSM_MXFP4, BSM_MXFP6_E3M2 },   { BSM_NVFP4, BSM_NVFP4 },
        { BSM_FORMAT_BF16, BSM_MXINT8 },    { BSM_MXFP8_E4M3, BSM_FORMAT_FP16 }, { BSM_MXFP4_BLOCK16, BSM_MXFP8_E4M3 },
    };
    static const struct groups cases[] = {
        { 20, 24, 4, { 64, 128, 0, 64 } }, { 6, 40, 5, { 64, 64, 64, 64, 9 } }, { 40, 8, 3, { 0, 192, 64 } },
    };
    struct contexts c;
    if (!contexts_open(t, &c)) return;
    for (int scales = 0; scales < SCALES_COUNT; scales++)
        for (size_t p = 0; p < sizeof pairs / sizeof pairs[0]; p++)
            check_alone(t, &c, pairs[p].a, pairs[p].b, (enum scales)scales, &cases[((size_t)scales + p) % 3]);
    contexts_close(&c);
}

/* One plan, other groups: their number of columns is read when it runs. */
static void one_plan_for_other_groups(struct test *t)
{
    static const int64_t columns[][3] = { { 64, 32, 64 }, { 160, 0, 0 }, { 0, 0, 160 }, { 32, 96, 32 } };
    enum { M = 12, N = 20, K = 160, GROUPS = 3 };
    struct contexts c;
    bsm_plan *plan = NULL;
    if (!contexts_open(t, &c)) return;
    struct operand a = any_operand(t, BSM_MXFP8_E4M3, M, K), b = any_operand(t, BSM_MXFP4, N, K);
    fill_whole(t, &a), fill_whole(t, &b);
    struct twin of_a = twin_make(t, &c, &a), of_b = twin_make(t, &c, &b);
    static float want[GROUPS * M * N], found[GROUPS * M * N];
    bsm_matrix host_d = { .struct_size = sizeof host_d, .format = BSM_FORMAT_FP32, .rows = M, .columns = N,
                          .batch = GROUPS, .data = want },
               device_d = host_d;
    device_d.data = to_device(t, &c, found, sizeof found);
    void *of_columns = to_device(t, &c, columns[0], sizeof columns[0]), *workspace = NULL;
    bsm_matmul host = { .struct_size = sizeof host, .a = &a.m, .b = &b.m, .d = &host_d, .groups = GROUPS },
               device = { .struct_size = sizeof host, .a = &of_a.m, .b = &of_b.m, .d = &device_d, .groups = GROUPS,
                          .group_columns = of_columns };
    CHECK_OR_RETURN(t, bsm_plan_create(c.gpu, &device, &plan) == BSM_OK);
    const size_t bytes = bsm_plan_workspace_bytes(plan);
    CHECK_OR_RETURN(t, bsm_device_allocate(c.gpu, bytes, &workspace) == BSM_OK && bsm_plan_b_panels_bytes(plan) == 0);
    for (int i = 0; i < 4; i++) {
        host.group_columns = columns[i];
        CHECK(t, bsm_device_write(c.gpu, of_columns, columns[i], sizeof columns[i]) == BSM_OK);
        CHECK(t, bsm_plan_run(plan, &device, workspace, bytes) == BSM_OK && bsm_multiply(c.cpu, &host) == BSM_OK);
        from_device(t, &c, found, device_d.data, sizeof found);
        if (memcmp(found, want, sizeof want) != 0) FAIL(t, "groups %d of one plan have another D", i);
    }
    bsm_plan_destroy(plan);
    CHECK(t, bsm_device_release(c.gpu, workspace) == BSM_OK && bsm_device_release(c.gpu, of_columns) == BSM_OK
                 && bsm_device_release(c.gpu, device_d.data) == BSM_OK);
    twin_free(t, &c, &of_a), twin_free(t, &c, &of_b);
    operand_free(&a), operand_free(&b);
    contexts_close(&c);
}

/* What no host can check: the kernels read and write nothing beyond, which a simulator would tell, and groups in front
 * of what breaks the rule are right. */
static void numbers_that_break_the_rule(struct test *t)
{
    static const struct groups cases[] = {
        { 5, 12, 4, { 64, -32, 1000000, 64 } }, { 5, 12, 3, { 64, 7, 64 } }, { 5, 12, 3, { 64, INT64_MAX, INT64_MIN } },
        { 5, 12, 3, { 64, 33, 33 } },
    };
    struct contexts c;
    if (!contexts_open(t, &c)) return;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int format = 0; format < 2; format++) {
            const bsm_format of = format == 0 ? BSM_MXFP8_E4M3 : BSM_FORMAT_BF16;
            struct operand a = any_operand(t, of, 5, 160), b = any_operand(t, of, 12, 160);
            float d[4 * 5 * 12], alone[5 * 12];
            fill_whole(t, &a), fill_whole(t, &b);
            multiply(t, &c, &a, &b, &cases[i], cases[i].count, d);
            struct operand of_a = operand_of_columns(&a.m, 0, 64), of_b = operand_of_columns(&b.m, 0, 64);
            multiply(t, &c, &of_a, &of_b, &cases[i], 1, alone);
            CHECK(t, memcmp(d, alone, sizeof alone) == 0);
            operand_free(&of_a), operand_free(&of_b), operand_free(&a), operand_free(&b);
        }
    contexts_close(&c);
}

/* Other kernels refuse groups along K when they are forced. */
static void other_kernels_refuse(struct test *t)
{
    struct contexts c;
    if (!contexts_open(t, &c)) return;
    int refused = 0;
    struct operand a = any_operand(t, BSM_MXFP4, 4, 64), b = any_operand(t, BSM_MXFP4, 8, 64);
    struct operand d = operand_make(&(struct shape){ .format = BSM_FORMAT_FP32, .rows = 4, .columns = 8, .batch = 2 },
                                    0xff);
    const int64_t columns[2] = { 32, 32 };
    const bsm_matmul call = { .struct_size = sizeof call, .a = &a.m, .b = &b.m, .d = &d.m, .groups = 2,
                              .group_columns = columns };
    for (int kernel = kernel_with("cuda_", 0); bsm_kernel_name(kernel) != NULL; kernel++) {
        if (!runs(&c, kernel, &a, &b)) continue;
        const bool takes = strstr(bsm_kernel_name(kernel), "column_groups") != NULL
                        || strcmp(bsm_kernel_name(kernel), simt_kernel()) == 0;
        CHECK(t, bsm_context_force_kernel(c.gpu, kernel) == BSM_OK);
        const bsm_status status = bsm_supported(c.gpu, &call);
        CHECK(t, status == (takes ? BSM_OK : BSM_EUNSUPPORTED));
        if (!takes && strstr(bsm_last_error(), "groups") == NULL && strstr(bsm_last_error(), "compute") == NULL)
            FAIL(t, "%s: %s", bsm_kernel_name(kernel), bsm_last_error());
        refused += !takes;
    }
    CHECK(t, refused > 0);
    CHECK(t, bsm_context_force_kernel(c.gpu, -1) == BSM_OK && bsm_supported(c.gpu, &call) == BSM_OK);
    operand_free(&a), operand_free(&b), operand_free(&d);
    contexts_close(&c);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        TEST(every_format),          TEST(every_kernel),         TEST(as_products_of_their_own),
        TEST(one_plan_for_other_groups), TEST(numbers_that_break_the_rule), TEST(other_kernels_refuse),
    };
    return TEST_MAIN(argc, argv, cases);
}
