/* Prepacked weights without the codes that they were made of: products have the same bits, and codes and scales come
 * back. */
#include "cuda/harness/gpu.h"

#include <stdlib.h>

struct problem {
    int64_t m, n, k, groups;
    bsm_format a, b;
    bsm_layout layout;
    bsm_gate gate;
    enum scales scales;
    bsm_order order;
};

/* Operands on the device, B's prepacked weights, and D with B's codes, which a plan without prepacked weights read. */
struct problem_data {
    struct operand a, b, d;
    struct twin x, y, out;
    bsm_matmul call;
    void *rows, *panels;
    unsigned char *want, *got;
    size_t panels_bytes;
};

static void run(struct test *t, const struct contexts *c, const bsm_matmul *call, const struct problem_data *o,
                unsigned char *bytes)
{
    bsm_plan *plan = NULL;
    void *workspace = NULL;
    if (bsm_plan_create(c->gpu, call, &plan) != BSM_OK) FAIL(t, "%s", bsm_last_error());
    const size_t size = bsm_plan_workspace_bytes(plan);
    if (size > 0) CHECK(t, bsm_device_allocate(c->gpu, size, &workspace) == BSM_OK);
    if (bsm_plan_run(plan, call, workspace, size) != BSM_OK) FAIL(t, "%s", bsm_last_error());
    from_device(t, c, bytes, o->out.m.data, o->d.data_bytes);
    if (workspace != NULL) CHECK(t, bsm_device_release(c->gpu, workspace) == BSM_OK);
    bsm_plan_destroy(plan);
}

/* By a plan for one row of bf16: panels are the same for every M. */
static void pack(struct test *t, const struct contexts *c, const struct problem *q, struct problem_data *o)
{
    struct operand a = nibble_operand(BSM_FORMAT_BF16, 1, q->k, 0, BSM_LAYOUT_LINEAR),
                   d = nibble_operand(BSM_FORMAT_FP32, 1, q->n, 0, BSM_LAYOUT_LINEAR);
    bsm_matmul call = { .struct_size = sizeof call, .a = &a.m, .b = &o->y.m, .d = &d.m };
    const int64_t rows[1] = { 1 };
    bsm_plan *plan = NULL;
    if (q->groups > 0) call.groups = q->groups, call.group_rows = rows;
    CHECK(t, bsm_plan_create(c->gpu, &call, &plan) == BSM_OK);
    o->panels_bytes = bsm_plan_b_panels_bytes(plan);
    CHECK(t, bsm_device_allocate(c->gpu, o->panels_bytes, &o->panels) == BSM_OK);
    if (bsm_plan_pack_b(plan, &call, o->panels, o->panels_bytes) != BSM_OK) FAIL(t, "%s", bsm_last_error());
    bsm_plan_destroy(plan), operand_free(&a), operand_free(&d);
}

static bool make(struct test *t, const struct contexts *c, const struct problem *q, struct problem_data *o)
{
    static const int64_t group_rows[] = { 0, 13, 1, 0, 6 };
    memset(o, 0, sizeof *o);
    o->a = nibble_operand(q->a, q->m, q->k, 0, BSM_LAYOUT_LINEAR);
    o->b = nibble_operand(q->b, q->n, q->k, q->groups, q->layout);
    o->d = nibble_operand(BSM_FORMAT_BF16, q->m, q->gate == BSM_GATE_NONE ? q->n : q->n / 2, 0, BSM_LAYOUT_LINEAR);
    operand_fill(t, &o->a, q->a != BSM_FORMAT_BF16), operand_fill(t, &o->b, false), set_scales(t, &o->b, q->scales);
    if (q->a != BSM_FORMAT_BF16) set_scales(t, &o->a, q->scales);
    o->x = twin_make(t, c, &o->a), o->y = twin_make(t, c, &o->b), o->out = twin_make(t, c, &o->d);
    o->rows = q->groups > 0 ? to_device(t, c, group_rows, sizeof group_rows) : NULL;
    o->call = (bsm_matmul){ .struct_size = sizeof o->call, .a = &o->x.m, .b = &o->y.m, .d = &o->out.m, .gate = q->gate,
                            .groups = q->groups, .group_rows = o->rows, .order = q->order };
    o->want = malloc(o->d.data_bytes), o->got = malloc(o->d.data_bytes);
    run(t, c, &o->call, o, o->want);
    pack(t, c, q, o);
    return true;
}

