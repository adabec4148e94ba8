/* Products whose B is decoded by the GEMM kernel itself, against the same product by a kernel that is given decoded
 * rows: every byte of D's buffer, for any codes and scales.  Both sum in one order, so no number needs to be exact.
 *
 * GEMM_INSTANCE=FUNCTION: this instance alone, with one of its formats in turn. */
#include "cuda/harness/gpu.h"

#include <stdlib.h>

static const bsm_format formats[] = { BSM_MXFP4,      BSM_NVFP4,      BSM_MXFP8_E4M3, BSM_MXFP8_E5M2,
                                      BSM_MXFP6_E2M3, BSM_MXFP6_E3M2, BSM_MXINT8 };
/* TILES: every so many of the kernels that decode a format. */
enum { FORMATS = sizeof formats / sizeof formats[0], TILES = 3 };

static const bsm_scale_layout layouts[] = {
    { .kind = BSM_LAYOUT_LINEAR },
    { .kind = BSM_LAYOUT_128X4 },
    { .kind = BSM_LAYOUT_LINEAR, .pitch = 67 },
    { .kind = BSM_LAYOUT_DEEPGEMM },
};

/* A product; zeros ask for the plain thing. */
struct problem {
    int64_t m, n, k, batch, groups;
    bool b_broadcast;
    bsm_format a;      /* default: bf16 */
    bsm_format d;      /* default: fp32 */
    bsm_layout layout; /* of B's scales; default: any */
    int64_t scale_pitch; /* of linear ones of B; default: any */
    enum { USUAL, FAR, SPANNING, NAN_SCALES, ZEROS, ONE_FAR, FAR_AND_NAN, APART } scales;
    bool a_too;        /* A's scales are such, too */
    bool all_codes; /* NaN and infinity too */
    bool alpha, bias_per_row, c; /* alpha: of each row */
    bool one_alpha, bias_per_column;
    bool relu;         /* D is finished by a kernel of its own */
    bool stream;   /* B's codes of 6 bits, as the kernels for them want */
    int64_t d_odd; /* elements by which D's rows miss multiples of 16 bytes */
};

static bsm_layout layout_of(const struct problem *q) { return q->layout; }

static bsm_packing packing_of(bsm_format format)
{
    const int bits = bsm_element_get((int)bsm_format_get((int)format)->element)->bits;
    return bits == 4 ? BSM_PACKING_LOW_FIRST : bits == 6 ? BSM_PACKING_BYTES : BSM_PACKING_DEFAULT;
}

static void set_scales_of_row(struct test *t, struct operand *o, const struct problem *q, int64_t batch, int64_t row)
{
    const bool e8m0 = bsm_format_get((int)o->m.format)->scale == BSM_E8M0;
    const int64_t columns = bsm_matrix_scale_columns(&o->m), block = bsm_format_get((int)o->m.format)->block;
    for (int64_t s = 0; s < columns; s++) {
        const bool zero = q->scales == ZEROS && rnd_below(t, 2) == 0;
        for (int64_t k = s * block; zero && k < (s + 1) * block && k < o->m.columns; k++)
            bsm_matrix_set_code(&o->m, batch, row, k,
                                (uint32_t)rnd_below(t, 2)
                                    << (bsm_element_get((int)bsm_format_get((int)o->m.format)->element)->bits - 1));
        if (!e8m0) {
            if (q->scales == NAN_SCALES && rnd_below(t, 40) == 0) bsm_matrix_set_scale(&o->m, batch, row, s, 0x7f);
            else bsm_matrix_set_scale(&o->m, batch, row, s, (uint8_t)rnd_below(t, 0x7f));
            continue;
        }
        if (q->scales == FAR || q->scales == FAR_AND_NAN)
            bsm_matrix_set_scale(&o->m, batch, row, s,
                                 (uint8_t)(row % 3 == 0   ? 3 + rnd_below(t, 8)
                                           : row % 3 == 1 ? 240 + rnd_below(t, 8)
                                                          : 120));
        if (q->scales == APART)
            bsm_matrix_set_scale(&o->m, batch, row, s,
                                 (uint8_t)(row % 2 == 0 ? 1 + rnd_below(t, 4) : 249 + rnd_below(t, 4)));
        if (q->scales == SPANNING && row % 5 == 0)
            bsm_matrix_set_scale(&o->m, batch, row, s, (uint8_t)(rnd_below(t, 2) == 0 ? 2 : 250));
        if (q->scales == ONE_FAR && s == row * 7 % columns)
            bsm_matrix_set_scale(&o->m, batch, row, s, row % 2 == 0 ? 3 : 250);
        if (q->scales == NAN_SCALES && rnd_below(t, 40) == 0) bsm_matrix_set_scale(&o->m, batch, row, s, 255);
        if (q->scales == FAR_AND_NAN && s == row % 9) bsm_matrix_set_scale(&o->m, batch, row, s, 255);
        if (zero) bsm_matrix_set_scale(&o->m, batch, row, s, (uint8_t)(rnd_below(t, 2) == 0 ? 0 : 254));
    }
}

