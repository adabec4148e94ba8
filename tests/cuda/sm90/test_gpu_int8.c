/* Products of MXFP4 on the kernels that multiply integers: whether rows go as integers, and every byte of D's buffer
 * against the same product by a kernel that is given bf16 rows.  The two agree in every bit, whichever way the rows
 * went. */
#include "cuda/harness/gpu.h"

#include <stdlib.h>

/* A product; zeros ask for the plain thing. */
struct problem {
    int64_t m, n, k, batch, groups;
    bool b_broadcast, high_first;
    bsm_format d;                         /* default: fp32 */
    bool alpha, bias_per_row, bias_per_column, c;
    int64_t d_odd;                        /* elements by which D's rows miss multiples of 16 bytes */
    int spread;                           /* of the scales of a row; default: 3 */
    int least;                            /* scale, of all rows; default: each row has its own */
    enum {
        ANY_CODES,
        LARGEST,                          /* all codes but the first block's are the largest, under the largest scale */
        ONE_BLOCK_FAR,                    /* row 1 of B: block 1 has a scale far away, and one code that is not zero */
        ZEROS_FAR,                        /* the same, but all codes of the block are zeros of both signs */
        ONE_NAN,                          /* row 1 of A has a NaN scale, above zeros */
        ZERO_ROWS                         /* rows of zeros, with any scales */
    } special;
    bool unfit;                           /* what is expected of the rows */
};

static const bsm_scale_layout layouts[] = {
    { .kind = BSM_LAYOUT_LINEAR },
    { .kind = BSM_LAYOUT_128X4 },
    { .kind = BSM_LAYOUT_LINEAR, .pitch = 309 },
    { .kind = BSM_LAYOUT_DEEPGEMM },
};
enum { LAYOUTS = sizeof layouts / sizeof layouts[0], BLOCK = 32, LARGEST_CODE = 7 };

static void set_block(struct test *t, struct operand *o, int64_t batch, int64_t row, int64_t block, uint32_t mask)
{
    for (int64_t k = block * BLOCK; k < (block + 1) * BLOCK; k++)
        bsm_matrix_set_code(&o->m, batch, row, k, (uint32_t)rnd_below(t, 16) & mask);
}

static void fill_row(struct test *t, const struct problem *q, struct operand *o, int64_t batch, int64_t row)
{
    const int64_t blocks = o->m.columns / BLOCK;
    const int spread = q->spread == 0 ? 3 : q->spread, least = q->least != 0 ? q->least : 100 + (int)(row * 7 % 50);
    for (int64_t s = 0; s < blocks; s++) {
        /* Both ends are there where there are two blocks. */
        const int above = s == 0                                     ? 0
                          : s == blocks - 1 || q->special == LARGEST ? spread
                                                                     : (int)rnd_below(t, (uint32_t)spread + 1);
        bsm_matrix_set_scale(&o->m, batch, row, s, (uint8_t)(least + above));
        set_block(t, o, batch, row, s, 15);
        for (int64_t k = s * BLOCK; k < (s + 1) * BLOCK && q->special == LARGEST && s > 0; k++)
            bsm_matrix_set_code(&o->m, batch, row, k, LARGEST_CODE);
        bsm_matrix_set_code(&o->m, batch, row, s * BLOCK + s % BLOCK, LARGEST_CODE);
    }
}

static void make_special(struct test *t, const struct problem *q, struct operand *o, bool is_b)
{
    const int64_t last = o->m.rows - 1, row = last < 1 ? last : 1, blocks = o->m.columns / BLOCK,
                  block = blocks > 1 ? 1 : 0;
    if (is_b && (q->special == ONE_BLOCK_FAR || q->special == ZEROS_FAR)) {
        bsm_matrix_set_scale(&o->m, 0, row, block, 200);
        set_block(t, o, 0, row, block, 8);
        if (q->special == ONE_BLOCK_FAR) bsm_matrix_set_code(&o->m, 0, row, block * BLOCK + 31, 1);
    }
    if (!is_b && q->special == ONE_NAN) {
        set_block(t, o, 0, row, block, 0);
        bsm_matrix_set_scale(&o->m, 0, row, block, 255);
    }
    for (int64_t r = 0; r < o->m.rows && q->special == ZERO_ROWS; r += 3)
        for (int64_t s = 0; s < blocks; s++) {
            set_block(t, o, 0, r, s, 8);
            bsm_matrix_set_scale(&o->m, 0, r, s, (uint8_t)rnd_below(t, 255));
        }
}

