/* bench_prepacked: products of bf16 rows with prepacked MXFP4 and NVFP4 weights by the plan's choice, by the kernel for
 * weights as they are stored, and by each kernel that reads prepacked weights, forced; and cuBLAS on the same values in
 * bf16 dequantized beforehand.  All of a product run in turn; weights are in so many places that L2 holds none of
 * them.
 *
 * bench_prepacked [--formats mxfp4,nvfp4] [--weights NxK,...] [--rows M,...] [--rounds N] [--slowest X] [--json FILE]
 *
 * Kernels that take more than X times as long as the fastest (2) are left out.  A plain table goes to stdout. */
#include "product.h"

#include "cli/cli.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_WRONG_USAGE = 2, EXIT_NO_DEVICE = 4, ROUNDS = 9, MOST_LIST = 24, MOST_FORCED = 40, MOST_SIDE = 1 << 16 };
enum { STORED, CHOSEN, CUBLAS, FORCED, MOST_WAYS = FORCED + MOST_FORCED };
static const int64_t cold_bytes = (int64_t)320 << 20, memory_bytes = (int64_t)12 << 30;

struct options {
    const char *formats, *weights, *rows, *json;
    int rounds;
    double slowest;
};

/* One product's ways. */
struct ways {
    struct way way[MOST_WAYS];
    struct own own[MOST_WAYS];
    int count;
    struct loop_state state;
};

static int usage(FILE *file, int status)
{
    fprintf(file, "usage: bench_prepacked [--formats mxfp4,nvfp4] [--weights NxK,...] [--rows M,...] [--rounds N] "
                  "[--slowest X] [--json FILE]\n");
    return status;
}

/* The next whole number of a list, and what stands behind it. */
static int64_t next_number(const char **text, const char *ends)
{
    char *end;
    const long long value = strtoll(*text, &end, 10);
    if (end == *text || value < 1 || value > MOST_SIDE || (*end != '\0' && strchr(ends, *end) == NULL))
        gpu_stop("%s: a whole number from 1 to %d is wanted, and one of \"%s\" behind it", *text, MOST_SIDE, ends);
    *text = *end == '\0' ? end : end + 1;
    return value;
}

static int64_t most_rows(const struct options *o)
{
    int64_t most = 1;
    for (const char *at = o->rows; *at != '\0';) {
        const int64_t rows = next_number(&at, ",");
        most = rows > most ? rows : most;
    }
    return most;
}

static int rounds_of(const char *text)
{
    const int64_t rounds = next_number(&text, "");
    return rounds < MEASURE_ROUNDS ? (int)rounds : MEASURE_ROUNDS;
}

static int parse(int count, char **arguments, struct options *o)
{
    for (int i = 1; i < count; i += 2) {
        const char *name = arguments[i], *value = i + 1 < count ? arguments[i + 1] : NULL;
        if (strcmp(name, "--help") == 0) return usage(stdout, -1);
        if (value == NULL) return usage(stderr, EXIT_WRONG_USAGE);
        if (strcmp(name, "--formats") == 0) o->formats = value;
        else if (strcmp(name, "--weights") == 0) o->weights = value;
        else if (strcmp(name, "--rows") == 0) o->rows = value;
        else if (strcmp(name, "--json") == 0) o->json = value;
        else if (strcmp(name, "--rounds") == 0) o->rounds = rounds_of(value);
        else if (strcmp(name, "--slowest") == 0) o->slowest = strtod(value, NULL);
        else return usage(stderr, EXIT_WRONG_USAGE);
    }
    return 0;
}

/* One product --------------------------------------------------------------------------------------------------- */

/* The first m rows of A, the same weights, and their packed bytes. */
static void use_panels(struct own *own, void *const *panels)
{
    for (int i = 0; i < own->places->count; i++) own->calls[i].b_panels = panels[i];
}