static struct operand make_operand(struct test *t, const struct problem *q, bsm_format format, int64_t rows,
                                   int64_t batch, bool is_b)
{
    struct shape s = {
        .format = format, .rows = rows, .columns = q->k, .batch = batch,
        .packing = is_b && q->stream ? BSM_PACKING_BIT_STREAM : packing_of(format),
        .extra_pitch = 64
    };
    if (bsm_format_get((int)format)->block != 0) {
        s.layout = layouts[rnd_below(t, sizeof layouts / sizeof layouts[0])];
        if (s.layout.pitch > 0 && s.layout.pitch * bsm_format_get((int)format)->block < q->k) s.layout.pitch = 0;
        if (is_b && layout_of(q) != 0) s.layout = (bsm_scale_layout){ .kind = layout_of(q), .pitch = q->scale_pitch };
    }
    struct operand o = operand_make(&s, 0xff);
    operand_fill(t, &o, false);
    for (int64_t b = 0; b < (batch == 0 ? 1 : batch) && (is_b || q->a_too); b++)
        for (int64_t r = 0; r < rows; r++) {
            for (int64_t k = 0; k < q->k && q->all_codes && is_b && r % 7 == 3; k++)
                bsm_matrix_set_code(&o.m, b, r, k,
                                    (uint32_t)rnd_below(t, 256) &
                                        ((1u << bsm_element_get((int)bsm_format_get((int)format)->element)->bits) - 1));
            set_scales_of_row(t, &o, q, b, r);
        }
    return o;
}

struct problem_data {
    struct operand a, b, c, d;
    float alpha[600], bias[600];
    int64_t group_rows[4];
};

static void make_data(struct test *t, const struct problem *q, bsm_format b, struct problem_data *x)
{
    const int64_t batch = q->batch > 0 ? q->batch : 1, matrices = q->groups > 0 ? q->groups : batch;
    const bsm_format d = q->d == 0 ? BSM_FORMAT_FP32 : q->d;
    x->a = make_operand(t, q, q->a == 0 ? BSM_FORMAT_BF16 : q->a, q->m, q->groups > 0 ? 1 : batch, false);
    x->b = make_operand(t, q, b, q->n, q->b_broadcast ? 1 : matrices, true);
    x->c = operand_make(
        &(struct shape){ .format = BSM_FORMAT_BF16, .rows = q->m, .columns = q->n,
                         .batch = q->groups > 0 ? 1 : batch }, 0);
    x->d = operand_make(
        &(struct shape){ .format = d, .rows = q->m, .columns = q->n, .batch = q->groups > 0 ? 1 : batch,
                         .extra_pitch = 64 }, 0xee);
    x->d.m.pitch -= q->d_odd;
    operand_fill(t, &x->c, false);
    for (int i = 0; i < 600; i++) x->alpha[i] = (float)(i % 7) * 0.37f - 1, x->bias[i] = (float)(i % 11) - 5;
    for (int64_t g = 0, left = q->m; g < q->groups; g++) {
        x->group_rows[g] = g == q->groups - 1 ? left : g == 1 ? 0 : left / 2;
        left -= x->group_rows[g];
    }
}

/* D's buffer after the product by this kernel; NULL if it failed. */
static unsigned char *run_on(struct test *t, const struct contexts *c, const struct problem *q,
                             const struct problem_data *x, int kernel)
{
    struct twin a = twin_make(t, c, &x->a), b = twin_make(t, c, &x->b), d = twin_make(t, c, &x->d),
                cc = twin_make(t, c, &x->c);
    float *alpha = to_device(t, c, x->alpha, sizeof x->alpha), *bias = to_device(t, c, x->bias, sizeof x->bias),
          one = 0.75f;
    float *beta = to_device(t, c, &one, sizeof one);
    const int64_t *group_rows = q->groups > 0 ? to_device(t, c, x->group_rows, sizeof x->group_rows) : NULL;
    bsm_matmul call = {
        .struct_size = sizeof call, .a = &a.m, .b = &b.m, .d = &d.m, .groups = q->groups, .group_rows = group_rows
    };
    if (q->alpha) call.alpha = alpha, call.alpha_per = BSM_PER_ROW;
    if (q->one_alpha) call.alpha = alpha + 3, call.alpha_per = BSM_PER_TENSOR;
    if (q->bias_per_row) call.bias = bias, call.bias_type = BSM_REAL_FP32, call.bias_per = BSM_PER_ROW;
    if (q->bias_per_column) call.bias = bias, call.bias_type = BSM_REAL_FP32, call.bias_per = BSM_PER_COLUMN;
    if (q->c) call.c = &cc.m, call.beta = beta;
    if (q->relu) call.activation = BSM_ACT_RELU;
    unsigned char *bytes = malloc(x->d.data_bytes);
    CHECK(t, bsm_context_force_kernel(c->gpu, kernel) == BSM_OK);
    const bsm_status status = bsm_multiply(c->gpu, &call);
    if (status != BSM_OK) FAIL(t, "%s: %s", bsm_kernel_name(kernel), bsm_last_error());
    from_device(t, c, bytes, d.m.data, x->d.data_bytes);
    const void *arrays[] = { alpha, bias, beta, group_rows };
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++)
        (void)bsm_device_release(c->gpu, (void *)(uintptr_t)arrays[i]);
    twin_free(t, c, &a), twin_free(t, c, &b), twin_free(t, c, &cc), twin_free(t, c, &d);
    return bytes;
}

