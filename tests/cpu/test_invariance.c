/* The same bits whatever surrounds an element: more rows, more columns, other threads, another batch, the caller's
 * floating-point mode, a fork, other calls at the same time, pitches of gigabytes, a large D. */
#include "naive_orders.h"

#include <fenv.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __x86_64__
#include <xmmintrin.h>
#endif

static const struct { bsm_format a, b; } pairs[] = {
    { BSM_MXFP8_E4M3, BSM_MXFP8_E5M2 }, { BSM_MXFP4, BSM_MXFP4 }, { BSM_NVFP4, BSM_MXFP6_E2M3 },
      { BSM_FORMAT_FP32, BSM_MXINT8 },
    { BSM_MXFP6_E3M2, BSM_NVFP4 },
};
enum { PAIRS = 5, M = 67, N = 150, K = 333 };

struct problem { struct operand a, b, d; bsm_context *context; };

static struct operand filled(struct test *t, bsm_format format, int64_t rows, int64_t columns)
{
    struct operand o = operand_make(&(struct shape){ .format = format, .rows = rows, .columns = columns }, 0xff);
    operand_fill(t, &o, false);
    operand_freeze(&o);
    return o;
}

static void problem_make(struct test *t, struct problem *p, int pair, int64_t m, int64_t n, int64_t k)
{
    p->a = filled(t, pairs[pair].a, m, k), p->b = filled(t, pairs[pair].b, n, k);
    p->d = operand_make(&(struct shape){ .format = BSM_FORMAT_FP32, .rows = m, .columns = n }, 0xff);
    CHECK(t, bsm_context_create(NULL, &p->context) == BSM_OK);
}

static void problem_free(struct test *t, struct problem *p)
{
    operand_check_same(t, &p->a, "a"), operand_check_same(t, &p->b, "b");
    operand_free(&p->a), operand_free(&p->b), operand_free(&p->d);
    bsm_context_destroy(p->context);
}

static void multiply(struct test *t, bsm_context *context, const bsm_matrix *a, const bsm_matrix *b,
                     const bsm_matrix *d)
{
    const bsm_matmul call = { .struct_size = sizeof call, .a = a, .b = b, .d = d };
    if (bsm_multiply(context, &call) != BSM_OK) FAIL(t, "%s", bsm_last_error());
}

/* Rows [first, first + count) of an operand, as an operand of its own. */
static struct operand rows_of(const struct operand *from, const int64_t *rows, int64_t count)
{
    struct operand o = operand_make(&(struct shape){ .format = from->m.format, .rows = count,
                                                     .columns = from->m.columns }, 0xff);
    uint32_t code = 0;
    uint8_t scale = 0;
    for (int64_t r = 0; r < count; r++) {
        for (int64_t k = 0; k < from->m.columns; k++) {
            bsm_matrix_get_code(&from->m, 0, rows[r], k, &code);
            bsm_matrix_set_code(&o.m, 0, r, k, code);
        }
        for (int64_t s = 0; s < bsm_matrix_scale_columns(&from->m); s++) {
            bsm_matrix_get_scale(&from->m, 0, rows[r], s, &scale);
            bsm_matrix_set_scale(&o.m, 0, r, s, scale);
        }
    }
    return o;
}

static float at(const struct operand *d, int64_t i, int64_t j)
{
    return ((const float *)d->m.data)[i * d->m.columns + j];
}

static bool same(float x, float y) { return memcmp(&x, &y, sizeof x) == 0; }

/* A chosen set of rows of A and of B: the same elements as in the whole product.  Covers fewer rows, fewer columns,
 * permutations. */
static void check_selection(struct test *t, const struct problem *p, const int64_t *rows, int64_t m,
                            const int64_t *columns, int64_t n)
{
    struct operand a = rows_of(&p->a, rows, m), b = rows_of(&p->b, columns, n);
    struct operand d = operand_make(&(struct shape){ .format = BSM_FORMAT_FP32, .rows = m, .columns = n }, 0xff);
    multiply(t, p->context, &a.m, &b.m, &d.m);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            if (!same(at(&d, i, j), at(&p->d, rows[i], columns[j]))) {
                FAIL(t,
                     "%s: %" PRId64 " x %" PRId64 " gave other bits at [%" PRId64 ", %" PRId64
                     "] than the whole product: %a, %a",
                     bsm_format_get((int)p->a.m.format)->name, m, n, i, j, (double)at(&d, i, j),
                     (double)at(&p->d, rows[i], columns[j]));
                i = m, j = n;
            }
    operand_free(&a), operand_free(&b), operand_free(&d);
}

