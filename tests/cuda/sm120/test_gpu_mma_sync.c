/* The kernels by mma.sync (compute capability 12.x): the bits that every one of them gives, for any numbers; and what a
 * kernel for these GPUs gets wrong first.  Elsewhere they say "skipped". */
#include "cuda/harness/gpu.h"
#include "product_model.h"

#include <stdlib.h>

struct pair {
    bsm_format a, b;
};

static bool opened(struct test *t, struct contexts *c)
{
    if (!contexts_open(t, c)) return false;
    if (kernel_number(c->gpu, "cuda_mma_sync_mxf4_64x64x128", BSM_MXFP4, BSM_MXFP4) >= 0) return true;
    test_skip(t, "no GPU of compute capability 12.x");
    contexts_close(c);
    return false;
}

/* Number of the n-th kernel of a kind that serves the pair; -1 behind the last. */
static int kernel_of(const struct contexts *c, const char *kind, struct pair f, bool split_k, int n)
{
    char prefix[40];
    snprintf(prefix, sizeof prefix, "cuda_mma_sync_%s_", kind);
    for (int i = 0; bsm_kernel_name(i) != NULL; i++)
        if (strncmp(bsm_kernel_name(i), prefix, strlen(prefix)) == 0 && bsm_kernel_serves(c->gpu, i, f.a, f.b)
            && (strstr(bsm_kernel_name(i), "_split_k") != NULL) == split_k && n-- == 0)
            return i;
    return -1;
}

static const char *kind_of(struct pair f)
{
    return f.a == BSM_NVFP4 ? "mxf4nvf4" : f.a == BSM_MXFP4 && f.b == BSM_MXFP4 ? "mxf4" : "mxf8f6f4";
}

/* Scales in blocks, or in rows whose pitch is a multiple of 16 bytes; what nothing says is 0xff. */
static struct operand make(bsm_format format, int64_t rows, int64_t columns, int64_t batch, bsm_layout layout,
                           int64_t extra)
{
    const int block = bsm_format_get((int)format)->block;
    struct shape s = { .format = format, .rows = rows, .columns = columns, .batch = batch, .extra_pitch = extra };
    if (block != 0) s.layout.kind = layout;
    if (block != 0 && layout == BSM_LAYOUT_LINEAR) s.layout.pitch = ((columns + block - 1) / block + 15) / 16 * 16;
    return operand_make(&s, 0xff);
}

/* Any numbers ------------------------------------------------------------------------------------------------------ */

enum { M = 24, N = 72, MATRICES = 3 };

struct bits {
    struct operand a, b;                  /* one matrix, and three */
    struct twin on_gpu_a, on_gpu_b;
    float model[MATRICES][M][N];
};

/* In place, as twins point to their operands. */
static void bits_make(struct test *t, const struct contexts *c, struct pair f, int64_t k, bsm_layout layout,
                      struct bits *bits)
{
    bits->a = make(f.a, M, k, 1, layout, 0), bits->b = make(f.b, N, k, MATRICES, layout, 0);
    operand_fill(t, &bits->a, false), operand_fill(t, &bits->b, false);
    bits->on_gpu_a = twin_make(t, c, &bits->a), bits->on_gpu_b = twin_make(t, c, &bits->b);
}

static void bits_free(struct test *t, const struct contexts *c, struct bits *bits)
{
    twin_free(t, c, &bits->on_gpu_a), twin_free(t, c, &bits->on_gpu_b);
    operand_free(&bits->a), operand_free(&bits->b);
}

/* How the same operands are asked for: rows of A; a matrix of B, all of them, or groups of A's rows. */
struct way {
    const char *name;
    int64_t rows, matrices;
    int64_t groups[MATRICES];
};
enum { ROWS_17 = 2, WAYS = 4 };
static const struct way ways[WAYS] = {
    { "a batch", M, MATRICES, { 0 } },  { "one row", 1, 1, { 0 } },
    { "17 rows", 17, 1, { 0 } },        { "groups", M, 1, { 13, 0, 11 } },
};

