/* Every rule of bsm_matmul, broken one at a time: the status, and what the sentence names.  D stays as it was. */
#include "small_product.h"
#include "test.h"

#include <math.h>
#include <stdlib.h>

static bsm_context *make_context(struct test *t)
{
    bsm_context *context = NULL;
    CHECK(t, bsm_context_create(NULL, &context) == BSM_OK);
    return context;
}

static bool d_untouched(const struct small_product *x)
{
    struct small_product fresh;
    small_product_make(&fresh);
    return memcmp(x->memory.d, fresh.memory.d, sizeof x->memory.d) == 0 && x->amax == fresh.amax
        && memcmp(x->memory.d_scales, fresh.memory.d_scales, sizeof x->memory.d_scales) == 0;
}

/* words: separated by "|", all of them must be in the sentence. */
static void check_sentence(struct test *t, const char *rule, const char *call, bsm_status found, bsm_status wanted,
                           const char *words)
{
    char copy[256];
    if (found != wanted) {
        FAIL(t, "%s: %s gave status %d, not %d (%s)", rule, call, (int)found, (int)wanted,
             found == BSM_OK ? "no error" : bsm_last_error());
        return;
    }
    snprintf(copy, sizeof copy, "%s", words);
    for (char *rest = copy, *word; (word = strsep(&rest, "|")) != NULL;)
        if (strstr(bsm_last_error(), word) == NULL)
            FAIL(t, "%s: %s said \"%s\", without \"%s\"", rule, call, bsm_last_error(), word);
}

/* The product in x breaks a rule. */
static void expect_failure(struct test *t, const struct small_product *x, const char *rule, bsm_status status,
                           const char *words)
{
    bsm_context *context = make_context(t);
    bsm_plan *plan = (bsm_plan *)(uintptr_t)1;
    check_sentence(t, rule, "bsm_supported", bsm_supported(context, &x->call), status, words);
    check_sentence(t, rule, "bsm_plan_create", bsm_plan_create(context, &x->call, &plan), status, words);
    CHECK(t, plan == NULL);
    check_sentence(t, rule, "bsm_multiply", bsm_multiply(context, &x->call), status, words);
    if (!d_untouched(x)) FAIL(t, "%s: D was touched", rule);
    bsm_context_destroy(context);
}

static void expect_success(struct test *t, const struct small_product *x, const char *what)
{
    bsm_context *context = make_context(t);
    if (bsm_supported(context, &x->call) != BSM_OK) FAIL(t, "%s: bsm_supported: %s", what, bsm_last_error());
    if (bsm_multiply(context, &x->call) != BSM_OK) FAIL(t, "%s: bsm_multiply: %s", what, bsm_last_error());
    bsm_context_destroy(context);
}

