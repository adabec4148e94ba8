/* MN-major operands that Blackwell's tensor cores read by their descriptors: on every kernel the bits of the same
 * product with K-major operands, and plans that copy nothing; and what plans say of those that are copied.  On another
 * GPU the test says "skipped". */
#include "cuda/harness/gpu.h"

#include <stdio.h>

static const char by_descriptor[] = "as stored (MN-major, by the descriptor)", copied[] = "copied K-major first: ";

struct problem {
    bsm_format a, b;
    int64_t m, n, k, batch, groups;
    const int64_t *group_rows;
};
#define PRODUCT(a, b, m, n, k) { a, b, m, n, k, 0, 0, NULL }

/* Of A and of B: what the plan says; true: by the descriptor. */
struct said { bool a, b; size_t workspace; };

static struct said multiply(struct test *t, const struct contexts *c, const struct problem *p, const struct operand *a,
                            const struct operand *b, struct operand *d)
{
    struct twin of_a = twin_make(t, c, a), of_b = twin_make(t, c, b), of_d = twin_make(t, c, d);
    bsm_matmul call = { .struct_size = sizeof call, .a = &of_a.m, .b = &of_b.m, .d = &of_d.m, .groups = p->groups };
    bsm_plan *plan = NULL;
    char text[768] = "";
    call.group_rows = to_device(t, c, p->group_rows, (size_t)p->groups * sizeof(int64_t));
    if (bsm_plan_create(c->gpu, &call, &plan) != BSM_OK || bsm_multiply(c->gpu, &call) != BSM_OK)
        FAIL(t, "%s x %s, %d x %d x %d: %s", bsm_format_get((int)p->a)->name, bsm_format_get((int)p->b)->name,
             (int)p->m, (int)p->n, (int)p->k, bsm_last_error());
    (void)bsm_plan_describe(plan, text, sizeof text);
    const char *of_b_form = strstr(text, ", B ("), *copies = strstr(text, copied);
    const char *first = strstr(text, by_descriptor);
    const struct said said = { first != NULL && first < of_b_form,
                               of_b_form != NULL && strstr(of_b_form, by_descriptor) != NULL,
                               bsm_plan_workspace_bytes(plan) };
    const bool a_copied = copies != NULL && copies[strlen(copied)] == 'A',
               b_copied = copies != NULL && strstr(copies + strlen(copied), "B (once") != NULL;
    if (a_copied == said.a && a->m.major == BSM_MAJOR_MN) FAIL(t, "A is copied or not: %s", text);
    if (b_copied == said.b && b->m.major == BSM_MAJOR_MN) FAIL(t, "B is copied or not: %s", text);
    bsm_plan_destroy(plan);
    from_device(t, c, d->m.data, of_d.m.data, d->data_bytes);
    (void)bsm_device_release(c->gpu, (void *)(uintptr_t)call.group_rows);
    twin_free(t, c, &of_a), twin_free(t, c, &of_b), twin_free(t, c, &of_d);
    return said;
}

/* Each operand and both; a, b: whether it is read by the descriptor, else copied. */
static void check(struct test *t, const struct contexts *c, const struct problem *p, int kernel, bool a, bool b)
{
    struct operand of_a = operand_filled(t, p->a, p->m, p->k, p->groups > 0 ? 1 : p->batch),
                   of_b = operand_filled(t, p->b, p->n, p->k, p->groups > 0 ? p->groups : p->batch),
                   a_turned = operand_turned(&of_a, BSM_PACKING_DEFAULT, 64),
                   b_turned = operand_turned(&of_b, BSM_PACKING_DEFAULT, 16);
    const struct shape result = { .format = BSM_FORMAT_FP32, .rows = p->m, .columns = p->n,
                                  .batch = p->groups > 0 ? 1 : p->batch };
    struct operand want = operand_make(&result, 0xff);
    CHECK(t, bsm_context_force_kernel(c->gpu, kernel) == BSM_OK);
    const struct said plain = multiply(t, c, p, &of_a, &of_b, &want);
    CHECK(t, !plain.a && !plain.b);
    for (int turns = 1; turns < 4; turns++) {
        struct operand d = operand_make(&result, 0xff);
        const bool turns_a = turns & 1, turns_b = turns & 2;
        const struct said said =
            multiply(t, c, p, turns_a ? &a_turned : &of_a, turns_b ? &b_turned : &of_b, &d);
        char what[200];
        snprintf(what, sizeof what, "%s, %s x %s, %d x %d x %d, %d groups, MN-major: %s%s",
                 kernel < 0 ? "chosen" : bsm_kernel_name(kernel), bsm_format_get((int)p->a)->name,
                 bsm_format_get((int)p->b)->name, (int)p->m, (int)p->n, (int)p->k, (int)p->groups,
                 turns_a ? "A" : "", turns_b ? "B" : "");
        if (memcmp(d.m.data, want.m.data, d.data_bytes) != 0) FAIL(t, "%s: other bits", what);
        if (said.a != (turns_a && a) || said.b != (turns_b && b)) FAIL(t, "%s: another way than expected", what);
        if ((!turns_a || a) && (!turns_b || b) && said.workspace > plain.workspace)
            FAIL(t, "%s: %zu bytes of workspace, %zu K-major", what, said.workspace, plain.workspace);
        operand_free(&d);
    }
    operand_free(&of_a), operand_free(&of_b), operand_free(&a_turned), operand_free(&b_turned), operand_free(&want);
}