static struct operand make_operand(struct test *t, const struct problem *q, int64_t rows, int64_t batch, bool is_b)
{
    static int next;
    struct shape s = { .format = BSM_MXFP4, .rows = rows, .columns = q->k, .batch = batch, .extra_pitch = 64,
                       .packing = q->high_first ? BSM_PACKING_HIGH_FIRST : BSM_PACKING_LOW_FIRST,
                       .layout = layouts[next++ % LAYOUTS] };
    struct operand o = operand_make(&s, 0xff);
    operand_fill(t, &o, false);
    for (int64_t b = 0; b < (batch == 0 ? 1 : batch); b++)
        for (int64_t r = 0; r < rows; r++) fill_row(t, q, &o, b, r);
    make_special(t, q, &o, is_b);
    return o;
}

struct problem_data {
    struct operand a, b, c, d;
    float alpha[600], bias[600];
    int64_t group_rows[4];
};

static void make_data(struct test *t, const struct problem *q, struct problem_data *x)
{
    const int64_t batch = q->batch > 0 ? q->batch : 1, matrices = q->groups > 0 ? q->groups : batch;
    const bsm_format d = q->d == 0 ? BSM_FORMAT_FP32 : q->d;
    const int64_t of_d = q->groups > 0 ? 1 : batch;
    x->a = make_operand(t, q, q->m, of_d, false);
    x->b = make_operand(t, q, q->n, q->b_broadcast ? 1 : matrices, true);
    x->c = operand_make(&(struct shape){ .format = BSM_FORMAT_BF16, .rows = q->m, .columns = q->n, .batch = of_d }, 0);
    x->d = operand_make(&(struct shape){ .format = d, .rows = q->m, .columns = q->n, .batch = of_d,
                                         .extra_pitch = 64 }, 0xee);
    x->d.m.pitch -= q->d_odd;
    operand_fill(t, &x->c, false);
    for (int i = 0; i < 600; i++) x->alpha[i] = (float)(i % 7) * 0.37f - 1, x->bias[i] = (float)(i % 11) - 5;
    for (int64_t g = 0, left = q->m; g < q->groups; g++) {
        x->group_rows[g] = g == q->groups - 1 ? left : g == 1 ? 0 : left / 2;
        left -= x->group_rows[g];
    }
}

/* Runs a plan of the call in a workspace that begins with `poison`s.  True if its first bytes, where bf16 rows of A
 * would lie, are those. */
static bool run_in_workspace(struct test *t, const struct contexts *c, const bsm_matmul *call)
{
    enum { LOOKED_AT = 64, POISON = 0x5a };
    bsm_plan *plan = NULL;
    unsigned char first[LOOKED_AT] = { 0 };
    bool kept = true;
    CHECK(t, bsm_plan_create(c->gpu, call, &plan) == BSM_OK);
    const size_t bytes = bsm_plan_workspace_bytes(plan);
    unsigned char *poison = malloc(bytes);
    memset(poison, POISON, bytes);
    void *workspace = to_device(t, c, poison, bytes);
    if (bsm_plan_run(plan, call, workspace, bytes) != BSM_OK) FAIL(t, "%s", bsm_last_error());
    from_device(t, c, first, workspace, LOOKED_AT);
    for (int i = 0; i < LOOKED_AT; i++) kept &= first[i] == POISON;
    CHECK(t, bsm_device_release(c->gpu, workspace) == BSM_OK);
    bsm_plan_destroy(plan);
    free(poison);
    return kept;
}

