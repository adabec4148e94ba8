/* The same product again and again gives the same bits: every kernel, in streams and in replayed graphs of several
 * threads at once, while another stream copies through the memory.  10,000 times on a GPU; a few times on a simulated
 * one. */
#include "cuda/harness/calls.h"
#include "cuda/harness/gpu.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 4, LOAD_BYTES = 64 << 20 };

/* Products of a kernel: their sizes, how many there are, whether the CPU confirms the first, and groups of rows; 0:
 * none. */
struct repeats { int64_t m, n, k; int times; bool confirmed; int64_t groups; };

/* Edges; and many tiles a CTA, one behind another at the machine's pace: where a ring of stages is not released as it
 * should be, that shows in one product of a hundred. */
static const struct repeats edges = { 300, 520, 200, 10000, true, 0 }, whole_blocks = { 300, 520, 256, 10000, true, 0 },
                            walks = { 256, 8192, 2048, 400, false, 0 },
                            groups = { 300, 520, 840, 10000, true, 5 },
                            group_walks = { 300, 4096, 2048, 400, false, 5 },
                            simulated = { 300 / 4, 520 / 4, 200, 2 * THREADS, true, 0 };
static const int64_t rows_of_groups[] = { 33, 150, 0, 17, 100 };

/* A kernel's product with a reference on the device; each thread has a stream, a workspace, a D and a graph of its
 * own. */
struct lane {
    const struct calls *calls;
    const bsm_plan *plan;
    bsm_matmul call;
    bsm_matrix d;
    void *workspace, *reference, *count, *stream, *exec;
    size_t workspace_bytes, d_bytes;
    int times;
    bool good;
};

/* D poisoned, the product, D compared, in the lane's stream. */
static bool enqueue(struct lane *l)
{
    uint64_t words = l->d_bytes / 4;
    void *parameters[] = { &l->d.data, &l->reference, &words, &l->count };
    return l->calls->cuMemsetD8Async((uint64_t)(uintptr_t)l->d.data, 0x5a, l->d_bytes, l->stream) == 0 &&
           bsm_plan_run(l->plan, &l->call, l->workspace, l->workspace_bytes) == BSM_OK &&
           calls_launch(l->calls, l->calls->differences, l->stream, parameters);
}

static bool capture(struct lane *l)
{
    void *graph = NULL;
    const bool good = l->calls->cuStreamBeginCapture(l->stream, 0) == 0 && enqueue(l)
                      && l->calls->cuStreamEndCapture(l->stream, &graph) == 0
                      && l->calls->cuGraphInstantiate(&l->exec, graph, 0) == 0;
    return l->calls->cuGraphDestroy(graph) == 0 && good;
}

/* Half of them replays, half calls. */
static void *repeat(void *argument)
{
    struct lane *l = argument;
    l->good = l->calls->cuCtxPushCurrent(l->calls->primary) == 0;
    for (int i = 0; i < l->times && l->good; i++) {
        l->good = i % 2 == 0 ? l->calls->cuGraphLaunch(l->exec, l->stream) == 0 : enqueue(l);
        if (i % 256 == 255) l->good &= l->calls->cuStreamSynchronize(l->stream) == 0;
    }
    l->good &= l->calls->cuStreamSynchronize(l->stream) == 0;
    return NULL;
}

struct load { const struct calls *calls; void *stream; uint64_t memory; atomic_bool ends; };

static void *copy_on(void *argument)
{
    struct load *load = argument;
    load->calls->cuCtxPushCurrent(load->calls->primary);
    while (!atomic_load(&load->ends)) {
        for (int i = 0; i < 16; i++)
            load->calls->cuMemcpyDtoDAsync(load->memory + LOAD_BYTES * (uint64_t)(i % 2),
                                           load->memory + LOAD_BYTES * (uint64_t)((i + 1) % 2),
                                           is_simulated() ? 4096 : LOAD_BYTES, load->stream);
        load->calls->cuStreamSynchronize(load->stream);
    }
    return NULL;
}

static void run_lanes(struct test *t, const struct contexts *c, const struct calls *calls, struct lane *lanes,
                      const char *name)
{
    struct load load = { .calls = calls };
    pthread_t threads[THREADS], loader;
    void *memory;
    CHECK_OR_RETURN(t, bsm_device_allocate(c->gpu, 2 * (size_t)LOAD_BYTES, &memory) == BSM_OK);
    load.memory = (uint64_t)(uintptr_t)memory;
    CHECK_OR_RETURN(t, calls->cuStreamCreate(&load.stream, 1) == 0);
    CHECK_OR_RETURN(t, pthread_create(&loader, NULL, copy_on, &load) == 0);
    for (int i = 0; i < THREADS; i++) CHECK(t, pthread_create(&threads[i], NULL, repeat, &lanes[i]) == 0);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    atomic_store(&load.ends, true);
    pthread_join(loader, NULL);
    for (int i = 0; i < THREADS; i++) {
        unsigned long long count = 1;
        from_device(t, c, &count, lanes[i].count, sizeof count);
        if (!lanes[i].good || count != 0)
            FAIL(t, "%s, thread %d: %s, %llu words differ in %d products", name, i,
                 lanes[i].good ? "done" : "a call failed", count, lanes[i].times);
    }
    CHECK(t, calls->cuStreamDestroy(load.stream) == 0 && bsm_device_release(c->gpu, memory) == BSM_OK);
}

