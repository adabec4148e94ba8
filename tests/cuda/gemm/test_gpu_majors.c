/* MN-major and sparse operands on a GPU: the bits of the product of the same numbers K-major and in full on the same
 * GPU, in batches, in groups, and with weights packed once. */
#include "cuda/harness/gpu.h"

struct problem {
    bsm_format a, b;
    int64_t m, n, k, batch, groups;
    const int64_t *group_rows;
    bsm_packing packing;                  /* of 4 bits */
    int64_t extra_pitch;
    bsm_sparsity sparsity;                /* NONE: MN-major */
};

static struct operand turned(const struct operand *o, const struct problem *p)
{
    const int bits = bsm_element_get((int)bsm_format_get((int)o->m.format)->element)->bits;
    return operand_turned(o, bits == 4 ? p->packing : BSM_PACKING_DEFAULT, p->extra_pitch);
}

/* The same numbers as GPUs' kernels read them, and in the other way. */
struct stored { struct operand plain, other; };

static struct stored stored_operand(struct test *t, const struct problem *p, bsm_format format, int64_t rows,
                                    int64_t batch)
{
    const bsm_format_info *f = bsm_format_get((int)format);
    const int bits = bsm_element_get((int)f->element)->bits;
    if (p->sparsity == BSM_SPARSITY_NONE) {
        const struct operand o = operand_filled(t, format, rows, p->k, batch);
        return (struct stored){ o, turned(&o, p) };
    }
    struct operand o = operand_make(
        &(struct shape){ .format = format, .rows = rows, .columns = p->k, .batch = batch,
                         .packing = bits == 4 ? p->packing : BSM_PACKING_DEFAULT,
                         .layout.kind = f->block != 0 && rows % 2 == 0 ? BSM_LAYOUT_128X4 : BSM_LAYOUT_LINEAR,
                         .extra_pitch = p->extra_pitch,
                         .sparsity = bits == 4 ? p->sparsity : BSM_SPARSITY_2_4 },
        0xff);
    operand_fill(t, &o, false);
    return (struct stored){ operand_expanded(&o), o };
}

/* B packed, and its codes gone then; NULL: the plan's kernel reads it as it is stored. */
static void *pack(struct test *t, const struct contexts *c, const bsm_matmul *call, const struct operand *b,
                  const struct operand *d)
{
    bsm_plan *plan = NULL;
    char text[768] = "";
    void *packed = NULL;
    CHECK(t, bsm_plan_create(c->gpu, call, &plan) == BSM_OK);
    const size_t bytes = bsm_plan_b_panels_bytes(plan);
    (void)bsm_plan_describe(plan, text, sizeof text);
    if (bytes == 0) {
        const char *form = strstr(text, ", B (");
        if (form == NULL || strstr(form, "as stored (MN-major") == NULL) FAIL(t, "no panels: %s", text);
    } else {
        CHECK(t, bsm_device_allocate(c->gpu, bytes, &packed) == BSM_OK);
        if (bsm_plan_pack_b(plan, call, packed, bytes) != BSM_OK) FAIL(t, "packing: %s", bsm_last_error());
        const size_t spoiled = b->data_bytes < d->data_bytes ? b->data_bytes : d->data_bytes;
        CHECK(t, bsm_device_write(c->gpu, call->b->data, d->m.data, spoiled) == BSM_OK);
    }
    bsm_plan_destroy(plan);
    return packed;
}

/* D of one call; panels: B is packed first. */
static void multiply(struct test *t, const struct contexts *c, const struct problem *p, const struct operand *a,
                     const struct operand *b, struct operand *d, bool panels)
{
    struct twin of_a = twin_make(t, c, a), of_b = twin_make(t, c, b), of_d = twin_make(t, c, d);
    bsm_matmul call = { .struct_size = sizeof call, .a = &of_a.m, .b = &of_b.m, .d = &of_d.m, .groups = p->groups };
    void *packed = NULL;
    call.group_rows = to_device(t, c, p->group_rows, (size_t)p->groups * sizeof(int64_t));
    if (panels) call.b_panels = packed = pack(t, c, &call, b, d);
    if (bsm_multiply(c->gpu, &call) != BSM_OK)
        FAIL(t, "%s x %s: %s", bsm_format_get((int)p->a)->name, bsm_format_get((int)p->b)->name, bsm_last_error());
    from_device(t, c, d->m.data, of_d.m.data, d->data_bytes);
    (void)bsm_device_release(c->gpu, packed);
    (void)bsm_device_release(c->gpu, (void *)(uintptr_t)call.group_rows);
    twin_free(t, c, &of_a), twin_free(t, c, &of_b), twin_free(t, c, &of_d);
}

static void check(struct test *t, const struct contexts *c, const struct problem *p)
{
    static const struct { bool a, b, panels; const char *what; } cases[] = {
        { true, true, false, "A and B" }, { false, true, false, "B" }, { true, true, true, "packed once" } };
    struct stored a = stored_operand(t, p, p->a, p->m, p->groups > 0 ? 1 : p->batch),
                  b = stored_operand(t, p, p->b, p->n, p->groups > 0 ? p->groups : p->batch);
    const struct shape result = { .format = BSM_FORMAT_FP32, .rows = p->m, .columns = p->n,
                                  .batch = p->groups > 0 ? 1 : p->batch };
    struct operand want = operand_make(&result, 0xff);
    multiply(t, c, p, &a.plain, &b.plain, &want, false);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct operand d = operand_make(&result, 0xff);
        multiply(t, c, p, cases[i].a ? &a.other : &a.plain, cases[i].b ? &b.other : &b.plain, &d, cases[i].panels);
        if (memcmp(d.m.data, want.m.data, d.data_bytes) != 0)
            FAIL(t, "%s x %s, sparsity %d, %d x %d x %d, %d groups, %s: other bits",
                 bsm_format_get((int)p->a)->name, bsm_format_get((int)p->b)->name, (int)p->sparsity, (int)p->m,
                 (int)p->n, (int)p->k, (int)p->groups, cases[i].what);
        operand_free(&d);
    }
    operand_free(&a.plain), operand_free(&b.plain), operand_free(&a.other), operand_free(&b.other);
    operand_free(&want);
}