/* D's buffer after the product by this kernel. */
static unsigned char *run_on(struct test *t, const struct contexts *c, const struct problem *q,
                             const struct problem_data *x, int kernel, bool *as_integers)
{
    struct twin a = twin_make(t, c, &x->a), b = twin_make(t, c, &x->b), d = twin_make(t, c, &x->d),
                cc = twin_make(t, c, &x->c);
    float *alpha = to_device(t, c, x->alpha, sizeof x->alpha), *bias = to_device(t, c, x->bias, sizeof x->bias),
          number = 0.75f;
    float *beta = to_device(t, c, &number, sizeof number);
    const int64_t *group_rows = q->groups > 0 ? to_device(t, c, x->group_rows, sizeof x->group_rows) : NULL;
    bsm_matmul call = { .struct_size = sizeof call, .a = &a.m, .b = &b.m, .d = &d.m, .groups = q->groups,
                        .group_rows = group_rows };
    if (q->alpha) call.alpha = alpha, call.alpha_per = BSM_PER_ROW;
    if (q->bias_per_row) call.bias = bias, call.bias_type = BSM_REAL_FP32, call.bias_per = BSM_PER_ROW;
    if (q->bias_per_column) call.bias = bias, call.bias_type = BSM_REAL_FP32, call.bias_per = BSM_PER_COLUMN;
    if (q->c) call.c = &cc.m, call.beta = beta;
    unsigned char *bytes = malloc(x->d.data_bytes);
    CHECK(t, bsm_context_force_kernel(c->gpu, kernel) == BSM_OK);
    *as_integers = run_in_workspace(t, c, &call);
    from_device(t, c, bytes, d.m.data, x->d.data_bytes);
    const void *arrays[] = { alpha, bias, beta, group_rows };
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++)
        (void)bsm_device_release(c->gpu, (void *)(uintptr_t)arrays[i]);
    twin_free(t, c, &a), twin_free(t, c, &b), twin_free(t, c, &cc), twin_free(t, c, &d);
    return bytes;
}

static void compare_kernels(struct test *t, const struct contexts *c, const struct problem *q, int kernel, int plain)
{
    struct problem_data x;
    bool rows_of_plain, as_integers;
    make_data(t, q, &x);
    unsigned char *want = run_on(t, c, q, &x, plain, &rows_of_plain),
                  *found = run_on(t, c, q, &x, kernel, &as_integers);
    int64_t wrong = 0, first = -1;
    for (size_t i = 0; i < x.d.data_bytes; i++)
        if (want[i] != found[i] && wrong++ == 0) first = (int64_t)i;
    if (wrong > 0) {
        const int64_t bytes = bsm_element_get((int)bsm_format_get((int)x.d.m.format)->element)->bits / 8;
        FAIL(t, "%s, M=%d N=%d K=%d: %d bytes differ, the first in row %d, column %d", bsm_kernel_name(kernel),
             (int)q->m, (int)q->n, (int)q->k, (int)wrong, (int)(first / bytes / x.d.m.pitch),
             (int)(first / bytes % x.d.m.pitch));
    }
    if (rows_of_plain) FAIL(t, "%s made no bf16 rows where they are looked for", bsm_kernel_name(plain));
    if (as_integers == q->unfit)
        FAIL(t, "%s, M=%d N=%d K=%d: rows went as %s", bsm_kernel_name(kernel), (int)q->m, (int)q->n, (int)q->k,
             as_integers ? "integers" : "bf16");
    free(want), free(found);
    operand_free(&x.a), operand_free(&x.b), operand_free(&x.c), operand_free(&x.d);
}

static void check_all(struct test *t, const struct problem *problems, int count)
{
    struct contexts c;
    if (!contexts_open(t, &c)) return;
    const int plain = kernel_number(c.gpu, "cuda_wgmma_64x48_1x1", BSM_MXFP4, BSM_MXFP4);
    const int kernel = kernel_number(c.gpu, "cuda_wgmma_int8_128x256_2x1", BSM_MXFP4, BSM_MXFP4);
    if (plain < 0 || kernel < 0) test_skip(t, "this GPU has no kernels for integers");
    for (int i = 0; i < count && plain >= 0 && kernel >= 0; i++) compare_kernels(t, &c, &problems[i], kernel, plain);
    contexts_close(&c);
}

/* Around the tiles, the steps of K and the stretches that are encoded. */
static void edges(struct test *t)
{
    static const struct problem problems[] = {
        { .m = 1, .n = 1, .k = 32 },
        { .m = 257, .n = 255, .k = 96, .d_odd = 1, .spread = 1 },
        { .m = 127, .n = 300, .k = 160, .d = BSM_FORMAT_BF16, .high_first = true },
        { .m = 3, .n = 70, .k = 4096 + 32, .d = BSM_FORMAT_FP16, .d_odd = 3 },
    };
    check_all(t, problems, sizeof problems / sizeof problems[0]);
}

