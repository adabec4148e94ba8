/* Products with panels of B: the bits are those of a kernel that reads B as it is, whatever its scales; and what
 * bsm_plan_pack_b promises.  GEMM_INSTANCE=FUNCTION: kernels of this function alone. */
#include "cuda/harness/gpu.h"

#include <stdlib.h>

static int named(const char *name)
{
    for (int kernel = 0; bsm_kernel_name(kernel) != NULL; kernel++)
        if (strcmp(bsm_kernel_name(kernel), name) == 0) return kernel;
    return -1;
}

/* Number of the n-th kernel of this GPU that reads panels; -1 behind the last. */
static int reading(const struct contexts *c, int n)
{
    for (int i = 0; kernel_with("_prepacked", i) >= 0; i++)
        if (is_of_gpu(c->gpu, kernel_with("_prepacked", i)) && n-- == 0) return kernel_with("_prepacked", i);
    return -1;
}

/* Contexts, if the GPU has such kernels. */
static bool panels_open(struct test *t, struct contexts *c)
{
    if (!contexts_open(t, c)) return false;
    struct operand a = nibble_operand(BSM_FORMAT_BF16, 1, 32, 0, BSM_LAYOUT_LINEAR),
                   b = nibble_operand(BSM_MXFP4, 1, 32, 0, BSM_LAYOUT_LINEAR);
    struct operand d = nibble_operand(BSM_FORMAT_FP32, 1, 1, 0, BSM_LAYOUT_LINEAR);
    const bsm_matmul call = { .struct_size = sizeof call, .a = &a.m, .b = &b.m, .d = &d.m };
    bsm_plan *plan = NULL;
    CHECK(t, bsm_plan_create(c->gpu, &call, &plan) == BSM_OK);
    const bool here = bsm_plan_b_panels_bytes(plan) > 0;
    bsm_plan_destroy(plan);
    operand_free(&a), operand_free(&b), operand_free(&d);
    if (here) return true;
    test_skip(t, "this GPU has no kernels that read panels");
    contexts_close(c);
    return false;
}

enum { MANY_GROUPS = 70 };                /* of 0 to 3 rows, 105 together */

struct problem {
    int64_t m, n, k, batch, groups;
    bsm_format a, d;
    bsm_layout layout;
    bsm_gate gate;
    bool every_scale;                     /* with every kind of scales on one kernel at least; on a GPU all problems */
};

/* The device's D in `d`, by the kernel, with panels that it makes, or without. */
static void multiply(struct test *t, const struct contexts *c, bsm_matmul call, int kernel, bool with_panels,
                     const struct operand *d, void *bytes)
{
    bsm_plan *plan = NULL;
    struct twin out = twin_make(t, c, d);
    void *workspace = NULL, *panels = NULL;
    call.d = &out.m;
    CHECK(t, bsm_context_force_kernel(c->gpu, kernel) == BSM_OK);
    if (bsm_plan_create(c->gpu, &call, &plan) != BSM_OK) FAIL(t, "%s", bsm_last_error());
    const size_t work = bsm_plan_workspace_bytes(plan), packed = bsm_plan_b_panels_bytes(plan);
    if (work > 0) CHECK(t, bsm_device_allocate(c->gpu, work, &workspace) == BSM_OK);
    CHECK(t, (packed > 0) == with_panels);
    if (with_panels) {
        CHECK(t, bsm_device_allocate(c->gpu, packed, &panels) == BSM_OK);
        if (bsm_plan_pack_b(plan, &call, panels, packed) != BSM_OK) FAIL(t, "%s", bsm_last_error());
        call.b_panels = panels;
    }
    /* Twice where A is decoded in front: the second may begin before the first has ended, in the same workspace. */
    for (int i = 0; i < (with_panels && call.a->format != BSM_FORMAT_BF16 ? 2 : 1); i++)
        if (bsm_plan_run(plan, &call, workspace, work) != BSM_OK) FAIL(t, "%s", bsm_last_error());
    from_device(t, c, bytes, out.m.data, d->data_bytes);
    bsm_plan_destroy(plan);
    if (panels != NULL) (void)bsm_device_release(c->gpu, panels);
    if (workspace != NULL) (void)bsm_device_release(c->gpu, workspace);
    twin_free(t, c, &out);
}

