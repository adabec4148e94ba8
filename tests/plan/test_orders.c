/* Which order of sums a plan has: one for a pair of formats and the features of a CPU, whatever M is; the portable one
 * on request. */
#include "small_product.h"
#include "test.h"

#include "core/core.h"
#include "cpu/table.h"

static const struct bsmi_kernel *kernel_named(const char *description)
{
    for (int i = 0; i < bsmi_kernel_count; i++) {
        char word[80];
        snprintf(word, sizeof word, "kernel %s,", bsmi_kernels[i].name);
        if (strstr(description, word) != NULL) return &bsmi_kernels[i];
    }
    return NULL;
}

/* The kernel of a plan for M rows, which must say its family's order. */
static const struct bsmi_kernel *planned(struct test *t, bsm_context *context, struct small_product *x, int64_t m,
                                         bsm_order order)
{
    char text[1024];
    bsm_plan *plan = NULL;
    x->a.rows = x->c.rows = x->d.rows = m;
    x->call.order = order;
    if (bsm_plan_create(context, &x->call, &plan) != BSM_OK) FAIL(t, "%s", bsm_last_error());
    bsm_plan_describe(plan, text, sizeof text);
    bsm_plan_destroy(plan);
    const struct bsmi_kernel *kernel = kernel_named(text);
    char says[256];
    CHECK(t, kernel != NULL);
    snprintf(says, sizeof says, ", order: %s; ", bsmi_family_order(kernel->family));
    if (strstr(text, says) == NULL) FAIL(t, "\"%s\", without \"%s\"", text, says);
    return kernel;
}

/* Where the format has none. */
static void without_scales(bsm_matrix *m)
{
    if (bsm_format_get((int)m->format)->block == 0) m->scales = NULL;
}

/* The family's kernels serve a pair the same way for one row and for many. */
static void check_pair(struct test *t, bsm_context *context, bsm_format a, bsm_format b)
{
    static const int64_t heights[] = { 1, 2, 3, 4, 5, 8, 9, 16, 17, 64, 65, 300, 100000 };
    struct small_product x;
    small_product_make(&x);
    x.a.format = a, x.b.format = b;
    x.call.beta = NULL, x.call.c = NULL;
    void **const places[] = { &x.a.data, &x.b.data, &x.d.data, &x.a.scales, &x.b.scales };
    for (uintptr_t i = 0; i < 5; i++) *places[i] = (void *)((i + 1) << 40);      /* plans read no data */
    without_scales(&x.a), without_scales(&x.b);
    const struct bsmi_kernel *first = planned(t, context, &x, 1, BSM_ORDER_K);
    const struct bsmi_kernel *portable = planned(t, context, &x, 1, BSM_ORDER_PORTABLE);
    CHECK(t, bsmi_family_is_portable(portable->family));
    for (size_t i = 0; i < sizeof heights / sizeof heights[0]; i++)
        for (int order = 0; order < BSM_ORDER_COUNT; order++) {
            const struct bsmi_kernel *k = planned(t, context, &x, heights[i], (bsm_order)order);
            const enum bsmi_family wanted = order == BSM_ORDER_PORTABLE ? portable->family : first->family;
            if (k->family == wanted) continue;
            FAIL(t, "%s x %s, order %s, features %x: %lld rows by %s, in another order than one row",
                 bsm_format_get((int)a)->name, bsm_format_get((int)b)->name, bsm_order_name(order),
                 (unsigned)context->cpu_features, (long long)heights[i], k->name);
        }
}

static uint32_t all_features(void)
{
    uint32_t features = 0;
    for (int i = 0; i < bsmi_kernel_count; i++) features |= bsmi_kernels[i].needs;
    return features;
}

/* Every set of features that kernels ask for, whether or not this CPU has them: plans look at these alone. */
static void one_order_for_every_m(struct test *t)
{
    static const bsm_format pairs[][2] = {
        { BSM_MXFP8_E4M3, BSM_MXFP8_E5M2 }, { BSM_MXFP6_E3M2, BSM_NVFP4 },      { BSM_MXFP4, BSM_MXFP4 },
        { BSM_NVFP4, BSM_NVFP4 },           { BSM_MXFP4_BLOCK16, BSM_MXFP4 },   { BSM_MXINT8, BSM_MXINT8 },
        { BSM_FORMAT_BF16, BSM_MXFP4 },     { BSM_FORMAT_FP16, BSM_NVFP4 },     { BSM_MXFP6_E2M3, BSM_MXFP4 },
        { BSM_FORMAT_FP32, BSM_MXFP4 },     { BSM_MXFP8_E4M3, BSM_FORMAT_FP32 }, { BSM_FORMAT_BF16, BSM_FORMAT_BF16 },
    };
    const uint32_t all = all_features();
    bsm_context *context = NULL;
    CHECK(t, bsm_context_create(NULL, &context) == BSM_OK);
    const uint32_t here = context->cpu_features;
    for (uint32_t set = all;; set = (set - 1) & all) {
        context->cpu_features = set;
        for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) check_pair(t, context, pairs[i][0], pairs[i][1]);
        if (set == 0) break;
    }
    const uint32_t chosen[] = { here, all };
    for (int set = 0; set < 2; set++) {
        context->cpu_features = chosen[set];
        for (int a = 1; a < BSM_FORMAT_COUNT; a++)
            for (int b = 1; b < BSM_FORMAT_COUNT; b++) check_pair(t, context, (bsm_format)a, (bsm_format)b);
    }
    context->cpu_features = here;
    bsm_context_destroy(context);
}