/* D of what a way asks for. */
static void run_way(struct test *t, const struct contexts *c, const struct bits *bits, const struct way *way,
                    int kernel, float (*d)[M][N])
{
    const bool grouped = way->groups[0] != 0;
    bsm_matrix a = bits->on_gpu_a.m, b = bits->on_gpu_b.m;
    a.rows = way->rows;
    if (!grouped) b.batch = way->matrices;
    memset(d, 0xff, sizeof(float[MATRICES][M][N]));
    const bsm_matrix out = { .struct_size = sizeof out, .format = BSM_FORMAT_FP32, .rows = way->rows, .columns = N,
                             .batch = way->matrices, .batch_pitch = M * N,
                             .data = to_device(t, c, d, sizeof(float[MATRICES][M][N])) };
    int64_t *groups = to_device(t, c, way->groups, sizeof way->groups);
    const bsm_matmul call = { .struct_size = sizeof call, .a = &a, .b = &b, .d = &out,
                              .groups = grouped ? MATRICES : 0, .group_rows = grouped ? groups : NULL };
    CHECK(t, bsm_context_force_kernel(c->gpu, kernel) == BSM_OK);
    if (bsm_multiply(c->gpu, &call) != BSM_OK) FAIL(t, "%s: %s", bsm_kernel_name(kernel), bsm_last_error());
    from_device(t, c, d, out.data, sizeof(float[MATRICES][M][N]));
    (void)bsm_device_release(c->gpu, out.data), (void)bsm_device_release(c->gpu, groups);
}

/* Row `row` of D belongs to this matrix of B. */
static int matrix_of(const struct way *way, int matrix, int64_t row)
{
    if (way->groups[0] == 0) return matrix;
    return row < way->groups[0] ? 0 : 2;
}

static void check_way(struct test *t, const struct bits *bits, const struct way *way, int kernel, float (*d)[M][N])
{
    for (int matrix = 0; matrix < way->matrices; matrix++)
        for (int64_t i = 0; i < way->rows; i++)
            for (int j = 0; j < N; j++) {
                const float wanted = bits->model[matrix_of(way, matrix, i)][i][j];
                if (memcmp(&d[matrix][i][j], &wanted, sizeof wanted) == 0) continue;
                FAIL(t, "%s, %s x %s, K=%d, %s: D[%d][%d] of matrix %d is %a, not %a", bsm_kernel_name(kernel),
                     bsm_format_get((int)bits->a.m.format)->name, bsm_format_get((int)bits->b.m.format)->name,
                     (int)bits->a.m.columns, way->name, (int)i, j, matrix, (double)d[matrix][i][j], (double)wanted);
                return;
            }
}

/* S of what a way asks for: fp32 sums of parts of K, `part` columns each, which are the model's. */
static void fill_model(struct bits *bits, const char *kind, int64_t part, const struct way *way)
{
    const enum model_kind model = strcmp(kind, "mxf4nvf4") == 0 ? MODEL_MXF4NVF4
                                  : strcmp(kind, "mxf4") == 0   ? MODEL_MXF4
                                                                : MODEL_MXF8F6F4;
    const int64_t k = bits->a.m.columns;
    for (int64_t matrix = 0; matrix < way->matrices; matrix++)
        for (int64_t i = 0; i < way->rows; i++)
            for (int64_t j = 0; j < N; j++) {
                const struct model_rows rows = { &bits->a.m, &bits->b.m, 0, i, matrix, j };
                float sum = model_sum(model, &rows, 0, part < k ? part : k);
                for (int64_t first = part; first < k; first += part)
                    sum += model_sum(model, &rows, first, first + part < k ? first + part : k);
                bits->model[matrix][i][j] = sum;
            }
}

/* Every kernel of the kind, each in a way of its own, the first in number `way`. */
static void check_kernels(struct test *t, const struct contexts *c, struct pair f, const struct bits *bits,
                          const char *kind, const struct way *asked, int count, size_t way, bool split_k)
{
    float (*d)[M][N] = malloc(sizeof(float[MATRICES][M][N]));
    int kernels = 0;
    for (int kernel; (kernel = kernel_of(c, kind, f, split_k, kernels)) >= 0; kernels++) {
        const struct way *mine = &asked[((size_t)kernels + way) % (size_t)count];
        run_way(t, c, bits, mine, kernel, d);
        check_way(t, bits, mine, kernel, d);
    }
    CHECK(t, kernels >= (split_k ? 1 : 6));
    free(d);
}

