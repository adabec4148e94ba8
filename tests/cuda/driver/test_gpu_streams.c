/* Streams of the caller: plans under capture, replayed many times with changed data; several threads, each with a
 * stream and a workspace of its own; bsm_multiply on several streams that share the cached workspace; threads that make
 * contexts. */
#include "cuda/harness/calls.h"
#include "cuda/harness/gpu.h"

#include <pthread.h>
#include <stdlib.h>

enum { M = 33, N = 40, K = 64, THREADS = 4 };

/* One product with its operands on the device, and what D must be. */
struct job {
    struct operand a, b, d;
    struct twin ta, tb, td;
    bsm_matmul call;
    bsm_plan *plan;
    void *workspace;
    size_t bytes;
};

static void make_job(struct test *t, const struct contexts *c, bsm_format fa, bsm_format fb, struct job *j)
{
    j->a = operand_make(&(struct shape){ .format = fa, .rows = M, .columns = K }, 0);
    j->b = operand_make(&(struct shape){ .format = fb, .rows = N, .columns = K }, 0);
    j->d = operand_make(&(struct shape){ .format = BSM_FORMAT_BF16, .rows = M, .columns = N }, 0xff);
    operand_fill(t, &j->a, true), operand_fill(t, &j->b, true);
    j->ta = twin_make(t, c, &j->a), j->tb = twin_make(t, c, &j->b), j->td = twin_make(t, c, &j->d);
    j->call = (bsm_matmul){ .struct_size = sizeof j->call, .a = &j->ta.m, .b = &j->tb.m, .d = &j->td.m };
    const bsm_matmul host = { .struct_size = sizeof host, .a = &j->a.m, .b = &j->b.m, .d = &j->d.m };
    CHECK(t, bsm_multiply(c->cpu, &host) == BSM_OK);
    CHECK(t, bsm_plan_create(c->gpu, &j->call, &j->plan) == BSM_OK);
    j->bytes = bsm_plan_workspace_bytes(j->plan);
    CHECK(t, bsm_device_allocate(c->gpu, j->bytes, &j->workspace) == BSM_OK);
}

static void free_job(struct test *t, const struct contexts *c, struct job *j)
{
    bsm_plan_destroy(j->plan);
    CHECK(t, bsm_device_release(c->gpu, j->workspace) == BSM_OK);
    twin_free(t, c, &j->ta), twin_free(t, c, &j->tb), twin_free(t, c, &j->td);
    operand_free(&j->a), operand_free(&j->b), operand_free(&j->d);
}

static void spoil_d(struct test *t, const struct contexts *c, const struct job *j)
{
    unsigned char *bytes = malloc(j->d.data_bytes);
    memset(bytes, 0x5a, j->d.data_bytes);
    CHECK(t, bsm_device_write(c->gpu, j->td.m.data, bytes, j->d.data_bytes) == BSM_OK);
    free(bytes);
}

static void replay(struct test *t, const struct contexts *c, struct calls *d, struct job *j, void *stream, void *exec,
                   int times)
{
    const bsm_matmul host = { .struct_size = sizeof host, .a = &j->a.m, .b = &j->b.m, .d = &j->d.m };
    for (int i = 0; i < times; i++) {
        const bool look = i < 3 || i == times - 1;
        if (look) {                                                   /* other numbers in the same places */
            bsm_matrix_set_code(&j->a.m, 0, i % M, 0, (uint32_t)(i % 3));
            CHECK(t, bsm_device_write(c->gpu, j->ta.m.data, j->a.m.data, j->a.data_bytes) == BSM_OK);
            CHECK(t, bsm_multiply(c->cpu, &host) == BSM_OK);
            spoil_d(t, c, j);
        }
        CHECK_OR_RETURN(t, d->cuGraphLaunch(exec, stream) == 0);
        if (!look) continue;
        CHECK(t, d->cuStreamSynchronize(stream) == 0);
        twin_compare(t, c, &j->td, "replayed");
    }
}

