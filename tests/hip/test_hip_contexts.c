/* Contexts and plans of a GPU of AMD as programs use them: nothing to multiply, groups without rows, plans with other
 * pointers, memory that is not there, threads, streams of the caller and graphs. */
#include "cuda/harness/gpu.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

/* One product: operands, and D as the CPU has it. */
struct job {
    struct operand a, b, d;
    struct twin x, y, z;
    bsm_matmul call;
    void *rows;
};

static void job_open(struct test *t, const struct contexts *c, struct job *j, bsm_format fa, bsm_format fb,
                     const int64_t *sizes, const int64_t *group_rows)
{
    const int64_t m = sizes[0], n = sizes[1], k = sizes[2], batch = sizes[3];
    const bool grouped = group_rows != NULL;
    *j = (struct job){ .a = operand_make(&(struct shape){ .format = fa, .rows = m, .columns = k,
                                                          .batch = grouped ? 1 : batch }, 0xff),
                       .b = operand_make(&(struct shape){ .format = fb, .rows = n, .columns = k, .batch = batch },
                                         0xff),
                       .d = operand_make(&(struct shape){ .format = BSM_FORMAT_FP32, .rows = m, .columns = n,
                                                          .batch = grouped ? 1 : batch }, 0xff) };
    fill_whole(t, &j->a), fill_whole(t, &j->b);
    j->x = twin_make(t, c, &j->a), j->y = twin_make(t, c, &j->b), j->z = twin_make(t, c, &j->d);
    j->rows = to_device(t, c, group_rows, grouped ? (size_t)batch * sizeof *group_rows : 0);
    j->call = (bsm_matmul){ .struct_size = sizeof j->call, .a = &j->x.m, .b = &j->y.m, .d = &j->z.m,
                            .groups = grouped ? batch : 0, .group_rows = j->rows };
    const bsm_matmul host = { .struct_size = sizeof host, .a = &j->a.m, .b = &j->b.m, .d = &j->d.m,
                              .groups = j->call.groups, .group_rows = group_rows };
    if (bsm_multiply(c->cpu, &host) != BSM_OK) FAIL(t, "on the CPU: %s", bsm_last_error());
}

static void job_close(struct test *t, const struct contexts *c, struct job *j)
{
    twin_free(t, c, &j->x), twin_free(t, c, &j->y), twin_free(t, c, &j->z);
    CHECK(t, bsm_device_release(c->gpu, j->rows) == BSM_OK);
    operand_free(&j->a), operand_free(&j->b), operand_free(&j->d);
}

static void spoil(struct test *t, const struct contexts *c, const struct job *j)
{
    unsigned char *bytes = malloc(j->d.data_bytes);
    memset(bytes, 0x5a, j->d.data_bytes);
    CHECK(t, bsm_device_write(c->gpu, j->z.m.data, bytes, j->d.data_bytes) == BSM_OK);
    free(bytes);
}