/* NaN among a row's codes; and of a row whose scales span too much, blocks of zeros where they are small, so that they
 * do not count. */
static void set_codes(struct operand *o, enum scales scales)
{
    for (int64_t k = 0; k < o->m.columns; k++) {
        uint8_t scale = 0;
        (void)bsm_matrix_get_scale(&o->m, 0, 0, k / 32, &scale);
        if (scales == SCALES_WITH_NAN && k % 97 == 50)
            bsm_matrix_set_code(&o->m, 0, o->m.rows / 2, k, k % 2 == 0 ? 0x7f : 0xff);
        if (scales == SCALES_SPANNING && scale < 100) bsm_matrix_set_code(&o->m, 0, 0, k, k % 2 == 0 ? 0 : 0x80);
    }
}

/* Small scales, as weights of models have them: of weights with large scales in some 16 rows, which a warp has, of
 * usual ones in every other 64, which a warpgroup has. */
static void set_some_small(struct operand *o, enum scales scales)
{
    for (int64_t matrix = 0; matrix < (o->m.batch < 1 ? 1 : o->m.batch); matrix++)
        for (int64_t r = 0; r < o->m.rows; r++) {
            const bool small = scales == SCALES_LARGE ? r / 16 % 3 == 1 : scales == SCALES_USUAL && r / 64 % 2 == 0;
            for (int64_t s = 0; s < bsm_matrix_scale_columns(&o->m) && small; s++)
                bsm_matrix_set_scale(&o->m, matrix, r, s, (uint8_t)(120 + (r + s) % 8));
        }
}

/* A problem's operands on the device, and D by a kernel that reads B as it is: kernels that are compared share them,
 * since on a GPU making them takes longest. */
struct operands {
    struct operand a, b, d;
    struct twin x, y;
    void *rows, *bias;
    bsm_matmul call;
    unsigned char *want, *got;
};

static void make_operands(struct test *t, const struct contexts *c, const struct problem *q, bsm_format format,
                          enum scales scales, bool biased, struct operands *o)
{
    static const int64_t few_rows[] = { 0, 13, 1, 0, 6 }, many_rows[] = { 33, 150, 0, 17, 100 };
    const int64_t of_d = q->groups > 0 ? 1 : q->batch;
    int64_t of_many_groups[MANY_GROUPS];
    for (int g = 0; g < MANY_GROUPS; g++) of_many_groups[g] = g * 7 % 4;
    const int64_t *group_rows = q->groups == MANY_GROUPS ? of_many_groups : q->m == 20 ? few_rows : many_rows;
    o->a = nibble_operand(q->a, q->m, q->k, of_d, BSM_LAYOUT_LINEAR);
    o->b = nibble_operand(format, q->n, q->k, q->groups > 0 ? q->groups : q->batch, q->layout);
    o->d = nibble_operand(q->d, q->m, q->gate == BSM_GATE_NONE ? q->n : q->n / 2, of_d, BSM_LAYOUT_LINEAR);
    operand_fill(t, &o->a, q->a != BSM_FORMAT_BF16), operand_fill(t, &o->b, false), set_scales(t, &o->b, scales);
    if (format == BSM_MXFP4) set_some_small(&o->b, scales);
    if (q->a != BSM_FORMAT_BF16) set_scales(t, &o->a, scales);
    if (q->a == BSM_MXFP8_E4M3) set_codes(&o->a, scales);
    o->x = twin_make(t, c, &o->a), o->y = twin_make(t, c, &o->b);
    o->rows = q->groups > 0 ? to_device(t, c, group_rows, (size_t)q->groups * sizeof *group_rows) : NULL;
    o->call = (bsm_matmul){ .struct_size = sizeof o->call,
                            .a = &o->x.m,
                            .b = &o->y.m,
                            .gate = q->gate,
                            .groups = q->groups,
                            .group_rows = o->rows };
    o->bias = NULL;
    if (biased) {
        float *biases = malloc((size_t)q->n * sizeof *biases);
        for (int64_t i = 0; i < q->n; i++) biases[i] = (float)(i % 23) - 11;
        o->bias = to_device(t, c, biases, (size_t)q->n * sizeof *biases);
        o->call.bias = o->bias, o->call.bias_type = BSM_REAL_FP32, o->call.bias_per = BSM_PER_COLUMN;
        free(biases);
    }
    o->want = malloc(o->d.data_bytes), o->got = malloc(o->d.data_bytes);
    multiply(t, c, o->call, named(rows_kernel(c->gpu)), false, &o->d, o->want);
}