static void open_lane(struct test *t, const struct contexts *c, const struct calls *calls, const struct lane *first,
                      struct lane *l, int times)
{
    const unsigned long long zero = 0;
    *l = *first;
    l->calls = calls, l->times = times;
    l->count = to_device(t, c, &zero, sizeof zero);
    CHECK(t, bsm_device_allocate(c->gpu, l->d_bytes, &l->d.data) == BSM_OK);
    CHECK(t, bsm_device_allocate(c->gpu, l->workspace_bytes, &l->workspace) == BSM_OK);
    CHECK(t, calls->cuStreamCreate(&l->stream, 1) == 0);
    l->call.d = &l->d, l->call.stream = l->stream;
    CHECK(t, capture(l));
}

static void close_lane(struct test *t, const struct contexts *c, struct lane *l)
{
    CHECK(t, l->calls->cuGraphExecDestroy(l->exec) == 0 && l->calls->cuStreamDestroy(l->stream) == 0);
    bsm_device_release(c->gpu, l->d.data), bsm_device_release(c->gpu, l->workspace),
        bsm_device_release(c->gpu, l->count);
}

/* first: a product that has been made once. */
static void repeat_product(struct test *t, const struct contexts *c, const struct calls *calls, int kernel,
                           const struct repeats *r, struct lane *first, struct twin *td, size_t d_bytes)
{
    struct lane lanes[THREADS];
    bsm_plan *plan;
    if (r->confirmed) twin_compare(t, c, td, bsm_kernel_name(kernel));
    CHECK_OR_RETURN(t, bsm_plan_create(c->gpu, &first->call, &plan) == BSM_OK);
    first->plan = plan, first->workspace_bytes = bsm_plan_workspace_bytes(plan), first->d = td->m;
    first->d_bytes = d_bytes, first->reference = td->m.data;
    for (int i = 0; i < THREADS; i++) open_lane(t, c, calls, first, &lanes[i], r->times / THREADS);
    run_lanes(t, c, calls, lanes, bsm_kernel_name(kernel));
    for (int i = 0; i < THREADS; i++) close_lane(t, c, &lanes[i]);
    bsm_plan_destroy(plan);
}

/* Panels of B for the kernel that is forced, which the call has then; NULL: it reads none. */
static void *pack(struct test *t, const struct contexts *c, bsm_matmul *call)
{
    bsm_plan *plan;
    void *panels = NULL;
    if (bsm_plan_create(c->gpu, call, &plan) != BSM_OK) return NULL;
    const size_t bytes = bsm_plan_b_panels_bytes(plan);
    if (bytes > 0)
        CHECK(t, bsm_device_allocate(c->gpu, bytes, &panels) == BSM_OK
                     && bsm_plan_pack_b(plan, call, panels, bytes) == BSM_OK);
    bsm_plan_destroy(plan);
    call->b_panels = panels;
    return panels;
}

/* The reference is the first product: of integers.  False if a rule of the kernel refuses the product. */
static bool repeat_kernel(struct test *t, const struct contexts *c, const struct calls *calls, int kernel,
                          const bsm_format *pair, const struct repeats *r)
{
    struct operand a = operand_make(&(struct shape){ .format = pair[0], .rows = r->m, .columns = r->k }, 0);
    struct operand b = operand_make(
        &(struct shape){ .format = pair[1], .rows = r->n, .columns = r->k, .batch = r->groups }, 0);
    struct operand d = operand_make(&(struct shape){ .format = BSM_FORMAT_FP32, .rows = r->m, .columns = r->n }, 0xff);
    struct lane first = { 0 };
    operand_fill(t, &a, true), operand_fill(t, &b, true);
    struct twin ta = twin_make(t, c, &a), tb = twin_make(t, c, &b), td = twin_make(t, c, &d);
    void *rows = r->groups > 0 ? to_device(t, c, rows_of_groups, sizeof rows_of_groups) : NULL;
    const bsm_matmul host = { .struct_size = sizeof host, .a = &a.m, .b = &b.m, .d = &d.m, .groups = r->groups,
                              .group_rows = r->groups > 0 ? rows_of_groups : NULL };
    first.call = (bsm_matmul){ .struct_size = sizeof first.call, .a = &ta.m, .b = &tb.m, .d = &td.m,
                               .groups = r->groups, .group_rows = rows };
    CHECK(t, !r->confirmed || bsm_multiply(c->cpu, &host) == BSM_OK);
    CHECK(t, bsm_context_force_kernel(c->gpu, kernel) == BSM_OK);
    void *panels = pack(t, c, &first.call);
    const bsm_status status = bsm_multiply(c->gpu, &first.call);
    CHECK(t, status == BSM_OK || status == BSM_EUNSUPPORTED);
    if (status == BSM_OK) repeat_product(t, c, calls, kernel, r, &first, &td, d.data_bytes);
    if (panels != NULL) (void)bsm_device_release(c->gpu, panels);
    if (rows != NULL) (void)bsm_device_release(c->gpu, rows);
    twin_free(t, c, &ta), twin_free(t, c, &tb), twin_free(t, c, &td);
    operand_free(&a), operand_free(&b), operand_free(&d);
    return status == BSM_OK;
}