static void captured_and_replayed(struct test *t)
{
    struct contexts c;
    struct calls d;
    struct job j;
    void *stream = NULL, *graph = NULL, *exec = NULL;
    if (!contexts_open(t, &c)) return;
    CHECK_OR_RETURN(t, calls_open(t, &d, false));
    CHECK_OR_RETURN(t, d.cuStreamCreate(&stream, 1) == 0);            /* that does not wait for the default stream */
    make_job(t, &c, BSM_MXFP8_E4M3, BSM_MXFP4, &j);
    j.call.stream = stream;
    CHECK_OR_RETURN(t, d.cuStreamBeginCapture(stream, 0) == 0);
    if (bsm_plan_run(j.plan, &j.call, j.workspace, j.bytes) != BSM_OK) FAIL(t, "captured: %s", bsm_last_error());
    /* A call with the cached workspace says that it cannot, and leaves the capture alone. */
    if (j.bytes > 0)
        CHECK(t, bsm_multiply(c.gpu, &j.call) == BSM_EINVAL && strstr(bsm_last_error(), "captured") != NULL);
    CHECK_OR_RETURN(t, d.cuStreamEndCapture(stream, &graph) == 0 && d.cuGraphInstantiate(&exec, graph, 0) == 0);
    replay(t, &c, &d, &j, stream, exec, !is_simulated() ? 1000 : 4);
    CHECK(t, d.cuGraphExecDestroy(exec) == 0 && d.cuGraphDestroy(graph) == 0 && d.cuStreamDestroy(stream) == 0);
    free_job(t, &c, &j);
    calls_close(&d);
    contexts_close(&c);
}

struct worker { bsm_context *gpu; struct job *job; void *stream; int times; bool cached; bsm_status status; };

static void *work(void *argument)
{
    struct worker *w = argument;
    for (int i = 0; i < w->times && w->status == BSM_OK; i++)
        w->status = w->cached ? bsm_multiply(w->gpu, &w->job->call)
                              : bsm_plan_run(w->job->plan, &w->job->call, w->job->workspace, w->job->bytes);
    return NULL;
}

static void threads_with_streams(struct test *t)
{
    static const bsm_format formats[THREADS][2] = { { BSM_MXFP8_E4M3, BSM_MXFP4 },
                                                    { BSM_NVFP4, BSM_NVFP4 },
                                                    { BSM_FORMAT_BF16, BSM_MXFP4 },
                                                    { BSM_FORMAT_FP16, BSM_MXFP8_E5M2 } };
    struct contexts c;
    struct calls d;
    struct job jobs[THREADS];
    struct worker workers[THREADS];
    pthread_t threads[THREADS];
    if (!contexts_open(t, &c)) return;
    CHECK_OR_RETURN(t, calls_open(t, &d, false));
    for (int i = 0; i < THREADS; i++) {
        void *stream = NULL;
        CHECK_OR_RETURN(t, d.cuStreamCreate(&stream, 1) == 0);
        make_job(t, &c, formats[i][0], formats[i][1], &jobs[i]);
        jobs[i].call.stream = stream;
        workers[i] = (struct worker){ c.gpu, &jobs[i], stream, !is_simulated() ? 200 : 2, false, BSM_OK };
    }
    for (int cached = 0; cached < 2; cached++) {
        for (int i = 0; i < THREADS; i++) {
            workers[i].cached = cached != 0;
            spoil_d(t, &c, &jobs[i]);
        }
        for (int i = 0; i < THREADS; i++) CHECK_OR_RETURN(t, pthread_create(&threads[i], NULL, work, &workers[i]) == 0);
        for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
        for (int i = 0; i < THREADS; i++) {
            CHECK(t, workers[i].status == BSM_OK && d.cuStreamSynchronize(workers[i].stream) == 0);
            twin_compare(t, &c, &jobs[i].td, cached != 0 ? "cached workspace" : "own workspace");
        }
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK(t, d.cuStreamDestroy(workers[i].stream) == 0);
        free_job(t, &c, &jobs[i]);
    }
    calls_close(&d);
    contexts_close(&c);
}

/* The first thread's context loads the kernels, the last one's gives them back. */
static void *make_contexts(void *argument)
{
    const bsm_context_options options = { .struct_size = sizeof options, .backend = BSM_BACKEND_CUDA };
    bsm_status *status = argument;
    bsm_context *context = NULL;
    void *memory = NULL;
    *status = bsm_context_create(&options, &context);
    if (*status == BSM_OK) *status = bsm_device_allocate(context, sizeof options, &memory);
    if (*status == BSM_OK) *status = bsm_device_write(context, memory, &options, sizeof options);
    if (*status == BSM_OK) *status = bsm_device_release(context, memory);
    bsm_context_destroy(context);
    return NULL;
}

static void threads_that_make_contexts(struct test *t)
{
    pthread_t threads[THREADS];
    bsm_status status[THREADS] = { BSM_OK };
    int gpus;
    if (bsm_backend_missing(BSM_BACKEND_CUDA)[0] != '\0' || bsm_device_count(BSM_BACKEND_CUDA, &gpus) != BSM_OK) {
        test_skip(t, "no GPU");
        return;
    }
    for (int i = 0; i < THREADS; i++)
        CHECK_OR_RETURN(t, pthread_create(&threads[i], NULL, make_contexts, &status[i]) == 0);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++) CHECK(t, status[i] == BSM_OK);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(captured_and_replayed), TEST(threads_with_streams),
                                              TEST(threads_that_make_contexts) };
    return TEST_MAIN(argc, argv, cases);
}