static void free_operands(struct test *t, const struct contexts *c, struct operands *o)
{
    free(o->want), free(o->got);
    if (o->rows != NULL) (void)bsm_device_release(c->gpu, o->rows);
    if (o->bias != NULL) (void)bsm_device_release(c->gpu, o->bias);
    twin_free(t, c, &o->x), twin_free(t, c, &o->y);
    operand_free(&o->a), operand_free(&o->b), operand_free(&o->d);
}

static void check_kernel(struct test *t, const struct contexts *c, const struct problem *q, int kernel,
                         enum scales scales, const struct operands *o)
{
    const bool reads_panels = strstr(bsm_kernel_name(kernel), "_prepacked") != NULL;
    multiply(t, c, o->call, kernel, reads_panels, &o->d, o->got);
    if (memcmp(o->got, o->want, o->d.data_bytes) != 0)
        FAIL(t, "%s, scales %d, %d x %d x %d: other bits than %s", bsm_kernel_name(kernel), (int)scales, (int)q->m,
             (int)q->n, (int)q->k, rows_kernel(c->gpu));
}

static void check_bits(struct test *t, const struct contexts *c, const struct problem *q, int kernel,
                       enum scales scales, bool biased)
{
    struct operands o;
    make_operands(t, c, q, nibbles_of_kernel(kernel), scales, biased, &o);
    check_kernel(t, c, q, kernel, scales, &o);
    free_operands(t, c, &o);
}

/* Which problems a kernel tries where it is simulated: kernels by mma.sync differ from those by wgmma in how products
 * are made, not in what is read and finished, and have every fourth; by tcgen05 one kernel has all tiles, and they take
 * turns; kernels for many rows have the last, which has many, and a third of the others; the others have the
 * rest. */
static bool is_tried(int kernel, int n, int problem, int problems)
{
    const char *name = bsm_kernel_name(kernel);
    const bool of_many_rows = strstr(name, "_rows_") != NULL, is_last = problem + 1 == problems,
               has_groups = problem + 3 == problems || problem + 2 == problems;
    if (!is_simulated() || one_is_asked_for()) return true;
    if (strstr(name, "_tcgen05_") != NULL) return problem % 8 == n % 8 && !is_last;
    if (strstr(name, "_mma_sync_") != NULL) return problem % 4 == n % 4 && !has_groups;
    if (strstr(name, "_groups_") != NULL) return has_groups || (n + problem) % 6 == 0;
    if (has_groups) return n == 0;
    return of_many_rows ? is_last || (n + problem) % 3 == 0 : !is_last;
}

/* Number i of `problems`, with such scales, on each of `kernels`, up to a -1, for weights of the format that tries
 * it. */
static void check_problem(struct test *t, const struct contexts *c, const int *kernels, const struct problem *q, int i,
                          int problems, bsm_format format, enum scales scales)
{
    struct operands o;
    bool made = false;
    for (int n = 0; kernels[n] >= 0; n++) {
        const int kernel = kernels[n];
        if (nibbles_of_kernel(kernel) != format || !is_asked_for(kernel) || !is_tried(kernel, n, i, problems)) continue;
        if (strstr(bsm_kernel_name(kernel), "_tcgen05_") != NULL && q->k % 32 != 0) continue; /* rows that TMA reads */
        if (is_simulated() && (int)scales != (n + i) % SCALES_COUNT
            && !(q->every_scale && (n == 0 || one_is_asked_for())))
            continue;
        if (!made) make_operands(t, c, q, format, scales, false, &o);
        made = true;
        check_kernel(t, c, q, kernel, scales, &o);
    }
    if (made) free_operands(t, c, &o);
}

/* Ragged N and K, K of less than a turn for each warpgroup, rings that go round, several tiles a CTA and not, in each
 * form of product. */