/* Whatever the features, the portable order has the same family: its bits are those of every CPU. */
static void portable_is_one_order(struct test *t)
{
    bsm_context *context = NULL;
    CHECK(t, bsm_context_create(NULL, &context) == BSM_OK);
    const uint32_t here = context->cpu_features;
    for (int a = 1; a < BSM_FORMAT_COUNT; a++)
        for (int b = 1; b < BSM_FORMAT_COUNT; b++) {
            struct small_product x;
            small_product_make(&x);
            x.a.format = (bsm_format)a, x.b.format = (bsm_format)b;
            without_scales(&x.a), without_scales(&x.b);
            context->cpu_features = all_features();
            const enum bsmi_family family = planned(t, context, &x, SMALL_M, BSM_ORDER_PORTABLE)->family;
            context->cpu_features = 0;
            CHECK(t, planned(t, context, &x, SMALL_M, BSM_ORDER_PORTABLE)->family == family);
            CHECK(t, planned(t, context, &x, SMALL_M, BSM_ORDER_K)->family == family);
        }
    context->cpu_features = here;
    bsm_context_destroy(context);
}

/* A forced kernel runs in its own order, or is refused by name where another one is asked for. */
static void forced_kernels(struct test *t)
{
    bsm_context *context = NULL;
    CHECK(t, bsm_context_create(NULL, &context) == BSM_OK);
    const uint32_t here = context->cpu_features;
    context->cpu_features = all_features();
    for (int i = 0; i < bsmi_kernel_count; i++) {
        struct small_product x;
        small_product_make(&x);
        if (!bsmi_kernels[i].serves(x.a.format, x.b.format)) x.a.format = x.b.format = BSM_MXFP4;
        if (!bsmi_kernels[i].serves(x.a.format, x.b.format)) x.a.format = x.b.format = BSM_MXINT8;
        if (!bsmi_kernels[i].serves(x.a.format, x.b.format)) x.a.format = x.b.format = BSM_MXFP6_E2M3;
        if (!bsmi_kernels[i].serves(x.a.format, x.b.format)) x.a.format = x.b.format = BSM_NVFP4;
        CHECK(t, bsm_context_force_kernel(context, i) == BSM_OK);
        CHECK(t, planned(t, context, &x, SMALL_M, BSM_ORDER_K) == &bsmi_kernels[i]);
        if (bsmi_family_is_portable(bsmi_kernels[i].family)) {
            CHECK(t, planned(t, context, &x, SMALL_M, BSM_ORDER_PORTABLE) == &bsmi_kernels[i]);
            continue;
        }
        x.call.order = BSM_ORDER_PORTABLE;
        CHECK(t, bsm_supported(context, &x.call) == BSM_EUNSUPPORTED);
        CHECK(t, strstr(bsm_last_error(), bsmi_kernels[i].name) != NULL
                     && strstr(bsm_last_error(), "product->order is BSM_ORDER_PORTABLE") != NULL);
    }
    context->cpu_features = here;
    bsm_context_destroy(context);
}

static void names(struct test *t)
{
    CHECK(t, strcmp(bsm_order_name(BSM_ORDER_PORTABLE), "portable") == 0);
    for (int i = 0; i < BSM_ORDER_COUNT; i++) CHECK(t, bsm_order_from_name(bsm_order_name(i)) == i);
    CHECK(t, bsm_order_name(BSM_ORDER_COUNT) == NULL && bsm_order_name(-1) == NULL);
    CHECK(t, bsm_order_from_name("cpu") == -1 && bsm_order_from_name(NULL) == -1);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(one_order_for_every_m), TEST(portable_is_one_order),
                                              TEST(forced_kernels), TEST(names) };
    return TEST_MAIN(argc, argv, cases);
}