/* Every kernel of both kinds, with rows, columns and K at edges of tiles, lines, steps and products. */
static void every_kernel(struct test *t)
{
    static const struct { bsm_format a, b; } pairs[] = {
        { BSM_MXFP8_E4M3, BSM_MXFP8_E5M2 }, { BSM_FORMAT_E4M3, BSM_FORMAT_E5M2 }, { BSM_FORMAT_BF16, BSM_FORMAT_BF16 },
        { BSM_FORMAT_FP16, BSM_FORMAT_FP16 } };
    static const int64_t sizes[][3] = { { 5, 33, 160 }, { 130, 200, 95 }, { 257, 65, 321 }, { 16, 300, 32 },
                                        { 31, 131, 17 }, { 129, 257, 64 }, { 300, 264, 129 } };
    struct contexts c;
    int number = 0, kernels = 0;
    if (!tensor_memory_open(t, &c)) return;
    for (int kernel = 0; bsm_kernel_name(kernel) != NULL; kernel++)
        for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
            const char *name = bsm_kernel_name(kernel);
            const bool rows = strncmp(name, "cuda_tcgen05_f16_", 17) == 0;
            if ((rows ? i < 2 : strncmp(name, "cuda_tcgen05_mxf8f6f4_", 22) != 0 || i >= 2)
                || !bsm_kernel_serves(c.gpu, kernel, pairs[i].a, pairs[i].b)) continue;
            const bool of_8 = strstr(name, "_8x128") != NULL, of_16 = strstr(name, "_16x128") != NULL;
            const int64_t *s = sizes[number++ % 7];
            const struct problem p = { .a = pairs[i].a, .b = pairs[i].b, .n = s[1], .k = s[2],
                                       .m = !rows && of_8 ? s[0] % 8 + 1 : !rows && of_16 ? s[0] % 16 + 1 : s[0] };
            check(t, &c, &p, kernel, !of_8, true);
            kernels++;
        }
    CHECK(t, kernels == 2 * 8 + 2 * 9);
    contexts_close(&c);
}

/* Chosen kernels: K below and above what narrower boxes are for, batches, groups that begin anywhere, long K. */
static void batches_groups_and_k(struct test *t)
{
    static const int64_t rows[] = { 37, 0, 3, 61 };
    static const struct problem problems[] = {
        { BSM_MXFP8_E4M3, BSM_FORMAT_E5M2, 140, 40, 16, 2, 0, NULL },
        PRODUCT(BSM_FORMAT_E4M3, BSM_FORMAT_E4M3, 40, 136, 1),
        PRODUCT(BSM_FORMAT_E5M2, BSM_FORMAT_E5M2, 9, 30, 63),
        { BSM_FORMAT_BF16, BSM_FORMAT_BF16, 70, 100, 24, 3, 0, NULL },
        { BSM_MXFP8_E4M3, BSM_MXFP8_E4M3, 101, 72, 96, 1, 4, rows },
        { BSM_FORMAT_BF16, BSM_FORMAT_BF16, 101, 72, 96, 1, 4, rows },
        { BSM_FORMAT_FP16, BSM_FORMAT_FP16, 101, 300, 40, 1, 4, rows },
        PRODUCT(BSM_FORMAT_E4M3, BSM_MXFP8_E4M3, 4, 20, 8320),
    };
    struct contexts c;
    if (!tensor_memory_open(t, &c)) return;
    for (size_t i = 0; i < sizeof problems / sizeof problems[0]; i++) check(t, &c, &problems[i], -1, true, true);
    contexts_close(&c);
}

