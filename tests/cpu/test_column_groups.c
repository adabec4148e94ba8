/* Groups along K: every matrix of D against the naive sum of the group's own columns, which are copied out of A and B
 * code by code and scale by scale; every kernel, format, packing and layout of scales. */
#include "naive_orders.h"
#include "rare_pairs.h"

#include <math.h>
#include <stdlib.h>

enum { MOST_GROUPS = 6 };

static const bsm_scale_layout layouts[] = {
    { .kind = BSM_LAYOUT_LINEAR },    { .kind = BSM_LAYOUT_LINEAR, .pitch = 211 }, { .kind = BSM_LAYOUT_128X4 },
    { .kind = BSM_LAYOUT_8X4 },       { .kind = BSM_LAYOUT_TILES, .tile_rows = 5, .tile_columns = 3 },
    { .kind = BSM_LAYOUT_CDNA4_16 },  { .kind = BSM_LAYOUT_CDNA4_32 },             { .kind = BSM_LAYOUT_AITER },
    { .kind = BSM_LAYOUT_DEEPGEMM },
};
enum { LAYOUTS = sizeof layouts / sizeof layouts[0] };

static struct operand any_operand(struct test *t, bsm_format format, int64_t rows, int64_t columns)
{
    struct shape s = { .format = format, .rows = rows, .columns = columns };
    shape_in_any_way(t, &s, layouts, LAYOUTS);
    struct operand o = operand_make(&s, 0xff);
    operand_fill(t, &o, false);
    operand_freeze(&o);
    return o;
}

/* S of every group: groups x M x N. */
static float *naive_sums(const bsm_matmul *call, enum unit_order order)
{
    const int64_t m = call->a->rows, n = call->b->rows;
    float *sums = malloc((size_t)(call->groups * m * n + 1) * sizeof *sums);
    for (int64_t g = 0, first = 0; g < call->groups; first += call->group_columns[g++]) {
        struct operand a = operand_of_columns(call->a, first, call->group_columns[g]),
                       b = operand_of_columns(call->b, first, call->group_columns[g]);
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++)
                sums[(g * m + i) * n + j] = naive_sum_in(order, &a.m, 0, i, &b.m, 0, j);
        operand_free(&a), operand_free(&b);
    }
    return sums;
}

static float expected(const bsm_matmul *call, const float *sums, int64_t g, int64_t i, int64_t j)
{
    const int64_t m = call->a->rows, n = call->b->rows;
    const float sum = sums[(g * m + i) * n + j];
    const float f = call->alpha == NULL                   ? 1
                    : call->alpha_per == BSM_PER_BATCH    ? call->alpha[g]
                    : call->alpha_per == BSM_PER_ROW      ? call->alpha[i]
                                                          : call->alpha[j];
    if (call->beta == NULL && call->bias == NULL) return f * sum;
    float addend = 0;
    if (call->bias != NULL) {
        const float *bias = (const float *)call->bias + g * call->bias_batch_pitch;
        addend = bias[call->bias_per == BSM_PER_ROW ? i : j];
    }
    if (call->beta != NULL) {
        const float c = (float)operand_value(call->c, call->c->batch <= 1 ? 0 : g, i, j);
        addend = call->bias != NULL ? fmaf(*call->beta, c, addend) : *call->beta * c;
    }
    return fmaf(f, sum, addend);
}

static void check_d(struct test *t, const bsm_matmul *call, const float *sums, const struct operand *d,
                    const char *what)
{
    const int64_t m = d->m.rows, n = d->m.columns, pitch = d->m.pitch != 0 ? d->m.pitch : n,
                  batch_pitch = d->m.batch_pitch != 0 ? d->m.batch_pitch : m * pitch;
    float *found = d->m.data;
    for (int64_t g = 0; g < call->groups; g++)
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++) {
                const float want = expected(call, sums, g, i, j);
                float *at = found + g * batch_pitch + i * pitch + j;
                if (memcmp(at, &want, sizeof want) != 0) {
                    FAIL(t, "%s: D[%" PRId64 ", %" PRId64 ", %" PRId64 "] = %a, not %a", what, g, i, j, (double)*at,
                         (double)want);
                    return;
                }
                memset(at, 0xff, sizeof *at);
            }
    for (size_t i = 0; i < d->data_bytes; i++)
        if (((unsigned char *)found)[i] != 0xff) {
            FAIL(t, "%s: byte %zu of D, between rows or matrices, was written", what, i);
            return;
        }
}

