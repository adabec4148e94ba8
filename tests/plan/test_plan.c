/* Plans: reuse, refusals, workspaces, allocations, the line for a person, and which kernel is chosen. */
#include "counted.h"
#include "small_product.h"
#include "test.h"

#include <pthread.h>
#include <stdlib.h>

static bsm_context *make_context(struct test *t, const bsm_context_options *options)
{
    bsm_context *context = NULL;
    CHECK(t, bsm_context_create(options, &context) == BSM_OK);
    return context;
}

/* A plan, and a workspace of exactly its bytes with a page behind it that faults. */
struct planned { bsm_plan *plan; void *workspace; size_t bytes; };

static struct planned make_planned(struct test *t, bsm_context *context, const bsm_matmul *call)
{
    struct planned p = { NULL, NULL, 0 };
    if (bsm_plan_create(context, call, &p.plan) != BSM_OK) FAIL(t, "%s", bsm_last_error());
    p.bytes = bsm_plan_workspace_bytes(p.plan);
    p.workspace = guarded_at_end(p.bytes, 64, 0xd5);
    return p;
}

static void planned_free(struct planned *p)
{
    bsm_plan_destroy(p->plan);
    guarded_free(p->workspace);
}

static void expect_error(struct test *t, bsm_status found, bsm_status wanted, const char *word)
{
    if (found != wanted || strstr(bsm_last_error(), word) == NULL)
        FAIL(t, "status %d and \"%s\", not %d and \"%s\"", (int)found, bsm_last_error(), (int)wanted, word);
}

static bool same_d(const struct small_product *x, const struct small_product *y)
{
    return memcmp(x->memory.d, y->memory.d, sizeof x->memory.d) == 0 && memcmp(&x->amax, &y->amax, sizeof x->amax) == 0;
}

/* Reuse ------------------------------------------------------------------------------------------------------------ */

static void other_pointers(struct test *t)
{
    bsm_context *context = make_context(t, NULL);
    struct small_product planned, x, want;
    small_product_make(&planned), small_product_make(&x), small_product_make(&want);
    struct planned p = make_planned(t, context, &planned.call);
    memset(&planned, 0xff, sizeof planned);           /* a plan looks at no memory of the description that it was made
                                                         from */
    for (int i = 0; i < 5; i++) {
        for (size_t j = 0; j < sizeof x.memory.a; j++)
            x.memory.a[j] = want.memory.a[j] = (uint8_t)(0x20 + rnd_below(t, 30));
        x.alpha[0] = want.alpha[0] = (float)rnd_between(t, 1, 9);
        CHECK(t, bsm_plan_run(p.plan, &x.call, p.workspace, p.bytes) == BSM_OK
                     && bsm_multiply(context, &want.call) == BSM_OK);
        CHECK(t, same_d(&x, &want));
    }
    /* Without what is optional, and with what the plan did not have. */
    x.call.alpha = want.call.alpha = NULL, x.call.bias = want.call.bias = NULL, x.call.beta = want.call.beta = NULL;
    x.call.c = want.call.c = NULL, x.call.amax = want.call.amax = NULL, x.a.tensor_scale = &x.ta,
    want.a.tensor_scale = &want.ta;
    x.ta = want.ta = 3;
    CHECK(t, bsm_plan_run(p.plan, &x.call, p.workspace, p.bytes) == BSM_OK
                 && bsm_multiply(context, &want.call) == BSM_OK && same_d(&x, &want));
    planned_free(&p);
    bsm_context_destroy(context);
}

static void other_group_rows(struct test *t)
{
    static const int64_t rows[][3] = { { 3, 0, 1 }, { 0, 0, 4 }, { 4, 0, 0 }, { 1, 1, 2 }, { 0, 4, 0 } };
    bsm_context *context = make_context(t, NULL);
    struct small_product x, want;
    small_product_make(&x), small_product_make(&want);
    small_product_group(&x), small_product_group(&want);
    struct planned p = make_planned(t, context, &x.call);
    for (int i = 0; i < 5; i++) {
        memcpy(x.group_rows, rows[i], sizeof rows[i]), memcpy(want.group_rows, rows[i], sizeof rows[i]);
        CHECK(t, bsm_plan_run(p.plan, &x.call, p.workspace, p.bytes) == BSM_OK
                     && bsm_multiply(context, &want.call) == BSM_OK);
        CHECK(t, same_d(&x, &want));
    }
    x.group_rows[0]++;
    expect_error(t, bsm_plan_run(p.plan, &x.call, p.workspace, p.bytes), BSM_EINVAL, "add up to");
    planned_free(&p);
    bsm_context_destroy(context);
}