static void permutation(struct test *t, int64_t *order, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        const int64_t other = rnd_below(t, i + 1);
        order[i] = order[other], order[other] = i;
    }
}

static void any_rows_and_columns(struct test *t)
{
    int64_t rows[M], columns[N];
    for (int pair = 0; pair < PAIRS; pair++) {
        struct problem p;
        problem_make(t, &p, pair, M, N, K);
        for (int kernel = 0; bsm_kernel_name(kernel) != NULL; kernel++) {
            if (!bsm_kernel_serves(p.context, kernel, pairs[pair].a, pairs[pair].b)) continue;
            bsm_context_force_kernel(p.context, kernel);
            multiply(t, p.context, &p.a.m, &p.b.m, &p.d.m);
            permutation(t, rows, M), permutation(t, columns, N);
            check_selection(t, &p, rows, M, columns, N);
            for (int64_t m = 1; m < 14; m += 3) check_selection(t, &p, rows + m, m, columns, 31);
            for (int64_t n = 1; n < 20; n += 6) check_selection(t, &p, rows, 5, columns + n, n);
            check_selection(t, &p, rows, 1, columns, 1);
        }
        problem_free(t, &p);
    }
}

/* Every kernel of an order of sums, any number of threads: one result. */
static void threads_and_kernels(struct test *t)
{
    static const int threads[] = { 1, 2, 3, 8 };
    for (int pair = 0; pair < PAIRS; pair++) {
        struct problem p;
        problem_make(t, &p, pair, 200, 260, 100);
        const bsm_matmul call = { .struct_size = sizeof call, .a = &p.a.m, .b = &p.b.m, .d = &p.d.m };
        struct operand first[UNIT_ORDERS];
        int runs[UNIT_ORDERS] = { 0 };
        for (int order = 0; order < UNIT_ORDERS; order++)
            first[order] = operand_make(&(struct shape){ .format = BSM_FORMAT_FP32, .rows = 200,
                                                         .columns = 260 }, 0xee);
        for (int kernel = 0; bsm_kernel_name(kernel) != NULL; kernel++) {
            if (!bsm_kernel_serves(p.context, kernel, pairs[pair].a, pairs[pair].b)) continue;
            for (int i = 0; i < 4; i++) {
                CHECK(t, bsm_context_force_kernel(p.context, kernel) == BSM_OK &&
                             bsm_context_set_threads(p.context, threads[i]) == BSM_OK);
                const enum unit_order order = unit_order_of(p.context, &call);
                memset(p.d.m.data, 0xff, p.d.data_bytes);
                multiply(t, p.context, &p.a.m, &p.b.m, runs[order] == 0 ? &first[order].m : &p.d.m);
                if (runs[order]++ > 0 && memcmp(first[order].m.data, p.d.m.data, p.d.data_bytes) != 0)
                    FAIL(t, "%s, %d threads: other bits", bsm_kernel_name(kernel), threads[i]);
            }
        }
        for (int order = 0; order < UNIT_ORDERS; order++) operand_free(&first[order]);
        problem_free(t, &p);
    }
}

/* Relations that need no reference --------------------------------------------------------------------------------- */

/* s added to the scales of row i of A, u to those of row j of B: D[i, j] times 2^(s + u). */
static void scale_shift(struct test *t)
{
    static const int e8m0_pairs[] = { 0, 1 };
    for (int x = 0; x < 2; x++) {
        struct problem p;
        int shift_a[40], shift_b[40];
        problem_make(t, &p, e8m0_pairs[x], 40, 40, 100);
        multiply(t, p.context, &p.a.m, &p.b.m, &p.d.m);
        struct operand a = p.a, b = p.b;
        a.m.scales = malloc(p.a.scale_bytes), b.m.scales = malloc(p.b.scale_bytes);
        memcpy(a.m.scales, p.a.m.scales, p.a.scale_bytes), memcpy(b.m.scales, p.b.m.scales, p.b.scale_bytes);
        for (int r = 0; r < 40; r++) {
            shift_a[r] = (int)rnd_between(t, -20, 20), shift_b[r] = (int)rnd_between(t, -20, 20);
            for (int64_t s = 0; s < 4; s++)
                ((uint8_t *)a.m.scales)[r * 4 + s] = (uint8_t)(((uint8_t *)a.m.scales)[r * 4 + s] + shift_a[r]);
            for (int64_t s = 0; s < 4; s++)
                ((uint8_t *)b.m.scales)[r * 4 + s] = (uint8_t)(((uint8_t *)b.m.scales)[r * 4 + s] + shift_b[r]);
        }
        struct operand d = operand_make(&(struct shape){ .format = BSM_FORMAT_FP32, .rows = 40, .columns = 40 }, 0xff);
        multiply(t, p.context, &a.m, &b.m, &d.m);
        for (int64_t i = 0; i < 40; i++)
            for (int64_t j = 0; j < 40; j++)
                CHECK(t, same(at(&d, i, j), ldexpf(at(&p.d, i, j), shift_a[i] + shift_b[j])));
        free(a.m.scales), free(b.m.scales);
        operand_free(&d);
        problem_free(t, &p);
    }
}