static void release(struct test *t, const struct contexts *c, struct problem_data *o)
{
    (void)bsm_device_release(c->gpu, o->panels);
    if (o->rows != NULL) (void)bsm_device_release(c->gpu, o->rows);
    twin_free(t, c, &o->x), twin_free(t, c, &o->y), twin_free(t, c, &o->out);
    operand_free(&o->a), operand_free(&o->b), operand_free(&o->d);
    free(o->want), free(o->got);
}

/* Contexts, if the GPU has kernels of prepacked weights. */
static bool open_for_panels(struct test *t, struct contexts *c)
{
    if (!contexts_open(t, c)) return false;
    struct operand a = nibble_operand(BSM_FORMAT_BF16, 1, 32, 0, BSM_LAYOUT_LINEAR),
                   b = nibble_operand(BSM_MXFP4, 1, 32, 0, BSM_LAYOUT_LINEAR),
                   d = nibble_operand(BSM_FORMAT_FP32, 1, 1, 0, BSM_LAYOUT_LINEAR);
    const bsm_matmul call = { .struct_size = sizeof call, .a = &a.m, .b = &b.m, .d = &d.m };
    bsm_plan *plan = NULL;
    CHECK(t, bsm_plan_create(c->gpu, &call, &plan) == BSM_OK);
    const bool here = bsm_plan_b_panels_bytes(plan) > 0;
    bsm_plan_destroy(plan), operand_free(&a), operand_free(&b), operand_free(&d);
    if (here) return true;
    test_skip(t, "this GPU has no kernels that read prepacked weights");
    contexts_close(c);
    return false;
}

/* e8m0 scales with which some number of the block leaves [2^-40, 2^41). */
static bool leaves_bf16(const struct operand *b, int64_t row)
{
    for (int64_t k = 0; k < b->m.columns; k++) {
        uint8_t scale = 0;
        uint32_t code = 0;
        (void)bsm_matrix_get_scale(&b->m, 0, row, k / 32, &scale), (void)bsm_matrix_get_code(&b->m, 0, row, k, &code);
        if (scale == 255 || ((code & 7) != 0 && (scale < 88 || scale > 165))) return true;
    }
    return false;
}

/* D of B's codes, and NaN in columns of rows that prepacked weights have not. */
static void compare(struct test *t, const struct problem *q, const struct problem_data *o)
{
    const bool whole = q->b == BSM_NVFP4 || q->scales == SCALES_USUAL;
    if (whole) {
        if (memcmp(o->got, o->want, o->d.data_bytes) != 0)
            FAIL(t, "%d x %d x %d, scales %d: other bits", (int)q->m, (int)q->n, (int)q->k, (int)q->scales);
        return;
    }
    int lost = 0;
    for (int64_t j = 0; j < q->n; j++) {
        const bool lacks = leaves_bf16(&o->b, j);
        lost += lacks;
        for (int64_t i = 0; i < q->m; i++) {
            const size_t at = (size_t)(i * q->n + j);
            const uint16_t got = ((const uint16_t *)(const void *)o->got)[at],
                           want = lacks ? 0x7fc0 : ((const uint16_t *)(const void *)o->want)[at];
            if (got != want) FAIL(t, "scales %d: D[%d, %d] is %#x, not %#x", (int)q->scales, (int)i, (int)j, got, want);
        }
    }
    CHECK(t, lost > 0 && lost < q->n);
}