static void every_kernel_has_the_models_bits(struct test *t)
{
    static const struct { struct pair formats; int64_t k; bsm_layout layout; } products[] = {
        { { BSM_MXFP8_E4M3, BSM_MXFP8_E5M2 }, 304, BSM_LAYOUT_128X4 },
        { { BSM_MXFP6_E2M3, BSM_MXFP4 }, 176, BSM_LAYOUT_LINEAR },
        { { BSM_FORMAT_E5M2, BSM_MXFP6_E3M2 }, 144, BSM_LAYOUT_128X4 },
        { { BSM_MXFP4, BSM_MXFP4 }, 624, BSM_LAYOUT_LINEAR },
        { { BSM_MXFP4, BSM_MXFP4 }, 208, BSM_LAYOUT_128X4 },
        { { BSM_NVFP4, BSM_NVFP4 }, 624, BSM_LAYOUT_LINEAR },
        { { BSM_NVFP4, BSM_NVFP4 }, 208, BSM_LAYOUT_128X4 },
    };
    struct contexts c;
    if (!opened(t, &c)) return;
    for (size_t i = 0; i < sizeof products / sizeof products[0]; i++) {
        const struct pair f = products[i].formats;
        struct bits bits;
        bits_make(t, &c, f, products[i].k, products[i].layout, &bits);
        fill_model(&bits, kind_of(f), products[i].k, &ways[0]);
        check_kernels(t, &c, f, &bits, kind_of(f), ways, WAYS, i, false);
        bits_free(t, &c, &bits);
    }
    contexts_close(&c);
}

/* bf16 rows have no model here: the first kernel's bits are everyone's. */
static void every_kernel_of_rows_has_the_same_bits(struct test *t)
{
    static const struct pair f = { BSM_MXFP4_BLOCK16, BSM_MXINT8 };
    struct contexts c;
    if (!opened(t, &c)) return;
    struct bits bits;
    bits_make(t, &c, f, 208, BSM_LAYOUT_128X4, &bits);
    run_way(t, &c, &bits, &ways[0], kernel_of(&c, "bf16", f, false, 0), bits.model);
    check_kernels(t, &c, f, &bits, "bf16", ways, WAYS, 1, false);
    bits_free(t, &c, &bits);
    contexts_close(&c);
}

/* Parts of at most 2048 columns, equal numbers of steps, added in ascending order: the same bits each time. */
static void parts_of_k_are_added_in_their_order(struct test *t)
{
    static const struct { struct pair formats; int64_t k, part; } products[] = {
        { { BSM_MXFP8_E4M3, BSM_MXFP4 }, 2096, 1152 },      /* 17 steps of 128 in two parts of nine */
        { { BSM_MXFP4, BSM_MXFP4 }, 4112, 1536 },           /* 17 of 256 in three of six */
        { { BSM_NVFP4, BSM_NVFP4 }, 2304, 1280 },
    };
    struct contexts c;
    if (!opened(t, &c)) return;
    for (size_t i = 0; i < sizeof products / sizeof products[0]; i++) {
        const struct pair f = products[i].formats;
        struct bits bits;
        bits_make(t, &c, f, products[i].k, BSM_LAYOUT_128X4, &bits);
        fill_model(&bits, kind_of(f), products[i].part, &ways[ROWS_17]);
        for (int again = 0; again < 2; again++)
            check_kernels(t, &c, f, &bits, kind_of(f), &ways[ROWS_17], 1, 0, true);
        bits_free(t, &c, &bits);
    }
    contexts_close(&c);
}

/* Rows that TMA cannot describe ------------------------------------------------------------------------------------ */

/* How far the first row begins behind a multiple of 16 bytes, and how much longer rows are than such a multiple. */
struct place { int64_t offset, pitch; };

/* The operand's rows, so placed in device memory of their own; all between them is 0xff. */
static bsm_matrix placed(struct test *t, const struct contexts *c, const struct twin *twin, struct place place,
                         void **memory)
{
    bsm_matrix m = twin->m;
    const int bits = bsm_element_get((int)bsm_format_get((int)m.format)->element)->bits;
    const int64_t row = m.columns * bits / 8, pitch = (row + 15) / 16 * 16 + place.pitch,
                  batch = m.batch > 1 ? m.batch : 1;
    const size_t bytes = (size_t)(place.offset + m.rows * batch * pitch);
    unsigned char *rows = malloc(bytes);
    memset(rows, 0xff, bytes);
    for (int64_t r = 0; r < m.rows * batch; r++)
        memcpy(rows + place.offset + r * pitch, (const unsigned char *)twin->host->m.data + r * row, (size_t)row);
    *memory = to_device(t, c, rows, bytes);
    free(rows);
    m.data = (unsigned char *)*memory + place.offset;
    m.pitch = pitch * 8 / bits, m.batch_pitch = m.pitch * m.rows;
    return m;
}