/* All of A negated: all of D negated, but a zero sum, which stays +0. */
static void negation(struct test *t)
{
    struct problem p;
    problem_make(t, &p, 0, 30, 40, 96);
    struct operand negative = filled(t, pairs[0].a, 30, 96);
    multiply(t, p.context, &p.a.m, &p.b.m, &p.d.m);
    memcpy(negative.m.scales, p.a.m.scales, p.a.scale_bytes);
    for (size_t i = 0; i < p.a.data_bytes; i++) ((uint8_t *)negative.m.data)[i] = ((uint8_t *)p.a.m.data)[i] ^ 0x80;
    struct operand d = operand_make(&(struct shape){ .format = BSM_FORMAT_FP32, .rows = 30, .columns = 40 }, 0xff);
    multiply(t, p.context, &negative.m, &p.b.m, &d.m);
    for (int64_t i = 0; i < 30; i++)
        for (int64_t j = 0; j < 40; j++) CHECK(t, same(at(&d, i, j), at(&p.d, i, j) == 0 ? 0 : -at(&p.d, i, j)));
    operand_free(&negative), operand_free(&d);
    problem_free(t, &p);
}

/* A block of zeros put in at any place of K: nothing changes, whatever its scale. */
static void zero_blocks(struct test *t)
{
    enum { BLOCKS = 9, ROWS = 8 };
    for (int where = 0; where <= BLOCKS; where++) {
        struct problem p;
        problem_make(t, &p, 0, ROWS, ROWS, 32 * BLOCKS);
        multiply(t, p.context, &p.a.m, &p.b.m, &p.d.m);
        struct operand sides[2];
        for (int side = 0; side < 2; side++) {
            const struct operand *from = side == 0 ? &p.a : &p.b;
            sides[side] = filled(t, from->m.format, ROWS, 32 * (BLOCKS + 1));
            for (int64_t r = 0; r < ROWS; r++)
                for (int64_t block = 0, s = 0; block <= BLOCKS; block++) {
                    uint8_t *to = (uint8_t *)sides[side].m.data + (r * (BLOCKS + 1) + block) * 32;
                    if (block == where) {
                        if (side == 0) memset(to, 0, 32);
                        continue;
                    }
                    memcpy(to, (uint8_t *)from->m.data + (r * BLOCKS + s) * 32, 32);
                    ((uint8_t *)sides[side].m.scales)[r * (BLOCKS + 1) + block] =
                        ((uint8_t *)from->m.scales)[r * BLOCKS + s++];
                }
        }
        struct operand d = operand_make(&(struct shape){ .format = BSM_FORMAT_FP32, .rows = ROWS,
                                                         .columns = ROWS }, 0xff);
        multiply(t, p.context, &sides[0].m, &sides[1].m, &d.m);
        CHECK(t, memcmp(d.m.data, p.d.m.data, d.data_bytes) == 0);
        operand_free(&sides[0]), operand_free(&sides[1]), operand_free(&d);
        problem_free(t, &p);
    }
}

/* Floating-point mode ---------------------------------------------------------------------------------------------- */

#ifdef __x86_64__
static void flush_subnormals(void) { _mm_setcsr(_mm_getcsr() | 0x8040); }
static unsigned control(void) { return _mm_getcsr() & 0xffc0; }
#else
static void flush_subnormals(void) { }
static unsigned control(void) { return 0; }
#endif

/* Everything that a call reads is subnormal, or makes a subnormal: alpha, beta, tensor scales, C, bias, D's tensor
 * scale, S. */
struct subnormal_call {
    float alpha, beta, ta, tb, td, amax, bias[40];
    struct operand c, d;
    bsm_matrix a, b;
    bsm_matmul call;
};

