/* The edge grid of shapes: integers, so that every order of sums gives one right answer, bit for bit, on every kernel.
 * Everything that is not owed is poisoned: bytes behind rows, scale padding, D before the call, pages around each
 * buffer. */
#include "naive.h"

#include <math.h>
#include <stdlib.h>

struct formats { bsm_format a, b; };

static const struct formats pairs[] = {
    { BSM_MXFP8_E4M3, BSM_MXFP8_E4M3 }, { BSM_MXFP4, BSM_MXFP4 },          { BSM_NVFP4, BSM_NVFP4 },
    { BSM_NVFP4, BSM_MXFP4 },           { BSM_MXINT8, BSM_MXINT8 },        { BSM_MXFP6_E2M3, BSM_MXFP6_E2M3 },
    { BSM_MXFP6_E3M2, BSM_MXFP8_E5M2 }, { BSM_FORMAT_BF16, BSM_MXFP4 },    { BSM_MXFP8_E4M3, BSM_NVFP4 },
    { BSM_FORMAT_FP16, BSM_FORMAT_E4M3 }, { BSM_FORMAT_FP32, BSM_FORMAT_FP32 }, { BSM_MXFP4_BLOCK16, BSM_MXINT8 },
};
enum { PAIRS = sizeof pairs / sizeof pairs[0] };

static const bsm_scale_layout layouts[] = {
    { .kind = BSM_LAYOUT_LINEAR }, { .kind = BSM_LAYOUT_LINEAR, .pitch = 211 }, { .kind = BSM_LAYOUT_128X4 },
      { .kind = BSM_LAYOUT_8X4 },
    { .kind = BSM_LAYOUT_TILES, .tile_rows = 64, .tile_columns = 2 },
      { .kind = BSM_LAYOUT_LINEAR, .pitch = BSM_PITCH_PADDED_16 }, { .kind = BSM_LAYOUT_CDNA4_16 },
    { .kind = BSM_LAYOUT_CDNA4_32 }, { .kind = BSM_LAYOUT_AITER }, { .kind = BSM_LAYOUT_DEEPGEMM },
};
enum { LAYOUTS = sizeof layouts / sizeof layouts[0] };

static struct shape random_shape(struct test *t, bsm_format format, int64_t rows, int64_t columns)
{
    struct shape s = { .format = format, .rows = rows, .columns = columns };
    shape_in_any_way(t, &s, layouts, LAYOUTS);
    s.extra_pitch *= rnd_between(t, 1, 3);
    return s;
}

/* Decoded integers of an operand, by the test's own arithmetic. */
static int *decode(const bsm_matrix *m)
{
    int *values = malloc((size_t)(m->rows * m->columns + 1) * sizeof *values);
    for (int64_t r = 0; r < m->rows; r++)
        for (int64_t k = 0; k < m->columns; k++) values[r * m->columns + k] = (int)(operand_value(m, 0, r, k) * 64);
    return values;
}

/* D's rows hold the sums; the bytes between them still hold the poison. */
static void check_d(struct test *t, const struct operand *d, int poison, const float *want, const char *what)
{
    const int64_t columns = d->m.columns, pitch = d->m.pitch != 0 ? d->m.pitch : columns;
    const float *found = d->m.data;
    if (columns == 0) return;             /* nothing is there, not even a pitch */
    for (int64_t i = 0; i < d->m.rows; i++) {
        for (int64_t j = 0; j < columns; j++)
            if (memcmp(&want[i * columns + j], &found[i * pitch + j], sizeof(float)) != 0) {
                FAIL(t, "%s: D[%" PRId64 ", %" PRId64 "] = %a, not %a", what, i, j, (double)found[i * pitch + j],
                     (double)want[i * columns + j]);
                return;
            }
        const unsigned char *gap = (const unsigned char *)(found + i * pitch + columns),
                            *next = (const unsigned char *)(found + (i + 1) * pitch);
        for (; i + 1 < d->m.rows && gap < next; gap++)
            if (*gap != poison) {
                FAIL(t, "%s: a byte behind row %" PRId64 " of D was written", what, i);
                return;
            }
    }
}