static void compare_kernels(struct test *t, const struct contexts *c, const struct problem *problem, bsm_format b,
                            int kernel, int plain)
{
    struct problem_data x;
    struct problem own = *problem;
    const struct problem *q = &own;
    own.stream = strstr(bsm_kernel_name(kernel), "_stream_") != NULL;
    if (own.stream) own.k = (own.k + 63) / 64 * 64;              /* rows in multiples of 16 bytes */
    make_data(t, q, b, &x);
    unsigned char *want = run_on(t, c, q, &x, plain), *found = run_on(t, c, q, &x, kernel);
    int64_t wrong = 0, first = -1;
    for (size_t i = 0; i < x.d.data_bytes; i++)
        if (want[i] != found[i] && wrong++ == 0) first = (int64_t)i;
    if (wrong > 0) {
        const int64_t bytes = (bsm_element_get((int)bsm_format_get((int)x.d.m.format)->element)->bits + 7) / 8;
        FAIL(t, "%s, %s, M=%d N=%d K=%d, scales %s: %d bytes differ, the first in row %d, column %d",
             bsm_kernel_name(kernel), bsm_format_get((int)b)->name, (int)q->m, (int)q->n, (int)q->k,
             bsm_layout_name((int)x.b.m.scale_layout.kind), (int)wrong, (int)(first / bytes / x.d.m.pitch),
             (int)(first / bytes % x.d.m.pitch));
    }
    free(want), free(found);
    operand_free(&x.a), operand_free(&x.b), operand_free(&x.c), operand_free(&x.d);
}

/* Whether this kernel decodes B itself. */
static bool decodes(const bsm_context *gpu, int kernel, bsm_format b)
{
    return bsm_kernel_serves(gpu, kernel, BSM_FORMAT_BF16, b)
           && !bsm_kernel_serves(gpu, kernel, BSM_FORMAT_BF16, BSM_FORMAT_BF16);
}

/* Whether the kernel reads scales wherever they lie, and finds exponents itself. */
static bool reads_any_scales(int kernel)
{
    static const char *const kinds[] = { "_registers", "_interleaved", "_stored" };
    for (int i = 0; i < 3; i++)
        if (strstr(bsm_kernel_name(kernel), kinds[i]) != NULL) return true;
    return false;
}

/* Whether it takes the problem: those that read any scales no fp16. */
static bool takes(int kernel, const struct problem *q)
{
    return !(reads_any_scales(kernel) && q->a == BSM_FORMAT_FP16);
}

/* Number of the kernel for decoded rows, beside which others are judged; -1: there is none, the case is skipped and
 * contexts are closed. */
static int open_beside_plain(struct test *t, struct contexts *c)
{
    if (!contexts_open(t, c)) return -1;
    const bool here = few_rows_kernel(c->gpu) != NULL;
    if (!here) {
        test_skip(t, "this GPU has no kernels that decode");
        contexts_close(c);
    }
    return here ? kernel_number(c->gpu, rows_kernel(c->gpu), BSM_FORMAT_BF16, BSM_MXFP4) : -1;
}

/* Problems on one kernel, each in one of its formats in turn; one alone in each. */
static void check_one(struct test *t, const struct contexts *c, const char *function, const struct problem *problems,
                      int count, int plain)
{
    int kernel = 0, f = -1;
    while (bsm_kernel_name(kernel) != NULL && !has_function(kernel, function)) kernel++;
    for (int i = 0; i < (count > 1 ? count : FORMATS) && bsm_kernel_name(kernel) != NULL; i++) {
        if (count == 1) f = i;
        else
            do f = (f + 1) % FORMATS;
            while (!decodes(c->gpu, kernel, formats[f]));
        const struct problem *q = &problems[count > 1 ? i : 0];
        if (decodes(c->gpu, kernel, formats[f]) && takes(kernel, q))
            compare_kernels(t, c, q, formats[f], kernel, plain);
    }
}

/* Opens contexts for a case that goes through kernels; -1: there are none, or GEMM_INSTANCE named one, which is
 * checked, and contexts are closed. */
static int open_for_kernels(struct test *t, struct contexts *c, const struct problem *problems, int count)
{
    const char *only = getenv("GEMM_INSTANCE");
    const int plain = open_beside_plain(t, c);
    if (plain < 0 || only == NULL) return plain;
    check_one(t, c, only, problems, count, plain);
    contexts_close(c);
    return -1;
}

/* Each problem in every format on every kernel that decodes it; simulated, where that takes long, each with one format
 * and kernel, in turn. */