static void subnormal_make(struct test *t, struct subnormal_call *x, const struct problem *p, bsm_format format,
                           int variant)
{
    *x = (struct subnormal_call){ .alpha = variant == 1 ? 0x1.4p-140f : 0x1p-100f,
                                  .beta = variant == 2 ? 0x1p-130f : -0.3f,
                                  .ta = variant == 3 ? 0x1.8p-135f : 0x1p-20f,
                                  .tb = variant == 4 ? 0x1.8p-132f : 0x1.1p-15f,
                                  .td = variant == 5 ? 0x1.2p-133f : 0x1p-120f,
                                  .a = p->a.m,
                                  .b = p->b.m };
    if (variant == 3) x->alpha = 0x1p10f;
    if (variant == 4) x->alpha = 0x1p10f;
    x->c = operand_make(&(struct shape){ .format = BSM_FORMAT_FP32, .rows = 30, .columns = 40 }, 0);
    for (int i = 0; i < 30 * 40; i++) ((float *)x->c.m.data)[i] = ldexpf((float)rnd_normal(t), variant == 2 ? 0 : -128);
    for (int j = 0; j < 40; j++) x->bias[j] = ldexpf((float)rnd_normal(t), -129);
    x->d = operand_make(&(struct shape){ .format = format, .rows = 30, .columns = 40 }, 0xff);
    x->a.tensor_scale = &x->ta, x->b.tensor_scale = &x->tb, x->d.m.tensor_scale = &x->td;
    x->call = (bsm_matmul){ .struct_size = sizeof x->call,
                            .a = &x->a,
                            .b = &x->b,
                            .alpha = &x->alpha,
                            .beta = &x->beta,
                            .c = &x->c.m,
                            .d = &x->d.m,
                            .bias = x->bias,
                            .bias_per = BSM_PER_COLUMN,
                            .amax = &x->amax };
}

static void mode_of_the_caller(struct test *t)
{
    static const int roundings[] = { FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO, FE_TONEAREST };
    static const bsm_format formats[] = { BSM_FORMAT_FP32, BSM_NVFP4, BSM_MXFP8_E4M3, BSM_FORMAT_E4M3 };
    fenv_t before;
    fegetenv(&before);
    struct problem p;
    problem_make(t, &p, 0, 30, 40, 64);
    for (int turn = 0; turn < 6 * 4; turn++) {
        struct subnormal_call x;
        subnormal_make(t, &x, &p, formats[turn % 4], turn / 4);
        if (bsm_multiply(p.context, &x.call) != BSM_OK) FAIL(t, "%s", bsm_last_error());
        operand_freeze(&x.d);
        const uint32_t nothing = 0;
        uint32_t amax, again;
        memcpy(&amax, &x.amax, 4);
        CHECK(t, amax != nothing);
        for (int i = 0; i < 8; i++) {
            memset(x.d.m.data, 0xff, x.d.data_bytes);
            if (x.d.scale_bytes > 0) memset(x.d.m.scales, 0xff, x.d.scale_bytes);
            bsm_context_set_threads(p.context, 1 + i % 3);
            fesetround(roundings[i % 4]);
            if (i < 4) flush_subnormals();
            const unsigned mode = control();
            const bsm_status status = bsm_multiply(p.context, &x.call);
            const unsigned mode_after = control();
            const int rounding_after = fegetround();
            fesetenv(&before);
            CHECK(t, status == BSM_OK && mode == mode_after && rounding_after == roundings[i % 4]);
            memcpy(&again, &x.amax, 4);
            CHECK(t, amax == again);
            operand_check_same(t, &x.d, "D under another mode");
        }
        operand_free(&x.c), operand_free(&x.d);
    }
    problem_free(t, &p);
}

/* Processes and threads -------------------------------------------------------------------------------------------- */