/* On every kernel that serves the pair, with one thread and with three. */
static void check_everywhere(struct test *t, bsm_context *context, const bsm_matmul *call, struct operand *d)
{
    float *sums[UNIT_ORDERS] = { NULL };
    int served = 0;
    for (int kernel = 0; bsm_kernel_name(kernel) != NULL; kernel++) {
        if (!bsm_kernel_serves(context, kernel, call->a->format, call->b->format)) continue;
        char what[300];
        int length = snprintf(what, sizeof what, "%s, %s x %s, layouts %d %d, packings %d %d, M=%" PRId64 " N=%" PRId64
                              ", columns", bsm_kernel_name(kernel), bsm_format_get((int)call->a->format)->name,
                              bsm_format_get((int)call->b->format)->name, (int)call->a->scale_layout.kind,
                              (int)call->b->scale_layout.kind, (int)call->a->packing, (int)call->b->packing,
                              call->a->rows, call->b->rows);
        for (int64_t g = 0; g < call->groups; g++)
            length += snprintf(what + length, sizeof what - (size_t)length, " %" PRId64, call->group_columns[g]);
        CHECK(t, bsm_context_force_kernel(context, kernel) == BSM_OK);
        CHECK(t, bsm_context_set_threads(context, served % 2 == 0 ? 1 : 3) == BSM_OK);
        if (d->data_bytes > 0) memset(d->m.data, 0xff, d->data_bytes);
        if (bsm_multiply(context, call) != BSM_OK) FAIL(t, "%s: %s", what, bsm_last_error());
        const enum unit_order order = unit_order_of(context, call);
        if (sums[order] == NULL) sums[order] = naive_sums(call, order);
        check_d(t, call, sums[order], d, what);
        served++;
    }
    CHECK(t, served > 0);
    CHECK(t, bsm_context_force_kernel(context, -1) == BSM_OK);
    for (int order = 0; order < UNIT_ORDERS; order++) free(sums[order]);
}

static bsm_context *make_context(struct test *t)
{
    bsm_context *context = NULL;
    CHECK(t, bsm_context_create(NULL, &context) == BSM_OK);
    return context;
}

/* variant: what is there besides S. */
static void check_groups(struct test *t, bsm_context *context, bsm_format a_format, bsm_format b_format, int64_t m,
                         int64_t n, const int64_t *columns, int64_t groups, int variant)
{
    int64_t k = 0;
    float numbers[4096];
    const float beta = -0.75f;
    for (int64_t g = 0; g < groups; g++) k += columns[g];
    for (int i = 0; i < 4096; i++) numbers[i] = (float)rnd_normal(t);
    struct operand a = any_operand(t, a_format, m, k), b = any_operand(t, b_format, n, k);
    struct operand c = operand_make(&(struct shape){ .format = BSM_FORMAT_BF16, .rows = m, .columns = n,
                                                     .batch = variant == 2 ? groups : 1 }, 0xff);
    operand_fill(t, &c, false);
    struct operand d = operand_make(&(struct shape){ .format = BSM_FORMAT_FP32, .rows = m, .columns = n,
                                                     .batch = groups, .extra_pitch = rnd_below(t, 2) * 64,
                                                     .extra_batch_pitch = rnd_below(t, 2) * 64 }, 0xff);
    bsm_matmul call = { .struct_size = sizeof call, .a = &a.m, .b = &b.m, .d = &d.m, .groups = groups,
                        .group_columns = columns };
    if (variant > 0) call.alpha = numbers, call.alpha_per = variant == 3 ? BSM_PER_COLUMN : BSM_PER_BATCH;
    if (variant == 2 || variant == 3) call.beta = &beta, call.c = &c.m;
    if (variant % 2 == 1)
        call.bias = numbers + 300, call.bias_per = variant == 1 ? BSM_PER_ROW : BSM_PER_COLUMN,
        call.bias_batch_pitch = variant == 1 ? m + 3 : 0;
    check_everywhere(t, context, &call, &d);
    operand_check_same(t, &a, "a"), operand_check_same(t, &b, "b");
    operand_free(&a), operand_free(&b), operand_free(&c), operand_free(&d);
}

/* Multiples of 64, as GGUF's NVFP4 wants them, or of 32; the last group that is there may be short. */
static int64_t draw_columns(struct test *t, int64_t unit, int64_t *columns)
{
    const int64_t groups = rnd_between(t, 1, MOST_GROUPS);
    int64_t last = -1;
    for (int64_t g = 0; g < groups; g++) {
        columns[g] = rnd_below(t, 3) == 0 ? 0 : unit * rnd_between(t, 1, rnd_below(t, 6) == 0 ? 9 : 3);
        if (columns[g] != 0) last = g;
    }
    if (last >= 0 && rnd_below(t, 2) == 0) columns[last] -= rnd_below(t, unit);
    return groups;
}

