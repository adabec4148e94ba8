/* Batches, groups and empty products against the naive sum, matrix by matrix; what lies between matrices is left
 * alone. */
#include "naive_orders.h"

#include <math.h>
#include <stdlib.h>

static bsm_context *make_context(struct test *t)
{
    bsm_context *context = NULL;
    CHECK(t, bsm_context_create(NULL, &context) == BSM_OK);
    return context;
}

/* Puts `extra` bytes between the scales of two matrices of the batch. */
static void spread_scales(struct operand *o, int64_t extra, int poison)
{
    int64_t bytes = 0;
    bsm_matrix single = o->m;
    single.batch = 1;
    if (o->scale_bytes == 0 || bsm_matrix_scale_bytes(&single, &bytes) != BSM_OK) return;
    o->m.scale_batch_pitch = bytes + extra;
    if (bsm_matrix_scale_bytes(&o->m, &bytes) != BSM_OK) exit(1);
    guarded_free(o->m.scales);
    o->scale_bytes = (size_t)bytes;
    o->m.scales = guarded_at_end(o->scale_bytes, 1, poison);
}

static struct operand filled(struct test *t, const struct shape *s)
{
    struct operand o = operand_make(s, 0xff);
    spread_scales(&o, rnd_below(t, 2) * 13, 0xff);
    operand_fill(t, &o, false);
    operand_freeze(&o);
    return o;
}

static double real_value(bsm_real type, const void *data, int64_t index)
{
    uint16_t half;
    if (type == BSM_REAL_FP32) return (double)((const float *)data)[index];
    memcpy(&half, (const uint16_t *)data + index, sizeof half);
    return naive_element(type == BSM_REAL_BF16 ? BSM_BF16 : BSM_FP16, half);
}

static int64_t of_batch(const bsm_matrix *m, int64_t matrix) { return m->batch <= 1 ? 0 : matrix; }

/* t of matrix (or group) g, row i of D, column j, in the order that the plan says. */
static float expected(const bsm_matmul *call, enum unit_order order, int64_t g, int64_t i, int64_t j)
{
    const bool grouped = call->groups > 0;
    const float sum =
        naive_sum_in(order, call->a, grouped ? 0 : of_batch(call->a, g), i, call->b, of_batch(call->b, g), j);
    const int64_t alpha_index = call->alpha_per == BSM_PER_ROW      ? i
                                : call->alpha_per == BSM_PER_COLUMN ? j
                                : call->alpha_per == BSM_PER_BATCH  ? g
                                                                    : 0;
    const float f = call->alpha == NULL ? 1 : call->alpha[alpha_index];
    float c = 0, bias = 0;
    const bool reads_c = call->beta != NULL && *call->beta != 0;
    if (reads_c) c = (float)operand_value(call->c, grouped ? 0 : of_batch(call->c, g), i, j);
    if (call->bias != NULL) {
        const int64_t first = grouped && call->bias_per == BSM_PER_ROW ? 0 : g * call->bias_batch_pitch;
        bias = (float)real_value(call->bias_type, call->bias, first + (call->bias_per == BSM_PER_ROW ? i : j));
    }
    if (reads_c) return fmaf(f, sum, call->bias != NULL ? fmaf(*call->beta, c, bias) : *call->beta * c);
    return call->bias != NULL ? fmaf(f, sum, bias) : f * sum;
}

static int64_t group_of(const bsm_matmul *call, int64_t row)
{
    int64_t g = 0;
    for (int64_t end = call->group_rows[0]; row >= end; end += call->group_rows[++g]) continue;
    return g;
}

/* fp32 D: every number, and the poison everywhere else. */
static void check_d(struct test *t, const bsm_matmul *call, enum unit_order order, const struct operand *d,
                    const char *what)
{
    const int64_t batch = d->m.batch == 0 ? 1 : d->m.batch, pitch = d->m.pitch != 0 ? d->m.pitch : d->m.columns;
    const int64_t batch_pitch = d->m.batch_pitch != 0 ? d->m.batch_pitch : pitch * d->m.rows;
    float *found = d->m.data;
    for (int64_t g = 0; g < batch; g++)
        for (int64_t i = 0; i < d->m.rows; i++)
            for (int64_t j = 0; j < d->m.columns; j++) {
                const float want = expected(call, order, call->groups > 0 ? group_of(call, i) : g, i, j);
                float *at = found + g * batch_pitch + i * pitch + j;
                if (memcmp(at, &want, sizeof want) != 0) {
                    FAIL(t, "%s: D[%" PRId64 ", %" PRId64 ", %" PRId64 "] = %a, not %a", what, g, i, j, (double)*at,
                         (double)want);
                    return;
                }
                memset(at, 0xff, sizeof *at);        /* so that only what is not owed remains to be looked at */
            }
    for (size_t i = 0; i < d->data_bytes; i++)
        if (((unsigned char *)found)[i] != 0xff) {
            FAIL(t, "%s: byte %zu of D, between rows or matrices, was written", what, i);
            return;
        }
}