static void check_all(struct test *t, const struct problem *problems, int count)
{
    static int due;
    struct contexts c;
    const int plain = open_for_kernels(t, &c, problems, count);
    if (plain < 0) return;
    for (int i = 0; i < count; i++)
        for (int f = 0; f < FORMATS; f++) {
            int decoding = 0;
            if (is_simulated() && (f + i) % FORMATS != due % FORMATS && count > 1) continue;
            for (int kernel = 0; bsm_kernel_name(kernel) != NULL; kernel++) {
                if (!decodes(c.gpu, kernel, formats[f]) || !takes(kernel, &problems[i])) continue;
                if (is_simulated() && decoding++ % TILES != (i + f) % TILES) continue;
                compare_kernels(t, &c, &problems[i], formats[f], kernel, plain);
            }
        }
    due++;
    contexts_close(&c);
}

static void every_format(struct test *t) { check_all(t, &(struct problem){ .m = 20, .n = 130, .k = 320 }, 1); }

/* Rings that go round in every format. */
static void long_rows(struct test *t) { check_all(t, &(struct problem){ .m = 9, .n = 70, .k = 1056 }, 1); }

/* Around the tiles, the rings and the pieces of scales. */
static void edges(struct test *t)
{
    static const struct problem problems[] = {
        { .m = 1, .n = 1, .k = 32 },
        { .m = 17, .n = 65, .k = 64, .layout = BSM_LAYOUT_128X4 },
        { .m = 33, .n = 200, .k = 96, .d_odd = 1 },
        { .m = 130, .n = 129, .k = 288 },
        { .m = 64, .n = 257, .k = 512, .layout = BSM_LAYOUT_128X4 },
        { .m = 257, .n = 64, .k = 160, .d = BSM_FORMAT_BF16 },
        { .m = 5, .n = 700, .k = 2112, .layout = BSM_LAYOUT_128X4, .d = BSM_FORMAT_FP16, .d_odd = 3 },
    };
    check_all(t, problems, sizeof problems / sizeof problems[0]);
}

/* Problems on every kernel that decodes and whose name has one of the words, with each of its formats or one of
 * them. */
static void check_kernels(struct test *t, const struct problem *problems, int count, const char *const *words,
                          bool each_format)
{
    struct contexts c;
    const int plain = open_for_kernels(t, &c, problems, count);
    if (plain < 0) return;
    for (int kernel = 0; bsm_kernel_name(kernel) != NULL; kernel++) {
        bool named = false;
        for (int w = 0; words[w] != NULL; w++) named = named || strstr(bsm_kernel_name(kernel), words[w]) != NULL;
        for (int i = 0, done = 0; i < FORMATS && named && (each_format || done == 0); i++) {
            const bsm_format format = formats[each_format ? i : (i + kernel) % FORMATS];
            if (!decodes(c.gpu, kernel, format)) continue;
            for (int n = 0; n < count; n++) compare_kernels(t, &c, &problems[n], format, kernel, plain);
            done++;
        }
    }
    contexts_close(&c);
}

/* Kernels that decode in the registers of several warpgroups: rings that go round, several tiles a CTA, and a last
 * stage of codes that is not whole, or holds all of K; scales that are no numbers, or large ones of zeros. */
static void wide_tiles(struct test *t)
{
    static const struct problem problems[] = {
        { .m = 40, .n = 150, .k = 1056, .d = BSM_FORMAT_BF16 },
        { .m = 8, .n = 66, .k = 160, .scales = NAN_SCALES },
        { .m = 8, .n = 66, .k = 160, .scales = ZEROS },
        { .m = 8, .n = 600, .k = 64 },
    };
    check_kernels(t, problems, sizeof problems / sizeof problems[0],
                  (const char *const[]){ "_256x128_1x1", "_interleaved", "_128x128_128x4", "_mxfp4_32x128",
                                         "_nvfp4_128x128", NULL }, true);
}

/* Tiles of bf16, which are finished by a way of their own where a factor is all there is to do: whole ones, and a last
 * one that begins within the one before it. */
static void whole_tiles(struct test *t)
{
    static const struct problem problems[] = {
        { .m = 256, .n = 64, .k = 64, .d = BSM_FORMAT_BF16, .one_alpha = true, .scales = NAN_SCALES,
          .all_codes = true },
        { .m = 256, .n = 64, .k = 32, .d = BSM_FORMAT_BF16, .bias_per_row = true },
        { .m = 300, .n = 64, .k = 32, .d = BSM_FORMAT_BF16 },
    };
    static const char *const kernels[] = { "mxfp4_256x64_1x2", "nvfp4_256x128_1x1", "nvfp4_128x64_1x1",
                                           "nvfp4_64x64_1x1", "bytes_128x64_1x1", "stream_64x64_1x1",
                                           "mxfp4_128x128_128x4", "nvfp4_16x64_128x4", "tcgen05_mxfp4_128x128",
                                           "tcgen05_nvfp4_64x128", NULL };
    static const char *const all[] = { "x64_", "x128_", NULL };
    check_kernels(t, problems, sizeof problems / sizeof problems[0], is_simulated() ? kernels : all, false);
}

static void scales_and_codes_of_any_size(struct test *t)
{
    static const struct problem problems[] = {
        { .m = 9, .n = 140, .k = 160, .scales = FAR, .a = BSM_MXFP8_E4M3 },
        { .m = 9, .n = 140, .k = 160, .scales = FAR },
        { .m = 9, .n = 140, .k = 288, .scales = SPANNING },
        { .m = 9, .n = 140, .k = 160, .scales = NAN_SCALES },
        { .m = 9, .n = 140, .k = 160, .scales = ZEROS },
        { .m = 9, .n = 140, .k = 192, .all_codes = true },
        { .m = 40, .n = 70, .k = 128, .scales = NAN_SCALES, .layout = BSM_LAYOUT_128X4 },
    };
    check_all(t, problems, sizeof problems / sizeof problems[0]);
}

