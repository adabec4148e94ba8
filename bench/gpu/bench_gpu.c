/* bench_gpu: the speed of everything that the CUDA backend does, beside its peers, as a table, JSON and a drawing.
 *
 * Operands are random normal numbers that the library quantized, in so many places, used in turn, that L2 holds none of them.  Ours
 * and a peer run in turn between events; see loop.h for what that means on a GPU that its power limit holds. */
#include "bench_gpu.h"
#include "products.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 25, QUICK_ROUNDS = 11, EXIT_WRONG_USAGE = 2, EXIT_NO_DEVICE = 4 };
/* Operands, results and scratch of the largest work; numbers for its A and B. */
static const int64_t memory_bytes = (int64_t)8 << 30, numbers = ((int64_t)168 << 20) + 4096, cold_bytes = (int64_t)320 << 20;
static const int64_t least_memory_bytes = (int64_t)160 << 20, least_numbers = 1 << 20;

static const struct pair pairs[] = {
    { BSM_MXFP8_E4M3, BSM_MXFP8_E4M3 }, { BSM_MXFP6_E2M3, BSM_MXFP6_E2M3 }, { BSM_MXFP4, BSM_MXFP4 },
    { BSM_MXFP8_E4M3, BSM_MXFP4 },      { BSM_NVFP4, BSM_NVFP4 },           { BSM_FORMAT_BF16, BSM_MXFP4 },
    { BSM_FORMAT_BF16, BSM_NVFP4 },     { BSM_FORMAT_BF16, BSM_FORMAT_BF16 },
};
static const struct shape large[] = { { 8192, 8192, 8192 }, { 4096, 16384, 8192 } };
static const struct pair fast_pairs[] = {
    { BSM_MXFP8_E4M3, BSM_MXFP8_E4M3 }, { BSM_MXFP6_E2M3, BSM_MXFP6_E2M3 }, { BSM_MXFP8_E4M3, BSM_MXFP4 },
};
static const struct {
    int64_t n, k;
} weights[] = { { 8192, 8192 }, { 28672, 4096 }, { 2880, 2880 }, { 7168, 18432 } };
static const int64_t few_rows[] = { 128, 256, 512 }, tokens[] = { 1, 8, 16, 32, 64 };
static const struct pair token_pairs[] = {
    { BSM_FORMAT_BF16, BSM_MXFP4 }, { BSM_MXFP8_E4M3, BSM_MXFP4 }, { BSM_FORMAT_BF16, BSM_NVFP4 }, { BSM_MXFP8_E4M3, BSM_NVFP4 }
};
enum { PAIRS = 8, FAST_PAIRS = 3, LARGE = 2, WEIGHTS = 4, FEW_ROWS = 3, TOKENS = 5, TOKEN_PAIRS = 4 };

struct options {
    struct bench *bench;
    const char *json, *svg, *commit;
};

static int usage(FILE *file, int status)
{
    fprintf(file,
            "bench_gpu [--quick] [--parts] [--only TEXT] [--rounds N] [--json FILE] [--svg FILE] [--commit TEXT] [--divide N]\n"
            "  --quick    fewer works, rounds and variants: a minute and a half at most\n"
            "  --parts    what large products consist of, too\n"
            "  --only     works whose line contains TEXT: \"large MXFP8 x MXFP4 8192x8192x8192\", \"small ...\", \"tokens ...\",\n"
            "             \"fast ...\", \"error ...\", \"quantize\", \"quantize both\", \"convert\"; several times\n"
            "  --rounds   of every comparison, 1 to %d\n"
            "  --divide   divides every size: for runs that only try the program\n",
            MEASURE_ROUNDS);
    return status;
}

/* The number behind an option; ends the program for anything else. */
static int64_t number_of(const char *option, const char *text, int64_t low, int64_t high)
{
    char *end;
    const long long value = strtoll(text, &end, 10);
    if (end == text || *end != '\0' || value < low || value > high)
        gpu_stop("%s %s: a whole number from %lld to %lld is wanted", option, text, (long long)low, (long long)high);
    return value;
}

