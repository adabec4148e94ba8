/* Products by several builds of the library, in turns: what a change of a kernel gains where neighbours on the machine
 * disturb, since all builds see the same of them.
 *
 *   bench_builds [--most-rows M] SECONDS THREADS LIBRARY.so...
 *
 * Best times in ms, by the wall; D is bf16.  Up to 64 rows of A the weights take turns, so that each product reads them
 * from memory, and the time in which as many threads read them stands beside.  One row also has its weights prepacked,
 * by builds that have a form for them. */
#include "blockscale.h"
#include "bench.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BUILDS = 8, FEW = 64, LARGE = 2048, WIDE = 4096 };
static const int64_t rotated_bytes = (int64_t)400 << 20;                /* more than caches hold */

struct build {
    const char *name;
    bsm_context *context;
    bsm_status (*create)(const bsm_context_options *, bsm_context **);
    bsm_status (*multiply)(bsm_context *, const bsm_matmul *);
    bsm_status (*plan)(bsm_context *, const bsm_matmul *, bsm_plan **);
    size_t (*panels_bytes)(const bsm_plan *);
    bsm_status (*pack)(const bsm_plan *, const bsm_matmul *, void *, size_t);
    bsm_status (*quantize)(bsm_context *, const bsm_real_matrix *, const bsm_quantize_options *, const bsm_matrix *,
                           bsm_quantize_stats *);
    const char *(*last_error)(void);
};

#define ONE_ROW(prepacked) \
    { BSM_FORMAT_BF16, BSM_MXFP4, 1, WIDE, prepacked }, { BSM_MXFP8_E4M3, BSM_MXFP4, 1, WIDE, prepacked }, \
    { BSM_MXFP4, BSM_MXFP4, 1, WIDE, prepacked }, { BSM_FORMAT_BF16, BSM_NVFP4, 1, WIDE, prepacked }, \
    { BSM_NVFP4, BSM_NVFP4, 1, WIDE, prepacked }, { BSM_FORMAT_BF16, BSM_MXFP8_E4M3, 1, WIDE, prepacked }, \
    { BSM_MXFP8_E4M3, BSM_MXFP8_E4M3, 1, WIDE, prepacked }
#define ROWS(a, b, m, n) { a, b, m, n, false }

static const struct { bsm_format a, b; int64_t m, n; bool prepacked; } works[] = {
    ONE_ROW(true), ONE_ROW(false),
    ROWS(BSM_FORMAT_BF16, BSM_MXFP4, 16, WIDE), ROWS(BSM_FORMAT_BF16, BSM_MXFP4, 32, WIDE),
    ROWS(BSM_FORMAT_BF16, BSM_MXFP4, FEW, WIDE), ROWS(BSM_FORMAT_BF16, BSM_NVFP4, 16, WIDE),
    ROWS(BSM_FORMAT_BF16, BSM_NVFP4, FEW, WIDE), ROWS(BSM_FORMAT_BF16, BSM_MXFP8_E4M3, 16, WIDE),
    ROWS(BSM_FORMAT_BF16, BSM_MXFP8_E4M3, FEW, WIDE), ROWS(BSM_MXFP8_E4M3, BSM_MXFP8_E4M3, LARGE, LARGE),
    ROWS(BSM_FORMAT_BF16, BSM_MXFP4, LARGE, LARGE), ROWS(BSM_NVFP4, BSM_NVFP4, LARGE, LARGE),
    ROWS(BSM_MXFP4, BSM_MXFP4, LARGE, LARGE), ROWS(BSM_MXFP6_E2M3, BSM_MXFP6_E2M3, LARGE, LARGE),
};
enum { WORKS = sizeof works / sizeof works[0] };

static void *allocate(int64_t bytes)
{
    void *memory = aligned_alloc(4096, (size_t)(bytes + 4095) / 4096 * 4096);
    if (memory == NULL) fprintf(stderr, "no memory\n"), exit(1);
    return memory;
}

static void *find(void *library, const char *name)
{
    void *function = dlsym(library, name);
    if (function == NULL) fprintf(stderr, "%s\n", dlerror()), exit(1);
    return function;
}