/* One scale of a row is far out, which one lane of a warp sees; a scale is NaN in a row that gets an exponent. */
static void far_scales_in_few_places(struct test *t)
{
    static const struct problem problems[] = { { .m = 9, .n = 24, .k = 1056, .scales = ONE_FAR, .a = BSM_MXFP8_E4M3 },
                                               { .m = 9, .n = 24, .k = 160, .scales = FAR_AND_NAN,
                                                 .a = BSM_MXFP8_E4M3 } };
    static const struct {
        const char *name;
        bsm_format b;
    } kernels[3][2] = {
        { { "cuda_wgmma_mxfp4_128x64_1x1", BSM_MXFP4 }, { "cuda_wgmma_bytes_64x64_1x1", BSM_MXFP6_E3M2 } },
        { { "cuda_mma_sync_mxfp4_16x64_128x4", BSM_MXFP4 }, { "cuda_mma_sync_mxfp4_16x64_stored", BSM_MXFP4 } },
        { { "cuda_tcgen05_mxfp4_16x128", BSM_MXFP4 }, { "cuda_tcgen05_mxfp4_128x128", BSM_MXFP4 } },
    };
    struct contexts c;
    const int plain = open_beside_plain(t, &c);
    if (plain < 0) return;
    for (int i = 0; i < 4; i++) {
        int here = 0;
        while (here < 2 && !is_of_gpu(c.gpu, kernel_with(kernels[here][0].name, 0))) here++;
        const int kernel = kernel_number(c.gpu, kernels[here][i / 2].name, BSM_FORMAT_BF16, kernels[here][i / 2].b);
        CHECK(t, kernel >= 0);
        if (kernel >= 0) compare_kernels(t, &c, &problems[i % 2], kernels[here][i / 2].b, kernel, plain);
    }
    contexts_close(&c);
}

/* Codes that begin in the middle of words and bytes, blocks of zeros among them; a ring of codes that goes round, its
 * last stage half full. */
static void streams(struct test *t)
{
    static const struct problem problems[] = {
        { .m = 70, .n = 130, .k = 1600, .d = BSM_FORMAT_BF16, .all_codes = true },
        { .m = 9, .n = 140, .k = 192, .scales = ZEROS, .a = BSM_MXFP8_E4M3, .layout = BSM_LAYOUT_LINEAR },
        { .m = 20, .n = 66, .k = 320, .scales = SPANNING, .batch = 2 },
        { .m = 9, .n = 70, .k = 128, .scales = FAR_AND_NAN, .a = BSM_MXFP6_E3M2, .layout = BSM_LAYOUT_DEEPGEMM },
    };
    enum { PROBLEMS = sizeof problems / sizeof problems[0] };
    struct contexts c;
    const int plain = open_for_kernels(t, &c, problems, PROBLEMS);
    if (plain < 0) return;
    if (!is_of_gpu(c.gpu, kernel_with("_stream_", 0))) test_skip(t, "this GPU has no kernels that decode streams");
    for (int kernel = 0, turn = 0; bsm_kernel_name(kernel) != NULL; kernel++) {
        if (strstr(bsm_kernel_name(kernel), "_stream_") == NULL || !is_of_gpu(c.gpu, kernel)) continue;
        for (int i = 0; i < PROBLEMS; i++, turn++)
            if (!is_simulated() || i == turn / PROBLEMS % PROBLEMS || i == PROBLEMS - 1)
                compare_kernels(t, &c, &problems[i], turn % 2 == 0 ? BSM_MXFP6_E2M3 : BSM_MXFP6_E3M2, kernel, plain);
    }
    contexts_close(&c);
}

/* Kernels that read scales as they lie: rings that go round, rows that begin anywhere, exponents, and fallback rows
 * of either operand. */