/* Kernels that read prepacked weights, kernels that do not, and one that has A's fallback rows. */
static void same_bits(struct test *t)
{
    static const struct problem problems[] = {
        { 5, 150, 1056, 0, BSM_FORMAT_BF16, BSM_MXFP4, BSM_LAYOUT_LINEAR, BSM_GATE_NONE, SCALES_USUAL, BSM_ORDER_K },
        { 5, 150, 1056, 0, BSM_FORMAT_BF16, BSM_MXFP4, BSM_LAYOUT_LINEAR, BSM_GATE_NONE, SCALES_SPANNING, BSM_ORDER_K },
        { 70, 66, 416, 0, BSM_FORMAT_BF16, BSM_MXFP4, BSM_LAYOUT_LINEAR, BSM_GATE_NONE, SCALES_WITH_NAN, BSM_ORDER_K },
        { 5, 150, 1056, 0, BSM_FORMAT_BF16, BSM_NVFP4, BSM_LAYOUT_LINEAR, BSM_GATE_NONE, SCALES_LARGE, BSM_ORDER_K },
        { 20, 72, 320, 5, BSM_FORMAT_BF16, BSM_MXFP4, BSM_LAYOUT_LINEAR, BSM_GATE_SPLIT, SCALES_USUAL, BSM_ORDER_K },
        { 20, 66, 160, 5, BSM_FORMAT_BF16, BSM_NVFP4, BSM_LAYOUT_LINEAR, BSM_GATE_NONE, SCALES_WITH_NAN, BSM_ORDER_K },
        { 4100, 10, 64, 0, BSM_FORMAT_BF16, BSM_MXFP4, BSM_LAYOUT_128X4, BSM_GATE_NONE, SCALES_USUAL, BSM_ORDER_K },
        { 9, 70, 1200, 0, BSM_FORMAT_BF16, BSM_NVFP4, BSM_LAYOUT_LINEAR, BSM_GATE_NONE, SCALES_USUAL,
          BSM_ORDER_PORTABLE },
        { 9, 130, 448, 0, BSM_MXFP8_E4M3, BSM_MXFP4, BSM_LAYOUT_LINEAR, BSM_GATE_NONE, SCALES_USUAL, BSM_ORDER_K },
        { 9, 130, 448, 0, BSM_MXFP8_E4M3, BSM_NVFP4, BSM_LAYOUT_LINEAR, BSM_GATE_NONE, SCALES_SPANNING,
          BSM_ORDER_K },
    };
    struct contexts c;
    if (!open_for_panels(t, &c)) return;
    for (size_t i = 0; i < sizeof problems / sizeof problems[0]; i++) {
        struct problem_data o;
        make(t, &c, &problems[i], &o);
        const bsm_matrix codes = o.y.m;
        o.y.m.data = o.y.m.scales = NULL;
        o.call.b_panels = o.panels;
        run(t, &c, &o.call, &o, o.got);
        compare(t, &problems[i], &o);
        if (i % 8 == 0) {
            CHECK(t, bsm_multiply(c.gpu, &o.call) == BSM_OK);
            from_device(t, &c, o.got, o.out.m.data, o.d.data_bytes);
            compare(t, &problems[i], &o);
        }
        o.y.m = codes;
        release(t, &c, &o);
    }
    contexts_close(&c);
}

/* What a scale is once it was packed and unpacked. */
static uint8_t unpacked_scale(const struct operand *b, bool lost, int64_t matrix, int64_t row, int64_t column)
{
    uint8_t scale = 0;
    (void)bsm_matrix_get_scale(&b->m, matrix, row, column, &scale);
    if (b->m.format == BSM_NVFP4) return lost ? 0x7f : scale & 0x7f;
    if (lost) return 255;
    for (int64_t k = column * 32; k < column * 32 + 32 && k < b->m.columns; k++) {
        uint32_t code = 0;
        (void)bsm_matrix_get_code(&b->m, matrix, row, k, &code);
        if ((code & 7) != 0) return scale;
    }
    return scale <= 62 ? 0 : scale > 187 ? 187 : scale;
}