static void multiply_and_check(struct test *t, bsm_context *context, const bsm_matmul *call, struct operand *d,
                               const char *what)
{
    for (int threads = 1; threads <= 3; threads += 2) {
        if (d->data_bytes > 0) memset(d->m.data, 0xff, d->data_bytes);
        CHECK(t, bsm_context_set_threads(context, threads) == BSM_OK);
        if (bsm_multiply(context, call) != BSM_OK) FAIL(t, "%s: %s", what, bsm_last_error());
        else check_d(t, call, unit_order_of(context, call), d, what);
    }
}

static const struct {
    bsm_format a, b;
} pairs[] = { { BSM_MXFP8_E4M3, BSM_MXFP4 },
              { BSM_NVFP4, BSM_NVFP4 },
              { BSM_FORMAT_BF16, BSM_MXFP6_E3M2 },
              { BSM_MXINT8, BSM_MXFP4_BLOCK16 },
              { BSM_FORMAT_BF16, BSM_MXFP8_E4M3 } };
enum { PAIRS = 4, PAIRS_OF_ONE_ROW = 5, MOST_NUMBERS = 4096 };

static bsm_scale_layout layout_of(struct test *t, bsm_format format)
{
    static const bsm_layout kinds[] = { BSM_LAYOUT_LINEAR,  BSM_LAYOUT_128X4,    BSM_LAYOUT_8X4,
                                        BSM_LAYOUT_AITER, BSM_LAYOUT_CDNA4_32, BSM_LAYOUT_DEEPGEMM };
    if (bsm_format_get((int)format)->block == 0) return (bsm_scale_layout){ 0 };
    return (bsm_scale_layout){ .kind = kinds[rnd_below(t, 6)] };
}

static void *random_reals(struct test *t, bsm_real type)
{
    char *numbers = malloc(MOST_NUMBERS * sizeof(float));
    for (int i = 0; i < MOST_NUMBERS; i++) {
        const float value = (float)rnd_normal(t);
        const uint16_t half = (uint16_t)bsm_element_encode(type == BSM_REAL_BF16 ? BSM_BF16 : BSM_FP16, (double)value,
                                                           BSM_ROUND_NEAREST_EVEN, true, 0);
        if (type == BSM_REAL_FP32) memcpy(numbers + 4 * i, &value, 4);
        else memcpy(numbers + 2 * i, &half, 2);
    }
    return numbers;
}

/* Batches ---------------------------------------------------------------------------------------------------------- */