static struct way way_of(const char *name, bool (*run)(void *), void *argument)
{
    return (struct way){ .contender = { .name = name, .run = run, .argument = argument } };
}

/* A plan whose kernel is forced (number 0 and more) or chosen; false: that kernel does not serve it. */
static bool make_own(struct bench *bench, const struct places *places, int kernel, struct own *own)
{
    bsm_plan *plan;
    bsm_matrix d = plain_rows(BSM_FORMAT_BF16, places->d[0], places->shape.m, places->shape.n);
    const bsm_matmul call = { .struct_size = sizeof call, .a = &places->a[0].matrix, .b = &places->b[0].matrix,
                              .d = &d };
    gpu_library(bsm_context_force_kernel(bench->gpu.context, kernel), "forcing a kernel");
    if (kernel >= 0 && bsm_plan_create(bench->gpu.context, &call, &plan) != BSM_OK) {
        gpu_library(bsm_context_force_kernel(bench->gpu.context, -1), "forcing no kernel");
        return false;
    }
    if (kernel >= 0) bsm_plan_destroy(plan);
    own_make(bench, places, BSM_FORMAT_BF16, BSM_COMPUTE_EXACT, own);
    gpu_library(bsm_context_force_kernel(bench->gpu.context, -1), "forcing no kernel");
    return true;
}

/* "cuda, kernel X, ... with prepacked B: Y, ...": Y; empty, if the plan takes none. */
static void prepacked_kernel(const bsm_plan *plan, char *name, size_t room)
{
    static const char words[] = "with prepacked B: ";
    char text[1000];
    bsm_plan_describe(plan, text, sizeof text);
    const char *found = strstr(text, words), *start = found != NULL ? found + strlen(words) : "";
    snprintf(name, room, "%.*s", (int)strcspn(start, ","), start);
}

static void add_way(struct ways *w, int at, bool (*run)(void *), void *argument, const char *name)
{
    w->way[at] = way_of(name, run, argument);
    w->count = BSMI_MAX(w->count, at + 1);
}

/* Kernels for prepacked weights of the format that serve the product on this GPU. */
static void add_forced(struct bench *bench, const struct places *places, void *const *panels, struct ways *w)
{
    const char *name, *format = places->pair.b == BSM_MXFP4 ? "mxfp4" : "nvfp4";
    for (int kernel = 1; (name = bsm_kernel_name(kernel)) != NULL && w->count < MOST_WAYS; kernel++) {
        struct own *own = &w->own[w->count];
        if (strstr(name, "prepacked") == NULL || strstr(name, format) == NULL) continue;
        if (!make_own(bench, places, kernel, own)) continue;
        use_panels(own, panels);
        snprintf(own->kernel, sizeof own->kernel, "%s", name);
        add_way(w, w->count, own_run, own, own->kernel);
    }
}

/* Prepares them all, and takes those out that are much too slow. */
static void prepare(const struct bench *bench, const struct options *o, struct ways *w, struct way **running,
                    int *count)
{
    double least = INFINITY;
    *count = 0;
    for (int i = 0; i < w->count; i++) {
        if (w->way[i].contender.run == NULL) continue;
        loop_prepare(&bench->gpu, &w->way[i], GPU_MOST_PLACES);
        if (i != CUBLAS) least = fmin(least, w->way[i].once);
    }
    for (int i = 0; i < w->count; i++) {
        if (w->way[i].contender.run == NULL) continue;
        if (i < FORCED || w->way[i].once <= o->slowest * least) running[(*count)++] = &w->way[i];
        else loop_release(&bench->gpu, &w->way[i]);
    }
}

static double microseconds(const struct way *way)
{
    return way->contender.rounds > 0 ? 1e6 * measure_median(&way->contender) : 0;
}