/* 0, or the exit status. */
static int parse(int count, char **arguments, struct options *o)
{
    struct bench *b = o->bench;
    for (int i = 1; i < count; i++) {
        const char *name = arguments[i];
        if (strcmp(name, "--help") == 0) return usage(stdout, -1);
        if (strcmp(name, "--quick") == 0) b->quick = true;
        else if (strcmp(name, "--parts") == 0) b->parts = true;
        else if (i + 1 == count) return usage(stderr, EXIT_WRONG_USAGE);
        else if (strcmp(name, "--only") == 0 && b->only_count < MOST_ONLY) b->only[b->only_count++] = arguments[++i];
        else if (strcmp(name, "--rounds") == 0) b->rounds = (int)number_of(name, arguments[++i], 1, MEASURE_ROUNDS);
        else if (strcmp(name, "--divide") == 0) b->divide = number_of(name, arguments[++i], 1, 256);
        else if (strcmp(name, "--json") == 0) o->json = arguments[++i];
        else if (strcmp(name, "--svg") == 0) o->svg = arguments[++i];
        else if (strcmp(name, "--commit") == 0) o->commit = arguments[++i];
        else return usage(stderr, EXIT_WRONG_USAGE);
    }
    if (b->rounds == 0) b->rounds = b->quick ? QUICK_ROUNDS : ROUNDS;
    return 0;
}

/* Works ------------------------------------------------------------------------------------------------------------------------ */

static bool wanted(const struct bench *b, const char *kind, const struct pair *pair, const struct shape *shape)
{
    char pair_of[64] = "", shape_of[40] = "", line[176];
    if (pair != NULL) pair_text(pair, pair_of, sizeof pair_of);
    if (shape != NULL) shape_text(shape, shape_of, sizeof shape_of);
    snprintf(line, sizeof line, "%s %s %s", kind, pair_of, shape_of);
    bool named = b->only_count == 0;
    for (int i = 0; i < b->only_count; i++) named = named || strstr(line, b->only[i]) != NULL;
    if (!named) return false;
    fprintf(stderr, "%s\n", line);
    return true;
}

static struct shape divided(const struct bench *b, int64_t m, int64_t n, int64_t k)
{
    return (struct shape){ (m + b->divide - 1) / b->divide, (n + b->divide - 1) / b->divide, (k / b->divide + 31) / 32 * 32 };
}

/* --quick: two pairs that decode both operands, and one that decodes the weights alone. */
static bool quick_pair(const struct pair *pair)
{
    return pair->a == pair->b ? pair->a == BSM_MXFP8_E4M3 || pair->a == BSM_NVFP4
                              : pair->a == BSM_FORMAT_BF16 && pair->b == BSM_MXFP4;
}

static void measure_weights(struct bench *b, const struct pair *pair)
{
    for (int w = 0; w < WEIGHTS; w++)
        for (int r = 0; r < FEW_ROWS; r += b->quick ? 2 : 1) {
            const struct shape shape = divided(b, few_rows[r], weights[w].n, weights[w].k);
            if (wanted(b, "small", pair, &shape)) measure_small(b, pair, &shape);
        }
}

static void measure_all_tokens(struct bench *b)
{
    for (int p = 0; p < TOKEN_PAIRS; p += b->quick ? 2 : 1)
        for (int w = 0; w < WEIGHTS; w++)
            for (int r = 0; r < TOKENS; r += b->quick ? 2 : 1) {
                const struct shape shape = divided(b, tokens[r], weights[w].n, weights[w].k);
                if (wanted(b, "tokens", &token_pairs[p], &shape)) measure_tokens(b, &token_pairs[p], &shape);
            }
}

static void measure_error_of(struct bench *b, const struct pair *pair)
{
    const struct shape shape = divided(b, large[0].m, large[0].n, large[0].k);
    if (pair->b != BSM_FORMAT_BF16 && wanted(b, "error", pair, &shape)) measure_error(b, pair, &shape);
}

static void measure_both_large(struct bench *b, const struct pair *pair)
{
    for (int i = 0; i < (b->quick ? 1 : LARGE); i++) {
        const struct shape shape = divided(b, large[i].m, large[i].n, large[i].k);
        if (wanted(b, "large", pair, &shape)) measure_large(b, pair, &shape);
    }
}