static void operands_of_every_kind(struct test *t)
{
    static const struct problem problems[] = {
        { .m = 20, .n = 72, .k = 160, .batch = 3 },
        { .m = 20, .n = 72, .k = 160, .batch = 2, .b_broadcast = true },
        { .m = 100, .n = 136, .k = 128, .groups = 4 },
        { .m = 100, .n = 136, .k = 128, .groups = 3, .spread = 4, .unfit = true },
    };
    check_all(t, problems, sizeof problems / sizeof problems[0]);
}

static void epilogues(struct test *t)
{
    static const struct problem problems[] = {
        { .m = 20, .n = 72, .k = 96, .alpha = true, .bias_per_row = true, .c = true, .d = BSM_FORMAT_BF16 },
        { .m = 20, .n = 64, .k = 96, .d = BSM_MXFP8_E4M3 },
        { .m = 20, .n = 64, .k = 96, .d = BSM_MXFP8_E4M3, .spread = 5, .unfit = true },
        { .m = 40, .n = 71, .k = 96, .alpha = true, .c = true, .least = 2 },
        { .m = 40, .n = 71, .k = 96, .least = 251 },
    };
    check_all(t, problems, sizeof problems / sizeof problems[0]);
}

/* D by boxes that the next tile fills again, in each of its types, or uses for tables of columns and of rows; by both
 * kernels. */
static void stored_by_boxes(struct test *t)
{
    static const struct problem problems[] = {
        { .m = 70, .n = 520, .k = 288 },
        { .m = 20, .n = 264, .k = 32, .least = 128 },
        { .m = 20, .n = 264, .k = 160, .d = BSM_FORMAT_BF16, .alpha = true, .least = 128 },
        { .m = 20, .n = 264, .k = 32, .d = BSM_FORMAT_FP16, .least = 128 },
        { .m = 200, .n = 136, .k = 64, .groups = 4 },
        { .m = 70, .n = 520, .k = 160, .bias_per_column = true, .spread = 5, .unfit = true },
        { .m = 20, .n = 264, .k = 64, .spread = 5, .unfit = true },
        { .m = 20, .n = 264, .k = 160, .d = BSM_FORMAT_BF16, .alpha = true, .spread = 5, .unfit = true },
        { .m = 20, .n = 264, .k = 64, .d = BSM_FORMAT_FP16, .spread = 5, .unfit = true },
        { .m = 200, .n = 136, .k = 64, .groups = 4, .spread = 5, .unfit = true },
    };
    check_all(t, problems, sizeof problems / sizeof problems[0]);
}

static void which_rows_fit(struct test *t)
{
    static const struct problem problems[] = {
        { .m = 5, .n = 9, .k = 128, .spread = 2 },
        { .m = 5, .n = 9, .k = 128, .spread = 4, .unfit = true },
        { .m = 5, .n = 9, .k = 128, .special = ONE_BLOCK_FAR, .unfit = true },
        { .m = 5, .n = 9, .k = 128, .special = ZEROS_FAR },
        { .m = 5, .n = 9, .k = 128, .special = ONE_NAN, .unfit = true },
        { .m = 7, .n = 9, .k = 128, .special = ZERO_ROWS },
    };
    check_all(t, problems, sizeof problems / sizeof problems[0]);
}

/* 1792 squares of 96 and one block's are less than 2^24, 1824 of them are more; sums of more than 2^24 would be
 * rounded. */
static void sums_stay_exact(struct test *t)
{
    static const struct problem problems[] = {
        { .m = 3, .n = 4, .k = 32 + 1792, .special = LARGEST },
        { .m = 3, .n = 4, .k = 32 + 1824, .special = LARGEST, .unfit = true },
    };
    check_all(t, problems, sizeof problems / sizeof problems[0]);
}