/* Every code, every scale in another layout than that which was packed, and nothing else. */
static void check_unpacked(struct test *t, const struct contexts *c, const struct problem *q)
{
    struct problem_data o;
    make(t, c, q, &o);
    const bsm_layout other = q->layout == BSM_LAYOUT_LINEAR ? BSM_LAYOUT_128X4 : BSM_LAYOUT_LINEAR;
    struct operand back = nibble_operand(q->b, q->n, q->k, q->groups, other);
    struct twin to = twin_make(t, c, &back);
    bsm_matmul call = o.call;
    bsm_plan *plan = NULL;
    call.b = &to.m, call.b_panels = o.panels;
    CHECK(t, bsm_plan_create(c->gpu, &call, &plan) == BSM_OK);
    if (bsm_plan_unpack_b(plan, &call) != BSM_OK) FAIL(t, "%s", bsm_last_error());
    for (int64_t g = 0; g < (q->groups > 0 ? q->groups : 1); g++)
        for (int64_t row = 0; row < q->n; row++) {
            bool lost = q->b == BSM_MXFP4 && q->groups == 0 && leaves_bf16(&o.b, row);
            for (int64_t s = 0; s < bsm_matrix_scale_columns(&o.b.m) && q->b == BSM_NVFP4; s++) {
                uint8_t scale = 0;
                (void)bsm_matrix_get_scale(&o.b.m, g, row, s, &scale);
                lost |= (scale & 0x7f) == 0x7f;
            }
            for (int64_t s = 0; s < bsm_matrix_scale_columns(&o.b.m); s++)
                bsm_matrix_set_scale(&back.m, g, row, s, unpacked_scale(&o.b, lost, g, row, s));
            for (int64_t k = 0; k < q->k; k++) {
                uint32_t code = 0;
                (void)bsm_matrix_get_code(&o.b.m, g, row, k, &code);
                bsm_matrix_set_code(&back.m, g, row, k, lost ? 0 : code);
            }
        }
    twin_compare(t, c, &to, "B, unpacked");
    bsm_plan_destroy(plan), twin_free(t, c, &to), operand_free(&back), release(t, c, &o);
}

static void unpacked(struct test *t)
{
    static const struct problem problems[] = {
        { 2, 150, 1056, 0, BSM_FORMAT_BF16, BSM_MXFP4, BSM_LAYOUT_LINEAR, BSM_GATE_NONE, SCALES_USUAL, BSM_ORDER_K },
        { 2, 70, 1312, 0, BSM_FORMAT_BF16, BSM_MXFP4, BSM_LAYOUT_128X4, BSM_GATE_NONE, SCALES_LARGE, BSM_ORDER_K },
        { 2, 70, 96, 0, BSM_FORMAT_BF16, BSM_MXFP4, BSM_LAYOUT_LINEAR, BSM_GATE_NONE, SCALES_NEAR_THE_ENDS,
          BSM_ORDER_K },
        { 2, 70, 98, 0, BSM_FORMAT_BF16, BSM_MXFP4, BSM_LAYOUT_LINEAR, BSM_GATE_NONE, SCALES_WITH_NAN, BSM_ORDER_K },
        { 20, 70, 416, 5, BSM_FORMAT_BF16, BSM_MXFP4, BSM_LAYOUT_DEEPGEMM, BSM_GATE_NONE, SCALES_USUAL, BSM_ORDER_K },
        { 2, 70, 1056, 0, BSM_FORMAT_BF16, BSM_NVFP4, BSM_LAYOUT_LINEAR, BSM_GATE_NONE, SCALES_SPANNING, BSM_ORDER_K },
        { 20, 66, 400, 5, BSM_FORMAT_BF16, BSM_NVFP4, BSM_LAYOUT_128X4, BSM_GATE_NONE, SCALES_WITH_NAN, BSM_ORDER_K },
    };
    struct contexts c;
    if (!open_for_panels(t, &c)) return;
    for (size_t i = 0; i < sizeof problems / sizeof problems[0]; i++)
        check_unpacked(t, &c, &problems[i]);
    contexts_close(&c);
}

static void fails(struct test *t, bsm_status got, bsm_status wanted, const char *part)
{
    if (got != wanted || strstr(bsm_last_error(), part) == NULL)
        FAIL(t, "status %d, not %d, or its sentence lacks '%s': %s", (int)got, (int)wanted, part, bsm_last_error());
}

/* Number of a kernel of this GPU that reads prepacked weights of this format. */
static int reading(const struct contexts *c, bsm_format format)
{
    int n = 0;
    while (kernel_with("_prepacked", n) >= 0
           && (!is_of_gpu(c->gpu, kernel_with("_prepacked", n))
               || nibbles_of_kernel(kernel_with("_prepacked", n)) != format)) n++;
    return kernel_with("_prepacked", n);
}