/* With itself, and behind bf16 activations; edges of squares of 64 on both sides. */
static void every_format(struct test *t)
{
    struct contexts c;
    if (!contexts_open(t, &c)) return;
    for (int format = 1; format < BSM_FORMAT_COUNT; format++) {
        if (format == BSM_FORMAT_FP32) continue;           /* GPUs refuse it */
        check(t, &c, &(struct problem){ .a = (bsm_format)format, .b = (bsm_format)format, .m = 33, .n = 70, .k = 133,
                                        .packing = format % 2 == 0 ? BSM_PACKING_LOW_FIRST : BSM_PACKING_BYTES });
        check(t, &c, &(struct problem){ .a = BSM_FORMAT_BF16, .b = (bsm_format)format, .m = 3, .n = 64, .k = 128,
                                        .packing = BSM_PACKING_HIGH_FIRST, .extra_pitch = 64 });
    }
    contexts_close(&c);
}

/* Rows that end within a byte of metadata, and anywhere within sixteen columns; every packing, either pattern. */
static void every_sparse_format(struct test *t)
{
    static const struct problem shapes[] = {
        { .m = 33, .n = 70, .k = 136, .packing = BSM_PACKING_BYTES, .sparsity = BSM_SPARSITY_2_4 },
        { .m = 2, .n = 35, .k = 72, .packing = BSM_PACKING_HIGH_FIRST, .sparsity = BSM_SPARSITY_4_8_PAIRS,
          .extra_pitch = 64 },
        { .m = 4, .n = 33, .k = 128, .packing = BSM_PACKING_LOW_FIRST, .sparsity = BSM_SPARSITY_4_8_PAIRS },
    };
    struct contexts c;
    if (!contexts_open(t, &c)) return;
    for (int format = 1; format < BSM_FORMAT_COUNT; format++) {
        if (format == BSM_FORMAT_FP32) continue;
        struct problem p = shapes[format % 3];
        p.a = p.b = (bsm_format)format;
        check(t, &c, &p);
        p = shapes[(format + 1) % 3], p.a = BSM_FORMAT_BF16, p.b = (bsm_format)format;
        if (p.sparsity == BSM_SPARSITY_2_4) p.k = format % 2 == 0 ? 68 : 76;
        if (p.k == 128) continue;
        check(t, &c, &p);
    }
    contexts_close(&c);
}

static void batches_and_groups(struct test *t)
{
    static const int64_t rows[] = { 20, 0, 45 };
    struct contexts c;
    if (!contexts_open(t, &c)) return;
    check(t, &c, &(struct problem){ .a = BSM_MXFP8_E4M3, .b = BSM_MXFP4, .m = 65, .n = 64, .k = 96, .groups = 3,
                                    .group_rows = rows, .packing = BSM_PACKING_LOW_FIRST });
    check(t, &c, &(struct problem){ .a = BSM_NVFP4, .b = BSM_NVFP4, .m = 65, .n = 32, .k = 64, .groups = 3,
                                    .group_rows = rows, .packing = BSM_PACKING_LOW_FIRST });
    check(t, &c, &(struct problem){ .a = BSM_FORMAT_BF16, .b = BSM_MXFP6_E3M2, .m = 9, .n = 40, .k = 64, .batch = 2 });
    check(t, &c, &(struct problem){ .a = BSM_NVFP4, .b = BSM_NVFP4, .m = 65, .n = 32, .k = 96, .groups = 3,
                                    .group_rows = rows, .packing = BSM_PACKING_LOW_FIRST,
                                    .sparsity = BSM_SPARSITY_4_8_PAIRS });
    check(t, &c, &(struct problem){ .a = BSM_FORMAT_E5M2, .b = BSM_MXFP4, .m = 9, .n = 40, .k = 72, .batch = 2,
                                    .packing = BSM_PACKING_HIGH_FIRST, .sparsity = BSM_SPARSITY_4_8_PAIRS });
    contexts_close(&c);
}

/* Numbers that the CPU's order of sums does not tell from the GPU's. */
static void beside_the_cpu(struct test *t)
{
    struct contexts c;
    if (!contexts_open(t, &c)) return;
    struct operand a = operand_filled(t, BSM_MXFP8_E4M3, 32, 128, 1), b = operand_filled(t, BSM_MXFP4, 64, 128, 1);
    fill_whole(t, &a), fill_whole(t, &b);
    struct operand d = operand_make(&(struct shape){ .format = BSM_FORMAT_FP32, .rows = 32, .columns = 64 }, 0xff),
                   a_turned = operand_turned(&a, BSM_PACKING_DEFAULT, 0),
                   b_turned = operand_turned(&b, BSM_PACKING_LOW_FIRST, 64);
    run_both(t, &c, &(struct run){ .a = &a_turned, .b = &b_turned, .d = &d,
                                   .call = { .struct_size = sizeof(bsm_matmul) } }, "both MN-major");
    operand_free(&a), operand_free(&b), operand_free(&a_turned), operand_free(&b_turned), operand_free(&d);
    contexts_close(&c);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(every_format), TEST(every_sparse_format), TEST(batches_and_groups),
                                              TEST(beside_the_cpu) };
    return TEST_MAIN(argc, argv, cases);
}