/* Every size may be 0, the batch and the rows of groups, too; amax of an empty D is 0, and nothing else is written. */
static void nothing_to_multiply(struct test *t)
{
    static const int64_t sizes[][4] = { { 0, 8, 64, 1 }, { 8, 0, 64, 1 }, { 8, 40, 0, 1 }, { 0, 0, 0, 1 },
                                        { 8, 40, 0, 3 }, { 0, 8, 64, 3 } };
    static const bsm_format pairs[][2] = { { BSM_MXFP4, BSM_MXFP4 }, { BSM_FORMAT_BF16, BSM_NVFP4 } };
    struct contexts c;
    if (!contexts_open(t, &c)) return;
    for (size_t i = 0; i < 2 * sizeof sizes / sizeof sizes[0]; i++) {
        const int64_t *s = sizes[i / 2];
        struct operand a = operand_make(&(struct shape){ .format = pairs[i % 2][0], .rows = s[0], .columns = s[2],
                                                         .batch = s[3] }, 0xff),
                       b = operand_make(&(struct shape){ .format = pairs[i % 2][1], .rows = s[1], .columns = s[2],
                                                         .batch = s[3] }, 0xff),
                       d = operand_make(&(struct shape){ .format = BSM_FORMAT_BF16, .rows = s[0], .columns = s[1],
                                                         .batch = s[3] }, 0xff);
        float amax = -1, bias[40];
        for (int j = 0; j < 40; j++) bias[j] = (float)j - 7;
        char what[64];
        snprintf(what, sizeof what, "%d x %d x %d, batch %d", (int)s[0], (int)s[1], (int)s[2], (int)s[3]);
        const struct run run = { .a = &a, .b = &b, .d = &d, .biases = 40,
                                 .call = { .struct_size = sizeof run.call, .amax = &amax, .bias = bias,
                                           .bias_per = BSM_PER_COLUMN } };
        run_both(t, &c, &run, what);
        operand_free(&a), operand_free(&b), operand_free(&d);
    }
    contexts_close(&c);
}

static void groups_without_rows(struct test *t)
{
    static const int64_t rows[][4] = { { 0, 0, 0, 33 }, { 33, 0, 0, 0 }, { 0, 1, 0, 32 }, { 0, 0, 0, 0 } };
    static const bsm_format pairs[][2] = { { BSM_MXFP8_E4M3, BSM_MXFP4 }, { BSM_FORMAT_BF16, BSM_MXFP4 } };
    struct contexts c;
    if (!contexts_open(t, &c)) return;
    for (int i = 0; i < 8; i++) {
        struct job j;
        const int64_t *of = rows[i / 2], sizes[] = { of[0] + of[1] + of[2] + of[3], 70, 96, 4 };
        job_open(t, &c, &j, pairs[i % 2][0], pairs[i % 2][1], sizes, of);
        if (bsm_multiply(c.gpu, &j.call) != BSM_OK) FAIL(t, "%s", bsm_last_error());
        twin_compare(t, &c, &j.z, "groups without rows");
        job_close(t, &c, &j);
    }
    contexts_close(&c);
}

/* A plan serves other matrices of its shape; rows that are not aligned as those of the plan were are refused. */
static void other_pointers(struct test *t)
{
    static const int64_t sizes[] = { 33, 70, 128, 2 };
    struct contexts c;
    struct job first, second;
    if (!contexts_open(t, &c)) return;
    job_open(t, &c, &first, BSM_MXFP8_E4M3, BSM_MXFP4, sizes, NULL);
    job_open(t, &c, &second, BSM_MXFP8_E4M3, BSM_MXFP4, sizes, NULL);
    bsm_plan *plan = NULL;
    CHECK(t, bsm_plan_create(c.gpu, &first.call, &plan) == BSM_OK);
    const size_t bytes = bsm_plan_workspace_bytes(plan);
    void *workspace = NULL;
    CHECK(t, bsm_device_allocate(c.gpu, bytes, &workspace) == BSM_OK);
    CHECK(t, bsm_plan_run(plan, &second.call, workspace, bytes) == BSM_OK);
    CHECK(t, bsm_plan_run(plan, &first.call, workspace, bytes) == BSM_OK);
    twin_compare(t, &c, &first.z, "the plan's own"), twin_compare(t, &c, &second.z, "others");
    bsm_matrix moved = second.x.m;
    moved.data = (unsigned char *)moved.data + 1;
    second.call.a = &moved;
    CHECK(t, bsm_plan_run(plan, &second.call, workspace, bytes) == BSM_EALIGN
                 && strstr(bsm_last_error(), "a->data=") != NULL);
    bsm_plan_destroy(plan);
    CHECK(t, bsm_device_release(c.gpu, workspace) == BSM_OK);
    second.call.a = &second.x.m;
    job_close(t, &c, &first), job_close(t, &c, &second);
    contexts_close(&c);
}