static void measure_all_fast(struct bench *b)
{
    for (int p = 0; p < (b->quick ? 1 : FAST_PAIRS); p++)
        for (int i = 0; i < (b->quick ? 1 : LARGE); i++) {
            const struct shape shape = divided(b, large[i].m, large[i].n, large[i].k);
            if (wanted(b, "fast", &fast_pairs[p], &shape)) measure_fast(b, &fast_pairs[p], &shape);
        }
}

/* Large products last: a guest may still be compiling what it brings to them. */
static void measure_all(struct bench *b)
{
    static void (*const measure_pair[])(struct bench *, const struct pair *) = { measure_weights, measure_error_of,
                                                                                 measure_both_large };
    if (wanted(b, "quantize", NULL, NULL)) measure_quantize(b);
    if (wanted(b, "quantize both", NULL, NULL)) measure_quantize_both(b);
    if (wanted(b, "convert", NULL, NULL)) measure_conversions(b);
    measure_all_tokens(b);
    for (int kind = 0; kind < 3; kind++)
        for (int p = 0; p < PAIRS; p++)
            if (!b->quick || quick_pair(&pairs[p])) measure_pair[kind](b, &pairs[p]);
    measure_all_fast(b);
}

/* The run ---------------------------------------------------------------------------------------------------------------------- */

static void describe(struct bench *b, const char *commit)
{
    struct table *t = &b->table;
    const struct gpu *gpu = &b->gpu;
    const time_t now = time(NULL);
    const int version = gpu->info.driver_version;
    strftime(t->date, sizeof t->date, "%Y-%m-%d %H:%M UTC", gmtime(&now));
    snprintf(t->commit, sizeof t->commit, "%s", commit);
    snprintf(t->machine, sizeof t->machine, "%s, %d multiprocessors, driver %s (CUDA %d.%d)", gpu->info.name,
             gpu->info.multiprocessors, gpu->monitor.device != NULL ? gpu->monitor.driver : "?", version / 1000,
             version % 1000 / 10);
    snprintf(t->peers, sizeof t->peers, "peers: %s%s%s", gpu->cublas.handle != NULL ? gpu->cublas.name : "none",
             b->guest != NULL ? ", " : "", b->guest != NULL ? b->guest->name : "");
    snprintf(t->lacks, sizeof t->lacks, "%s%s%s%s", gpu->cublas.handle != NULL ? "" : "cuBLAS: ", gpu->cublas.why,
             gpu->cublas.handle == NULL && b->guest == NULL ? "; " : "",
             b->guest != NULL ? "" : "PyTorch and Triton: bench/gpu/bench_gpu.py brings them");
    t->rounds = b->rounds, t->quick = b->quick;
}

static void write_file(const char *path, const struct table *table, void (*write)(const struct table *, FILE *))
{
    FILE *file = path != NULL ? fopen(path, "w") : NULL;
    if (path == NULL) return;
    if (file == NULL) gpu_stop("%s cannot be written", path);
    write(table, file);
    if (ferror(file) != 0 || fclose(file) != 0) gpu_stop("%s could not be written", path);
}

int bench_gpu(int count, char **arguments, const struct guest *guest)
{
    static struct bench bench;
    struct options o = { .bench = &bench, .commit = "an unnamed commit" };
    bench = (struct bench){ .guest = guest, .divide = 1 };
    const int status = parse(count, arguments, &o);
    if (status != 0) return status < 0 ? 0 : status;
    const int64_t d = bench.divide, smaller = memory_bytes / (d * d), fewer = numbers / (d * d);
    if (!gpu_open(&bench.gpu, smaller > least_memory_bytes ? smaller : least_memory_bytes,
                  fewer > least_numbers ? fewer : least_numbers, d > 1 ? 0 : cold_bytes))
        return EXIT_NO_DEVICE;
    describe(&bench, o.commit);
    measure_all(&bench);
    gpu_close(&bench.gpu);
    table_print(&bench.table, stdout);
    write_file(o.json, &bench.table, table_json);
    write_file(o.svg, &bench.table, table_picture);
    return 0;
}