static void other_group_columns(struct test *t)
{
    static const int64_t columns[][3] = { { 32, 0, 32 }, { 0, 0, 64 }, { 64, 0, 0 }, { 32, 32, 0 }, { 0, 64, 0 } };
    bsm_context *context = make_context(t, NULL);
    struct small_product x, want;
    small_product_make(&x), small_product_make(&want);
    small_product_group_columns(&x), small_product_group_columns(&want);
    struct planned p = make_planned(t, context, &x.call);
    CHECK(t, bsm_plan_b_panels_bytes(p.plan) == 0);
    for (int i = 0; i < 5; i++) {
        memcpy(x.group_columns, columns[i], sizeof columns[i]);
        memcpy(want.group_columns, columns[i], sizeof columns[i]);
        CHECK(t, bsm_plan_run(p.plan, &x.call, p.workspace, p.bytes) == BSM_OK
                     && bsm_multiply(context, &want.call) == BSM_OK);
        CHECK(t, same_d(&x, &want));
    }
    x.group_columns[0] += 32;
    expect_error(t, bsm_plan_run(p.plan, &x.call, p.workspace, p.bytes), BSM_EINVAL, "add up to");
    x.call.groups = 0, x.b.batch = 3;
    expect_error(t, bsm_plan_run(p.plan, &x.call, p.workspace, p.bytes), BSM_EINVAL, "b->batch=3");
    planned_free(&p);
    bsm_context_destroy(context);
}