static void report(const struct ways *w, const struct places *places, const char *chosen, struct cli_json *json)
{
    char pair[64], shape[40];
    const struct way *best = NULL;
    pair_text(&places->pair, pair, sizeof pair);
    shape_text(&places->shape, shape, sizeof shape);
    for (int i = FORCED; i < w->count; i++)
        if (w->way[i].contender.rounds > 0 && (best == NULL || microseconds(&w->way[i]) < microseconds(best)))
            best = &w->way[i];
    const double ours = microseconds(&w->way[CHOSEN]), cublas = microseconds(&w->way[CUBLAS]),
                 least = best != NULL ? microseconds(best) : 0;
    printf("%s %s: stored %.2f, prepacked %.2f, cuBLAS %.2f us (%.3f of it), best forced %.2f (%.3f of it), %.0f MHz, "
           "%.0f W%s\n"
           "  chosen %s\n",
           pair, shape, microseconds(&w->way[STORED]), ours, cublas, cublas / ours, least, least / ours, w->state.mhz,
           w->state.watts, w->state.power_capped ? ", capped" : "", chosen);
    cli_json_object(json, NULL);
    cli_json_text(json, "pair", pair), cli_json_text(json, "shape", shape), cli_json_text(json, "chosen", chosen);
    cli_json_number(json, "stored_us", microseconds(&w->way[STORED])), cli_json_number(json, "prepacked_us", ours);
    cli_json_number(json, "cublas_us", cublas), cli_json_number(json, "sm_mhz", w->state.mhz);
    cli_json_boolean(json, "power_capped", w->state.power_capped);
    cli_json_object(json, "forced_us");
    for (int i = FORCED; i < w->count; i++) {
        if (w->way[i].contender.rounds == 0) continue;
        printf("  %-44s %8.2f\n", w->way[i].contender.name, microseconds(&w->way[i]));
        cli_json_number(json, w->way[i].contender.name, microseconds(&w->way[i]));
    }
    cli_json_end(json), cli_json_end(json);
    fflush(stdout);
}

static void measure_product(struct bench *bench, const struct options *o, const struct places *coded,
                            const struct places *bf16, void *const *panels, struct cli_json *json)
{
    static struct ways w;
    struct way *running[MOST_WAYS];
    char chosen[64];
    int count;
    const int64_t mark = bench->gpu.memory_used;
    w = (struct ways){ .count = FORCED };
    (void)make_own(bench, coded, -1, &w.own[STORED]);
    add_way(&w, STORED, own_run, &w.own[STORED], "stored");
    prepacked_kernel(w.own[STORED].plan, chosen, sizeof chosen);
    if (chosen[0] != '\0') {
        (void)make_own(bench, coded, -1, &w.own[CHOSEN]);
        use_panels(&w.own[CHOSEN], panels);
        add_way(&w, CHOSEN, own_run, &w.own[CHOSEN], "prepacked");
    }
    struct through_cublas cublas = { .bench = bench, .places = bf16 };
    if (bench->gpu.cublas.handle != NULL) add_way(&w, CUBLAS, cublas_run, &cublas, "cuBLAS");
    add_forced(bench, coded, panels, &w);
    prepare(bench, o, &w, running, &count);
    loop_run(&bench->gpu, running, count, o->rounds, &w.state);
    report(&w, coded, chosen[0] != '\0' ? chosen : "none", json);
    for (int i = 0; i < count; i++) loop_release(&bench->gpu, running[i]);
    for (int i = 0; i < w.count; i++) own_free(&w.own[i]);
    gpu_give_back(&bench->gpu, mark);
}

/* All products with the same weights ------------------------------------------------------------------------------ */

static struct places with_rows(const struct places *from, int64_t m)
{
    struct places some = *from;
    some.shape.m = m;
    for (int i = 0; i < some.count; i++) some.a[i].matrix.rows = m;
    return some;
}

