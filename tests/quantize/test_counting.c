/* Statistics of the kernels that this machine runs against those of block.c, bit for bit: bytes, scales and every
 * field. */
#include "blockscale.h"
#include "core/core.h"
#include "test.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

struct problem {
    bsm_format format;
    bsm_real type;
    int64_t rows, columns, row_stride, column_stride;
    bsm_packing packing;
    bsm_scale_layout layout;
    bsm_quantize_options options;
    bsm_tensor_scale_use use;
    float tensor_scale;
};

struct result {
    int64_t data_bytes, scale_bytes;
    unsigned char *data, *scales;
    float tensor_scale;
    bsm_quantize_stats stats;
};

static bsm_context *context_of(uint32_t features, int threads)
{
    const bsm_context_options options = {
        .struct_size = sizeof options, .threads = threads, .cpu_mask = features, .portable_only = features == 0
    };
    bsm_context *context = NULL;
    if (bsm_context_create(&options, &context) != BSM_OK) abort();
    return context;
}

static struct result quantize(struct test *t, bsm_context *context, const struct problem *p, const void *numbers)
{
    struct result r = { .tensor_scale = p->tensor_scale, .stats = { .struct_size = sizeof r.stats } };
    bsm_matrix m = { .struct_size = sizeof m,
                     .format = p->format,
                     .rows = p->rows,
                     .columns = p->columns,
                     .packing = p->packing,
                     .scale_layout = p->layout,
                     .tensor_scale = &r.tensor_scale,
                     .tensor_scale_use = p->use };
    const bsm_real_matrix source = { .struct_size = sizeof source,
                                     .type = p->type,
                                     .rows = p->rows,
                                     .columns = p->columns,
                                     .row_stride = p->row_stride,
                                     .column_stride = p->column_stride,
                                     .data = (void *)(uintptr_t)numbers };
    CHECK(t,
          bsm_matrix_data_bytes(&m, &r.data_bytes) == BSM_OK && bsm_matrix_scale_bytes(&m, &r.scale_bytes) == BSM_OK);
    m.data = r.data = guarded_at_end((size_t)r.data_bytes, 64, 0xa5);
    r.scales = guarded_at_end((size_t)r.scale_bytes, 64, 0xa5);
    m.scales = p->packing == BSM_PACKING_GGUF ? NULL : r.scales; /* whose scales lie in the blocks */
    if (bsm_quantize(context, &source, &p->options, &m, &r.stats) != BSM_OK) FAIL(t, "%s", bsm_last_error());
    return r;
}

static void free_result(struct result *r) { guarded_free(r->data), guarded_free(r->scales); }

static bool same(const void *a, const void *b, size_t bytes) { return memcmp(a, b, bytes) == 0; }

static void compare(struct test *t, const struct problem *p, const char *how, const struct result *got,
                    const struct result *want)
{
    const bsm_quantize_stats *g = &got->stats, *w = &want->stats;
    char what[256];
    snprintf(what, sizeof what, "%s, %s of %s, %" PRId64 " x %" PRId64 ", recipe %s, nonfinite %d, tensor scale %a%s",
             how, bsm_format_get((int)p->format)->name, bsm_real_name((int)p->type), p->rows, p->columns,
             bsm_recipe_name((int)p->options.recipe), (int)p->options.nonfinite, (double)want->tensor_scale,
             p->use == BSM_TENSOR_SCALE_DIVIDES ? " divides" : "");
    if (!same(got->data, want->data, (size_t)got->data_bytes)) FAIL(t, "%s: codes differ", what);
    if (!same(got->scales, want->scales, (size_t)got->scale_bytes)) FAIL(t, "%s: scales differ", what);
    if (!same(&got->tensor_scale, &want->tensor_scale, sizeof(float))) FAIL(t, "%s: the tensor scale differs", what);
    if (!same(&g->signal, &w->signal, sizeof(double)) || !same(&g->noise, &w->noise, sizeof(double)))
        FAIL(t, "%s: signal %a, want %a; noise %a, want %a", what, g->signal, w->signal, g->noise, w->noise);
    if (g->saturated_elements != w->saturated_elements || g->flushed_blocks != w->flushed_blocks ||
        g->nan_blocks != w->nan_blocks)
        FAIL(t,
             "%s: %" PRId64 " saturated, %" PRId64 " flushed, %" PRId64 " NaN; want %" PRId64 ", %" PRId64 ", %" PRId64,
             what, g->saturated_elements, g->flushed_blocks, g->nan_blocks, w->saturated_elements, w->flushed_blocks,
             w->nan_blocks);
    if (!same(g, w, sizeof *g)) FAIL(t, "%s: a field differs: amax %a, want %a", what, g->amax, w->amax);
}