static void decoded_in_registers(struct test *t)
{
    static const struct problem problems[] = {
        { .m = 18, .n = 70, .k = 1056, .scales = SPANNING },
        { .m = 9, .n = 130, .k = 1056, .layout = BSM_LAYOUT_LINEAR, .d = BSM_FORMAT_BF16 },
        { .m = 34, .n = 72, .k = 96, .scales = FAR, .a = BSM_MXFP4, .alpha = true },
        { .m = 20, .n = 66, .k = 768, .scales = NAN_SCALES, .batch = 2 },
        { .m = 20, .n = 130, .k = 288, .scales = SPANNING, .a = BSM_MXFP8_E4M3, .layout = BSM_LAYOUT_128X4 },
        { .m = 20, .n = 130, .k = 160, .scales = SPANNING, .a = BSM_MXFP8_E4M3, .a_too = true },
        /* of the K-interleaved schedule one warpgroup finishes all tiles */
        { .m = 20, .n = 200, .k = 640, .alpha = true, .bias_per_row = true },
        { .m = 9, .n = 70, .k = 352, .layout = BSM_LAYOUT_LINEAR, .scale_pitch = 24 },
        /* fallback rows in a tile's last part, too */
        { .m = 64, .n = 130, .k = 96, .scales = SPANNING },
    };
    enum { EXPONENTS_OF_B_ALONE = 2, PROBLEMS = sizeof problems / sizeof problems[0] };
    struct contexts c;
    const int plain = open_for_kernels(t, &c, problems, PROBLEMS);
    if (plain < 0) return;
    for (int f = 0, turn = 0; f < 2; f++)
        for (int kernel = 0; bsm_kernel_name(kernel) != NULL; kernel++) {
            if (!reads_any_scales(kernel) || !bsm_kernel_serves(c.gpu, kernel, BSM_FORMAT_BF16, formats[f])) continue;
            for (int i = 0; i < PROBLEMS; i++)
                if (!is_simulated() || i == turn % PROBLEMS || i == (turn + 5) % PROBLEMS
                    || (i == EXPONENTS_OF_B_ALONE && formats[f] == BSM_MXFP4))
                    compare_kernels(t, &c, &problems[i], formats[f], kernel, plain);
            turn++;
        }
    contexts_close(&c);
}

/* Small kernels for bf16 rows compute what these leave out, behind large ones bsmi_sums does: rows of both warpgroups,
 * of batches and of groups, D as numbers and quantized. */
static void fallback_by_the_kernel(struct test *t)
{
    static const struct problem problems[] = {
        { .m = 130, .n = 140, .k = 160, .scales = SPANNING, .a = BSM_MXFP8_E4M3, .a_too = true },
        { .m = 70, .n = 100, .k = 96, .scales = SPANNING, .a = BSM_MXFP4, .a_too = true, .batch = 2,
          .d = BSM_FORMAT_BF16, .alpha = true, .c = true },
        { .m = 100, .n = 72, .k = 96, .scales = SPANNING, .a = BSM_MXFP8_E5M2, .a_too = true, .groups = 3,
          .d = BSM_FORMAT_BF16, .bias_per_row = true },
        { .m = 80, .n = 64, .k = 160, .scales = SPANNING, .d = BSM_MXFP8_E4M3 },
        { .m = 100, .n = 72, .k = 96, .groups = 3 },                  /* of bf16 alone: nothing is decoded in front */
    };
    static const char *const tiles[] = { "128x96_1x1", "128x64_1x1",  "128x128_1x1", "64x48_1x1",   "64x96_1x1",
                                         "64x128_1x1", "128x256_2x1", "128x224_2x1", "128x224_1x2", "128x192_2x1" };
    enum { PROBLEMS = sizeof problems / sizeof problems[0], KERNELS = sizeof tiles / sizeof tiles[0] };
    struct contexts c;
    char name[60];
    if (!contexts_open(t, &c)) return;
    const int other = kernel_number(c.gpu, "cuda_wgmma_128x64_1x1", BSM_FORMAT_BF16, BSM_MXFP4);
    const int beside = kernel_number(c.gpu, one_is_asked_for() ? "cuda_wgmma_64x48_1x1" : "cuda_wgmma_128x192_2x1",
                                     BSM_FORMAT_BF16, BSM_MXFP4);
    if (other < 0) test_skip(t, "this GPU has no kernels for bf16 rows by wgmma");
    for (int i = 0; i < KERNELS * PROBLEMS && other >= 0; i++) {
        snprintf(name, sizeof name, "cuda_wgmma_%s", tiles[i / PROBLEMS]);
        const int kernel = kernel_number(c.gpu, name, BSM_FORMAT_BF16, BSM_MXFP4);
        if (one_is_asked_for() ? !is_asked_for(kernel) : is_simulated() && i / PROBLEMS != i % PROBLEMS) continue;
        compare_kernels(t, &c, &problems[i % PROBLEMS], i % PROBLEMS < PROBLEMS - 1 ? BSM_MXFP4 : BSM_FORMAT_BF16,
                        kernel, kernel == beside ? other : beside);
    }
    contexts_close(&c);
}

/* Exponents of a row of A and of a row of B that leave fp32's range where their sum does not, S in memory: every kernel
 * that finds those of B itself. */
static void exponents_far_apart(struct test *t)
{
    static const struct problem problems[] = { { .m = 14, .n = 66, .k = 160, .scales = APART, .a = BSM_MXFP4,
                                                 .a_too = true, .relu = true },
                                               { .m = 14, .n = 66, .k = 96, .scales = APART, .a = BSM_MXFP8_E5M2,
                                                 .a_too = true, .d = BSM_NVFP4 } };
    static const char *const kinds[] = { "_registers", "_interleaved", "_stored" };
    struct contexts c;
    const int plain = open_for_kernels(t, &c, problems, 2);
    if (plain < 0) return;
    for (int kernel = 0, number = 0; bsm_kernel_name(kernel) != NULL; kernel++)
        for (int kind = 0; kind < 3; kind++) {
            if (strstr(bsm_kernel_name(kernel), kinds[kind]) == NULL
                || !bsm_kernel_serves(c.gpu, kernel, BSM_MXFP4, BSM_MXFP4))
                continue;
            for (int i = 0; i < 2; i++)
                if (!is_simulated() || one_is_asked_for() || i == number % 2)
                    compare_kernels(t, &c, &problems[i], BSM_MXFP4, kernel, plain);
            number++;
        }
    contexts_close(&c);
}