/* The plan's words of each operand. */
static void check_plan(struct test *t, const struct contexts *c, const bsm_matrix *a, const bsm_matrix *b, int kernel,
                       const char *of_a, const char *of_b)
{
    static float sums[MATRICES][M][N];
    const bsm_matrix d = { .struct_size = sizeof d, .format = BSM_FORMAT_FP32, .rows = a->rows, .columns = b->rows,
                           .batch = b->batch, .data = sums };
    const bsm_matmul call = { .struct_size = sizeof call, .a = a, .b = b, .d = &d };
    bsm_plan *plan = NULL;
    char text[640] = "";
    CHECK(t, bsm_context_force_kernel(c->gpu, kernel) == BSM_OK);
    if (bsm_plan_create(c->gpu, &call, &plan) != BSM_OK) FAIL(t, "no plan: %s", bsm_last_error());
    bsm_plan_describe(plan, text, sizeof text);
    const char *at_a = strstr(text, ", A ("), *at_b = strstr(text, ", B (");
    if (at_a == NULL || at_b == NULL || strstr(at_a, of_a) == NULL || strstr(at_a, of_a) > at_b
        || strstr(at_b, of_b) == NULL)
        FAIL(t, "A is not \"%s\" or B not \"%s\" in \"%s\"", of_a, of_b, text);
    bsm_plan_destroy(plan);
}

/* Bits are those of the same operands where TMA can describe them, whichever is copied: of every second kernel.  The
 * covering grid has products of all. */
static void rows_of_any_pitch(struct test *t)
{
    /* Kernels whose producers have no registers for it. */
    static const char *const without[] = { "256x128x64", "128x128x64_pingpong" };
    static const char by_tma[] = " as stored", by_8[] = " as stored (by cp.async, 8 bytes each)",
                      by_4[] = " as stored (by cp.async, 4 bytes each)", copied[] = " repacked";
    static const struct { struct place a, b; const char *of_a, *of_b; } places[] = {
        { { 0, 8 }, { 0, 0 }, by_8, by_tma },   { { 0, 0 }, { 0, 12 }, by_tma, by_4 },
        { { 4, 4 }, { 8, 16 }, by_4, by_8 },    { { 8, 8 }, { 4, 0 }, by_8, by_4 },
        { { 0, 16 }, { 12, 12 }, by_tma, by_4 }, { { 2, 0 }, { 0, 8 }, copied, by_8 },
    };
    enum { PLACES = sizeof places / sizeof places[0] };
    static const struct { struct pair formats; const char *kind; int64_t k; } products[] = {
        { { BSM_MXFP8_E4M3, BSM_MXFP8_E5M2 }, "mxf8f6f4", 304 }, { { BSM_MXFP4, BSM_MXFP4 }, "mxf4", 608 },
        { { BSM_NVFP4, BSM_NVFP4 }, "mxf4nvf4", 608 },           { { BSM_FORMAT_BF16, BSM_FORMAT_BF16 }, "bf16", 136 },
    };
    struct contexts c;
    if (!opened(t, &c)) return;
    for (size_t i = 0; i < sizeof products / sizeof products[0]; i++) {
        const struct pair f = products[i].formats;
        struct bits bits;
        bits_make(t, &c, f, products[i].k, BSM_LAYOUT_128X4, &bits);
        int kernels = 0;
        for (int kernel; (kernel = kernel_of(&c, products[i].kind, f, false, kernels)) >= 0; kernels++) {
            if ((kernels + (int)i) % 2 != 0) continue;
            const int number = (kernels / 2 + (int)i) % PLACES;
            const struct way *way = &ways[kernels / 2 % WAYS];
            struct bits moved = bits;
            void *memory[2];
            moved.on_gpu_a.m = placed(t, &c, &bits.on_gpu_a, places[number].a, &memory[0]);
            moved.on_gpu_b.m = placed(t, &c, &bits.on_gpu_b, places[number].b, &memory[1]);
            const char *name = bsm_kernel_name(kernel);
            const bool copies = strstr(name, without[0]) == NULL && strstr(name, without[1]) == NULL;
            check_plan(t, &c, &moved.on_gpu_a.m, &moved.on_gpu_b.m, kernel,
                       copies || places[number].of_a == by_tma ? places[number].of_a : copied,
                       copies || places[number].of_b == by_tma ? places[number].of_b : copied);
            run_way(t, &c, &bits, way, kernel, bits.model);
            float (*d)[M][N] = malloc(sizeof(float[MATRICES][M][N]));
            run_way(t, &c, &moved, way, kernel, d);
            if (memcmp(d, bits.model, sizeof(float[MATRICES][M][N])) != 0)
                FAIL(t, "%s, %s: rows at %d, %d bytes further apart, and at %d, %d, give other bits",
                     bsm_kernel_name(kernel), way->name, (int)places[number].a.offset, (int)places[number].a.pitch,
                     (int)places[number].b.offset, (int)places[number].b.pitch);
            free(d);
            for (int m = 0; m < 2; m++) (void)bsm_device_release(c.gpu, memory[m]);
        }
        CHECK(t, kernels >= 6);
        bits_free(t, &c, &bits);
    }
    contexts_close(&c);
}