/* Numbers ---------------------------------------------------------------------------------------------------------- */

/* Blocks of all sizes; subnormal ones, zeros, and where `wild` NaN and infinity, here and there. */
static float draw(struct test *t, float size, bool wild)
{
    const int64_t kind = rnd_below(t, 400);
    if (kind == 0) return 0x1.8p-140F * (float)rnd_normal(t);
    if (kind < 4) return rnd_below(t, 2) == 0 ? 0.0F : -0.0F;
    if (kind == 4 && wild) return rnd_below(t, 2) == 0 ? NAN : -INFINITY;
    return size * (float)rnd_normal(t);
}

static void fill(struct test *t, const struct problem *p, int64_t count, bool wild, void *numbers)
{
    float size = 1;
    for (int64_t i = 0; i < count; i++) {
        if (i % 48 == 0) {
            static const float sizes[] = { 1, 0.02F, 30, 0x1p-30F, 0x1p-120F, 0, 0x1.fp125F, 0x1p-8F };
            size = sizes[rnd_below(t, 8)];
            if (p->type == BSM_REAL_FP16 && !(size < 100)) size = 100;
        }
        const float x = draw(t, size, wild);
        uint16_t narrow = (uint16_t)bsm_element_encode(p->type == BSM_REAL_FP16 ? BSM_FP16 : BSM_BF16, (double)x,
                                                       BSM_ROUND_NEAREST_EVEN, false, 0);
        if (p->type == BSM_REAL_FP32) ((float *)numbers)[i] = x;
        else ((uint16_t *)numbers)[i] = narrow;
    }
}

/* Problems --------------------------------------------------------------------------------------------------------- */

static bsm_packing some_packing(struct test *t, int bits)
{
    static const bsm_packing of_4[] = { BSM_PACKING_LOW_FIRST, BSM_PACKING_HIGH_FIRST, BSM_PACKING_BYTES };
    if (bits == 4) return of_4[rnd_below(t, 3)];
    return bits == 6 && rnd_below(t, 2) == 0 ? BSM_PACKING_BIT_STREAM : BSM_PACKING_BYTES;
}

static bsm_scale_layout some_layout(struct test *t)
{
    static const bsm_layout kinds[] = { BSM_LAYOUT_LINEAR, BSM_LAYOUT_LINEAR, BSM_LAYOUT_128X4, BSM_LAYOUT_8X4 };
    return (bsm_scale_layout){ .kind = kinds[rnd_below(t, 4)] };
}

/* With a tensor scale: none, one that is given, or computed where that can be. */
static void some_tensor_scale(struct test *t, struct problem *p, bool ue4m3)
{
    static const float given[] = { 1, 0.75F, 0.01F, 3, 0x1.2345p20F };
    p->use = rnd_below(t, 2) == 0 ? BSM_TENSOR_SCALE_MULTIPLIES : BSM_TENSOR_SCALE_DIVIDES;
    p->tensor_scale = given[rnd_below(t, 5)];
    p->options.tensor_scale = ue4m3 && rnd_below(t, 2) == 0 ? BSM_TENSOR_SCALE_COMPUTED : BSM_TENSOR_SCALE_GIVEN;
}

static struct problem some_problem(struct test *t, bsm_format format)
{
    static const int64_t columns[] = { 1, 17, 32, 40, 256, 300, 512, 1000, 8192 + 256 + 7 };
    const bsm_format_info *info = bsm_format_get((int)format);
    const bool ue4m3 = info->scale == BSM_UE4M3;
    struct problem p = { .format = format,
                         .type = (bsm_real)rnd_below(t, 3),
                         .rows = rnd_between(t, 1, 40),
                         .column_stride = 1,
                         .options = { .struct_size = sizeof p.options },
                         .layout = some_layout(t) };
    p.columns = columns[rnd_below(t, 9)];
    if (p.columns > 1000) p.rows = rnd_between(t, 1, 18);
    p.row_stride = p.columns + rnd_below(t, 2) * 5;
    if (rnd_below(t, 4) == 0) p.column_stride = p.rows, p.row_stride = 1;
    p.packing = some_packing(t, bsm_element_get((int)info->element)->bits);
    if ((format == BSM_MXFP4 || format == BSM_NVFP4) && rnd_below(t, 3) == 0) {
        p.packing = BSM_PACKING_GGUF;
        p.layout.kind = format == BSM_MXFP4 ? BSM_LAYOUT_GGUF_MXFP4 : BSM_LAYOUT_GGUF_NVFP4;
    }
    p.options.recipe = ue4m3 ? BSM_RECIPE_NEAREST : (bsm_recipe)rnd_between(t, BSM_RECIPE_FLOOR, BSM_RECIPE_EVEN);
    if (!ue4m3 && rnd_below(t, 4) == 0) p.options.recipe = BSM_RECIPE_MSE;
    p.options.nonfinite = rnd_below(t, 2) == 0 ? BSM_NONFINITE_PROPAGATE : BSM_NONFINITE_SATURATE;
    some_tensor_scale(t, &p, ue4m3);
    return p;
}