static void one_batch(struct test *t, bsm_context *context, int pair, int64_t most_rows, int64_t a_batch,
                      int64_t b_batch, int64_t c_batch)
{
    const int64_t m = rnd_between(t, 1, most_rows), n = rnd_between(t, 1, 20), k = rnd_between(t, 1, 70),
                  batch = a_batch > b_batch ? a_batch : b_batch;
    const int64_t gaps[] = { 0, 64, 192 };
    struct shape sa = {
        .format = pairs[pair].a, .rows = m, .columns = k, .batch = a_batch, .extra_batch_pitch = gaps[rnd_below(t, 3)]
    };
    struct shape sb = {
        .format = pairs[pair].b, .rows = n, .columns = k, .batch = b_batch, .extra_batch_pitch = gaps[rnd_below(t, 3)]
    };
    sa.layout = layout_of(t, sa.format), sb.layout = layout_of(t, sb.format);
    struct operand a = filled(t, &sa), b = filled(t, &sb);
    struct operand c = filled(
        t, &(struct shape){
               .format = BSM_FORMAT_BF16, .rows = m, .columns = n, .batch = c_batch,
               .extra_batch_pitch = gaps[rnd_below(t, 3)] });
    struct operand d = operand_make(
        &(struct shape){
            .format = BSM_FORMAT_FP32, .rows = m, .columns = n, .batch = batch,
            .extra_batch_pitch = gaps[rnd_below(t, 3)] },
        0xff);
    if (rnd_below(t, 3) == 0) {                       /* an odd pitch, matrices an odd number of elements apart */
        operand_free(&d);
        d = (struct operand){ .m = { .struct_size = sizeof(bsm_matrix),
                                     .format = BSM_FORMAT_FP32,
                                     .rows = m,
                                     .columns = n,
                                     .batch = batch,
                                     .pitch = n + 3,
                                     .batch_pitch = m * (n + 3) + 5 } };
        int64_t bytes = 0;
        CHECK(t, bsm_matrix_data_bytes(&d.m, &bytes) == BSM_OK);
        d.data_bytes = (size_t)bytes;
        d.m.data = guarded_at_end(d.data_bytes, 4, 0xff);
    }
    const float beta = rnd_below(t, 2) == 0 ? 0 : -0.75f;
    const bsm_real type = (bsm_real)rnd_below(t, 3);
    float *alpha = random_reals(t, BSM_REAL_FP32);
    void *bias = random_reals(t, type);
    bsm_matmul call = { .struct_size = sizeof call,
                        .a = &a.m,
                        .b = &b.m,
                        .c = &c.m,
                        .d = &d.m,
                        .alpha = alpha,
                        .alpha_per = (bsm_per)rnd_below(t, BSM_PER_COUNT),
                        .beta = &beta,
                        .bias = bias,
                        .bias_type = type,
                        .bias_per = rnd_below(t, 2) == 0 ? BSM_PER_ROW : BSM_PER_COLUMN,
                        .bias_batch_pitch = rnd_below(t, 2) * rnd_between(t, 20, 33) };
    char what[200];
    snprintf(what, sizeof what,
             "%s x %s, %" PRId64 " x %" PRId64 " x %" PRId64 ", batches %" PRId64 ", %" PRId64 ", %" PRId64
             ", alpha %d, bias pitch %" PRId64,
             bsm_format_get((int)sa.format)->name, bsm_format_get((int)sb.format)->name, m, n, k, a_batch, b_batch,
             c_batch, (int)call.alpha_per, call.bias_batch_pitch);
    multiply_and_check(t, context, &call, &d, what);
    operand_check_same(t, &a, "a"), operand_check_same(t, &b, "b"), operand_check_same(t, &c, "c");
    free(alpha), free(bias);
    operand_free(&a), operand_free(&b), operand_free(&c), operand_free(&d);
}

static void batches_and_broadcasts(struct test *t)
{
    bsm_context *context = make_context(t);
    for (int turn = 0; turn < 96; turn++)
        one_batch(t, context, turn % PAIRS, 20, turn / 4 % 4 == 1 ? 1 : 3,
                  turn / 4 % 4 == 2                    ? 1
                  : turn / 4 % 4 == 1 && turn % 8 == 4 ? 1
                                                       : 3,
                  1);
    for (int turn = 0; turn < 40; turn++) one_batch(t, context, turn % PAIRS, 20, 4, turn % 2 == 0 ? 1 : 4, 4);
    bsm_context_destroy(context);
}

/* A thread that computes several has a row made ready for one, and for another one's. */
static void batches_of_one_row(struct test *t)
{
    bsm_context *context = make_context(t);
    for (int turn = 0; turn < 40; turn++)
        one_batch(t, context, turn % PAIRS_OF_ONE_ROW, 1, turn % 2 == 0 ? 5 : 1, turn % 4 < 2 ? 5 : 1, 1);
    bsm_context_destroy(context);
}