static void bits_are_the_same(struct test *t)
{
    static const struct problem problems[] = {
        { 5, 150, 1056, 1, 0, BSM_FORMAT_BF16, BSM_FORMAT_FP32, BSM_LAYOUT_LINEAR, BSM_GATE_NONE, true },
        { 1, 1, 32, 1, 0, BSM_FORMAT_BF16, BSM_FORMAT_FP32, BSM_LAYOUT_LINEAR, BSM_GATE_NONE, false },
        { 17, 70, 288, 1, 0, BSM_FORMAT_BF16, BSM_FORMAT_BF16, BSM_LAYOUT_128X4, BSM_GATE_NONE, false },
        { 40, 66, 3170, 1, 0, BSM_FORMAT_BF16, BSM_FORMAT_FP32, BSM_LAYOUT_LINEAR, BSM_GATE_NONE, false },
        { 3, 66, 546, 3, 0, BSM_FORMAT_BF16, BSM_FORMAT_FP16, BSM_LAYOUT_DEEPGEMM, BSM_GATE_NONE, false },
        { 20, 72, 320, 0, 5, BSM_FORMAT_BF16, BSM_FORMAT_FP32, BSM_LAYOUT_LINEAR, BSM_GATE_NONE, false },
        { 20, 64, 800, 1, 0, BSM_MXFP8_E4M3, BSM_FORMAT_BF16, BSM_LAYOUT_LINEAR, BSM_GATE_NONE, false },
        /* A lies plainly */
        { 9, 130, 448, 1, 0, BSM_MXFP8_E4M3, BSM_FORMAT_BF16, BSM_LAYOUT_LINEAR, BSM_GATE_NONE, false },
        { 8, 150, 1056, 1, 0, BSM_MXFP8_E4M3, BSM_FORMAT_FP32, BSM_LAYOUT_LINEAR, BSM_GATE_NONE, true },
        { 5, 66, 32, 1, 0, BSM_MXFP8_E4M3, BSM_FORMAT_BF16, BSM_LAYOUT_128X4, BSM_GATE_NONE, false },
        { 20, 64, 96, 1, 0, BSM_MXFP6_E2M3, BSM_FORMAT_BF16, BSM_LAYOUT_LINEAR, BSM_GATE_SPLIT, false },
        /* whole tiles of bf16 */
        { 70, 128, 224, 1, 0, BSM_FORMAT_BF16, BSM_FORMAT_BF16, BSM_LAYOUT_LINEAR, BSM_GATE_NONE, false },
        /* more groups than lanes */
        { 105, 66, 96, 0, MANY_GROUPS, BSM_FORMAT_BF16, BSM_FORMAT_FP16, BSM_LAYOUT_LINEAR, BSM_GATE_NONE, false },
        /* groups of one tile and of two, whose last ones have rows for products of each width */
        { 300, 130, 448, 0, 5, BSM_FORMAT_BF16, BSM_FORMAT_BF16, BSM_LAYOUT_LINEAR, BSM_GATE_NONE, false },
        /* several tiles of rows, and the last of them no whole one; on four SMs some tiles come in halves */
        { 300, 290, 840, 1, 0, BSM_FORMAT_BF16, BSM_FORMAT_BF16, BSM_LAYOUT_LINEAR, BSM_GATE_NONE, false },
    };
    enum { PROBLEMS = sizeof problems / sizeof problems[0], MOST_KERNELS = 64 };
    struct contexts c;
    int kernels[MOST_KERNELS] = { -1 };
    if (!panels_open(t, &c)) return;
    for (int n = 0; n + 1 < MOST_KERNELS && (kernels[n] = reading(&c, n)) >= 0; n++) kernels[n + 1] = -1;
    for (int i = 0; i < PROBLEMS; i++)
        for (int scales = 0; scales < SCALES_COUNT; scales++) {
            check_problem(t, &c, kernels, &problems[i], i, PROBLEMS, BSM_MXFP4, (enum scales)scales);
            check_problem(t, &c, kernels, &problems[i], i, PROBLEMS, BSM_NVFP4, (enum scales)scales);
        }
    contexts_close(&c);
}

/* Rings that go round within a tile, and from tile to tile; slices of weights in front of a tile's last, the first one
 * and not; groups whose tiles have rows for products of each width; tables of a bias that each tile fills, where no
 * exponents make the warps of the tile before meet: with CUDASIM_SCHEDULES in many orders of the warps. */