enum { PAIRS = 6 };

/* Operands as they are, decoded, and of two terms take turns.  Pair number i of those that a kernel is tried with. */
static const bsm_format *pair_of_kernel(int kernel, int i)
{
    static const bsm_format pairs[PAIRS][2] = { { BSM_MXFP8_E4M3, BSM_MXFP4 },        { BSM_FORMAT_BF16, BSM_NVFP4 },
                                                { BSM_FORMAT_FP16, BSM_MXFP6_E2M3 },  { BSM_FORMAT_BF16,
                                                  BSM_MXFP8_E4M3 },
                                                { BSM_FORMAT_BF16, BSM_FORMAT_BF16 }, { BSM_MXFP4, BSM_MXFP4 } };
    return pairs[(kernel + i) % PAIRS];
}

static bool serves_a_pair(const struct contexts *c, int kernel)
{
    for (int i = 0; i < PAIRS; i++)
        if (bsm_kernel_serves(c->gpu, kernel, pair_of_kernel(kernel, i)[0], pair_of_kernel(kernel, i)[1])) return true;
    return false;
}

/* With the first pair that the kernel serves as these operands lie: some want another packing of the same codes. */
static bool repeat_a_pair(struct test *t, const struct contexts *c, const struct calls *calls, int kernel,
                          const struct repeats *r)
{
    for (int i = 0; i < PAIRS; i++) {
        const bsm_format *pair = pair_of_kernel(kernel, i);
        if (bsm_kernel_serves(c->gpu, kernel, pair[0], pair[1]) && repeat_kernel(t, c, calls, kernel, pair, r))
            return true;
    }
    return false;
}

/* Kernels that read prepacked weights, which no pair is said to be served by without them; a simulated GPU tries
 * one. */
static void prepacked_weights(struct test *t)
{
    struct contexts c;
    struct calls calls;
    if (!contexts_open(t, &c)) return;
    CHECK_OR_RETURN(t, calls_open(t, &calls, true));
    for (int n = 0, served = 0; kernel_with("_prepacked", n) >= 0; n++) {
        const int kernel = kernel_with("_prepacked", n);
        const bsm_format pair[2] = { BSM_FORMAT_BF16, nibbles_of_kernel(kernel) };
        const struct repeats *tried[] = { &edges, &whole_blocks, &groups, &walks, &group_walks };
        if (!is_of_gpu(c.gpu, kernel) || !is_asked_for(kernel) || (is_simulated() && served++ > 0)) continue;
        for (size_t i = 0; i < (is_simulated() ? 1 : sizeof tried / sizeof tried[0]); i++)
            if (!repeat_kernel(t, &c, &calls, kernel, pair, is_simulated() ? &simulated : tried[i]))
                FAIL(t, "%s: %s", bsm_kernel_name(kernel), bsm_last_error());
    }
    calls_close(&calls);
    contexts_close(&c);
}

static void every_repeat_has_the_same_bits(struct test *t)
{
    struct contexts c;
    struct calls calls;
    int served = 0;
    if (!contexts_open(t, &c)) return;
    CHECK_OR_RETURN(t, calls_open(t, &calls, true));
    for (int i = 0; bsm_kernel_name(i) != NULL; i++) {
        if (!serves_a_pair(&c, i)) continue;
        if (is_simulated() && served < 2) CHECK(t, repeat_a_pair(t, &c, &calls, i, &simulated));
        if (!is_simulated() && !repeat_a_pair(t, &c, &calls, i, &edges)
            && !repeat_a_pair(t, &c, &calls, i, &whole_blocks))
            FAIL(t, "%s: %s", bsm_kernel_name(i), bsm_last_error());
        if (!is_simulated() && strstr(bsm_kernel_name(i), "simt") == NULL)
            CHECK(t, repeat_a_pair(t, &c, &calls, i, &walks));
        served++;
    }
    CHECK(t, served > 0);
    calls_close(&calls);
    contexts_close(&c);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(every_repeat_has_the_same_bits), TEST(prepacked_weights) };
    return TEST_MAIN(argc, argv, cases);
}