static void measure_weights(struct bench *bench, const struct options *o, bsm_format format, int64_t n, int64_t k,
                            struct cli_json *json)
{
    static struct places coded_rows, bf16_rows_of;
    const int64_t mark = bench->gpu.memory_used;
    const struct pair pair = { BSM_FORMAT_BF16, format };
    void *panels[GPU_MOST_PLACES];
    struct places *coded = places_take(bench, &pair, &(struct shape){ most_rows(o), n, k }, BSM_FORMAT_BF16);
    struct places *bf16 = places_dequantized(bench, coded);
    struct own own;
    coded_rows = with_rows(coded, 1);
    (void)make_own(bench, &coded_rows, -1, &own);
    const size_t bytes = bsm_plan_b_panels_bytes(own.plan);
    for (int i = 0; i < coded->count && bytes > 0; i++) {
        panels[i] = gpu_take(&bench->gpu, (int64_t)bytes);
        gpu_library(bsm_plan_pack_b(own.plan, &own.calls[i], panels[i], bytes), "prepacked weights");
    }
    own_free(&own);
    gpu_wait(&bench->gpu);
    for (const char *at = o->rows; *at != '\0';) {
        const int64_t m = next_number(&at, ",");
        coded_rows = with_rows(coded, m), bf16_rows_of = with_rows(bf16, m);
        measure_product(bench, o, &coded_rows, &bf16_rows_of, panels, json);
    }
    free(coded), free(bf16);
    gpu_give_back(&bench->gpu, mark);
}

static void measure_all(struct bench *bench, const struct options *o, struct cli_json *json)
{
    static const struct {
        const char *name;
        bsm_format format;
    } formats[] = { { "mxfp4", BSM_MXFP4 }, { "nvfp4", BSM_NVFP4 } };
    for (int f = 0; f < 2; f++)
        for (const char *at = o->weights; *at != '\0' && strstr(o->formats, formats[f].name) != NULL;) {
            const int64_t n = next_number(&at, "x"), k = next_number(&at, ",");
            measure_weights(bench, o, formats[f].format, n, k, json);
        }
}

/* Numbers of the pool for the largest A and B. */
static int64_t numbers_of(const struct options *o)
{
    int64_t numbers = 0;
    for (const char *at = o->weights; *at != '\0';) {
        const int64_t n = next_number(&at, "x"), k = next_number(&at, ",");
        numbers = BSMI_MAX(numbers, (most_rows(o) + n) * k + 4096);
    }
    return numbers;
}

int main(int argc, char **argv)
{
    static struct bench bench;
    struct options o = { .formats = "mxfp4,nvfp4", .weights = "8192x8192,28672x4096,7168x18432",
                         .rows = "1,8,16,32,64,100,128,200,256,300,400,512", .rounds = ROUNDS, .slowest = 2 };
    bench = (struct bench){ .divide = 1 };
    const int status = parse(argc, argv, &o);
    if (status != 0) return status < 0 ? 0 : status;
    const int64_t numbers = numbers_of(&o), wanted = 40 * numbers + ((int64_t)256 << 20);
    if (!gpu_open(&bench.gpu, BSMI_MIN(wanted, memory_bytes), numbers, numbers > 1 << 22 ? cold_bytes : 0))
        return EXIT_NO_DEVICE;
    FILE *file = o.json != NULL ? fopen(o.json, "w") : NULL, *const nowhere = tmpfile();
    if (o.json != NULL && file == NULL) gpu_stop("%s cannot be written", o.json);
    struct cli_json json = cli_json_to(file != NULL ? file : nowhere);
    cli_json_object(&json, NULL);
    cli_json_text(&json, "machine", bench.gpu.info.name);
    cli_json_integer(&json, "rounds", o.rounds);
    cli_json_array(&json, "products");
    printf("%s, %d rounds, medians\n", bench.gpu.info.name, o.rounds);
    measure_all(&bench, &o, &json);
    cli_json_end(&json), cli_json_end(&json);
    if (file != NULL && (ferror(file) != 0 || fclose(file) != 0)) gpu_stop("%s could not be written", o.json);
    gpu_close(&bench.gpu);
    return 0;
}