/* A plan that copies 8 bytes at a time wants the same of later operands. */
static void plans_keep_their_alignment(struct test *t)
{
    struct contexts c;
    if (!opened(t, &c)) return;
    struct bits bits;
    bits_make(t, &c, (struct pair){ BSM_NVFP4, BSM_NVFP4 }, 192, BSM_LAYOUT_128X4, &bits);
    void *memory;
    bsm_matrix a = placed(t, &c, &bits.on_gpu_a, (struct place){ 0, 8 }, &memory), b = bits.on_gpu_b.m;
    float *d = to_device(t, &c, bits.model, sizeof bits.model);
    const bsm_matrix out = { .struct_size = sizeof out, .format = BSM_FORMAT_FP32, .rows = M, .columns = N, .data = d };
    bsm_matmul call = { .struct_size = sizeof call, .a = &a, .b = &b, .d = &out };
    bsm_plan *plan = NULL;
    b.batch = 1;
    CHECK(t, bsm_context_force_kernel(c.gpu, kernel_with("cuda_mma_sync_mxf4nvf4_64x64x128", 0)) == BSM_OK);
    CHECK(t, bsm_plan_create(c.gpu, &call, &plan) == BSM_OK && bsm_plan_workspace_bytes(plan) == 0);
    CHECK(t, bsm_plan_run(plan, &call, NULL, 0) == BSM_OK);
    a.data = (unsigned char *)a.data + 4;
    CHECK(t, bsm_plan_run(plan, &call, NULL, 0) == BSM_EALIGN);
    CHECK(t, strstr(bsm_last_error(), "a->data=") != NULL && strstr(bsm_last_error(), "to 8 bytes") != NULL);
    bsm_plan_destroy(plan);
    (void)bsm_device_release(c.gpu, memory), (void)bsm_device_release(c.gpu, d);
    bits_free(t, &c, &bits);
    contexts_close(&c);
}

/* Chosen numbers --------------------------------------------------------------------------------------------------- */

typedef void fill_function(struct test *t, struct operand *a, struct operand *b);

/* Every kernel of every pair of packed codes and of one of bytes, against the CPU byte for byte. */
static void check_chosen(struct test *t, int64_t m, int64_t n, int64_t k, bsm_layout layout, int64_t extra,
                         fill_function *fill)
{
    static const struct pair pairs[] = { { BSM_MXFP4, BSM_MXFP4 }, { BSM_NVFP4, BSM_NVFP4 },
                                         { BSM_MXFP8_E4M3, BSM_MXFP4 } };
    struct contexts c;
    if (!opened(t, &c)) return;
    for (int i = 0; i < 3; i++) {
        struct operand a = make(pairs[i].a, m, k, 1, layout, extra), b = make(pairs[i].b, n, k, 1, layout, extra);
        struct operand d = operand_make(&(struct shape){ .format = BSM_FORMAT_FP32, .rows = m, .columns = n }, 0xff);
        fill(t, &a, &b);
        int kernels = 0;
        for (int kernel; (kernel = kernel_of(&c, kind_of(pairs[i]), pairs[i], false, kernels)) >= 0; kernels++) {
            CHECK(t, bsm_context_force_kernel(c.gpu, kernel) == BSM_OK);
            run_both(t, &c, &(struct run){ .a = &a, .b = &b, .d = &d, .call = { .struct_size = sizeof(bsm_matmul) } },
                     bsm_kernel_name(kernel));
        }
        CHECK(t, kernels >= 6);
        operand_free(&a), operand_free(&b), operand_free(&d);
    }
    contexts_close(&c);
}