/* Each library calls its own functions, not the first one's of that name. */
static struct build open_build(const char *file, int threads)
{
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    if (library == NULL) fprintf(stderr, "%s\n", dlerror()), exit(1);
    struct build b = { .name = file };
    *(void **)&b.create = find(library, "bsm_context_create");
    *(void **)&b.multiply = find(library, "bsm_multiply");
    *(void **)&b.plan = find(library, "bsm_plan_create");
    *(void **)&b.panels_bytes = find(library, "bsm_plan_b_panels_bytes");
    *(void **)&b.pack = find(library, "bsm_plan_pack_b");
    *(void **)&b.quantize = find(library, "bsm_quantize");
    *(void **)&b.last_error = find(library, "bsm_last_error");
    const bsm_context_options options = { .struct_size = sizeof options, .threads = threads };
    if (b.create(&options, &b.context) != BSM_OK) fprintf(stderr, "%s: %s\n", file, b.last_error()), exit(1);
    return b;
}

/* Normal enough: sums of six uniform numbers. */
static float *make_numbers(int64_t count)
{
    float *numbers = allocate(count * (int64_t)sizeof *numbers);
    uint64_t state = 1;
    for (int64_t i = 0; i < count; i++) {
        float sum = -3;
        for (int j = 0; j < 6; j++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            sum += (float)(state >> 40) * 0x1p-24F;
        }
        numbers[i] = sum;
    }
    return numbers;
}

static bsm_matrix quantize(const struct build *build, bsm_format format, int64_t rows, int64_t columns,
                           const float *numbers)
{
    bsm_matrix m = { .struct_size = sizeof m, .format = format, .rows = rows, .columns = columns };
    int64_t data_bytes = 0, scale_bytes = 0;
    bsm_matrix_data_bytes(&m, &data_bytes);
    bsm_matrix_scale_bytes(&m, &scale_bytes);
    m.data = allocate(data_bytes);
    if (scale_bytes > 0) m.scales = allocate(scale_bytes);
    const bsm_real_matrix real = { .struct_size = sizeof real, .rows = rows, .columns = columns,
                                   .data = (void *)(uintptr_t)numbers, .row_stride = columns, .column_stride = 1 };
    if (build->quantize(build->context, &real, NULL, &m, NULL) != BSM_OK)
        fprintf(stderr, "%s\n", build->last_error()), exit(1);
    return m;
}

/* Copies of B, which take turns, and what has been measured. */
struct products {
    bsm_matrix a, b, d;
    int64_t data_bytes, scale_bytes, copies, turn;
    double best[MOST_BUILDS], reading;
    unsigned char *panels[MOST_BUILDS];   /* one prepacked B for each copy */
    size_t panels_bytes[MOST_BUILDS];
};

static void prepare(struct products *w, int i, const struct build *build, const float *numbers)
{
    const int64_t n = works[i].n;
    w->a = quantize(build, works[i].a, works[i].m, n, numbers);
    w->b = quantize(build, works[i].b, n, n, numbers);
    w->d = (bsm_matrix){ .struct_size = sizeof w->d, .format = BSM_FORMAT_BF16, .rows = works[i].m, .columns = n,
                         .data = allocate(works[i].m * n * 2) };
    bsm_matrix_data_bytes(&w->b, &w->data_bytes);
    bsm_matrix_scale_bytes(&w->b, &w->scale_bytes);
    w->copies = works[i].m > FEW ? 1 : 1 + rotated_bytes / w->data_bytes;
    unsigned char *data = allocate(w->copies * w->data_bytes), *scales = allocate(w->copies * w->scale_bytes);
    for (int64_t c = 0; c < w->copies; c++) {
        memcpy(data + c * w->data_bytes, w->b.data, (size_t)w->data_bytes);
        memcpy(scales + c * w->scale_bytes, w->b.scales, (size_t)w->scale_bytes);
    }
    w->b.data = data, w->b.scales = scales;
    for (int l = 0; l < MOST_BUILDS; l++) w->best[l] = 1e9;
    w->reading = 1e9;
}

/* B prepacked by a build, if that has a form for it. */
static void prepack(struct products *w, int l, const struct build *build)
{
    const bsm_matmul product = { .struct_size = sizeof product, .a = &w->a, .b = &w->b, .d = &w->d };
    bsm_plan *plan = NULL;
    if (build->plan(build->context, &product, &plan) != BSM_OK) fprintf(stderr, "%s\n", build->last_error()), exit(1);
    const size_t bytes = (build->panels_bytes(plan) + 63) / 64 * 64;
    w->panels_bytes[l] = bytes;
    if (bytes == 0) return;
    w->panels[l] = allocate(w->copies * (int64_t)bytes);
    if (build->pack(plan, &product, w->panels[l], bytes) != BSM_OK)
        fprintf(stderr, "%s\n", build->last_error()), exit(1);
    for (int64_t c = 1; c < w->copies; c++) memcpy(w->panels[l] + c * (int64_t)bytes, w->panels[l], bytes);
}