/* REFUSED(change, word): a plan for the small product does not run what differs like this. */
#define REFUSED(change, word) \
    do { \
        struct small_product x; \
        small_product_make(&x); \
        change; \
        if (bsm_supported(context, &x.call) != BSM_OK) FAIL(t, "%s: %s", #change, bsm_last_error()); \
        expect_error(t, bsm_plan_run(p.plan, &x.call, p.workspace, p.bytes), BSM_EINVAL, word); \
        CHECK(t, same_d(&x, &fresh)); \
    } while (0)

static void other_shapes(struct test *t)
{
    bsm_context *context = make_context(t, NULL);
    struct small_product fresh;
    small_product_make(&fresh);
    struct planned p = make_planned(t, context, &fresh.call);
    REFUSED((x.a.rows = x.c.rows = x.d.rows = 3), "a->rows=3");
    REFUSED((x.b.rows = x.c.columns = x.d.columns = 5), "b->rows=5");
    REFUSED((x.a.columns = x.b.columns = 32), "a->columns=32");
    REFUSED(x.a.format = BSM_MXFP8_E5M2, "a->format");
    REFUSED(x.b.format = BSM_MXINT8, "b->format");
    REFUSED(x.d.format = BSM_FORMAT_FP16, "d->format");
    REFUSED(x.c.format = BSM_FORMAT_FP16, "c->format");
    REFUSED(x.a.pitch = 70, "a->pitch=70");
    REFUSED(x.d.pitch = 7, "d->pitch=7");
    REFUSED((x.a.batch = 2, x.d.batch = 2), "a->batch=2");
    REFUSED(x.b.scale_layout.pitch = 4, "b->scale_layout.pitch=4");
    REFUSED(x.b.tensor_scale_use = BSM_TENSOR_SCALE_DIVIDES, "b->tensor_scale_use");
    REFUSED(x.call.alpha_per = BSM_PER_ROW, "alpha_per=1");
    REFUSED(x.call.activation = BSM_ACT_RELU, "activation=1");
    REFUSED((x.call.gate = BSM_GATE_SPLIT, x.d.columns = 3), "d->columns=3");
    REFUSED(x.call.d_nonfinite = BSM_NONFINITE_SATURATE, "d_nonfinite=1");
    REFUSED(x.call.bias_type = BSM_REAL_FP16, "bias_type=1");
    REFUSED(x.call.bias_per = BSM_PER_ROW, "bias_per=1");
    REFUSED(x.call.bias_batch_pitch = 6, "bias_batch_pitch=6");
    REFUSED((x.call.groups = 1, x.call.group_rows = x.group_rows, x.group_rows[0] = 4), "groups=1");
    planned_free(&p);

    fresh.d.format = BSM_MXFP8_E4M3, fresh.d.scales = fresh.memory.d_scales;
    p = make_planned(t, context, &fresh.call);
    REFUSED((x.d = fresh.d, x.d.data = x.memory.d, x.d.scales = x.memory.d_scales, x.call.d_recipe = BSM_RECIPE_FLOOR),
            "d_recipe=1");
    planned_free(&p);
    fresh.d.format = BSM_FORMAT_E4M3, fresh.d.scales = NULL;
    p = make_planned(t, context, &fresh.call);
    REFUSED((x.d = fresh.d, x.d.data = x.memory.d, x.call.d_no_saturate = true), "d_no_saturate=1");
    planned_free(&p);
    bsm_context_destroy(context);
}

/* Workspaces ------------------------------------------------------------------------------------------------------- */

static void workspaces(struct test *t)
{
    bsm_context *context = make_context(t, NULL);
    struct small_product x, fresh;
    small_product_make(&x), small_product_make(&fresh);
    struct planned p = make_planned(t, context, &x.call);
    CHECK(t, p.bytes > 0);
    expect_error(t, bsm_plan_run(p.plan, &x.call, NULL, p.bytes), BSM_EINVAL, "workspace is NULL");
    expect_error(t, bsm_plan_run(p.plan, &x.call, p.workspace, p.bytes - 1), BSM_EINVAL, "workspace_bytes=");
    expect_error(t, bsm_plan_run(p.plan, &x.call, p.workspace, 0), BSM_EINVAL, "workspace_bytes=0");
    const void *data = x.b.data;
    x.b.data = (unsigned char *)p.workspace + p.bytes - 64;
    expect_error(t, bsm_plan_run(p.plan, &x.call, p.workspace, p.bytes), BSM_EINVAL, "overlaps b->data");
    x.b.data = (void *)(uintptr_t)data;
    unsigned char *larger = aligned_alloc(64, (p.bytes + 191) / 64 * 64);
    static const int offsets[] = { 1, 4, 16, 32, 63 };
    for (int i = 0; i < 5; i++)
        expect_error(t, bsm_plan_run(p.plan, &x.call, larger + offsets[i], p.bytes), BSM_EALIGN, "aligned to 64");
    free(larger);
    expect_error(t, bsm_plan_run(NULL, &x.call, p.workspace, p.bytes), BSM_EINVAL, "plan is NULL");
    expect_error(t, bsm_plan_run(p.plan, NULL, p.workspace, p.bytes), BSM_EINVAL, "product is NULL");
    x.td = 0, x.d.tensor_scale = &x.td;
    expect_error(t, bsm_plan_run(p.plan, &x.call, p.workspace, p.bytes), BSM_EINVAL, "*d->tensor_scale");
    x.d.tensor_scale = NULL, x.call.c = NULL;
    expect_error(t, bsm_plan_run(p.plan, &x.call, p.workspace, p.bytes), BSM_EINVAL, "product->c is NULL");
    CHECK(t, same_d(&x, &fresh));
    CHECK(t, bsm_plan_workspace_bytes(NULL) == 0);
    bsm_plan_destroy(NULL);
    planned_free(&p);
    bsm_context_destroy(context);
}

/* Panels overlap nothing that a product with them reads or writes: neither where they are packed, nor where they are
 * read. */
static void panels_lie_apart(struct test *t)
{
    enum { ROWS = 16, COLUMNS = 64, K = 64 };
    bsm_context *context = make_context(t, NULL);
    static float a_data[ROWS * K], d_data[ROWS * COLUMNS];
    static unsigned char b_data[COLUMNS * K / 2], b_scales[COLUMNS * K / 32];
    bsm_matrix a = { .struct_size = sizeof a, .format = BSM_FORMAT_FP32, .rows = ROWS, .columns = K, .data = a_data };
    bsm_matrix b = { .struct_size = sizeof b, .format = BSM_MXFP4, .rows = COLUMNS, .columns = K, .data = b_data,
                     .scales = b_scales };
    bsm_matrix d = { .struct_size = sizeof d, .format = BSM_FORMAT_FP32, .rows = ROWS, .columns = COLUMNS,
                     .data = d_data };
    bsm_matmul call = { .struct_size = sizeof call, .a = &a, .b = &b, .d = &d };
    struct planned p = make_planned(t, context, &call);
    const size_t bytes = bsm_plan_b_panels_bytes(p.plan),
                 room = (bytes + sizeof d_data + sizeof b_data + 255) / 64 * 64;
    if (bytes == 0) {
        test_skip(t, "the kernel of this machine has no panels");
        planned_free(&p), bsm_context_destroy(context);
        return;
    }
    unsigned char *memory = aligned_alloc(64, room), *last = memory + (bytes - 1) / 64 * 64;
    memset(memory, 0x5a, room);

    b.data = memory + 64;
    expect_error(t, bsm_plan_pack_b(p.plan, &call, memory, bytes), BSM_EINVAL, "panels=");
    expect_error(t, bsm_plan_pack_b(p.plan, &call, memory, bytes), BSM_EINVAL, "overlaps b->data=");
    b.data = b_data, d.data = last;
    expect_error(t, bsm_plan_pack_b(p.plan, &call, memory, bytes), BSM_EINVAL, "overlaps d->data=");
    for (size_t i = 0; i < room; i++) CHECK_OR_RETURN(t, memory[i] == 0x5a);
    d.data = d_data;
    CHECK(t, bsm_plan_pack_b(p.plan, &call, memory, bytes) == BSM_OK);

    unsigned char *kept = malloc(room);
    memcpy(kept, memory, room);
    call.b_panels = memory, d.data = last;
    bsm_plan *none = NULL;
    expect_error(t, bsm_multiply(context, &call), BSM_EINVAL, "overlaps b_panels=");
    expect_error(t, bsm_supported(context, &call), BSM_EINVAL, "overlaps b_panels=");
    expect_error(t, bsm_plan_create(context, &call, &none), BSM_EINVAL, "overlaps b_panels=");
    expect_error(t, bsm_plan_run(p.plan, &call, p.workspace, p.bytes), BSM_EINVAL, "overlaps b_panels=");
    d.data = d_data, call.amax = (float *)(void *)(memory + 64);
    expect_error(t, bsm_multiply(context, &call), BSM_EINVAL, "amax=");
    call.amax = NULL;
    if (p.bytes > 0 && p.bytes <= room)
        expect_error(t, bsm_plan_run(p.plan, &call, memory, p.bytes), BSM_EINVAL, "workspace=");
    CHECK(t, memcmp(memory, kept, room) == 0);
    d.data = memory + (bytes + 3) / 4 * 4;                                           /* directly behind them */
    CHECK(t, bsm_multiply(context, &call) == BSM_OK && bsm_plan_run(p.plan, &call, p.workspace, p.bytes) == BSM_OK);
    free(memory), free(kept);
    planned_free(&p);
    bsm_context_destroy(context);
}

/* Exactly the bytes asked for, whatever the shape, the threads and the kernel: the page behind faults. */
static void workspace_is_enough(struct test *t)
{
    static const int64_t sizes[][3] = {
        { 1, 1, 1 }, { 193, 300, 300 }, { 50, 129, 513 }, { 7, 700, 64 }, { 400, 20, 96 }
    };
    for (int s = 0; s < 5; s++)
        for (int threads = 1; threads <= 4; threads++)
            for (int groups = 0; groups <= 3; groups += 3) {
                const bsm_context_options options = { .struct_size = sizeof options, .threads = threads };
                bsm_context *context = make_context(t, &options);
                const int64_t m = sizes[s][0], n = sizes[s][1], k = sizes[s][2], rows[3] = { m / 2, 0, m - m / 2 },
                              blocks = (k + 31) / 32;
                const bsm_format formats[] = { BSM_MXFP8_E4M3, BSM_MXINT8 };
                uint8_t *codes = calloc(3, (size_t)((m + n) * k)), *scales = calloc(3, (size_t)((m + n) * blocks));
                float *sums = calloc((size_t)(m * n), sizeof *sums);
                for (int f = 0; f < 2; f++) {
                    const bsm_matrix a = {
                        .struct_size = sizeof a, .format = formats[f], .rows = m, .columns = k, .data = codes,
                        .scales = scales
                    };
                    const bsm_matrix b = { .struct_size = sizeof b,
                                           .format = formats[f],
                                           .rows = n,
                                           .columns = k,
                                           .data = codes,
                                           .scales = scales,
                                           .batch = groups };
                    const bsm_matrix d = {
                        .struct_size = sizeof d, .format = BSM_FORMAT_FP32, .rows = m, .columns = n, .data = sums
                    };
                    const bsm_matmul call = {
                        .struct_size = sizeof call, .a = &a, .b = &b, .d = &d, .groups = groups, .group_rows = rows
                    };
                    for (int kernel = 0; bsm_kernel_name(kernel) != NULL; kernel++) {
                        if (!bsm_kernel_serves(context, kernel, formats[f], formats[f])) continue;
                        bsm_context_force_kernel(context, kernel);
                        struct planned p = make_planned(t, context, &call);
                        sums[0] = sums[m * n - 1] = 5;
                        if (bsm_plan_run(p.plan, &call, p.workspace, p.bytes) != BSM_OK)
                            FAIL(t, "%s", bsm_last_error());
                        CHECK(t, sums[0] == 0 && sums[m * n - 1] == 0);
                        planned_free(&p);
                    }
                }
                free(codes), free(scales), free(sums);
                bsm_context_destroy(context);
            }
}

struct runner { const bsm_plan *plan; size_t bytes; int wrong; const struct small_product *want; };

static void *run_often(void *argument)
{
    struct runner *r = argument;
    void *workspace = aligned_alloc(64, (r->bytes + 63) / 64 * 64);
    struct small_product *x = aligned_alloc(64, sizeof *x);
    for (int i = 0; i < 50; i++) {
        small_product_make(x);
        if (bsm_plan_run(r->plan, &x->call, workspace, r->bytes) != BSM_OK || !same_d(x, r->want)) r->wrong++;
    }
    free(x), free(workspace);
    return NULL;
}

static void one_plan_in_several_threads(struct test *t)
{
    enum { THREADS = 4 };
    bsm_context *context = make_context(t, NULL);
    struct small_product want;
    small_product_make(&want);
    struct planned p = make_planned(t, context, &want.call);
    CHECK(t, bsm_multiply(context, &want.call) == BSM_OK);
    struct runner runners[THREADS];
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        runners[i] = (struct runner){ p.plan, p.bytes, 0, &want };
        CHECK_OR_RETURN(t, pthread_create(&threads[i], NULL, run_often, &runners[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        CHECK(t, runners[i].wrong == 0);
    }
    planned_free(&p);
    bsm_context_destroy(context);
}

/* Allocations ------------------------------------------------------------------------------------------------------ */

static void running_allocates_nothing(struct test *t)
{
    struct counted counted = { .fail_at = 0 };
    const bsm_allocator allocator = counted_allocator(&counted);
    const bsm_context_options options = { .struct_size = sizeof options, .threads = 3, .allocator = &allocator };
    bsm_context *context = make_context(t, &options);
    struct small_product x;
    small_product_make(&x);
    struct planned p = make_planned(t, context, &x.call);
    const int64_t before = counted.calls;
    for (int i = 0; i < 3; i++) CHECK(t, bsm_plan_run(p.plan, &x.call, p.workspace, p.bytes) == BSM_OK);
    CHECK(t, counted.calls == before);
    const int64_t live = counted.live;
    for (int i = 0; i < 3; i++) CHECK(t, bsm_multiply(context, &x.call) == BSM_OK);
    CHECK(t, counted.live == live + 1);               /* the workspace, kept */
    planned_free(&p);
    bsm_context_destroy(context);
    CHECK(t, counted.live == 0 && counted.errors == 0);
}

/* The nth allocation behind the context's own fails, once or from then on; returns whether the call noticed. */
static bool fails_cleanly(struct test *t, bool plan_only, int64_t n, bool forever)
{
    struct counted counted = { .fail_at = 0 };
    const bsm_allocator allocator = counted_allocator(&counted);
    const bsm_context_options options = { .struct_size = sizeof options, .allocator = &allocator };
    bsm_context *context = make_context(t, &options);
    struct small_product x, fresh, want;
    small_product_make(&x), small_product_make(&fresh), small_product_make(&want);
    bsm_plan *plan = NULL;
    const int64_t live = counted.live;
    counted.fail_at = counted.calls + n, counted.forever = forever;
    const bsm_status status = plan_only ? bsm_plan_create(context, &x.call, &plan) : bsm_multiply(context, &x.call);
    if (status != BSM_OK) {
        expect_error(t, status, BSM_ENOMEM, "no memory");
        CHECK(t, plan == NULL && same_d(&x, &fresh) && counted.live == live);
    }
    counted.fail_at = 0;
    /* The context is as good as before. */
    CHECK(t, bsm_multiply(context, &x.call) == BSM_OK);
    bsm_plan_destroy(plan);
    bsm_context_destroy(context);
    CHECK(t, counted.live == 0 && counted.errors == 0);
    context = make_context(t, NULL);
    CHECK(t, bsm_multiply(context, &want.call) == BSM_OK && same_d(&x, &want));
    bsm_context_destroy(context);
    return status != BSM_OK;
}

static void every_allocation_fails_once(struct test *t)
{
    for (int plan_only = 0; plan_only < 2; plan_only++)
        for (int forever = 0; forever < 2; forever++) {
            int64_t n = 1;
            while (n < 20 && fails_cleanly(t, plan_only != 0, n, forever != 0)) n++;
            CHECK(t, n > 1 && n < 20);
        }
}

/* A workspace that cannot grow: the small one is gone, and is made again. */
static void workspace_that_cannot_grow(struct test *t)
{
    struct counted counted = { .fail_at = 0 };
    const bsm_allocator allocator = counted_allocator(&counted);
    const bsm_context_options options = { .struct_size = sizeof options, .threads = 1, .allocator = &allocator };
    bsm_context *context = make_context(t, &options);
    struct small_product x, fresh;
    small_product_make(&x), small_product_make(&fresh);
    CHECK(t, bsm_multiply(context, &x.call) == BSM_OK);
    CHECK(t, bsm_context_set_threads(context, 40) == BSM_OK);
    small_product_make(&x);
    counted.fail_at = counted.calls + 1;
    expect_error(t, bsm_multiply(context, &x.call), BSM_ENOMEM, "workspace");
    CHECK(t, same_d(&x, &fresh));
    CHECK(t, bsm_multiply(context, &x.call) == BSM_OK && bsm_context_set_threads(context, 1) == BSM_OK &&
                 bsm_multiply(context, &x.call) == BSM_OK);
    bsm_context_destroy(context);
    CHECK(t, counted.live == 0 && counted.errors == 0);
}

/* Choosing and describing ------------------------------------------------------------------------------------------ */

static void describes_like_snprintf(struct test *t)
{
    char whole[512], part[512];
    bsm_context *context = make_context(t, NULL);
    struct small_product x;
    small_product_make(&x);
    struct planned p = make_planned(t, context, &x.call);
    const size_t length = bsm_plan_describe(p.plan, whole, sizeof whole);
    CHECK_OR_RETURN(t, length == strlen(whole) && length > 20 && length < sizeof whole);
    CHECK(t, strstr(whole, "mxfp8_e4m3 x mxfp8_e5m2") != NULL && strstr(whole, "kernel ") != NULL
                 && strchr(whole, '\n') == NULL);
    CHECK(t, bsm_plan_describe(p.plan, NULL, 0) == length);
    for (size_t bytes = 0; bytes < length + 3; bytes++) {
        memset(part, 'x', sizeof part);
        CHECK(t, bsm_plan_describe(p.plan, part, bytes) == length);
        const size_t kept = bytes == 0 ? 0 : bytes - 1 < length ? bytes - 1 : length;
        CHECK(t, memcmp(part, whole, kept) == 0 && (bytes == 0 || part[kept] == '\0')
                     && part[bytes > kept ? bytes : kept + 1] == 'x');
    }
    part[0] = 'x';
    CHECK(t, bsm_plan_describe(NULL, part, 5) == 0 && part[0] == '\0' && bsm_plan_describe(NULL, NULL, 0) == 0);
    planned_free(&p);
    bsm_context_destroy(context);
}

/* The kernel that a plan for this pair takes, by what it says of itself. */
static void expect_kernel(struct test *t, bsm_context *context, bsm_format a, bsm_format b, const char *kernel,
                          const char *reason)
{
    char text[512], word[64];
    struct small_product x;
    small_product_make(&x);
    x.a.format = a, x.b.format = b;
    bsm_plan *plan = NULL;
    if (bsm_plan_create(context, &x.call, &plan) != BSM_OK) FAIL(t, "%s", bsm_last_error());
    bsm_plan_describe(plan, text, sizeof text);
    snprintf(word, sizeof word, "kernel %s,", kernel);
    if (strstr(text, word) == NULL || strstr(text, reason) == NULL)
        FAIL(t, "\"%s\", without \"%s\" or \"%s\"", text, word, reason);
    bsm_plan_destroy(plan);
}

static void portable_on_request(struct test *t)
{
    const bsm_context_options portable = { .struct_size = sizeof portable, .portable_only = true };
    const char *callers = getenv("BLOCKSCALE_CPU");
    char *kept = callers == NULL ? NULL : strdup(callers);
    bsm_context *contexts[2];
    contexts[0] = make_context(t, &portable);
    CHECK(t, setenv("BLOCKSCALE_CPU", "none", 1) == 0);
    contexts[1] = make_context(t, NULL);
    CHECK(t, kept != NULL ? setenv("BLOCKSCALE_CPU", kept, 1) == 0 : unsetenv("BLOCKSCALE_CPU") == 0);
    for (int i = 0; i < 2; i++) {
        CHECK(t, bsm_context_cpu_features(contexts[i]) == 0);
        expect_kernel(t, contexts[i], BSM_MXFP8_E4M3, BSM_MXFP8_E4M3, "fp32_chains_portable", "portable");
        expect_kernel(t, contexts[i], BSM_MXINT8, BSM_MXINT8, "exact_blocks_portable", "portable");
        bsm_context_destroy(contexts[i]);
    }
    free(kept);
    const uint32_t both = BSM_CPU_AVX2 | BSM_CPU_FMA;
    const bsm_context_options avx2 = { .struct_size = sizeof avx2, .cpu_mask = both };
    bsm_context *context = make_context(t, &avx2);
    const bool fast = (bsm_context_cpu_features(context) & both) == both;
    expect_kernel(t, context, BSM_MXFP8_E4M3, BSM_MXINT8, fast ? "fp32_chains_few_rows_avx2" : "fp32_chains_portable",
                  fast ? "first kernel" : "portable");
    expect_kernel(t, context, BSM_MXINT8, BSM_MXINT8, fast ? "int8_dot_avx2" : "exact_blocks_portable",
                  fast ? "first kernel" : "portable");
    bsm_context_destroy(context);
}

/* A kernel whose features the CPU lacks, or BLOCKSCALE_CPU hides, serves nothing. */
static bool serves_any(const bsm_context *context, int kernel)
{
    for (int a = 1; a < BSM_FORMAT_COUNT; a++)
        for (int b = 1; b < BSM_FORMAT_COUNT; b++)
            if (bsm_kernel_serves(context, kernel, (bsm_format)a, (bsm_format)b)) return true;
    return false;
}

static void forced_kernels(struct test *t)
{
    const bsm_context_options portable = { .struct_size = sizeof portable, .portable_only = true };
    bsm_context *context = make_context(t, NULL), *bare = make_context(t, &portable);
    struct small_product x, fresh;
    small_product_make(&x), small_product_make(&fresh);
    int kernels = 0;
    for (; bsm_kernel_name(kernels) != NULL; kernels++) {
        const char *name = bsm_kernel_name(kernels);
        CHECK(t, bsm_context_force_kernel(context, kernels) == BSM_OK);
        CHECK(t, bsm_context_force_kernel(bare, kernels) == BSM_OK);
        if (strncmp(name, "cuda_", 5) == 0 || strncmp(name, "hip_", 4) == 0) {
            CHECK(t, !bsm_kernel_serves(context, kernels, x.a.format, x.b.format));
            expect_error(t, bsm_multiply(context, &x.call), BSM_EUNSUPPORTED, "it is one of GPUs");
            CHECK(t, same_d(&x, &fresh));
            continue;
        }
        const bool chains = strncmp(name, "fp32_chains", 11) == 0, needs = strstr(name, "portable") == NULL;
        CHECK(t, bsm_kernel_serves(bare, kernels, x.a.format, x.b.format) == (chains && !needs));
        if (bsm_kernel_serves(context, kernels, x.a.format, x.b.format))
            expect_kernel(t, context, x.a.format, x.b.format, name, "forced");
        else if (!chains)
            expect_error(t, bsm_multiply(context, &x.call), BSM_EUNSUPPORTED,
                         serves_any(context, kernels) ? "does not serve" : "lacks a CPU feature");
        if (needs) expect_error(t, bsm_multiply(bare, &x.call), BSM_EUNSUPPORTED, "lacks a CPU feature");
        CHECK(t, same_d(&x, &fresh));
    }
    CHECK(t, kernels >= 2 && bsm_kernel_name(-1) == NULL);
    CHECK(t, !bsm_kernel_serves(NULL, 0, x.a.format, x.b.format)
                 && !bsm_kernel_serves(context, kernels, x.a.format, x.b.format));
    CHECK(t, !bsm_kernel_serves(context, kernels - 1, BSM_FORMAT_NONE, x.b.format));
    expect_error(t, bsm_context_force_kernel(context, kernels), BSM_EINVAL, "index=");
    expect_error(t, bsm_context_force_kernel(context, -2), BSM_EINVAL, "index=-2");
    expect_error(t, bsm_context_force_kernel(NULL, 0), BSM_EINVAL, "context is NULL");
    CHECK(t, bsm_context_force_kernel(context, -1) == BSM_OK && bsm_multiply(context, &x.call) == BSM_OK);
    bsm_context_destroy(context), bsm_context_destroy(bare);
}

static void names_of_activations(struct test *t)
{
    for (int i = 0; i < BSM_ACT_COUNT; i++) CHECK(t, bsm_activation_from_name(bsm_activation_name(i)) == i);
    CHECK(t, bsm_activation_name(-1) == NULL && bsm_activation_name(BSM_ACT_COUNT) == NULL);
    CHECK(t, bsm_activation_from_name("Silu") == -1 && bsm_activation_from_name(NULL) == -1 &&
                 bsm_activation_from_name("silu") == BSM_ACT_SILU);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        TEST(other_pointers),
        TEST(other_group_rows), TEST(other_group_columns), TEST(panels_lie_apart),
        TEST(other_shapes),
        TEST(workspaces),
        TEST(workspace_is_enough),
        TEST(one_plan_in_several_threads),
        TEST(running_allocates_nothing),
        TEST(every_allocation_fails_once),
        TEST(workspace_that_cannot_grow),
        TEST(describes_like_snprintf),
        TEST(portable_on_request),
        TEST(forced_kernels),
        TEST(names_of_activations),
    };
    return TEST_MAIN(argc, argv, cases);
}