static void operands_of_every_kind(struct test *t)
{
    static const struct problem problems[] = {
        { .m = 20, .n = 72, .k = 160, .a = BSM_FORMAT_FP16 }, { .m = 20, .n = 72, .k = 160, .a = BSM_NVFP4 },
        { .m = 20, .n = 72, .k = 160, .batch = 3 },
        { .m = 20, .n = 72, .k = 160, .batch = 2, .b_broadcast = true },
        { .m = 100, .n = 136, .k = 128, .groups = 4 },
        { .m = 40, .n = 72, .k = 96, .groups = 3, .scales = SPANNING },
    };
    check_all(t, problems, sizeof problems / sizeof problems[0]);
}

static void epilogues(struct test *t)
{
    static const struct problem problems[] = {
        { .m = 20, .n = 72, .k = 96, .alpha = true, .bias_per_row = true, .c = true, .d = BSM_FORMAT_BF16 },
        { .m = 70, .n = 71, .k = 96, .alpha = true, .c = true, .scales = FAR, .a = BSM_MXFP4 },
        { .m = 20, .n = 64, .k = 96, .d = BSM_MXFP8_E4M3 },
    };
    check_all(t, problems, sizeof problems / sizeof problems[0]);
}

/* What such a kernel cannot read is refused where it is forced, in a sentence that names it and the rule, and else goes
 * another way. */
static void other_forms_are_refused(struct test *t)
{
    static const struct {
        bsm_format a, b;
        bsm_packing packing;
        int64_t m, k;
        const char *part, *rule;          /* the first kernel whose name has this part and that decodes B */
    } forms[] = {
        { BSM_FORMAT_BF16, BSM_MXFP4, BSM_PACKING_HIGH_FIRST, 4, 64, "", "packed two a byte" },
        { BSM_FORMAT_BF16, BSM_MXFP6_E3M2, BSM_PACKING_BIT_STREAM, 4, 32, "_bytes_", "in a byte each" },
        { BSM_FORMAT_BF16, BSM_MXFP6_E3M2, BSM_PACKING_BYTES, 4, 64, "_stream_", "as a stream" },
        { BSM_FORMAT_BF16, BSM_NVFP4, BSM_PACKING_LOW_FIRST, 4, 48, "", "multiples of 16 bytes" },
        { BSM_FORMAT_BF16, BSM_MXFP8_E4M3, BSM_PACKING_DEFAULT, 4, 40, "", "multiples of 16 bytes" },
        { BSM_FORMAT_BF16, BSM_MXFP4, BSM_PACKING_LOW_FIRST, 4, 8192, "_registers_4k", "a smaller K" },
        { BSM_FORMAT_BF16, BSM_NVFP4, BSM_PACKING_LOW_FIRST, 4, 16384, "_nvfp4_64x64_stored", "a smaller K" },
        { BSM_FORMAT_FP16, BSM_MXFP4, BSM_PACKING_LOW_FIRST, 4, 64, "_interleaved", "does not serve fp16 times mxfp4" },
        { BSM_FORMAT_FP16, BSM_MXFP4, BSM_PACKING_LOW_FIRST, 4, 64, "_stored", "does not serve fp16 times mxfp4" },
        { BSM_FORMAT_BF16, BSM_MXFP4, BSM_PACKING_LOW_FIRST, 4, 0, "", "K is 0" },
        { BSM_MXFP8_E4M3, BSM_MXFP8_E4M3, BSM_PACKING_DEFAULT, 4, 64, "_fp8_requantized_",
          "product->compute is not BSM_COMPUTE_FAST" },
        { BSM_MXFP8_E4M3, BSM_MXFP8_E4M3, BSM_PACKING_DEFAULT, 4, 64, "_tcgen05_",
          "this build has it not for this GPU" },
    };
    struct contexts c;
    if (open_beside_plain(t, &c) < 0) return;
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        int kernel = 0;
        const bool is_of_here =
            strcmp(forms[i].part, "_tcgen05_") == 0 && is_of_gpu(c.gpu, kernel_with("_tcgen05_", 0));
        const char *part = is_of_here ? "_mma_sync_mxf8f6f4_" : forms[i].part;
        while (bsm_kernel_name(kernel) != NULL
               && (strstr(bsm_kernel_name(kernel), part) == NULL
                   || (forms[i].part[0] != '_' && !decodes(c.gpu, kernel, forms[i].b))))
            kernel++;
        /* a GPU whose kernels decode codes of four bits alone */
        if (bsm_kernel_name(kernel) == NULL && forms[i].part[0] == '\0' && !is_of_gpu(c.gpu, kernel_with("_bytes_", 0)))
            continue;
        CHECK_OR_RETURN(t, bsm_kernel_name(kernel) != NULL);
        struct operand a = operand_make(&(struct shape){ .format = forms[i].a, .rows = forms[i].m,
                                                         .columns = forms[i].k }, 0);
        struct operand b = operand_make(
            &(struct shape){ .format = forms[i].b, .rows = 8, .columns = forms[i].k, .packing = forms[i].packing }, 0);
        struct operand d = operand_make(&(struct shape){ .format = BSM_FORMAT_FP32, .rows = forms[i].m,
                                                         .columns = 8 }, 0);
        const bsm_matmul call = { .struct_size = sizeof call, .a = &a.m, .b = &b.m, .d = &d.m };
        CHECK(t, bsm_context_force_kernel(c.gpu, kernel) == BSM_OK);
        bsm_plan *plan = NULL;
        const bsm_status planned = bsm_plan_create(c.gpu, &call, &plan), asked = bsm_supported(c.gpu, &call),
                         done = bsm_multiply(c.gpu, &call);
        if (planned != BSM_EUNSUPPORTED || asked != BSM_EUNSUPPORTED || done != BSM_EUNSUPPORTED || plan != NULL)
            FAIL(t, "%s, form %d: not refused: %d, %d, %d", bsm_kernel_name(kernel), (int)i, (int)planned, (int)asked,
                 (int)done);
        else if (strstr(bsm_last_error(), !is_of_gpu(c.gpu, kernel) && strstr(forms[i].rule, "does not serve") == NULL
                                              ? "this build has it not for this GPU" : forms[i].rule) == NULL
                 || strstr(bsm_last_error(), bsm_kernel_name(kernel)) == NULL)
            FAIL(t, "no \"%s\" and %s in: %s", forms[i].rule, bsm_kernel_name(kernel), bsm_last_error());
        bsm_plan_destroy(plan);
        CHECK(t, bsm_context_force_kernel(c.gpu, -1) == BSM_OK && bsm_supported(c.gpu, &call) == BSM_OK);
        operand_free(&a), operand_free(&b), operand_free(&d);
    }
    contexts_close(&c);
}