static void in_a_forked_child(struct test *t)
{
    struct problem p;
    problem_make(t, &p, 0, 120, 300, 128);
    bsm_context_set_threads(p.context, 3);
    multiply(t, p.context, &p.a.m, &p.b.m, &p.d.m);
    operand_freeze(&p.d);
    fflush(NULL);
    const pid_t child = fork();
    CHECK_OR_RETURN(t, child >= 0);
    if (child == 0) {
        alarm(600);
        memset(p.d.m.data, 0xff, p.d.data_bytes);
        multiply(t, p.context, &p.a.m, &p.b.m, &p.d.m);
        operand_check_same(t, &p.d, "the child's D");
        _exit(t->failures == 0 ? 0 : 1);
    }
    int status = -1;
    CHECK(t, waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    problem_free(t, &p);
}

struct caller { bsm_context *context; const struct problem *problem; bool own; int wrong; };

static void *call_again_and_again(void *argument)
{
    struct caller *c = argument;
    bsm_context *context = c->context;
    struct operand d = operand_make(
        &(struct shape){ .format = BSM_FORMAT_FP32, .rows = c->problem->d.m.rows,
                         .columns = c->problem->d.m.columns }, 0xff);
    if (c->own && bsm_context_create(NULL, &context) != BSM_OK) c->wrong++;
    const bsm_matmul call = { .struct_size = sizeof call, .a = &c->problem->a.m, .b = &c->problem->b.m, .d = &d.m };
    for (int i = 0; i < 15; i++) {
        memset(d.m.data, 0xff, d.data_bytes);
        if (bsm_multiply(context, &call) != BSM_OK || memcmp(d.m.data, c->problem->d.m.data, d.data_bytes) != 0)
            c->wrong++;
    }
    if (c->own) bsm_context_destroy(context);
    operand_free(&d);
    return NULL;
}

static void callers_at_once(struct test *t)
{
    enum { CALLERS = 4 };
    struct problem p[CALLERS];
    for (int i = 0; i < CALLERS; i++) {
        problem_make(t, &p[i], i, 20 + 30 * i, 40 + 70 * i, 64);       /* workspaces of different sizes */
        multiply(t, p[i].context, &p[i].a.m, &p[i].b.m, &p[i].d.m);
    }
    for (int own = 0; own < 2; own++) {
        struct caller callers[CALLERS];
        pthread_t threads[CALLERS];
        bsm_context_set_threads(p[0].context, 2);
        for (int i = 0; i < CALLERS; i++) callers[i] = (struct caller){ p[0].context, &p[i], own != 0, 0 };
        for (int i = 0; i < CALLERS; i++)
            CHECK_OR_RETURN(t, pthread_create(&threads[i], NULL, call_again_and_again, &callers[i]) == 0);
        for (int i = 0; i < CALLERS; i++) pthread_join(threads[i], NULL);
        for (int i = 0; i < CALLERS; i++)
            if (callers[i].wrong != 0)
                FAIL(t, "caller %d, %s: %d calls of 15 wrong", i, own ? "a context each" : "one context",
                     callers[i].wrong);
    }
    for (int i = 0; i < CALLERS; i++) problem_free(t, &p[i]);
}

/* Matrices whose rows lie gigabytes apart -------------------------------------------------------------------------- */

/* The rows of `from`, `gap` bytes apart in memory that exists only where it is touched. */
static bsm_matrix far_apart(const struct operand *from, int64_t gap, int64_t row_bytes, int64_t element_bytes,
                            size_t *mapped)
{
    bsm_matrix m = from->m;
    *mapped = (size_t)(gap * m.rows);
    char *memory = mmap(NULL, *mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    m.data = memory == MAP_FAILED ? NULL : memory;
    m.pitch = gap / element_bytes;
    for (int64_t r = 0; m.data != NULL && r < m.rows; r++)
        memcpy(memory + r * gap, (char *)from->m.data + r * row_bytes, (size_t)row_bytes);
    return m;
}

static void pitches_of_gigabytes(struct test *t)
{
    enum { ROWS = 5, COLUMNS = 7, DEPTH = 64 };
    const int64_t gap = (int64_t)3 << 30;             /* 3 * 2^30 elements of one byte, over 2^33 bytes from end to
                                                         end */
    struct operand a = filled(t, BSM_MXFP8_E4M3, ROWS, DEPTH), b = filled(t, BSM_MXFP8_E4M3, COLUMNS, DEPTH),
                   c = filled(t, BSM_FORMAT_FP32, ROWS, COLUMNS);
    struct operand d = operand_make(&(struct shape){ .format = BSM_FORMAT_FP32, .rows = ROWS,
                                                     .columns = COLUMNS }, 0xff);
    bsm_context *context = NULL;
    CHECK_OR_RETURN(t, bsm_context_create(NULL, &context) == BSM_OK);
    const float beta = 0.5f;
    bsm_matmul call = { .struct_size = sizeof call, .a = &a.m, .b = &b.m, .beta = &beta, .c = &c.m, .d = &d.m };
    CHECK(t, bsm_multiply(context, &call) == BSM_OK);

    size_t bytes[4];
    bsm_matrix far[4] = { far_apart(&a, gap, DEPTH, 1, &bytes[0]), far_apart(&b, gap, DEPTH, 1, &bytes[1]),
                          far_apart(&c, 4 * gap, 4 * COLUMNS, 4, &bytes[2]),
                          far_apart(&d, 4 * gap, 4 * COLUMNS, 4, &bytes[3]) };
    if (far[0].data == NULL || far[1].data == NULL || far[2].data == NULL || far[3].data == NULL) {
        test_skip(t, "this machine maps no 150 GB of address space");
    } else {
        for (int64_t r = 0; r < ROWS; r++) memset((char *)far[3].data + r * 4 * gap, 0xff, 4 * COLUMNS);
        call.a = &far[0], call.b = &far[1], call.c = &far[2], call.d = &far[3];
        if (bsm_multiply(context, &call) != BSM_OK) FAIL(t, "%s", bsm_last_error());
        for (int64_t r = 0; r < ROWS; r++)
            CHECK(t, memcmp((char *)far[3].data + r * 4 * gap, (char *)d.m.data + r * 4 * COLUMNS, 4 * COLUMNS) == 0);
    }
    for (int i = 0; i < 4; i++)
        if (far[i].data != NULL) munmap(far[i].data, bytes[i]);
    operand_free(&a), operand_free(&b), operand_free(&c), operand_free(&d);
    bsm_context_destroy(context);
}

/* Rows [first, first + count) of B as they lie in it, and the columns of D that they make. */
static void multiply_columns(struct test *t, bsm_context *context, const struct operand *a, const struct operand *b,
                             int64_t first, int64_t count, const bsm_matrix *d)
{
    bsm_matrix part = b->m, columns = *d;
    part.data = (unsigned char *)b->m.data + first * b->m.columns;
    part.scales = (unsigned char *)b->m.scales + first * (b->m.columns / 32);
    part.rows = columns.columns = count;
    columns.data = (float *)d->data + first;
    multiply(t, context, &a->m, &part, &columns);
}

/* A D so large that whole lines of it are written past the caches, where a row begins at one: the bits of its halves,
 * which are not. */
static void large_d(struct test *t)
{
    enum { ROWS = 3, COLUMNS = 700005, PITCH = 700032, HALF = 350016, DEPTH = 32, GUARD = 16 };
    const size_t floats = (size_t)ROWS * PITCH + GUARD;
    struct operand a = filled(t, BSM_MXFP8_E4M3, ROWS, DEPTH);
    struct operand b = operand_make(&(struct shape){ .format = BSM_MXFP8_E4M3, .rows = COLUMNS,
                                                     .columns = DEPTH }, 0xff);
    operand_fill(t, &b, true);
    for (int64_t j = 0; j < COLUMNS; j += 1 + rnd_below(t, 3000))          /* a NaN with a sign */
        CHECK(t, bsm_matrix_set_code(&b.m, 0, j, rnd_below(t, DEPTH), 0xff) == BSM_OK);
    float *const memory = aligned_alloc(64, floats * sizeof *memory), *const want =
                                                                          aligned_alloc(64, floats * sizeof *want);
    bsm_context *context = NULL;
    CHECK_OR_RETURN(t, memory != NULL && want != NULL && bsm_context_create(NULL, &context) == BSM_OK);
    bsm_matrix d = { .struct_size = sizeof d, .format = BSM_FORMAT_FP32, .rows = ROWS, .columns = COLUMNS,
                     .pitch = PITCH };
    for (int offset = 0; offset < 2; offset++) {          /* the second begins within a line */
        memset(memory, 0xee, floats * sizeof *memory), memset(want, 0xee, floats * sizeof *want);
        d.data = want + offset;
        multiply_columns(t, context, &a, &b, 0, HALF, &d);
        multiply_columns(t, context, &a, &b, HALF, COLUMNS - HALF, &d);
        d.data = memory + offset;
        multiply(t, context, &a.m, &b.m, &d);
        if (memcmp(memory, want, floats * sizeof *memory) != 0)
            FAIL(t, "D from float %d of a line on: other bits", offset);
    }
    free(memory), free(want);
    operand_free(&a), operand_free(&b);
    bsm_context_destroy(context);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        TEST(any_rows_and_columns), TEST(threads_and_kernels), TEST(scale_shift),       TEST(negation),
        TEST(zero_blocks),          TEST(mode_of_the_caller),  TEST(in_a_forked_child), TEST(callers_at_once),
        TEST(pitches_of_gigabytes), TEST(large_d),
    };
    return TEST_MAIN(argc, argv, cases);
}