static void check_shape(struct test *t, bsm_context *context, struct formats f, int64_t m, int64_t n, int64_t k)
{
    static const int poisons[] = { 0x00, 0xff, 0x7f };
    const int poison = poisons[rnd_below(t, 3)];
    const struct shape sa = random_shape(t, f.a, m, k), sb = random_shape(t, f.b, n, k);
    struct operand a = operand_make(&sa, poison), b = operand_make(&sb, poison);
    struct operand d = operand_make(&(struct shape){ .format = BSM_FORMAT_FP32, .rows = m, .columns = n,
                                                     .extra_pitch = rnd_below(t, 2) * 64 }, 0xff);
    operand_fill(t, &a, true);
    operand_fill(t, &b, true);
    operand_freeze(&a);
    operand_freeze(&b);
    const bsm_matmul call = { .struct_size = sizeof call, .a = &a.m, .b = &b.m, .d = &d.m };

    int *va = decode(&a.m), *vb = decode(&b.m);
    float *want = malloc((size_t)(m * n + 1) * sizeof *want);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            int64_t sum = 0;
            for (int64_t p = 0; p < k; p++) sum += (int64_t)va[i * k + p] * vb[j * k + p];
            want[i * n + j] = (float)sum / 4096;
        }

    int served = 0;
    for (int kernel = 0; bsm_kernel_name(kernel) != NULL; kernel++) {
        if (!bsm_kernel_serves(context, kernel, f.a, f.b)) continue;
        char what[256];
        snprintf(what, sizeof what,
                 "%s, %s x %s, M=%" PRId64 " N=%" PRId64 " K=%" PRId64 ", layouts %s %s, packings %s %s",
                 bsm_kernel_name(kernel), bsm_format_get((int)f.a)->name, bsm_format_get((int)f.b)->name, m, n, k,
                 bsm_layout_name((int)sa.layout.kind), bsm_layout_name((int)sb.layout.kind),
                 bsm_packing_name((int)sa.packing), bsm_packing_name((int)sb.packing));
        if (d.data_bytes > 0) memset(d.m.data, 0xff, d.data_bytes);
        CHECK(t, bsm_context_force_kernel(context, kernel) == BSM_OK);
        if (bsm_multiply(context, &call) != BSM_OK) FAIL(t, "%s: %s", what, bsm_last_error());
        else check_d(t, &d, 0xff, want, what);
        served++;
    }
    CHECK(t, served > 0);
    operand_check_same(t, &a, "a");
    operand_check_same(t, &b, "b");
    free(va), free(vb), free(want);
    operand_free(&a), operand_free(&b), operand_free(&d);
}

static bsm_context *make_context(struct test *t)
{
    bsm_context *context = NULL;
    CHECK(t, bsm_context_create(NULL, &context) == BSM_OK);
    return context;
}

/* Around the kernels' register tiles and the blocks; each shape with a pair of formats in turn. */
static void small_grid(struct test *t)
{
    static const int64_t ms[] = { 0, 1, 2, 5, 6, 7, 8, 12, 13, 31 }, ns[] = { 0, 1, 8, 15, 16, 17, 33 },
                         ks[] = { 0, 1, 15, 16, 17, 31, 32, 33, 48, 50, 64, 96, 128 };
    bsm_context *context = make_context(t);
    int next = 0;
    for (size_t i = 0; i < sizeof ms / sizeof ms[0]; i++)
        for (size_t j = 0; j < sizeof ns / sizeof ns[0]; j++)
            for (size_t p = 0; p < sizeof ks / sizeof ks[0]; p++)
                check_shape(t, context, pairs[next++ % PAIRS], ms[i], ns[j], ks[p]);
    bsm_context_destroy(context);
}

/* Around tiles, chunks of K and the layouts' own constants; every pair sees M > 128 with scale columns not a multiple
 * of 4. */
static void large_shapes(struct test *t)
{
    static const int64_t shapes[][3] = {
        { 131, 130, 161 }, { 47, 257, 255 }, { 49, 127, 257 }, { 191, 65, 513 }, { 193, 129, 33 }, { 385, 258, 17 },
          { 1, 320, 2880 },
        { 2, 100, 2880 },  { 64, 258, 64 },  { 129, 31, 96 },  { 7, 600, 128 },  { 500, 16, 32 },
    };
    bsm_context *context = make_context(t);
    for (int p = 0; p < PAIRS; p++) {
        check_shape(t, context, pairs[p], 131, 130, 161);
        for (int extra = 0; extra < 2; extra++) {
            const int64_t *s = shapes[(2 * p + extra + (int)(t->seed % 12)) % 12];
            check_shape(t, context, pairs[p], s[0], s[1], s[2]);
        }
    }
    bsm_context_destroy(context);
}

/* Random shapes and pairs, a few more with every seed. */
static void random_shapes(struct test *t)
{
    bsm_context *context = make_context(t);
    for (int i = 0; i < 150; i++) {
        const struct formats f = { (bsm_format)rnd_between(t, 1, BSM_FORMAT_COUNT - 1),
                                   (bsm_format)rnd_between(t, 1, BSM_FORMAT_COUNT - 1) };
        check_shape(t, context, f, rnd_between(t, 1, 60), rnd_between(t, 1, 70), rnd_between(t, 1, 200));
    }
    bsm_context_destroy(context);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(small_grid), TEST(large_shapes), TEST(random_shapes) };
    return TEST_MAIN(argc, argv, cases);
}