/* Shapes, storage and numbers as they come: the program's --seed draws others.  Kernels that decode into tensor
 * memory, whose tiles are all of one kernel; ANY_SHAPES: so many problems. */
static void any_shapes(struct test *t)
{
    static const bsm_format of_a[] = { BSM_FORMAT_BF16, BSM_FORMAT_BF16, BSM_FORMAT_BF16, BSM_FORMAT_FP16,
                                       BSM_MXINT8, BSM_FORMAT_BF16 };
    static const bsm_format of_d[] = { BSM_FORMAT_FP32, BSM_FORMAT_BF16, BSM_FORMAT_FP16, BSM_MXFP8_E4M3 };
    struct contexts c;
    const char *asked = getenv("ANY_SHAPES");
    const int problems = asked != NULL ? atoi(asked) : 2, plain = open_beside_plain(t, &c);
    if (plain < 0) return;
    if (!is_of_gpu(c.gpu, kernel_with("cuda_tcgen05_mxfp4_", 0))) {
        test_skip(t, "this GPU has no kernels that decode into tensor memory");
        contexts_close(&c);
        return;
    }
    for (int i = 0; i < problems; i++) {
        const bool nvfp4 = rnd_below(t, 2) == 0;
        const int kernel = kernel_with(nvfp4 ? "cuda_tcgen05_nvfp4_" : "cuda_tcgen05_mxfp4_", (int)rnd_below(t, 4));
        struct problem q = {
            .m = 1 + (int64_t)rnd_below(t, 300), .n = 1 + (int64_t)rnd_below(t, 300),
            .k = 32 * (1 + (int64_t)rnd_below(t, 36)),
            .a = of_a[rnd_below(t, 6)], .d = of_d[rnd_below(t, 4)], .a_too = rnd_below(t, 4) == 0,
            .scales = (int)rnd_below(t, APART + 1), .alpha = rnd_below(t, 3) == 0, .c = rnd_below(t, 3) == 0,
            .bias_per_row = rnd_below(t, 4) == 0, .d_odd = (int64_t)rnd_below(t, 4), .relu = rnd_below(t, 8) == 0,
            .all_codes = rnd_below(t, 4) == 0,
        };
        if (rnd_below(t, 4) == 0) q.batch = 2, q.b_broadcast = rnd_below(t, 2) == 0;
        else if (rnd_below(t, 4) == 0 && q.m > 4) q.groups = 3;
        if (q.d == BSM_MXFP8_E4M3) q.d_odd = 0;
        compare_kernels(t, &c, &q, nvfp4 ? BSM_NVFP4 : BSM_MXFP4, kernel, plain);
    }
    contexts_close(&c);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(every_format), TEST(long_rows), TEST(edges),
                                              TEST(scales_and_codes_of_any_size), TEST(operands_of_every_kind),
                                              TEST(epilogues), TEST(other_forms_are_refused),
                                              TEST(far_scales_in_few_places), TEST(wide_tiles), TEST(whole_tiles),
                                              TEST(decoded_in_registers), TEST(streams), TEST(fallback_by_the_kernel),
                                              TEST(exponents_far_apart), TEST(any_shapes) };
    return TEST_MAIN(argc, argv, cases);
}
