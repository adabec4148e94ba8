/* bench_blocks: one block-scaled product beside cuBLASLt's of the same codes and scales (128x4), a line of JSON for each.
 *
 * bench_blocks FORMAT M N K [ROUNDS], FORMAT of both or A:B; operands in so many places, used in turn, that L2 holds none of
 * them (with fewer than 5 rounds, which only try the program, in few). */
#include "cublas_lt.h"
#include "loop.h"
#include "operands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_WRONG_USAGE = 2, EXIT_NO_DEVICE = 4, ROUNDS = 25, FEWEST_ROUNDS = 5, CALLS_OF_A_GRAPH = 16, MOST_SIDE = 65536 };
static const int64_t most_cold_bytes = (int64_t)320 << 20;

struct product {
    struct gpu gpu;
    int64_t m, n, k;
    int places, own_next, lt_next;
    struct coded a[GPU_MOST_PLACES], b[GPU_MOST_PLACES];
    bsm_matrix d[GPU_MOST_PLACES];
    bsm_matmul calls[GPU_MOST_PLACES];
    bsm_plan *plan;
    void *workspace;
    char plan_text[512];
    struct cublas_lt lt;
};

static int64_t number_of(const char *text)
{
    char *end;
    const long long value = strtoll(text, &end, 10);
    if (end == text || *end != '\0' || value < 1 || value > MOST_SIDE) gpu_stop("%s: a whole number from 1 to %d is wanted", text, MOST_SIDE);
    return value;
}

static bsm_format format_of(const char *name, size_t length)
{
    for (int i = 0; i < BSM_FORMAT_COUNT; i++) {
        const bsm_format_info *format = bsm_format_get(i);
        if (format != NULL && strncmp(format->name, name, length) == 0 && format->name[length] == '\0' && format->block != 0)
            return (bsm_format)i;
    }
    gpu_stop("%.*s: no block-scaled format has that name", (int)length, name);
}

static void take_places(struct product *p, bsm_format a, bsm_format b)
{
    struct gpu *gpu = &p->gpu;
    p->places = gpu_places(gpu, coded_bytes(a, p->m, p->k) + coded_bytes(b, p->n, p->k));
    for (int i = 0; i < p->places; i++) {
        p->a[i] = coded_take_in(gpu, a, BSM_LAYOUT_128X4, p->m, p->k, 0);
        p->b[i] = coded_take_in(gpu, b, BSM_LAYOUT_128X4, p->n, p->k, 128);
        p->d[i] = plain_rows(BSM_FORMAT_BF16, gpu_take(gpu, p->m * p->n * 2), p->m, p->n);
        p->calls[i] = (bsm_matmul){ .struct_size = sizeof(bsm_matmul), .a = &p->a[i].matrix, .b = &p->b[i].matrix, .d = &p->d[i] };
    }
    gpu_library(bsm_plan_create(gpu->context, &p->calls[0], &p->plan), "a plan");
    bsm_plan_describe(p->plan, p->plan_text, sizeof p->plan_text);
    p->workspace = gpu_take(gpu, (int64_t)bsm_plan_workspace_bytes(p->plan));
}

static bool run_own(void *argument)
{
    struct product *p = argument;
    const bsm_status status = bsm_plan_run(p->plan, &p->calls[p->own_next], p->workspace, bsm_plan_workspace_bytes(p->plan));
    p->own_next = (p->own_next + 1) % p->places;
    return status == BSM_OK;
}

static bool run_lt(void *argument)
{
    struct product *p = argument;
    const int i = p->lt_next;
    cublas_lt_run(&p->gpu, &p->lt, &p->a[i].matrix, &p->b[i].matrix, p->d[i].data);
    p->lt_next = (i + 1) % p->places;
    return true;
}

static int by_size(const void *x, const void *y)
{
    const double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

static void print(const struct product *p, const char *format, const char *who, const char *how, struct way *way,
                  const struct loop_state *state)
{
    double *seconds = way->contender.seconds;
    const int rounds = way->contender.rounds;
    qsort(seconds, (size_t)rounds, sizeof *seconds, by_size);
    const double median = seconds[rounds / 2];
    printf("{\"format\": \"%s\", \"m\": %lld, \"n\": %lld, \"k\": %lld, \"who\": \"%s\", \"how\": \"%s\", \"microseconds\": %.3f, "
           "\"tflops\": %.2f, \"rounds\": %d, \"mhz\": %.0f, \"watts\": %.0f}\n",
           format, (long long)p->m, (long long)p->n, (long long)p->k, who, how, 1e6 * median,
           2e-12 * (double)p->m * (double)p->n * (double)p->k / median, rounds, state->known ? state->mhz : 0,
           state->known ? state->watts : 0);
}

int main(int argc, char **argv)
{
    static struct product p;
    if (argc < 5 || argc > 6) {
        fprintf(stderr, "usage: bench_blocks FORMAT|A:B M N K [ROUNDS]\n");
        return EXIT_WRONG_USAGE;
    }
    const char *colon = strchr(argv[1], ':'), *second = colon != NULL ? colon + 1 : argv[1];
    const bsm_format a = format_of(argv[1], colon != NULL ? (size_t)(colon - argv[1]) : strlen(argv[1])),
                     b = format_of(second, strlen(second));
    p.m = number_of(argv[2]), p.n = number_of(argv[3]), p.k = number_of(argv[4]);
    const int64_t most = p.m > p.n ? p.m : p.n, rounds = argc == 6 ? number_of(argv[5]) : ROUNDS;
    const int64_t cold_bytes = rounds < FEWEST_ROUNDS ? 0 : most_cold_bytes;
    const int64_t codes = 2 * (p.m + p.n) * p.k, memory = 2 * cold_bytes + 2 * codes + 2 * most * p.k + 8 * p.m * p.n + ((int64_t)256 << 20);
    if (rounds > MEASURE_ROUNDS) gpu_stop("%lld rounds: at most %d", (long long)rounds, MEASURE_ROUNDS);
    if (!gpu_open(&p.gpu, memory, most * p.k + 256, cold_bytes)) return EXIT_NO_DEVICE;
    take_places(&p, a, b);
    cublas_lt_prepare(&p.gpu, a, b, p.m, p.n, p.k, p.a[0].tensor_scale * p.b[0].tensor_scale, &p.lt);
    struct way own = { .contender = { .name = "our product", .run = run_own, .argument = &p } },
               lt = { .contender = { .name = "cuBLASLt", .run = run_lt, .argument = &p } };
    struct way *ways[] = { &own, &lt };
    const int count = p.lt.why[0] == '\0' ? 2 : 1;
    struct loop_state state;
    for (int i = 0; i < count; i++) loop_prepare(&p.gpu, ways[i], CALLS_OF_A_GRAPH);
    loop_run(&p.gpu, ways, count, (int)rounds, &state);
    print(&p, argv[1], "blockscale", p.plan_text, &own, &state);
    if (count == 2) print(&p, argv[1], p.lt.name, "", &lt, &state);
    else printf("{\"format\": \"%s\", \"m\": %lld, \"n\": %lld, \"k\": %lld, \"who\": \"cuBLASLt\", \"why_not\": \"%s\"}\n", argv[1],
                (long long)p.m, (long long)p.n, (long long)p.k, p.lt.why);
    for (int i = 0; i < count; i++) loop_release(&p.gpu, ways[i]);
    bsm_plan_destroy(p.plan);
    gpu_close(&p.gpu);
    return 0;
}