/* A workspace that no GPU has: a sentence, and the context goes on. */
static void memory_that_is_not_there(struct test *t)
{
    static const int64_t sizes[] = { 33, 70, 128, 1 };
    struct contexts c;
    struct job j;
    void *memory = NULL;
    if (!contexts_open(t, &c)) return;
    job_open(t, &c, &j, BSM_FORMAT_BF16, BSM_NVFP4, sizes, NULL);
    CHECK(t, bsm_multiply(c.gpu, &j.call) == BSM_OK);
    CHECK(t, bsm_device_allocate(c.gpu, (size_t)1 << 60, &memory) == BSM_ENOMEM && memory == NULL);
    CHECK(t, strstr(bsm_last_error(), "hipMalloc gave") != NULL);
    /* Rows of A decoded into the workspace: 2^48 bytes of them, which nothing reads before they are there. */
    bsm_matmul large = j.call;
    bsm_matrix a = j.x.m, d = j.z.m;
    a.rows = (int64_t)1 << 30, a.pitch = 0, d.rows = a.rows, d.pitch = 0, a.columns = 1 << 17;
    bsm_matrix b = j.y.m;
    b.columns = a.columns, b.pitch = 0, b.rows = 1, d.columns = 1;
    a.data = (void *)(uintptr_t)((uint64_t)1 << 50), b.data = (void *)(uintptr_t)((uint64_t)1 << 52);
    b.scales = (void *)(uintptr_t)((uint64_t)1 << 53), d.data = (void *)(uintptr_t)((uint64_t)1 << 54);
    a.data = (unsigned char *)a.data + 2;
    large.a = &a, large.b = &b, large.d = &d;
    CHECK(t, bsm_multiply(c.gpu, &large) == BSM_ENOMEM && strstr(bsm_last_error(), "a workspace of") != NULL);
    spoil(t, &c, &j);
    CHECK(t, bsm_multiply(c.gpu, &j.call) == BSM_OK);
    twin_compare(t, &c, &j.z, "after memory was not there");
    job_close(t, &c, &j);
    contexts_close(&c);
}

/* Threads ---------------------------------------------------------------------------------------------------------- */

enum { THREADS = 3, TIMES = 4 };

struct thread {
    pthread_t id;
    struct contexts c;                    /* its own, or all threads' */
    struct job job;
    const bsm_plan *plan;                 /* NULL: bsm_multiply, whose workspace threads of a context share */
    void *workspace;
    size_t bytes;
    bsm_status status;
    char said[256];
};

static void *work(void *argument)
{
    struct thread *thread = argument;
    for (int i = 0; i < TIMES && thread->status == BSM_OK; i++) {
        thread->status = thread->plan != NULL
                             ? bsm_plan_run(thread->plan, &thread->job.call, thread->workspace, thread->bytes)
                             : bsm_multiply(thread->c.gpu, &thread->job.call);
        if (thread->status == BSM_OK) thread->status = bsm_context_synchronize(thread->c.gpu);
    }
    if (thread->status != BSM_OK) snprintf(thread->said, sizeof thread->said, "%s", bsm_last_error());
    return NULL;
}