/* D in blocks, with padding between its scales: every matrix as if it were multiplied alone. */
static void block_scaled_batches(struct test *t)
{
    bsm_context *context = make_context(t);
    enum { BATCH = 3, M = 37, N = 75, K = 64 };
    for (int turn = 0; turn < 24; turn++) {
        const bsm_format format = (bsm_format)(BSM_MXFP8_E4M3 + turn % 8);
        struct operand a = filled(t, &(struct shape){ .format = BSM_MXFP8_E5M2, .rows = M, .columns = K,
                                                      .batch = BATCH });
        struct operand b = filled(t, &(struct shape){ .format = BSM_MXFP6_E2M3, .rows = N, .columns = K });
        struct shape shape = {
            .format = format, .rows = M, .columns = N, .batch = BATCH, .extra_batch_pitch = 128,
            .layout = layout_of(t, format)
        };
        struct operand d = operand_make(&shape, 0xff);
        spread_scales(&d, turn % 2 * 11, 0xff);
        const bsm_matmul call = { .struct_size = sizeof call, .a = &a.m, .b = &b.m, .d = &d.m };
        if (bsm_multiply(context, &call) != BSM_OK) FAIL(t, "%s", bsm_last_error());
        for (int64_t g = 0; g < BATCH; g++) {
            shape.batch = 1, shape.extra_batch_pitch = 0;
            struct operand alone = operand_make(&shape, 0x5a);
            bsm_matrix single_a = a.m;
            int64_t bytes = 0;
            CHECK(t,
                  bsm_matrix_data_bytes(&(bsm_matrix){ .struct_size = sizeof a.m, .format = a.m.format, .rows = M,
                                                       .columns = K },
                                        &bytes) == BSM_OK);
            const int64_t scales = a.m.scale_batch_pitch != 0 ? a.m.scale_batch_pitch : (int64_t)M * (K / 32);
            single_a.batch = 1, single_a.data = (char *)a.m.data + g * bytes,
            single_a.scales = (char *)a.m.scales + g * scales;
            const bsm_matmul one = { .struct_size = sizeof one, .a = &single_a, .b = &b.m, .d = &alone.m };
            if (bsm_multiply(context, &one) != BSM_OK) FAIL(t, "%s", bsm_last_error());
            for (int64_t i = 0; i < M; i++) {
                uint32_t x = 0, y = 1;
                uint8_t s = 0, u = 1;
                for (int64_t j = 0; j < N; j++) {
                    CHECK(t, bsm_matrix_get_code(&d.m, g, i, j, &x) == BSM_OK &&
                                 bsm_matrix_get_code(&alone.m, 0, i, j, &y) == BSM_OK && x == y);
                    const int64_t block = j / bsm_format_get((int)format)->block;
                    CHECK(t, bsm_matrix_get_scale(&d.m, g, i, block, &s) == BSM_OK &&
                                 bsm_matrix_get_scale(&alone.m, 0, i, block, &u) == BSM_OK && s == u);
                }
            }
            const int64_t tight = (int64_t)alone.scale_bytes;
            if (g + 1 < BATCH && turn % 2 != 0)
                for (int64_t i = tight; i < tight + 11; i++)
                    CHECK(t, ((uint8_t *)d.m.scales)[g * d.m.scale_batch_pitch + i] == 0xff);
            operand_free(&alone);
        }
        operand_free(&a), operand_free(&b), operand_free(&d);
    }
    bsm_context_destroy(context);
}

/* The matrices of D share rows: matrix g is columns [g N, g N + N) of one wide matrix. */
static void interleaved_batches(struct test *t)
{
    enum { BATCH = 5, M = 21, N = 19, K = 40 };
    bsm_context *context = make_context(t);
    struct operand a = filled(t, &(struct shape){ .format = BSM_MXFP8_E4M3, .rows = M, .columns = K });
    struct operand b = filled(t, &(struct shape){ .format = BSM_MXFP8_E4M3, .rows = N, .columns = K, .batch = BATCH });
    struct operand d = { .m = { .struct_size = sizeof(bsm_matrix),
                                .format = BSM_FORMAT_FP32,
                                .rows = M,
                                .columns = N,
                                .batch = BATCH,
                                .pitch = BATCH * N,
                                .batch_pitch = N },
                         .data_bytes = sizeof(float) * BATCH * M * N };
    d.m.data = guarded_at_end(d.data_bytes, 4, 0xff);
    const bsm_matmul call = { .struct_size = sizeof call, .a = &a.m, .b = &b.m, .d = &d.m };
    multiply_and_check(t, context, &call, &d, "interleaved");
    operand_free(&a), operand_free(&b), operand_free(&d);
    bsm_context_destroy(context);
}

/* Groups ----------------------------------------------------------------------------------------------------------- */