static void schedules(struct test *t)
{
    static const struct problem few = { 5, 130, 448, 1, 0, BSM_FORMAT_BF16, BSM_FORMAT_FP32, BSM_LAYOUT_LINEAR,
                                        BSM_GATE_NONE, false },
                                long_rows = { 5, 130, 864, 1, 0, BSM_FORMAT_BF16, BSM_FORMAT_FP32, BSM_LAYOUT_LINEAR,
                                              BSM_GATE_NONE, false },
                                wide = { 5, 530, 448, 1, 0, BSM_FORMAT_BF16, BSM_FORMAT_FP32, BSM_LAYOUT_LINEAR,
                                         BSM_GATE_NONE, false },
                                groups = { 300, 66, 864, 0, 5, BSM_FORMAT_BF16, BSM_FORMAT_BF16, BSM_LAYOUT_LINEAR,
                                           BSM_GATE_NONE, false },
                                short_rows = { 300, 66, 64, 0, 5, BSM_FORMAT_BF16, BSM_FORMAT_BF16, BSM_LAYOUT_LINEAR,
                                               BSM_GATE_NONE, false };
    struct contexts c;
    if (!panels_open(t, &c)) return;
    for (int kernel = 0, done = 0; bsm_kernel_name(kernel) != NULL; kernel++) {
        const char *name = bsm_kernel_name(kernel);
        if (is_simulated() && !one_is_asked_for() && done > 0) continue;
        const bool by_mma_sync = strstr(name, "_16x64_stored") != NULL || strstr(name, "_128x4") != NULL;
        if (!is_of_gpu(c.gpu, kernel) || !is_asked_for(kernel)) continue;
        if (strstr(name, "_prepacked") == NULL && !by_mma_sync) continue;
        check_bits(t, &c, &few, kernel, SCALES_NEAR_THE_ENDS, false), done++;
        check_bits(t, &c, &long_rows, kernel, SCALES_USUAL, false);
        if (strstr(name, "_groups_") == NULL && strstr(name, "_tcgen05_") == NULL) continue;
        check_bits(t, &c, &wide, kernel, SCALES_USUAL, false);
        check_bits(t, &c, &groups, kernel, SCALES_USUAL, false);
        check_bits(t, &c, &short_rows, kernel, SCALES_USUAL, true);
    }
    contexts_close(&c);
}

/* Rows of weights with exponents of their own, where D is finished by a kernel of its own. */
static void exponents_where_sums_are_stored(struct test *t)
{
    const struct problem problem = {
        20, 64, 96, 1, 0, BSM_MXFP6_E2M3, BSM_FORMAT_BF16, BSM_LAYOUT_LINEAR, BSM_GATE_SPLIT, false
    };
    struct contexts c;
    if (!panels_open(t, &c)) return;
    for (int scales = SCALES_NEAR_THE_ENDS; scales <= SCALES_SPANNING; scales++) {
        struct operand a = nibble_operand(problem.a, problem.m, problem.k, 1, BSM_LAYOUT_LINEAR),
                       b = nibble_operand(BSM_MXFP4, problem.n, problem.k, 1, BSM_LAYOUT_LINEAR),
                       d = nibble_operand(problem.d, problem.m, problem.n / 2, 1, BSM_LAYOUT_LINEAR);
        operand_fill(t, &a, false), operand_fill(t, &b, false), set_scales(t, &b, (enum scales)scales);
        if (scales == SCALES_SPANNING) set_scales(t, &a, SCALES_LARGE);
        struct twin x = twin_make(t, &c, &a), y = twin_make(t, &c, &b);
        const bsm_matmul call = { .struct_size = sizeof call, .a = &x.m, .b = &y.m, .gate = problem.gate };
        unsigned char *got = malloc(d.data_bytes), *want = malloc(d.data_bytes);
        multiply(t, &c, call, named(few_rows_kernel(c.gpu)), false, &d, got);
        multiply(t, &c, call, named(rows_kernel(c.gpu)), false, &d, want);
        if (memcmp(got, want, d.data_bytes) != 0) FAIL(t, "scales %d: other bits than %s", scales, rows_kernel(c.gpu));
        free(got), free(want);
        twin_free(t, &c, &x), twin_free(t, &c, &y), operand_free(&a), operand_free(&b), operand_free(&d);
    }
    contexts_close(&c);
}