static void every_pair(struct test *t)
{
    bsm_context *context = make_context(t);
    int turn = 0;
    for (int a = BSM_FORMAT_NONE + 1; a < BSM_FORMAT_COUNT; a++)
        for (int b = BSM_FORMAT_NONE + 1; b < BSM_FORMAT_COUNT; b++, turn++) {
            if (pair_is_rare(a, b)) continue;
            int64_t columns[MOST_GROUPS];
            const int64_t unit = a == BSM_NVFP4 || b == BSM_NVFP4 ? 64 : 32, groups = draw_columns(t, unit, columns);
            check_groups(t, context, (bsm_format)a, (bsm_format)b, rnd_between(t, 1, 11), rnd_between(t, 1, 19),
                         columns, groups, turn % 4);
        }
    bsm_context_destroy(context);
}

/* Around tiles and chunks of K; groups that begin in the middle of a chunk and of a tile of scales. */
static void larger_shapes(struct test *t)
{
    static const struct { int64_t m, n, groups, columns[MOST_GROUPS]; } cases[] = {
        { 130, 70, 3, { 32, 0, 96 } },
        { 50, 260, 4, { 0, 288, 32, 0 } },
        { 9, 129, 3, { 2080, 32, 31 } },
        { 1, 40, 3, { 1056, 64, 1 } },
        { 3, 33, 2, { 0, 0 } },
        { 7, 18, 6, { 32, 32, 32, 32, 32, 32 } },
        { 196, 3, 1, { 77 } },
    };
    static const struct { bsm_format a, b; } pairs[] = {
        { BSM_MXFP8_E4M3, BSM_MXFP8_E5M2 }, { BSM_MXFP4, BSM_MXFP4 },           { BSM_NVFP4, BSM_NVFP4 },
        { BSM_MXINT8, BSM_MXFP6_E2M3 },     { BSM_FORMAT_BF16, BSM_MXFP8_E4M3 }, { BSM_MXFP6_E3M2, BSM_MXFP4_BLOCK16 },
    };
    bsm_context *context = make_context(t);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (size_t turn = 0; turn < 2; turn++) {
            const size_t p = (2 * i + turn + t->seed) % (sizeof pairs / sizeof pairs[0]);
            int64_t columns[MOST_GROUPS];
            for (int64_t g = 0; g < cases[i].groups; g++)
                columns[g] = cases[i].columns[g] % 32 == 0 && pairs[p].a == BSM_NVFP4 ? 2 * cases[i].columns[g]
                                                                                       : cases[i].columns[g];
            check_groups(t, context, pairs[p].a, pairs[p].b, cases[i].m, cases[i].n, columns, cases[i].groups,
                         (int)(i + p) % 4);
        }
    bsm_context_destroy(context);
}

/* A group that read its neighbour's columns would meet NaN; amax would remember it. */
static void groups_keep_to_themselves(struct test *t)
{
    enum { M = 3, N = 5, K = 96, GROUPS = 3 };
    static const int64_t columns[GROUPS] = { 32, 32, 32 };
    bsm_context *context = make_context(t);
    struct operand a = operand_make(&(struct shape){ .format = BSM_MXFP8_E4M3, .rows = M, .columns = K }, 0x38);
    struct operand b = operand_make(&(struct shape){ .format = BSM_MXFP8_E4M3, .rows = N, .columns = K }, 0x38);
    struct operand d = operand_make(&(struct shape){ .format = BSM_FORMAT_FP32, .rows = M, .columns = N,
                                                     .batch = GROUPS }, 0xff);
    const bsm_matmul call = { .struct_size = sizeof call, .a = &a.m, .b = &b.m, .d = &d.m, .groups = GROUPS,
                              .group_columns = columns };
    memset(a.m.scales, 127, a.scale_bytes), memset(b.m.scales, 127, b.scale_bytes);
    for (int64_t r = 0; r < M; r++) CHECK(t, bsm_matrix_set_scale(&a.m, 0, r, 1, 255) == BSM_OK);
    if (bsm_multiply(context, &call) != BSM_OK) FAIL(t, "%s", bsm_last_error());
    for (int g = 0; g < GROUPS; g++)
        for (int i = 0; i < M * N; i++) {
            const float found = ((const float *)d.m.data)[g * M * N + i];
            CHECK(t, g == 1 ? isnan(found) : found == 32);
        }
    operand_free(&a), operand_free(&b), operand_free(&d);
    bsm_context_destroy(context);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(every_pair), TEST(larger_shapes), TEST(groups_keep_to_themselves) };
    return TEST_MAIN(argc, argv, cases);
}