static void one_grouping(struct test *t, bsm_context *context, const int64_t *rows, int64_t groups, int pair)
{
    int64_t m = 0;
    for (int64_t g = 0; g < groups; g++) m += rows[g];
    const int64_t n = rnd_between(t, 1, 20), k = rnd_between(t, 1, 50);
    struct shape sa = { .format = pairs[pair].a, .rows = m, .columns = k, .extra_pitch = rnd_below(t, 2) * 64 };
    struct shape sb = {
        .format = pairs[pair].b, .rows = n, .columns = k, .batch = groups, .extra_batch_pitch = rnd_below(t, 2) * 64
    };
    sa.layout = layout_of(t, sa.format), sb.layout = layout_of(t, sb.format);
    struct operand a = filled(t, &sa), b = filled(t, &sb),
                   c = filled(t, &(struct shape){ .format = BSM_FORMAT_FP16, .rows = m, .columns = n });
    struct operand d = operand_make(&(struct shape){ .format = BSM_FORMAT_FP32, .rows = m, .columns = n,
                                                     .extra_pitch = 64 }, 0xff);
    const float beta = 0.5f;
    float *alpha = random_reals(t, BSM_REAL_FP32);
    void *bias = random_reals(t, BSM_REAL_FP32);
    for (int variant = 0; variant < 4; variant++) {
        bsm_matmul call = { .struct_size = sizeof call, .a = &a.m, .b = &b.m, .d = &d.m, .groups = groups,
                            .group_rows = rows };
        if (variant != 0)
            call.alpha = alpha, call.alpha_per = variant == 1   ? BSM_PER_ROW
                                                 : variant == 2 ? BSM_PER_COLUMN
                                                                : BSM_PER_BATCH;
        if (variant >= 2) call.beta = &beta, call.c = &c.m;
        if (variant != 2)
            call.bias = bias, call.bias_per = variant == 1 ? BSM_PER_ROW : BSM_PER_COLUMN,
            call.bias_batch_pitch = variant == 3 ? 23 : 0;
        char what[120];
        snprintf(what, sizeof what, "%" PRId64 " groups, M=%" PRId64 ", variant %d, %s", groups, m, variant,
                 bsm_format_get((int)sa.format)->name);
        multiply_and_check(t, context, &call, &d, what);
    }
    operand_check_same(t, &a, "a"), operand_check_same(t, &b, "b");
    free(alpha), free(bias);
    operand_free(&a), operand_free(&b), operand_free(&c), operand_free(&d);
}

static void ragged_groups(struct test *t)
{
    static const struct { int64_t groups, rows[6];
    } cases[] = {
        { 4, { 3, 0, 5, 1 } },  { 3, { 0, 0, 7 } },
        { 3, { 7, 0, 0 } },     { 5, { 0, 2, 0, 0, 9 } },
        { 3, { 0, 0, 0 } },     { 1, { 6 } },
        { 1, { 0 } },           { 6, { 1, 1, 1, 1, 1, 1 } },
        { 3, { 200, 0, 131 } }, { 4, { 0, 193, 1, 0 } },
    };
    bsm_context *context = make_context(t);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int p = 0; p < (i < 8 ? PAIRS : 1); p++)
            one_grouping(t, context, cases[i].rows, cases[i].groups, (p + (int)i) % PAIRS);
    bsm_context_destroy(context);
}

/* A tile that went on behind its group would be overwritten by the next one, or not, as threads happen to run; amax
 * remembers it. */
static void rows_end_with_their_group(struct test *t)
{
    enum { M = 5, N = 3, K = 32, GROUPS = 2 };
    static const int64_t rows[GROUPS] = { 3, 2 };
    bsm_context *context = make_context(t);
    struct operand a = operand_make(&(struct shape){ .format = BSM_FORMAT_FP32, .rows = M, .columns = K }, 0);
    struct operand b = operand_make(&(struct shape){ .format = BSM_FORMAT_FP32, .rows = N, .columns = K,
                                                     .batch = GROUPS }, 0);
    struct operand d = operand_make(&(struct shape){ .format = BSM_FORMAT_FP32, .rows = M, .columns = N }, 0xff);
    for (int i = 0; i < M * K; i++) ((float *)a.m.data)[i] = i < 3 * K ? 1 : 16;
    for (int i = 0; i < GROUPS * N * K; i++) ((float *)b.m.data)[i] = i < N * K ? 64 : 1;
    float amax = 0;
    const bsm_matmul call = { .struct_size = sizeof call, .a = &a.m, .b = &b.m, .d = &d.m, .amax = &amax,
                              .groups = GROUPS,
                              .group_rows = rows };
    if (bsm_multiply(context, &call) != BSM_OK) FAIL(t, "%s", bsm_last_error());
    CHECK(t, amax == 64 * K);
    operand_free(&a), operand_free(&b), operand_free(&d);
    bsm_context_destroy(context);
}