/* What the header says of bsm_plan_pack_b and b_panels. */
static void contract(struct test *t)
{
    struct contexts c;
    if (!panels_open(t, &c)) return;
    struct operand a = nibble_operand(BSM_FORMAT_BF16, 2, 64, 0, BSM_LAYOUT_LINEAR),
                   many = nibble_operand(BSM_FORMAT_BF16, 5000, 64, 0, BSM_LAYOUT_LINEAR),
                   b = nibble_operand(BSM_MXFP4, 70, 64, 0, BSM_LAYOUT_LINEAR),
                   d = nibble_operand(BSM_FORMAT_FP32, 2, 70, 0, BSM_LAYOUT_LINEAR),
                   of_many = nibble_operand(BSM_FORMAT_FP32, 5000, 70, 0, BSM_LAYOUT_LINEAR);
    operand_fill(t, &a, false), operand_fill(t, &b, false);
    struct twin x = twin_make(t, &c, &a), y = twin_make(t, &c, &b);
    bsm_plan *plan = NULL, *of_many_rows = NULL;
    void *panels = NULL;
    char text[1200];
    bsm_matmul call = { .struct_size = sizeof call, .a = &x.m, .b = &y.m, .d = &d.m }, with_many = call;
    with_many.a = &many.m, with_many.d = &of_many.m;
    CHECK(t, bsm_context_force_kernel(c.gpu, -1) == BSM_OK);
    CHECK(t, bsm_plan_create(c.gpu, &call, &plan) == BSM_OK
                 && bsm_plan_create(c.gpu, &with_many, &of_many_rows) == BSM_OK);
    const size_t bytes = bsm_plan_b_panels_bytes(plan);
    CHECK(t, bytes >= 70 * 64 / 2 && bsm_plan_b_panels_bytes(of_many_rows) == 0);
    CHECK(t, bsm_device_allocate(c.gpu, bytes + 1, &panels) == BSM_OK);
    CHECK(t, bsm_plan_pack_b(of_many_rows, &with_many, panels, bytes) == BSM_EUNSUPPORTED);
    CHECK(t, bsm_plan_pack_b(plan, &call, panels, bytes - 1) == BSM_EINVAL);
    CHECK(t, bsm_plan_pack_b(plan, &call, NULL, bytes) == BSM_EINVAL);
    CHECK(t, bsm_plan_pack_b(plan, &call, (char *)panels + 1, bytes) == BSM_EALIGN);
    CHECK(t, bsm_plan_pack_b(plan, &with_many, panels, bytes) == BSM_EINVAL);
    CHECK(t, bsm_plan_pack_b(plan, &call, panels, bytes) == BSM_OK);
    bsm_plan_describe(plan, text, sizeof text);
    CHECK(t, strstr(text, "_prepacked") != NULL);
    bsm_plan_describe(of_many_rows, text, sizeof text);
    CHECK(t, strstr(text, "_prepacked") == NULL);
    bsm_matrix described = y.m;
    bsm_matmul alone = call;
    described.data = NULL, described.scales = NULL, alone.b = &described, alone.b_panels = panels;
    if (strstr(bsm_kernel_name(reading(&c, 0)), "_tcgen05_") != NULL)      /* panels without codes */
        CHECK(t, bsm_supported(c.gpu, &alone) == BSM_EUNSUPPORTED && strstr(bsm_last_error(), "scales alone") != NULL);
    call.b_panels = (char *)panels + 1;
    CHECK(t, bsm_supported(c.gpu, &call) == BSM_EALIGN);
    CHECK(t, !bsm_kernel_serves(c.gpu, reading(&c, 0), BSM_FORMAT_BF16, BSM_MXFP4));
    bsm_plan_destroy(plan), bsm_plan_destroy(of_many_rows), (void)bsm_device_release(c.gpu, panels);
    twin_free(t, &c, &x), twin_free(t, &c, &y);
    operand_free(&a), operand_free(&many), operand_free(&b), operand_free(&d), operand_free(&of_many);
    contexts_close(&c);
}