/* One operand of a pair, or none: 4- and 6-bit codes, rows that are decoded, rows beside which some fall back. */
static void what_is_copied(struct test *t)
{
    static const struct { struct problem p; bool a, b; } cases[] = {
        { PRODUCT(BSM_MXFP8_E4M3, BSM_MXFP4, 40, 64, 64), true, false },
        { PRODUCT(BSM_MXFP6_E3M2, BSM_FORMAT_E4M3, 40, 64, 64), false, true },
        { PRODUCT(BSM_NVFP4, BSM_NVFP4, 40, 64, 64), false, false },
        { PRODUCT(BSM_FORMAT_BF16, BSM_NVFP4, 40, 64, 80), true, false },
        { PRODUCT(BSM_FORMAT_BF16, BSM_MXFP8_E4M3, 40, 64, 64), false, false },
        { PRODUCT(BSM_FORMAT_FP16, BSM_FORMAT_BF16, 40, 64, 72), false, true },
        { PRODUCT(BSM_FORMAT_E4M3, BSM_FORMAT_BF16, 40, 64, 64), false, true },
    };
    struct contexts c;
    if (!tensor_memory_open(t, &c)) return;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check(t, &c, &cases[i].p, -1, cases[i].a, cases[i].b);
    contexts_close(&c);
}

/* TMA's rules: lines, matrices and data begin at multiples of 16 bytes.  Of a K-major operand K itself may be any. */
static void pitches(struct test *t)
{
    static const struct { bsm_format format; int64_t extra; bool read; } lines[] = {
        { BSM_MXFP8_E4M3, 8, false }, { BSM_MXFP8_E4M3, 32, true }, { BSM_FORMAT_BF16, 4, false },
        { BSM_FORMAT_BF16, 16, true } };
    static const struct { bsm_format format; int64_t k, extra; bool repacked; } rows[] = {
        { BSM_FORMAT_E4M3, 100, 16, false }, { BSM_FORMAT_E4M3, 100, 0, true }, { BSM_FORMAT_BF16, 100, 8, false },
        { BSM_FORMAT_BF16, 100, 0, true }, { BSM_FORMAT_FP16, 17, 8, false } };
    struct contexts c;
    if (!tensor_memory_open(t, &c)) return;
    CHECK(t, bsm_context_force_kernel(c.gpu, -1) == BSM_OK);
    for (size_t i = 0; i < 9; i++) {
        const bool is_line = i < 4;
        const bsm_format format = is_line ? lines[i].format : rows[i - 4].format;
        const struct problem p = { .a = format, .b = format, .m = 40, .n = 48, .k = is_line ? 64 : rows[i - 4].k };
        struct operand a = operand_filled(t, format, p.m, p.k, 1), b = operand_filled(t, format, p.n, p.k, 1);
        const struct shape result = { .format = BSM_FORMAT_FP32, .rows = p.m, .columns = p.n };
        struct operand want = operand_make(&result, 0xff), d = operand_make(&result, 0xff), changed;
        const struct said plain = multiply(t, &c, &p, &a, &b, &want);
        if (is_line) changed = operand_turned(&a, BSM_PACKING_DEFAULT, lines[i].extra);
        else {
            changed = operand_make(&(struct shape){ .format = format, .rows = p.m, .columns = p.k,
                                                    .extra_pitch = rows[i - 4].extra }, 0xff);
            for (int64_t r = 0; r < p.m; r++)
                for (int64_t k = 0; k < p.k; k++) {
                    uint32_t code = 0;
                    (void)bsm_matrix_get_code(&a.m, 0, r, k, &code);
                    (void)bsm_matrix_set_code(&changed.m, 0, r, k, code);
                }
        }
        const struct said said = multiply(t, &c, &p, &changed, &b, &d);
        if (memcmp(d.m.data, want.m.data, d.data_bytes) != 0) FAIL(t, "pitch %d: other bits", (int)i);
        if (is_line && said.a != lines[i].read) FAIL(t, "pitch %d: another way than expected", (int)i);
        if (!is_line && (said.workspace == plain.workspace) != rows[i - 4].repacked)
            FAIL(t, "pitch %d: %zu bytes of workspace beside %zu", (int)i, said.workspace, plain.workspace);
        operand_free(&a), operand_free(&b), operand_free(&want), operand_free(&d), operand_free(&changed);
    }
    contexts_close(&c);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(every_kernel), TEST(batches_groups_and_k), TEST(what_is_copied),
                                              TEST(pitches) };
    return TEST_MAIN(argc, argv, cases);
}