/* D in blocks, its scales in one layout over the rows of all groups: the same as the groups' fp32 D quantized whole. */
static void block_scaled_groups(struct test *t)
{
    enum { M = 141, N = 100, K = 32, GROUPS = 4 };
    static const int64_t rows[GROUPS] = { 130, 0, 10, 1 };
    bsm_context *context = make_context(t);
    struct operand a =
        filled(t, &(struct shape){ .format = BSM_MXFP8_E4M3, .rows = M, .columns = K,
                                   .layout = { .kind = BSM_LAYOUT_128X4 } });
    struct operand b = filled(t, &(struct shape){ .format = BSM_MXFP4, .rows = N, .columns = K, .batch = GROUPS });
    struct operand plain = operand_make(&(struct shape){ .format = BSM_FORMAT_FP32, .rows = M, .columns = N }, 0xff);
    bsm_matmul call = { .struct_size = sizeof call, .a = &a.m, .b = &b.m, .d = &plain.m, .groups = GROUPS,
                        .group_rows = rows };
    multiply_and_check(t, context, &call, &plain, "groups");
    if (bsm_multiply(context, &call) != BSM_OK) FAIL(t, "%s", bsm_last_error());     /* the check overwrote it */
    for (int f = BSM_MXFP8_E4M3; f <= BSM_NVFP4; f++) {
        const struct shape shape = { .format = (bsm_format)f, .rows = M, .columns = N,
                                     .layout = { .kind = BSM_LAYOUT_128X4 } };
        struct operand d = operand_make(&shape, 0xff), want = operand_make(&shape, 0x00);
        const bsm_real_matrix source = {
            .struct_size = sizeof source, .rows = M, .columns = N, .data = plain.m.data, .row_stride = N,
            .column_stride = 1
        };
        call.d = &d.m;
        if (bsm_multiply(context, &call) != BSM_OK || bsm_quantize(context, &source, NULL, &want.m, NULL) != BSM_OK)
            FAIL(t, "%s", bsm_last_error());
        CHECK(t, memcmp(d.m.data, want.m.data, d.data_bytes) == 0
                     && memcmp(d.m.scales, want.m.scales, d.scale_bytes) == 0);
        operand_free(&d), operand_free(&want);
    }
    operand_free(&a), operand_free(&b), operand_free(&plain);
    bsm_context_destroy(context);
}

/* Empty products --------------------------------------------------------------------------------------------------- */

static void sizes_of_zero_and_one(struct test *t)
{
    bsm_context *context = make_context(t);
    const float beta = 3;
    float bias = 0.25f, alpha = 2;
    for (int bits = 0; bits < 64; bits++) {
        const int64_t m = bits & 1, n = bits >> 1 & 1, k = bits >> 2 & 1, batch = bits >> 3 & 1 ? 2 : 1;
        const int pair = bits >> 4;
        struct operand a = filled(t, &(struct shape){ .format = pairs[pair].a, .rows = m, .columns = k,
                                                      .batch = batch });
        struct operand b = filled(t, &(struct shape){ .format = pairs[pair].b, .rows = n, .columns = k });
        struct operand c = filled(t, &(struct shape){ .format = BSM_FORMAT_FP32, .rows = m, .columns = n,
                                                      .batch = batch });
        struct operand d =
            operand_make(&(struct shape){ .format = BSM_FORMAT_FP32, .rows = m, .columns = n, .batch = batch }, 0xff);
        bsm_matmul call = { .struct_size = sizeof call, .a = &a.m, .b = &b.m, .d = &d.m };
        multiply_and_check(t, context, &call, &d, "sizes of 0 and 1");
        call.beta = &beta, call.c = &c.m, call.alpha = &alpha;
        multiply_and_check(t, context, &call, &d, "sizes of 0 and 1, C");
        call.bias = &bias, call.bias_per = BSM_PER_COLUMN;
        multiply_and_check(t, context, &call, &d, "sizes of 0 and 1, C and bias");
        float amax = -1, largest = 0;
        const enum unit_order order = unit_order_of(context, &call);
        call.amax = &amax;
        for (int64_t g = 0; g < batch && m * n > 0; g++)
            largest = fmaxf(largest, fabsf(expected(&call, order, g, 0, 0)));
        CHECK(t, bsm_multiply(context, &call) == BSM_OK && amax == largest);
        operand_free(&a), operand_free(&b), operand_free(&c), operand_free(&d);
    }
    bsm_context_destroy(context);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        TEST(batches_and_broadcasts), TEST(batches_of_one_row),   TEST(block_scaled_batches),
        TEST(interleaved_batches),
        TEST(ragged_groups),          TEST(block_scaled_groups),  TEST(sizes_of_zero_and_one),
        TEST(rows_end_with_their_group),
    };
    return TEST_MAIN(argc, argv, cases);
}