/* Kernels with a table of groups in shared memory have room for some. */
static void most_groups(struct test *t)
{
    struct contexts c;
    if (!panels_open(t, &c)) return;
    for (int n = 0; reading(&c, n) >= 0; n++) {
        const int kernel = reading(&c, n);
        if (strstr(bsm_kernel_name(kernel), "_groups_") == NULL) continue;
        struct operand a = nibble_operand(BSM_FORMAT_BF16, 2, 64, 0, BSM_LAYOUT_LINEAR),
                       d = nibble_operand(BSM_FORMAT_FP32, 2, 8, 0, BSM_LAYOUT_LINEAR);
        CHECK(t, bsm_context_force_kernel(c.gpu, kernel) == BSM_OK);
        for (int64_t groups = 512; groups <= 513; groups++) {
            struct operand b = nibble_operand(nibbles_of_kernel(kernel), 8, 64, groups, BSM_LAYOUT_LINEAR);
            const bsm_matmul call = { .struct_size = sizeof call, .a = &a.m, .b = &b.m, .d = &d.m, .groups = groups,
                                      .group_rows = &groups };
            bsm_plan *plan = NULL;
            const bsm_status status = bsm_plan_create(c.gpu, &call, &plan);
            CHECK(t, groups == 512 ? status == BSM_OK
                                   : status == BSM_EUNSUPPORTED && strstr(bsm_last_error(), "512 groups") != NULL);
            bsm_plan_destroy(plan), operand_free(&b);
        }
        operand_free(&a), operand_free(&d);
    }
    contexts_close(&c);
}

/* A forced kernel of panels reads nothing else: without them, and where it does not serve the product, nothing is
 * multiplied by another. */
static void forced(struct test *t)
{
    struct contexts c;
    if (!panels_open(t, &c)) return;
    struct operand a = nibble_operand(BSM_FORMAT_BF16, 2, 64, 0, BSM_LAYOUT_LINEAR),
                   fp16 = nibble_operand(BSM_FORMAT_FP16, 2, 64, 0, BSM_LAYOUT_LINEAR),
                   b = nibble_operand(BSM_MXFP4, 70, 64, 0, BSM_LAYOUT_LINEAR),
                   d = nibble_operand(BSM_FORMAT_FP32, 2, 70, 0, BSM_LAYOUT_LINEAR);
    struct twin x = twin_make(t, &c, &a), y = twin_make(t, &c, &b), z = twin_make(t, &c, &d);
    const bsm_matmul call = { .struct_size = sizeof call, .a = &x.m, .b = &y.m, .d = &z.m };
    bsm_matmul other = call;
    bsm_plan *plan = NULL;
    void *workspace = NULL;
    const char *name = bsm_kernel_name(reading(&c, 0));
    other.a = &fp16.m;
    CHECK(t, bsm_context_force_kernel(c.gpu, reading(&c, 0)) == BSM_OK);
    CHECK_OR_RETURN(t, bsm_plan_create(c.gpu, &call, &plan) == BSM_OK && bsm_plan_b_panels_bytes(plan) > 0);
    const size_t bytes = bsm_plan_workspace_bytes(plan);
    CHECK(t, bytes == 0 || bsm_device_allocate(c.gpu, bytes, &workspace) == BSM_OK);
    CHECK(t, bsm_plan_run(plan, &call, workspace, bytes) == BSM_EUNSUPPORTED && strstr(bsm_last_error(), name) != NULL);
    CHECK(t, bsm_supported(c.gpu, &call) == BSM_EUNSUPPORTED
                 && strstr(bsm_last_error(), "product->b_panels is NULL") != NULL);
    CHECK(t, bsm_multiply(c.gpu, &call) == BSM_EUNSUPPORTED);
    twin_compare(t, &c, &z, "D");
    bsm_plan_destroy(plan);
    CHECK(t, bsm_plan_create(c.gpu, &other, &plan) == BSM_EUNSUPPORTED && strstr(bsm_last_error(), "fp16") != NULL);
    if (workspace != NULL) CHECK(t, bsm_device_release(c.gpu, workspace) == BSM_OK);
    twin_free(t, &c, &x), twin_free(t, &c, &y), twin_free(t, &c, &z);
    operand_free(&a), operand_free(&fp16), operand_free(&b), operand_free(&d);
    contexts_close(&c);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(bits_are_the_same), TEST(schedules),
                                              TEST(exponents_where_sums_are_stored), TEST(contract), TEST(most_groups),
                                              TEST(forced) };
    return TEST_MAIN(argc, argv, cases);
}