/* own: a context each; planned: one plan of a context, run by all with workspaces of their own. */
static void in_threads(struct test *t, bool own, bool planned)
{
    struct contexts c;
    struct thread threads[THREADS] = { { .plan = NULL } };
    bsm_plan *plan = NULL;
    if (!contexts_open(t, &c)) return;
    for (int i = 0; i < THREADS; i++) {
        struct thread *x = &threads[i];
        const int64_t sizes[] = { 33 + (planned ? 0 : 9 * i), 70, 96, 1 };
        x->c = c;
        if (own && !contexts_open(t, &x->c)) return;
        job_open(t, &x->c, &x->job, BSM_FORMAT_BF16, BSM_MXFP4, sizes, NULL);
        if (!planned) continue;
        if (i == 0) CHECK(t, bsm_plan_create(c.gpu, &x->job.call, &plan) == BSM_OK);
        x->plan = plan, x->bytes = bsm_plan_workspace_bytes(plan);
        CHECK(t, bsm_device_allocate(c.gpu, x->bytes, &x->workspace) == BSM_OK);
    }
    for (int i = 0; i < THREADS; i++) CHECK(t, pthread_create(&threads[i].id, NULL, work, &threads[i]) == 0);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i].id, NULL);
    for (int i = 0; i < THREADS; i++) {
        struct thread *x = &threads[i];
        if (x->status != BSM_OK) FAIL(t, "thread %d: %s", i, x->said);
        twin_compare(t, &x->c, &x->job.z, own ? "a context each" : planned ? "one plan" : "one context");
        if (planned) CHECK(t, bsm_device_release(c.gpu, x->workspace) == BSM_OK);
        job_close(t, &x->c, &x->job);
        if (own) contexts_close(&x->c);
    }
    bsm_plan_destroy(plan);
    contexts_close(&c);
}

static void threads_with_a_context_each(struct test *t) { in_threads(t, true, false); }
static void threads_of_one_context(struct test *t) { in_threads(t, false, false); }
static void threads_of_one_plan(struct test *t) { in_threads(t, false, true); }

/* Streams ---------------------------------------------------------------------------------------------------------- */

struct calls {
    int (*hipStreamCreateWithFlags)(void **stream, unsigned flags);
    int (*hipStreamDestroy)(void *stream);
    int (*hipStreamSynchronize)(void *stream);
    int (*hipStreamBeginCapture)(void *stream, int mode);
    int (*hipStreamEndCapture)(void *stream, void **graph);
    int (*hipGraphInstantiate)(void **exec, void *graph, void *node, char *log, size_t bytes);
    int (*hipGraphLaunch)(void *exec, void *stream);
    int (*hipGraphExecDestroy)(void *exec);
    int (*hipGraphDestroy)(void *graph);
};

static bool calls_open(struct test *t, struct calls *calls)
{
    const char *path = getenv("BLOCKSCALE_LIBHIP");
    void *library = dlopen(path != NULL ? path : "libamdhip64.so", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        test_skip(t, "no libamdhip64.so of this name");
        return false;
    }
#define FIND(name) *(void **)&calls->name = dlsym(library, #name), CHECK(t, calls->name != NULL)
    FIND(hipStreamCreateWithFlags), FIND(hipStreamDestroy), FIND(hipStreamSynchronize), FIND(hipStreamBeginCapture);
    FIND(hipStreamEndCapture), FIND(hipGraphInstantiate), FIND(hipGraphLaunch), FIND(hipGraphExecDestroy);
    FIND(hipGraphDestroy);
#undef FIND
    return calls->hipGraphDestroy != NULL;
}

/* A stream of the caller that waits for no other: the product's, or the context's. */
static void streams_of_the_caller(struct test *t)
{
    enum { NON_BLOCKING = 1 };
    static const int64_t sizes[] = { 40, 70, 96, 1 };
    struct contexts c;
    struct calls calls;
    struct job j;
    void *stream = NULL;
    if (!contexts_open(t, &c) || !calls_open(t, &calls)) return;
    job_open(t, &c, &j, BSM_FORMAT_BF16, BSM_MXFP4, sizes, NULL);
    CHECK(t, calls.hipStreamCreateWithFlags(&stream, NON_BLOCKING) == 0);
    for (int i = 0; i < 3; i++) {
        j.call.stream = i % 2 == 0 ? stream : NULL;
        spoil(t, &c, &j);
        CHECK(t, bsm_multiply(c.gpu, &j.call) == BSM_OK);
        CHECK(t, calls.hipStreamSynchronize(stream) == 0);
        twin_compare(t, &c, &j.z, "a stream of the caller");
    }
    const bsm_context_options options = { .struct_size = sizeof options, .backend = bsm_context_backend(c.gpu),
                                          .stream = stream };
    bsm_context *other = NULL;
    CHECK(t, bsm_context_create(&options, &other) == BSM_OK);
    spoil(t, &c, &j);
    j.call.stream = NULL;
    CHECK(t, bsm_multiply(other, &j.call) == BSM_OK && bsm_context_synchronize(other) == BSM_OK);
    twin_compare(t, &c, &j.z, "a context's stream");
    bsm_context_destroy(other);
    CHECK(t, calls.hipStreamDestroy(stream) == 0);
    job_close(t, &c, &j);
    contexts_close(&c);
}