/* RULE(change, status, words): a valid product with one change. */
#define RULE(change, status, words) \
    do { \
        struct small_product x; \
        small_product_make(&x); \
        change; \
        expect_failure(t, &x, #change, status, words); \
    } while (0)
#define FINE(change) \
    do { struct small_product x; small_product_make(&x); change; expect_success(t, &x, #change); } while (0)

static void shapes(struct test *t)
{
    FINE((void)x);
    RULE(x.b.columns = 32, BSM_EINVAL, "a->columns=64|b->columns=32|same K");
    RULE((x.b.columns = 96, x.b.pitch = 96), BSM_EINVAL, "a->columns=64|b->columns=96|same K");
    RULE(x.d.rows = 3, BSM_EINVAL, "d->rows=3|4 rows of A");
    RULE(x.d.columns = 5, BSM_EINVAL, "d->columns=5|6 columns");
    RULE(x.call.gate = BSM_GATE_SPLIT, BSM_EINVAL, "d->columns=6|3 columns|gated");
    RULE((x.call.gate = BSM_GATE_INTERLEAVED, x.b.rows = 5, x.c.columns = 5), BSM_EINVAL, "b->rows=5|even");
    RULE(x.c.rows = 3, BSM_EINVAL, "c is 3 x 6|4 x 6");
    RULE(x.c.columns = 3, BSM_EINVAL, "c is 4 x 3|4 x 6");
    RULE((x.call.gate = BSM_GATE_SPLIT, x.d.columns = 3, x.c.columns = 3), BSM_EINVAL, "c is 4 x 3|before gating");
    RULE(x.a.rows = -1, BSM_EINVAL, "a->rows=-1|negative");
    RULE(x.b.columns = -1, BSM_EINVAL, "b->columns=-1|negative");
    RULE(x.d.batch = -2, BSM_EINVAL, "d->batch=-2|negative");
    FINE((x.call.gate = BSM_GATE_SPLIT, x.d.columns = 3));
}

static void operands(struct test *t)
{
    RULE(x.call.a = NULL, BSM_EINVAL, "a is NULL");
    RULE(x.call.b = NULL, BSM_EINVAL, "b is NULL");
    RULE(x.call.d = NULL, BSM_EINVAL, "d is NULL");
    RULE(x.a.data = NULL, BSM_EINVAL, "a->data is NULL");
    RULE(x.b.scales = NULL, BSM_EINVAL, "b->scales is NULL");
    RULE(x.d.data = NULL, BSM_EINVAL, "d->data is NULL");
    RULE(x.d.scales = x.memory.d_scales, BSM_EINVAL, "d->scales is given|bf16");
    RULE(x.a.format = BSM_FORMAT_NONE, BSM_EINVAL, "a->format=0");
    RULE(x.a.format = BSM_FORMAT_COUNT, BSM_EINVAL, "a->format=17");
    RULE(x.a.packing = BSM_PACKING_HIGH_FIRST, BSM_EINVAL, "a->packing|mxfp8_e4m3");
    RULE(x.b.pitch = 63, BSM_EINVAL, "b->pitch=63|columns=64");
    RULE((x.b.format = BSM_MXFP4, x.b.pitch = 65), BSM_EALIGN, "b->pitch=65|multiple of 2");
    RULE(x.d.data = (char *)x.memory.d + 1, BSM_EALIGN, "d->data|aligned");
    RULE(x.a.tensor_scale = (float *)(void *)((char *)x.alpha + 1), BSM_EALIGN, "a->tensor_scale|aligned");
    RULE((x.a.tensor_scale = &x.ta, x.a.tensor_scale_use = (bsm_tensor_scale_use)2), BSM_EINVAL,
         "a->tensor_scale_use=2");
    RULE(x.a.scale_layout.kind = BSM_LAYOUT_COUNT, BSM_EINVAL, "a->scale_layout.kind");
    RULE(x.a.scale_layout.kind = BSM_LAYOUT_GGUF_MXFP4, BSM_EINVAL, "a->scale_layout|gguf");
    RULE((x.a.columns = x.b.columns = INT64_MAX / 2), BSM_EOVERFLOW, "a|columns=4611686018427387903");
    RULE(x.c.format = BSM_FORMAT_E4M3, BSM_EINVAL, "c->format=e4m3|fp32, bf16 or fp16");
    RULE((x.c.tensor_scale = &x.td), BSM_EINVAL, "c->tensor_scale|beta");
    RULE(x.c.data = NULL, BSM_EINVAL, "c->data is NULL");
}

static void choices(struct test *t)
{
    RULE(x.call.alpha_per = BSM_PER_COUNT, BSM_EINVAL, "alpha_per=4|0 to 3");
    RULE(x.call.activation = BSM_ACT_COUNT, BSM_EINVAL, "activation=6|0 to 5");
    RULE(x.call.activation = (bsm_activation)-1, BSM_EINVAL, "activation=-1");
    RULE(x.call.gate = BSM_GATE_COUNT, BSM_EINVAL, "gate=3|0 to 2");
    RULE(x.call.d_recipe = BSM_RECIPE_COUNT, BSM_EINVAL, "d_recipe=8");
    RULE(x.call.d_nonfinite = (bsm_nonfinite)2, BSM_EINVAL, "d_nonfinite=2");
    RULE(x.call.activation = BSM_ACT_SWIGLU_CLAMPED, BSM_EINVAL, "swiglu_clamped|gate");
    RULE(x.d.format = BSM_FORMAT_E2M1, BSM_EUNSUPPORTED, "d->format=e2m1|block format");
    RULE(x.call.d_recipe = BSM_RECIPE_FLOOR, BSM_EINVAL, "d_recipe=floor|bf16");
    RULE(x.call.d_no_saturate = true, BSM_EINVAL, "d_no_saturate|bf16");
    RULE(x.call.alpha = (float *)(void *)((char *)x.alpha + 2), BSM_EALIGN, "alpha|aligned");
    RULE(x.call.beta = (float *)(void *)((char *)x.alpha + 2), BSM_EALIGN, "beta|aligned");
    RULE(x.call.amax = (float *)(void *)((char *)x.alpha + 2), BSM_EALIGN, "amax|aligned");
}

static void biases(struct test *t)
{
    RULE(x.call.bias_type = BSM_REAL_FP64, BSM_EINVAL, "bias_type=3|fp32, bf16 or fp16");
    RULE(x.call.bias_per = BSM_PER_TENSOR, BSM_EINVAL, "bias_per=0|row or per column");
    RULE(x.call.bias_per = BSM_PER_BATCH, BSM_EINVAL, "bias_per=3");
    RULE(x.call.bias_batch_pitch = -1, BSM_EINVAL, "bias_batch_pitch=-1|negative");
    RULE(x.call.bias = (char *)x.bias + 2, BSM_EALIGN, "bias|aligned");
    FINE((x.call.bias_type = BSM_REAL_BF16, x.call.bias = (char *)x.bias + 2));
    RULE((small_product_group(&x), x.call.bias_per = BSM_PER_ROW, x.call.bias_batch_pitch = 4), BSM_EINVAL,
         "bias_batch_pitch=4|row of A");
    RULE((small_product_group(&x), x.call.bias_batch_pitch = INT64_MAX / 2), BSM_EOVERFLOW,
         "bias_batch_pitch=4611686018427387903");
    /* not looked at */
    FINE((x.call.bias = NULL, x.call.bias_per = BSM_PER_TENSOR, x.call.bias_type = BSM_REAL_COUNT));
}

static void batches_and_groups(struct test *t)
{
    RULE((x.a.batch = 2, x.b.batch = 3, x.d.batch = 3), BSM_EINVAL, "a->batch=2|b->batch=3|broadcast");
    RULE((x.a.batch = 2), BSM_EINVAL, "d->batch=1|2");
    RULE((x.b.batch = 3, x.d.batch = 3, x.c.batch = 2), BSM_EINVAL, "c->batch=2|3|broadcast");
    RULE(x.c.batch = 2, BSM_EINVAL, "c->batch=2");
    FINE((x.a.batch = 2, x.d.batch = 2));
    FINE(small_product_group(&x));
    RULE((small_product_group(&x), x.call.groups = -1), BSM_EINVAL, "groups=-1|negative");
    RULE((small_product_group(&x), x.call.group_rows = NULL), BSM_EINVAL, "group_rows is NULL|groups=3");
    RULE((small_product_group(&x), x.b.batch = 2), BSM_EINVAL, "b->batch=2|3 groups");
    RULE((small_product_group(&x), x.a.batch = 2), BSM_EINVAL, "a->batch=2|rows of all groups");
    RULE((small_product_group(&x), x.d.batch = 3), BSM_EINVAL, "d->batch=3");
    RULE((small_product_group(&x), x.c.batch = 3), BSM_EINVAL, "c->batch=3");
    RULE((small_product_group(&x), x.group_rows[1] = -1), BSM_EINVAL, "group_rows[1]=-1|negative");
    RULE((small_product_group(&x), x.group_rows[1] = 1), BSM_EINVAL, "add up to 5|4 rows of A");
    RULE((small_product_group(&x), x.group_rows[1] = INT64_MAX), BSM_EOVERFLOW, "group_rows|number 1");
}

static void groups_along_k(struct test *t)
{
#define ALONG_K(change) (small_product_group_columns(&x), change)
    FINE(small_product_group_columns(&x));
    RULE(ALONG_K(x.call.groups = -3), BSM_EINVAL, "groups=-3|negative");
    RULE(ALONG_K(x.call.group_columns = NULL), BSM_EINVAL, "group_rows is NULL|group_columns|groups=3");
    RULE(ALONG_K(x.call.group_rows = x.group_rows), BSM_EINVAL, "group_rows=|group_columns=|one of both");
    RULE(ALONG_K((x.a.batch = 3)), BSM_EINVAL, "a->batch=3|one matrix|columns of all groups");
    RULE(ALONG_K((x.b.batch = 3)), BSM_EINVAL, "b->batch=3|one matrix|columns of all groups");
    RULE(ALONG_K(x.d.batch = 2), BSM_EINVAL, "d->batch=2|matrix for each group|3");
    RULE(ALONG_K(x.c.batch = 2), BSM_EINVAL, "c->batch=2|matrix for each group|broadcast");
    FINE(ALONG_K(x.c.batch = 3));
    FINE(ALONG_K((x.call.bias_per = BSM_PER_ROW, x.call.bias_batch_pitch = 4)));
    RULE(ALONG_K(x.group_columns[1] = -32), BSM_EINVAL, "group_columns[1]=-32|negative");
    RULE(ALONG_K((x.group_columns[1] = 16, x.group_columns[2] = 48)), BSM_EINVAL,
         "group_columns[2]=48|behind 16 columns|multiples of 32");
    RULE(ALONG_K((x.group_columns[2] = 33)), BSM_EINVAL, "group_columns add up to 65|64 columns");
    RULE(ALONG_K((x.group_columns[2] = 0)), BSM_EINVAL, "group_columns add up to 32|64 columns");
    RULE(ALONG_K((x.group_columns[1] = 64, x.group_columns[2] = INT64_MAX)), BSM_EOVERFLOW, "group_columns|number 2");
    FINE(ALONG_K((x.a.columns = x.b.columns = 49, x.group_columns[2] = 17)));          /* the last is short */
    FINE(ALONG_K((x.a.columns = x.b.columns = 17, x.group_columns[0] = 17, x.group_columns[1] = 0,
                  x.group_columns[2] = 0)));
    RULE((x.call.group_columns = x.group_columns, x.call.groups = 3), BSM_EINVAL, "d->batch=1|3");
    RULE(ALONG_K(x.call.amax = (float *)(void *)(x.group_columns + 2)), BSM_EINVAL, "amax|group_columns");
    FINE((x.call.group_columns = x.group_columns));                                  /* no groups: not looked at */
#undef ALONG_K
}

/* Offsets to the byte: touching is allowed, one byte less is not. */
static void overlaps(struct test *t)
{
    enum { D_BYTES = SMALL_M * SMALL_N * 2, A_BYTES = SMALL_M * SMALL_K };
    RULE(x.d.data = x.memory.a, BSM_EINVAL, "d->data|overlaps|a->data");
    RULE(x.d.data = x.memory.a + A_BYTES - 2, BSM_EINVAL, "d->data|a->data");
    RULE(x.d.data = x.memory.b, BSM_EINVAL, "d->data|b->data");
    RULE(x.d.data = x.memory.a_scales, BSM_EINVAL, "d->data|a->scales");
    RULE((x.d.data = x.memory.b_scales), BSM_EINVAL, "d->data|b->scales");
    RULE(x.d.data = x.memory.c, BSM_EINVAL, "d->data|c->data|D may be C itself only");
    RULE(x.d.data = x.bias + 2, BSM_EINVAL, "d->data|bias");
    RULE((x.d.data = x.alpha + 5, x.call.alpha_per = BSM_PER_COLUMN), BSM_EINVAL, "d->data|alpha");
    RULE((x.d.tensor_scale = x.memory.d + 3), BSM_EINVAL, "d->data|d->tensor_scale");
    RULE(x.a.tensor_scale = x.memory.d + 1, BSM_EINVAL, "d->data|a->tensor_scale");
    RULE(x.call.beta = x.memory.d + 2, BSM_EINVAL, "d->data|beta");
    RULE(x.call.amax = x.memory.d + 1, BSM_EINVAL, "amax|d->data");
    RULE(x.call.amax = x.alpha, BSM_EINVAL, "amax|alpha");
    RULE(x.call.amax = &x.memory.c[1], BSM_EINVAL, "amax|c->data");
    RULE((x.d.format = BSM_MXFP8_E4M3, x.d.scales = x.memory.d), BSM_EINVAL, "d->scales|d->data");
    RULE((x.d.format = BSM_MXFP8_E4M3, x.d.scales = x.memory.a), BSM_EINVAL, "d->scales|a->data");
    RULE(
        (x.d.format = BSM_MXFP8_E4M3, x.d.scales = x.memory.d_scales, x.call.amax = (float *)(void *)x.memory.d_scales),
        BSM_EINVAL, "amax|d->scales");
    RULE((x.d.batch = 3, x.b.batch = 3, x.d.batch_pitch = SMALL_N), BSM_EINVAL, "d->batch_pitch|on one another");
    RULE((small_product_group(&x), x.call.amax = (float *)(void *)(x.group_rows + 2)), BSM_EINVAL, "amax|group_rows");
    FINE((x.call.bias_batch_pitch = INT64_MAX));                                    /* one matrix has no second bias */
    FINE((x.a.rows = x.c.rows = x.d.rows = 0, x.call.bias_batch_pitch = INT64_MAX / 2));
    FINE((x.d.data = x.memory.a + A_BYTES));                                        /* directly behind */
    FINE((x.b.data = (char *)x.memory.d + D_BYTES, x.b.rows = 1, x.d.columns = 1, x.c.columns = 1));
    FINE((x.d.data = x.bias + SMALL_N));
    FINE((x.d.data = x.alpha + 1));                                                 /* alpha is one number */
    FINE((x.d.tensor_scale = x.a.tensor_scale = &x.td));                            /* both are read */
    FINE((x.a.data = x.memory.b, x.a.scales = x.memory.b_scales));
}

/* D may be C: same data, format and pitches, and not gated. */
static void d_and_c(struct test *t)
{
    FINE((x.d.format = BSM_FORMAT_FP32, x.d.data = x.c.data));
    /* tight, and the same said aloud */
    FINE((x.d.format = BSM_FORMAT_FP32, x.d.data = x.c.data, x.d.pitch = SMALL_N));
    FINE((x.d.format = BSM_FORMAT_FP32, x.d.data = x.c.data, x.b.batch = x.c.batch = x.d.batch = 3));
    RULE((x.d.format = BSM_FORMAT_FP16, x.d.data = x.c.data), BSM_EINVAL, "d->data|c->data");
    RULE((x.d.format = BSM_FORMAT_FP32, x.d.data = x.c.data, x.d.pitch = SMALL_N + 1), BSM_EINVAL, "d->data|c->data");
    RULE((x.d.format = BSM_FORMAT_FP32, x.d.data = x.memory.c + 1), BSM_EINVAL, "d->data|c->data");
    RULE((x.d.format = BSM_FORMAT_FP32, x.d.data = x.c.data, x.b.batch = x.d.batch = 3), BSM_EINVAL, "d->data|c->data");
    RULE((x.d.format = BSM_FORMAT_FP32, x.d.data = x.c.data, x.d.columns = 3, x.call.gate = BSM_GATE_SPLIT), BSM_EINVAL,
         "d->data|c->data");
}

/* What only the data tells: bsm_supported reads none. */
static void data(struct test *t)
{
    static const float bad[] = { 0, -1, -0.0f, INFINITY, NAN };
    bsm_context *context = make_context(t);
    for (int i = 0; i < 5; i++)
        for (int which = 0; which < 3; which++) {
            static const char *const names[] = { "*a->tensor_scale", "*b->tensor_scale", "*d->tensor_scale" };
            struct small_product x;
            small_product_make(&x);
            bsm_matrix *const matrices[] = { &x.a, &x.b, &x.d };
            x.ta = bad[i];
            matrices[which]->tensor_scale = &x.ta;
            CHECK(t, bsm_supported(context, &x.call) == BSM_OK);
            check_sentence(t, names[which], "bsm_multiply", bsm_multiply(context, &x.call), BSM_EINVAL, names[which]);
            CHECK(t, d_untouched(&x));
        }
    struct small_product x;
    small_product_make(&x);
    x.call.c = NULL;
    CHECK(t, bsm_supported(context, &x.call) == BSM_OK);
    check_sentence(t, "no C", "bsm_multiply", bsm_multiply(context, &x.call), BSM_EINVAL, "product->c is NULL|beta=1");
    CHECK(t, d_untouched(&x));
    x.beta = -0.0f;
    CHECK(t, bsm_multiply(context, &x.call) == BSM_OK);
    bsm_context_destroy(context);
}

static void versions_of_the_structs(struct test *t)
{
    RULE(x.call.struct_size = 0, BSM_EINVAL, "product->struct_size is 0|sizeof");
    RULE(x.call.struct_size = 1 << 20, BSM_EINVAL, "product->struct_size is 1048576");
    RULE(x.a.struct_size = 3, BSM_EINVAL, "a->struct_size is 3");
    RULE(x.d.struct_size = 0, BSM_EINVAL, "d->struct_size is 0");
    /* An older caller, whose struct ended before groups: the missing fields are zero whatever lies behind. */
    FINE((x.call.struct_size = offsetof(bsm_matmul, groups), x.call.groups = -5));
    /* A newer caller: fine as long as what this library does not know is zero. */
    for (int bad = 0; bad < 2; bad++) {
        struct { struct small_product x; } old;
        struct { bsm_matmul call; int64_t more; } newer;
        small_product_make(&old.x);
        memset(&newer, 0, sizeof newer);
        newer.call = old.x.call;
        newer.call.struct_size = sizeof newer, newer.more = bad;
        bsm_context *context = make_context(t);
        const bsm_status status = bsm_multiply(context, &newer.call);
        if (bad) check_sentence(t, "newer", "bsm_multiply", status, BSM_EINVAL, "product|byte|does not know");
        else CHECK(t, status == BSM_OK);
        bsm_context_destroy(context);
    }
    bsm_context *context = make_context(t);
    struct small_product x;
    small_product_make(&x);
    bsm_plan *plan = NULL;
    check_sentence(t, "NULL", "bsm_supported", bsm_supported(context, NULL), BSM_EINVAL, "product is NULL");
    check_sentence(t, "NULL", "bsm_multiply", bsm_multiply(NULL, &x.call), BSM_EINVAL, "context is NULL");
    check_sentence(t, "NULL", "bsm_supported", bsm_supported(NULL, &x.call), BSM_EINVAL, "context is NULL");
    check_sentence(t, "NULL", "bsm_plan_create", bsm_plan_create(NULL, &x.call, &plan), BSM_EINVAL, "context is NULL");
    check_sentence(t, "NULL", "bsm_plan_create", bsm_plan_create(context, &x.call, NULL), BSM_EINVAL, "plan is NULL");
    bsm_context_destroy(context);
}

/* bsm_supported says what bsm_multiply does, over all triples of formats with gates, recipes and saturation. */
static void supported_is_true(struct test *t)
{
    int served = 0, refused = 0;
    bsm_context *context = make_context(t);
    for (int a = 0; a <= BSM_FORMAT_COUNT; a++)
        for (int b = 0; b <= BSM_FORMAT_COUNT; b++)
            for (int d = 0; d <= BSM_FORMAT_COUNT; d++) {
                struct small_product x;
                small_product_make(&x);
                const int choice = (int)rnd_below(t, 8);
                x.a.format = (bsm_format)a, x.b.format = (bsm_format)b, x.d.format = (bsm_format)d;
                const bsm_format_info *ia = bsm_format_get(a), *ib = bsm_format_get(b), *id = bsm_format_get(d);
                x.a.columns = x.b.columns = 32;
                if (ia == NULL || ia->block == 0) x.a.scales = NULL;
                if (ib == NULL || ib->block == 0) x.b.scales = NULL;
                if (id != NULL && id->block != 0) x.d.scales = x.memory.d_scales;
                if ((choice & 1) != 0) x.call.gate = BSM_GATE_SPLIT, x.d.columns = 3;
                if ((choice & 2) != 0) x.call.d_recipe = (bsm_recipe)rnd_below(t, BSM_RECIPE_COUNT);
                x.call.d_no_saturate = choice >= 6;
                const bsm_status said = bsm_supported(context, &x.call), done = bsm_multiply(context, &x.call);
                if (said != done)
                    FAIL(t, "formats %d, %d, %d: supported said %d, multiply %d", a, b, d, (int)said, (int)done);
                if (done == BSM_OK) served++;
                else refused++;
            }
    CHECK(t, served > 1000 && refused > 500);
    bsm_context_destroy(context);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        TEST(shapes),
        TEST(operands),
        TEST(choices),
        TEST(biases),
        TEST(batches_and_groups), TEST(groups_along_k),
        TEST(overlaps),
        TEST(d_and_c),
        TEST(data),
        TEST(versions_of_the_structs),
        TEST(supported_is_true),
    };
    return TEST_MAIN(argc, argv, cases);
}