/* The first rows of A by whatever kernel the plan takes for so many, against all of them as integers. */
static void bits_do_not_depend_on_m(struct test *t)
{
    static const int64_t rows[] = { 1, 2, 16, 33, 64, 127, 128, 257, 512, 1000, 1024 };
    const bool simulated = getenv("BLOCKSCALE_LIBCUDA") != NULL;
    const struct problem q = { .m = simulated ? 130 : 1024, .n = simulated ? 40 : 1032, .k = simulated ? 256 : 4096 };
    struct contexts c;
    if (!contexts_open(t, &c)) return;
    const int kernel = kernel_number(c.gpu, "cuda_wgmma_int8_128x256_2x1", BSM_MXFP4, BSM_MXFP4);
    if (kernel < 0) test_skip(t, "this GPU has no kernels for integers");
    struct problem_data x;
    bool as_integers;
    make_data(t, &q, &x);
    unsigned char *want = kernel < 0 ? NULL : run_on(t, &c, &q, &x, kernel, &as_integers);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0] && kernel >= 0 && rows[i] <= q.m; i++) {
        struct problem_data part = x;
        part.a.m.rows = part.d.m.rows = rows[i];
        unsigned char *found = run_on(t, &c, &q, &part, -1, &as_integers);
        if (memcmp(want, found, (size_t)((rows[i] - 1) * x.d.m.pitch + q.n) * sizeof(float)) != 0)
            FAIL(t, "the first %d of %d rows have other bits by themselves", (int)rows[i], (int)q.m);
        free(found);
    }
    free(want);
    operand_free(&x.a), operand_free(&x.b), operand_free(&x.c), operand_free(&x.d);
    contexts_close(&c);
}

/* What integers cannot be made of is refused where the kernel is forced, in a sentence that names it and the rule. */
static void other_forms_are_refused(struct test *t)
{
    static const struct { bsm_packing packing; int64_t k, extra_pitch; const char *rule; } forms[] = {
        { BSM_PACKING_BYTES, 64, 0, "packed two a byte" },
        { BSM_PACKING_LOW_FIRST, 48, 0, "K a multiple of 32" },
        { BSM_PACKING_LOW_FIRST, 64, 8, "aligned to 8 bytes" },
    };
    struct contexts c;
    if (!contexts_open(t, &c)) return;
    const int kernel = kernel_number(c.gpu, "cuda_wgmma_int8_128x256_2x1", BSM_MXFP4, BSM_MXFP4);
    for (size_t i = 0; i < sizeof forms / sizeof forms[0] && kernel >= 0; i++) {
        struct operand a = operand_make(&(struct shape){ .format = BSM_MXFP4, .rows = 4, .columns = forms[i].k,
                                                         .packing = forms[i].packing }, 0);
        struct operand b = operand_make(&(struct shape){ .format = BSM_MXFP4, .rows = 8, .columns = forms[i].k }, 0);
        struct operand d = operand_make(&(struct shape){ .format = BSM_FORMAT_FP32, .rows = 4, .columns = 8 }, 0);
        a.m.pitch = forms[i].extra_pitch > 0 ? forms[i].k + forms[i].extra_pitch : 0;
        const bsm_matmul call = { .struct_size = sizeof call, .a = &a.m, .b = &b.m, .d = &d.m };
        bsm_plan *plan = NULL;
        CHECK(t, bsm_context_force_kernel(c.gpu, kernel) == BSM_OK);
        CHECK(t, bsm_plan_create(c.gpu, &call, &plan) == BSM_EUNSUPPORTED
                     && bsm_multiply(c.gpu, &call) == BSM_EUNSUPPORTED);
        if (strstr(bsm_last_error(), forms[i].rule) == NULL
            || strstr(bsm_last_error(), bsm_kernel_name(kernel)) == NULL)
            FAIL(t, "no \"%s\" and %s in: %s", forms[i].rule, bsm_kernel_name(kernel), bsm_last_error());
        bsm_plan_destroy(plan);
        CHECK(t, bsm_context_force_kernel(c.gpu, -1) == BSM_OK && bsm_supported(c.gpu, &call) == BSM_OK);
        operand_free(&a), operand_free(&b), operand_free(&d);
    }
    contexts_close(&c);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(edges), TEST(operands_of_every_kind), TEST(epilogues),
                                              TEST(which_rows_fit), TEST(stored_by_boxes), TEST(sums_stay_exact),
                                              TEST(bits_do_not_depend_on_m), TEST(other_forms_are_refused) };
    return TEST_MAIN(argc, argv, cases);
}