static void check_problem(struct test *t, const struct problem *p, const uint32_t *masks, int mask_count,
                          int64_t *saturated)
{
    const int64_t count = (p->rows - 1) * p->row_stride + (p->columns - 1) * p->column_stride + 1;
    void *numbers = guarded_at_end((size_t)count * bsm_real_bytes((int)p->type), bsm_real_bytes((int)p->type), 0);
    bsm_context *portable = context_of(0, 1);
    fill(t, p, count, rnd_below(t, 3) == 0, numbers);
    struct result want = quantize(t, portable, p, numbers);
    *saturated += want.stats.saturated_elements;
    for (int i = 0; i < mask_count; i++) {
        bsm_context *context = context_of(masks[i], i % 2 + 1);
        struct result got = quantize(t, context, p, numbers);
        compare(t, p, (masks[i] & BSM_CPU_AVX512) != 0 ? "avx512" : "avx2", &got, &want);
        free_result(&got);
        bsm_context_destroy(context);
    }
    free_result(&want);
    bsm_context_destroy(portable);
    guarded_free(numbers);
}

static void kernels_count_as_blocks_do(struct test *t)
{
    static const uint32_t known[] = { BSM_CPU_AVX2 | BSM_CPU_FMA, BSM_CPU_AVX2 | BSM_CPU_FMA | BSM_CPU_AVX512 };
    uint32_t masks[2];
    int mask_count = 0;
    int64_t saturated = 0;
    for (int i = 0; i < 2; i++)
        if ((known[i] & bsmi_cpu_detect(BSM_CPU_ALL)) == known[i]) masks[mask_count++] = known[i];
    if (mask_count == 0) {
        test_skip(t, "this CPU runs no kernel but the portable one");
        return;
    }
    for (int repeat = 0; repeat < 24; repeat++)
        for (int format = 0; format < BSM_FORMAT_COUNT; format++) {
            if (bsm_format_get(format) == NULL || bsm_format_get(format)->block == 0) continue;
            const struct problem p = some_problem(t, (bsm_format)format);
            check_problem(t, &p, masks, mask_count, &saturated);
        }
    CHECK(t, saturated > 1000);
}

/* A tensor scale follows from the largest of all bits of fp16 and bf16 that are a number. */
static void narrow_numbers_have_a_largest(struct test *t)
{
    bsm_context *const contexts[] = { context_of(BSM_CPU_ALL, 1), context_of(0, 1) };
    for (int repeat = 0; repeat < 3000; repeat++) {
        bsm_context *context = contexts[repeat / 2 % 2];
        const bsm_real type = repeat % 2 == 0 ? BSM_REAL_BF16 : BSM_REAL_FP16;
        const bsm_element element = type == BSM_REAL_BF16 ? BSM_BF16 : BSM_FP16;
        uint16_t numbers[64];
        double largest = 0;
        for (int i = 0; i < 64; i++) {
            numbers[i] = (uint16_t)(rnd_below(t, 8) == 0 ? rnd(t) | 0x7c00 : rnd(t) & 0x87ff);
            const double x = fabs((double)bsm_element_decode(element, numbers[i]));
            if (isfinite(x) && x > largest) largest = x;
        }
        const struct problem p = { .format = BSM_NVFP4,
                                   .type = type,
                                   .rows = 2,
                                   .columns = 32,
                                   .row_stride = 32,
                                   .column_stride = 1,
                                   .options = { .struct_size = sizeof p.options,
                                                .tensor_scale = BSM_TENSOR_SCALE_COMPUTED } };
        struct result r = quantize(t, context, &p, numbers);
        const float want = largest == 0 ? 1 : (float)fmax(0x1p-126, largest / 2688);
        if (!same(&r.tensor_scale, &want, sizeof want))
            FAIL(t, "largest %a: tensor scale %a", largest, (double)r.tensor_scale);
        free_result(&r);
    }
    bsm_context_destroy(contexts[0]), bsm_context_destroy(contexts[1]);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(kernels_count_as_blocks_do), TEST(narrow_numbers_have_a_largest) };
    return TEST_MAIN(argc, argv, cases);
}