/* A plan's run in a graph, replayed; what keeps a workspace itself is refused while a stream is captured. */
static void graphs(struct test *t)
{
    static const int64_t sizes[] = { 33, 70, 128, 1 };
    static const bsm_format pairs[][2] = { { BSM_MXFP4, BSM_MXFP4 }, { BSM_FORMAT_BF16, BSM_MXFP4 } };
    struct contexts c;
    struct calls calls;
    if (!contexts_open(t, &c) || !calls_open(t, &calls)) return;
    for (int i = 0; i < 2; i++) {
        struct job j;
        bsm_plan *plan = NULL;
        void *stream = NULL, *graph = NULL, *exec = NULL, *workspace = NULL, *amax = NULL;
        const float none = -1;
        job_open(t, &c, &j, pairs[i][0], pairs[i][1], sizes, NULL);
        amax = to_device(t, &c, &none, sizeof none);
        j.call.amax = amax;
        CHECK(t, calls.hipStreamCreateWithFlags(&stream, 1) == 0);
        j.call.stream = stream;
        CHECK(t, bsm_plan_create(c.gpu, &j.call, &plan) == BSM_OK);
        const size_t bytes = bsm_plan_workspace_bytes(plan);
        CHECK(t, bsm_device_allocate(c.gpu, bytes, &workspace) == BSM_OK);
        CHECK(t, calls.hipStreamBeginCapture(stream, 2) == 0);
        CHECK(t, bsm_multiply(c.gpu, &j.call) == BSM_EINVAL && strstr(bsm_last_error(), "captured") != NULL);
        CHECK(t, bsm_plan_run(plan, &j.call, workspace, bytes) == BSM_OK);
        CHECK(t, calls.hipStreamEndCapture(stream, &graph) == 0);
        CHECK(t, calls.hipGraphInstantiate(&exec, graph, NULL, NULL, 0) == 0);
        for (int replay = 0; replay < 3; replay++) {
            spoil(t, &c, &j);
            CHECK(t, calls.hipGraphLaunch(exec, stream) == 0 && calls.hipStreamSynchronize(stream) == 0);
            twin_compare(t, &c, &j.z, "a graph's D");
        }
        float found = 0;
        from_device(t, &c, &found, amax, sizeof found);
        CHECK(t, found > 0);
        CHECK(t, calls.hipGraphExecDestroy(exec) == 0 && calls.hipGraphDestroy(graph) == 0);
        CHECK(t, calls.hipStreamDestroy(stream) == 0);
        bsm_plan_destroy(plan);
        CHECK(t, bsm_device_release(c.gpu, workspace) == BSM_OK && bsm_device_release(c.gpu, amax) == BSM_OK);
        job_close(t, &c, &j);
    }
    contexts_close(&c);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(nothing_to_multiply),      TEST(groups_without_rows),
                                              TEST(other_pointers),           TEST(memory_that_is_not_there),
                                              TEST(threads_with_a_context_each), TEST(threads_of_one_context),
                                              TEST(threads_of_one_plan),      TEST(streams_of_the_caller),
                                              TEST(graphs) };
    return TEST_MAIN(argc, argv, cases);
}