static void fill_with_whole_numbers(struct test *t, struct operand *a, struct operand *b)
{
    fill_whole(t, a), fill_whole(t, b);
}

static void set(struct operand *o, int64_t row, int64_t k, double value)
{
    const bsm_element element = bsm_format_get((int)o->m.format)->element;
    (void)bsm_matrix_set_code(&o->m, 0, row, k, bsm_element_encode(element, value, BSM_ROUND_NEAREST_EVEN, true, 0));
}

static void set_scale(struct operand *o, int64_t row, int64_t column, int exponent)
{
    const bool e8m0 = bsm_format_get((int)o->m.format)->scale == BSM_E8M0;
    (void)bsm_matrix_set_scale(&o->m, 0, row, column, (uint8_t)(e8m0 ? 127 + exponent : (7 + exponent) << 3));
}

static void set_all_scales(struct operand *o, int exponent)
{
    for (int64_t r = 0; r < o->m.rows; r++)
        for (int64_t s = 0; s < bsm_matrix_scale_columns(&o->m); s++) set_scale(o, r, s, exponent);
}

/* Linear scales in rows of 16 bytes, of which K has four, eight, and more than 16: the second page begins in a step, or
 * with one. */
static void k_crosses_a_page_of_padded_scales(struct test *t)
{
    static const int64_t ks[] = { 64, 128, 320 };
    for (int i = 0; i < 3; i++) check_chosen(t, 19, 40, ks[i], BSM_LAYOUT_LINEAR, 0, fill_with_whole_numbers);
}

/* 257, 513, 769 behind 128 columns each: bf16 has none of them. */
static void fill_with_odd_sums(struct test *t, struct operand *a, struct operand *b)
{
    (void)t;
    for (int64_t r = 0; r < a->m.rows; r++)
        for (int64_t k = 0; k < a->m.columns; k++) set(a, r, k, k == r ? 3 : 2);
    for (int64_t r = 0; r < b->m.rows; r++)
        for (int64_t k = 0; k < b->m.columns; k++) set(b, r, k, 1);
    set_all_scales(a, 0), set_all_scales(b, 0);
}

static void sums_do_not_pass_through_bf16(struct test *t)
{
    check_chosen(t, 20, 40, 384, BSM_LAYOUT_128X4, 0, fill_with_odd_sums);
}

/* Neighbouring codes, halves of bytes, lanes' words, rows and columns all differ. */
static void fill_asymmetrically(struct test *t, struct operand *a, struct operand *b)
{
    static const double values[] = { 0.5, -3, 1, 6, -1.5, 2, 0, 4, -0.5, 3, -1, -6, 1.5 };
    struct operand *const both[] = { a, b };
    (void)t;
    for (int i = 0; i < 2; i++)
        for (int64_t r = 0; r < both[i]->m.rows; r++) {
            for (int64_t k = 0; k < both[i]->m.columns; k++)
                set(both[i], r, k, values[(k * (3 + i) + k / 8 * 5 + r * (7 - 2 * i)) % 13]);
            for (int64_t s = 0; s < bsm_matrix_scale_columns(&both[i]->m); s++)
                set_scale(both[i], r, s, (int)((r * 3 + s * 2 + i) % 5) - 2);
        }
}

static void lanes_are_told_apart(struct test *t)
{
    check_chosen(t, 33, 66, 192, BSM_LAYOUT_128X4, 0, fill_asymmetrically);
}

/* Codes behind K and rows, and scales behind them, are 0xff: NaN wherever there is one. */
static void what_lies_behind_never_matters(struct test *t)
{
    check_chosen(t, 5, 7, 48, BSM_LAYOUT_LINEAR, 64, fill_with_whole_numbers);
    check_chosen(t, 17, 33, 80, BSM_LAYOUT_128X4, 128, fill_with_whole_numbers);
}

/* 2^-3 in the first half of K of A's rows, 2^3 in the second, of B's columns 2^2 and 2^-1. */
static void fill_in_halves(struct test *t, struct operand *a, struct operand *b)
{
    struct operand *const both[] = { a, b };
    static const int exponents[2][2] = { { -3, 3 }, { 2, -1 } };
    fill_whole(t, a), fill_whole(t, b);
    for (int i = 0; i < 2; i++)
        for (int64_t r = 0; r < both[i]->m.rows; r++) {
            const int64_t count = bsm_matrix_scale_columns(&both[i]->m);
            for (int64_t s = 0; s < count; s++) set_scale(both[i], r, s, exponents[i][s * 2 / count]);
        }
}