static void refusals(struct test *t)
{
    static const struct problem problem = { 2, 70, 64, 0, BSM_FORMAT_BF16, BSM_MXFP4, BSM_LAYOUT_LINEAR, BSM_GATE_NONE,
                                            SCALES_USUAL, BSM_ORDER_K };
    struct contexts c;
    struct problem_data o;
    if (!open_for_panels(t, &c)) return;
    make(t, &c, &problem, &o);
    bsm_plan *of_codes = NULL, *alone = NULL, *other = NULL;
    bsm_matrix without = o.y.m, half = o.y.m, bytes = o.y.m, e4m3 = o.y.m;
    without.data = without.scales = NULL, half.data = NULL;
    bytes.data = bytes.scales = NULL, bytes.packing = BSM_PACKING_HIGH_FIRST;
    e4m3.data = e4m3.scales = NULL, e4m3.format = BSM_MXFP8_E4M3, e4m3.packing = BSM_PACKING_DEFAULT, e4m3.pitch = 0;
    bsm_matmul with = o.call, call = o.call;
    call.b = &without;
    fails(t, bsm_plan_create(c.gpu, &call, &other), BSM_EINVAL, "b->data is NULL");
    with.b_panels = call.b_panels = o.panels;
    CHECK(t, bsm_plan_create(c.gpu, &with, &of_codes) == BSM_OK && bsm_plan_create(c.gpu, &call, &alone) == BSM_OK);
    CHECK(t, bsm_plan_b_panels_bytes(alone) == o.panels_bytes && bsm_plan_b_panels_bytes(of_codes) == o.panels_bytes);
    fails(t, bsm_plan_run(alone, &with, o.panels, 0), BSM_EINVAL, "prepacked weights alone");
    fails(t, bsm_plan_run(of_codes, &call, NULL, 0), BSM_EINVAL, "made for codes");
    fails(t, bsm_plan_pack_b(alone, &call, o.panels, o.panels_bytes), BSM_EINVAL, "b->data is NULL");
    fails(t, bsm_plan_unpack_b(alone, &call), BSM_EINVAL, "b->data is NULL");
    fails(t, bsm_plan_unpack_b(of_codes, &o.call), BSM_EINVAL, "b_panels is NULL");
    fails(t, bsm_plan_unpack_b(NULL, &with), BSM_EINVAL, "plan is NULL");
    half.scales = o.panels;
    with.b = &half, half.data = o.panels;
    fails(t, bsm_plan_unpack_b(of_codes, &with), BSM_EINVAL, "overlap");
    call.b = &half, half.data = NULL;
    fails(t, bsm_plan_create(c.gpu, &call, &other), BSM_EINVAL, "b->data is NULL");
    call.b = &bytes;
    fails(t, bsm_plan_create(c.gpu, &call, &other), BSM_EUNSUPPORTED, "two codes a byte");
    call.b = &e4m3;
    fails(t, bsm_plan_create(c.gpu, &call, &other), BSM_EUNSUPPORTED, "MXFP4 and NVFP4");
    call.b = &without;
    fails(t, bsm_plan_create(c.cpu, &call, &other), BSM_EUNSUPPORTED, "GPU of NVIDIA");
    /* A kernel that would read B's codes for fallback rows of A, and has none. */
    struct operand mxfp8 = nibble_operand(BSM_MXFP8_E4M3, 2, 64, 0, BSM_LAYOUT_LINEAR);
    const int kernel = reading(&c, problem.b);
    call.a = &mxfp8.m;
    CHECK(t, bsm_context_force_kernel(c.gpu, kernel) == BSM_OK);
    fails(t, bsm_plan_create(c.gpu, &call, &other), BSM_EUNSUPPORTED, bsm_kernel_name(kernel));
    CHECK(t, bsm_context_force_kernel(c.gpu, -1) == BSM_OK && bsm_plan_create(c.gpu, &call, &other) == BSM_OK);
    bsm_plan_destroy(other), operand_free(&mxfp8);
    bsm_plan_destroy(of_codes), bsm_plan_destroy(alone);
    release(t, &c, &o);
    contexts_close(&c);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(same_bits), TEST(unpacked), TEST(refusals) };
    return TEST_MAIN(argc, argv, cases);
}