static bsm_matrix next_b(struct products *w)
{
    bsm_matrix b = w->b;
    w->turn = (w->turn + 1) % w->copies;
    b.data = (unsigned char *)b.data + w->turn * w->data_bytes;
    b.scales = (unsigned char *)b.scales + w->turn * w->scale_bytes;
    return b;
}

static void multiply(struct products *w, int l, const struct build *build)
{
    const bsm_matrix b = next_b(w);
    const bsm_matmul product = { .struct_size = sizeof product, .a = &w->a, .b = &b, .d = &w->d,
                                 .b_panels = w->panels[l] == NULL
                                                 ? NULL : w->panels[l] + w->turn * (int64_t)w->panels_bytes[l] };
    if (build->multiply(build->context, &product) != BSM_OK) fprintf(stderr, "%s\n", build->last_error()), exit(1);
}

/* The first of two products wakes several threads. */
static void measure(struct products *w, int l, const struct build *build, int threads)
{
    if (threads > 1) multiply(w, l, build);
    const double start = wall_seconds();
    multiply(w, l, build);
    const double taken = wall_seconds() - start;
    if (taken < w->best[l]) w->best[l] = taken;
}

/* Scales are taken to be read as fast as codes. */
static void measure_reading(struct products *w, int threads)
{
    const bsm_matrix b = next_b(w);
    const double more = 1 + (double)w->scale_bytes / (double)w->data_bytes,
                 taken = read_seconds(b.data, (size_t)w->data_bytes, threads) * more;
    if (taken < w->reading) w->reading = taken;
}

int main(int argc, char **argv)
{
    static struct products all[WORKS];
    struct build builds[MOST_BUILDS];
    int64_t most_rows = INT64_MAX;
    if (argc > 2 && strcmp(argv[1], "--most-rows") == 0) most_rows = atoll(argv[2]), argc -= 2, argv += 2;
    const int count = argc - 3;
    if (count < 1 || count > MOST_BUILDS) {
        fprintf(stderr, "usage: %s [--most-rows M] SECONDS THREADS LIBRARY.so... (at most %d)\n", argv[0],
                MOST_BUILDS);
        return 2;
    }
    const double seconds = strtod(argv[1], NULL);
    const int threads = atoi(argv[2]);
    for (int l = 0; l < count; l++) builds[l] = open_build(argv[3 + l], threads);
    float *numbers = make_numbers((int64_t)WIDE * WIDE);
    for (int i = 0; i < WORKS; i++) {
        if (works[i].m > most_rows) continue;
        prepare(&all[i], i, &builds[0], numbers);
        for (int l = 0; works[i].prepacked && l < count; l++) prepack(&all[i], l, &builds[l]);
    }
    int rounds = 0;
    for (const double start = wall_seconds(); wall_seconds() - start < seconds; rounds++)
        for (int i = 0; i < WORKS; i++) {
            if (works[i].m > most_rows) continue;
            for (int l = 0; l < count; l++)
                if (!works[i].prepacked || all[i].panels[l] != NULL) measure(&all[i], l, &builds[l], threads);
            if (works[i].m <= FEW) measure_reading(&all[i], threads);
        }
    printf("%d rounds, %d threads, ms; last, of few rows: reading B\n", rounds, threads);
    for (int l = 0; l < count; l++) printf("  build %d: %s\n", l + 1, builds[l].name);
    for (int i = 0; i < WORKS; i++) {
        if (works[i].m > most_rows) continue;
        printf("%-10s x %-10s %4d x %d%s", bsm_format_get((int)works[i].a)->name, bsm_format_get((int)works[i].b)->name,
               (int)works[i].m, (int)works[i].n, works[i].prepacked ? " prepacked" : "          ");
        for (int l = 0; l < count; l++)
            if (all[i].best[l] < 1) printf(" %9.3f", 1e3 * all[i].best[l]);
            else printf(" %9s", "");
        if (works[i].m <= FEW) printf(" %9.3f", 1e3 * all[i].reading);
        printf("\n");
    }
    return 0;
}