static void halves_have_scales_of_their_own(struct test *t)
{
    check_chosen(t, 18, 35, 128, BSM_LAYOUT_128X4, 0, fill_in_halves);
}

/* What a forced kernel cannot multiply is refused before anything is launched, with the kernel, the pair and the
 * rule. */
static void refusals_say_why(struct test *t)
{
    static const char scales[] = ": mma.sync multiplies 4-bit codes with blocks of 16 by ue4m3 scales",
                      padding[] = ": TMA pads codes of 4 and 6 bits 128 at a time";
    static const struct { const char *kernel; struct pair formats; const char *rule; } refused[] = {
        { "cuda_mma_sync_mxf4nvf4_64x64x128", { BSM_MXFP4_BLOCK16, BSM_MXFP4_BLOCK16 }, scales },
        { "cuda_mma_sync_mxf4nvf4_64x64x128", { BSM_MXFP4_BLOCK16, BSM_MXFP4 }, scales },
        { "cuda_mma_sync_mxf4nvf4_64x64x128", { BSM_NVFP4, BSM_MXFP4 }, scales },
        { "cuda_mma_sync_mxf8f6f4_256x128x64", { BSM_MXFP6_E3M2, BSM_MXFP8_E4M3 }, padding },
        { "cuda_mma_sync_mxf8f6f4_256x128x64", { BSM_MXFP8_E4M3, BSM_MXFP4 }, padding },
        { "cuda_mma_sync_mxf8f6f4_64x64x128", { BSM_MXFP4, BSM_MXFP4 }, "" },
        { "cuda_mma_sync_mxf4_64x64x128", { BSM_NVFP4, BSM_NVFP4 }, "" },
    };
    struct contexts c;
    if (!opened(t, &c)) return;
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        const struct pair f = refused[i].formats;
        struct operand a = make(f.a, 16, 128, 1, BSM_LAYOUT_128X4, 0), b = make(f.b, 16, 128, 1, BSM_LAYOUT_128X4, 0);
        struct operand d = operand_make(&(struct shape){ .format = BSM_FORMAT_FP32, .rows = 16, .columns = 16 }, 0x5a);
        fill_whole(t, &a), fill_whole(t, &b);
        struct twin x = twin_make(t, &c, &a), y = twin_make(t, &c, &b), z = twin_make(t, &c, &d);
        const bsm_matmul call = { .struct_size = sizeof call, .a = &x.m, .b = &y.m, .d = &z.m };
        char words[256];
        int kernel = 0;
        while (bsm_kernel_name(kernel) != NULL && strcmp(bsm_kernel_name(kernel), refused[i].kernel) != 0) kernel++;
        CHECK(t, bsm_context_force_kernel(c.gpu, kernel) == BSM_OK);
        CHECK(t, bsm_multiply(c.gpu, &call) == BSM_EUNSUPPORTED);
        snprintf(words, sizeof words, "kernel %s was forced, but it does not serve %s times %s%s", refused[i].kernel,
                 bsm_format_get((int)f.a)->name, bsm_format_get((int)f.b)->name, refused[i].rule);
        if (strstr(bsm_last_error(), words) == NULL) FAIL(t, "no \"%s\" in \"%s\"", words, bsm_last_error());
        twin_compare(t, &c, &z, "D of what was refused");
        twin_free(t, &c, &x), twin_free(t, &c, &y), twin_free(t, &c, &z);
        operand_free(&a), operand_free(&b), operand_free(&d);
    }
    contexts_close(&c);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        TEST(every_kernel_has_the_models_bits), TEST(every_kernel_of_rows_has_the_same_bits),
        TEST(parts_of_k_are_added_in_their_order), TEST(rows_of_any_pitch), TEST(plans_keep_their_alignment),
        TEST(k_crosses_a_page_of_padded_scales),
        TEST(sums_do_not_pass_through_bf16), TEST(lanes_are_told_apart), TEST(what_lies_behind_never_matters),
        TEST(halves_have_scales_of_their_own), TEST(refusals_say_why)
    };
    return TEST_MAIN(argc, argv, cases);
}
